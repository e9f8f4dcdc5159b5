"""The master problem: the best weights for the cuts known so far, and a proven lower bound.

Over some cuts by a barrier method, its Newton steps compiled: ``min t + λ Σ βⱼ²/zⱼ`` over
``t ≥ κᵢ − gᵢᵀβ``, ``β ≥ 0``, ``Σβ = 1``, ``0 ≤ z ≤ 1``, ``Σ z ≤ k`` over the free j, and ``zⱼ = 1``
for the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from ._njit_master import centre
from .cuts import CutPool, lower_bound_from
from .nested import NestedPenalty
from .nested_path import NestedPath, first_top
from .penalties import WeightPenalty

# Newton steps in all; a path that needs more is held by rounding.
_MAX_ITER = 300
# Newton steps at one barrier parameter: more are needed only where rounding hides the progress.
_PATIENCE = 50
# Proofs in a row that may bring neither a better point nor a better bound.
_IDLE = 2
# The barrier parameter falls by this factor from one centre to the next: a larger one saves
# centres, and each takes more Newton steps to reach.
_FASTER = 12.0
# Share of the first barrier parameter that is small enough where the value is 0 and has no relative
# gap.
_ROUNDING = 1e-12
# Weights below this share of the largest are rounding: they cost a Gram matrix each.
_NEGLIGIBLE = 1e-9


@dataclass
class Path:
    """A point near the central path, and the scratch of the steps that move it.

    `kappa` (m,), `half` (m, q): the cuts; `penalty`: over the q kernels that may have a weight;
    `free` (q,): whose share z is a variable; `inside` (m + 3q + 1,): what has to be positive, the
    slacks, β, z, 1 − z, and what is left of the capacity; `sigma`: the barrier parameter: the gap
    is about its product with the size of ``inside``.
    """

    kappa: FloatArray
    half: FloatArray
    penalty: WeightPenalty
    free: NDArray[np.bool_]
    inside: FloatArray
    sigma: float

    def __post_init__(self) -> None:
        m, q = self.half.shape
        self._parts = np.split(self.inside, [m, m + q, m + 2 * q, m + 3 * q])[:4]
        self._scratch = (
            np.empty(self.inside.size),
            np.empty((q + 1, q + 1)),
            np.empty((2, q + 1)),
            np.zeros((5, q + 1)),
        )

    @property
    def multipliers(self) -> FloatArray:
        """Return the multipliers of the cuts, shape (m,); their sum is about 1/σ."""
        return 1.0 / self._parts[0]

    @property
    def value(self) -> float:
        """Return the primal value in plain floating point."""
        _, beta, z, _ = self._parts
        top = float((self.kappa - self.half @ beta).max())
        return top + float(self.penalty.lam * (beta * beta / z).sum())

    @property
    def weights(self) -> FloatArray:
        """Return β, shape (q,), without what is rounding."""
        beta = self._parts[1]
        weights: FloatArray = np.where(beta > _NEGLIGIBLE * beta.max(), beta, 0.0)
        weights /= weights.sum()
        return weights

    def centre(self, most: int) -> tuple[int, bool]:
        """Take at most so many Newton steps; return their number, and whether they were too few."""
        steps, far = centre(
            self.half,
            self.penalty.lam,
            self.free,
            1.0 / self.sigma,
            most,
            self.inside,
            *self._parts,
            *self._scratch,
        )
        return int(steps), bool(far)


def start(kappa: FloatArray, half: FloatArray, penalty: WeightPenalty) -> Path:
    """Return equal weights, a little inside of every bound."""
    q = half.shape[1]
    has_shares = penalty.lam > 0.0 and not penalty.is_tight
    free = penalty.free if has_shares else np.zeros(q, dtype=bool)
    beta, z, over, room = np.full(q, 1.0 / q), np.ones(q), np.ones(q), 1.0
    if free.any():
        z[free] = 0.9 * min(penalty.capacity / float(free.sum()), 1.0)
        over[free] = 1.0 - z[free]
        room = penalty.capacity - float(z[free].sum())
    values = kappa - half @ beta
    sigma = 0.1 * max(float(np.abs(kappa).max()), 1e-12)
    slacks = first_top(values, sigma) - values
    inside = np.concatenate([slacks, beta, z, over, [room]])
    return Path(kappa, half, penalty, free, inside, sigma)


def follow(
    kappa: FloatArray, half: FloatArray, penalty: WeightPenalty, tol: float
) -> tuple[FloatArray, FloatArray, float, float]:
    """Follow the central path until the proven gap is at most ``tol`` times the value.

    `kappa` (m,), `half` (m, q): the cuts; `penalty`: over q kernels, each of which may have a
    weight. Returns the weights (q,), the multipliers (m,), the value at the weights, and what
    `lower_bound_from` proves by the multipliers.
    """
    path: Path | NestedPath
    # without a ridge there is nothing for shares to do
    if isinstance(penalty, NestedPenalty) and penalty.lam > 0.0 and not penalty.is_tight:
        path = NestedPath(kappa, half, penalty)
    else:
        path = start(kappa, half, penalty)
    # an optimum of 0 has no relative gap: what is left is rounding
    least = _ROUNDING * path.sigma
    weights, multipliers, upper, lower = path.weights, path.multipliers, np.inf, -np.inf
    left, idle, passed = _MAX_ITER, 0, []
    while idle < _IDLE:
        steps, far = path.centre(min(_PATIENCE, left))
        left -= steps
        value = path.value
        last = far or left <= 0
        passed.append(path.multipliers)
        if last or path.sigma * path.inside.size <= max(tol * abs(value), least):
            bound = lower_bound_from(kappa, half, passed[-1], penalty)
            idle = 0 if value < upper or bound > lower else idle + 1
            if value < upper:
                upper, weights = value, path.weights
            if bound > lower:
                lower, multipliers = bound, passed[-1]
            if last or upper - lower <= tol * abs(upper):
                break
        path.sigma /= _FASTER
    if upper - lower > tol * abs(upper):
        # kernels of very different size: rounding spoils the multipliers towards the end
        bounds = [lower_bound_from(kappa, half, each, penalty) for each in passed]
        best = int(np.argmax(bounds))
        lower, multipliers = bounds[best], passed[best]
    return weights, multipliers, upper, lower


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
_NEAR, _NOT_NEAR = (80, 40, 64, 32), 1e-6


@dataclass(frozen=True)
class MasterSolution:
    """The minimum of cuts plus penalty.

    `weights` (q,): on the simplex, rounding aside; `value`: cuts plus penalty there, in plain
    floating point; `lower_bound`: proven, the dual value at feasible multipliers; `multipliers`
    (m,): weights of the cuts in that proof, which sum to 1 up to rounding.
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
    active cuts. Only the proof of `lower_bound_from` is relied upon. With weights ``near`` the
    minimiser fewer cuts and kernels are begun with.
    """
    allowed = penalty.allowed
    kernels, centre = penalty.required.copy(), allowed / allowed.sum()
    first = (_FIRST_CUTS, _MORE_CUTS, _FIRST_KERNELS, _MORE_KERNELS)
    if near is not None:
        centre, first = near, _NEAR
        kernels |= allowed & (near > _NOT_NEAR * near.max())
    cuts = pool.relevant(centre, first[0])
    rank = np.where(allowed & ~kernels, pool.half_forms[cuts].mean(axis=0), -np.inf)
    kernels[_highest(rank, max(first[3], first[2] - int(kernels.sum())))] = True
    for _ in range(_MAX_ROUNDS):
        part = penalty.restricted(penalty.required, penalty.excluded | ~kernels)
        weights, multipliers, bound = _solve_over(pool, part, cuts)
        values = pool.values(weights)
        largest = float(values[cuts].max())
        value = max(largest, float(values.max())) + penalty.value(weights)
        beyond = np.flatnonzero(values > largest + 1e-10 * abs(value))
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
    solution = lsq_linear(system, np.append(slope * rows, scale), (least, np.inf), method="bvls")
    mu = np.zeros(kappa.size)
    mu[active] = solution.x[:-1]
    return mu if mu.sum() > 0.5 else None
