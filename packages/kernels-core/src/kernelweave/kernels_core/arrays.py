"""The types of arrays that signatures share, and how to tell a sparse one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scipy.sparse import csr_array, sparray, spmatrix
    from typing_extensions import TypeIs

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
# checked samples, as rows: dense, or CSR for kernels that take it
Points: TypeAlias = "RealArray | csr_array[np.floating]"


def row_slices(n_rows: int, size: int) -> Iterator[slice]:
    """Cut ``n_rows`` rows into slices of ``size`` rows, the last of what is left."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def is_sparse(X: object) -> TypeIs[csr_array[np.floating]]:
    """Tell whether ``X`` is a scipy sparse array or matrix, without importing scipy."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(X))
