"""The conic relaxations as cvxpy problems; cvxpy is imported when the first one is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from .conic import Epigraph, cvxpy, epigraph, schur
from .sparse_problem import SparseProblem

if TYPE_CHECKING:
    from cvxpy import Constraint, Problem, Variable

# θ, f and β ↦ the constraints that tie them
Couple: TypeAlias = "Callable[[Variable, Variable, Variable], list[Constraint]]"


@dataclass
class ConicModel:
    """A relaxation in cvxpy, with the parts that its duals are read from.

    `weights`: β; `learner`: θ, f and the constraints of each task.
    """

    problem: Problem
    weights: Variable
    learner: Epigraph


def base_model(problem: SparseProblem, couple: Couple) -> ConicModel:
    """Return ``min Σ losses + ½Σθ + λΣω`` over everything but the tie between θ, f and β.

    `couple`: ``couple(theta, f, beta)`` returns the list of constraints of one task.
    """
    cp = cvxpy()
    q = len(problem.grams)
    beta, z, omega = (cp.Variable(q, nonneg=True) for _ in range(3))
    constraints = [cp.sum(beta) == 1, cp.sum(z) <= problem.k0, z <= 1]
    constraints.append(cp.SOC(z + omega, cp.vstack([2 * beta, z - omega]), axis=0))
    learner = epigraph(problem.boxes(), lambda theta, f: couple(theta, f, beta))
    cost = problem.lam * cp.sum(omega) + learner.cost
    whole = cp.Problem(cp.Minimize(cost), [*constraints, *learner.constraints])
    return ConicModel(whole, beta, learner)


def couple_vectors(vectors: FloatArray, forms: FloatArray) -> Couple:
    """Return the tie ``θ · Σ βⱼ xᵀKⱼx ≥ (xᵀf)²`` for the rows x of ``vectors``, as cones.

    `vectors` of shape (L, n); `forms` of shape (q, L): ``xᵀKⱼx``.
    """
    cp = cvxpy()

    def couple(theta: Variable, f: Variable, beta: Variable) -> list[Constraint]:
        combined = forms.T @ beta
        along = vectors @ f
        total, ones = combined + theta, np.ones(len(vectors))
        return [cp.SOC(total, cp.vstack([2 * along, theta * ones - combined]), axis=0)]

    return couple


def couple_matrix(problem: SparseProblem) -> Couple:
    """Return the tie ``[θ fᵀ; f K(β)] ⪰ 0``, a linear matrix inequality in n + q + 2 unknowns."""
    grams = [np.asarray(K, dtype=np.float64) for K in problem.grams.matrices]

    def couple(theta: Variable, f: Variable, beta: Variable) -> list[Constraint]:
        return [schur(theta, f, sum(beta[j] * K for j, K in enumerate(grams)))]

    return couple


def couple_pairs(problem: SparseProblem) -> Couple:
    """Return the tie of (18): all 3 × 3 principal submatrices with the first row are ⪰ 0.

    They are one linear map of θ, f and β onto an array of shape (n(n − 1)/2, 3, 3): a constraint
    of its own for each of them would take cvxpy minutes to compile.
    """
    cp = cvxpy()
    grams = np.stack([np.asarray(K, dtype=np.float64) for K in problem.grams.matrices])
    q, n = grams.shape[:2]
    j, k = np.triu_indices(n, 1)
    start = 9 * np.arange(j.size)
    from scipy.sparse import csr_array

    corner = csr_array((np.ones(j.size), (start, np.zeros_like(j))), shape=(9 * j.size, 1))
    border = np.concatenate([start + 1, start + 3, start + 2, start + 6])
    of_f = csr_array(
        (np.ones(border.size), (border, np.concatenate([j, j, k, k]))), shape=(9 * j.size, n)
    )
    inner = np.concatenate([start + 4, start + 5, start + 7, start + 8])
    rows, columns = np.concatenate([j, j, k, k]), np.concatenate([j, k, j, k])
    of_beta = csr_array(
        (grams[:, rows, columns].ravel(), (np.tile(inner, q), np.repeat(np.arange(q), inner.size))),
        shape=(9 * j.size, q),
    )

    def couple(theta: Variable, f: Variable, beta: Variable) -> list[Constraint]:
        corners = corner @ cp.reshape(theta, (1,), order="C")
        flat = corners + of_f @ f + of_beta @ beta
        return [cp.reshape(flat, (j.size, 3, 3), order="C") >> 0]

    return couple
