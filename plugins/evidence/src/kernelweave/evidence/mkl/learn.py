"""Weights and noise of largest evidence: L-BFGS on logarithms, and convex steps with a proof.

log det lies below its tangent, so at S₀ the evidence lies below a problem that is convex in w and
σ²: ridge kernel learning under the weighted trace ½ Σ wⱼ tr(S₀⁻¹Kⱼ). Its minimiser has no smaller
evidence than S₀, and where S₀ is its minimiser, S₀ is stationary. ``evidence-step`` solves it with
proved bounds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from kernelweave.kernels_core import Kernel, Problem, Result, Status, clock, solve
from kernelweave.kernels_core.arrays import FloatArray, RealArray, Rows
from kernelweave.kernels_core.grams.precomputed import PrecomputedDictionary, PrecomputedKernel
from kernelweave.kernels_core.kernels import FittedDictionary
from scipy.linalg import lapack
from scipy.optimize import minimize

from ..objective import inverse_of
from ..terms import Stopped
from .step import PricedOrthant

# the least noise, in units of the targets' variance
FLOOR = 1e-6
# Share of the targets' variance that the search begins with as noise: all kernels and the noise can
# grow or fall from there.
_FIRST_NOISE = 0.1
# of the weights times the mean diagonals of their matrices, and of the noise
_LOG_BOX, _LOG_NOISE = (-16.0, 9.0), 3.0
# Evaluations at most: each takes a factorisation, and the convex steps go on from wherever it ends.
_LBFGS: Any = {"maxfun": 100, "ftol": 1e-8, "gtol": 1e-4, "maxcor": 20}
# Where S is not positive definite: more than the evidence of any that is, and finite for L-BFGS.
_WORST = 1e25
# A kernel of less than this share of the targets' variance is tried at 0, where the logarithm of
# its weight would only crawl to; it stays there if the evidence does not fall.
_NOTHING = 1e-4
_ENDS = (Status.MAX_TIME, Status.INTERRUPTED, Status.STALLED)


@dataclass(frozen=True, eq=False)
class NoisyFamily:
    """K(w) + (w₀ + floor) D: the last weight is what the noise has above its floor.

    `stored`: the kernels on the training points; `share` of shape (n,): diagonal of D.
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    premise: ClassVar[str] = (
        "the bounds are of the convex problem that touches the negative log evidence at these "
        "weights; where they meet, the weights are a stationary point of the evidence, not its "
        "global maximum"
    )
    stored: FittedDictionary | PrecomputedDictionary
    share: FloatArray

    @property
    def grams(self) -> list[RealArray]:
        """The matrices, that of the noise last."""
        return [*self.stored.grams, np.diag(self.share)]

    def __len__(self) -> int:
        return len(self.stored) + 1

    def fit_grams(self, X: Rows) -> NoisyFamily:
        """Return itself: ``X`` are the training points."""
        return self

    def kernel(self, weights: FloatArray) -> Kernel | PrecomputedKernel:
        """Return the learned kernel, without the noise."""
        return self.stored.kernel(weights[:-1])


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


@dataclass(frozen=True, eq=False)
class WeightEvidence:
    """L(w, σ²) = ½ Σₜ yₜᵀS⁻¹yₜ + ½T log det S + ½Tr log σ², S = Σ wⱼKⱼ + σ²D.

    `stack` of shape (q, n, n): Kⱼ; `targets` of shape (T, n): y, centred and scaled; `weight` of
    shape (n,): D = diag(1/weight); r = Σ max(weight − 1, 0), so that a row of weight 2 is the row
    twice.
    """

    stack: RealArray
    targets: FloatArray
    weight: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """The mean diagonal of each matrix, shape (q,)."""
        return np.array([float(np.diagonal(K).mean()) for K in self.stack])

    def at(self, parameters: FloatArray) -> Tangent:
        """Return L at weights and, last, what the noise has above its floor."""
        return self(parameters[:-1], FLOOR + parameters[-1])

    def __call__(self, weights: FloatArray, noise: float) -> Tangent:
        """Return L and its slopes at w of shape (q,) and σ²: n³ + 2qn² flops."""
        T, n = self.targets.shape
        repeats = float(np.maximum(self.weight - 1.0, 0.0).sum())
        flat = self.stack.reshape(len(weights), n * n)
        S = (weights @ flat).reshape(n, n)
        S[np.diag_indices_from(S)] += noise / self.weight
        factor, info = lapack.dpotrf(S.T, lower=0, clean=0, overwrite_a=1)
        if info:
            nothing = np.zeros(len(weights) + 1)
            return Tangent(np.inf, nothing, nothing)
        dual, _ = lapack.dpotrs(factor, self.targets.T, lower=0)
        value = 0.5 * float(np.sum(dual.T * self.targets))
        value += T * float(np.log(factor.diagonal()).sum()) + 0.5 * T * repeats * np.log(noise)
        half = inverse_of(factor)
        diagonal = half.diagonal().copy()
        inverse = np.triu(half)
        inverse += inverse.T
        inverse[np.diag_indices_from(inverse)] = diagonal
        prices, forms = flat @ inverse.ravel(), flat @ (dual @ dual.T).ravel()
        own_price = np.sum(diagonal / self.weight) + repeats / noise
        own_form = np.sum(dual**2 / self.weight[:, None])
        return Tangent(value, T * np.append(prices, own_price), np.append(forms, own_form))


def learn_weights(
    problem: Problem, *, quick: bool, tol: float, max_iter: int, verbose: int = 0
) -> tuple[Result, list[float]]:
    """Descend the negative log evidence until a convex step has nothing left to gain.

    - `problem`: a `NoisyFamily`, ridge regression at the noise's floor, standardised targets
    - `quick`: whether L-BFGS comes before each convex step
    - `tol`: relative gap of the convex step at the weights themselves to end with
    - `max_iter`: rounds at most

    Returns the result of the convex step at the weights, which are its parameters, and L at the
    start and after each round; it never rises.
    """
    y = np.asarray(problem.targets, dtype=np.float64)
    evidence = WeightEvidence(problem.family.stored.grams, y, 1.0 / problem.family.share)
    parameters, some = np.zeros(len(evidence.stack) + 1), evidence.sizes > 0.0
    if y.any():
        # weights share the targets' variance equally
        parameters[:-1][some] = 1.0 / evidence.sizes[some] / max(1, some.sum())
        parameters[-1] = _FIRST_NOISE
    value = evidence.at(parameters).value
    descent, status = [value], Status.MAX_ITER
    for _ in range(max_iter):
        if quick and y.any():
            parameters, value = _climb(evidence, parameters, value)
        result = _convex_step(problem, evidence, parameters, tol, verbose)
        if result.n_iter == 0:
            return result, [*descent, value]
        new = evidence.at(result.parameters).value
        if new < value:
            parameters, value = result.parameters, new
        descent.append(value)
        if result.status in _ENDS or new > value:
            status = result.status if result.status in _ENDS else Status.STALLED
            break
    # the bounds of these parameters, not of those before
    return replace(_convex_step(problem, evidence, parameters, 1.0, 0), status=status), descent


def _climb(
    evidence: WeightEvidence, parameters: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Return parameters of no smaller evidence, by L-BFGS on the logarithms of positive ones."""
    free = np.flatnonzero(parameters[:-1] > 0.0)
    if len(free) < len(evidence.stack):
        evidence = replace(evidence, stack=evidence.stack[free])
    size, best = np.append(evidence.sizes, 1.0), (parameters, value)

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        if clock.expired():
            raise Stopped
        at = np.exp(theta) / size
        result = evidence(at[:-1], at[-1])
        if not np.isfinite(result.value):
            return _WORST, np.zeros_like(theta)
        if result.value < best[1]:
            full = np.zeros(len(parameters))
            full[free], full[-1] = at[:-1], max(at[-1] - FLOOR, 0.0)
            best = full, result.value
        return result.value, at * result.slopes

    first = np.append(np.log(parameters[free] * size[:-1]), np.log(FLOOR + parameters[-1]))
    box = [_LOG_BOX] * len(free) + [(np.log(FLOOR), _LOG_NOISE)]
    try:
        minimize(objective, first, jac=True, method="L-BFGS-B", bounds=box, options=_LBFGS)
    except Stopped:
        return best
    # weights that logarithms would take for ever to make 0
    fewer = best[0].copy()
    small = free[fewer[free] * size[:-1] < _NOTHING]
    fewer[small] = 0.0
    other = evidence(fewer[free], FLOOR + fewer[-1]).value if len(small) else np.inf
    return (fewer, other) if other <= best[1] else best


def _convex_step(
    problem: Problem, evidence: WeightEvidence, parameters: FloatArray, tol: float, verbose: int
) -> Result:
    """Return the minimiser of the convex problem that touches the evidence at some parameters."""
    prices = PricedOrthant(prices=tuple(evidence.at(parameters).prices.tolist()))
    limits: dict[str, Any] = {"tol": tol, "max_iter": 50, "on_interrupt": "return"}
    with warnings.catch_warnings():
        # a limit is the search's own to report
        warnings.simplefilter("ignore")
        return solve(
            replace(problem, constraint=prices), "evidence-step", start=parameters, verbose=verbose,
            **limits,
        )  # fmt: skip
