"""Interpolated iterative algorithms IIA and rIIA (Algorithms 3 and 4).

Corrected: Theorem 2.1, on which Algorithm 3 rests, holds for q = 2 only; in general μ − μ₀ is
proportional to v^{1/(q−1)}. The damping η grows when the objective rises, which as printed can
cycle.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .descent import Descent, DescentState
from .oracle import Evaluation
from .settings import IIA, DescentSettings, RegularizedIIA

# Some twenty rises of the objective, each of which halves 1 − η, lead here: less of a step is none.
_MAX_DAMPING = 1.0 - 1e-6


def interpolate(old: FloatArray, new: FloatArray, eta: float) -> FloatArray:
    """Return ηα + (1 − η)α′ (Algorithm 3, line 7).

    `old`, `new` of shape (T, n): α and (K_μ + λI)⁻¹y; `eta`: η in [0, 1). Returns shape (T, n): the
    interpolation.
    """
    return eta * old + (1.0 - eta) * new


class IIASearch(Descent):
    """``krr-iia``: μ = μ₀ + Λ t(v), t ∝ v^{1/(q−1)}, vₖ = αᵀKₖα, α interpolated with η = ½."""

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
        alpha = interpolate(memory["alpha"], at.solution.dual_coef, eta)
        settled = eta >= _MAX_DAMPING or np.array_equal(at.mu, state.at.mu)
        return replace(
            state,
            at=at,
            step_size=eta,
            memory={"alpha": alpha, "v": self.oracle.forms(alpha)},
            stalled=bool(settled),
        )


class RegularizedIIASearch(IIASearch):
    """``krr-riia``: μ = v/(2β), vₖ = αᵀKₖα, α interpolated with η = ½ (Theorem 2.2)."""

    settings: DescentSettings = RegularizedIIA()
