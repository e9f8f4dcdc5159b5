"""What is true at the parameters that an algorithm returned, from no number of the algorithm's.

The learner is solved anew at their Gram matrix: its primal value bounds the optimum from above,
wherever the parameters lie in the set, and its dual point from below. So a false bound is refuted
by an evaluation, not by how many algorithms say otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..formula.problem import Problem
from ..formula.set import lower_bound
from ..rounding import gamma

# Of the learner: its interval is short beside the slack that two sums of the same numbers need.
_TOL = 1e-8
# Relative: how far a sum, a trace or a projection may be from its set, by rounding.
OUTSIDE = 1e-9


@dataclass(frozen=True)
class PointEvaluation:
    """The learner at returned parameters.

    `lower`, `upper`: the objective there, the set's penalty included, lies between them; `bound`:
    what the learner's dual point proves of the whole problem, minus infinity where the kit knows no
    bound; `outside`: why the parameters are not in the set, if they are not; `dual_coef` (t, n).
    """

    lower: float
    upper: float
    bound: float
    outside: str
    dual_coef: FloatArray


def evaluate(problem: Problem, parameters: Any) -> PointEvaluation:
    """Return what the learner says at parameters."""
    outside = membership(problem, parameters)
    if outside and hasattr(parameters, "output_kernel"):
        return PointEvaluation(-np.inf, np.inf, -np.inf, outside, np.zeros(problem.targets.shape))
    charge = charge_of(problem, parameters)
    if shares_outputs(problem, parameters):
        u, low, high = _separable(problem, parameters)
        bound = -np.inf
    else:
        at = _solved(problem, parameters)
        u, low, high = at.dual_coef, at.lower_bound, at.upper_bound
        bound = _dual_bound(problem, at)
    return PointEvaluation(low + charge, high + charge, bound, outside, u)


def primal_value(problem: Problem, parameters: Any) -> float:
    """Return the upper bound that `evaluate` gives, infinity outside the set."""
    if membership(problem, parameters):
        return np.inf
    if shares_outputs(problem, parameters):
        high = _separable(problem, parameters)[2]
    else:
        high = float(_solved(problem, parameters).upper_bound)
    return high + charge_of(problem, parameters)


def _solved(problem: Problem, parameters: Any) -> Any:
    K = problem.family.gram(problem.X, parameters)
    return problem.learner.solve(K, problem.targets, sample_weight=problem.sample_weight, tol=_TOL)


def charge_of(problem: Problem, parameters: Any) -> float:
    """Return the set's penalty at some parameters, such as β‖μ‖² of the orthant."""
    penalty = getattr(problem.constraint, "penalty", None)
    return 0.0 if penalty is None else float(penalty(parameters))


def shares_outputs(problem: Problem, parameters: Any) -> bool:
    """Return whether several tasks share an output kernel, beside the kernel of the inputs."""
    return hasattr(parameters, "output_kernel") and len(problem.targets) > 1


def _separable(problem: Problem, parameters: Any) -> tuple[FloatArray, float, float]:
    """Return u and its dual and primal value of a squared loss, with the tasks' kernel K ⊗ L."""
    noise = problem.learner.noise(problem.n_samples, problem.sample_weight)
    kept = np.isfinite(noise)
    K = np.asarray(problem.family.gram(problem.X, parameters.weights))[np.ix_(kept, kept)]
    y = problem.targets[:, kept].ravel()
    both = np.kron(parameters.output_kernel, K)
    R = np.tile(noise[kept], len(problem.targets))
    v = np.linalg.solve(both + np.diag(R), y)
    f = both @ v
    u = np.zeros(problem.targets.shape)
    u[:, kept] = v.reshape(len(u), -1)
    form = float(v @ f)
    dual = float(v @ y) - 0.5 * form - 0.5 * float(R @ v**2)
    return u, dual, 0.5 * form + 0.5 * float(np.sum((y - f) ** 2 / R))


def _dual_bound(problem: Problem, at: Any) -> float:
    """Return the lower bound of the whole problem that a learner's dual point gives."""
    family, constraint = problem.family, problem.constraint
    u = at.dual_coef
    if hasattr(constraint, "worst") and getattr(family, "degree", 0) == 1:
        grams = np.asarray(family.fit_grams(problem.X).grams, dtype=np.float64)
        forms = np.einsum("ti,jik,tk->j", u, grams, u, optimize=True)
        diagonals = np.sqrt(np.abs(np.einsum("jii->ji", grams)))
        mass = ((diagonals @ np.abs(u).T) ** 2).sum(axis=1)
        error = gamma(2 * problem.n_samples + 8) * mass
        return float(lower_bound(at, constraint, np.maximum(forms, 0.0) + error))
    if hasattr(family, "prepare") and hasattr(constraint, "min_eig"):
        prepared = family.prepare(problem.X)
        D, error = prepared.moment(u), prepared.moment_error(u)
        least = constraint.min_eig
        top = max(float(np.linalg.eigvalsh(D)[-1]), 0.0) * (1.0 + OUTSIDE) + error
        rest = family.trace - least * family.n_P
        return float(at.scaled(rest * top + least * (float(np.trace(D)) + family.n_P * error)))
    return -np.inf


def membership(problem: Problem, parameters: Any) -> str:
    """Return why parameters are not in the set, in words; empty where nothing speaks against it."""
    constraint = problem.constraint
    if hasattr(parameters, "output_kernel"):
        L = np.asarray(parameters.output_kernel)
        if L.shape != (len(problem.targets),) * 2:
            return f"their output kernel has shape {L.shape} for {len(problem.targets)} tasks"
        tau = getattr(constraint, "trace_bound", lambda n: np.inf)(len(L))
        if np.trace(L) > tau * (1.0 + OUTSIDE):
            return f"their output kernel has the trace {np.trace(L)}, above {tau}"
        if np.linalg.eigvalsh(L)[0] < -OUTSIDE * np.abs(L).max():
            return "their output kernel is not positive semidefinite"
        return _of_weights(problem, np.asarray(parameters.weights))
    theta = np.asarray(parameters, dtype=np.float64)
    if theta.ndim == 2:
        return _of_matrix(problem, theta)
    return _of_weights(problem, theta)


def _of_matrix(problem: Problem, P: FloatArray) -> str:
    trace, least = problem.family.trace, problem.constraint.min_eig
    if abs(np.trace(P) - trace) > OUTSIDE * trace:
        return f"their trace is {np.trace(P)}, not {trace}"
    lowest = float(np.linalg.eigvalsh(0.5 * (P + P.T))[0])
    if lowest < least - OUTSIDE * trace:
        return f"their smallest eigenvalue is {lowest}, below {least}"
    return ""


def _of_weights(problem: Problem, weights: FloatArray) -> str:
    constraint = problem.constraint
    if getattr(constraint, "is_point", False):
        stack = problem.family.fit_grams(problem.X).grams
        weight = problem.sample_weight
        point = constraint.weights(stack, problem.targets, weight, learner=problem.learner)
        if not np.allclose(weights, point, rtol=OUTSIDE, atol=OUTSIDE):
            return f"they are {weights}, and the only point of the set is {point}"
        return ""
    size = float(np.abs(weights).max(initial=1.0))
    if weights.min() < -OUTSIDE * size:
        return f"one of them is {weights.min()}, below 0"
    k0 = getattr(constraint, "k0", None)
    total = getattr(constraint, "total", None if k0 is None else 1.0)
    if total is not None and abs(weights.sum() - total) > OUTSIDE * total:
        return f"they sum to {weights.sum()!r}, not {total}"
    if k0 is not None and (weights > 0.0).sum() > k0 * (getattr(constraint, "n_views", None) or 1):
        return f"{(weights > 0.0).sum()} of them are positive, and at most {k0} may be"
    if hasattr(constraint, "project"):
        distance = float(np.linalg.norm(constraint.project(weights) - weights))
        if distance > 10.0 * OUTSIDE * size:
            return f"they lie {distance} from their projection onto the set"
    return _of_support(problem, weights)


def _of_support(problem: Problem, weights: FloatArray) -> str:
    """No linear form is larger at a point of the set than its largest value over the set."""
    worst = getattr(problem.constraint, "worst", None)
    if worst is None:
        return ""
    drawn = np.random.default_rng(0).random((4, len(weights)))
    charge = charge_of(problem, weights)
    for forms in (np.ones(len(weights)), *np.eye(len(weights)), *drawn):
        value, most = float(forms @ weights), float(worst(forms))
        if value - charge > most + OUTSIDE * max(abs(most), abs(value)):
            return f"a linear form is {value} there, and at most {most} in the set"
    return ""
