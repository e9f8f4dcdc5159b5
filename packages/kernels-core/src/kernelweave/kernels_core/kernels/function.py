"""A kernel given by a function of two sets of points, as scikit-learn's ``SVC`` takes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..arrays import Points, RealArray, is_sparse, row_slices
from ..checks import Rule
from ..grams._fill import asymmetry, largest, mirror
from .base import Kernel

# rows whose kernel with one another is computed for their diagonal
_BLOCK = 64
# what rounding may change of an entry, in units of the largest entry and of the rounding unit
_ROUNDING = 1e4


class FunctionKernel(Kernel):
    """k(x, y) given by a function of two matrices of points, such as `sklearn.metrics.pairwise`'s.

    A list of kernels takes the function as it is, ``kernels=[rbf_kernel, my_kernel]``. Its Gram
    matrix of the training points is tested for negative eigenvalues. Bind parameters by
    `functools.partial`. For a function of two vectors write
    ``lambda X, Z: pairwise_kernels(X, Z, metric=f)``.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` of arrays of shapes (n_x, n_features) and (n_z, n_features) returns the
        array of shape (n_x, n_z) of k(xᵢ, zⱼ), which depends on these two points alone.

    Raises
    ------
    ValueError
        Where it is called: if the function returns another shape, values that are not finite
        numbers, a matrix of the training points that is not symmetric, or other values for the
        same two points.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import FunctionKernel
    >>> from sklearn.metrics.pairwise import chi2_kernel
    >>> kernel = FunctionKernel(chi2_kernel)
    >>> kernel([[1.0, 3.0], [2.0, 2.0]]).round(4)
    array([[1.    , 0.5866],
           [0.5866, 1.    ]])
    >>> kernel
    FunctionKernel(chi2_kernel)
    """

    name: ClassVar[str] = "function"
    _rules: ClassVar[dict[str, Rule]] = {
        "function": Rule(
            "a function k(X, Z) of two matrices of points", lambda value: is_kernel_function(value)
        )
    }

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self._values(X, X if Y is None else Y)
        if Y is not None or not len(K):
            return K
        slack = _ROUNDING * float(np.finfo(K.dtype).eps) * largest(K)
        difference = asymmetry(K)
        if difference > slack:
            raise ValueError(
                f"{self!r}: k(X, X) is not symmetric, entries differ by up to {difference:.3g}: "
                "a kernel has k(x, z) = k(z, x)"
            )
        change = float(np.abs(self._values(X[-1:], X)[0] - K[-1]).max())
        if change > slack:
            raise ValueError(
                f"{self!r}: k(x, z) of the last point x changes by up to {change:.3g} where x is "
                "given alone: a kernel depends on x and z only, so bind what it takes from the "
                "training points, such as a width"
            )
        mirror(K)
        return K

    def _diag(self, X: Points) -> RealArray:
        parts = [self._values(X[r], X[r]).diagonal() for r in row_slices(X.shape[0], _BLOCK)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=X.dtype)

    def _values(self, X: Points, Z: Points) -> RealArray:
        """Return what the function says of two sets of points, checked, as an array of our own."""
        found = self.function(X, Z)
        K = np.asarray(found.toarray() if is_sparse(found) else found)
        shape = X.shape[0], Z.shape[0]
        if K.shape != shape:
            raise ValueError(
                f"{self!r} returned shape {K.shape} for X of shape {X.shape} and Z of shape "
                f"{Z.shape}: it must return the matrix k(X, Z) of shape {shape}; of a function of "
                "two vectors f make lambda X, Z: pairwise_kernels(X, Z, metric=f)"
            )
        if K.dtype.kind not in "fiub":
            raise ValueError(f"{self!r} returned dtype {K.dtype}: k(X, Z) must hold real numbers")
        wrong = np.argwhere(~np.isfinite(K))
        if len(wrong):
            i, j = wrong[0]
            raise ValueError(f"{self!r} returned {K[i, j]} for row {i} of X and row {j} of Z")
        return np.array(K, dtype=X.dtype)

    def __repr__(self) -> str:
        return f"FunctionKernel({name_of_function(self.function)})"


def is_kernel_function(value: object) -> bool:
    """Whether a value may be a kernel's function: callable, and neither a class nor a kernel."""
    return callable(value) and not isinstance(value, type | Kernel)


def name_of_function(function: Any) -> str:
    """Return a function's name with the parameters that `functools.partial` binds, no address."""
    if isinstance(function, partial):
        bound = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        return f"partial({', '.join([name_of_function(function.func), *bound])})"
    return str(getattr(function, "__name__", None) or repr(function))
