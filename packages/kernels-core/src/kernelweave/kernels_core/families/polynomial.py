"""The generalized polynomial family: ``k(x, y) = Z_d(x)ᵀ P Z_d(y)``."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..checks import check_vector, integer, real_dtype
from ..grams.unstored import Operator
from ..rounding import UNIT
from ._arguments import BoundSamples, matrix, rows, samples
from ._box import exponents, power_products
from ._moments import RUN, blocked_product
from .learned import FamilyKernel


class FeatureOperator(Operator):
    """``Φ P Φᵀ`` over the samples, which computes entries and products without storing it."""

    def __init__(self, features: NDArray[np.float64], P: NDArray[np.float64]) -> None:
        self._F, self._FP = features, features @ P
        self.n_samples = len(features)

    def fill(self, out: RealArray) -> None:
        """Write the whole matrix, exactly symmetric, in the dtype of ``out``."""
        self._fill(self._FP, self._F, out)

    def fill_centred(self, out: RealArray) -> None:
        """Write ``(Φ − φ̄) P (Φ − φ̄)ᵀ``, the same quadratic form on vectors that sum to 0."""
        self._fill(self._FP - self._FP.mean(axis=0), self._F - self._F.mean(axis=0), out)

    def _fill(self, left: NDArray[np.float64], right: NDArray[np.float64], out: RealArray) -> None:
        np.matmul(left.astype(out.dtype), right.astype(out.dtype).T, out=out)
        for c in range(0, self.n_samples, 1024):
            rows_above = out[c : c + 1024, c:]
            symmetric = 0.5 * (rows_above + out[c:, c : c + 1024].T)
            out[c : c + 1024, c:] = symmetric
            out[c:, c : c + 1024] = symmetric.T

    def block(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp] | slice, out: RealArray
    ) -> None:
        """Write the entries of some rows and columns, in the dtype of ``out``."""
        out[:] = self._FP[rows] @ self._F[columns].T

    def product(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``K W``, shape (t, m), for W (t, m); 4 t m n_P flops."""
        return np.asarray(blocked_product(W, self._FP) @ self._F.T)

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal, shape (m,), float64."""
        return np.asarray(np.sum(self._FP * self._F, axis=1))

    def product_error(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return bounds, shape (t,), on the rounding error of `product`.

        ``γₖ max‖Φₖ‖ Σₗ ‖(ΦP)ₗ‖ |Wₗ|``, k the number of additions in which a term takes part.
        """
        m, n_P = self._F.shape
        count = (RUN + ceil(m / RUN) + 2.0 * n_P + 8.0) * UNIT
        gamma = count / (1.0 - count) * 1.001
        longest = np.linalg.norm(self._F, axis=1).max()
        return np.asarray(gamma * longest * (np.abs(W) @ np.linalg.norm(self._FP, axis=1)))


class PreparedPolynomial(BoundSamples):
    """A generalized polynomial family bound to samples: holds ``Φ = Z_d(X)``, shape (m, n_P)."""

    scale = 1.0

    def __init__(
        self, features: NDArray[np.float64], degree: int, dtype: np.dtype[np.floating]
    ) -> None:
        super().__init__(features.shape[1], len(features), dtype)
        self._F, self._degree = features, degree

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``(Φv)(Φv)ᵀ``, shape (m, m), for v of shape (n_P,); m² flops."""
        f = (self._F @ check_vector("v", v, self.n_P)).astype(self.dtype)
        out = self._output(out)
        np.multiply(f[:, None], f[None, :], out=out)
        return out

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``ΦPΦᵀ``, shape (m, m), for a symmetric P of shape (n_P, n_P)."""
        out = self._output(out)
        self.unstored(P).fill(out)
        return out

    def unstored(self, P: ArrayLike) -> FeatureOperator:
        """Return ``ΦPΦᵀ`` as an object that computes entries and products."""
        return FeatureOperator(self._F, matrix(P, self.n_P))

    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``Σₜ sₜsₜᵀ``, ``sₜ = ΦᵀWₜ``, shape (n_P, n_P), for W of shape (m,) or (t, m)."""
        s = blocked_product(rows(W, self.n_samples), self._F)
        return np.asarray(s.T @ s)

    def moment_error(self, W: ArrayLike) -> float:
        """Return a proven bound on the spectral norm of the rounding error of ``moment(W)``.

        The computed sums ŝ differ from s by at most ``e = γ Σₖ|wₖ||Φₖ|`` with γ for the d − 1
        products of a monomial and a sum in runs of 64, so the error of an entry of D is at most
        ``|ŝᵢ|eⱼ + eᵢ|ŝⱼ| + eᵢeⱼ`` plus the rounding of t products, and the norm of that nonnegative
        rank-two bound is at most ``Σₜ 2‖ŝ‖‖e‖ + ‖e‖² + γ‖ŝ‖²``. Underflow is not accounted for.
        """
        array = rows(W, self.n_samples)
        k = self._degree + 2 + RUN + ceil(self.n_samples / RUN)
        gamma = k * UNIT / (1.0 - k * UNIT)
        s = np.linalg.norm(blocked_product(array, self._F), axis=1)
        e = gamma * np.linalg.norm(np.abs(array) @ np.abs(self._F), axis=1)
        product_rate = 2.0 * (len(array) + 2) * UNIT
        return float(np.sum(2.0 * s * e + e * e + product_rate * s * s)) * (1.0 + 1e-6)

    def sample_products(
        self, w: ArrayLike, U: ArrayLike, samples: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the derivative of ``(K(UUᵀ) w)ₖ`` in U, shape (len(samples), n_P, r).

        ``Φₖ (s·U) + s (Φₖ·U)`` with ``s = Φᵀw``.
        """
        s = check_vector("w", w, self.n_samples) @ self._F
        factor = np.asarray(U, dtype=np.float64)
        F = self._F[np.asarray(samples, dtype=np.intp)]
        return F[:, :, None] * (s @ factor) + s[None, :, None] * (F @ factor)[:, None, :]


@dataclass(frozen=True)
class PolynomialFamily:
    """Generalized polynomial kernels ``k(x, y) = Z_d(x)ᵀ P Z_d(y)`` with P ⪰ 0.

    ``Z_d(x)`` are the monomials of total degree ≤ d, by degree, each in the order of combinations
    with replacement; ``n_P = C(n + d, d)``, which is also the trace of P.

    Parameters
    ----------
    degree : int
        Largest total degree d.
    n_features : int, optional
        Number of features n. Without it n is that of the samples, and `n_P`, `trace` and
        `monomials` are not available.

    Notes
    -----
    "Efficient convex algorithms for universal kernel learning" (2024), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.families import PolynomialFamily
    >>> family = PolynomialFamily(2, n_features=2)
    >>> family.n_P
    6
    >>> float(family.gram([[1.0, 2.0]], np.eye(6))[0, 0])
    27.0
    """

    degree: int
    n_features: int | None = None

    name: ClassVar[str] = "polynomial"
    stores_grams: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for key, smallest in (("degree", 0), ("n_features", 1)):
            rule = integer(smallest)
            (rule.or_none() if key == "n_features" else rule).check(key, getattr(self, key))

    def _known_n_features(self) -> int:
        if self.n_features is None:
            raise ValueError(
                "the size of a PolynomialFamily needs n_features: "
                f"PolynomialFamily({self.degree}, n_features=...)"
            )
        return self.n_features

    @property
    def n_P(self) -> int:
        """Side of P, C(n + d, d)."""
        return comb(self._known_n_features() + self.degree, self.degree)

    @property
    def trace(self) -> float:
        """The trace that P is normalised to, n_P."""
        return float(self.n_P)

    @property
    def monomials(self) -> NDArray[np.int64]:
        """Exponents of the monomials, shape (n_P, n)."""
        return exponents(self._known_n_features(), self.degree)

    def _features(self, X: ArrayLike, name: str = "X") -> NDArray[np.float64]:
        array = samples(X, self.n_features, name)
        n = array.shape[1]
        memory.require(
            8 * len(array) * comb(n + self.degree, self.degree),
            f"the monomials of {len(array)} samples",
            alternative="lower the degree or pass fewer samples",
        )
        return power_products(array, exponents(n, self.degree))

    def prepare(self, X: ArrayLike, dtype: DTypeLike = np.float64) -> PreparedPolynomial:
        """Bind the family to samples X (m, n); dtype is that of the Grams. Stores no Gram."""
        return PreparedPolynomial(self._features(X), self.degree, real_dtype(dtype))

    def block(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return ``G(x, y) = Z_d(x) Z_d(y)ᵀ``, shape (n_P, n_P), for points of shape (n,)."""
        return np.outer(
            self._features(np.atleast_2d(x), "x"), self._features(np.atleast_2d(y), "y")
        )

    def gram(self, X: ArrayLike, P: ArrayLike, Y: ArrayLike | None = None) -> RealArray:
        """Return ``Z_d(X) P Z_d(Y)ᵀ``, shape (n_x, n_y), float64; Y is X if not given."""
        if Y is None:
            return self.prepare(X).gram(P)
        left = self._features(X)
        return np.asarray(left @ matrix(P, left.shape[1]) @ self._features(Y, "Y").T)

    def diag(self, X: ArrayLike, P: ArrayLike) -> NDArray[np.float64]:
        """Return ``Z_d(xₖ)ᵀ P Z_d(xₖ)``, shape (n_x,), float64."""
        F = self._features(X)
        return np.asarray(np.sum((F @ matrix(P, F.shape[1])) * F, axis=1))

    def kernel(self, P: ArrayLike) -> FamilyKernel:
        """Return the kernel of one P, shape (n_P, n_P), which can be called, copied and pickled."""
        return FamilyKernel(np.asarray(P, dtype=np.float64), self)

    @classmethod
    def from_data(cls, X: ArrayLike, *, degree: int = 2) -> PolynomialFamily:
        """Return the family for as many features as X has."""
        return cls(degree, n_features=samples(X, None).shape[1])
