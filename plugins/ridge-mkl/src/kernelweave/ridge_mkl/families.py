"""The kernel family of this plugin: Hadamard powers of a dictionary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import Points, RealArray, Rows
from kernelweave.kernels_core.checks import COUNT, Rule, integer
from kernelweave.kernels_core.formula.problem import Named
from kernelweave.kernels_core.grams import PrecomputedKernel
from kernelweave.kernels_core.kernels import Kernel, KernelDictionary
from kernelweave.kernels_core.kernels.base import KERNEL
from numpy.typing import ArrayLike


class HadamardPower(Kernel):
    """k(x, y) = k₁(x, y)^d, positive semidefinite by Schur.

    Parameters
    ----------
    kernel : Kernel
        k₁.
    degree : int, default=2
        d ≥ 1.

    Examples
    --------
    >>> from kernelweave.kernels_core import Linear
    >>> from kernelweave.ridge_mkl import HadamardPower
    >>> HadamardPower(Linear(), degree=3)([[2.0]])
    array([[64.]])
    """

    name = "hadamard-power"
    _rules: ClassVar[dict[str, Rule]] = {"kernel": KERNEL, "degree": COUNT}

    def __init__(self, kernel: Kernel, degree: int = 2) -> None:
        self.kernel = kernel
        self.degree = degree

    @property
    def is_psd(self) -> bool | None:
        """Proved when k₁ is."""
        return True if self.kernel.is_psd else None

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K: RealArray = self.kernel(X, Y)
        return np.asarray(K**self.degree)

    def _diag(self, X: Points) -> RealArray:
        return np.asarray(self.kernel.diag(X) ** self.degree)


@dataclass(frozen=True, eq=False)
class PowerDictionary:
    """The family K(μ) = (Σ μₖKₖ)^{∘d}: all products of d kernels of a dictionary.

    Parameters
    ----------
    dictionary : KernelDictionary
        The kernels, or another family of their sums.
    degree : int, default=2
        d ≥ 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import KernelDictionary, Linear
    >>> from kernelweave.ridge_mkl import PowerDictionary
    >>> PowerDictionary(KernelDictionary([Linear()])).gram(np.array([[2.0]]), [1.0])
    array([[16.]])
    """

    name: ClassVar[str] = "dictionary-power"
    dictionary: Any
    degree: int = 2

    def __post_init__(self) -> None:
        integer(2).check("degree", self.degree)

    @classmethod
    def from_data(cls, X: Rows) -> PowerDictionary:
        """Return the default kernels with degree 2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training points.
        """
        return cls(KernelDictionary.from_data(X))

    def __len__(self) -> int:
        return len(self.dictionary)

    def fit_grams(self, X: Rows) -> Any:
        """Return the fitted dictionary, whose ``grams`` are those of degree 1."""
        return self.dictionary.fit_grams(X)

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> RealArray:
        """Return (Σ μₖ kₖ(X, Y))^{∘d}, shape (n_x, n_y); Y defaults to X."""
        return np.asarray(self.dictionary.gram(X, weights, Y) ** self.degree)

    def kernel(self, weights: ArrayLike) -> HadamardPower | PrecomputedKernel:
        """Return the learned kernel for weights μ of shape (p,)."""
        kernel = self.dictionary.kernel(weights)
        if isinstance(kernel, PrecomputedKernel):
            return replace(kernel, degree=self.degree)
        return HadamardPower(kernel, self.degree)


def power_of(family: Named, degree: int) -> Named:
    """Return a family of sums of kernels at degree 1, above that the family of their powers."""
    return family if degree == 1 else PowerDictionary(family, degree)
