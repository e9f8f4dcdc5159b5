"""Classes as targets: codes, folds that keep their shares, calibrated probabilities."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.classes import one_vs_rest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from .rows import Split
from .scores import accuracy_with_error

# A slope beyond these makes all rows alike or a step of the sigmoid: rounding would choose it.
_SLOPES = (1e-2, 1e2)
# The slope where no row was held out: decision values of ±1 are 0.98 sure of their class.
_PLAIN = 2.0
# of the rows held out: each is judged by a calibration on the other parts
_PARTS = 5
# rows of a class in a part that is drawn, at least, where there are so many
_FEW = 10


@dataclass(frozen=True)
class Calibration:
    """Class k gets the logit slope · f_k + offset_k.

    `offset` of shape (n_classes,).
    """

    slope: float
    offset: FloatArray

    @classmethod
    def of(cls, values: FloatArray, codes: NDArray[np.intp], weight: FloatArray) -> Calibration:
        """Minimise the log loss of held-out decision values.

        N rows make a label as sure as (N + 1)/(N + 2), after Platt, 1999: where all are told apart,
        the slope would grow without bounds, and the first row told wrong cost as much.

        `values` of shape (n, n_classes); `codes` of shape (n,); `weight` of shape (n,).
        """
        if not len(values):
            # nothing was held out: ±1 become 0.98 and 0.02
            return cls(_PLAIN, np.zeros(values.shape[1]))
        share = weight / weight.sum()
        n_rows, n_classes = values.shape
        hit = _smoothed_labels(codes, weight, n_classes)

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            slope, offset = np.exp(theta[0]), theta[1:]
            logits = slope * values + offset
            excess = share[:, None] * (softmax(logits, axis=1) - hit)
            value = -share @ np.sum(hit * log_softmax(logits, axis=1), axis=1)
            # a quadratic prior keeps offsets of rare classes finite
            value += 0.5 * offset @ offset / n_rows
            slopes = np.append(slope * np.sum(excess * values), excess.sum(0) + offset / n_rows)
            return float(value), slopes

        box = [tuple(np.log(_SLOPES)), *[(-5.0, 5.0)] * n_classes]
        first = np.append(np.log(2.0), np.zeros(n_classes))
        done = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=box)
        return cls(float(np.exp(done.x[0])), np.asarray(done.x[1:]))

    def logits(self, values: FloatArray) -> FloatArray:
        """Return the logits, shape (n, n_classes)."""
        return self.slope * values + self.offset


def _smoothed_labels(codes: NDArray[np.intp], weight: FloatArray, n_classes: int) -> FloatArray:
    """Return the probabilities that labels stand for, shape (n, n_classes)."""
    p_other = 1.0 / (weight.sum() + 2.0)
    out = np.full((len(codes), n_classes), p_other / (n_classes - 1))
    out[np.arange(len(codes)), codes] = 1.0 - p_other
    return out


def per_class(values: FloatArray) -> FloatArray:
    """Return a column for each class: of two, one output tells both."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def class_codes(targets: FloatArray) -> NDArray[np.intp]:
    """Return the class of each row, shape (n,), from targets of shape (n_outputs, n)."""
    return np.asarray(per_class(targets.T).argmax(axis=1))


def class_targets(codes: Index, n_classes: int, ranks: Index | None = None) -> FloatArray:
    """Return targets of classes, of which the greatest is that of a row's own class.

    They are ±1; or 1 − 2 |rankₖ − rank|/(n_classes − 1) of class k, where classes have an order.
    Shape (n_classes, n), or (1, n) of two classes.

    `codes` of shape (n,): the class of each row; `ranks` of shape (n_classes,): 0 for the lowest.
    """
    if n_classes == 2 or ranks is None:
        return one_vs_rest(codes, n_classes)
    return np.asarray(1.0 - 2.0 * np.abs(ranks[:, None] - ranks[codes]) / (n_classes - 1))


def random_folds(
    n_rows: int,
    n_folds: int,
    random_state: np.random.RandomState,
    codes: Index | None = None,
    groups: Index | None = None,
) -> list[Split]:
    """Return folds at random that keep groups whole and the shares of classes where they can.

    `codes` of shape (n_rows,): the class of each row; `groups` of shape (n_rows,).
    """
    by_class = codes is not None and np.bincount(codes).max() >= n_folds
    kinds: tuple[Any, Any] = (KFold, StratifiedKFold)
    if groups is not None:
        kinds = GroupKFold, StratifiedGroupKFold
    folds = kinds[int(by_class)](n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # a class of one or two rows is absent from a fold, which then gives it least
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = folds.split(np.zeros((n_rows, 1)), codes, groups)
        return [(training, held_out) for training, held_out in splits if len(held_out)]


def folds_of_copies(
    duplicate_ids: Index,
    n_folds: int,
    random_state: np.random.RandomState,
    codes: Index | None = None,
) -> list[Split]:
    """Return folds at random; copies stay together where they are groups enough.

    Copies may be of several classes. Equal rows of one class were merged before, so the copies of a
    held-out row that remained in training would all contradict it.

    `duplicate_ids` of shape (n_rows,): the group of copies of each row; all distinct where rows
    recur.
    """
    n_rows = len(duplicate_ids)
    n_folds = max(2, min(n_folds, n_rows))
    if n_folds <= duplicate_ids.max() + 1 < n_rows:
        whole = random_folds(n_rows, n_folds, random_state, codes, duplicate_ids)
        if len(whole) == n_folds:
            return whole
    return random_folds(n_rows, n_folds, random_state, codes)


def judge_classes(
    held_out: FloatArray, targets: FloatArray, mass: FloatArray
) -> tuple[Calibration, float, float]:
    """Return what held-out rows say: the calibration, the accuracy and its standard error.

    No row is judged by a calibration that it was part of: on noise, offsets that have seen the rows
    prefer the class that is more frequent among them.

    `held_out` of shape (n, n_outputs): decision values; NaN where a row was not held out; `targets`
    of shape (n_outputs, n): −1 and +1; `mass` of shape (n,): weights.
    """
    seen, codes = ~np.isnan(held_out[:, 0]), class_codes(targets)
    values = per_class(held_out[seen])
    calibration = Calibration.of(values, codes[seen], mass[seen])
    if not seen.any():
        return calibration, np.nan, np.nan
    right = crossed_logits(held_out, targets, mass)[seen].argmax(axis=1) == codes[seen]
    return calibration, *accuracy_with_error(right, mass[seen])


def crossed_logits(held_out: FloatArray, targets: FloatArray, mass: FloatArray) -> FloatArray:
    """Return held-out logits of each class, calibrated by other parts of the held-out rows.

    The arguments are those of `judge_classes`. Shape (n, n_classes): NaN where a row was not held
    out.
    """
    seen, codes = np.flatnonzero(~np.isnan(held_out[:, 0])), class_codes(targets)
    values = per_class(held_out)
    out, part = np.full(values.shape, np.nan), np.arange(len(seen)) % _PARTS
    for k in np.unique(part):
        rows, others = seen[part == k], seen[part != k]
        calibration = Calibration.of(values[others], codes[others], mass[others])
        out[rows] = calibration.logits(values[rows])
    return out


def stratified(classes: Index, size: int) -> Index:
    """Return rows, of each class its share and at least a few, the first of them."""
    counts = np.bincount(classes)
    sizes = np.maximum(np.minimum(counts, _FEW), counts * size // len(classes))
    chosen = [np.flatnonzero(classes == k)[: sizes[k]] for k in range(len(counts))]
    return np.sort(np.concatenate(chosen))
