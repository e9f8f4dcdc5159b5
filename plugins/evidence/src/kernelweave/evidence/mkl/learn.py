"""Weights and noise of largest evidence, with a proof: L-BFGS and convex steps.

log det lies below its tangent, so at S₀ the evidence lies below a problem that is convex in w and
σ²: ridge kernel learning under the weighted trace ½ Σ wⱼ tr(S₀⁻¹Kⱼ). Its minimiser has no smaller
evidence than S₀, and where S₀ is its minimiser, S₀ is stationary. ``evidence-step`` solves it with
proved bounds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import Kernel, Problem, Result, Status, clock, solve
from kernelweave.kernels_core.arrays import FloatArray, RealArray, Rows
from kernelweave.kernels_core.grams.precomputed import PrecomputedDictionary, PrecomputedKernel
from kernelweave.kernels_core.kernels import FittedDictionary

from .criteria import WeightEvidence, climb, first_weights
from .step import PricedOrthant

# Evaluations at most: each takes a factorisation, and the convex steps go on from wherever it ends.
_LBFGS: Any = {"maxfun": 100, "ftol": 1e-8, "gtol": 1e-4, "maxcor": 20}
# A kernel of less than this share of the targets' variance is tried at 0, where the logarithm of
# its weight would only crawl to; it stays there if the evidence does not fall.
_NOTHING = 1e-4
_ENDS = (Status.MAX_TIME, Status.INTERRUPTED, Status.STALLED)


@dataclass(frozen=True, eq=False)
class NoisyFamily:
    """K(w) + (w₀ + floor) D: the last weight is what the noise has above its floor.

    `stored`: the kernels on the training points; `share` of shape (n,): diagonal of D;
    `premise`: what the bounds are of.
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    stored: FittedDictionary | PrecomputedDictionary
    share: FloatArray
    premise: str = (
        "the bounds are of the convex problem that touches the negative log evidence at these "
        "weights; where they meet, the weights are a stationary point of the evidence, not its "
        "global maximum"
    )

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
    parameters = first_weights(evidence)
    value = evidence.at(parameters).value
    descent, status = [value], Status.MAX_ITER
    for _ in range(max_iter):
        if quick and y.any():
            parameters, value = _climb(evidence, parameters, value)
        result = bounded(problem, evidence.at(parameters).prices, parameters, tol, verbose)
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
    last = bounded(problem, evidence.at(parameters).prices, parameters, 1.0, 0)
    return replace(last, status=status), descent


def _climb(
    evidence: WeightEvidence, parameters: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Return parameters of no smaller evidence, some weights at 0 perhaps, and L there."""
    best, reached = climb(evidence, parameters, _LBFGS)
    if not reached < value:
        best, reached = parameters, value
    # weights that logarithms would take for ever to make 0
    fewer, small = best.copy(), best[:-1] * evidence.sizes < _NOTHING
    fewer[:-1][small] = 0.0
    if not (small & (best[:-1] > 0.0)).any() or clock.expired():
        return best, reached
    other = evidence.at(fewer).value
    return (fewer, other) if other <= reached else (best, reached)


def bounded(
    problem: Problem, prices: FloatArray, start: FloatArray, tol: float, verbose: int
) -> Result:
    """Return the result of the convex problem of some prices, begun at some weights."""
    limits: dict[str, Any] = {"tol": tol, "max_iter": 50, "on_interrupt": "return"}
    with warnings.catch_warnings():
        # a limit is the search's own to report
        warnings.simplefilter("ignore")
        return solve(
            replace(problem, constraint=PricedOrthant(prices=tuple(prices.tolist()))),
            "evidence-step", start=start, verbose=verbose, **limits,
        )  # fmt: skip
