"""Other points of the set, near returned parameters and far: is one of them better?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..formula.problem import Problem
from .referee import PointEvaluation, charge_of, primal_value, shares_outputs

# How far to go, as a share of the way or of the weights.
_SHARES = (0.01, 0.1, 0.5)


def better_point(
    problem: Problem, parameters: Any, at: PointEvaluation, *, same_support: bool = False
) -> tuple[float, str]:
    """Return the least primal value of the points tried, and which one it was.

    Every point is looked at by `primal_value`, and counts where it is in the set.
    """
    best, where = np.inf, ""
    for label, other in _points(problem, parameters, at):
        if same_support and np.any((np.asarray(other) > 0.0) & (np.asarray(parameters) <= 0.0)):
            continue
        value = primal_value(problem, other)
        if value < best:
            best, where = value, label
    return best, where


def _points(problem: Problem, parameters: Any, at: PointEvaluation) -> Iterator[tuple[str, Any]]:
    if getattr(problem.constraint, "is_point", False):
        return
    if hasattr(parameters, "output_kernel"):
        yield from _of_outputs(problem, parameters, at)
    elif np.ndim(parameters) == 2:
        yield from _of_matrices(problem, np.asarray(parameters), at)
    else:
        yield from _of_weights(problem, np.asarray(parameters, dtype=np.float64), at)


def _of_matrices(
    problem: Problem, P: FloatArray, at: PointEvaluation
) -> Iterator[tuple[str, FloatArray]]:
    """Steps towards the vertex that the dual point likes best, as Frank and Wolfe take them."""
    family, least = problem.family, problem.constraint.min_eig
    _, vectors = np.linalg.eigh(family.prepare(problem.X).moment(at.dual_coef))
    v = vectors[:, -1]
    rest = family.trace - least * family.n_P
    vertex = least * np.eye(family.n_P) + rest * np.outer(v, v)
    for share in _SHARES:
        yield f"{share:g} of the way to the best vertex", (1.0 - share) * P + share * vertex


def _of_weights(
    problem: Problem, weights: FloatArray, at: PointEvaluation
) -> Iterator[tuple[str, FloatArray]]:
    """Steps along the gradient, and exchanges between two weights."""
    gradient = _slopes(problem, weights, at.dual_coef)
    size = float(np.abs(weights).max())
    steepest = float(np.abs(gradient).max(initial=0.0))
    constraint = problem.constraint
    fixed = hasattr(constraint, "total") or hasattr(constraint, "k0")
    if steepest > 0.0:
        for share in _SHARES:
            moved = weights - share * (size + 1e-3) / steepest * gradient
            if hasattr(constraint, "project"):
                yield f"a gradient step of {share:g}, projected", constraint.project(moved)
            elif not fixed:
                yield f"a gradient step of {share:g}", np.maximum(moved, 0.0)
    order = np.argsort(gradient)
    positive = [i for i in order if weights[i] > 0.0]
    givers = positive[-2:]
    for taker in dict.fromkeys([*order[:2], *positive[:1]]):
        for giver in givers:
            for share in _SHARES if weights[taker] > 0.0 else (*_SHARES, 1.0):
                moved = weights.copy()
                moved[giver] -= share * weights[giver]
                moved[taker] += share * weights[giver]
                yield f"{share:g} of weight {giver} given to weight {taker}", moved


def _slopes(problem: Problem, weights: FloatArray, u: FloatArray) -> FloatArray:
    """Return the gradient of ``−½ Σ uₜᵀK(θ)uₜ`` and of the charge, by finite differences."""
    step = 1e-6 * (1.0 + float(np.abs(weights).max()))

    def value(theta: FloatArray) -> float:
        K = problem.family.gram(problem.X, theta)
        return charge_of(problem, theta) - 0.5 * float(np.einsum("ti,ij,tj->", u, K, u))

    here = value(weights)
    return np.array([(value(weights + step * e) - here) / step for e in np.eye(len(weights))])


def _of_outputs(problem: Problem, point: Any, at: PointEvaluation) -> Iterator[tuple[str, Any]]:
    """Weights that grow and shrink, and where tasks share one, output kernels that turn."""
    weights, L = np.asarray(point.weights), np.asarray(point.output_kernel)
    constraint = problem.constraint
    if getattr(constraint, "learn_input", False):
        for share in _SHARES:
            for factor in (1.0 + share, 1.0 / (1.0 + share)):
                yield f"weights times {factor:g}", replace(point, weights=factor * weights)
        for j in np.argsort(weights)[-2:]:
            for i in range(len(weights)):
                moved = weights.copy()
                moved[j] *= 0.9
                moved[i] += 0.1 * weights[j]
                yield f"a tenth of weight {j} given to {i}", replace(point, weights=moved)
    if shares_outputs(problem, point) and getattr(constraint, "learn_output", True):
        K = np.asarray(problem.family.gram(problem.X, weights))
        B = at.dual_coef @ K @ at.dual_coef.T
        v = np.linalg.eigh(B)[1][:, -1]
        for share in _SHARES:
            mixed = (1.0 - share) * L + share * np.trace(L) * np.outer(v, v)
            yield f"{share:g} of the way to the best output", replace(point, output_kernel=mixed)
