"""What every family bound to training samples has: its size, theirs, and a precision."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import RealArray
from ._arguments import output


class BoundSamples(ABC):
    """The sizes of a family and of its samples.

    - `n_P`: side of P
    - `n_samples`: number of training samples
    - `dtype`: precision of the Gram matrices; moments are always float64
    - `nbytes`: bytes held
    """

    def __init__(self, n_P: int, n_samples: int, dtype: np.dtype[np.floating], nbytes: int) -> None:
        self.n_P, self.n_samples, self.dtype, self.nbytes = n_P, n_samples, dtype, nbytes

    def _output(self, out: RealArray | None) -> RealArray:
        return output(out, (self.n_samples, self.n_samples), self.dtype)

    @abstractmethod
    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``D = Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``, for W of shape (m,) or (t, m)."""
