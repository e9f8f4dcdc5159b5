"""Errors at left-out samples, in closed form where weights and output kernel are fixed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, Vector
from kernelweave.kernels_core.checks import check_array


class LeaveOneOut:
    """One Gram matrix, decomposed once for many ridges and output kernels.

    In the eigenvectors of L outputs are ridge problems of their own, with kernels ρK, and the error
    at sample i is uᵢ over the i-th diagonal entry of (ρK + rI)⁻¹, u being the coefficients of all
    samples.

    `K` of shape (n_samples, n_samples): symmetric positive semidefinite.
    """

    def __init__(self, K: Matrix) -> None:
        values, self.vectors = np.linalg.eigh(K)
        self.values = np.maximum(values, 0.0)
        self.squares = self.vectors**2

    def errors(self, Y: Matrix, ridge: float, L: npt.ArrayLike | None = None) -> Matrix:
        """Return yᵢ − f₋ᵢ(xᵢ), f₋ᵢ being fitted without sample i, shape (n_samples, n_outputs).

        ``ridge`` is λ times the number of samples; L is the identity by default.
        """
        rho, V = np.ones(1), None  # one column serves all outputs
        if L is not None:
            L = check_array("L", L, 2, square=True)
            if len(L) != Y.shape[1]:
                raise ValueError(f"L must have shape {(Y.shape[1],) * 2}, got {L.shape}")
            rho, V = np.linalg.eigh(L)
            Y = Y @ V
        inverse = 1.0 / (self.values[:, None] * np.maximum(rho, 0.0) + ridge)
        rotated = (self.vectors @ (inverse * (self.vectors.T @ Y))) / (self.squares @ inverse)
        errors: Matrix = rotated if V is None else rotated @ V.T
        return errors


class LeaveFoldsOut:
    """Errors where several samples are left out together, decomposed once for many ridges.

    A part that is all the rest has the errors (A⁻¹)ₛₛ⁻¹ uₛ with A = K + rI and u = A⁻¹Y, from the
    decomposition of all samples; what is learned from fewer has a decomposition of its own.

    `K` of shape (n_samples, n_samples): symmetric positive semidefinite; `folds`: samples to learn
    from, and to leave out; `shares` of shape (n_folds,): of the ridge in each.
    """

    def __init__(self, K: Matrix, folds: list[tuple[Index, Index]], shares: Vector) -> None:
        self.K, self.folds, self.shares = K, folds, shares
        rest = [len(np.union1d(*fold)) == len(K) == sum(map(len, fold)) for fold in folds]
        whole = LeaveOneOut(K) if any(rest) else None
        self.parts = [
            (whole if of_rest else None) or LeaveOneOut(K[np.ix_(train, train)])
            for of_rest, (train, _) in zip(rest, folds, strict=True)
        ]
        self.whole = whole

    def errors(self, Y: Matrix, ridge: float) -> Iterator[Matrix]:
        """Yield errors at the samples that each fold leaves out, shape (n_left_out, n_outputs)."""
        for part, (train, test), share in zip(self.parts, self.folds, self.shares, strict=True):
            inverse, V = 1.0 / (part.values + share * ridge), part.vectors
            if part is self.whole:
                V_test = V[test]
                u = V_test @ (inverse[:, None] * (V.T @ Y))
                yield np.linalg.solve((V_test * inverse) @ V_test.T, u)
            else:
                coef = V @ (inverse[:, None] * (V.T @ Y[train]))
                yield Y[test] - self.K[np.ix_(test, train)] @ coef
