"""Features scaled to [0, 1], and a kernel that sees them so."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Kernel, KernelWeaveWarning

FloatArray = npt.NDArray[np.float64]

# six digits of a float64 are left to tell samples apart
_LARGEST_VOLUME = 1e10


def warn_of_volume(width: FloatArray) -> None:
    """Warn where the volume of the box drowns what tells samples apart.

    The integral over the part of the box that lies on one side of all samples grows with the
    volume; what differs between samples does not.

    Parameters
    ----------
    width : ndarray of shape (n_features,)
        Of the box, in features scaled to [0, 1].

    Warns
    -----
    KernelWeaveWarning
        Naming the volume and a ``delta`` that keeps it in bounds.
    """
    volume = float(np.prod(width))
    if volume <= _LARGEST_VOLUME:
        return
    delta = 0.5 * (_LARGEST_VOLUME ** (1.0 / len(width)) - 1.0)
    warnings.warn(
        f"the box of the tessellated kernel has the volume {volume:.1e} in {len(width)} features, "
        f"and rounding hides what is small beside it: lower delta, to {delta:.2g} or less",
        KernelWeaveWarning,
        stacklevel=2,
    )


def unit_range(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (shift, width) so that (X − shift) / width lies in [0, 1].

    A constant feature has width 1 and becomes 0.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite.

    Returns
    -------
    shift, width : ndarray of shape (n_features,)
        The column minima and ranges.

    Raises
    ------
    ValueError
        If a feature's range overflows float64.
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
    >>> from kernelweave.spectahedron import ScaledFeatures
    >>> k = ScaledFeatures(Linear(), shift=np.array([1.0]), width=np.array([2.0]))
    >>> k([[5.0]])
    array([[4.]])
    """

    name: ClassVar[str] = "scaled-features"

    def __init__(self, kernel: Kernel, shift: FloatArray, width: FloatArray) -> None:
        self.kernel = kernel
        self.shift = shift
        self.width = width

    @property
    def is_psd(self) -> bool | None:
        """As the inner kernel."""
        return self.kernel.is_psd

    def _validate(self) -> None:
        self.kernel._validate()

    def _scale(self, X: Any) -> Any:
        if X.shape[1] != len(self.shift):
            raise ValueError(f"X has {X.shape[1]} features, the kernel expects {len(self.shift)}")
        # a point far outside may overflow; the box of the inner kernel clips or refuses it
        with np.errstate(over="ignore"):
            scaled = (X.astype(np.float64) - self.shift) / self.width
        limit = np.finfo(X.dtype).max
        return np.clip(scaled, -limit, limit).astype(X.dtype)

    def _gram(self, X: Any, Y: Any | None) -> npt.NDArray[Any]:
        return self.kernel(self._scale(X), None if Y is None else self._scale(Y))

    def _diag(self, X: Any) -> npt.NDArray[Any]:
        return self.kernel.diag(self._scale(X))
