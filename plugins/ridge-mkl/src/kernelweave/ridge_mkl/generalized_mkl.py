"""Generalized MKL: projected gradient for any learner, set and degree (Algorithms 1 and 7).

As printed, Algorithm 7 takes the gradient at α where it is (Yα)ᵀHₖ(Yα): u = Yα here. The paper's
step 1, multiplied by 0.8 when the objective rises, is `step=2.0, grow=1.0`: its objective is twice
that of a problem. By default the first step has the size of the weights, and each iteration first
tries the Barzilai-Borwein length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .descent import Descent, State
from .objective import FloatArray
from .oracle import Evaluation
from .spectral_gradient import spectral_step


def gradient_step(mu: FloatArray, gradient: FloatArray, eta: float, constraint: Any) -> FloatArray:
    """Return the projection of μ − η(∇r − αᵀHₖα) onto the set (Algorithm 1, lines 7 and 8).

    Parameters
    ----------
    mu, gradient : ndarray of shape (p,)
        Weights and gradient of F + r.
    eta : float
        η.
    constraint : LqBall or Orthant
        The set.

    Returns
    -------
    ndarray of shape (p,)
        The next weights.
    """
    return np.asarray(constraint.project(mu - eta * gradient))


class GeneralizedMKL(Descent):
    """``krr-gmkl`` and ``svm-gmkl``: Algorithms 1 and 7, corrected, with backtracking."""

    def init(
        self,
        problem: Any,
        random_state: np.random.RandomState,
        *,
        grow: float | None = None,
        **params: Any,
    ) -> State:
        """Return the first state.

        Parameters
        ----------
        problem : Problem
            As in `Descent.init`.
        random_state : RandomState
            As in `Descent.init`.
        grow : float, optional
            Factor of the step after a success, at least 1, instead of the Barzilai-Borwein
            length; 1 is the paper's.
        **params
            As in `Descent.init`; ``step`` is twice the paper's η.
        """
        if grow is not None and not grow >= 1.0:
            raise ValueError(f"grow must be None or at least 1, got {grow!r}")
        self.grow = grow
        return super().init(problem, random_state, **params)

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, Any]]:
        """Return a step of the size of the weights, unless one was given."""
        if self.given_step is not None:
            return float(self.given_step), {}
        steepest = float(np.abs(at.gradient).max(initial=0.0))
        return (float(at.mu.max()) / steepest if steepest > 0.0 else 1.0), {}

    def advance(self, state: State) -> State:
        """Return the next state: one projected step that lowers the objective."""
        at, eta = self.backtrack(
            state,
            lambda eta: gradient_step(state.at.mu, state.at.gradient, eta, self.constraint),
            shrink=0.8,
            step_size=state.step_size,
        )
        if at is None:
            return replace(state, stalled=True)
        if self.grow is not None:
            return replace(state, at=at, step_size=eta * self.grow)
        old = state.at
        eta = spectral_step(at.mu - old.mu, at.gradient - old.gradient, eta)
        return replace(state, at=at, step_size=eta)
