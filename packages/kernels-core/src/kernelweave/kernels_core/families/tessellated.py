"""The tessellated family: kernels that are piecewise polynomial on boxes around the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..checks import integer, real_dtype
from . import _affine, _box, _general, _sub_boxes
from ._arguments import in_box, matrix, samples
from ._box import TessellatedTables, count_tessellated, tessellated_tables
from ._groups import order_of, program
from ._prepared import PreparedAffine, PreparedTessellated, factors_of, fill_rectangle
from ._sub_boxes import PreparedSubBoxes, SubBoxes
from .learned import FamilyKernel


def _corner(name: str, value: ArrayLike) -> NDArray[np.float64]:
    corner = np.array(value, dtype=np.float64)
    if corner.ndim != 1 or len(corner) == 0:
        raise ValueError(
            f"{name} must be one number per feature, shape (n_features,), got shape {corner.shape}"
        )
    if not np.isfinite(corner).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    corner.flags.writeable = False
    return corner


@dataclass(frozen=True, eq=False, repr=False)
class TessellatedFamily:
    """Tessellated kernels ``k(x, y) = Σᵢⱼ Pᵢⱼ ∫_{[a, b]} Nᵢ(z, x) Nⱼ(z, y) dz`` with P ⪰ 0.

    ``N(z, x) = [Z(z, x)·I(z ≥ x); Z(z, x)·(1 − I(z ≥ x))]`` for a ≤ x ≤ b, where I is 1 if the
    inequality holds in every feature, and Z are the q monomials ``x^δ z^γ`` with
    ``|δ| + |γ| ≤ degree`` and ``|γ| ≤ z_degree``; P is of side ``n_P = 2q``. The monomials are in
    the variables (x₁ … xₙ, z₁ … zₙ), by total degree, each in the order of combinations with
    replacement.

    Parameters
    ----------
    degree : int, default=1
        Total degree of the monomials. Degrees 0, 1 and 2 have fast Grams; any is correct.
    lower, upper : array-like of shape (n_features,)
        Corners a < b of the box that holds all points.
    z_degree : int, optional
        Largest degree in z; None means ``degree``, and 0 where there is an order. With 0 the
        family has ``2·C(n + d, d)`` features, a subset of the full one.
    order : int or sequence of groups of columns, optional
        z lies on the disjoint union of the sub-boxes of groups of columns, uniformly, in the
        place of the whole box: of all groups of so many columns, or of those listed, such as
        ``[(0,), (1, 2)]``. I compares the columns of the group alone, and the monomials are those
        of x. Without, or with the number of features, it compares all of them.

    Raises
    ------
    ValueError
        If a corner is not finite, the corners differ in shape, lower is not below upper, or order
        names columns that do not exist.

    Notes
    -----
    "Efficient convex algorithms for universal kernel learning" (2024), equation (8) and
    Corollary 12, with the block below the diagonal corrected to the transpose of the one above
    with x and y exchanged, and the size of P to 2·C(2n + d, d).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.families import TessellatedFamily
    >>> family = TessellatedFamily(0, lower=[-0.1], upper=[1.1])
    >>> family.n_P
    2
    >>> family.block([0.25], [0.75]).round(12)
    array([[0.35, 0.5 ],
           [0.  , 0.35]])
    """

    degree: int = 1
    # what is array-like is an array once it is checked
    lower: Any = field(kw_only=True)
    upper: Any = field(kw_only=True)
    z_degree: int | None = field(default=None, kw_only=True)
    order: Any = field(default=None, kw_only=True)

    name: ClassVar[str] = "tessellated"
    # whether `prepare` keeps anything of the size of a Gram matrix
    stores_grams: ClassVar[bool] = False

    def __post_init__(self) -> None:
        integer(0).check("degree", self.degree)
        integer(0).or_none().check("z_degree", self.z_degree)
        lower, upper = _corner("lower", self.lower), _corner("upper", self.upper)
        if self.z_degree is not None and self.z_degree > self.degree:
            raise ValueError(
                f"z_degree must be at most degree = {self.degree}, got {self.z_degree}"
            )
        if lower.shape != upper.shape:
            raise ValueError(
                f"lower and upper must have the same shape, got {lower.shape} and {upper.shape}"
            )
        if not (lower < upper).all():
            j = int(np.flatnonzero(lower >= upper)[0])
            raise ValueError(
                f"lower must be below upper in every feature, got {float(lower[j])} and "
                f"{float(upper[j])} in feature {j}: widen the box"
            )
        order = order_of(self.order, len(lower))
        if order is not None and self.z_degree:
            raise ValueError(f"z_degree must be 0 where there is an order, got {self.z_degree}")
        self.__dict__.update(lower=lower, upper=upper, order=order)

    def __repr__(self) -> str:
        tail = "" if self.z_degree is None else f", z_degree={self.z_degree}"
        tail += "" if self.order is None else f", order={self.order}"
        return (
            f"TessellatedFamily(degree={self.degree}, lower={self.lower.tolist()}, "
            f"upper={self.upper.tolist()}{tail})"
        )

    def _key(self) -> tuple[object, ...]:
        corners = tuple(self.lower.tolist()), tuple(self.upper.tolist())
        return (self.degree, self._z, *corners, self.order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TessellatedFamily) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def _z(self) -> int:
        full = self.degree if self.order is None else 0
        return full if self.z_degree is None else self.z_degree

    @property
    def _tables(self) -> TessellatedTables:
        return tessellated_tables(self.n_features, self.degree, self._z)

    @property
    def _box(self) -> _general.Box:
        return _general.Box(self._tables, self.lower, self.upper)

    @property
    def _boxes(self) -> SubBoxes | None:
        if self.order is None:
            return None
        run = program(self.order, self.n_features)
        return SubBoxes(self._tables, self.lower, self.upper, run)

    @property
    def n_features(self) -> int:
        """Number of features n."""
        return len(self.lower)

    @property
    def n_P(self) -> int:
        """Side of P, ``2q``; counted, not enumerated."""
        return 2 * count_tessellated(self.n_features, self.degree, self._z)

    @property
    def trace(self) -> float:
        """The trace that P is normalised to, n_P."""
        return float(self.n_P)

    @property
    def monomials(self) -> NDArray[np.int64]:
        """Exponents of (x, z) in the q monomials, shape (q, 2n)."""
        return np.array(self._tables.monomials)

    def _points(self, X: ArrayLike, name: str) -> NDArray[np.float64]:
        array = samples(X, self.n_features, name)
        in_box(array, self.lower, self.upper, name)
        return array

    def block(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return ``G(x, y) = ∫ N(z, x) N(z, y)ᵀ dz``, entries that vanish exactly zero.

        `x`, `y` of shape (n_features,). Returns shape (n_P, n_P). Raises ValueError if a point is
        outside the box.
        """
        a = self._points(np.reshape(np.asarray(x, dtype=np.float64), (1, -1)), "x")[0]
        b = self._points(np.reshape(np.asarray(y, dtype=np.float64), (1, -1)), "y")[0]
        boxes = self._boxes
        if boxes is not None:
            return boxes.block(a, b)
        return _box.block(self._tables, a, b, self.lower, self.upper)

    def prepare(
        self, X: ArrayLike, dtype: DTypeLike = np.float64
    ) -> PreparedTessellated | PreparedSubBoxes:
        """Bind the family to samples, without storing anything of the size of a Gram matrix.

        `X` of shape (m, n_features), inside the box; `dtype`: of the Grams, float32 or float64;
        moments are float64 in both cases.
        """
        points, kind = self._points(X, "X"), real_dtype(dtype)
        boxes = self._boxes
        if boxes is not None:
            return PreparedSubBoxes(boxes, points, kind)
        fast = PreparedAffine if _affine.is_affine(self._tables) else PreparedTessellated
        return fast(self._box, points, kind)

    def gram(self, X: ArrayLike, P: ArrayLike, Y: ArrayLike | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, yₗ)⟩``, shape (n_x, n_y), float64; Y is X if not given.

        `X`, `Y` of shape (n, n_features), inside the box; `P` of shape (n_P, n_P), symmetric.
        """
        if Y is None:
            return self.prepare(X).gram(P)
        left, right, P = self._points(X, "X"), self._points(Y, "Y"), matrix(P, self.n_P)
        memory.require(
            8 * len(left) * len(right),
            f"a Gram matrix of {len(left)} x {len(right)} samples",
            alternative="pass fewer rows at a time",
        )
        boxes = self._boxes
        if boxes is not None:
            return _sub_boxes.gram_rectangular(boxes, left, right, P)
        out = np.empty((len(left), len(right)))
        fill_rectangle(self._box, left, right, P, factors_of(P), out)
        return out

    def diag(self, X: ArrayLike, P: ArrayLike) -> NDArray[np.float64]:
        """Return ``⟨P, G(xₖ, xₖ)⟩``, shape (n_x,), float64."""
        points, P = self._points(X, "X"), matrix(P, self.n_P)
        boxes = self._boxes
        if boxes is not None:
            return _sub_boxes.diagonal(_sub_boxes.BoxedSamples.of(boxes, points), P)
        return _general.diagonal(self._box, points, P)

    def into_box(self, X: RealArray) -> tuple[NDArray[np.float64], int]:
        """Return points moved into the box, in float64, and how many had to be."""
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"the box has {self.n_features} features, the samples have {X.shape[1]}"
            )
        # a float32 sample on the surface may round to just outside it: not worth a warning
        low, high = (end.astype(X.dtype, copy=False) for end in (self.lower, self.upper))
        count = int(((low > X) | (high < X)).any(axis=1).sum())
        return np.clip(X.astype(np.float64, copy=False), self.lower, self.upper), count

    def kernel(self, P: ArrayLike) -> FamilyKernel:
        """Return the kernel of one P of shape (n_P, n_P), which can be called, copied and pickled.

        Points outside the box are moved to its border with a warning.
        """
        return FamilyKernel(matrix(P, self.n_P), self, outside="clip")

    @classmethod
    def from_data(
        cls,
        X: ArrayLike,
        *,
        degree: int = 1,
        delta: float = 0.5,
        order: int | Sequence[Sequence[int]] | None = None,
    ) -> TessellatedFamily:
        """Return the family on the box of the data, widened by ``delta`` ranges on each side.

        `X` of shape (n_samples, n_features); a constant feature gets a range of 1.
        """
        points = samples(X, None)
        low, high = points.min(axis=0), points.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        return cls(degree, lower=low - delta * width, upper=high + delta * width, order=order)
