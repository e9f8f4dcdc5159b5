"""Weights and noise of largest evidence: L-BFGS on logarithms, and convex steps with a proof.

log det lies below its tangent, so at S₀ the evidence lies below a problem that is convex in w and
σ²: ridge kernel learning under the weighted trace ½ Σ wⱼ tr(S₀⁻¹Kⱼ). Its minimiser has no smaller
evidence than S₀, and where S₀ is its minimiser, S₀ is stationary. `EvidenceStep` solves it with
proved bounds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Result, Status, clock, solve
from kernelweave.kernels_core.arrays import FloatArray
from scipy.optimize import minimize

from .objective import FLOOR, WeightEvidence
from .prices import PricedOrthant

# Share of the targets' variance that the search begins with as noise: all kernels and the noise can
# grow or fall from there.
_FIRST_NOISE = 0.1
# of the weights times the mean diagonals of their matrices, and of the noise
_LOG_BOX, _LOG_NOISE = (-16.0, 9.0), 3.0
# Each takes a factorisation; the convex steps that follow go on from wherever it ends.
_EVALUATIONS = 100
# Where S is not positive definite: more than the evidence of any that is, and finite for L-BFGS.
_WORST = 1e25
# A kernel of less than this share of the targets' variance is tried at 0, where the logarithm of
# its weight would only crawl to; it stays there if the evidence does not fall.
_NOTHING = 1e-4
_ENDS = (Status.MAX_TIME, Status.INTERRUPTED, Status.STALLED)


class _Stopped(Exception):  # noqa: N818
    """The time limit passed or somebody pressed Ctrl-C."""


@dataclass
class LearnedWeights:
    """What a search leaves.

    `result`: of the convex step at the weights: its parameters are the weights and, last, what the
    noise has above its floor; `descent`: L at the start and after each round; it never rises.
    """

    result: Result
    descent: list[float] = field(default_factory=list)

    @property
    def weights(self) -> FloatArray:
        """One per kernel."""
        return np.asarray(self.result.parameters[:-1])

    @property
    def noise(self) -> float:
        """σ², in units of the targets' variance."""
        return FLOOR + float(self.result.parameters[-1])


def learn_weights(
    problem: Problem, *, quick: bool, tol: float, max_iter: int, verbose: int = 0
) -> LearnedWeights:
    """Descend the negative log evidence until a convex step has nothing left to gain.

    - `problem`: a `NoisyFamily`, ridge regression at the noise's floor, standardised targets
    - `quick`: whether L-BFGS comes before each convex step
    - `tol`: relative gap of the convex step at the weights themselves to end with
    - `max_iter`: rounds at most
    - `verbose`: positive: a line per iteration of the convex steps

    Returns: with the bounds of the last convex step.
    """
    family, y = problem.family, np.asarray(problem.targets, dtype=np.float64)
    weight = 1.0 / family.share
    evidence = WeightEvidence(family.stored.grams, y, weight)
    parameters = _start(evidence)
    value = evidence(parameters[:-1], FLOOR + parameters[-1]).value
    descent = [value]
    status = Status.MAX_ITER
    for _ in range(max_iter):
        if quick and y.any():
            parameters, value = _climb(evidence, parameters, value)
        result = _convex_step(problem, evidence, parameters, tol, verbose)
        if result.n_iter == 0:
            return LearnedWeights(result, [*descent, value])
        new = evidence(result.parameters[:-1], FLOOR + result.parameters[-1]).value
        if new < value:
            parameters, value = result.parameters, new
        descent.append(value)
        if result.status in _ENDS or new > value:
            status = result.status if result.status in _ENDS else Status.STALLED
            break
    # the bounds of these parameters, not of those before
    result = _convex_step(problem, evidence, parameters, 1.0, 0)
    return LearnedWeights(replace(result, status=status), descent)


def _start(evidence: WeightEvidence) -> FloatArray:
    """Return weights that share the targets' variance equally, and a tenth of it as noise."""
    size = _sizes(evidence)
    some = size > 0.0
    weights = np.where(some, 1.0 / np.where(some, size, 1.0), 0.0) / max(1, some.sum())
    if not evidence.targets.any():
        return np.zeros(len(size) + 1)
    return np.append(weights, _FIRST_NOISE)


def _sizes(evidence: WeightEvidence) -> FloatArray:
    """Return the mean diagonal of each matrix, shape (q,)."""
    return np.array([float(np.diagonal(K).mean()) for K in evidence.stack])


def _climb(
    evidence: WeightEvidence, parameters: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Return parameters of no smaller evidence, by L-BFGS on the logarithms of positive ones."""
    free = np.flatnonzero(parameters[:-1] > 0.0)
    if len(free) < len(evidence.stack):
        evidence = replace(evidence, stack=evidence.stack[free])
    size = np.append(_sizes(evidence), 1.0)
    best = parameters, value

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        if clock.expired():
            raise _Stopped
        at = np.exp(theta) / size
        found = evidence(at[:-1], at[-1])
        if not np.isfinite(found.value):
            return _WORST, np.zeros_like(theta)
        if found.value < best[1]:
            full = np.zeros(len(parameters))
            full[free], full[-1] = at[:-1], max(at[-1] - FLOOR, 0.0)
            best = full, found.value
        return found.value, at * found.slopes

    first = np.append(np.log(parameters[free] * size[:-1]), np.log(FLOOR + parameters[-1]))
    box = [_LOG_BOX] * len(free) + [(np.log(FLOOR), _LOG_NOISE)]
    options: Any = {"maxfun": _EVALUATIONS, "ftol": 1e-8, "gtol": 1e-4, "maxcor": 20}
    try:
        minimize(objective, first, jac=True, method="L-BFGS-B", bounds=box, options=options)
    except _Stopped:
        return best
    return _pruned(evidence, free, *best)


def _pruned(
    evidence: WeightEvidence, free: npt.NDArray[np.intp], parameters: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Return parameters without weights that logarithms would take for ever to make 0."""
    small = free[parameters[free] * _sizes(evidence) < _NOTHING]
    fewer = parameters.copy()
    fewer[small] = 0.0
    other = evidence(fewer[free], FLOOR + fewer[-1]).value if len(small) else np.inf
    return (fewer, other) if other <= value else (parameters, value)


def _majorised(problem: Problem, evidence: WeightEvidence, parameters: FloatArray) -> Problem:
    """Return the convex problem that touches the evidence at some parameters."""
    prices = evidence(parameters[:-1], FLOOR + parameters[-1]).prices
    return replace(problem, constraint=PricedOrthant(prices=tuple(prices.tolist())))


def _convex_step(
    problem: Problem, evidence: WeightEvidence, parameters: FloatArray, tol: float, verbose: int
) -> Result:
    """Return the minimiser of the convex problem at some parameters, with its bounds."""
    with warnings.catch_warnings():
        # a limit is the search's own to report
        warnings.simplefilter("ignore")
        return solve(
            _majorised(problem, evidence, parameters),
            "evidence-step",
            tol=tol,
            max_iter=50,
            verbose=verbose,
            on_interrupt="return",
            start=parameters,
        )
