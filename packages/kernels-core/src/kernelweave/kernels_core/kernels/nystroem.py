"""Low-rank factors of Gram matrices: a pivoted Cholesky factor, and its features of any points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, Points, RealArray
from ..interrupts import aside
from .base import Kernel
from .fitted import _OnTrainingPoints

# columns that are drawn before what they leave is looked at again
_BLOCK = 32
# of the largest diagonal entry: less than this is rounding, and no pivot
_FLOOR = 1e-12


class Nystroem(_OnTrainingPoints):
    """k̃(x, y) = k(x, P) k(P, P)⁻¹ k(P, y): the kernel of some points' features.

    k − k̃ is positive semidefinite, and 0 where x or y is one of the points.

    Parameters
    ----------
    kernel : Kernel
        k, positive semidefinite.
    X : ndarray of shape (r, n_features)
        P.
    root : ndarray of shape (r, r)
        The Cholesky factor of k(P, P), lower triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.kernels import RBF
    >>> from kernelweave.kernels_core.kernels.nystroem import Nystroem
    >>> points = np.array([[0.0], [1.0]])
    >>> k = Nystroem(RBF(0.5), points, np.linalg.cholesky(RBF(0.5)(points)))
    >>> bool(np.allclose(k(points), RBF(0.5)(points)))
    True
    """

    name: ClassVar[str] = "nystroem"

    def __init__(self, kernel: Kernel, X: Points, root: FloatArray) -> None:
        self.kernel = kernel
        self.X = X
        self.root = root

    @property
    def is_psd(self) -> bool | None:
        """Proved: an inner product of features."""
        return True

    def features(self, X: Points) -> FloatArray:
        """Return z with k̃(x, y) = z(x)ᵀz(y), shape (n, r)."""
        from scipy.linalg import solve_triangular

        K = self.kernel._gram(X, self._training(X)).astype(np.float64, copy=False)
        Z: FloatArray = solve_triangular(self.root, K.T, lower=True, check_finite=False).T
        return Z

    def dual(self, sums: FloatArray) -> FloatArray:
        """Return c, shape (r, t), with z(x)ᵀsums = k(x, P) c, for sums of shape (r, t)."""
        from scipy.linalg import solve_triangular

        c: FloatArray = solve_triangular(self.root, sums, lower=True, trans="T", check_finite=False)
        return c

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        Z = self.features(X)
        K = Z @ Z.T if Y is None else Z @ self.features(Y).T
        return np.asarray(K, dtype=X.dtype)

    def _diag(self, X: Points) -> RealArray:
        Z = self.features(X)
        return np.asarray(np.einsum("ir,ir->i", Z, Z), dtype=X.dtype)


@dataclass(frozen=True, eq=False)
class Factor:
    """Z with K − ZZᵀ positive semidefinite.

    `Z` of shape (n, r); `pivots` of shape (r,): the samples whose columns of K are those of ZZᵀ;
    `missing` of shape (n,): the diagonal of K − ZZᵀ, at least 0.
    """

    Z: FloatArray
    pivots: NDArray[np.intp]
    missing: FloatArray

    @property
    def root(self) -> FloatArray:
        """Return the Cholesky factor of K over the pivots, shape (r, r)."""
        return np.tril(self.Z[self.pivots])


def factorise(
    kernel: Kernel, X: Points, n_components: int, random_state: np.random.RandomState
) -> Factor:
    """Return a Cholesky factor of at most ``n_components`` columns, pivots drawn at random.

    A sample is drawn in proportion to what its diagonal entry still lacks, so that the expected
    trace of K − ZZᵀ is near the least there is.

    `kernel`: positive semidefinite; `X` of shape (n, n_features); `n_components`: with n or more
    the factor is K's own.

    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a
    kernel matrix with few entry evaluations", Communications on Pure and Applied Mathematics
    2025, Algorithm 2, in blocks. ``n r`` values of the kernel and ``n r²`` multiplications.
    """
    missing = np.asarray(kernel.diag(X), dtype=np.float64)
    floor = _FLOOR * float(missing.max(initial=0.0))
    n, most = len(missing), min(n_components, len(missing))
    Z = np.zeros((n, most))
    pivots: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    while len(pivots) < most:
        open_ = np.flatnonzero(missing > floor)
        if not len(open_):
            break
        size = min(_BLOCK, most - len(pivots), len(open_))
        share = missing[open_] / missing[open_].sum()
        drawn = random_state.choice(open_, size, replace=False, p=share)
        columns = np.asarray(kernel(X, X[drawn]), dtype=np.float64)
        done = len(pivots)
        columns -= Z[:, :done] @ Z[drawn, :done].T
        new, order = aside(_eliminate, columns, drawn, floor)
        kept = drawn[order]
        new[pivots] = 0.0
        Z[:, done : done + len(kept)] = new
        missing = np.maximum(missing - np.einsum("ir,ir->i", new, new), 0.0)
        # what a draw lost to rounding is no pivot any more
        missing[drawn] = 0.0
        pivots = np.concatenate([pivots, kept])
    return Factor(np.ascontiguousarray(Z[:, : len(pivots)]), pivots, missing)


def _eliminate(
    columns: FloatArray, drawn: NDArray[np.intp], floor: float
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the factor's columns of the samples drawn, and which of them are pivots, in order."""
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpstrf

    lower, order, rank, _ = dpstrf(columns[drawn], tol=floor, lower=1)
    order, root = order[:rank] - 1, np.tril(lower[:rank, :rank])
    new = solve_triangular(root, columns[:, order].T, lower=True, check_finite=False).T
    new[drawn[order]] = root
    return new, order
