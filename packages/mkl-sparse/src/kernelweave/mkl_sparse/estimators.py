"""Classifier and regressor with at most k₀ kernels."""

from __future__ import annotations

from kernelweave.kernels_core.estimators import KernelMachineClassifier
from kernelweave.kernels_core.estimators.spread import SpreadMachine
from kernelweave.qp_smo import SVC, SVR

from .machine import SparseMachine


class SparseMKLClassifier(SparseMachine, KernelMachineClassifier):
    """Support vector classifier with a sparse combination of kernels.

    ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of [Σₜ max 1ᵀα − ½(y∘α)ᵀK(β)(y∘α)] + λ‖β‖²``. Several
    classes share the weights, one task per class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseMKLClassifier(k0=3).fit(X, y)
    >>> bool(len(model.kernel_support_) <= 3)
    True
    """

    def _learner(self) -> SVC:
        return SVC(C=self._value("C"))


class SparseMKLRegressor(SparseMachine, SpreadMachine):
    """ε-insensitive support vector regressor with a sparse combination of kernels.

    ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of [max yᵀα − ε‖α‖₁ − ½αᵀK(β)α] + λ‖β‖²``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.mkl_sparse import SparseMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseMKLRegressor(k0=2).fit(X, y)
    >>> bool(len(model.kernel_support_) <= 2)
    True
    """

    def _learner(self) -> SVR:
        return SVR(C=self._value("C"), epsilon=self.epsilon)
