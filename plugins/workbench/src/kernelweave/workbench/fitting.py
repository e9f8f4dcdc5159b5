"""Fit a model to a table, cross-validate it and compare it with other models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core import Status, UnderfitWarning, clock
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.tables import Table, Target
from kernelweave.tables.data_checks import check_data

from .choices import Choices, check_choices
from .console import message_text
from .errors import locate_cell_errors
from .machines import kernel_machine
from .model_catalog import fit_model, model_kind, model_title
from .models import Model
from .models.header import Comparison
from .progress import fit_bar
from .roles import feature_columns, fit_division, groups_held_out, read_division, read_weights
from .scoring.comparison import Row, cross_validate_models, skipped_models
from .scoring.held_out import (
    Folds,
    HeldOut,
    cross_predict,
    folds_by,
    held_out_by,
    scoring_weights,
)
from .scoring.metrics import Metric, check_metric
from .scoring.other_models import ComparedModel, other_models

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


NOT_COMPARED = "the other models of the comparison learn from known targets only and are left out"
# each fold costs one more fit; three leave two thirds of the rows for training
FOLDS = 3


@dataclass(frozen=True, eq=False)
class FitOutcome:
    """A fitted model, and what is printed but not saved with it.

    - `model`: with its cross-validated predictions, if there are any
    - `rows`: the other models on the same rows, with their seconds
    - `seconds`: of the fit and its cross-validation
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
    on_note: Callable[[str], None] = lambda _: None,
    on_fitted: Callable[[Model], None] = lambda _: None,
) -> FitOutcome:
    """Fit a model to a table, cross-validate it and compare it with others.

    - `drop`: columns to leave out; `weights`: the column of sample weights
    - `comparing`: whether to compare with other models on the same rows
    - `on_note`: called with each note on the table, and for each other model that cannot be fitted
    - `on_fitted`: called with the model as soon as it is fitted, so that it can be saved before
      comparisons and column importance, which may fail

    Returns the best model so far if Ctrl-C ended the fit. Raises CommandError if no feature is left
    or a cell cannot be used.
    """
    rows = _read(table, target, choices, drop, weights)
    for sentence in rows.notes:
        on_note(sentence)
    with locate_cell_errors(table):
        fitted = _learn(rows, choices)
    model = Model.of(
        fitted.estimator, columns=rows.columns, target=target, table=table, name=rows.name,
        held_out=fitted.held_out, notes=rows.notes, on_note=on_note,
    )  # fmt: skip
    header = replace(model.header, metric=choices.metric, asked=rows.asked)
    on_fitted(replace(model, header=header))
    others, stopped = list[Row](), fitted.stopped
    if comparing and target.ends is not None:
        on_note(NOT_COMPARED)
    elif comparing and fitted.held_out is not None and not stopped:
        others, stopped = _fit_other_models(fitted.held_out, rows, fitted, choices, on_note)
    importance, ended = _importance(rows, fitted, choices.given.get("max_time"), on_note)
    header = replace(
        header,
        comparison=Comparison(ours=model_title(rows.name), rows=[row.as_json() for row in others]),
        importance=importance,
        new_rows=expected_on_new_rows(fitted.estimator)
        if model_kind(rows.name).holds_out_itself
        else _of_folds(fitted.held_out, fitted.folds, choices.metric),
        warning=fitted.warning,
    )
    return FitOutcome(replace(model, header=header), others, fitted.seconds, stopped or ended)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a table as a fit takes them.

    - `columns`, `X`, `target`: the features and the target; `weight`: sample weights, if any
    - `name`, `make`: the name of the model, and what makes an unfitted one
    - `folds`: which rows are held out together; `n_folds`: into how many parts, if at random
    - `division`: further arguments of the model's ``fit``, such as groups
    - `notes`: what is said of the table
    - `asked`: what is asked again of new rows, as `Header.asked`
    """

    columns: list[str]
    X: pd.DataFrame
    target: Target
    weight: FloatArray | None
    name: str
    make: Callable[[], BaseEstimator]
    folds: Folds
    n_folds: int
    division: dict[str, Any]
    notes: list[str]
    asked: dict[str, Any]


def _read(
    table: Table, target: Target, choices: Choices, drop: Sequence[str], weights: str | None
) -> _Rows:
    """Return the rows to fit; raises CommandError for choices that do not suit them."""
    columns = feature_columns(table, target.column, drop, weights, target.event)
    check_choices(target, choices, table)
    choices = choices.with_views(columns)
    seen = choices.given.get("views")
    if seen is not None:
        columns = [each for each in columns if any(each in group for group in seen.values())]
    X, y = table.inputs(columns), target.values
    weight = None if weights is None else read_weights(table, weights)
    check_metric(choices.metric, y, target.task)
    name, make = choices.maker(target.task, target.levels)
    groups, beside = groups_held_out(
        table, columns, name, choices.groups, choices.slopes, choices.new
    )
    division = read_division(table, columns, choices.cv, groups, choices.order)
    n_folds, counts = choices.n_folds or FOLDS, np.ones(len(X)) if weight is None else weight
    with locate_cell_errors(table):
        folds = folds_by(X, y, target.task, n_folds, choices.seed, weight=counts, **division)
    asked = {
        "kinds": dict(table.kinds), "weights": weights, "groups": groups,
        "order": choices.order, "cv": None if isinstance(choices.cv, int) else choices.cv,
    }  # fmt: skip
    if target.event is not None:
        asked["event"] = asdict(target.event)
    return _Rows(
        columns=columns, X=X, target=target, weight=weight, name=name, make=make, folds=folds,
        n_folds=n_folds, division=fit_division(name, division, folds) | beside,
        notes=check_data(table, columns, target, later="order" in division), asked=asked,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A fitted estimator and its cross-validation.

    - `held_out`: cross-validated predictions, ``None`` if Ctrl-C ended them
    - `folds`: the rows that were held out together; `scoring`: weights of the rows in scores
    - `warning`: what new rows are predicted worse by; `seconds`: of all this
    - `stopped`: whether Ctrl-C ended it early
    """

    estimator: BaseEstimator
    held_out: HeldOut | None
    folds: Folds
    scoring: FloatArray
    warning: str
    seconds: float
    stopped: bool


def _learn(rows: _Rows, choices: Choices) -> _Fitted:
    """Fit the model, and hold rows out unless its fit does so itself."""
    watch = clock.Stopwatch()
    y, folds, weighted = rows.target.values, rows.folds, rows.weight is not None
    holds_out_itself = model_kind(rows.name).holds_out_itself
    # share of the progress bar: the time of a fit grows with the square of its rows
    works = [] if holds_out_itself else [(1.0 - 1.0 / rows.n_folds) ** 2] * rows.n_folds
    bar = fit_bar(f"fitting {len(rows.X)} rows", [1.0, *works])
    with _summarised_warnings(rows.name) as held_out_warnings, bar as end_fit:
        estimator = fit_model(
            rows.make(), rows.X, rows.target.learned, rows.weight, **rows.division
        )
        end_fit()
        stopped = _was_stopped(estimator)
        scoring = scoring_weights(rows.weight, choices.given.get("class_weight"), y)
        held_out = None
        if holds_out_itself:
            folds = replace(folds, fold=kernel_machine(estimator).held_out_fold_)
            ends = rows.target.ends
            held_out = held_out_by(estimator, y, rows.target.task, scoring, folds.parts, ends)
        elif not stopped:
            each = partial(WeightedModel, rows.make, weighted, end_fit)
            held_out, stopped = _cross_validate(each, rows.X, rows.target, folds, scoring)
    warning = next(iter(held_out_warnings), "")
    return _Fitted(estimator, held_out, folds, scoring, warning, watch.seconds, stopped)


def _importance(
    rows: _Rows, fitted: _Fitted, max_time: float | None, on_note: Callable[[str], None]
) -> tuple[tuple[dict[str, Any], ...], bool]:
    """Return the importance of each column, and whether Ctrl-C ended its measurement."""
    try:
        left = _left_of(max_time, fitted.seconds)
        with fit_bar(f"importance of {len(rows.columns)} columns"), clock.time_limit(left):
            return tuple(importance_of(fitted.estimator, on_note)), False
    except KeyboardInterrupt:
        return (), True


@contextmanager
def _summarised_warnings(name: str) -> Iterator[list[str]]:
    """Silence warnings that the summary repeats: those on columns and on cross-validated scores.

    Yields a list that collects the warnings that new rows will be predicted worse than the score.
    """
    from kernelweave.evidence import HeldOutWarning
    from kernelweave.tables import ColumnWarning

    held_out_warnings: list[str] = []
    kind = model_kind(name)
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if isinstance(message, HeldOutWarning):
                # other models see columns of numbers in the place of those that a remedy names
                held_out_warnings.append(text_of_warning(message, remedy=kind.reads_tables))
            else:
                before(message, category, *rest, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", HeldOutWarning)
        warnings.simplefilter("ignore", ColumnWarning)
        if kind.holds_out_itself:
            warnings.simplefilter("ignore", UnderfitWarning)
        yield held_out_warnings


def text_of_warning(warning: Any, *, remedy: bool = True) -> str:
    """Return what follows the score that is expected, of a `HeldOutWarning`.

    `remedy`: whether to say what to do, where the warning knows it.
    """
    if not (remedy and warning.remedy):
        return f". {warning.finding[:1].upper()}{warning.finding[1:]}"
    return f", but {warning.finding}. If you will predict such rows, {message_text(warning.remedy)}"


def expected_on_new_rows(estimator: object) -> tuple[dict[str, Any], ...]:
    """Return the score of each kind of new rows that the evidence kernel expects."""
    from kernelweave.evidence.findings import doubted

    machine = kernel_machine(estimator)
    worse = {line.kind.name for line in doubted(machine._new_rows)}
    rows = machine.held_out_.rename_axis("name").reset_index().to_dict("records")
    named = [{str(key): value for key, value in row.items()} for row in rows]
    for row in named:
        # of targets known by half: of the first row, and not always both
        for name in ("brier", "brier_one_curve", "calibration_p"):
            if name in row and np.isnan(row[name]):
                del row[name]
    return tuple({**row, "worse": row["name"] in worse} for row in named)


def _of_folds(
    held_out: HeldOut | None, folds: Folds, metric: str | None
) -> tuple[dict[str, Any], ...]:
    """Return the score of the groups or later rows that folds held out, if they are of these."""
    if held_out is None or not folds.name:
        return ()
    score, error = Metric(metric).score(held_out)
    parts = {"n_rows": len(held_out.truth), "n_groups": held_out.n_parts}
    return ({"name": folds.name, "score": score, "error": error, **parts},)


def importance_of(
    estimator: object, on_note: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """Return the importance of each column, largest first; empty where nothing was held out.

    `on_note`: called with a sentence where it cannot be told.
    """
    machine = kernel_machine(estimator)
    # a property that costs a tenth of a fit
    if not hasattr(type(machine), "importance_") or not (machine.held_out_fold_ >= 0).any():
        return []
    try:
        worth = machine.importance_
    except Exception as error:  # noqa: BLE001
        on_note(f"the importance of the columns is not known: {message_text(error)}")
        return []
    rows = [
        {"name": each.column, "value": float(each.importance), "error": float(each.error)}
        for each in worth
    ]
    return sorted(rows, key=lambda row: -row["value"])


def _left_of(max_time: float | None, seconds: float) -> float | None:
    """Return how long what follows a fit may take: the rest of its limit, or a second."""
    return None if max_time is None else max(max_time - seconds, clock.LATE_SECONDS)


def _was_stopped(estimator: BaseEstimator) -> bool:
    result = getattr(kernel_machine(estimator), "result_", None)
    return getattr(result, "status", None) is Status.INTERRUPTED


def _cross_validate(
    make: Callable[[], WeightedModel],
    X: pd.DataFrame,
    target: Target,
    folds: Folds,
    scoring: FloatArray,
) -> tuple[HeldOut | None, bool]:
    """Return cross-validated predictions, ``None`` if Ctrl-C ends them, and whether it did."""
    try:
        with warnings.catch_warnings():
            # the fit on all rows has already shown these warnings
            warnings.simplefilter("ignore")
            return cross_predict(make, X, target.values, target.task, folds, scoring), False
    except KeyboardInterrupt:
        return None, True


class WeightedModel:
    """A model whose ``fit(X, y, weight, groups, order)`` passes on what the estimator takes.

    `make`: returns an unfitted estimator; `weighted`: whether it gets weights; `ended`: called
    after a fit; `columns`: names of the columns of groups or order, passed instead of values.
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
        """Fit the model; groups and order are passed only to models that take them."""
        division: dict[str, object] = {"groups": groups, "order": order}
        if kernel_machine(self._model) is self._model:
            # an estimator that reads tables takes these columns by name
            division |= {k: self._columns[k] for k in self._columns if division[k] is not None}
        fitted = fit_model(self._model, X, y, weight if self._weighted else None, **division)
        if _was_stopped(fitted):
            raise KeyboardInterrupt
        self._ended()
        return fitted


def _fit_other_models(
    held_out: HeldOut,
    rows: _Rows,
    fitted: _Fitted,
    choices: Choices,
    on_note: Callable[[str], None],
) -> tuple[list[Row], bool]:
    """Return the scores of the other models, best first, and whether Ctrl-C ended them."""
    scored: list[Row] = []
    metric, refused = Metric(choices.metric), list[tuple[ComparedModel, Exception]]()
    stopped = False
    try:
        for each in cross_validate_models(
            other_models(seconds=choices.given.get("max_time")),
            rows.X,
            rows.target.values,
            held_out.task,
            weight=fitted.scoring,
            folds=fitted.folds,
            seed=choices.seed,
            on_failure=lambda *pair: refused.append(pair),
        ):
            try:
                scored.append(Row.of(each, held_out, metric))
            except ValueError as error:
                refused.append((each.model, error))
    except KeyboardInterrupt:
        stopped = True
    for sentence in skipped_models(refused):
        on_note(sentence)
    return sorted(scored, key=lambda row: -row.score), stopped
