"""What ``kernelweave fit`` was asked for, and the unfitted model that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelweave.tables import Table, Target

from .errors import CommandError
from .model_catalog import make_model, model_kind, model_of_algorithm
from .views import read_views

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Choices:
    """The options of ``kernelweave fit``; ``None`` leaves a default.

    - `model`: a name in `model_catalog`; by default the model of the algorithm
    - `settings`: parameters of its estimator by name, ``algorithm`` among them; ``None`` counts
      as absent
    - `cv`: number of folds, ``"group"`` or ``"time"``, see `read_division`
    - `seed`: random seed: the same command gives the same file
    - `views`: the file that names groups of columns
    - `metric`: name of a scikit-learn scorer; by default R², accuracy or concordance
    - `groups`, `order`: columns by which rows are held out: whole groups, or later ones
    - `slopes`, `new`: columns whose effect differs by group, and which of several groups is held
      out, see `groups_held_out`
    """

    model: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    cv: int | str | None = None
    seed: int = 0
    views: Path | None = None
    metric: str | None = None
    groups: str | None = None
    order: str | None = None
    slopes: str | None = None
    new: str | None = None

    @property
    def n_folds(self) -> int | None:
        """Number of folds, ``None`` by default or for folds by group or time."""
        return self.cv if isinstance(self.cv, int) else None

    def with_views(self, columns: Sequence[str]) -> Choices:
        """Return the choices with the views of the file as a setting."""
        if self.views is None:
            return self
        settings = self.settings | {"views": read_views(self.views, columns)}
        return replace(self, settings=settings, views=None)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are not ``None``."""
        return {name: value for name, value in self.settings.items() if value is not None}

    def maker(
        self, task: str, levels: Sequence[Any] | None = None
    ) -> tuple[str, Callable[[], BaseEstimator]]:
        """Return the name of the model and a function that makes an unfitted one.

        `levels`: the classes, lowest first, where they have an order.
        """
        settings = self.given
        name = self.model or model_of_algorithm(settings.get("algorithm"), task)
        kind = model_kind(name)
        if kind.orders_classes and levels is not None:
            settings.setdefault("levels", levels)
        if kind.holds_out_itself and self.n_folds is not None:
            settings["n_folds"] = self.n_folds
        always = kind.has_probabilities and task == "classification"
        if always and settings.pop("probability", True) is not True:
            raise CommandError(
                f"--set probability must be true, or left out: the {kind.title} always has "
                "probabilities"
            )
        made = make_model(name, task, settings, seed=self.seed)
        if self.metric is not None and "scoring" in made.get_params():
            # parameters are chosen by the metric of the score
            settings["scoring"] = self.metric
        return name, lambda: make_model(name, task, settings, seed=self.seed)


def check_choices(target: Target, choices: Choices, table: Table) -> None:
    """Raise CommandError for a model or a metric that is for known targets, of others."""
    if target.ends is None:
        return
    what = f"{table.source}: {target.reason}"
    name = choices.model or model_of_algorithm(choices.settings.get("algorithm"), target.task)
    if not model_kind(name).learns_half_known:
        option = "--algorithm" if choices.model is None else "--model"
        given = choices.settings["algorithm"] if choices.model is None else name
        raise CommandError(
            f"{what}, and {option} {given} learns from known targets only: leave out {option}, as "
            "the evidence kernel learns from such targets"
        )
    if choices.metric is not None:
        raise CommandError(
            f"{what}, and --metric {choices.metric} is for known targets: leave it out, as "
            "concordance judges such targets"
        )
