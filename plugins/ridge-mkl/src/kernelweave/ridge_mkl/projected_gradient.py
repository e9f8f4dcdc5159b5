"""Projected gradients: spectral steps, and the paper's (Algorithms 1, 2 and 5 to 7).

As printed, Algorithm 7 takes the gradient at α where it is (Yα)ᵀHₖ(Yα): u = Yα here. The paper's
step 1, multiplied by 0.8 when the objective rises, is `step=2.0, grow=1.0`: its objective is twice
that of a problem. By default the first step has the size of the weights, and each iteration first
tries the Barzilai-Borwein length.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .descent import ARMIJO, Descent, DescentState
from .oracle import Evaluation
from .settings import (
    DescentSettings,
    GeneralizedMKL,
    GeneralizedMKLForLabels,
    GradientSettings,
    SpectralProjectedGradient,
)

# As in the paper: values that a step is compared with.
_MEMORY = 10
# Each shortens the step to nine tenths at most, and to half where interpolation says nothing: what
# so many do not bring down is no direction of descent in rounding.
_MAX_TRIALS = 40
# Factors of 0.8 bring a step to a millionth of itself in so many trials: where that does not help
# the gradient is rounding.
_MAX_SHRINKS = 60


def spectral_step(s: FloatArray, y: FloatArray, fallback: float) -> float:
    """Return the Barzilai-Borwein length sᵀs / sᵀy, within 10¹⁰ of the fallback either way.

    `s`, `y` are differences of the last two points and gradients; where sᵀy ≤ 0 it is ten times the
    fallback.
    """
    bend = float(s @ y)
    length = float(s @ s) / bend if bend > 0.0 else 10.0 * fallback
    return float(np.clip(length, 1e-10 * fallback, 1e10 * fallback))


class SpectralProjectedGradientSearch(Descent):
    """``krr-spg``: no Hessian, one evaluation per iteration mostly; any degree and set.

    Barzilai-Borwein steps with a nonmonotone line search: Birgin, Martínez and Raydan, "Nonmonotone
    spectral projected gradient methods on convex sets", SIAM J. Optim. 10 (2000). Over a ball it
    descends on −1/F (see `Oracle.scaled`).
    """

    settings: DescentSettings = SpectralProjectedGradient()

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, object]]:
        """Return a step of the size of the weights, and the values seen."""
        value, gradient, _ = self.oracle.scaled(at)
        steepest = float(np.abs(gradient).max(initial=0.0))
        step = float(at.mu.max()) / steepest if steepest > 0.0 else 1.0
        return step, {"values": [value], "scale": step}

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state."""
        at, memory = state.at, state.memory
        _, gradient, _ = self.oracle.scaled(at)
        target = np.asarray(self.constraint.project(at.mu - state.step_size * gradient))
        direction = target - at.mu
        slope = float(gradient @ direction)
        if not slope < 0.0:
            return replace(state, stalled=True)
        new = self._search(at, direction, slope, max(memory["values"]))
        if new is None:
            return replace(state, stalled=True)
        value, new_gradient, _ = self.oracle.scaled(new)
        step = spectral_step(new.mu - at.mu, new_gradient - gradient, memory["scale"])
        values = [*memory["values"], value][-_MEMORY:]
        return replace(
            state, at=new, step_size=step, memory={"values": values, "scale": memory["scale"]}
        )

    def _search(
        self, at: Evaluation, direction: FloatArray, slope: float, reference: float
    ) -> Evaluation | None:
        """Return the first acceptable point along the direction, by quadratic interpolation."""
        start, _, _ = self.oracle.scaled(at)
        step = 1.0
        for _ in range(_MAX_TRIALS):
            mu = at.mu + step * direction
            if np.array_equal(mu, at.mu):
                return None
            new = self.oracle.evaluate(mu)
            value, _, _ = self.oracle.scaled(new)
            if value <= reference + ARMIJO * step * slope:
                return new
            bend = 2.0 * (value - start - step * slope)
            best = -slope * step * step / bend if bend > 0.0 else 0.5 * step
            step = best if 0.1 * step <= best <= 0.9 * step else 0.5 * step
        return None


class GeneralizedMKLSearch(Descent):
    """``krr-gmkl``, and each of the paper's forms: Algorithm 1, corrected, with backtracking.

    ``krr-pgd`` (Algorithm 2) is μ ← P(μ + η v), vₖ = αᵀKₖα, over the ℓq ball. As printed, line 7
    rescales μ onto the sphere, whose fixed points are optimal at q = 2 only (F stays 11–12 % too
    high at q = 1); here μ is projected, which is right for every q. ``krr-rpgd`` descends on
    F + β‖μ‖² over the orthant. ``krr-pgd2`` and ``krr-rpgd2`` (Algorithms 5 and 6) are the same for
    products of d ≥ 2 kernels. Corrected there: α solves with the Hadamard power; Algorithm 6
    descends (printed, it climbs); a zero start, a stationary maximum, is refused. The paper's
    Proposition 2.3 (convex for small λ) is false; the problem is convex in powers of μ where d ≤ q,
    see `LqBall.product_bound`, and there one start ends with a proved gap.
    """

    settings: GradientSettings = GeneralizedMKL()

    def first_step(self, at: Evaluation) -> tuple[float, dict[str, object]]:
        """Return a step of the size of the weights, unless one was given."""
        steepest = float(np.abs(at.gradient).max(initial=0.0))
        return self.given_step(float(at.mu.max()) / steepest if steepest > 0.0 else 1.0), {}

    def advance(self, state: DescentState) -> DescentState:
        """Return the next state: one projected step that lowers the objective."""
        old, eta = state.at, state.step_size
        for _ in range(_MAX_SHRINKS):
            # Algorithm 1, lines 7 and 8
            mu = np.asarray(self.constraint.project(old.mu - eta * old.gradient))
            if np.array_equal(mu, old.mu):
                break
            at = self.oracle.evaluate(mu)
            # below the rounding of the objective only the bounds still tell which is better
            equal = at.value <= old.value + old.noise
            if at.value < old.value or (equal and at.upper - at.lower < old.upper - old.lower):
                if self.settings.grow is not None:
                    return replace(state, at=at, step_size=eta * self.settings.grow)
                eta = spectral_step(at.mu - old.mu, at.gradient - old.gradient, eta)
                return replace(state, at=at, step_size=eta)
            eta *= 0.8
        return replace(state, stalled=True)


class GeneralizedMKLForLabelsSearch(GeneralizedMKLSearch):
    """``svm-gmkl``: Algorithm 7, corrected."""

    settings: GradientSettings = GeneralizedMKLForLabels()
