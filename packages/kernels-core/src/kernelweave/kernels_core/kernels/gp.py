"""A kernel as a scikit-learn Gaussian-process kernel. Importing this file imports scikit-learn."""

from __future__ import annotations

import numpy as np

from ..arrays import RealArray, Rows
from .base import Kernel

try:
    from sklearn.gaussian_process.kernels import Kernel as _SklearnKernel
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "as_sklearn_gp_kernel needs scikit-learn: install it with `pip install scikit-learn`"
    ) from error


class FixedKernel(_SklearnKernel):  # type: ignore[misc]
    """A kernel with no hyperparameters, for ``GaussianProcessRegressor``.

    `kernel`: evaluated as it is; combine with ``ConstantKernel() * … + WhiteKernel()`` to fit a
    scale and a noise level.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(
        self, X: Rows, Y: Rows | None = None, eval_gradient: bool = False
    ) -> RealArray | tuple[RealArray, RealArray]:
        """Return k(X, Y), shape (n_x, n_y), and with ``eval_gradient`` an empty gradient."""
        K = self.kernel(X, Y)
        if not eval_gradient:
            return K
        if Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        return K, np.empty((*K.shape, 0))

    def diag(self, X: Rows) -> RealArray:
        """Return k(xᵢ, xᵢ), shape (n,)."""
        return self.kernel.diag(X)

    def is_stationary(self) -> bool:
        """Return False: nothing is known of it."""
        return False

    def __repr__(self) -> str:
        return f"FixedKernel({self.kernel!r})"


def as_sklearn_gp_kernel(kernel: Kernel) -> FixedKernel:
    """Return a kernel in the form that scikit-learn's Gaussian processes take.

    Parameters
    ----------
    kernel : Kernel
        Any kernel, for example the fitted ``kernel_`` of an estimator.

    Returns
    -------
    sklearn.gaussian_process.kernels.Kernel
        With no hyperparameters: ``kernel`` is used as it is.

    Raises
    ------
    TypeError
        If ``kernel`` is not a `Kernel`.

    Examples
    --------
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from kernelweave.kernels_core.kernels import RBF, as_sklearn_gp_kernel
    >>> gp = GaussianProcessRegressor(as_sklearn_gp_kernel(RBF(gamma=0.5)), alpha=1e-6)
    >>> gp.fit([[0.0], [1.0]], [0.0, 1.0]).predict([[1.0]]).round(3)
    array([1.])
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a KernelWeave kernel, got {kernel!r}")
    return FixedKernel(kernel)
