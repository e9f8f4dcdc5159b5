"""Regressor and classifiers that learn a combination of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.kernels_core.magnitude import check_strength

from .learners import Ridge, SquaredHingeSVC
from .machine import WeightLearner


class _RidgeMachine(WeightLearner):
    """The learner of both ridge estimators."""

    def _check_parameters(self: Any) -> None:
        check_strength("lam", self.lam)
        super()._check_parameters()

    def _learner(self: Any) -> Ridge:
        return Ridge(C=1.0 / float(self.lam), fit_intercept=bool(self.fit_intercept))


class RidgeMKLRegressor(_RidgeMachine, KernelMachineRegressor):
    """Kernel ridge regression that learns its kernel.

    Solves min over μ of yᵀ(K_μ + λI)⁻¹y with K_μ = (Σ μₖKₖ)^{∘d} over
    {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}, or with the penalty β‖μ‖² over μ ≥ 0. That is the minimum over f, b
    and μ of Σ (yᵢ − f(xᵢ) − b)²/λ + ‖f‖². The result is proved optimal up to ``tol`` where d ≤ q,
    with the penalty where d ≤ 2; above, it is stationary, the best of several starts.

    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    lam : float, default=1.0
        λ, the ``alpha`` of `sklearn.kernel_ridge.KernelRidge`.
    q : float, default=2.0
        Norm of the ball; 1 gives sparse changes.
    radius : float, default=1.0
        Λ.
    center : float or array-like of shape (n_kernels,), default=1.0
        μ₀; 0 is ℓq-norm multiple kernel learning.
    beta : float, optional
        β: penalise instead of constrain.
    degree : int, default=1
        d, a Hadamard power: 2 takes all products of two kernels.
    algorithm : str, default="krr-auto"
        A registered algorithm for the form of the problem.
    fit_intercept : bool, default=True
        Whether b is free; the paper has none.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    n_starts : int, optional
        Starting points; 1 where the result can be proved optimal, else 5.
    tol : float, default=1e-6
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    memory_limit : int, optional
        Bytes that the fit may allocate.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        μ.
    kernel_ : Kernel
        The learned kernel; works in ``KernelRidge(kernel=...)``.
    kernel_names_ : tuple of str or None
        Names of the kernels used.
    dual_coef_ : ndarray of shape (n_samples,)
        α.
    intercept_ : float
        b.
    result_ : Result
        Bounds, gap, status and history.
    certificate_ : Certificate
        Both bounds and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.

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

    def __init__(
        self,
        kernels: Any = None,
        *,
        lam: float = 1.0,
        q: float = 2.0,
        radius: float = 1.0,
        center: Any = 1.0,
        beta: float | None = None,
        degree: int = 1,
        algorithm: str = "krr-auto",
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        n_starts: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.lam = lam
        self.q = q
        self.radius = radius
        self.center = center
        self.beta = beta
        self.degree = degree
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose


class RidgeMKLClassifier(_RidgeMachine, KernelMachineClassifier):
    """Kernel ridge classification that learns its kernel: ridge on ±1 labels.

    Solves the problem of `RidgeMKLRegressor` on ±1 targets; several classes share one kernel, with
    one task per class and one certificate for their sum.

    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    lam : float, default=1.0
        λ, the ``alpha`` of `sklearn.kernel_ridge.KernelRidge`.
    q : float, default=2.0
        Norm of the ball; 1 gives sparse changes.
    radius : float, default=1.0
        Λ.
    center : float or array-like of shape (n_kernels,), default=1.0
        μ₀; 0 is ℓq-norm multiple kernel learning.
    beta : float, optional
        β: penalise instead of constrain.
    degree : int, default=1
        d, a Hadamard power.
    algorithm : str, default="krr-auto"
        A registered algorithm for the form of the problem.
    fit_intercept : bool, default=True
        Whether b is free; the paper has none.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    n_starts : int, optional
        Starting points; 1 where the result can be proved optimal, else 5.
    class_weight : dict or "balanced", optional
        Multiplies the loss per class.
    tol : float, default=1e-6
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    memory_limit : int, optional
        Bytes that the fit may allocate.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        μ.
    kernel_ : Kernel
        The learned kernel; works in ``SVC(kernel=...)``.
    kernel_names_ : tuple of str or None
        Names of the kernels used.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    dual_coef_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        α.
    intercept_ : float or ndarray of shape (n_classes,)
        b.
    result_ : Result
        Bounds, gap, status and history.
    certificate_ : Certificate
        Both bounds and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.ridge_mkl import RidgeMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RidgeMKLClassifier(q=1, center=0.0).fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        lam: float = 1.0,
        q: float = 2.0,
        radius: float = 1.0,
        center: Any = 1.0,
        beta: float | None = None,
        degree: int = 1,
        algorithm: str = "krr-auto",
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        n_starts: int | None = None,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.lam = lam
        self.q = q
        self.radius = radius
        self.center = center
        self.beta = beta
        self.degree = degree
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.n_starts = n_starts
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose


class GeneralizedMKLClassifier(WeightLearner, KernelMachineClassifier):
    """Squared-hinge support vector classifier that learns its kernel.

    Solves min over μ, max over α ≥ 0, yᵀα = 0 of 2αᵀ1 − αᵀ(Y K_μ Y + λI)α with λ = 1/C and
    K_μ = (Σ μₖKₖ)^{∘d}, over {μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ} or with the penalty β‖μ‖².

    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    C : float, default=1.0
        Penalty of the loss: ‖f‖² + C Σ max(0, 1 − yᵢ(f(xᵢ) + b))².
    q : float, default=2.0
        Norm of the ball; 1 gives sparse changes.
    radius : float, default=1.0
        Λ.
    center : float or array-like of shape (n_kernels,), default=1.0
        μ₀; 0 is ℓq-norm multiple kernel learning.
    beta : float, optional
        β: penalise instead of constrain.
    degree : int, default=1
        d, a Hadamard power.
    algorithm : str, default="svm-gmkl"
        A registered algorithm for the form of the problem; ``"krr-newton"`` needs the fewest
        steps at degree 1.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    n_starts : int, optional
        Starting points; 1 where the result can be proved optimal, else 5.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    tol : float, default=1e-4
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    memory_limit : int, optional
        Bytes that the fit may allocate.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        μ.
    kernel_ : Kernel
        The learned kernel; works in ``SVC(kernel=...)``.
    kernel_names_ : tuple of str or None
        Names of the kernels used.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    dual_coef_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        y∘α.
    intercept_ : float or ndarray of shape (n_classes,)
        b.
    support_ : ndarray of shape (n_support,)
        Samples with a loss.
    result_ : Result
        Bounds, gap, status and history.
    certificate_ : Certificate
        Both bounds and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.

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

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        q: float = 2.0,
        radius: float = 1.0,
        center: Any = 1.0,
        beta: float | None = None,
        degree: int = 1,
        algorithm: str = "svm-gmkl",
        normalize: str | None = "trace",
        n_starts: int | None = None,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.q = q
        self.radius = radius
        self.center = center
        self.beta = beta
        self.degree = degree
        self.algorithm = algorithm
        self.normalize = normalize
        self.n_starts = n_starts
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_strength("C", self.C)
        super()._check_parameters()

    def _learner(self) -> SquaredHingeSVC:
        return SquaredHingeSVC(C=float(self.C))
