"""What families from a third party's own function share."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import ArrayLike

from ..checks import COUNT
from .base import PreparedFamily


class OwnFamily:
    """A family given by a function: its name, the side of P, and D by way of `prepare`."""

    def __init__(self, function: Callable[..., ArrayLike], n_P: int, name: str) -> None:
        COUNT.check("n_P", n_P)
        self._function, self._n_P, self.name = function, int(n_P), name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._function!r}, n_P={self._n_P}, name={self.name!r})"

    @property
    def n_P(self) -> int:
        """Side of P."""
        return self._n_P

    @property
    def trace(self) -> float:
        """The trace that P is normalised to, n_P."""
        return float(self._n_P)

    def prepare(self, X: ArrayLike) -> PreparedFamily:
        """Bind the family to samples."""
        raise NotImplementedError

    def moment(self, X: ArrayLike, w: ArrayLike) -> FloatArray:
        """Return ``D(w) = Σₖₗ wₖ wₗ G(xₖ, xₗ)``, shape (n_P, n_P)."""
        return self.prepare(X).moment(w)
