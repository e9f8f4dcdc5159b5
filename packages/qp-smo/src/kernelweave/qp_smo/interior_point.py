"""A dense interior point: slow per iteration, but the count does not depend on the Gram matrix.

Mehrotra's predictor-corrector on the dual, S. Mehrotra, *On the implementation of a primal-dual
interior point method*, SIAM J. Optim. 1992; one Cholesky factor of n samples an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.config import blas_threads
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from .bounds import function_values, kkt_violation
from .point import GridPoint, starting_point
from .problem import BoxProblem, Budget

# Far more than needed: a run that gets here makes no progress because of rounding.
_MAX_ITERATIONS = 100
# Share of the step to the boundary that is taken. Closer to 1, the next step starts next to the
# boundary and is short; further from 1, every iteration gains less.
_FRACTION = 0.995
# Relative complementarity at the level of rounding: further iterations do not improve the point.
_FINEST_GAP = 1e-14


@dataclass
class _Parts:
    """``u = base + Σ signs·v`` with ``0 ≤ v ≤ cap``: one part, or two when ``ε > 0``.

    `base` of shape (n,); `signs`, `cap`, `gain` of shape (parts, n): ``gain`` is the linear term of
    each v.
    """

    base: FloatArray
    signs: FloatArray
    cap: FloatArray
    gain: FloatArray

    @classmethod
    def of(cls, problem: BoxProblem) -> _Parts:
        one_sided = np.all((problem.lower == 0.0) | (problem.upper == 0.0))
        if one_sided and problem.epsilon == 0.0:
            signs = np.where(problem.upper > 0.0, 1.0, -1.0)[None]
            cap = (problem.upper - problem.lower)[None]
            return cls(np.zeros_like(problem.p), signs, cap, signs * problem.p)
        signs = np.stack([np.ones_like(problem.p), -np.ones_like(problem.p)])
        if problem.epsilon == 0.0:
            cap = (problem.upper - problem.lower)[None]
            return cls(problem.lower, signs[:1], cap, problem.p[None])
        cap = np.stack([problem.upper, -problem.lower])
        return cls(np.zeros_like(problem.p), signs, cap, signs * problem.p - problem.epsilon)


@dataclass
class _Moves:
    """A step of every variable; the slack t moves by ``−v``."""

    v: FloatArray
    z: FloatArray
    w: FloatArray
    b: float


@dataclass
class _State:
    """Variables v, slack ``t = cap − v``, their multipliers z and w, and the equality's b."""

    v: FloatArray
    t: FloatArray
    z: FloatArray
    w: FloatArray
    b: float

    @classmethod
    def start(cls, parts: _Parts, mean_diagonal: float) -> _State:
        reach = max(1.0, float(np.abs(parts.gain).max()))
        v = np.minimum(0.5 * parts.cap, reach / mean_diagonal)
        capped = np.isfinite(parts.cap)
        z = np.full_like(v, reach)
        return cls(v, parts.cap - v, z, np.where(capped, reach, 0.0), 0.0)

    def total(self, moves: _Moves | None = None, step: float = 0.0) -> float:
        """Return ``Σ vz + Σ tw``, after a step along the moves."""
        v, t, z, w = self.v, self.t, self.z, self.w
        if moves is not None:
            v, z = v + step * moves.v, z + step * moves.z
            t, w = t - step * moves.v, w + step * moves.w
        capped = self.w > 0.0
        return float((v * z).sum() + (t[capped] * w[capped]).sum())

    def advance(self, moves: _Moves, step: float, parts: _Parts) -> None:
        """Take a step; no entry comes closer to 0 than the smallest normal number."""
        tiny = 1e-290
        self.v = np.maximum(self.v + step * moves.v, tiny)
        self.t = np.maximum(self.t - step * moves.v, tiny)
        self.z = np.maximum(self.z + step * moves.z, tiny)
        self.w = np.where(self.w > 0.0, np.maximum(self.w + step * moves.w, tiny), 0.0)
        self.b += step * moves.b

    def longest_step(self, moves: _Moves) -> float:
        """Return the longest step up to 1 that keeps every variable at least 0."""
        pairs = ((self.v, moves.v), (self.t, -moves.v), (self.z, moves.z), (self.w, moves.w))
        return min(_longest(x, move) for x, move in pairs)


def _longest(x: FloatArray, move: FloatArray) -> float:
    shrinking = move < 0.0
    if not shrinking.any():
        return 1.0
    return min(1.0, float(np.min(x[shrinking] / -move[shrinking])))


class _NewtonSystem:
    """The linear system at one point, factored as ``I + √D K √D``: n³/3 flops."""

    def __init__(self, problem: BoxProblem, parts: _Parts, state: _State) -> None:
        self.problem, self.parts, self.state = problem, parts, state
        self.inverse = 1.0 / (state.z / state.v + state.w / state.t)
        self.root = np.sqrt(self.inverse.sum(axis=0))
        matrix: NDArray[np.float64] = problem.K * self.root
        matrix *= self.root[:, None]
        matrix.flat[:: matrix.shape[0] + 1] += 1.0
        factor, info = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite")
        self.factor = (factor, True)
        self.border = cho_solve(self.factor, self.root, check_finite=False)
        self.u = parts.base + (parts.signs * state.v).sum(axis=0)
        self.f = problem.K @ self.u
        self.residual = parts.gain - parts.signs * (self.f + state.b) + state.z - state.w

    def moves(self, target: float, affine: _Moves | None = None) -> _Moves:
        """Return the step to the complementarity ``target``, corrected by an affine step."""
        s, parts = self.state, self.parts
        capped = s.w > 0.0
        low, high = target - s.v * s.z, np.where(capped, target, 0.0)
        high[capped] -= s.t[capped] * s.w[capped]
        if affine is not None:
            low, high = low - affine.v * affine.z, high + affine.v * affine.w
        side = self.residual + low / s.v - high / s.t
        shift = (parts.signs * self.inverse * side).sum(axis=0)
        x = cho_solve(self.factor, shift / self.root, check_finite=False)
        move_b = (self.root @ x + float(self.u.sum())) / float(self.root @ self.border)
        q = self.problem.K @ (self.root * (x - move_b * self.border)) + move_b
        v = self.inverse * (side - parts.signs * q)
        z = (low - s.z * v) / s.v
        w = np.where(capped, (high + s.w * v) / s.t, 0.0)
        return _Moves(v, z, w, float(move_b))


def _snapped(problem: BoxProblem, parts: _Parts, state: _State) -> FloatArray:
    """Return u with v at its bound where its multiplier is relatively larger, and ``Σu = 0``.

    Near the optimum either v or its multiplier is close to 0, so the larger one tells which bounds
    are active.
    """
    least = 1e-2 * max(1.0, float(np.abs(parts.gain).max()))
    v_scale, z_scale = float(state.v.max()), max(float(state.z.max()), least)
    w_scale = max(float(state.w.max()), least)
    v = np.where(state.v / v_scale < state.z / z_scale, 0.0, state.v)
    t_scale = float(state.t[np.isfinite(state.t)].max(initial=1.0))
    v = np.where(state.t / t_scale < state.w / w_scale, parts.cap, v)
    u = np.clip(parts.base + (parts.signs * v).sum(axis=0), problem.lower, problem.upper)
    excess = float(u.sum())
    room = np.minimum(np.minimum(problem.upper - u, u - problem.lower), np.abs(u))
    if abs(excess) < float(room.sum()):
        u -= (excess / float(room.sum())) * room
    return starting_point(u, problem.lower, problem.upper)


@dataclass
class InteriorRun:
    """Where the interior point stopped.

    `u` of shape (n,): in the box, ``Σu = 0`` up to rounding; bounds are met exactly.
    """

    u: FloatArray
    violation: float
    n_iter: int


def required_bytes(n_samples: int) -> int:
    """Return what a solve allocates: the Newton matrix and one more of its size."""
    return 2 * 8 * n_samples * n_samples + 400 * n_samples


def _iterate(problem: BoxProblem, budget: Budget) -> InteriorRun:
    parts = _Parts.of(problem)
    diagonal = float(np.abs(problem.diagonal).mean())
    state = _State.start(parts, max(diagonal, np.finfo(float).tiny))
    best = InteriorRun(np.zeros_like(problem.p), np.inf, 0)
    for iteration in range(1, _MAX_ITERATIONS + 1):
        system = _NewtonSystem(problem, parts, state)
        affine = system.moves(0.0)
        before = state.total()
        after = state.total(affine, state.longest_step(affine))
        count = np.count_nonzero(state.z) + np.count_nonzero(state.w)
        target = (max(after, 0.0) / before) ** 3 * before / count
        moves = system.moves(target, affine)
        state.advance(moves, _FRACTION * state.longest_step(moves), parts)
        scale = 1.0 + abs(float((parts.gain * state.v).sum()))
        gap = state.total() / scale
        if gap < 1e-2:
            u = _snapped(problem, parts, state)
            f = function_values(problem, u).f
            violation = kkt_violation(problem, GridPoint(u, problem.lower, problem.upper), f)
            if violation < best.violation:
                best = InteriorRun(u, violation, iteration)
        best.n_iter = iteration
        if best.violation <= 0.5 * budget.tol or gap < _FINEST_GAP or budget.expired:
            break
        if not np.isfinite(gap):
            break
    return best


def interior_point(problem: BoxProblem, budget: Budget) -> InteriorRun:
    """Solve the box problem, K positive semidefinite, by a dense primal-dual interior point.

    ``max_iter`` of the budget is not used: an iteration is a Cholesky factor. Returns the best
    point seen, ``u = 0`` if the linear algebra failed at once. Raises MemoryBudgetError if two
    matrices of n × n do not fit in the memory limit.
    """
    n = problem.n_samples
    memory.require(
        required_bytes(n),
        f"the interior point's matrices of {n} samples",
        alternative='use backend="smo"',
    )
    live = np.flatnonzero(problem.upper > problem.lower)
    if live.size == n:
        return _guarded(problem, budget)
    run = _guarded(problem.restricted(live), budget)
    u = np.zeros(n)
    u[live] = run.u
    return InteriorRun(u, run.violation, run.n_iter)


def _guarded(problem: BoxProblem, budget: Budget) -> InteriorRun:
    """Iterate, and return u = 0 with an infinite violation if a factorisation fails."""
    try:
        with np.errstate(all="ignore"), blas_threads(problem.n_samples):
            return _iterate(problem, budget)
    except np.linalg.LinAlgError:
        return InteriorRun(np.zeros_like(problem.p), np.inf, 0)
