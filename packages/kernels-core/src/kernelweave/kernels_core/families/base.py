"""What a kernel family is, and what it must offer to a solver.

A family is a set of kernels that is linear in a positive semidefinite matrix ``P``::

    k(x, y) = Σᵢⱼ Pᵢⱼ Gᵢⱼ(x, y),        G(x, y) = ∫ N(z, x) N(z, y)ᵀ dz,        trace P = n_P

Solvers ask for three things only: the Gram matrix of a ``P`` (or of a rank-one ``P = vvᵀ``),
and the moment matrix ``D(w) = Σₖₗ wₖ wₗ G(xₖ, xₗ)``, which is the derivative of ``wᵀ K(P) w``
with respect to ``P``. Any object with the members below is a family; inheritance is not needed.
The shortest ways to add one are `IntegralFamily`, which needs ``N`` alone, and `CallableFamily`,
which needs ``G`` alone.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import RealArray


@runtime_checkable
class PreparedFamily(Protocol):
    """A family bound to training samples; holds what does not depend on ``P``."""

    @property
    def n_P(self) -> int:
        """Side of ``P``."""

    @property
    def n_samples(self) -> int:
        """Number of training samples."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the Gram matrices, float32 or float64; moments are always float64."""

    @property
    def scale(self) -> float:
        """A natural unit of the kernel values, such as the volume of a box.

        The values are **not** divided by it: a solver divides where it needs to.
        """

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = vᵀ G(xₖ, xₗ) v``, shape (m, m)."""

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = ⟨P, G(xₖ, xₗ)⟩``, shape (m, m)."""

    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``, shape (n_P, n_P), for W of shape (m,) or (t, m)."""

    def moment_error(self, W: ArrayLike) -> float:
        """Return a proven bound on the spectral norm of the rounding error of ``moment(W)``."""


@runtime_checkable
class Family(Protocol):
    """A set of kernels that is linear in ``P``, not yet bound to samples."""

    @property
    def name(self) -> str:
        """The name under which the family is registered."""

    @property
    def n_P(self) -> int:
        """Side of ``P``."""

    @property
    def trace(self) -> float:
        """The trace that ``P`` is normalised to."""

    def block(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return ``G(x, y)``, shape (n_P, n_P); in general ``G(x, y) = G(y, x)ᵀ`` only."""

    def gram(self, X: ArrayLike, P: ArrayLike, Y: ArrayLike | None = None) -> RealArray:
        """Return ``⟨P, G(xₖ, yₗ)⟩``, shape (n_x, n_y)."""

    def diag(self, X: ArrayLike, P: ArrayLike) -> NDArray[np.float64]:
        """Return ``⟨P, G(xₖ, xₖ)⟩``, shape (n_x,)."""

    def prepare(self, X: ArrayLike, dtype: DTypeLike = np.float64) -> PreparedFamily:
        """Bind the family to training samples."""
