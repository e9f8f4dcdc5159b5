"""How often predictions are in the order of targets that are known by half."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from ..terms import blocks


def pairs_lost(
    ends: FloatArray, predicted: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return for each row the weight of pairs in the wrong order, and of all that have an order.

    Two targets have one where the upper end of the first is at most the lower end of the second,
    and not both are known and equal: a time that was observed is before one that had not ended
    then. Equal predictions are half wrong. One less the ratio of the sums is the concordance of
    Harrell, Califf, Pryor, Lee and Rosati (1982).

    `ends` of shape (2, n); `predicted`, `mass` of shape (n,). Returns two arrays of shape (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.concordance import pairs_lost
    >>> ends = np.array([[1.0, 2.0, 3.0], [1.0, np.inf, 3.0]])
    >>> lost, all_ = pairs_lost(ends, np.array([1.0, 2.0, 0.5]), np.ones(3))
    >>> lost.tolist(), all_.tolist()
    ([1.0, 0.0, 1.0], [2.0, 1.0, 1.0])
    """
    low, high = ends
    known = low == high
    lost, every = np.zeros(len(low)), np.zeros(len(low))
    for rows in blocks(len(low), len(low)):
        first, at = np.s_[rows, None], predicted[rows, None]
        before = high[first] <= low
        before &= ~(known[first] & known & (low[first] == low))
        wrong = np.where(at > predicted, 1.0, np.where(at == predicted, 0.5, 0.0)) * before
        # each pair is of both its rows
        every[rows] += before @ mass
        lost[rows] += wrong @ mass
        every += mass[rows] @ before
        lost += mass[rows] @ wrong
    return lost, every


def concordance(ends: FloatArray, predicted: FloatArray, mass: FloatArray) -> float:
    """Return the share of pairs in the right order, NaN where none has an order."""
    lost, every = pairs_lost(ends, predicted, mass)
    total = float(mass @ every)
    return 1.0 - float(mass @ lost) / total if total else np.nan


def losses(
    ends: FloatArray, predicted: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return losses of rows and their units, (n, 1), whose ratio of means is 1 − concordance.

    A row moves all of its pairs, so that its part in the error of the ratio is twice its own
    (Hájek's projection): losses are as far from their mean as that says.
    """
    lost, every = pairs_lost(ends, predicted, mass)
    total = float(mass @ every)
    ratio = float(mass @ lost) / total if total else 0.0
    return (ratio * every + 2.0 * (lost - ratio * every))[:, None], every[:, None]
