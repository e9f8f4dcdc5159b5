"""Regressor and classifiers that learn a combination of kernels."""

from __future__ import annotations

from kernelweave.kernels_core.checks import STRENGTH
from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings
from kernelweave.qp_smo import Ridge, SquaredHingeSVC

from .machine import WeightLearner


class _RidgeMachine(WeightLearner):
    """The learner of both ridge estimators."""

    lam: float = parameter(
        "λ, the ``alpha`` of `sklearn.kernel_ridge.KernelRidge`.", default=1.0, rule=STRENGTH
    )
    fit_intercept: bool = parameter("Whether b is free; the paper has none.", default=True)
    tol: float = 1e-6

    def _learner(self) -> Ridge:
        return Ridge(C=1.0 / float(self.lam), fit_intercept=bool(self.fit_intercept))


class RidgeMKLRegressor(_RidgeMachine, KernelMachineRegressor):
    """Kernel ridge regression that learns its kernel.

    Solves min over μ of yᵀ(K_μ + λI)⁻¹y with K_μ = (Σ μₖKₖ)^{∘d} over
    {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}, or with the penalty β‖μ‖² over μ ≥ 0. That is the minimum over f, b
    and μ of Σ (yᵢ − f(xᵢ) − b)²/λ + ‖f‖². The result is proved optimal up to ``tol`` where d ≤ q,
    with the penalty where d ≤ 2; above, it is stationary, the best of several starts.

    References
    ----------
    Li, Venturi and Xu, "Learning the Kernel for Classification and Regression", corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.ridge_mkl import RidgeMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeMKLRegressor(lam=1.0).fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-6)
    True
    """


class RidgeMKLClassifier(_RidgeMachine, KernelMachineClassifier):
    """Kernel ridge classification that learns its kernel: ridge on ±1 labels.

    Solves the problem of `RidgeMKLRegressor` on ±1 targets; several classes share one kernel, with
    one task per class and one certificate for their sum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.ridge_mkl import RidgeMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RidgeMKLClassifier(q=1, center=0.0).fit(X, y).score(X, y) > 0.9)
    True
    """


class GeneralizedMKLClassifier(WeightLearner, KernelMachineClassifier):
    """Squared-hinge support vector classifier that learns its kernel.

    Solves min over μ, max over α ≥ 0, yᵀα = 0 of 2αᵀ1 − αᵀ(Y K_μ Y + λI)α with λ = 1/C and
    K_μ = (Σ μₖKₖ)^{∘d}, over {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ} or with the penalty β‖μ‖².

    References
    ----------
    Varma and Babu, "More generality in efficient multiple kernel learning", ICML 2009; Li, Venturi
    and Xu, Algorithm 7, corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.ridge_mkl import GeneralizedMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(GeneralizedMKLClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    C: float = parameter(
        "Penalty of the loss: ‖f‖² + C Σ max(0, 1 − yᵢ(f(xᵢ) + b))².", default=1.0, rule=STRENGTH
    )
    algorithm: str | Settings = parameter(
        "A registered algorithm for the form of the problem, or its settings; "
        '``"krr-newton"`` needs the fewest steps at degree 1.',
        kind="str or Settings",
        default="svm-gmkl",
    )
    tol: float = 1e-4

    def _learner(self) -> SquaredHingeSVC:
        return SquaredHingeSVC(C=0.5 * float(self.C))
