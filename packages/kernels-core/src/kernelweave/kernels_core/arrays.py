"""The types of arrays that signatures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

FloatArray: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = FloatArray
Vector: TypeAlias = FloatArray
Index: TypeAlias = NDArray[np.intp]
# float64 or float32, as the caller chose
RealArray: TypeAlias = NDArray[np.floating]
# numbers, words or other objects
Labels: TypeAlias = NDArray[np.generic]
# what users give for samples: whatever numpy reads, tables among it, and sparse matrices
Rows: TypeAlias = "ArrayLike | sparray | spmatrix"
RandomState: TypeAlias = "int | np.random.RandomState | None"
