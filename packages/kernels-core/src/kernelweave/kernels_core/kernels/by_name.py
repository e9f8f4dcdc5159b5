"""Standard kernels by their names, with the width that the training points suggest."""

from __future__ import annotations

from difflib import get_close_matches
from typing import ClassVar

import numpy as np

from ..arrays import Points, RealArray, is_sparse
from .base import Kernel
from .standard import Linear, standard_kernels


def mean_and_variance(X: Points) -> tuple[float, float]:
    """Return the mean and the variance of all entries of a matrix, dense or sparse."""
    if not is_sparse(X):
        return float(np.mean(X, dtype=np.float64)), float(np.var(X, dtype=np.float64))
    mean = float(X.mean(dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    return mean, max(float(np.sum(X.data.astype(np.float64) ** 2)) / size - mean**2, 0.0)


class ByName(Kernel):
    """A standard kernel of default parameters but γ, which the training points choose.

    γ = 1/(n_features · Var X), as ``gamma="scale"`` in scikit-learn, where distances or products
    are squared (Gaussian, polynomial, sigmoid), and 1/(n_features · √Var X) for the Laplacian;
    of constant points γ = 1. A `KernelDictionary` makes it of ``"rbf"`` and the like.

    `kind` in {"polynomial", "rbf", "laplacian", "sigmoid"}: name of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.kernels import KernelDictionary
    >>> fitted = KernelDictionary(["linear", "rbf"]).fit_grams(np.array([[-2.0], [2.0]]))
    >>> fitted.names, fitted.kernels[1]
    (('linear', 'rbf'), RBF(gamma=0.25))
    """

    name: ClassVar[str] = "by-name"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def is_psd(self) -> bool | None:
        """As the kernel of that name."""
        return standard_kernels()[self.kind]().is_psd

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        """As the kernel of that name."""
        return standard_kernels()[self.kind].accepts_sparse

    def _at(self, X: Points) -> Kernel:
        _, variance = mean_and_variance(X)
        spread = np.sqrt(variance) if self.kind == "laplacian" else variance
        scale = X.shape[1] * spread
        gamma = 1.0 / scale if scale > 0.0 and np.isfinite(1.0 / scale) else 1.0
        return standard_kernels()[self.kind](gamma=float(gamma))  # type: ignore[call-arg]

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        raise ValueError(
            f"the width of {self.kind!r} comes from training points: use "
            f"KernelDictionary.fit_grams(X_train), or {standard_kernels()[self.kind].__name__}"
            "(gamma=...)"
        )

    def __repr__(self) -> str:
        return self.kind


def kernel_by_name(kind: str) -> Kernel:
    """Return the standard kernel of a name.

    `kind`: ``"linear"``, ``"polynomial"``, ``"rbf"``, ``"laplacian"`` or ``"sigmoid"``. Raises
    ValueError if there is none, with the nearest name.
    """
    known = standard_kernels()
    if kind not in known:
        near = get_close_matches(kind, known, 1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"kernels by name are {', '.join(known)}, got {kind!r}{hint}")
    return Linear() if kind == "linear" else ByName(kind)
