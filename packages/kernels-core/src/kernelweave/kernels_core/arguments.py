"""What a public function may be given: numbers, arrays, Gram matrices, targets, weights."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from .kernels.precomputed import as_grams
from .kernels.psd import require_psd
from .magnitude import check_magnitude

FloatArray = npt.NDArray[np.float64]


def check_number(
    name: str, value: Any, *, low: float, high: float = math.inf, strict: bool = False
) -> None:
    """Raise unless ``value`` is a finite real number in [low, high), (low, high) if strict."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if ok:
        ok = (value > low if strict else value >= low) and value < high
    if not ok:
        limit = "" if math.isinf(high) else f" and < {high:g}"
        sign = ">" if strict else ">="
        raise ValueError(f"{name} must be a finite number {sign} {low:g}{limit}, got {value!r}")


def check_whole(name: str, value: Any, *, low: int) -> None:
    """Raise unless ``value`` is an integer ≥ low."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")


def check_array(name: str, values: Any, n_dimensions: int) -> FloatArray:
    """Return finite numbers as a float64 array that is not empty, of so many dimensions.

    Raises
    ------
    ValueError
        Naming the argument and what was seen.
    """
    array = _finite(name, values)
    if array.ndim != n_dimensions or array.size == 0:
        raise ValueError(
            f"{name} must be an array with {n_dimensions} axes and at least one entry, "
            f"got shape {array.shape}"
        )
    return array


def check_square(name: str, values: Any) -> FloatArray:
    """Return finite numbers as a float64 array of shape (n, n) with n ≥ 1.

    Raises
    ------
    ValueError
        Naming the argument and what was seen.
    """
    array = check_array(name, values, 2)
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    return array


def check_grams(grams: Any, name: str = "grams", *, psd: bool = False) -> npt.NDArray[Any]:
    """Return Gram matrices as one float array of at least one sample.

    Parameters
    ----------
    grams : array-like of shape (n_kernels, n_samples, n_samples)
        Finite and symmetric.
    name : str, default="grams"
        Name of the argument, for messages.
    psd : bool, default=False
        Whether a negative eigenvalue is refused: n³/3 operations a matrix.

    Returns
    -------
    ndarray of float32 or float64, shape (n_kernels, n_samples, n_samples)
        The argument itself where it is such an array.

    Raises
    ------
    ValueError
        If the shape is wrong, an entry is not finite or above 1e50, or one is not symmetric.
    NotPSDError
        With ``psd``, if one has a negative eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.arguments import check_grams
    >>> check_grams([np.eye(2), np.ones((2, 2))]).shape
    (2, 2, 2)
    """
    stack = as_grams(grams, name, square=True)
    if stack.shape[1] == 0:
        raise ValueError(f"{name} has shape {stack.shape}: no samples, at least one is needed")
    if psd:
        for j, K in enumerate(stack):
            require_psd(K, f"{name}[{j}]")
    return stack


def check_vector(name: str, values: Any, size: int) -> FloatArray:
    """Return finite numbers of at most 1e50 in size, shape (size,).

    Raises
    ------
    ValueError
        Naming the argument and what was seen.
    """
    vector = _finite(name, values)
    check_magnitude(name, vector)
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {vector.shape}")
    return vector


def check_targets(
    name: str, values: Any, n_samples: int, *, labels: bool = False
) -> npt.NDArray[np.float64]:
    """Return targets as rows of finite numbers, shape (n_tasks, n_samples).

    Parameters
    ----------
    name : str
        Name of the argument, for messages.
    values : array-like of shape (n_samples,) or (n_tasks, n_samples)
        Numbers of at most 1e50 in size.
    n_samples : int
        What the Gram matrices have.
    labels : bool, default=False
        Whether each row must hold −1 and +1, and both.

    Returns
    -------
    ndarray of float64, shape (n_tasks, n_samples)
        The rows.

    Raises
    ------
    ValueError
        Naming the argument and what was seen.

    Examples
    --------
    >>> from kernelweave.kernels_core.arguments import check_targets
    >>> check_targets("y", [-1, 1, 1], 3, labels=True)
    array([[-1.,  1.,  1.]])
    """
    rows = np.atleast_2d(_finite(name, values))
    check_magnitude(name, rows)
    if rows.ndim != 2 or rows.shape[1] != n_samples:
        raise ValueError(
            f"{name} must have shape ({n_samples},) or (n_tasks, {n_samples}), one entry a sample, "
            f"got {np.shape(values)}"
        )
    if labels:
        odd = rows[np.abs(rows) != 1.0]
        if odd.size:
            raise ValueError(f"{name} must hold -1 and +1 only, got {odd[0]}: encode the classes")
        if (np.ptp(rows, axis=1) == 0.0).any():
            raise ValueError(f"{name} must hold both classes in each row, one is missing")
    return rows


def check_sample_weight(values: Any, n_samples: int) -> FloatArray | None:
    """Return nonnegative finite weights, not all zero, shape (n_samples,), or None.

    Raises
    ------
    ValueError
        Saying which weight is wrong.
    """
    if values is None:
        return None
    weight = check_vector("sample_weight", values, n_samples)
    if weight.min() < 0.0:
        at = int(np.argmin(weight))
        raise ValueError(f"sample_weight must be at least 0, got {weight[at]} at position {at}")
    if not weight.any():
        raise ValueError("sample_weight must be positive somewhere, got zeros only")
    return weight


def _finite(name: str, values: Any) -> FloatArray:
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must hold real numbers, got complex ones")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers: {error}") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at position {where}")
    return array
