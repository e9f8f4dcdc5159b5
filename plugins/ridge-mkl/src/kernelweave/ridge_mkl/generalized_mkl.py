"""Generalized MKL: projected gradient for any learner, set and degree (Algorithms 1 and 7).

As printed, Algorithm 7 takes the gradient at α where it is (Yα)ᵀHₖ(Yα): u = Yα here. The paper's
step 1, multiplied by 0.8 when the objective rises, is `step=2.0, grow=1.0`: its objective is twice
that of a problem. By default the first step has the size of the weights, and each iteration first
tries the Barzilai-Borwein length.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .descent import Descent, DescentState
from .oracle import Evaluation
from .sets import LqBall, Orthant
from .settings import GeneralizedMKL, GeneralizedMKLForLabels, GradientSettings
from .spectral_gradient import spectral_step


def gradient_step(
    mu: FloatArray, gradient: FloatArray, eta: float, constraint: LqBall | Orthant
) -> FloatArray:
    """Return the projection of μ − η(∇r − αᵀHₖα) onto the set (Algorithm 1, lines 7 and 8).

    `mu`, `gradient` of shape (p,): weights and gradient of F + r; `eta`: η; `constraint`: the set.
    Returns shape (p,): the next weights.
    """
    return np.asarray(constraint.project(mu - eta * gradient))


class GeneralizedMKLSearch(Descent):
    """``krr-gmkl``: Algorithm 1, corrected, with backtracking."""

    settings: GradientSettings = GeneralizedMKL()

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, object]]:
        """Return a step of the size of the weights, unless one was given."""
        steepest = float(np.abs(at.gradient).max(initial=0.0))
        return self.given_step(float(at.mu.max()) / steepest if steepest > 0.0 else 1.0), {}

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state: one projected step that lowers the objective."""
        at, eta = self.backtrack(
            state,
            lambda eta: gradient_step(state.at.mu, state.at.gradient, eta, self.constraint),
            shrink=0.8,
            step_size=state.step_size,
        )
        if at is None:
            return replace(state, stalled=True)
        if self.settings.grow is not None:
            return replace(state, at=at, step_size=eta * self.settings.grow)
        old = state.at
        eta = spectral_step(at.mu - old.mu, at.gradient - old.gradient, eta)
        return replace(state, at=at, step_size=eta)


class GeneralizedMKLForLabelsSearch(GeneralizedMKLSearch):
    """``svm-gmkl``: Algorithm 7, corrected."""

    settings: GradientSettings = GeneralizedMKLForLabels()
