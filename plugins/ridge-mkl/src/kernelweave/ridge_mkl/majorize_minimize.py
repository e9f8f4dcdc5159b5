"""Majorise-minimise: a closed-form multiplicative update that never raises the objective.

αᵀKₖα/… splits over kernels: F(t) ≤ const + Σ t_k,old² Λvₖ/tₖ, whose minimiser over the ball is
tₖ ∝ (t_k,old² vₖ)^{1/(q+1)}, and with the penalty β‖μ‖² is (μ_k,old² vₖ/(2β))^{1/3}.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .descent import Descent, DescentState
from .projection import lq_norm
from .settings import DescentSettings, MajorizeMinimize


def ball_update(t: FloatArray, v: FloatArray, q: float) -> FloatArray:
    """Return t′ₖ ∝ (tₖ² vₖ)^{1/(q+1)} with ‖t′‖_q = 1.

    `t`, `v` of shape (p,): position in the unit ball, and αᵀKₖα; `q`: at least 1. Returns shape
    (p,): on the sphere; ones where q is infinite.
    """
    if math.isinf(q):
        return np.ones_like(t)
    weight = t * t * np.maximum(v, 0.0)
    top = float(weight.max(initial=0.0))
    if top == 0.0:
        return t
    new: FloatArray = (weight / top) ** (1.0 / (q + 1.0))
    return new / lq_norm(new, q)


def penalized_update(mu: FloatArray, v: FloatArray, beta: float) -> FloatArray:
    """Return (μₖ² vₖ/(2β))^{1/3}.

    `mu`, `v` of shape (p,): weights and αᵀKₖα; `beta`: β > 0. Returns shape (p,): the next weights.
    """
    return np.cbrt(mu * mu * np.maximum(v, 0.0) / (2.0 * beta))


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
            return penalized_update(mu, v, constraint.beta)
        center = constraint.centers(len(mu))
        t = ball_update((mu - center) / constraint.radius, v, constraint.q)
        return np.asarray(center + constraint.radius * t)

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state."""
        mu = self._next(state.at.mu, state.at.v)
        if np.array_equal(mu, state.at.mu):
            return replace(state, stalled=True)
        return replace(state, at=self.oracle.evaluate(mu))
