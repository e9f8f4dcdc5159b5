"""From Gram matrices and targets to a problem over kernel weights, on all rows and in a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray, Index, Points, RealArray
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.grams import PrecomputedStack
from kernelweave.qp_smo import Ridge

from ..rows import spread_of
from .learn import LearnedWeights
from .noisy import NoisyFamily, Stored
from .objective import FLOOR
from .prices import PricedOrthant


@dataclass(frozen=True)
class Standard:
    """Targets in units of their own spread, and the way back.

    `values` of shape (T, n); `centre`, `spread` of shape (T,).
    """

    values: FloatArray
    centre: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, targets: FloatArray, mass: FloatArray) -> Standard:
        """Centre and scale targets of shape (T, n)."""
        first = targets[:, :1]
        # the mean of equal numbers is that number
        centre = first[:, 0] + (targets - first) @ (mass / mass.sum())
        rest = targets - centre[:, None]
        spread = spread_of(rest, mass)
        return cls(rest / spread[:, None], centre, spread)


def weight_problem(
    stored: Stored, X: Points, targets: FloatArray, weight: FloatArray | None
) -> Problem:
    """Return the problem whose weights the evidence chooses.

    `X` of shape (n, n_features); `targets` of shape (T, n): standardised; `weight` of shape (n,):
    divides the noise of a row.
    """
    share = np.ones(targets.shape[1]) if weight is None else 1.0 / weight
    ridge = Ridge(C=1.0 / FLOOR)
    return Problem(NoisyFamily(stored, share), ridge, PricedOrthant(), X, targets, weight)


def predict_held_out(
    grams: RealArray,
    samples: Samples,
    rows: Index,
    others: Index,
    search: Callable[[Problem], LearnedWeights],
) -> FloatArray:
    """Learn the weights on some rows and predict the others.

    `grams` of shape (q, n, n): of all rows; `rows`, `others`: to learn from, to predict; `search`:
    from a problem to its weights. Returns shape (n_others, T): in the units of the targets.
    """
    weight = None if samples.weight is None else samples.weight[rows]
    mass = np.ones(len(rows)) if weight is None else weight
    standard = Standard.of(samples.targets[:, rows], mass)
    inner = PrecomputedStack(np.stack([K[np.ix_(rows, rows)] for K in grams]))
    places = np.arange(len(rows), dtype=np.float64)[:, None]
    learned = search(weight_problem(inner, places, standard.values, weight))
    K = np.zeros((len(others), len(rows)))
    for w, each in zip(learned.weights, grams, strict=True):
        if w > 0.0:
            K += w * each[np.ix_(others, rows)]
    return np.asarray(K @ learned.result.solution.dual_coef.T * standard.spread + standard.centre)
