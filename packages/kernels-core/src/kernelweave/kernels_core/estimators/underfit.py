"""The warning of a fit that says next to nothing of the rows it learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import Rows
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import d2_pinball_score
from sklearn.utils import _safe_indexing, indexable

from ..arrays import FloatArray, Index
from ..exceptions import UnderfitWarning, warn
from ..grams.precomputed import PrecomputedGrams
from ..result import Status

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Judged:
    """Which rows are judged: `where`, the least R² that they may have, and what less means."""

    where: str
    least: float
    meaning: str


LEARNED = Judged(
    "the rows that were learned from",
    0.1,
    "either the columns say next to nothing about the target, or the settings regularise too much",
)
HELD_OUT = Judged(
    "rows held out",
    0.0,
    "either the columns say nothing about the target, or there are too few rows to learn it from",
)
# rows that are looked at: enough to tell, and few beside what a fit costs
_ROWS = 1000
# the variance of a constant of size one, as it is rounded
_CONSTANT = 1e-28


def warn_if_underfit(
    model: BaseEstimator, X: Rows, truth: NDArray[Any], weight: FloatArray
) -> None:
    """Warn where a fit that nobody stopped explains next to nothing of its training rows.

    - `X`: the training rows as ``predict`` takes them, or a `PrecomputedGrams` of them
    - `truth` of shape (n_samples,) or (n_samples, n_outputs): targets, or places in ``classes_``
    - `weight` of shape (n_samples,): sample weights, those of the classes included; of numbers also
      of shape (n_samples, n_outputs), 0 where missing
    """
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    if any(result.status is Status.INTERRUPTED for result in results):
        return
    # evenly spaced among those of positive weight
    kept = np.flatnonzero((np.reshape(weight, (len(weight), -1)) > 0).any(axis=1))
    rows = kept[np.linspace(0, len(kept) - 1, min(_ROWS, len(kept))).astype(np.intp)]
    predicted, truth, weight = model.predict(_some(X, rows)), truth[rows], weight[rows]
    if is_classifier(model):
        finding = underfit_of_classes(truth, predicted == model.classes_[truth], weight, LEARNED)
    elif hasattr(model, "quantile"):
        finding = underfit_of_quantiles(truth, predicted, weight, model.quantile)
    else:
        finding = underfit_of_numbers(truth, predicted, weight, LEARNED)
    if finding is not None:
        warn(finding)


def _some(X: Rows, rows: Index) -> Any:
    if isinstance(X, PrecomputedGrams):
        return X[rows, np.arange(X.shape[1])]
    if hasattr(X, "column_names") and hasattr(X, "take"):
        # an Arrow table, of which scikit-learn 1.6 cannot take rows
        return X.take(rows)
    return _safe_indexing(indexable(X)[0], rows)


def underfit_of_numbers(
    y: FloatArray, predicted: FloatArray, weight: FloatArray, judged: Judged
) -> UnderfitWarning | None:
    """Return the warning that R² is too low in every output that varies, if it is."""
    columns = (len(weight), -1)
    y, predicted = np.reshape(y, columns), np.reshape(np.asarray(predicted), columns)
    mass = np.broadcast_to(np.reshape(weight, columns), y.shape)
    # a square may overflow where the target does not
    unit = np.abs(y).max(axis=0)
    with np.errstate(all="ignore"):
        y, predicted, share = y / unit, predicted / unit, mass / mass.sum(axis=0)
        total = (share * (y - (share * y).sum(axis=0)) ** 2).sum(axis=0)
        scores = 1.0 - (share * (y - predicted) ** 2).sum(axis=0) / total
    # of what does not vary a rounded nothing is left
    scores = scores[total > _CONSTANT]
    r2 = float(scores.max(initial=-np.inf))
    return _finding(f"R² is {r2:z.3f}", judged) if scores.size and r2 < judged.least else None


def underfit_of_quantiles(
    y: FloatArray, predicted: FloatArray, weight: FloatArray, quantile: float
) -> UnderfitWarning | None:
    """Return the warning that D² of the pinball loss is too low, if it is; R² says nothing here."""
    if np.ptp(y) == 0.0:
        return None
    d2 = float(d2_pinball_score(y, predicted, sample_weight=weight, alpha=quantile))
    return _finding(f"D² of the pinball loss is {d2:z.3f}", LEARNED) if d2 < LEARNED.least else None


def underfit_of_classes(
    codes: Index, right: NDArray[np.bool_], weight: FloatArray, judged: Judged
) -> UnderfitWarning | None:
    """Return the warning that fewer labels are right than the most frequent class has, if so."""
    share = weight / weight.sum()
    most, accuracy = float(np.bincount(codes, weights=share).max()), float(share[right].sum())
    # sums of weights are rounded
    if accuracy >= most - 1e-9:
        return None
    named = f"accuracy is {accuracy:.3f}, less than the {most:.3f} of the most frequent class,"
    return _finding(named, judged)


def _finding(finding: str, judged: Judged) -> UnderfitWarning:
    return UnderfitWarning(f"{finding} on {judged.where}: {judged.meaning}")
