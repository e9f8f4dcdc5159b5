"""What the algorithms find: a separable kernel, and the function that goes with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray
from numpy.typing import DTypeLike


@dataclass(frozen=True, eq=False)
class SeparableKernel:
    """k(x, z) L with k = Σ ηⱼ kⱼ.

    As an array it is η · tr L/n, which is what a dictionary understands: the scalar kernel itself
    for one output, the mean over the outputs otherwise.

    Attributes
    ----------
    weights : ndarray of shape (n_kernels,)
        η.
    output_kernel : ndarray of shape (n_outputs, n_outputs)
        L.
    """

    weights: npt.NDArray[np.float64]
    output_kernel: Matrix

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> RealArray:
        return np.array(self.weights * self.scale, dtype=dtype, copy=True)

    @property
    def scale(self) -> float:
        """tr L/n."""
        return float(np.trace(self.output_kernel) / len(self.output_kernel))


@dataclass(frozen=True, eq=False)
class VectorSolution:
    """f(x) = Σᵢ k(x, xᵢ) L cᵢ, the minimiser of the regularised squared error.

    Attributes
    ----------
    C : ndarray of shape (n_samples, n_outputs)
        Rows cᵢ; for sample weights, of the problem as the user states it.
    dual_coef : ndarray of shape (n_outputs, n_samples)
        (C L)ᵀ / (tr L/n): predictions are (tr L/n) k(x, X) · dual_coefᵀ, the kernel being scaled
        as `SeparableKernel` is as an array.
    intercept : ndarray of shape (n_outputs,)
        Zeros: the model has none.
    lower_bound, upper_bound : float
        The optimum over C at this kernel, J/(2λ), lies between them.
    """

    C: Matrix
    dual_coef: Matrix
    intercept: npt.NDArray[np.float64]
    lower_bound: float
    upper_bound: float
