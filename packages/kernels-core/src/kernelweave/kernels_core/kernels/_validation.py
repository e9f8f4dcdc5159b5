"""What a kernel may be given: samples, numbers, column lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..arrays import Points, RealArray, Rows, is_sparse

# the fourth power is still a number
LEAST = 1e-75


def is_vector(X: object) -> bool:
    """Tell whether ``X`` is one dense sample: a 1-dimensional array or a flat sequence."""
    if hasattr(X, "ndim"):
        return bool(X.ndim == 1) and not is_sparse(X)
    try:
        return np.asarray(X).ndim == 1
    except ValueError:  # rows of different lengths: check_samples says so
        return False


def check_size(X: Points) -> None:
    """Raise if all features are so small that products of them underflow."""
    values = X.data if is_sparse(X) else X
    largest = float(np.abs(values).max()) if values.size else 0.0
    if 0.0 < largest < LEAST:
        raise ValueError(
            f"X has values up to {largest:.3g} in size, too small: their products underflow, scale "
            f"the features, whose largest should be {LEAST:g} or more"
        )


def check_samples(X: Rows, what: str = "X", *, dtype: DTypeLike | None = None) -> Points:
    """Return samples as a finite C-contiguous float array, or as sorted CSR.

    `X` of shape (n_samples, n_features): real numbers. float32 stays float32, everything else
    becomes float64; `what`: name of the argument, for messages; `dtype`: the type to convert to
    instead. Returns shape (n_samples, n_features). Raises ValueError if ``X`` is not 2-dimensional,
    not real numbers, not finite, or without features.
    """
    # tocsr returns a CSR input itself: sorting that one would reorder the caller's data
    array = (X.copy() if X.format == "csr" else X.tocsr()) if is_sparse(X) else _as_array(X, what)
    if array.ndim != 2:
        raise ValueError(
            f"{what} has shape {array.shape}: samples are rows of a 2-dimensional array, "
            f"use {what}.reshape(1, -1) for one sample or {what}.reshape(-1, 1) for one feature"
        )
    if array.shape[1] == 0:
        raise ValueError(f"{what} has shape {array.shape}: at least one feature is needed")
    own = _float_type(array.dtype, what)
    wanted = own if dtype is None else dtype
    if is_sparse(array):
        array = array.astype(wanted, copy=False)  # type: ignore[assignment]
        array.sum_duplicates()
    else:
        array = np.ascontiguousarray(array, wanted)
    if not np.isfinite(array.data if is_sparse(array) else array).all():
        raise ValueError(f"{what} contains NaN or infinity: remove or impute those values")
    return array


def _as_array(X: Rows, what: str) -> RealArray:
    try:
        array = np.asarray(X)
        return array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must hold real numbers in rows of one length: {error}") from None


def _float_type(dtype: np.dtype[np.floating], what: str) -> type[np.floating]:
    if dtype.kind not in "fiub":
        raise ValueError(f"{what} has dtype {dtype}: real numbers are needed")
    return np.float32 if dtype == np.float32 else np.float64


def check_pair(X: Rows, Y: Rows | None) -> tuple[Points, Points | None]:
    """Return both sample sets checked, of one float type; ``Y`` is ``None`` where it is ``X``.

    Raises ValueError if either is invalid (see `check_samples`) or their numbers of features
    differ.
    """
    if Y is None or Y is X:
        return check_samples(X), None
    A, B = check_samples(X), check_samples(Y, "Y")
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"X has {A.shape[1]} features and Y has {B.shape[1]}: both need the same features"
        )
    if is_sparse(A) != is_sparse(B):
        raise ValueError("X and Y must both be sparse or both dense: use .toarray() on one")
    if A.dtype != B.dtype:
        A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    return A, B
