"""Features shifted and divided before a kernel sees them: to [0, 1], or to mean 0 and spread 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import FloatArray, Points, RealArray
from ..checks import Rule
from .base import KERNEL, Kernel


def unit_range(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the minima and ranges of the columns: (X − shift) / width lies in [0, 1].

    A constant feature has width 1 and becomes 0. Raises ValueError if a range overflows float64.
    """
    shift = X.min(axis=0)
    with np.errstate(over="ignore"):
        width = X.max(axis=0) - shift
    if not np.isfinite(width).all():
        column = int(np.flatnonzero(~np.isfinite(width))[0])
        raise ValueError(
            f"X column {column} spans more than float64 can hold "
            f"({shift[column]:g} to {X[:, column].max():g}): rescale it first"
        )
    tiny = np.finfo(np.float64).tiny
    return shift, np.where(width > tiny, width, 1.0)


def mean_and_spread(X: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and standard deviation of each column; constant columns get 1."""
    # in units of each column, powers of two: squares neither over- nor underflow
    exponent = np.frexp(np.abs(X).max(axis=0))[1]
    Z = np.ldexp(X, -exponent)
    mean = np.average(Z, axis=0, weights=weight)
    spread = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weight))
    tiny = 10.0 * np.finfo(np.float64).eps * np.abs(Z).max(axis=0)
    width = np.where(spread > tiny, np.ldexp(spread, exponent), 1.0)
    return np.ldexp(mean, exponent), width


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − shift) / width.

    `shift`, `width` of shape (n_features,): from the training data; every width is positive.
    """

    shift: FloatArray
    width: FloatArray

    def __call__(self, X: Points) -> FloatArray:
        """Return scaled features, shape (n_samples, n_features)."""
        return (np.asarray(X) - self.shift) / self.width

    def of_kernel(self, kernel: Kernel) -> ScaledFeatures:
        """Return a kernel on features as given."""
        return ScaledFeatures(kernel, self.shift, self.width)


class ScaledFeatures(Kernel):
    """k((x − shift) / width, (y − shift) / width) for a kernel k.

    Parameters
    ----------
    kernel : Kernel
        Sees scaled features.
    shift, width : ndarray of shape (n_features,)
        From the training data; every width is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import Linear
    >>> from kernelweave.kernels_core import ScaledFeatures
    >>> k = ScaledFeatures(Linear(), shift=np.array([1.0]), width=np.array([2.0]))
    >>> k([[5.0]])
    array([[4.]])
    """

    name: ClassVar[str] = "scaled-features"
    _rules: ClassVar[dict[str, Rule]] = {"kernel": KERNEL}

    def __init__(self, kernel: Kernel, shift: FloatArray, width: FloatArray) -> None:
        self.kernel = kernel
        self.shift = shift
        self.width = width

    @property
    def is_psd(self) -> bool | None:
        """As the inner kernel."""
        return self.kernel.is_psd

    def _scale(self, X: Points) -> Points:
        if X.shape[1] != len(self.shift):
            raise ValueError(f"X has {X.shape[1]} features, the kernel expects {len(self.shift)}")
        # a point far outside may overflow; the box of the inner kernel clips or refuses it
        with np.errstate(over="ignore"):
            scaled = (np.asarray(X, dtype=np.float64) - self.shift) / self.width
        limit = np.finfo(X.dtype).max
        return np.clip(scaled, -limit, limit).astype(X.dtype)

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        return self.kernel(self._scale(X), None if Y is None else self._scale(Y))

    def _diag(self, X: Points) -> RealArray:
        return self.kernel.diag(self._scale(X))
