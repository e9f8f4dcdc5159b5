"""What weights are judged by: the evidence, and the density of each row given all others."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from scipy.linalg import lapack
from scipy.optimize import minimize

from ..objective import inverse_of
from ..terms import Stopped

# the least noise, in units of the targets' variance
FLOOR = 1e-6
# Share of the targets' variance that a search begins with as noise: all kernels and the noise can
# grow or fall from there.
FIRST_NOISE = 0.1
# of the weights times the mean diagonals of their matrices, and of the noise
_LOG_BOX, _LOG_NOISE = (-16.0, 9.0), 3.0
# Where S is not positive definite: more than the criterion of any that is, and finite for L-BFGS.
_WORST = 1e25


class Slope(NamedTuple):
    """A criterion L, infinite where S has no factor, and its gradient, that of the noise last."""

    value: float
    slopes: FloatArray


class Tangent(NamedTuple):
    """L, infinite where S has no factor, and what its slopes are made of.

    `prices` of shape (q + 1,): T tr(S⁻¹Kⱼ), that of the noise last: slopes of the concave part of
    2L; `forms` of shape (q + 1,): Σₜ aₜᵀKⱼaₜ with aₜ = S⁻¹yₜ.
    """

    value: float
    prices: FloatArray
    forms: FloatArray

    @property
    def slopes(self) -> FloatArray:
        """½ (prices − forms), the gradient of L."""
        return 0.5 * (self.prices - self.forms)


class _System(NamedTuple):
    """S⁻¹ of shape (n, n), S⁻¹y of shape (n, T), and log det S."""

    inverse: FloatArray
    dual: FloatArray
    log_det: float


@dataclass(frozen=True, eq=False)
class WeightCriterion:
    """A criterion of w and σ² in S = Σ wⱼKⱼ + σ²D.

    `stack` of shape (q, n, n): Kⱼ; `targets` of shape (T, n): y, centred and scaled; `weight` of
    shape (n,): D = diag(1/weight).
    """

    stack: RealArray
    targets: FloatArray
    weight: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """The mean diagonal of each matrix, shape (q,)."""
        return np.array([float(np.diagonal(K).mean()) for K in self.stack])

    @property
    def repeats(self) -> float:
        """r = Σ max(weight − 1, 0): ½Tr log σ² makes a row of weight 2 the row twice."""
        return float(np.maximum(self.weight - 1.0, 0.0).sum())

    def __call__(self, weights: FloatArray, noise: float) -> Slope | Tangent:
        """Return L and its slopes at w of shape (q,) and σ²."""
        raise NotImplementedError

    @property
    def _flat(self) -> RealArray:
        q, n, _ = self.stack.shape
        return self.stack.reshape(q, n * n)

    def _solved(self, weights: FloatArray, noise: float) -> _System | None:
        n = self.targets.shape[1]
        S = (weights @ self._flat).reshape(n, n)
        S[np.diag_indices_from(S)] += noise / self.weight
        factor, info = lapack.dpotrf(S.T, lower=0, clean=0, overwrite_a=1)
        if info:
            return None
        dual, _ = lapack.dpotrs(factor, self.targets.T, lower=0)
        log_det = 2.0 * float(np.log(factor.diagonal()).sum())
        half = inverse_of(factor)
        inverse = np.triu(half)
        inverse += np.triu(half, 1).T
        return _System(inverse, dual, log_det)


class WeightEvidence(WeightCriterion):
    """L(w, σ²) = ½ Σₜ yₜᵀS⁻¹yₜ + ½T log det S + ½Tr log σ², the negative log evidence."""

    def at(self, parameters: FloatArray) -> Tangent:
        """Return L at weights and, last, what the noise has above its floor."""
        return self(parameters[:-1], FLOOR + parameters[-1])

    def __call__(self, weights: FloatArray, noise: float) -> Tangent:
        """Return L and its slopes at w of shape (q,) and σ²: n³ + 2qn² flops."""
        T, system = len(self.targets), self._solved(weights, noise)
        if system is None:
            nothing = np.zeros(len(weights) + 1)
            return Tangent(np.inf, nothing, nothing)
        inverse, dual, log_det = system
        value = 0.5 * float(np.sum(dual.T * self.targets))
        value += 0.5 * T * (log_det + self.repeats * np.log(noise))
        prices, forms = self._flat @ inverse.ravel(), self._flat @ (dual @ dual.T).ravel()
        own_price = np.sum(inverse.diagonal() / self.weight) + self.repeats / noise
        own_form = np.sum(dual**2 / self.weight[:, None])
        return Tangent(value, T * np.append(prices, own_price), np.append(forms, own_form))


class LeftOutDensity(WeightCriterion):
    """L(w, σ²) = −Σᵢₜ log p(yᵢₜ | all other rows) + ½Tr log σ², up to a constant.

    With P = S⁻¹, aₜ = Pyₜ and d the diagonal of P, row i is predicted from the others with the
    residual aᵢₜ/dᵢ and the variance 1/dᵢ. Rasmussen and Williams, "Gaussian Processes for Machine
    Learning", 2006, section 5.4.2.
    """

    def __call__(self, weights: FloatArray, noise: float) -> Slope:
        """Return L and its slopes at w of shape (q,) and σ²: 2n³ + 2qn² flops."""
        T, system = len(self.targets), self._solved(weights, noise)
        if system is None:
            return Slope(np.inf, np.zeros(len(weights) + 1))
        P, a, _ = system
        d = P.diagonal()[:, None]
        value = 0.5 * float(np.sum(a**2 / d - np.log(d))) + 0.5 * T * self.repeats * np.log(noise)
        # the derivative by S: by a and d, which are functions of P, whose differential is −P dS P
        by_d = 0.5 * np.sum(a**2 / d**2 + 1.0 / d, axis=1)
        root = P * np.sqrt(by_d)
        slope = root @ root.T
        across = (P @ (a / d)) @ a.T
        slope -= 0.5 * (across + across.T)
        own = np.sum(slope.diagonal() / self.weight) + 0.5 * T * self.repeats / noise
        return Slope(value, np.append(self._flat @ slope.ravel(), own))


def first_weights(criterion: WeightCriterion) -> FloatArray:
    """Return weights that share the targets' variance equally, and some noise above its floor."""
    sizes = criterion.sizes
    some, parameters = sizes > 0.0, np.zeros(len(sizes) + 1)
    if criterion.targets.any():
        parameters[:-1][some] = 1.0 / sizes[some] / max(1, some.sum())
        parameters[-1] = FIRST_NOISE
    return parameters


def climb(
    criterion: WeightCriterion,
    parameters: FloatArray,
    limits: Any,
    precision: float = 0.0,
) -> tuple[FloatArray, float]:
    """Return parameters of no larger L, and L there, by L-BFGS on logarithms of positive ones.

    `limits`: SciPy's options; `precision`: λ of the prior ½λ Σ (log wⱼ − mean)² beside L, of
    weights times the sizes of their kernels; infinite where they share one weight.
    """
    free = np.flatnonzero(parameters[:-1] > 0.0)
    if len(free) < len(criterion.stack):
        criterion = replace(criterion, stack=criterion.stack[free])
    size, tied = np.append(criterion.sizes, 1.0), len(free) > 0 and not np.isfinite(precision)
    best, least, value = parameters, np.inf, np.inf

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, least, value
        if clock.expired():
            raise Stopped
        logs = np.append(np.resize(theta[:-1], len(free)), theta[-1])
        at = np.exp(logs) / size
        result = criterion(at[:-1], at[-1])
        if not np.isfinite(result.value):
            return _WORST, np.zeros_like(theta)
        slopes = at * result.slopes
        total = result.value
        if tied:
            slopes = np.append(slopes[:-1].sum(keepdims=True), slopes[-1])
        elif len(free):
            apart = logs[:-1] - logs[:-1].mean()
            total += 0.5 * precision * float(apart @ apart)
            slopes[:-1] += precision * apart
        if total < least:
            full = np.zeros(len(parameters))
            full[free], full[-1] = at[:-1], max(at[-1] - FLOOR, 0.0)
            best, least, value = full, total, result.value
        return total, slopes

    first = np.log(parameters[free] * size[:-1])
    first = first.mean(keepdims=True) if tied else first
    box = [_LOG_BOX] * len(first) + [(np.log(FLOOR), _LOG_NOISE)]
    start = np.append(first, np.log(FLOOR + parameters[-1]))
    with suppress(Stopped):
        minimize(objective, start, jac=True, method="L-BFGS-B", bounds=box, options=limits)
    return best, value
