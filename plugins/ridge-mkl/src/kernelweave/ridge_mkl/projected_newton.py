"""Projected Newton: the quadratic model minimised over the set itself, then a line search.

Over a ball the model is that of −1/F (see `Oracle.scaled`), which is convex in μ and nearly linear
along rays, so that a full step is right from far away.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .descent import Descent, DescentState
from .interior_point import feasible, minimize_quadratic
from .oracle import Evaluation
from .settings import DescentSettings, ProjectedNewton

# Share of the promised fall that a step must keep: small, so that nearly every real fall is taken.
_ARMIJO = 1e-4
# 2⁻³⁰ of a step: what fails there too is not a direction of descent in rounding.
_MAX_HALVINGS = 30
# Stands for every larger exponent, ∞ among them: the barrier of the model needs a power, and this
# ball of p weights holds that of ∞ shrunk by p^(−1/1000).
_LARGEST_Q = 1e3


class ProjectedNewtonSearch(Descent):
    """``krr-newton``: one Hessian (pn² flops after the factorisation) per iteration."""

    settings: DescentSettings = ProjectedNewton()

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state: the model's minimiser, halved until the objective falls."""
        at = state.at
        value, _, _ = self.oracle.scaled(at)
        center, radius, q = self._geometry()
        t = (at.mu - center) / radius
        g, direction = self._direction(at, t, radius, q)
        slope = float(g @ direction)
        noise = abs(value) * (at.noise / at.value if at.value > 0.0 else 1.0)
        step = 1.0
        for _ in range(_MAX_HALVINGS):
            new = self.oracle.evaluate(center + radius * feasible(t + step * direction, q))
            fallen = self.oracle.scaled(new)[0] - value
            # below the rounding of the objective only the bounds still tell which point is better
            closer = fallen <= noise and new.upper - new.lower < at.upper - at.lower
            if closer or (slope < 0.0 and fallen <= _ARMIJO * step * slope):
                return replace(state, at=new)
            if -step * slope <= noise:
                break
            step *= 0.5
        return replace(state, stalled=True)

    def _direction(
        self, at: Evaluation, t: FloatArray, radius: float, q: float | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient in t and the step to the model's minimiser, both (p,)."""
        _, gradient, _ = self.oracle.scaled(at)
        H = radius**2 * self.oracle.scaled_hessian(at)
        g = radius * gradient
        return g, minimize_quadratic(H, g - H @ t, q, t) - t

    def _geometry(self) -> tuple[FloatArray, float, float | None]:
        """Return μ₀, Λ and q of μ = μ₀ + Λt; 0, 1 and None for the orthant."""
        p = self.oracle.n_kernels
        if self.constraint.curvature > 0.0:
            return np.zeros(p), 1.0, None
        q = float(self.constraint.q)
        return self.constraint.centers(p), float(self.constraint.radius), min(q, _LARGEST_Q)
