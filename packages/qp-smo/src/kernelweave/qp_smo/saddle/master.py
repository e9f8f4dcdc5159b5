"""The master problem: the best weights for the cuts known so far, and a proven lower bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from .central_path import follow
from .cuts import CutPool, lower_bound_from
from .penalties import WeightPenalty

# Relative gap of the master problem, far below what searches are asked for: it would hold their own
# gap open. From there a polish on the active cuts sharpens the bound.
_TOL = 1e-9
# Cuts in the first master problem, cuts added to it at a time, and how often.
_FIRST_CUTS = 400
_MORE_CUTS = 200
_MAX_ROUNDS = 20
# Kernels in the first master problem, and kernels added to it at a time: its cost grows with their
# cube, and few of many have a weight.
_FIRST_KERNELS, _MORE_KERNELS = 128, 64
# The same where a minimiser is known that is near: cuts, more of them, kernels, more of them; and
# the share of its largest weight below which a weight there says nothing.
_NEAR, _NEGLIGIBLE = (80, 40, 64, 32), 1e-6


@dataclass(frozen=True)
class MasterSolution:
    """The minimum of cuts plus penalty.

    Attributes
    ----------
    weights : ndarray of shape (q,)
        On the simplex, rounding aside.
    value : float
        Cuts plus penalty there, in plain floating point.
    lower_bound : float
        Proven: the dual value at feasible multipliers, rounded down.
    multipliers : ndarray of shape (m,)
        Weights of the cuts in that proof; they sum to 1 up to rounding.
    """

    weights: FloatArray
    value: float
    lower_bound: float
    multipliers: FloatArray


def solve_cut_master(
    pool: CutPool, penalty: WeightPenalty, near: FloatArray | None = None
) -> MasterSolution:
    """Minimise the largest cut plus the penalty over the simplex.

    A compiled interior point over some cuts and some kernels, to which others are added for as long
    as they matter; where its multipliers are not accurate enough they are computed again from the
    active cuts. Only the proof of `lower_bound_from` is relied upon.

    Parameters
    ----------
    pool : CutPool
        At least one cut.
    penalty : WeightPenalty
    near : ndarray of shape (q,), optional
        Weights near the minimiser: fewer cuts and kernels are begun with.

    Returns
    -------
    MasterSolution
    """
    allowed = penalty.allowed
    kernels, centre = penalty.required.copy(), allowed / allowed.sum()
    first = (_FIRST_CUTS, _MORE_CUTS, _FIRST_KERNELS, _MORE_KERNELS)
    if near is not None:
        centre, first = near, _NEAR
        kernels |= allowed & (near > _NEGLIGIBLE * near.max())
    cuts = pool.relevant(centre, first[0])
    rank = np.where(allowed & ~kernels, pool.half_forms[cuts].mean(axis=0), -np.inf)
    kernels[_highest(rank, max(first[3], first[2] - int(kernels.sum())))] = True
    for _ in range(_MAX_ROUNDS):
        part = penalty.restricted(penalty.required, penalty.excluded | ~kernels)
        weights, multipliers, bound = _solve_over(pool, part, cuts)
        values = pool.values(weights)
        known = float(values[cuts].max())
        value = max(known, float(values.max())) + penalty.value(weights)
        beyond = np.flatnonzero(values > known + 1e-10 * abs(value))
        # what was left out matters here: take in the largest of it
        cuts = np.append(cuts, beyond[np.argsort(-values[beyond], kind="stable")[: first[1]]])
        missing = allowed & ~kernels
        if missing.any():
            some, bound = bound, lower_bound_from(pool.kappa, pool.half_forms, multipliers, penalty)
            if bound < some - 1e-10 * abs(value):
                gains = multipliers @ pool.half_forms
                kernels[_highest(np.where(missing, gains, -np.inf), first[3])] = True
                continue
        if beyond.size == 0:
            break
    return MasterSolution(weights, value, min(bound, value), multipliers)


def _highest(rank: FloatArray, n: int) -> NDArray[np.intp]:
    """Return the positions of the n highest finite ranks."""
    order = np.argsort(-rank, kind="stable")[: max(n, 0)]
    return order[np.isfinite(rank[order])]


def _solve_over(
    pool: CutPool, penalty: WeightPenalty, cuts: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray, float]:
    """Return the weights, the multipliers and the proven bound of the master over some cuts."""
    at = np.flatnonzero(penalty.allowed)
    kappa, forms = pool.kappa[cuts], pool.half_forms[np.ix_(cuts, at)]
    over = penalty.over(at)
    weights = np.zeros(pool.n_kernels)
    weights[at], mu, upper, bound = follow(kappa, np.ascontiguousarray(forms), over, _TOL)
    if upper - bound > 1e-10 * abs(upper):
        sharper = _polished(kappa, forms, weights[at], over)
        if sharper is not None:
            other = lower_bound_from(kappa, forms, sharper, over)
            if other > bound:
                bound, mu = other, sharper
    multipliers = np.zeros(len(pool))
    multipliers[cuts] = mu / mu.sum()
    return weights, multipliers, bound


def _polished(
    kappa: FloatArray, half: FloatArray, weights: FloatArray, penalty: WeightPenalty
) -> FloatArray | None:
    """Return multipliers of the active cuts for which β is stationary, by least squares."""
    values = kappa - half @ weights
    scale = max(float(np.abs(values).max()), float(np.abs(kappa).max()))
    active = np.flatnonzero(values >= values.max() - 1e-7 * scale)
    used = np.flatnonzero(weights > 0.0)
    slope = np.zeros(used.size)
    if penalty.lam > 0.0:
        slope = 2.0 * penalty.lam * weights[used] / penalty.shares(weights)[used]
    rows = weights[used]
    # the multipliers and, free, that of the weights' sum
    system = np.zeros((used.size + 1, active.size + 1))
    system[:-1, :-1] = half[np.ix_(active, used)].T * rows[:, None]
    system[:-1, -1] = rows
    system[-1, :-1] = scale
    least = np.append(np.zeros(active.size), -np.inf)
    # nnls of SciPy 1.12 to 1.14 refuses columns that depend on each other
    found = lsq_linear(system, np.append(slope * rows, scale), (least, np.inf), method="bvls")
    mu = np.zeros(kappa.size)
    mu[active] = found.x[:-1]
    return mu if mu.sum() > 0.5 else None
