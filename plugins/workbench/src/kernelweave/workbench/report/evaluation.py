"""How a model does on rows with known targets: scores, and what its pictures need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Labels
from kernelweave.tables import Table, choose_target, split_by_target

from ..errors import CommandError
from ..models import Model
from ..models.model import told_of
from ..scoring import Coverage, HeldOut, Score, decision_of_classes

# Samples of a heat map: more are finer than its pixels.
_MOST_DRAWN = 300
# Intervals whose coverage is told.
LEVELS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True, eq=False)
class HeldOutEvaluation:
    """Predictions of a model on rows with known targets.

    Attributes
    ----------
    y, predicted : ndarray of shape (n,)
        Known, and by the model.
    rows : str
        Which rows these are, for people.
    classes : tuple or None
        Labels of a classification.
    proba : ndarray of shape (n, n_classes) or None
        Probabilities, where the model has them.
    decision : ndarray of shape (n, n_classes) or None
        Decision values, where it has none.
    X : DataFrame or None
        The rows as the model takes them, where they are at hand.
    places : ndarray of shape (n,) or None
        Which rows of the training table these are, where the fit held them out.
    coverage : tuple of Coverage
        Of prediction intervals: what share of the targets lies in those for a confidence.
    """

    y: Labels
    predicted: Labels
    rows: str
    classes: tuple[object, ...] | None = None
    proba: npt.NDArray[np.float64] | None = None
    X: Any = None
    coverage: tuple[Coverage, ...] = ()
    decision: npt.NDArray[np.float64] | None = None
    places: npt.NDArray[np.intp] | None = None

    def as_held_out(self) -> HeldOut:
        """Return the rows as metrics take them; each counts the same."""
        n = len(self.y)
        return HeldOut(
            np.arange(n), np.zeros(n, np.intp), self.y, self.predicted, np.ones(n),
            "regression" if self.classes is None else "classification",
            self.proba, self.decision, None if self.classes is None else np.array(self.classes),
        )  # fmt: skip

    @property
    def score(self) -> Score:
        """R² or accuracy with its standard error; each row counts the same."""
        return self.as_held_out().score

    def scores(self) -> dict[str, float]:
        """Return the usual scores by name."""
        from sklearn import metrics

        if self.classes is None:
            return {
                "R²": float(metrics.r2_score(self.y, self.predicted)),
                "root mean squared error": float(
                    metrics.root_mean_squared_error(self.y, self.predicted)
                ),
                "mean absolute error": float(metrics.mean_absolute_error(self.y, self.predicted)),
            }
        balanced = metrics.recall_score(
            self.y, self.predicted, average="macro", labels=np.unique(self.y), zero_division=0.0
        )
        found = {
            "accuracy": float(metrics.accuracy_score(self.y, self.predicted)),
            "balanced accuracy": float(balanced),
            "macro F1": float(metrics.f1_score(self.y, self.predicted, average="macro")),
        }
        if self.proba is not None:
            loss = metrics.log_loss(self.y, self.proba, labels=list(self.classes))
            found["log loss (lower is better)"] = float(loss)
        return found

    def drawn(self) -> npt.NDArray[np.intp]:
        """Return the samples of a heat map: all, or an even choice along the order of y."""
        order = np.argsort(self.y, kind="stable")
        if len(order) <= _MOST_DRAWN:
            return order
        return order[np.linspace(0, len(order) - 1, _MOST_DRAWN).astype(np.intp)]


class WorstRow(NamedTuple):
    """A row that is predicted badly.

    Attributes
    ----------
    number : int
        Which row of the table, counted from 1.
    truth, predicted : str
        What is known, and what the model says.
    reasons : list of str
        Columns that change the prediction, or the probability of its class, most.
    """

    number: int
    truth: str
    predicted: str
    reasons: list[str]


def of_held_out(held_out: HeldOut, classes: tuple[object, ...] | None) -> HeldOutEvaluation:
    """Return the evaluation of a fit's own held-out predictions.

    `held_out`: saved with the model; `classes`: labels of a classification. Returns: without the
    rows themselves.
    """
    return HeldOutEvaluation(
        held_out.truth, held_out.predicted, str(held_out), classes, held_out.proba,
        decision=held_out.decision, places=held_out.rows,
    )  # fmt: skip


def evaluate(model: Model, table: Table, column: str | None) -> HeldOutEvaluation:
    """Predict a table that holds the target too.

    `model`: fitted; `table`: rows, mostly others than it was fitted on; those without a target are
    left out; `column`: the target's name; the one the model was fitted to without it. Returns: with
    the measured coverage of intervals, where the model has them. Raises CommandError if the table
    lacks a column, or holds classes the model does not know.
    """
    table, _ = split_by_target(table, choose_target(table, column or model.header.target))
    target = model.targets(table, column)
    known = model.header.classes
    if known is not None:
        strange = sorted(set(np.unique(target.values).tolist()) - set(known), key=str)
        if strange:
            raise CommandError(
                f"{table.source}: the model has no class {strange[0]!r}; its classes are "
                f"{', '.join(map(repr, known))}"
            )
    elif np.ptp(target.values) == 0.0:
        raise CommandError(
            f"{table.source}: the target {target.column!r} is {target.values[0]:g} in every row, "
            f"and R² needs at least two distinct values"
        )
    predicted = model.predict(table)
    estimator, rows = model.estimator, model.inputs(table)
    proba = decision = None
    coverage: tuple[Coverage, ...] = ()
    if known is None:
        if hasattr(estimator, "predict_interval"):
            ends = ((level, *model.predict_interval(table, level)) for level in LEVELS)
            coverage = tuple(
                Coverage.of(
                    level, (low <= target.values) & (target.values <= high), predicted, rows
                )
                for level, low, high in ends
            )
    elif hasattr(estimator, "predict_proba"):
        proba = model.predict_proba(table)
    elif hasattr(estimator, "decision_function"):
        decision = decision_of_classes(estimator, rows)
    where = f"the {len(predicted)} rows of {Path(table.source).name}"
    return HeldOutEvaluation(
        target.values, predicted, where, known, proba, rows, coverage, decision
    )


def learned_from(model: Model, found: HeldOutEvaluation) -> bool:
    """Whether an evaluation is of the rows that the model was fitted on.

    `model`: fitted; `found`: of some table. Returns: by the number of rows and, where the model
    knows them, the targets.
    """
    if len(found.y) != model.header.n_samples:
        return False
    known = model.held_out
    return known is None or bool(np.array_equal(known.truth, found.y[known.rows]))


def worst_rows(model: Model, found: HeldOutEvaluation, n_rows: int = 3) -> list[WorstRow]:
    """Return the rows that are predicted worst, each with its strongest reasons.

    `model`: fitted; `found`: of rows at hand, or of those that its fit held out; `n_rows`: how
    many. Returns: largest residuals first, or least probable classes; none where the model cannot
    explain itself or every class is right.
    """
    if not hasattr(model.machine, "explain_held_out") or (found.X is None and found.places is None):
        return []
    n = len(found.y)
    if found.classes is None:
        wrong = np.abs(found.y.astype(np.float64) - found.predicted.astype(np.float64))
    else:
        classes = np.array(found.classes)
        proba = np.zeros((n, len(classes))) if found.proba is None else found.proba
        own = proba[np.arange(n), np.searchsorted(classes, found.y)]
        wrong = np.where(found.y == found.predicted, 0.0, 1.0 - own)
    worst = np.argsort(-wrong, kind="stable")[:n_rows]
    worst = worst[wrong[worst] > 0.0]
    if not len(worst):
        return []
    places = worst if found.places is None else found.places[worst]
    if found.X is None:
        values = model.machine.explain_held_out(places, scale="response")
    else:
        values = model.estimator.explain(found.X.iloc[worst], scale="response")
    reasons = told_of(values, found.predicted[worst], found.classes).reasons()
    return [
        WorstRow(int(place) + 1, said(found.y[row]), said(found.predicted[row]), why)
        for place, row, why in zip(places, worst, reasons, strict=True)
    ]


def said(value: object) -> str:
    """Return a target for people."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
