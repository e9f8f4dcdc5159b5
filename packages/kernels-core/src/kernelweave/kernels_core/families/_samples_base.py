"""What every tessellated family bound to training samples has: its size and its samples."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import RealArray
from ._arguments import output
from ._box import Float
from ._tables import TessellatedTables


class BoundSamples(ABC):
    """Samples with the tables of their family and the precision of its Gram matrices."""

    def __init__(self, tables: TessellatedTables, X: Float, dtype: np.dtype[np.floating]) -> None:
        self._tables, self._X, self._dtype = tables, X, dtype

    @property
    def n_P(self) -> int:
        """Side of P."""
        return 2 * self._tables.q

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return len(self._X)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of the Gram matrices."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._X.nbytes)

    def _output(self, out: RealArray | None) -> RealArray:
        return output(out, (self.n_samples, self.n_samples), self._dtype)

    @abstractmethod
    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``D = Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``, for W of shape (m,) or (t, m)."""
