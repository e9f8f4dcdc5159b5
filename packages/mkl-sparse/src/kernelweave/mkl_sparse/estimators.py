"""Classifier and regressor with at most k₀ kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.kernels_core.kernels import PrecomputedGrams, as_grams
from kernelweave.qp_smo import SVC, SVR
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .machine import BEST_RESPONSE, SparseMachine
from .multiclass import SCHEMES, fit_parts, part_decisions

FloatArray = NDArray[np.float64]


class SparseMKLClassifier(SparseMachine, KernelMachineClassifier):
    """Support vector classifier with a sparse combination of kernels.

    ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of [Σₜ max 1ᵀα − ½(y∘α)ᵀK(β)(y∘α)] + λ‖β‖²``. Several
    classes share the weights, one task per class.

    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        None is the paper's ten kernels without the two indefinite ones.
    C : float, default=1.0
        Penalty of the loss.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    multiclass : {"shared", "ovr", "ovo"}, default="shared"
        With three classes or more: one set of weights for the sum of the one-vs-rest problems, or
        weights of their own for each class or each pair, and then the fitted attributes are lists.
    lam : float, default=1.0
        λ > 0, of the ridge on the weights.
    k0 : int, default=3
        Kernels at most.
    algorithm : {"smkl-best-response", "smkl-global"}
        Algorithm 1 of the paper, or the certified global optimum, which needs
        kernelweave-relaxations.
    init : {"saddle", "random", "sdp-3x3", "soc-random"} or array-like of shape (q,)
        Where Algorithm 1 starts.
    n_init : int, default=1
        Starts; those beyond the first are random supports.
    warm : {"sparse", "dense"}, default="sparse"
        Whether relaxed weights are cut to their k₀ largest or make the first duals as they are.
    normalize : str, optional
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    scale : bool, optional
        Whether to standardise the features first; None does so where ``kernels`` is None.
    max_iter : int, default=50
        Iterations of one run of Algorithm 1.
    tol : float, optional
        Algorithm 1: the absolute fall of the objective that counts, 1e-2 by default. Global: the
        relative certified gap, 1e-4 by default.
    patience : int, default=3
        Iterations without such a fall that end a run.
    cap : float, optional
        1e6 reproduces the program behind the published tables.
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
        At most k₀ are not 0.
    support_ : ndarray of int
        The kernels that are used.
    kernel_names_ : tuple of str
        A name per kernel.
    support_samples_ : ndarray of int
        The support vectors.
    problem_ : Problem
        What was solved; `kernelweave.relaxations.certify` reads it. Its family computes the Gram
        matrices again, or refers to the precomputed ones.
    kernel_ : callable
        The learned kernel.
    result_ : Result
        Bounds, gap, status, history.
    certificate_ : Certificate
        Both bounds of the global optimum and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.
    estimators_ : list of SparseMKLClassifier
        The binary parts of ``"ovr"`` and ``"ovo"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseMKLClassifier(k0=2).fit(X, y)
    >>> bool(len(model.support_) <= 2)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        lam: float = 1.0,
        k0: int = 3,
        algorithm: str = BEST_RESPONSE,
        init: Any = "saddle",
        n_init: int = 1,
        warm: str = "sparse",
        normalize: Any = None,
        scale: bool | None = None,
        max_iter: int = 50,
        tol: float | None = None,
        patience: int = 3,
        cap: float | None = None,
        class_weight: Any = None,
        multiclass: str = "shared",
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.lam = lam
        self.k0 = k0
        self.algorithm = algorithm
        self.init = init
        self.n_init = n_init
        self.warm = warm
        self.normalize = normalize
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.cap = cap
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _learner(self) -> SVC:
        return SVC(C=self.C)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multiclass not in SCHEMES:
            raise ValueError(f"multiclass must be one of {SCHEMES}, got {self.multiclass!r}")

    def _fit_codes(self, X: Any, codes: Any, weight: FloatArray) -> None:
        self.__dict__.pop("estimators_", None)
        if self.multiclass == "shared" or len(self.classes_) == 2:
            super()._fit_codes(X, codes, weight)
            return
        fit_parts(self, PrecomputedGrams(self._stack) if self._is_precomputed else X, codes, weight)

    def _decision(self, X: Any) -> FloatArray:
        check_is_fitted(self, "classes_")
        if not hasattr(self, "estimators_"):
            return super()._decision(X)
        stack = PrecomputedGrams(as_grams(X)) if self._is_precomputed else X
        return part_decisions(self, stack)


class SparseMKLRegressor(SparseMachine, KernelMachineRegressor):
    """ε-insensitive support vector regressor with a sparse combination of kernels.

    ``min over β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀ of [max yᵀα − ε‖α‖₁ − ½αᵀK(β)α] + λ‖β‖²``.

    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        None is the paper's ten kernels without the two indefinite ones.
    C : float, default=1.0
        Penalty of the loss.
    epsilon : float, default=0.1
        Half-width of the tube without loss.
    lam : float, default=1.0
        λ > 0, of the ridge on the weights.
    k0 : int, default=3
        Kernels at most.
    algorithm : {"smkl-best-response", "smkl-global"}
        Algorithm 1 of the paper, or the certified global optimum, which needs
        kernelweave-relaxations.
    init : {"saddle", "random", "sdp-3x3", "soc-random"} or array-like of shape (q,)
        Where Algorithm 1 starts.
    n_init : int, default=1
        Starts; those beyond the first are random supports.
    warm : {"sparse", "dense"}, default="sparse"
        Whether relaxed weights are cut to their k₀ largest or make the first duals as they are.
    normalize : str, optional
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    scale : bool, optional
        Whether to standardise the features first; None does so where ``kernels`` is None.
    max_iter : int, default=50
        Iterations of one run of Algorithm 1.
    tol : float, optional
        Algorithm 1: the absolute fall of the objective that counts, 1e-2 by default. Global: the
        relative certified gap, 1e-4 by default.
    patience : int, default=3
        Iterations without such a fall that end a run.
    cap : float, optional
        1e6 reproduces the program behind the published tables.
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
        At most k₀ are not 0.
    support_ : ndarray of int
        The kernels that are used.
    kernel_names_ : tuple of str
        A name per kernel.
    support_samples_ : ndarray of int
        The support vectors.
    problem_ : Problem
        What was solved; `kernelweave.relaxations.certify` reads it. Its family computes the Gram
        matrices again, or refers to the precomputed ones.
    kernel_ : callable
        The learned kernel.
    result_ : Result
        Bounds, gap, status, history.
    certificate_ : Certificate
        Both bounds of the global optimum and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.mkl_sparse import SparseMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SparseMKLRegressor(k0=2).fit(X, y)
    >>> bool(len(model.support_) <= 2)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        lam: float = 1.0,
        k0: int = 3,
        algorithm: str = BEST_RESPONSE,
        init: Any = "saddle",
        n_init: int = 1,
        warm: str = "sparse",
        normalize: Any = None,
        scale: bool | None = None,
        max_iter: int = 50,
        tol: float | None = None,
        patience: int = 3,
        cap: float | None = None,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.epsilon = epsilon
        self.lam = lam
        self.k0 = k0
        self.algorithm = algorithm
        self.init = init
        self.n_init = n_init
        self.warm = warm
        self.normalize = normalize
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.cap = cap
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _learner(self) -> SVR:
        return SVR(C=self.C, epsilon=self.epsilon)
