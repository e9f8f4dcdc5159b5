"""Missing targets, or a weight for each cell: what the loss, the C solve and λ's choice see.

With weights s of shape (l, n), zero where a target is missing, C is zero there and elsewhere solves

    (K C L)ᵢⱼ + (λl/sᵢⱼ) Cᵢⱼ = Yᵢⱼ,   l = Σ s/n .

With C = √s ∘ D that is √s ∘ (K (√s ∘ D) L) + λl D = √s ∘ Y: symmetric, positive definite, and the
bounds of `objective` hold with λl‖D‖² for λl‖C‖².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import Solution
from kernelweave.kernels_core.arrays import Index, Matrix, Vector
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from .learner import VectorLeastSquares
from .leave_one_out import LeaveOneOut
from .sylvester.direct import SylvesterSolution
from .sylvester.iterative import conjugate_gradients

_LIMIT = 2000  # conjugate-gradient iterations
_LOOKED_AT = 6  # patterns of missing targets that a choice of λ looks at


@dataclass(frozen=True, eq=False)
class CellLeastSquares(VectorLeastSquares):
    """min over f of (n/Σs) Σᵢⱼ sᵢⱼ (fⱼ(xᵢ) − yᵢⱼ)² + λ‖f‖², s a weight per cell.

    `cell_weight` of shape (n_outputs, n_samples): s, 0 where a target is missing.
    Goes with ``vv-spg`` alone.
    """

    cell_weight: Matrix | None = None

    def noise(self, n_samples: int, sample_weight: ArrayLike | None = None) -> Vector:
        """Raise TypeError: outputs have no diagonal in common."""
        raise TypeError("weights per cell go with algorithm='vv-spg' only")

    def solve_with_error(self, *_args: object, **_more: object) -> Solution:
        """Raise TypeError, likewise."""
        raise TypeError("weights per cell go with algorithm='vv-spg' only")


@dataclass(frozen=True)
class Pattern:
    """Outputs whose cells weigh alike.

    `outputs`: their places; `rows`: samples that have a value; `root` of shape (n_rows,): roots of
    the weights.
    """

    outputs: Index
    rows: Index
    root: Vector


def patterns_of(root: Matrix) -> list[Pattern]:
    """Return the distinct columns of the roots of the weights, shape (n_samples, n_outputs)."""
    distinct, place = np.unique(root, axis=1, return_inverse=True)
    place = place.ravel()
    patterns = []
    for k, column in enumerate(distinct.T):
        rows = np.flatnonzero(column)
        patterns.append(Pattern(np.flatnonzero(place == k), rows, column[rows]))
    return patterns


def solve_cells(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    root: Matrix,
    *,
    C0: Matrix | None = None,
    tol: float = 1e-8,
) -> SylvesterSolution:
    """Solve for C: a Cholesky factorisation per pattern where L = ρI, else conjugate gradients.

    ``root`` of shape (l, n) has √s, and Y is zero where missing; ``C0`` is where iterations start,
    and ``tol`` the relative residual that they reach.
    """
    rho = float(L[0, 0])
    if np.array_equal(L, rho * np.eye(len(L))):
        C, n_iter, n_columns = _by_patterns(K, rho, Y, ridge, root), 0, 0
    else:
        C, n_iter = _iterate(K, L, Y, ridge, root, C0, tol)
        n_columns = n_iter * Y.shape[1]
    product = K @ C
    fit = product @ L
    left = root * (Y - fit) - ridge * divided(C, root)
    norm = float(np.linalg.norm(left))
    reached = norm <= 1.01 * tol * float(np.linalg.norm(root * Y))
    return SylvesterSolution(
        C, norm, reached, n_iter, n_columns + Y.shape[1], "cells", product, fit
    )


def divided(C: Matrix, root: Matrix) -> Matrix:
    """Return D with C = √s ∘ D, zero where a target is missing."""
    return np.divide(C, root, out=np.zeros_like(C), where=root > 0.0)


def _by_patterns(K: Matrix, rho: float, Y: Matrix, ridge: float, root: Matrix) -> Matrix:
    C = np.zeros_like(Y)
    for each in patterns_of(root):
        A = rho * (each.root[:, None] * K[np.ix_(each.rows, each.rows)] * each.root)
        A[np.diag_indices_from(A)] += ridge
        right = each.root[:, None] * Y[np.ix_(each.rows, each.outputs)]
        solved = cho_solve(cho_factor(A, lower=True, overwrite_a=True), right)
        C[np.ix_(each.rows, each.outputs)] = each.root[:, None] * solved
    return C


def _iterate(
    K: Matrix, L: Matrix, Y: Matrix, ridge: float, root: Matrix, C0: Matrix | None, tol: float
) -> tuple[Matrix, int]:
    """Return C and the number of iterations of conjugate gradients on D."""
    right = root * Y
    target = tol * float(np.linalg.norm(right))

    def apply(P: Matrix) -> Matrix:
        return root * ((K @ (root * P)) @ L) + ridge * P

    D = np.zeros_like(Y) if C0 is None else divided(C0, root)
    R = right if C0 is None else right - root * ((K @ (root * D)) @ L) - ridge * D
    # the diagonal of the system: large where a cell weighs much
    scale = ridge + root**2 * np.outer(np.diag(K), np.diag(L))
    n_iter = conjugate_gradients(apply, D, R, ridge, target, _LIMIT, scale)
    return root * D, n_iter


class CellLeaveOneOut:
    """Errors at left-out cells, each pattern decomposed once for many ridges.

    Of many patterns those are looked at that have most cells.

    `K` of shape (n_samples, n_samples): symmetric positive semidefinite; `root` of shape
    (n_samples, n_outputs): roots of the weights.
    """

    def __init__(self, K: Matrix, root: Matrix) -> None:
        patterns = sorted(patterns_of(root), key=lambda each: -len(each.rows) * len(each.outputs))
        self.parts = [
            (each, LeaveOneOut(each.root[:, None] * K[np.ix_(each.rows, each.rows)] * each.root))
            for each in patterns[:_LOOKED_AT]
        ]

    def errors(self, Y: Matrix, ridge: float) -> Matrix:
        """Return errors times the roots of the weights; 0 where missing or not looked at."""
        out = np.zeros_like(Y)
        for each, part in self.parts:
            at = np.ix_(each.rows, each.outputs)
            out[at] = part.errors(Y[at], ridge)
        return out
