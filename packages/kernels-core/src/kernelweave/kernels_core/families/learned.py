"""The kernel of a family at a learned positive semidefinite matrix P."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Points, RealArray
from ..checks import Rule, one_of
from ..exceptions import warn
from ..grams.psd import find_indefinite
from ..kernels.base import Kernel

if TYPE_CHECKING:
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


class FamilyKernel(Kernel):
    """Kernel k(x, y) = ⟨P, G(x, y)⟩ = Σᵢⱼ Pᵢⱼ Gᵢⱼ(x, y) of a family at one matrix P.

    Kernel values are computed in float64 and returned in the precision of the samples.

    Parameters
    ----------
    P : array-like of shape (n_P, n_P)
        Symmetric positive semidefinite matrix, usually learned.
    family : Family
        A `TessellatedFamily`, a `PolynomialFamily`, or one of your own, such as an
        `IntegralFamily` or a `CallableFamily`.
    outside : {"raise", "clip"}, default="raise"
        What to do with samples outside the box of a tessellated family: raise an error, or move
        them onto its surface, with one warning per call that counts them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import CallableFamily, FamilyKernel
    >>> family = CallableFamily(lambda x, y: np.outer(x, y), n_P=2)
    >>> FamilyKernel(np.eye(2), family)([[1.0, 2.0]])
    array([[5.]])
    """

    name = "family"

    _rules: ClassVar[dict[str, Rule]] = {"outside": one_of("raise", "clip")}

    def __init__(
        self, P: ArrayLike, family: Family, outside: Literal["raise", "clip"] = "raise"
    ) -> None:
        self.P = P
        self.family = family
        self.outside = outside

    @property
    def is_psd(self) -> bool | None:
        """True if P is positive semidefinite up to rounding, else None: nothing is known."""
        return True if find_indefinite(self._matrix()) is None else None

    def _matrix(self) -> NDArray[np.float64]:
        return np.asarray(_MATRIX.check("FamilyKernel: P", self.P), dtype=np.float64)

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        left, outside = self._into_box(X)
        right, more = (None, 0) if Y is None else self._into_box(Y)
        self._warn(outside + more)
        K = self.family.gram(left, self._matrix(), right)
        return np.asarray(K).astype(X.dtype, copy=False)

    def _diag(self, X: Points) -> RealArray:
        points, outside = self._into_box(X)
        self._warn(outside)
        return np.asarray(self.family.diag(points, self._matrix())).astype(X.dtype, copy=False)

    def _into_box(self, X: Points) -> tuple[NDArray[np.float64], int]:
        """Return the samples in float64, moved into the family's box, and how many were outside.

        A family without ``into_box`` takes all samples. Raises ValueError if some are outside and
        ``outside="raise"``.
        """
        move = getattr(self.family, "into_box", None)
        if move is None:
            return np.asarray(X, dtype=np.float64), 0
        points, count = move(np.asarray(X))
        if count and self.outside == "raise":
            raise ValueError(
                f"{count} of {X.shape[0]} samples lie outside the box [lower, upper] of the "
                "family: widen it before learning, or use outside='clip'"
            )
        return points, count

    def _warn(self, count: int) -> None:
        if count:
            lie, were = ("sample lies", "was") if count == 1 else ("samples lie", "were")
            warn(
                f"{count} {lie} outside the box of the tessellated kernel and {were} moved onto "
                "its surface: learn with a wider box if that is many"
            )
