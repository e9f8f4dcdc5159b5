"""The distribution of residuals that are known by half, without a form given beforehand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from scipy.stats import norm

from ..views import Warp
from .likelihood import normal_of

# steps of the EM algorithm, the change of a probability that ends them, and the error of a sum
_STEPS, _SMALL, _ROUNDING = 2000, 1e-10, 1e-6
# standard errors that a median residual differs from 0 by where predictions are moved to it; steps
# of that, and how near they end, in deviations
_CLEARLY, _MEDIAN_STEPS, _NEAR = 2.0, 8, 1e-3
# share of the rows that must be known to be on either side of a median
_SIDE = 0.1
# quantiles of a distribution that no row tells
_LEVELS = 199
# the way from medians on the scale of logarithms to those of targets
LOGARITHM = Warp(0.0, 0.0, 1.0, True)


@dataclass(frozen=True)
class ResidualDistribution:
    """Quantiles of residuals at the levels k/(n + 1), in deviations, ascending, shape (n,).

    Infinite where no row tells how far the tail goes. `scale`: of the normal distribution nearest
    to it.
    """

    quantiles: FloatArray
    scale: float = 1.0

    @classmethod
    def normal(cls) -> ResidualDistribution:
        """Return the normal distribution, where no row was held out."""
        return cls(np.asarray(norm.ppf(np.arange(1, _LEVELS + 1) / (_LEVELS + 1))))

    def ends(self, confidence: float) -> FloatArray:
        """Return two quantiles that leave as much on either side; infinite where rows are few."""
        n = len(self.quantiles)
        rank = int(np.floor(0.5 * (1.0 - confidence) * (n + 1) + 1e-9))
        return self.quantiles[[rank - 1, n - rank]] if rank else np.array([-np.inf, np.inf])

    @classmethod
    def around_median(
        cls,
        ends: FloatArray,
        centre: FloatArray,
        deviation: FloatArray,
        mass: FloatArray,
        most: int | None = None,
    ) -> tuple[float, ResidualDistribution]:
        """Return what to add to all centres so that they are medians, and the distribution then.

        Its median is 0. Centres are not moved where they may be medians already: the normal
        distribution, of which the mean is the median, tells it more precisely, and only the shape
        is that of the residuals. Where hardly any row is known to be on one side of the median,
        nothing is moved.

        `ends` of shape (2, n): of the targets; `centre`, `deviation` of shape (n,): of predictions;
        `mass`, `most`: as in `of`.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave.evidence.censored.residuals import ResidualDistribution
        >>> targets, zero = np.arange(1.0, 26.0), np.zeros(25)
        >>> ends = np.array([targets, targets])
        >>> round(ResidualDistribution.around_median(ends, zero, zero + 2.0, zero + 1.0)[0], 6)
        13.0
        """
        offset, known = 0.0, mass[ends[0] == ends[1]]
        residuals = (ends - centre) / deviation
        told = cls.of(residuals, mass, most)
        if not len(known):
            return offset, told
        # of the median of as many known residuals of a normal distribution
        error = np.sqrt(0.5 * np.pi * (known @ known)) / known.sum()
        near = _CLEARLY * error
        for _ in range(_MEDIAN_STEPS):
            with np.errstate(invalid="ignore"):
                median = float(np.median(told.quantiles))
            sides = residuals[1] <= median, residuals[0] >= median
            if not min(mass @ side for side in sides) >= _SIDE * mass.sum():
                break
            if abs(median) <= near:
                return offset, replace(told, quantiles=told.quantiles - median)
            near = _NEAR
            offset += median * float(np.median(deviation))
            residuals = (ends - centre - offset) / deviation
            told = cls.of(residuals, mass, most)
        return offset, told

    @classmethod
    def of(
        cls, ends: FloatArray, mass: FloatArray, most: int | None = None
    ) -> ResidualDistribution:
        """Return the likeliest distribution of residuals within ends (Turnbull 1976).

        Of residuals that are known or above a limit it is Kaplan and Meier's estimator. By the EM
        algorithm; what is known of no place but a range is put in its middle.

        `ends` of shape (2, n); `mass` of shape (n,): weights; `most`: quantiles that are kept at
        most, by default one for each row.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave.evidence.censored.residuals import ResidualDistribution
        >>> ends = np.array([[-1.0, 0.0, 1.0], [-1.0, np.inf, 1.0]])
        >>> ResidualDistribution.of(ends, np.ones(3)).quantiles.tolist()
        [-1.0, 1.0, 1.0]
        """
        atoms, probabilities = likeliest(ends, mass)
        n = ends.shape[1]
        n_levels = n if most is None else min(n, most)
        levels = np.arange(1, n_levels + 1) / (n_levels + 1)
        # a residual is one of n + 1 alike: what the last leaves is beyond all
        cumulative = np.cumsum(probabilities) * (n / (n + 1))
        place = np.searchsorted(cumulative, levels - _ROUNDING)
        quantiles = np.append(atoms, np.inf)[np.minimum(place, len(atoms))]
        return cls(quantiles, normal_of(ends, mass)[1])


def likeliest(ends: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return places, ascending, and their probabilities; the outermost may be infinite.

    The likeliest distribution is on the innermost intervals: a lower end that an upper end follows
    with nothing between. Of equal ends, what is known comes first, and what is above a limit last.
    """
    low, high = ends
    n = len(low)
    values = np.concatenate([low, high])
    kinds = np.concatenate([np.where(low == high, 0, 2), np.ones(n, dtype=np.intp)])
    by = np.lexsort((kinds, values))
    place = np.empty(2 * n, dtype=np.intp)
    place[by] = np.arange(2 * n)
    inner = np.flatnonzero((by[:-1] < n) & (by[1:] >= n))
    left, right = values[by[inner]], values[by[inner + 1]]
    with np.errstate(invalid="ignore"):
        middles = 0.5 * (left + right)
    atoms = np.where(np.isneginf(left), left, np.where(np.isposinf(right), right, middles))
    # each range holds those between its ends
    first = np.searchsorted(inner, place[:n])
    last = np.searchsorted(inner + 1, place[n:], side="right")
    # of many rows, ranges that hold the same are one
    size = len(atoms) + 1
    ranges, of = np.unique(first * size + last, return_inverse=True)
    first, last, share = ranges // size, ranges % size, np.bincount(of, weights=mass / mass.sum())
    p = np.full(len(atoms), 1.0 / len(atoms))
    for _ in range(_STEPS):
        sums = np.concatenate([[0.0], np.cumsum(p)])
        each = share / np.maximum(sums[last] - sums[first], np.finfo(np.float64).tiny)
        pull = np.bincount(first, each, size) - np.bincount(last, each, size)
        new = p * np.cumsum(pull)[:-1]
        new = np.maximum(new, 0.0) / np.maximum(new, 0.0).sum()
        change = float(np.abs(new - p).max())
        p = new
        if change < _SMALL:
            break
    return atoms, p
