"""One Gram matrix in memory, as compiled code takes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import RealArray
from ..exceptions import NotPSDError
from . import _njit_stored
from .psd import rounding_tolerance

KernelArray = NDArray[np.float64] | NDArray[np.float32]
# Relative to the largest entry: what rounding leaves of a symmetric matrix, in float32 too. More is
# a matrix that nobody meant.
_ASYMMETRY_LIMIT = 1e-6
# two of these have a finite product
_LARGEST_REACH = 1e150


def as_gram(K: ArrayLike) -> KernelArray:
    """Return K as a read-only C-contiguous view in float64 or float32; copy only if it must be.

    A Fortran-ordered K is transposed instead of copied: it is symmetric.
    """
    array: RealArray = np.asarray(K)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"K must be a square matrix (n, n), got shape {array.shape}")
    if array.shape[0] == 0:
        raise ValueError("K has no samples (shape (0, 0)); at least 2 are needed")
    if array.dtype not in (np.float64, np.float32):
        if array.dtype.kind not in "biuf":
            raise ValueError(f"K must hold real numbers, got dtype {array.dtype}")
        array = array.astype(np.float64)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        array = array.T
    view: KernelArray = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def check_gram(K: KernelArray) -> float:
    """Return ``max |Kᵢⱼ − Kⱼᵢ|`` after checking that K is finite and symmetric: n² loads.

    Of the signs of the eigenvalues only what two rows show is checked: ``Kᵢⱼ² ≤ KᵢᵢKⱼⱼ``, up to
    rounding.

    Raises ValueError if an entry is NaN or infinite (the message gives its place), or if the
    asymmetry is more than 1e-6 times the largest entry; NotPSDError if two rows and columns show a
    negative eigenvalue.
    """
    diagonal = np.diagonal(K).astype(np.float64)
    with np.errstate(invalid="ignore"):
        slack = rounding_tolerance(len(K), float(np.abs(diagonal).max()), K.dtype)
        reach = np.sqrt(np.maximum(diagonal + slack, 0.0))
    if reach.max() < _LARGEST_REACH and _njit_stored.is_sound(K, reach):
        return 0.0
    largest, asymmetry, finite, within = _njit_stored.scan_gram(K, reach)
    if not finite:
        row, column = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(
            f"K must be finite, got {K[row, column]} at position ({row}, {column}): check the "
            "features for missing values or overflow"
        )
    if asymmetry > _ASYMMETRY_LIMIT * largest:
        raise ValueError(
            f"K must be symmetric, got max |K - K.T| = {asymmetry:.3g} with entries up to "
            f"{largest:.3g}: pass (K + K.T) / 2 if that is what you mean"
        )
    if not within:
        excess = np.abs(K) - np.outer(reach, reach)
        row, column = np.unravel_index(int(np.argmax(excess)), K.shape)
        raise NotPSDError(
            f"K is not positive semidefinite: its rows {row} and {column} have the entries "
            f"{K[row, row]:.6g}, {K[row, column]:.6g} and {K[column, column]:.6g}, which need "
            "K[i, j]**2 <= K[i, i] * K[j, j]: set its negative eigenvalues to zero"
        )
    return float(asymmetry)
