"""Numbers whose fourth powers a float64 still holds; others are refused before work."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

LARGEST = 1e50
SMALLEST = 1e-50


def check_magnitude(name: str, values: npt.NDArray[Any], *, least: float = 0.0) -> None:
    """Raise if some |value| is above 1e50, or between 0 and ``least``.

    Parameters
    ----------
    name : str
        What the values are, for the message.
    values : ndarray
        Finite numbers, of any shape; one pass and no copy.
    least : float, default=0.0
        Smallest size of a value that is not zero.

    Raises
    ------
    ValueError
        With the value seen and what would be right.
    """
    if values.size == 0:
        return
    largest = max(float(values.max()), -float(values.min()))
    if largest > LARGEST:
        raise ValueError(
            f"{name} has values up to {largest:.3g}, too large: their products overflow, scale "
            f"them to at most {LARGEST:g}"
        )
    if least > 0.0:
        sizes = np.abs(values[values != 0.0])
        if sizes.size and float(sizes.min()) < least:
            raise ValueError(
                f"{name} has values down to {float(sizes.min()):.3g}, too small: their products "
                f"underflow, scale them to at least {least:g}"
            )


def check_decision(values: npt.NDArray[Any], X: npt.NDArray[Any]) -> None:
    """Raise if a decision value is not finite: the points are too far from the training points.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_outputs)
        What was computed.
    X : ndarray of shape (n_samples, n_features)
        The points, for the message.

    Raises
    ------
    ValueError
        With the largest feature and what to do.
    """
    if not np.isfinite(values).all():
        raise ValueError(
            f"X has values up to {float(np.abs(X).max()):.3g}, too large: kernel values of such "
            "points overflow, scale the features"
        )


def check_strength(name: str, value: Any) -> float:
    """Return a parameter as a float if it is a number in [1e-50, 1e50].

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        What was given.

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        If it is not a number, not positive, or too large or small to multiply with.

    Examples
    --------
    >>> from kernelweave.kernels_core.magnitude import check_strength
    >>> check_strength("lam", 0.5)
    0.5
    """
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    strength = float(value) if number else np.nan
    if not strength > 0.0:
        raise ValueError(f"{name} must be finite and positive, got {value!r}")
    if not SMALLEST <= strength <= LARGEST:
        raise ValueError(
            f"{name} must be a finite number from {SMALLEST:g} to {LARGEST:g}, got {value!r}: "
            "others overflow or underflow"
        )
    return strength
