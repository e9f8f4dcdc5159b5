"""Fit a model to a table, cross-validate it and compare it with other models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.evidence.new_rows import ALIKE
from kernelweave.kernels_core import Status, UnderfitWarning, clock
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.tables import Event, Table, Target
from kernelweave.tables.data_checks import check_data
from kernelweave.tables.errors import did_you_mean

from .console import message_text
from .errors import CommandError, locate_cell_errors
from .groupings import groups_held_out
from .machines import kernel_machine
from .model_catalog import fit_model, make_model, model_kind, model_of_algorithm, model_title
from .models import Model
from .models.header import Comparison
from .progress import fit_bar
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
from .views import read_views

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


NOT_COMPARED = "the other models of the comparison learn from known targets only and are left out"
# each fold costs one more fit; three leave two thirds of the rows for training
FOLDS = 3


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
    notes = check_data(table, columns, target, later="order" in division)
    for sentence in notes:
        on_note(sentence)
    watch = clock.Stopwatch()
    # share of the progress bar: the time of a fit grows with the square of its rows
    holds_out_itself = model_kind(name).holds_out_itself
    works = [] if holds_out_itself else [(1.0 - 1.0 / n_folds) ** 2] * n_folds
    bar = fit_bar(f"fitting {len(X)} rows", [1.0, *works])
    with locate_cell_errors(table), _summarised_warnings(name) as held_out_warnings, bar as end_fit:
        estimator = fit_model(
            make(), X, target.learned, weight, **fit_division(name, division, folds) | beside
        )
        end_fit()
        stopped = _was_stopped(estimator)
        scoring = scoring_weights(weight, choices.given.get("class_weight"), y)
        held_out = None
        if holds_out_itself:
            folds = replace(folds, fold=kernel_machine(estimator).held_out_fold_)
            held_out = held_out_by(estimator, y, target.task, scoring, folds.parts, target.ends)
        elif not stopped:
            each = partial(WeightedModel, make, weight is not None, end_fit)
            held_out, stopped = _cross_validate(each, X, target, folds, scoring)
    seconds = watch.seconds
    model = Model.of(
        estimator, columns=columns, target=target, table=table, name=name,
        held_out=held_out, notes=notes, on_note=on_note,
    )  # fmt: skip
    asked = {
        "kinds": dict(table.kinds), "weights": weights, "groups": groups,
        "order": choices.order, "cv": None if isinstance(choices.cv, int) else choices.cv,
    }  # fmt: skip
    if target.event is not None:
        asked["event"] = asdict(target.event)
    model = replace(model, header=replace(model.header, metric=choices.metric, asked=asked))
    on_fitted(model)
    rows: list[Row] = []
    if comparing and target.ends is not None:
        on_note(NOT_COMPARED)
    elif comparing and held_out is not None and not stopped:
        rows, stopped = _fit_other_models(held_out, X, y, folds, scoring, choices, on_note)
    comparison = Comparison(ours=model_title(name), rows=[row.as_json() for row in rows])
    importance: tuple[dict[str, Any], ...] = ()
    try:
        left = _left_of(choices.given.get("max_time"), seconds)
        with fit_bar(f"importance of {len(columns)} columns"), clock.time_limit(left):
            importance = tuple(importance_of(estimator, on_note))
    except KeyboardInterrupt:
        stopped = True
    header = replace(
        model.header,
        comparison=comparison,
        importance=importance,
        new_rows=expected_on_new_rows(estimator)
        if holds_out_itself
        else _of_folds(held_out, folds, choices.metric),
        warning=next(iter(held_out_warnings), ""),
    )
    return FitOutcome(replace(model, header=header), rows, seconds, stopped)


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
    X: pd.DataFrame,
    y: Labels,
    folds: Folds,
    scoring: FloatArray,
    choices: Choices,
    on_note: Callable[[str], None],
) -> tuple[list[Row], bool]:
    """Return the scores of the other models, best first, and whether Ctrl-C ended them."""
    rows: list[Row] = []
    metric, refused = Metric(choices.metric), list[tuple[ComparedModel, Exception]]()
    stopped = False
    try:
        for each in cross_validate_models(
            other_models(seconds=choices.given.get("max_time")),
            X,
            y,
            held_out.task,
            weight=scoring,
            folds=folds,
            seed=choices.seed,
            on_failure=lambda *pair: refused.append(pair),
        ):
            try:
                rows.append(Row.of(each, held_out, metric))
            except ValueError as error:
                refused.append((each.model, error))
    except KeyboardInterrupt:
        stopped = True
    for sentence in skipped_models(refused):
        on_note(sentence)
    return sorted(rows, key=lambda row: -row.score), stopped


def read_division(
    table: Table,
    columns: Sequence[str],
    cv: int | str | None,
    groups: str | None,
    order: str | None,
) -> dict[str, Any]:
    """Return groups or order of the rows as `fit` takes them, empty for folds at random.

    - `columns`: the features; a feature is returned by name, any other column by its values
    - `cv`: a number of folds, ``"group"``, ``"time"`` (of ``order``, or of the lines of the file)
    - `groups`, `order`: columns of the table; with both, later rows are held out as they come, of
      known groups and of new ones

    Raises CommandError if there is no such column, or two of them contradict each other.
    """
    if isinstance(cv, int) and cv < 2:
        raise CommandError(f"--cv must be at least 2, group or time, got {cv}")
    if isinstance(cv, int) and cv > len(table.frame):
        raise CommandError(f"--cv must be at most the number of rows, {len(table.frame)}, got {cv}")
    if cv == "group" and groups is None:
        raise CommandError("--cv group needs --groups COLUMN, the column that names the groups")
    if cv == "group" and order is not None:
        raise CommandError(
            "--cv group holds out whole groups, and --order later rows of all: leave out --cv, and "
            "the table of scores has both, or leave out --order"
        )
    division: dict[str, Any] = {"order": np.arange(len(table.frame))} if cv == "time" else {}
    for option, column in (("groups", groups), ("order", order)):
        if column is None:
            continue
        if column not in table.columns:
            if option == "groups" and column == ALIKE:
                division[option] = column
                continue
            hint = did_you_mean(column, table.columns, what="columns")
            raise CommandError(f"--{option}: {table.source} has no column {column!r}; {hint}")
        values = table.inputs([column])[column].to_numpy()
        if option == "groups" and len({*values.tolist()}) < 2:
            raise CommandError(
                f"--groups {column!r} is {values[0]!r} in every row: at least two groups are needed"
            )
        division[option] = column if column in columns else values
    return division


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


def fit_division(name: str, division: dict[str, Any], folds: Folds) -> dict[str, Any]:
    """Return groups and order as the fit of a model takes them: evidence kernels take columns."""
    return (
        division
        if model_kind(name).reads_tables
        else {"groups": folds.groups, "order": folds.order}
    )


def read_weights(table: Table, column: str) -> FloatArray:
    """Return the sample weights; CommandError if one is missing or negative, or all are zero."""
    values = table.numbers(column)
    if values.min() < 0 or not values.any():
        least = f"{values.min():g} in {table.where(int(values.argmin()))}"
        what = least if values.any() else "zeros only"
        raise CommandError(f"--weights {column!r}: weights must be >= 0, not all 0, got {what}")
    return values


def feature_columns(
    table: Table,
    target: str,
    drop: Sequence[str] = (),
    weights: str | None = None,
    event: Event | None = None,
) -> list[str]:
    """Return the names of the features in the order of the table.

    Neither the target nor the column of an event is one. Raises CommandError if a column that is
    dropped, or of weights, does not exist or is one of these, if the target is told its kind, or no
    feature is left.
    """
    if target in table.kinds:
        raise CommandError(f"{target!r} is the target: use --task to say what it is")
    if event is not None and event.column in table.kinds:
        raise CommandError(f"{event.column!r} is the event: it is never a feature")
    left_out = [("--drop", name) for name in drop]
    left_out += [("--weights", weights)] if weights is not None else []
    for option, name in left_out:
        if name == target:
            raise CommandError(f"{option} {name!r} is the target")
        if event is not None and name == event.column:
            raise CommandError(f"{option} {name!r} is the event: it is never a feature")
        if name not in table.columns:
            hint = did_you_mean(name, table.columns, what="columns")
            raise CommandError(f"{option}: {table.source} has no column {name!r}; {hint}")
    unused = {target, *(name for _, name in left_out)}
    unused |= set() if event is None else {event.column}
    columns = [name for name in table.columns if name not in unused]
    if not columns:
        rest = f" without those of {' and '.join(dict(left_out))}" if left_out else ""
        raise CommandError(f"{table.source} has no column but the target {target!r}{rest}")
    return columns
