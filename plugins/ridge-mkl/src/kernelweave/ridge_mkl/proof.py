"""Proof files of learned weights: a dual point, its tangent, and the primal value at the weights.

The file is about K = (Σ μₖKₖ)^∘d with μ = c + Λt over Σ tₖ^q ≤ 1, or without that limit at the cost
βΣ tₖ²; with q = a/b it has the roots t^{1/b}, of which all powers that it needs are fractions.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core import Problem, Result, solve
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import convergence_warning
from kernelweave.kernels_core.rounding import sums_to_zero
from kernelweave.qp_smo.proof import (
    BoxTasks,
    Line,
    Proof,
    UnprovedError,
    decimal,
    factor,
    on_grid,
    problem_of,
    proof_of,
    require_gap,
    triangle,
    vector,
)

from .sets import LqBall
from .settings import Automatic

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# What is left to the exact conditions: Σ t^q ≤ 1, and slopes that are at most β.
_ROOM = 1e-11
# The smallest t of a tangent, beside the largest: none may be 0.
_LEAST = 1e-9
# Numerator and denominator of q: the checker takes powers of fractions.
_LARGEST = 99
# Products of kernels that the checker takes.
_MOST_PRODUCTS = 100_000


def prove(model: BaseEstimator, *, tol: float = 1e-5, max_time: float | None = None) -> Proof:
    """Prove the optimal kernel weights of a fitted model's problem, for anybody to check.

    The problem is solved on from the model's weights where the fit ended with a larger gap than is
    to be proved. The Gram matrices are rounded to 48 bits relative to their largest entry, and the
    proof is about the rounded ones, which stand in the file.

    Parameters
    ----------
    model : RidgeMKLRegressor, RidgeMKLClassifier or GeneralizedMKLClassifier
        Fitted; it kept the problem that it solved as ``problem_``.
    tol : float
        Relative gap to prove.
    max_time : float, optional
        Seconds at most for the search.

    Returns
    -------
    Proof
        ``proof.save(path)`` writes what ``kernelweave-check`` reads.

    Raises
    ------
    TypeError
        If the model is not fitted, or has a problem per class or pair.
    UnprovedError
        If the gap is not closed within the time, or nothing is proved of its kind: products of
        more kernels than the norm q, of more than two under a penalty, or 100,000 of them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.ridge_mkl import RidgeMKLRegressor, prove
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeMKLRegressor().fit(X[:60], y[:60])
    >>> proof = prove(model)
    >>> proof.lower <= model.result_.upper_bound * (1 + 1e-9)
    True
    """
    problem = problem_of(model)
    degree = int(getattr(problem.family, "degree", 1))
    stored = np.asarray(problem.family.fit_grams(problem.X).grams, dtype=np.float64)
    rounded = [on_grid(K) for K in stored]
    grams = np.stack([np.ldexp(K, e) for K, e in rounded])
    weights = _Weights.of(problem.constraint, len(grams), degree)
    tasks = BoxTasks.of(problem.learner, problem.targets, problem.sample_weight)

    t, roots = weights.inside(_solved_on(problem, model.result_, 0.25 * tol, max_time))
    K = np.tensordot(weights.mu(t), grams, axes=1) ** degree
    solution = problem.learner.solve(K, problem.targets, sample_weight=problem.sample_weight)
    line, delta = factor(K, min(float(task.rho.min()) for task in tasks.each))
    upper = weights.beta * float(t @ t)
    upper += tasks.primal(solution, solution.dual_coef @ K, delta)
    u, tangent, lower = _lower_bound(weights, tasks, grams, degree, solution.dual_coef, t)
    require_gap(lower, upper, tol)
    lines = [
        *({"kernel": triangle(whole, exponent)} for whole, exponent in rounded),
        tasks.upper_line(solution, {"weights": vector(roots)}),
        line,
        {"cut": [vector(row) for row in u]},
        {"roots": vector(tangent)},
    ]
    parameters = {"degree": degree, **weights.parameters()}
    sizes = grams.shape[1], len(grams)
    return proof_of("powers", sizes, tasks, (lower, upper), parameters, lines, (1, 1))


def _solved_on(problem: Problem, result: Result, tol: float, max_time: float | None) -> FloatArray:
    """Return weights within a relative gap, those of the result if they are."""
    if result.gap > tol:
        near = Automatic(mu_init=result.parameters)
        with warnings.catch_warnings():
            # what is proved is compared with what was asked, and the error says it
            warnings.simplefilter("ignore", convergence_warning())
            result = solve(problem, near, tol=tol, max_time=max_time)
    return np.asarray(result.parameters)


@dataclass(frozen=True)
class _Weights:
    """The set of weights in the form of a proof file; β is 0 for a ball."""

    norm: Fraction
    radius: float
    center: FloatArray
    beta: float

    @classmethod
    def of(cls, constraint: Any, n_kernels: int, degree: int) -> _Weights:
        """Return that of a ball or a penalty; raise UnprovedError where nothing is proved of it."""
        if not constraint.proves(degree):
            raise UnprovedError(
                f"products of {degree} kernels over this set are not convex, so nothing is proved "
                "of the weights: choose q >= degree, or degree <= 2 with a penalty"
            )
        if n_kernels**degree > _MOST_PRODUCTS:
            raise UnprovedError(
                f"{n_kernels} kernels have {n_kernels**degree} products of {degree}, and the "
                f"checker takes {_MOST_PRODUCTS}: use fewer kernels"
            )
        if not isinstance(constraint, LqBall):
            return cls(Fraction(2), 1.0, np.zeros(n_kernels), float(constraint.beta))
        q, radius = float(constraint.q), float(constraint.radius)
        if not np.isfinite(q):
            raise UnprovedError(
                "q=inf gives every kernel the largest weight that the ball allows, so there is no "
                "choice of weights to prove: fit with q=1 or q=2 for a proof"
            )
        norm = Fraction(repr(q))
        if not 0 < norm.denominator <= norm.numerator <= _LARGEST:
            raise UnprovedError(
                f"q={q:g} must be a fraction of numbers up to {_LARGEST}, such as 1.5, for a proof "
                "in fractions"
            )
        return cls(norm, radius, constraint.centers(n_kernels), 0.0)

    def parameters(self) -> Line:
        numbers = {"radius": decimal(self.radius), "beta": decimal(self.beta)}
        return {"norm": str(self.norm), **numbers, "center": vector(self.center)}

    def mu(self, t: FloatArray) -> FloatArray:
        return self.center + self.radius * t

    def rooted(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return t as powers of roots that are floats, and these."""
        roots = t ** (1.0 / self.norm.denominator)
        return roots**self.norm.denominator, roots

    def inside(self, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return t and its roots for weights that are in the set beyond any rounding."""
        t = np.maximum((mu - self.center) / self.radius, 0.0)
        if self.beta == 0.0:
            size = float(np.sum(t ** float(self.norm))) ** (1.0 / float(self.norm))
            t = t * (1.0 - _ROOM) / max(size, 1.0 - _ROOM)
        return self.rooted(t)

    def tangent(self, slopes: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the t > 0 of the tangent, near the maximiser of slopesᵀμ, and its roots."""
        q = float(self.norm)
        if q == 1.0:
            at = t
        else:
            at = (slopes / max(float(slopes.max()), 1e-300)) ** (1.0 / (q - 1.0))
            at = at / max(float(np.sum(at**q)) ** (1.0 / q), 1e-300)
        return self.rooted(np.maximum(at, _LEAST * max(float(at.max()), 1e-300)))


def _slopes(grams: FloatArray, degree: int, u: FloatArray, mu: FloatArray) -> FloatArray:
    """Return the gradient of ½ Σₜ uₜᵀK_μ^{∘d}uₜ in μ."""
    outer = u.T @ u
    if degree > 1:
        outer = outer * np.tensordot(mu, grams, axes=1) ** (degree - 1)
    forms = np.array([float(np.vdot(outer, K)) for K in grams])
    return np.asarray(0.5 * degree * np.maximum(forms, 0.0))


def _lower_bound(
    weights: _Weights, tasks: BoxTasks, grams: FloatArray, degree: int, u: FloatArray, t: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the best multiple of u, the roots where its tangent is taken, and what they prove."""
    q, radius = float(weights.norm), weights.radius
    if weights.beta > 0.0 and degree == 1:
        # the slopes h/(2t) are β at the maximiser of hᵀμ − β‖μ‖²
        h = _slopes(grams, degree, u, t)
        at = np.maximum(h, _LEAST * max(float(h.max()), 1e-300)) / (2.0 * weights.beta)
        at = at * (1.0 + _ROOM)
        return u, at, tasks.kappa(u) - 0.5 * float(h @ at)
    at, roots = weights.tangent(_slopes(grams, degree, u, weights.mu(t)), t)
    w = _slopes(grams, degree, u, weights.mu(at))
    steep = radius / q * w * at ** (1.0 - q)
    cost = float(w @ weights.mu(at)) / degree - float(steep @ at**q)
    linear = float(sum(task.p @ row for task, row in zip(tasks.each, u, strict=True)))
    quadratic = linear - tasks.kappa(u)
    longest = np.inf
    if weights.beta > 0.0:
        longest = np.sqrt(weights.beta * (1.0 - _ROOM) / float(steep.max()))
    else:
        cost += float(steep.max())
    s = min(longest, 0.5 * linear / (quadratic + cost))
    scaled = np.stack([sums_to_zero(s * row) for row in u]) if tasks.intercept else s * u
    return scaled, roots, s * linear - s * s * (quadratic + cost)
