"""Fixed points: the paper's interpolated algorithms (3 and 4), and majorise-minimise.

The latter is a closed-form multiplicative update that never raises the objective:

αᵀKₖα/… splits over kernels: F(t) ≤ const + Σ t_k,old² Λvₖ/tₖ, whose minimiser over the ball is
tₖ ∝ (t_k,old² vₖ)^{1/(q+1)}, and with the penalty β‖μ‖² is (μ_k,old² vₖ/(2β))^{1/3}.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.psd_cone import lq_norm

from .descent import Descent, DescentState
from .oracle import Evaluation
from .settings import IIA, DescentSettings, MajorizeMinimize

# Some twenty rises of the objective, each of which halves 1 − η, lead here: less of a step is none.
_MAX_DAMPING = 1.0 - 1e-6


class IIASearch(Descent):
    """``krr-iia``: μ = μ₀ + Λ t(v), t ∝ v^{1/(q−1)}, vₖ = αᵀKₖα, α interpolated with η = ½.

    ``krr-riia``, with the penalty β‖μ‖², is the same with μ = v/(2β) (Theorem 2.2).

    Corrected: Theorem 2.1, on which Algorithm 3 rests, holds for q = 2 only; in general μ − μ₀ is
    proportional to v^{1/(q−1)}. The damping η grows when the objective rises, which as printed can
    cycle.
    """

    settings: DescentSettings = IIA()

    def needs(self) -> str | None:
        """Refuse q = 1, where μ jumps between single kernels."""
        if getattr(self.constraint, "q", 2.0) == 1.0:
            return "krr-iia needs q > 1, got q=1: use krr-newton, which solves q = 1"
        return None

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, object]]:
        """Return η = ½ unless one was given, and α."""
        return self.given_step(0.5), {"alpha": at.solution.dual_coef, "v": at.v}

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state: weights from the interpolated α, then α there."""
        memory = state.memory
        at = self.oracle.evaluate(np.asarray(self.constraint.maximizer(memory["v"])))
        eta = state.step_size
        if at.value > state.at.value:
            eta = min(0.5 * (1.0 + eta), _MAX_DAMPING)
        # Algorithm 3, line 7
        alpha = eta * memory["alpha"] + (1.0 - eta) * at.solution.dual_coef
        settled = eta >= _MAX_DAMPING or np.array_equal(at.mu, state.at.mu)
        return replace(
            state,
            at=at,
            step_size=eta,
            memory={"alpha": alpha, "v": self.oracle.forms(alpha)},
            stalled=bool(settled),
        )


def ball_update(t: FloatArray, v: FloatArray, q: float) -> FloatArray:
    """Return t′ₖ ∝ (tₖ² vₖ)^{1/(q+1)} with ‖t′‖_q = 1, for t of the unit ball; ones at q = ∞."""
    if math.isinf(q):
        return np.ones_like(t)
    weight = t * t * np.maximum(v, 0.0)
    top = float(weight.max(initial=0.0))
    if top == 0.0:
        return t
    new: FloatArray = (weight / top) ** (1.0 / (q + 1.0))
    return new / lq_norm(new, q)


class MajorizeMinimizeSearch(Descent):
    """``krr-mm``: monotone multiplicative updates, one evaluation each."""

    settings: DescentSettings = MajorizeMinimize()

    def enter(self, mu: FloatArray, n_left: int) -> DescentState:
        """Return the state at μ, shape (p,), moved inside: a weight at its least would stay there.

        ``n_left`` starts follow it.
        """
        p = len(mu)
        penalised = self.constraint.curvature > 0.0
        least = np.zeros(p) if penalised else self.constraint.centers(p)
        if (mu <= least).any():
            mu = 0.9 * mu + 0.1 * np.asarray(self.constraint.start(p))
        return super().enter(mu, n_left)

    def _next(self, mu: FloatArray, v: FloatArray) -> FloatArray:
        constraint = self.constraint
        if constraint.curvature > 0.0:
            return np.asarray(np.cbrt(mu * mu * np.maximum(v, 0.0) / (2.0 * constraint.beta)))
        center = constraint.centers(len(mu))
        t = ball_update((mu - center) / constraint.radius, v, constraint.q)
        return np.asarray(center + constraint.radius * t)

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state."""
        mu = self._next(state.at.mu, state.at.v)
        if np.array_equal(mu, state.at.mu):
            return replace(state, stalled=True)
        return replace(state, at=self.oracle.evaluate(mu))
