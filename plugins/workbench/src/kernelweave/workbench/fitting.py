"""From what a user asks for to a fitted model with its score on rows that it did not see."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.evidence.new_rows import ALIKE
from kernelweave.kernels_core import Status, UnderfitWarning, clock
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.tables import Table, Target
from kernelweave.tables.data_checks import check_data
from kernelweave.tables.errors import did_you_mean, one_line

from .errors import CommandError, locate_cell_errors
from .machines import kernel_machine
from .models import Model
from .progress import fit_bar
from .scoring import (
    Folds,
    HeldOut,
    Metric,
    Row,
    check_metric,
    cross_predict,
    folds_by,
    held_out_by,
    rivals,
    tried,
)
from .views import read_views
from .zoo import fit_model, make_model, model_of, title_of

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


# Each is a fit more: one learns of two thirds of the rows, and all rows are held out once.
FOLDS = 3


@dataclass(frozen=True)
class Choices:
    """What the options of ``kernelweave fit`` say; ``None`` leaves a default.

    - `model`: a model of the `zoo`; that of the algorithm without it
    - `settings`: parameters of its estimator by their names, ``algorithm`` among them; ``None`` is
      as if absent
    - `cv`: folds whose rows are held out, or ``"group"`` or ``"time"``, see `read_division`
    - `seed`: of everything random, so that the same command gives the same file
    - `views`: the file that names groups of columns
    - `metric`: the scorer of scikit-learn that judges; R² or accuracy without it
    - `groups`, `order`: columns by which rows are held out: whole groups, or later ones
    """

    model: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    cv: int | str | None = None
    seed: int = 0
    views: Path | None = None
    metric: str | None = None
    groups: str | None = None
    order: str | None = None

    @property
    def n_folds(self) -> int | None:
        """How many folds are asked for."""
        return self.cv if isinstance(self.cv, int) else None

    def seeing(self, columns: Sequence[str]) -> Choices:
        """Return the choices with the views that the file says, as a setting."""
        if self.views is None:
            return self
        settings = self.settings | {"views": read_views(self.views, columns)}
        return replace(self, settings=settings, views=None)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are given."""
        return {name: value for name, value in self.settings.items() if value is not None}

    def maker(self, task: str) -> tuple[str, Callable[[], BaseEstimator]]:
        """Return the model's name and what makes one, unfitted."""
        settings = self.given
        name = self.model or model_of(settings.get("algorithm"), task)
        if name == "evidence" and self.n_folds is not None:
            settings["n_folds"] = self.n_folds
        if name == "evidence" and task == "classification":
            # its own folds give them
            settings.pop("probability", None)
        made = make_model(name, task, settings, seed=self.seed)
        if self.metric is not None and "scoring" in made.get_params():
            # folds choose by what judges
            settings["scoring"] = self.metric
        return name, lambda: make_model(name, task, settings, seed=self.seed)


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """A fitted model, and what is said once and not kept.

    - `model`: with its held-out predictions, where there are some
    - `rows`: other models on the same rows, with their seconds
    - `seconds`: of the fit, and of the folds behind the held-out score
    - `interrupted`: whether Ctrl-C ended it early
    """

    model: Model
    rows: list[Row]
    seconds: float
    interrupted: bool


def fit_table(
    table: Table,
    target: Target,
    choices: Choices,
    *,
    drop: Sequence[str] = (),
    weights: str | None = None,
    comparing: bool = False,
    told: Callable[[str], None] = lambda _: None,
    kept: Callable[[Model], None] = lambda _: None,
) -> FitOutcome:
    """Learn a model from a table as it is, and score it on rows that it did not see.

    - `table`: the data: words, dates and gaps included
    - `target`: what to predict
    - `choices`: how
    - `drop`: columns to leave out
    - `weights`: the column with what each row counts
    - `comparing`: whether other models are compared with it, on the same rows
    - `told`: called with each sentence on the table, and on each other model that cannot be fitted
    - `kept`: called with the model as soon as it is fitted: what comes after that, comparisons and
      what columns are worth, may fail and never costs it

    Returns: the best model so far where Ctrl-C ended the fit. Raises CommandError if no feature is
    left, or a cell cannot be used.
    """
    columns = feature_columns(table, target.column, drop, weights)
    choices = choices.seeing(columns)
    seen = choices.given.get("views")
    if seen is not None:
        columns = [each for each in columns if any(each in group for group in seen.values())]
    X, y = table.as_given(columns), target.values
    weight = None if weights is None else read_weights(table, weights)
    check_metric(choices.metric, y, target.task)
    name, make = choices.maker(target.task)
    division = read_division(table, columns, choices.cv, choices.groups, choices.order)
    n_folds, counts = choices.n_folds or FOLDS, np.ones(len(X)) if weight is None else weight
    folds = folds_by(X, y, target.task, n_folds, choices.seed, weight=counts, **division)
    notes = check_data(table, columns, target)
    for sentence in notes:
        told(sentence)
    watch = clock.Stopwatch()
    # a fit without a fold has fewer rows, and takes time by their square
    works = [] if name == "evidence" else [(1.0 - 1.0 / n_folds) ** 2] * n_folds
    bar = fit_bar(f"fitting {len(X)} rows", [1.0, *works])
    with locate_cell_errors(table), _leaving_to_summary(name) as doubted, bar as end_fit:
        seen = division if name == "evidence" else {"groups": folds.groups, "order": folds.order}
        estimator = fit_model(make(), X, y, weight, **seen)
        end_fit()
        stopped = _was_stopped(estimator)
        scoring = _counted(weight, choices.given.get("class_weight"), y)
        held_out = None
        if name == "evidence":
            folds = replace(folds, fold=kernel_machine(estimator).held_out_fold_)
            held_out = held_out_by(estimator, y, target.task, scoring, folds.parts)
        elif not stopped:
            each = partial(WeightedModel, make, weight is not None, end_fit)
            held_out, stopped = _crossed(each, X, target, folds, scoring)
    seconds = watch.seconds
    model = Model.of(
        estimator, columns=columns, target=target, table=table, name=name,
        held_out=held_out, notes=notes, told=told,
    )  # fmt: skip
    kept(model)
    rows: list[Row] = []
    if comparing and held_out is not None and not stopped:
        rows, stopped = _compared(held_out, X, y, folds, scoring, choices, told)
    comparison = {"ours": title_of(name), "rows": [row.as_json() for row in rows]}
    with fit_bar(f"importance of {len(columns)} columns"):
        importance = tuple(_importance(estimator, told))
    header = replace(
        model.header, comparison=comparison, importance=importance, metric=choices.metric,
        new_rows=_new_rows(estimator), doubt=next(iter(doubted), ""),
    )  # fmt: skip
    return FitOutcome(replace(model, header=header), rows, seconds, stopped)


@contextmanager
def _leaving_to_summary(name: str) -> Iterator[list[str]]:
    """Silence warnings of what the summary says too: of columns, and of scores held out.

    Yields: what is said of new rows that are surely predicted worse than those held out.
    """
    from kernelweave.evidence import HeldOutWarning
    from kernelweave.tables import ColumnWarning

    heard: list[str] = []
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, HeldOutWarning):
                heard.append(str(message))
            else:
                before(message, category, *rest, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", HeldOutWarning)
        warnings.simplefilter("ignore", ColumnWarning)
        if name == "evidence":
            warnings.simplefilter("ignore", UnderfitWarning)
        yield heard


def _new_rows(estimator: object) -> tuple[dict[str, Any], ...]:
    """Return what to expect of each kind of new rows, where the model says so."""
    held_out = getattr(kernel_machine(estimator), "held_out_", None)
    if held_out is None:
        return ()
    rows = held_out.rename_axis("name").reset_index().to_dict("records")
    return tuple({str(key): value for key, value in row.items()} for row in rows)


def _importance(estimator: object, told: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return what each column is worth on rows held out, the strongest first."""
    machine = kernel_machine(estimator)
    if not hasattr(machine, "held_out_fold_") or not (machine.held_out_fold_ >= 0).any():
        return []
    try:
        worth = machine.importance_
    except Exception as error:  # noqa: BLE001
        told(f"the importance of the columns is not known: {one_line(error)}")
        return []
    rows = [
        {"name": each.column, "value": float(each.importance), "error": float(each.error)}
        for each in worth
    ]
    return sorted(rows, key=lambda row: -row["value"])


def _was_stopped(estimator: BaseEstimator) -> bool:
    result = getattr(kernel_machine(estimator), "result_", None)
    return getattr(result, "status", None) is Status.INTERRUPTED


def _crossed(
    make: Callable[[], WeightedModel],
    X: pd.DataFrame,
    target: Target,
    folds: Folds,
    scoring: FloatArray,
) -> tuple[HeldOut | None, bool]:
    """Return predictions by fits without each fold; nothing where Ctrl-C ends them."""
    try:
        with warnings.catch_warnings():
            # the fit on all rows has said it already
            warnings.simplefilter("ignore")
            return cross_predict(make, X, target.values, target.task, folds, scoring), False
    except KeyboardInterrupt:
        return None, True


class WeightedModel:
    """A model of the zoo whose fit takes weights third, or does without them.

    `make`: returns it, unfitted; `weighted`: whether it takes them; `ended`: called after a fit;
    `columns`: those that name groups or order, which say more than their values.
    """

    def __init__(
        self,
        make: Callable[[], BaseEstimator],
        weighted: bool,
        ended: Callable[[], None] = lambda: None,
        columns: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self._columns = columns
        self._model = make()
        self._weighted = weighted
        self._ended = ended

    def fit(
        self,
        X: pd.DataFrame,
        y: Labels,
        weight: FloatArray,
        groups: Labels | None = None,
        order: FloatArray | None = None,
    ) -> BaseEstimator:
        """Learn from rows; groups and order choose only where the model takes them."""
        division: dict[str, object] = {"groups": groups, "order": order}
        if kernel_machine(self._model) is self._model:
            # who reads the table finds its columns by name
            division |= {k: self._columns[k] for k in self._columns if division[k] is not None}
        fitted = fit_model(self._model, X, y, weight if self._weighted else None, **division)
        if _was_stopped(fitted):
            raise KeyboardInterrupt
        self._ended()
        return fitted


def _compared(
    held_out: HeldOut,
    X: pd.DataFrame,
    y: Labels,
    folds: Folds,
    scoring: FloatArray,
    choices: Choices,
    told: Callable[[str], None],
) -> tuple[list[Row], bool]:
    """Return the other models that were done when Ctrl-C came, if it came."""
    rows: list[Row] = []
    metric = Metric(choices.metric)
    try:
        for each in tried(
            rivals(seconds=choices.given.get("max_time")), X, y, held_out.task,
            weight=scoring, folds=folds, seed=choices.seed,
            failed=lambda each, error: told(f"{each.title} is skipped: {one_line(error)}"),
        ):  # fmt: skip
            try:
                rows.append(Row.of(each, held_out, metric))
            except (ValueError, AttributeError) as error:
                told(f"no {each.rival.title} here: {one_line(error)}")
    except KeyboardInterrupt:
        return rows, True
    return sorted(rows, key=lambda row: -row.score.value), False


def _counted(weight: FloatArray | None, class_weight: object, y: Labels) -> FloatArray:
    """Return what each row counts in a score: its weight, times that of its class."""
    counts = np.ones(len(y)) if weight is None else weight
    if class_weight is None:
        return counts
    from sklearn.utils import compute_class_weight

    labels, codes = np.unique(y, return_inverse=True)
    factors: FloatArray = compute_class_weight(class_weight, classes=labels, y=y)
    return counts * factors[codes]


def read_division(
    table: Table,
    columns: Sequence[str],
    cv: int | str | None,
    groups: str | None,
    order: str | None,
) -> dict[str, Any]:
    """Return groups or order of the rows as `fit` takes them, empty for folds at random.

    - `columns`: features; of these the name is returned, of others the values
    - `cv`: a number of folds, ``"group"``, ``"time"`` (of ``order``, or of the lines of the file)
    - `groups`, `order`: columns of the table

    Raises CommandError if there is no such column, or two of them contradict each other.
    """
    if isinstance(cv, int) and cv < 2:
        raise CommandError(f"--cv must be at least 2, group or time, got {cv}")
    if groups is not None and (order is not None or cv == "time"):
        other = "--cv time" if order is None else "--order"
        raise CommandError(f"--groups and {other} exclude each other: give one of them")
    if cv == "group" and groups is None:
        raise CommandError("--cv group needs --groups COLUMN, the column that names the groups")
    found: dict[str, Any] = {"order": np.arange(len(table.frame))} if cv == "time" else {}
    for option, column in (("groups", groups), ("order", order)):
        if column is None:
            continue
        if column not in table.columns:
            if option == "groups" and column == ALIKE:
                found[option] = column
                continue
            hint = did_you_mean(column, table.columns, what="columns")
            raise CommandError(f"--{option} {column!r}: {hint}")
        known = column in columns
        found[option] = column if known else table.as_given([column])[column].to_numpy()
    return found


def read_weights(table: Table, column: str) -> FloatArray:
    """Return what each row counts.

    `table`: the data; `column`: its name. Returns shape (n_rows,): not negative, and not all zero.
    Raises CommandError if a weight is missing or negative.
    """
    values = table.numbers(column)
    if values.min() < 0 or not values.any():
        what = f"{values.min():g}" if values.min() < 0 else "zeros only"
        raise CommandError(f"--weights {column!r}: weights must be >= 0, not all 0, got {what}")
    return values


def feature_columns(
    table: Table, target: str, drop: Sequence[str] = (), weights: str | None = None
) -> list[str]:
    """Return the names of the features in the order of the table.

    `table`: the data; `target`: the column to predict; `drop`: columns to leave out; `weights`: the
    one that says what each row counts. Raises CommandError if one of them is not there, or nothing
    is left.
    """
    aside = [("--drop", name) for name in drop]
    aside += [("--weights", weights)] if weights is not None else []
    for option, name in aside:
        if name not in table.columns:
            hint = did_you_mean(name, table.columns, what="columns")
            raise CommandError(f"{option}: {table.source} has no column {name!r}; {hint}")
    unused = {target, *(name for _, name in aside)}
    columns = [name for name in table.columns if name not in unused]
    if not columns:
        raise CommandError(f"{table.source} has no column but the target {target!r}")
    return columns
