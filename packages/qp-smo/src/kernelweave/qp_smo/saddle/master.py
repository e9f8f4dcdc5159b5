"""The master problem: the best weights for the cuts known so far, and a proven lower bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.optimize import nnls

from ._njit_master import solve_master
from .cuts import CutPool
from .penalties import WeightPenalty

_UNIT = 2.0**-53
_TOL = 1e-9
_MAX_ITER = 300
# Weights below this share of the largest are rounding: they cost a Gram matrix each.
_NEGLIGIBLE = 1e-9
# Cuts in the first master problem, cuts added to it at a time, and how often.
_FIRST_CUTS = 400
_MORE_CUTS = 200
_MAX_ROUNDS = 20


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


def lower_bound_from(
    kappa: FloatArray, half_forms: FloatArray, multipliers: FloatArray, penalty: WeightPenalty
) -> float:
    """Return ``κᵀμ + min over β of penalty(β) − (½Dᵀμ)ᵀβ``, rounded down, with ``μ/Σμ`` for μ.

    Any nonnegative multipliers give a lower bound of the saddle value.

    Parameters
    ----------
    kappa : ndarray of shape (m,)
    half_forms : ndarray of shape (m, q)
    multipliers : ndarray of shape (m,)
        At least 0, not all 0.
    penalty : WeightPenalty
    """
    used = np.flatnonzero(multipliers > 0.0)
    mu = multipliers[used] / multipliers[used].sum()
    # μ/Σμ as computed is off by at most (m + 2) roundings in every component
    rounding = 2.0 * (2 * used.size + 6) * _UNIT
    top = float(mu @ kappa[used]) - rounding * float(mu @ np.abs(kappa[used]))
    c = mu @ half_forms[used] + rounding * (mu @ np.abs(half_forms[used]))
    low = penalty.best_response(c)[1]
    return top + low - 4.0 * _UNIT * (abs(top) + abs(low))


def solve_cut_master(pool: CutPool, penalty: WeightPenalty) -> MasterSolution:
    """Minimise the largest cut plus the penalty over the simplex.

    A compiled interior point; where its multipliers are not accurate enough they are computed
    again from the active cuts. Only the proof of `lower_bound_from` is relied upon.

    Parameters
    ----------
    pool : CutPool
        At least one cut.
    penalty : WeightPenalty

    Returns
    -------
    MasterSolution
    """
    allowed = np.flatnonzero(penalty.allowed)
    centre = np.zeros(pool.n_kernels)
    centre[allowed] = 1.0 / allowed.size
    cuts = pool.relevant(centre, _FIRST_CUTS)
    for _ in range(_MAX_ROUNDS):
        weights, multipliers, bound = _solve_over(pool, penalty, cuts)
        values = pool.values(weights)
        known = float(values[cuts].max())
        value = max(known, float(values.max())) + penalty.value(weights)
        beyond = np.flatnonzero(values > known + 1e-10 * abs(value))
        if beyond.size == 0:
            break
        # what was left out matters here: take in the largest of it
        more = beyond[np.argsort(-values[beyond], kind="stable")[:_MORE_CUTS]]
        cuts = np.concatenate([cuts, more])
    return MasterSolution(weights, value, min(bound, value), multipliers)


def _solve_over(
    pool: CutPool, penalty: WeightPenalty, cuts: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray, float]:
    """Return the weights, the multipliers and the proven bound of the master over some cuts."""
    at = np.flatnonzero(penalty.allowed)
    kappa = pool.kappa[cuts]
    half = np.ascontiguousarray(pool.half_forms[np.ix_(cuts, at)])
    free = penalty.free[at] if not penalty.is_tight else np.zeros(at.size, dtype=bool)
    small, share, mu = np.empty(at.size), np.empty(at.size), np.empty(cuts.size)
    upper, lower, _ = solve_master(
        kappa,
        half,
        penalty.linear[at],
        penalty.lam,
        free,
        float(penalty.capacity),
        _TOL,
        _MAX_ITER,
        small,
        share,
        mu,
        np.empty((at.size + 1, at.size + 1)),
        np.empty((3, cuts.size)),
        np.zeros((13, at.size + 1)),
    )
    weights = np.zeros(pool.n_kernels)
    weights[at] = np.where(small > _NEGLIGIBLE * small.max(), small, 0.0)
    weights /= weights.sum()
    forms = pool.half_forms[cuts]
    bound = lower_bound_from(kappa, forms, mu, penalty)
    if upper - lower > 1e-10 * abs(upper):
        sharper = _polished(kappa, forms, weights, penalty)
        if sharper is not None:
            other = lower_bound_from(kappa, forms, sharper, penalty)
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
    slope = penalty.linear[used].copy()
    if penalty.lam > 0.0:
        slope += 2.0 * penalty.lam * weights[used] / penalty.shares(weights)[used]
    rows = weights[used]
    system = np.zeros((used.size + 1, active.size + 2))
    system[:-1, :-2] = half[np.ix_(active, used)].T * rows[:, None]
    system[:-1, -2] = -rows
    system[:-1, -1] = rows
    system[-1, :-2] = scale
    try:
        solution = nnls(system, np.append(slope * rows, scale))[0]
    except RuntimeError:
        return None
    mu = np.zeros(kappa.size)
    mu[active] = solution[:-2]
    return mu if mu.sum() > 0.5 else None
