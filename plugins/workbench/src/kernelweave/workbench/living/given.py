"""New rows as a model that lives takes them: read with the options of its fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.evidence.new_rows import ALIKE
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.tables import Table, Target, choose_target, split_by_target
from kernelweave.tables.errors import did_you_mean

from ..errors import CommandError
from ..model_catalog import model_kind, model_title
from ..models import Model
from ..roles import read_weights
from ..unlabelled import without_target
from .known import KnownTargets

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows of a table, all of which have a target.

    - `table`: where they stand; `inputs`: as the estimator takes them
    - `target`, `weight`: as the fit read its own; ``weight`` is ``None`` without ``--weights``
    - `division`: ``groups`` or ``order`` as ``fit`` takes them, empty for rows at random
    """

    table: Table
    inputs: pd.DataFrame
    target: Target
    weight: FloatArray | None
    division: dict[str, Any]

    def __len__(self) -> int:
        return len(self.target.values)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Positional arguments of the estimator's `update`, `refit` and `forget`."""
        return self.inputs, self.target.learned, self.weight

    @property
    def known(self) -> KnownTargets:
        """The targets for the header of the file."""
        return KnownTargets.of_target(self.target, self.weight)


def require_evidence(model: Model, path: Path, command: str) -> None:
    """Raise CommandError for a model of another kind.

    `path`: of its file; `command`: what was asked, such as ``"update"``.
    """
    name = model.header.model
    if not model_kind(name).lives:
        title = model_title(name) if name else model.header.estimator
        raise CommandError(
            f"{path}: {command} is for the evidence kernel, and this model is {title}: fit it "
            "again to all rows"
        )


def require_living(model: Model, path: Path, command: str) -> None:
    """Raise CommandError for a model that cannot take or lose rows, as `require_evidence` does."""
    require_evidence(model, path, command)
    if not hasattr(model.machine, "_living"):
        raise CommandError(
            f"{path} was written before models could take new rows: fit it again, then {command}"
        )
    if model.machine._living is None:
        try:
            model.machine._living_model()
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None


def read_given(
    model: Model, table: Table, on_note: Callable[[str], None] = lambda _: None, *, n_before: int
) -> GivenRows:
    """Read rows for a model with the options of its fit: kinds, weights, groups or order, event.

    `on_note`: called with a sentence on rows without a target, which are left out; `n_before`: how
    many rows the model has, which come first where the lines of the file are their order.

    Raises CommandError, or what reading raises, if a column is absent, a target is missing in every
    row or of another kind, or a weight is negative.
    """
    header = model.header
    asked, column = header.asked, choose_target(table, header.target)
    kinds = {name: kind for name, kind in asked.get("kinds", {}).items() if name in table.columns}
    table = replace(table, kinds=kinds)
    known, unknown = split_by_target(table, column)
    if unknown is not None:
        on_note(without_target(known, unknown, column))
    weights = asked.get("weights")
    if weights is not None:
        _require(known, weights, "--weights")
    return GivenRows(
        known,
        model.inputs(known),
        model.targets(known),
        None if weights is None else read_weights(known, weights),
        _division(model, known, n_before),
    )


def _require(table: Table, column: str, option: str) -> None:
    """Raise CommandError if a table lacks a column that an option of the fit named."""
    if column not in table.columns:
        hint = did_you_mean(column, table.columns, what="columns")
        raise CommandError(
            f"{table.source} has no column {column!r}, which the fit was told by {option}; {hint}"
        )


def _division(model: Model, table: Table, n_before: int) -> dict[str, Any]:
    """Return groups or order of the rows: a feature by its name, any other column by its values."""
    asked, columns = model.header.asked, model.header.columns
    groups, order = asked.get("groups"), asked.get("order")
    if groups == ALIKE and groups not in table.columns:
        return {"groups": groups}
    division: dict[str, Any] = {}
    if asked.get("cv") == "time":
        # the lines of the file are the order, and new rows come after all others
        division["order"] = np.arange(n_before, n_before + len(table.frame))
    for name, column in (("groups", groups), ("order", order)):
        if column is None:
            continue
        _require(table, column, f"--{name}")
        known = column in columns
        division[name] = column if known else table.inputs([column])[column].to_numpy()
    return division
