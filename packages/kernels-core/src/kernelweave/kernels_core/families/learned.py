"""Kernels given by a learned positive semidefinite matrix P."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Points, RealArray
from ..checks import Rule, integer, one_of
from ..exceptions import KernelWeaveWarning
from ..grams.psd import find_indefinite
from ..kernels.base import Kernel

if TYPE_CHECKING:
    from ._groups import Order
    from .base import Family


def _is_square(value: object) -> bool:
    array = np.asarray(value, dtype=np.float64)
    return array.ndim == 2 and array.shape[0] == array.shape[1] and bool(np.isfinite(array).all())


def _is_symmetric(value: object) -> bool:
    array = np.asarray(value, dtype=np.float64)
    return bool(np.abs(array - array.T).max() <= 1e-10 * max(1.0, np.abs(array).max()))


_MATRIX = Rule(
    "a finite square matrix",
    _is_square,
    then=Rule("symmetric, which (P + P.T) / 2 is", _is_symmetric),
)


class _MatrixKernel(Kernel):
    """k(x, y) linear in a matrix P, computed by a family in float64."""

    P: ArrayLike

    def _family(self, n_features: int) -> Family:
        raise NotImplementedError

    @property
    def is_psd(self) -> bool | None:
        """Proved when P is positive semidefinite up to rounding."""
        return True if find_indefinite(self._matrix()) is None else None

    def _matrix(self) -> NDArray[np.float64]:
        name = f"{type(self).__name__}: P"
        return np.asarray(_MATRIX.check(name, self.P), dtype=np.float64)

    def _family_and_matrix(self, X: Points) -> tuple[Family, NDArray[np.float64]]:
        return self._family(X.shape[1]), self._matrix()

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        family, P = self._family_and_matrix(X)
        other = None if Y is None else np.asarray(Y, dtype=np.float64)
        K = family.gram(np.asarray(X, dtype=np.float64), P, other)
        return np.asarray(K).astype(X.dtype, copy=False)

    def _diag(self, X: Points) -> RealArray:
        family, P = self._family_and_matrix(X)
        d = np.asarray(family.diag(np.asarray(X, dtype=np.float64), P))
        return d.astype(X.dtype, copy=False)


class Tessellated(_MatrixKernel):
    """k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz over a box, a tessellated kernel.

    Parameters
    ----------
    P : ndarray of float64, shape (n_P, n_P)
        Symmetric positive semidefinite, as a tessellated kernel learner finds it.
    degree : int
        Degree of the monomials in N.
    lower, upper : array-like, shape (n_features,)
        The box over which z is integrated; samples lie inside.
    z_degree : int, optional
        Degree in z alone, see ``TessellatedFamily``.
    outside : "raise" or "clip"
        What happens to samples outside the box: an error, or they are moved onto its surface
        with one warning per call that counts them.
    order : int or sequence of groups of columns, optional
        Which columns the indicators compare, see ``TessellatedFamily``.
    """

    name = "tessellated"

    _rules: ClassVar[dict[str, Rule]] = {"degree": integer(0), "outside": one_of("raise", "clip")}

    def __init__(
        self,
        P: ArrayLike,
        degree: int,
        lower: ArrayLike,
        upper: ArrayLike,
        z_degree: int | None = None,
        outside: Literal["raise", "clip"] = "raise",
        order: Order | None = None,
    ) -> None:
        self.P = P
        self.degree = degree
        self.lower = lower
        self.upper = upper
        self.z_degree = z_degree
        self.outside = outside
        self.order = order

    def _validate(self) -> None:
        super()._validate()
        lower, upper = self._box()
        if lower.ndim != 1 or lower.shape != upper.shape or not (lower < upper).all():
            raise ValueError(
                "Tessellated: lower and upper must hold one number per feature with "
                f"lower < upper, got shapes {lower.shape} and {upper.shape}"
            )

    def _box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.asarray(self.lower, dtype=np.float64), np.asarray(self.upper, dtype=np.float64)

    def _family(self, n_features: int) -> Family:
        from .tessellated import TessellatedFamily

        return TessellatedFamily(
            self.degree,
            lower=self.lower,
            upper=self.upper,
            z_degree=self.z_degree,
            order=self.order,
        )

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        inside, outside = self._into_box(X)
        other, more = (None, 0) if Y is None else self._into_box(Y)
        self._warn(outside + more)
        return super()._gram(inside, other).astype(X.dtype, copy=False)

    def _diag(self, X: Points) -> RealArray:
        inside, outside = self._into_box(X)
        self._warn(outside)
        return super()._diag(inside).astype(X.dtype, copy=False)

    def _into_box(self, X: Points) -> tuple[NDArray[np.float64], int]:
        """Return the samples moved into the box, in float64, and how many had to be."""
        lower, upper = self._box()
        if X.shape[1] != len(lower):
            raise ValueError(
                f"Tessellated: the box has {len(lower)} features, the samples have {X.shape[1]}"
            )
        points = np.asarray(X)
        # a float32 sample on the surface may round to just outside it: not worth a warning
        low, high = lower.astype(X.dtype, copy=False), upper.astype(X.dtype, copy=False)
        count = int(((low > points) | (high < points)).any(axis=1).sum())
        if count and self.outside == "raise":
            raise ValueError(
                f"Tessellated: {count} of {X.shape[0]} samples lie outside the box [lower, upper]: "
                "widen it before learning, or use outside='clip'"
            )
        return np.clip(points.astype(np.float64, copy=False), lower, upper), count

    def _warn(self, count: int) -> None:
        if count:
            lie, were = ("sample lies", "was") if count == 1 else ("samples lie", "were")
            warnings.warn(
                f"{count} {lie} outside the box of the tessellated kernel and {were} moved onto "
                "its surface: learn with a wider box if that is many",
                KernelWeaveWarning,
                stacklevel=4,
            )


class GeneralizedPolynomial(_MatrixKernel):
    """k(x, y) = z(x)ᵀ P z(y) with z the monomials of total degree at most d.

    Parameters
    ----------
    P : ndarray of float64, shape (n_P, n_P)
        Symmetric positive semidefinite, n_P = C(n_features + d, d).
    degree : int
        d.
    """

    name = "generalized-polynomial"

    _rules: ClassVar[dict[str, Rule]] = {"degree": integer(0)}

    def __init__(self, P: ArrayLike, degree: int) -> None:
        self.P = P
        self.degree = degree

    def _family(self, n_features: int) -> Family:
        from .polynomial import PolynomialFamily

        return PolynomialFamily(self.degree)


class FamilyKernel(_MatrixKernel):
    """k(x, y) = ⟨P, G(x, y)⟩ for a family of your own.

    Parameters
    ----------
    P : ndarray of float64, shape (n_P, n_P)
        Symmetric positive semidefinite.
    family : Family
        Such as an ``IntegralFamily`` or a ``CallableFamily``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import CallableFamily, FamilyKernel
    >>> family = CallableFamily(lambda x, y: np.outer(x, y), n_P=2)
    >>> FamilyKernel(np.eye(2), family)([[1.0, 2.0]])
    array([[5.]])
    """

    name = "family"

    def __init__(self, P: ArrayLike, family: Family) -> None:
        self.P = P
        self.family = family

    def _family(self, n_features: int) -> Family:
        return self.family
