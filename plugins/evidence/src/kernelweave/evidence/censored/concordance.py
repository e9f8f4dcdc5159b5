"""How often predictions are in the order of targets that are known by half."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray


def pairs_lost(
    ends: FloatArray, predicted: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return for each row the weight of pairs in the wrong order, and of all that have an order.

    Two targets have one where the upper end of the first is at most the lower end of the second,
    and not both are known and equal: a time that was observed is before one that had not ended
    then. Equal predictions are half wrong. One less the ratio of the sums is the concordance of
    Harrell, Califf, Pryor, Lee and Rosati (1982). Sorting takes the place of all pairs, so that the
    time is of the order n log n.

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
    # the first of two is before the second where its number is at most that of the second: a known
    # target is before limits of the same value, but not before known ones
    places = np.unique(ends, return_inverse=True)[1].reshape(ends.shape)
    first, second = 2 * places[1] + known, 2 * places[0] + ~known
    rank = np.unique(predicted, return_inverse=True)[1].ravel()
    as_first = _sums_before(-second, rank, mass, -first, rank)
    as_second = _sums_before(first, -rank, mass, second, -rank)
    lost, every = (one + other for one, other in zip(as_first, as_second, strict=True))
    return lost, every


def _sums_before(
    keys: Index, ranks: Index, mass: FloatArray, at: Index, below: Index
) -> tuple[FloatArray, FloatArray]:
    """Return for each query the mass of points whose key is at most its own.

    First that of points of a lower rank, half of those of the same rank included, then all of it.
    The points are sorted by their keys, and then, bit by bit of the ranks, those with a 0 before
    those with a 1, which is a wavelet matrix (Claude, Navarro and Ordóñez 2015).

    `keys`, `ranks`, `mass` of shape (n,): of the points; `at`, `below` of shape (n,): keys and
    ranks of the queries. Returns two arrays of shape (n,).
    """
    by = np.argsort(keys, kind="stable")
    count = np.searchsorted(keys[by], at, side="right")
    every = _running(mass[by])[count]
    least = int(min(ranks.min(), below.min()))
    n_bits = int(max(ranks.max(), below.max()) - least + 1).bit_length()
    points, mass = ranks[by] - least, mass[by]
    # those of a lower rank, and those of a lower or the same one
    query = np.concatenate([below - least, below - least + 1])
    begin, end = np.zeros(len(query), dtype=np.intp), np.concatenate([count, count])
    total = np.zeros(len(query))
    for bit in reversed(range(n_bits)):
        is_one: NDArray[np.bool_] = (points >> bit) % 2 == 1
        n_zeros = _running(~is_one)
        passed = _running(np.where(is_one, 0.0, mass))
        go = (query >> bit) % 2 == 1
        total += np.where(go, passed[end] - passed[begin], 0.0)
        begin, end = (
            np.where(go, n_zeros[-1] + each - n_zeros[each], n_zeros[each]) for each in (begin, end)
        )
        points, mass = (np.concatenate([each[~is_one], each[is_one]]) for each in (points, mass))
    strictly, with_equal = np.split(total, 2)
    return 0.5 * (strictly + with_equal), every


def _running(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of the first values, of none at first."""
    return np.concatenate([[0], np.cumsum(values)])


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
