"""Weights along a path of priors, by two criteria; held-out rows say how they are combined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, Result, Status, clock
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import NotPSDError

from .criteria import (
    LeftOutDensity,
    WeightCriterion,
    WeightEvidence,
    climb,
    first_weights,
)
from .learn import bounded

# The path: what weights are judged by, and λ of the prior that pulls their logarithms together.
# Infinite, the kernels have one weight. Of three tables with three draws of rows each, the evidence
# at 0.5 alone has a mean R² of .820, densities at 0.5 alone .826, all four combined .829.
PATH: tuple[tuple[type[WeightCriterion], float], ...] = (
    (LeftOutDensity, np.inf),
    (LeftOutDensity, 5.0),
    (LeftOutDensity, 0.5),
    (WeightEvidence, 0.5),
)
_LBFGS: Any = {"maxfun": 25, "ftol": 1e-5, "gtol": 1e-3, "maxcor": 20}
# of the objective: what the prices of weights that others chose leave between its bounds
_ROOM = 1e-6
_INDEFINITE = (
    "a kernel or the sum of kernels is not positive semidefinite: leave out those that are not, or "
    'let their dictionary mend them, such as with psd="clip"'
)


def along_path(problem: Problem) -> list[FloatArray]:
    """Return the weights and the noise of each criterion and prior of the path, shape (q + 1,).

    `problem`: of a `NoisyFamily`, with standardised targets. Each search begins where the one
    before ended; once time is up the others are equal to it.
    """
    stack, mass = problem.family.stored.grams, 1.0 / problem.family.share
    targets = np.asarray(problem.targets, dtype=np.float64)
    found: list[FloatArray] = []
    for kind, precision in PATH:
        criterion = kind(stack, targets, mass)
        at = found[-1] if found else first_weights(criterion)
        if at.any():
            at, value = climb(criterion, at, _LBFGS, precision)
            if not (np.isfinite(value) or clock.expired()):
                raise NotPSDError(_INDEFINITE)
        found.append(at)
    return found


def solved_at(problem: Problem, parameters: FloatArray, tol: float) -> tuple[Result, float]:
    """Return ridge regression at given weights with its bounds, and the negative log evidence.

    The problem is convex in the weights too, with prices for which these are the best: what they
    cost is ½ Σ wⱼuᵀKⱼu, and little room for rounding. `tol`: the gap that is called converged.
    """
    y, stack = np.asarray(problem.targets, dtype=np.float64), problem.family.stored.grams
    at = WeightEvidence(stack, y, 1.0 / problem.family.share).at(parameters)
    if at.forms.min() < -_ROOM * np.abs(at.forms).max():
        raise NotPSDError(_INDEFINITE)
    forms = np.maximum(at.forms, 0.0)
    shares = forms * parameters
    room = np.zeros_like(shares)
    np.divide(_ROOM * shares.sum() / len(shares), parameters, out=room, where=parameters > 0.0)
    result = bounded(problem, forms + room, parameters, 1.0, 0)
    if result.status.success and result.gap > tol:
        result = replace(result, status=Status.STALLED)
    return result, at.value
