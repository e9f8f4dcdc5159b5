"""K C L + r C = Y by conjugate gradients from a low-rank sketch of K."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray, Vector
from kernelweave.kernels_core.checks import COUNT
from numpy.typing import DTypeLike
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

# columns of K over its rows: the factors then cost about a tenth of a Cholesky factorisation, and
# an iteration a quarter more than without them
_SHARE = 8
_MOST = 1000
# of the trace: what may keep the factorisation of nearly singular samples from failing, the larger
# ones where K was rounded to single precision or is not semidefinite
_SHIFTS = 1e-10, 1e-7, 1e-4


class Preconditioner(Protocol):
    """What speeds up conjugate gradients on (ρⱼ K + r I) cⱼ = yⱼ."""

    def apply(self, R: RealArray, rho: RealArray, ridge: float) -> RealArray:
        """Return Z whose column j is about (ρⱼ K + r I)⁻¹ times that of R."""


def sketch_rank(n_samples: int) -> int:
    """Return how many columns of K are sampled: an eighth, at most a thousand."""
    return max(1, min(n_samples // _SHARE, _MOST))


@dataclass(frozen=True, eq=False)
class NystromFactors:
    """K ≈ U diag(σ) Uᵀ from a few of its columns, Uᵀ U = I.

    The largest eigenvalues of a kernel matrix, on which conjugate gradients spend their
    iterations, are those that few columns show; the rest is taken to be the smallest σ (Frangella,
    Tropp and Udell 2023, section 2.3). A poor sketch costs iterations, never accuracy.

    Attributes
    ----------
    U : ndarray of shape (n_samples, rank), float64
        Orthonormal columns.
    sigma : ndarray of shape (rank,), float64
        Approximate eigenvalues, ascending, none above the true ones by more than rounding.
    """

    U: Matrix
    sigma: Vector

    @classmethod
    def of(cls, K: RealArray, rank: int | None = None) -> NystromFactors:
        """Return factors from sampled columns (3 l · rank² flops, 24 l · rank bytes).

        Columns are drawn in proportion to the diagonal, always the same for the same diagonal.

        Parameters
        ----------
        K : ndarray of shape (n_samples, n_samples)
            Symmetric positive semidefinite.
        rank : int, optional
            Columns; an eighth of all by default, at most a thousand.

        Returns
        -------
        NystromFactors
            Their rank is less where the columns are dependent.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave.vv_rkhs import NystromFactors
        >>> Z = np.random.default_rng(0).standard_normal((50, 3))
        >>> factors = NystromFactors.of(Z @ Z.T, rank=10)
        >>> bool(abs((factors.U * factors.sigma) @ factors.U.T - Z @ Z.T).max() < 1e-6)
        True
        """
        if rank is not None:
            COUNT.check("rank", rank)
        l = K.shape[0]
        chosen = _sampled(np.diagonal(K), sketch_rank(l) if rank is None else min(rank, l))
        if len(chosen) == 0:
            return cls(np.zeros((l, 1)), np.zeros(1))
        columns = np.asarray(K[chosen], dtype=np.float64)  # rows, K being symmetric
        factor = _shifted_factor(columns[:, chosen])
        if factor is None:
            return cls(np.zeros((l, 1)), np.zeros(1))
        root = solve_triangular(factor, columns, lower=True, overwrite_b=True, check_finite=False)
        sigma, V = eigh(root @ root.T, check_finite=False)
        kept = sigma > 1e-12 * sigma[-1]
        U = root.T @ (V[:, kept] / np.sqrt(sigma[kept]))
        return cls(U, sigma[kept])

    @functools.cached_property
    def _single(self) -> tuple[RealArray, RealArray]:
        return self.U.astype(np.float32), self.sigma.astype(np.float32)

    def _as(self, dtype: DTypeLike) -> tuple[RealArray, RealArray]:
        return self._single if dtype == np.float32 else (self.U, self.sigma)

    def apply(self, R: RealArray, rho: RealArray, ridge: float) -> RealArray:
        """Return (ρⱼ U diag(σ) Uᵀ + ρⱼ σ₁ (I − UUᵀ) + r I)⁻¹ rⱼ (4 l · rank flops per column)."""
        U, sigma = self._as(R.dtype)
        rest = rho * sigma[0] + ridge
        inner = U.T @ R
        inner *= 1.0 / (sigma[:, None] * rho + ridge) - 1.0 / rest
        Z: RealArray = U @ inner
        Z += R / rest
        return Z


def _shifted_factor(inner: Matrix) -> Matrix | None:
    """Return a Cholesky factor of a matrix plus the least shift of its diagonal that allows one."""
    trace = float(np.trace(inner))
    for shift in _SHIFTS:
        shifted = inner.copy()
        shifted.flat[:: len(inner) + 1] += shift * trace
        with contextlib.suppress(LinAlgError):
            factor: Matrix = cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
            return factor
    return None


def _sampled(diagonal: RealArray, count: int) -> npt.NDArray[np.intp]:
    """Return different positions, drawn in proportion to a diagonal without its zeros."""
    mass = np.maximum(np.asarray(diagonal, dtype=np.float64), 0.0)
    positive = np.flatnonzero(mass > 0)
    count = min(count, len(positive))
    if count == 0:
        return positive
    p = mass[positive] / mass[positive].sum()
    drawn = np.random.default_rng(0).choice(positive, count, replace=False, p=p)
    return np.asarray(np.sort(drawn), dtype=np.intp)
