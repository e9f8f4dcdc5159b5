"""How a model does on rows with known targets: scores, and what its pictures need."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.tables import Table, choose_target, split_by_target
from numpy.typing import NDArray

from ..errors import CommandError
from ..models import Model
from ..models.model import for_predicted_class
from ..scoring.class_sets import LEVEL, SetsByClass, membership, sets_by_class, too_few
from ..scoring.held_out import HeldOut, decision_of_classes
from ..scoring.metrics import also_scored
from ..scoring.scores import Coverage

_WORST = 3  # rows that are shown
# Levels of the intervals and of the sets of classes whose coverage is reported: sets hold the most
# probable class, and so at least as many labels as are right.
LEVELS = (0.5, 0.8, 0.9, 0.95)
SET_LEVELS = (0.9, 0.95)


@dataclass(frozen=True, eq=False)
class HeldOutEvaluation:
    """Predictions of a model on rows with known targets, each of which counts the same.

    - `held_out`: the predictions
    - `rows`: which rows these are, for people
    - `X`: the rows as the model takes them, where they are at hand
    - `coverage`: what share of the targets lies in the intervals, or sets, for a confidence
    - `by_class`: what share of each class lies in the sets; ``None`` where there are none
    """

    held_out: HeldOut
    rows: str
    X: Any = None
    coverage: tuple[Coverage, ...] = ()
    by_class: SetsByClass | None = None

    @property
    def y(self) -> Labels:
        """The true targets."""
        return self.held_out.truth

    @property
    def classes(self) -> tuple[object, ...] | None:
        """Labels of a classification."""
        return tuple(self.held_out.classes) if self.held_out.task == "classification" else None

    def scores(self) -> dict[str, float]:
        """Return the usual scores by name."""
        usual = {self.held_out.measure: self.held_out.score.value}
        return usual | also_scored(self.held_out)


def of_held_out(held_out: HeldOut, *, has_sets: bool) -> HeldOutEvaluation:
    """Return the evaluation of a fit's own held-out predictions, without the rows themselves."""
    same = replace(held_out, weight=np.ones(len(held_out.truth)), groups=None)
    by_class = sets_by_class(same) if has_sets else None
    return HeldOutEvaluation(same, str(held_out), by_class=by_class)


def evaluate(model: Model, table: Table, column: str | None) -> HeldOutEvaluation:
    """Predict a table that holds the target too, with the coverage of intervals or sets of classes.

    Rows without a target are left out; `column`: the target's name, by default the one of the fit.
    Where some targets are known by half nobody knows whether an interval holds them, so there is no
    coverage. Raises CommandError if the table lacks a column, holds classes the model does not
    know, or targets that tell no score.
    """
    table, _ = split_by_target(table, choose_target(table, column or model.header.target))
    target = model.targets(table, column)
    classes, y = model.header.classes, target.values
    if classes is not None:
        strange = sorted(set(np.unique(y).tolist()) - set(classes), key=str)
        if strange:
            raise CommandError(
                f"{table.source}: the model has no class {strange[0]!r}; its classes are "
                f"{', '.join(map(repr, classes))}"
            )
    elif target.ends is None and np.ptp(y) == 0.0:
        raise CommandError(
            f"{table.source}: the target {target.column!r} is {y[0]:g} in every row, "
            f"and R² needs at least two distinct values"
        )
    predicted, rows, estimator = model.predict(table), model.inputs(table), model.estimator
    proba = decision = None
    inside: dict[float, NDArray[np.bool_]] = {}
    by_class: SetsByClass | None = None
    # nothing measures intervals or sets where time was up before the first fold
    measured = model.held_out is not None
    all_known = target.ends is None or bool((target.ends[0] == target.ends[1]).all())
    if classes is None and measured and all_known and hasattr(estimator, "predict_interval"):
        for level in LEVELS:
            low, high = model.predict_interval(table, level)
            inside[level] = (low <= y) & (y <= high)
    elif classes is not None and hasattr(estimator, "predict_proba"):
        proba = model.predict_proba(table)
        if model.held_out is not None and hasattr(estimator, "predict_set"):
            for level in SET_LEVELS:
                pairs = zip(y.tolist(), model.predict_set(table, level), strict=True)
                inside[level] = np.array([label in held for label, held in pairs])
            by_class = _by_class(model, model.held_out, table, y)
    elif classes is not None and hasattr(estimator, "decision_function"):
        decision = decision_of_classes(estimator, rows)
    n = len(y)
    held_out = HeldOut(
        np.arange(n), np.zeros(n, np.intp), y, predicted, np.ones(n), model.header.task,
        proba, decision, None if classes is None else np.array(classes),
        ends=None if target.ends is None else target.ends.T,
    )  # fmt: skip
    if target.ends is not None and math.isnan(held_out.score.value):
        raise CommandError(
            f"{table.source}: no two rows of the target {target.column!r} are in a known order, so "
            "there is no concordance"
        )
    coverage = tuple(Coverage.of(at, each, predicted, rows) for at, each in inside.items())
    told = f"the {n} rows of {Path(table.source).name}"
    return HeldOutEvaluation(held_out, told, rows, coverage, by_class)


def _by_class(model: Model, own: HeldOut, table: Table, y: Labels) -> SetsByClass:
    """Return the coverage of each class of a table; `own`: the rows held out of the fit."""
    labels = np.array(model.header.classes)
    with warnings.catch_warnings():
        # the page says of which classes the rows are too few
        warnings.filterwarnings("ignore", "every set holds the classes")
        sets, own_sets = (
            membership(model.predict_set(table, LEVEL, by_class=each), labels)
            for each in (False, True)
        )
    return SetsByClass.of(LEVEL, y, labels, sets, own_sets, too_few(own, LEVEL))


def learned_from(model: Model, tested: HeldOutEvaluation) -> bool:
    """Whether an evaluation has as many rows and the same targets as the fit of the model."""
    if len(tested.y) != model.header.n_samples:
        return False
    held_out = model.held_out
    return held_out is None or bool(
        np.array_equal(held_out.known, tested.held_out.known[held_out.rows])
    )


class WorstRow(NamedTuple):
    """A row that is predicted badly, counted from 1, and which columns change that most."""

    number: int
    truth: str
    predicted: str
    reasons: list[str]


def worst_rows(model: Model, tested: HeldOutEvaluation) -> list[WorstRow]:
    """Return the rows that are predicted worst, each with its strongest reasons.

    Largest residuals first, or least probable classes; none where the model cannot explain itself
    or every class is right. What is known by half is wrong by how far it is beyond its limit.
    """
    if not hasattr(model.machine, "explain_held_out"):
        return []
    y, predicted, proba = tested.y, tested.held_out.predicted, tested.held_out.proba
    if tested.classes is None:
        wrong = _beyond(tested.held_out)
    else:
        at = np.searchsorted(tested.held_out.classes, y)
        true_proba = np.zeros(len(y)) if proba is None else proba[np.arange(len(y)), at]
        wrong = np.where(y == predicted, 0.0, 1.0 - true_proba)
    worst = np.argsort(-wrong, kind="stable")[:_WORST]
    worst = worst[wrong[worst] > 0.0]
    if not len(worst):
        return []
    places = tested.held_out.rows[worst]
    if tested.X is None:
        values = model.machine.explain_held_out(places, scale="response")
    else:
        values = model.estimator.explain(tested.X.iloc[worst], scale="response")
    reasons = for_predicted_class(values, predicted[worst], model.header.classes).reasons()
    return [
        WorstRow(
            int(place) + 1, _truth_text(tested.held_out, row), target_text(predicted[row]), why
        )
        for place, row, why in zip(places, worst, reasons, strict=True)
    ]


def _beyond(held_out: HeldOut) -> FloatArray:
    """Return how far predictions are from the targets, or from what is known of them."""
    predicted = held_out.predicted.astype(np.float64)
    if held_out.ends is None:
        return np.asarray(np.abs(held_out.truth.astype(np.float64) - predicted))
    low, high = held_out.ends.T
    return np.asarray(np.maximum(np.maximum(low - predicted, predicted - high), 0.0))


def _truth_text(held_out: HeldOut, row: int) -> str:
    """Return what is known of a target as text, such as 36, < 0.5, > 36 or 3 to 5."""
    if held_out.ends is None:
        return target_text(held_out.truth[row])
    low, high = held_out.ends[row]
    if low == high:
        return target_text(low)
    if np.isinf(low):
        return f"< {target_text(high)}"
    return (
        f"> {target_text(low)}" if np.isinf(high) else f"{target_text(low)} to {target_text(high)}"
    )


def target_text(value: object) -> str:
    """Return a target as text, numbers with six digits."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
