"""A kernel on standardised features, for points as the user gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def standard_scale(X: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and standard deviation of each column; constant columns get 1.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    weight : ndarray of shape (n,), optional
    """
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    tiny = 10.0 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
    return mean, np.where(spread > tiny, spread, 1.0)


@dataclass(frozen=True, eq=False)
class StandardizedKernel:
    """``k((x − m)/s, (y − m)/s)``.

    Attributes
    ----------
    kernel : callable
        On standardised features.
    mean, spread : ndarray of shape (n_features,)
        m and s.
    """

    kernel: Any
    mean: FloatArray
    spread: FloatArray

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> FloatArray:
        """Return the kernel matrix, shape (n_x, n_y).

        Parameters
        ----------
        X, Y : array-like of shape (n_x, n_features) and (n_y, n_features)
        """
        A = (np.asarray(X, dtype=np.float64) - self.mean) / self.spread
        B = A if Y is None else (np.asarray(Y, dtype=np.float64) - self.mean) / self.spread
        values: FloatArray = self.kernel(A, B)
        return values
