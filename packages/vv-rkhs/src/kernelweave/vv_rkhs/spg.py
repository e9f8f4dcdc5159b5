"""Spectral projected gradient on J over weights and output kernel (Birgin, Martínez, Raydan 2000).

The output kernel is L = R Rᵀ with ‖R‖² ≤ τ. Where an eigenvalue ρ of L is interior, J behaves like
c/ρ with c = νρ² for one multiplier ν: the curvature is 2ν/ρ in ρ but 6ν in √ρ, the same for all,
and the projection is a scaling. What R cannot see, a direction that L has lost, the certificate
does: where R is stationary and the gap is open, one projected step on L itself follows.

Each block has its own Barzilai–Borwein length: weights and output kernel live on scales of their
own. The regulariser ω enters by its proximal map, a projection for norms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import Matrix, Vector

from .alternating import SeparableSearch
from .bounds import PreparedProblem, prepare_problem
from .objective import JointEvaluation
from .output import project_output_kernel
from .settings import SpectralGradient

# Share of the promised fall that a step must keep, as in the paper of Birgin and others, and how
# often one is shortened: what still fails then is no direction of descent in rounding.
_ARMIJO = 1e-4
_MAX_BACKTRACKS = 30
_ROUNDING = 1e-13  # values that differ by less are equal: gradients go on where values cannot
# the least stationarity that values can tell: a step from there lowers them by its square
_FINEST = _ROUNDING**0.5
# A slope that is this small beside the value is none, though gradients say more than values do.
_NO_SLOPE = 1e-19
# So many failures in a row end the search, each after the step on L itself and, where that may
# help, a more exact C.
_MAX_FAILURES = 3
# Relative residual of C: it follows the stationarity down from the loosest, so that far from the
# end conjugate gradients are short, to the tightest that they reach.
_TIGHTEST, _LOOSEST = 1e-9, 1e-2
_SHORT = 0.03  # a step that so many halvings led to
# `first_output_root` says why.
_FIRST_POWER = 3.0 / 8.0
_FLATTEST = 0.01  # of the largest slope
_RESCALE_EVERY = 3  # steps: rescaling C for a better lower bound costs half a step
_LONGEST, _SHORTEST = 1e12, 1e-12  # times the first lengths


@dataclass
class SPGState:
    """An iterate.

    - `point`: J, C and the gradients at the iterate
    - `R`, `BR` of shape (n, n): L = R Rᵀ, and B R, half the gradient in R over −λ
    - `lengths`: step lengths of weights and R
    - `recent`: last values, for the non-monotone line search
    - `n_iter`: steps made
    - `failures`: line searches that failed in a row
    - `tol`: relative residual of C; never rises, however the stationarity does
    """

    point: JointEvaluation
    R: Matrix
    BR: Matrix
    lengths: tuple[float, float]
    recent: deque[float]
    n_iter: int = 0
    failures: int = 0
    tol: float = _LOOSEST


class SpectralGradientSearch(SeparableSearch):
    """``vv-spg``: one C solve and one pass over the Gram matrices per step."""

    settings: SpectralGradient = SpectralGradient()
    prepared: PreparedProblem

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: SpectralGradient = settings,
    ) -> None:
        """Evaluate the start."""
        self.settings, self.inner_tol = settings, settings.inner_tol
        tol = settings.stationarity_tol
        self.stationarity_tol = 1e-6 if tol is None else tol
        self.prepared = prepare_problem(
            problem, dtype=settings.dtype, method=settings.method, leaves_zero=True
        )
        self.objective = self.prepared.objective
        if self.prepared.bounds.learn_input and not hasattr(self.prepared.bounds.penalty, "prox"):
            raise ValueError(
                f"vv-spg needs a penalty with prox, {self.prepared.bounds.penalty!r} has none: "
                "choose algorithm='vv-block-descent'"
            )
        tol = _LOOSEST if self.inner_tol is None else self.inner_tol
        point = self.prepared.start(tol)
        R = square_root(point.L)
        recent = deque([self.prepared.bounds.value(point)], maxlen=settings.memory)
        BR = point.B @ R
        self._usual = self._first_lengths(point, R, BR)
        self._update_bounds(SPGState(point, R, BR, self._usual, recent, tol=tol))

    def _update_bounds(self, state: SPGState) -> None:
        """Move to an iterate and compute its bounds."""
        self.state, self.point = state, state.point
        rescale = state.n_iter % _RESCALE_EVERY == 0
        self.lower, self.upper = self.prepared.bounds.interval(
            state.point, self._reachable(state), rescale=rescale
        )

    def _first_lengths(self, point: JointEvaluation, R: Matrix, BR: Matrix) -> tuple[float, float]:
        """Lengths at which a gradient step is as long as the iterate, or as even weights for 0."""
        lam, weights = self.objective.lam, point.weights
        if not weights.any():
            weights = np.full(len(weights), 1.0 / len(weights))
        top_w, top_R = np.linalg.norm(point.w), 2.0 * np.linalg.norm(BR)
        return (
            float(np.linalg.norm(weights) / (lam * top_w)) if top_w > 0 else 1.0,
            float(np.linalg.norm(R) / (lam * top_R)) if top_R > 0 else 1.0,
        )

    def step(self) -> None:
        """Move to the first acceptable point of the projected direction."""
        self._update_bounds(self._moved(self.state))

    def _moved(self, state: SPGState) -> SPGState:
        bounds, lam = self.prepared.bounds, self.objective.lam
        point, R = state.point, state.R
        d_eta, d_R = self._direction(state)
        slope = -lam * float(d_eta @ point.w + 2.0 * np.vdot(d_R, state.BR))
        if bounds.learn_input:
            shift = bounds.penalty.value(np.maximum(point.weights + d_eta, 0.0))
            slope += lam * (shift - bounds.penalty.value(point.weights))
        if slope > -_NO_SLOPE * bounds.value(point):
            return self._escape(state)
        accepted = self._search(
            state, slope, lambda s: (point.weights + s * d_eta, self._output(point, R + s * d_R))
        )
        if accepted is None:
            return self._escape(state)
        new, step = accepted
        R_new = R + step * d_R
        BR_new = new.B @ R_new
        state.recent.append(bounds.value(new))
        lengths = self._lengths(state, new, R_new, BR_new)
        tol = self._next_tol(state.tol, new, step)
        return SPGState(new, R_new, BR_new, lengths, state.recent, state.n_iter + 1, tol=tol)

    def _output(self, point: JointEvaluation, R: Matrix) -> Matrix:
        return R @ R.T if self.prepared.bounds.learn_output else point.L

    def _search(
        self, state: SPGState, slope: float, path: Callable[[float], tuple[Vector, Matrix]]
    ) -> tuple[JointEvaluation, float] | None:
        """Return the first acceptable evaluation along a path, and its step."""
        bounds = self.prepared.bounds
        reference, current, step = max(state.recent), bounds.value(state.point), 1.0
        for _ in range(_MAX_BACKTRACKS):
            weights, L = path(step)
            new = self.objective.evaluate(
                np.maximum(weights, 0.0), L, start=state.point, tol=state.tol
            )
            value = bounds.value(new)
            if value <= reference + _ARMIJO * step * slope + _ROUNDING * abs(reference):
                return new, step
            step *= _shrink(value - current, slope, step)
        return None

    def _next_tol(self, tol: float, point: JointEvaluation, step: float) -> float:
        """Return the next C's tolerance: a short step is a sign of an inexact gradient."""
        if self.inner_tol is not None:
            return self.inner_tol
        tol = min(tol, 0.1 * self.prepared.bounds.stationarity(point))
        return max(_TIGHTEST, 0.1 * tol if step < _SHORT else tol)

    def _escape(self, state: SPGState) -> SPGState:
        """Step along ∂J/∂L itself, which sees directions that R has lost.

        Where no step helps, C may be what is wrong: then it is made more exact.
        """
        bounds, lam = self.prepared.bounds, self.objective.lam
        point, failed, tol = state.point, state.failures + 1, state.tol
        new, R = point, state.R
        if bounds.learn_output:
            size = max(float(np.linalg.norm(point.B)), 1e-300)
            length = float(np.linalg.norm(point.L)) / (lam * size)
            towards = project_output_kernel(point.L + length * lam * point.B, bounds.tau)
            d_L = towards - point.L
            slope = -lam * float(np.vdot(d_L, point.B))
            accepted = self._search(state, slope, lambda s: (point.weights, point.L + s * d_L))
            if slope < 0.0 and accepted is not None:
                new, R = accepted[0], square_root(accepted[0].L)
                state.recent.append(bounds.value(new))
        exact = _TIGHTEST * self.objective.Y_norm
        if new is point and self.inner_tol is None and point.residual > exact:
            tol, failed = max(_TIGHTEST, 0.01 * tol), state.failures
            new = self.objective.evaluate(point.weights, point.L, start=point, tol=tol)
        BR = new.B @ R
        lengths = self._first_lengths(new, R, BR)
        return SPGState(new, R, BR, lengths, state.recent, state.n_iter + 1, failed, tol)

    def _direction(self, state: SPGState) -> tuple[Vector, Matrix]:
        bounds, lam = self.prepared.bounds, self.objective.lam
        point, R = state.point, state.R
        d_eta, d_R = np.zeros_like(point.weights), np.zeros_like(R)
        if bounds.learn_input:
            length = state.lengths[0] * lam
            target = point.weights + length * point.w
            d_eta = bounds.penalty.prox(target, length) - point.weights
        if bounds.learn_output:
            root_tau = np.sqrt(bounds.tau)
            if state.n_iter == 0:
                moved = first_output_root(point.B) @ R
                moved *= root_tau / np.linalg.norm(moved)
            else:
                moved = R + (2.0 * state.lengths[1] * lam) * state.BR
                moved *= min(1.0, root_tau / np.linalg.norm(moved))
            d_R = moved - R
        return d_eta, d_R

    def _lengths(
        self, state: SPGState, new: JointEvaluation, R: Matrix, BR: Matrix
    ) -> tuple[float, float]:
        """Barzilai–Borwein lengths of both blocks, long and short in turn."""
        lam, old = self.objective.lam, state.point
        moves = (
            (new.weights - old.weights, -lam * (new.w - old.w)),
            (R - state.R, -2.0 * lam * (BR - state.BR)),
        )
        first, second = (
            _spectral(s, y, length, usual, long=state.n_iter % 2 == 0)
            for (s, y), length, usual in zip(moves, state.lengths, self._usual, strict=True)
        )
        return first, second

    def _reachable(self, state: SPGState) -> float:
        """Return the stationarity to ask for: where steps fail, no less than values can tell."""
        stuck = state.failures >= _MAX_FAILURES
        return max(self.stationarity_tol, _FINEST) if stuck else self.stationarity_tol

    @property
    def outcome(self) -> Status | None:
        """Stop where joint learning is stationary, or where rounding forbids any step."""
        bounds, state = self.prepared.bounds, self.state
        joint = bounds.learn_input and bounds.learn_output
        if joint and bounds.stationarity(state.point) <= self._reachable(state):
            return Status.STATIONARY
        return Status.STALLED if state.failures >= _MAX_FAILURES else None


def square_root(L: Matrix) -> Matrix:
    """Return a matrix R with R Rᵀ = L, for L positive semidefinite up to rounding."""
    values, vectors = np.linalg.eigh(L)
    root: Matrix = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def first_output_root(B: Matrix) -> Matrix:
    """Return B^⅜, the square root of B^¾, for the first step from L ∝ I.

    There J is a sum over the eigenvalues ρ of L in the basis of B, whose own eigenvalues are the
    slopes. The least sum under the trace bound has ρ in proportion to the slope to the power of 1
    where J falls like −log ρ, of ½ where it falls like 1/ρ: ¾ lies between. Eigenvalues far below
    the largest are raised, as R never regains a direction that it has lost.

    The identity for B = 0.
    """
    values, vectors = np.linalg.eigh(B)
    if not values[-1] > 0.0:
        return np.eye(len(B))
    raised = np.maximum(values / values[-1], _FLATTEST)
    root: Matrix = (vectors * raised**_FIRST_POWER) @ vectors.T
    return root


def _shrink(rise: float, slope: float, step: float) -> float:
    """Return by how much to shorten a step: the minimum of a parabola, within [0.1, 0.5]."""
    curvature = rise - step * slope
    best = -0.5 * step * slope / curvature if curvature > 0 else 0.5
    return float(np.clip(best, 0.1, 0.5))


def _spectral(s: Matrix, y: Matrix, length: float, usual: float, *, long: bool) -> float:
    """Return ⟨s, s⟩/⟨s, y⟩ or ⟨s, y⟩/⟨y, y⟩, a longer length where the curvature is negative.

    The limits are multiples of a usual length: lengths shrink with the square of the targets.
    """
    ss, sy, yy = float(np.vdot(s, s)), float(np.vdot(s, y)), float(np.vdot(y, y))
    if ss == 0.0:
        return length
    if sy <= 0.0:
        return min(_LONGEST * usual, 10.0 * length)
    return float(np.clip(ss / sy if long else sy / yy, _SHORTEST * usual, _LONGEST * usual))
