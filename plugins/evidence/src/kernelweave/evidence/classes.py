"""Classes as ±1 targets: their codes, folds that keep their shares, a column for each."""

from __future__ import annotations

import warnings

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from .calibration import Calibration
from .folds import Split
from .scores import accuracy_with_error

# of the rows held out: each is judged by a calibration on the other parts
_PARTS = 5


def per_class(values: FloatArray) -> FloatArray:
    """Return a column for each class: of two, one output tells both."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def class_codes(targets: FloatArray) -> NDArray[np.intp]:
    """Return the class of each row, shape (n,), from ±1 targets of shape (n_outputs, n)."""
    return np.asarray(per_class(targets.T).argmax(axis=1))


def class_folds(
    codes: NDArray[np.intp],
    n_folds: int,
    random_state: np.random.RandomState,
    twins: NDArray[np.intp] | None = None,
) -> list[Split]:
    """Return folds that keep the shares of the classes where their rows suffice.

    Twins, rows that are equal but for their class, stay together: equal rows of one class count
    as one, so that a row held out would find in training only those that contradict it. Rows that
    recur, which no one merged, have no twins.
    """
    n_folds = max(2, min(n_folds, len(codes)))
    if twins is not None and n_folds <= twins.max() + 1 < len(codes):
        whole = _whole_folds(codes, n_folds, random_state, twins)
        if all(len(held_out) for _, held_out in whole):
            return whole
    if np.bincount(codes).max() < n_folds:
        return list(KFold(n_folds, shuffle=True, random_state=random_state).split(codes))
    with warnings.catch_warnings():
        # a class of one or two rows is absent from a fold, which then gives it least
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        return list(folds.split(codes, codes))


def _whole_folds(
    codes: NDArray[np.intp],
    n_folds: int,
    random_state: np.random.RandomState,
    twins: NDArray[np.intp],
) -> list[Split]:
    if np.bincount(codes).max() < n_folds:
        folds = GroupKFold(n_folds, shuffle=True, random_state=random_state)
        return list(folds.split(codes, groups=twins))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
        return list(folds.split(codes, codes, twins))


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
        own, others = seen[part == k], seen[part != k]
        calibration = Calibration.of(values[others], codes[others], mass[others])
        out[own] = calibration.logits(values[own])
    return out
