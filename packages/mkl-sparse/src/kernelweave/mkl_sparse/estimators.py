"""Classifier and regressor with at most k₀ kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import KernelDictionary, Problem, get_algorithm
from kernelweave.kernels_core.driver import solve
from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.exceptions import UnknownNameError
from kernelweave.kernels_core.kernels.paper import default_kernels
from kernelweave.kernels_core.kernels.precomputed import PrecomputedGrams, as_grams
from kernelweave.kernels_core.result import SolveInterrupted
from kernelweave.qp_smo import SVC, SVR
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .constraint import SparseSimplex
from .precomputed import PrecomputedFamily
from .scaling import StandardizedKernel, standard_scale

FloatArray = NDArray[np.float64]

GLOBAL = "smkl-global"
BEST_RESPONSE = "smkl-best-response"
# The gap at which Algorithm 1 need not go on: its weights are proven optimal.
_PROVEN = 1e-6


class _SparseMachine:
    """What both estimators share: the dictionary, the constraint and the algorithm."""

    def _check_parameters(self: Any) -> None:
        SparseSimplex(k0=self.k0, lam=self.lam).validate()
        self._learner().validate()
        try:
            get_algorithm(self.algorithm)
        except UnknownNameError as error:
            if self.algorithm != GLOBAL:
                raise
            raise ImportError(
                f"algorithm={GLOBAL!r} is registered by kernelweave-relaxations, which is not "
                "installed: pip install kernelweave-relaxations"
            ) from error

    @property
    def _is_precomputed(self: Any) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the weights of the kernels and the predictor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features; with ``kernels="precomputed"`` Gram matrices of shape
            (n_kernels, n_samples, n_samples), or a `PrecomputedGrams`.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C per sample; a weight of 0 equals leaving the sample out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if not self._is_precomputed:
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        self._stack = as_grams(X, square=True)
        try:
            positions = np.arange(self._stack.shape[1], dtype=np.float64)[:, None]
            return super().fit(positions, y, sample_weight)  # type: ignore[misc]
        finally:
            del self._stack

    def _make_problem(self: Any, samples: Samples) -> Problem:
        constraint = SparseSimplex(k0=self.k0, lam=self.lam)
        if self._is_precomputed:
            rows = samples.X[:, 0].astype(np.intp)
            family: Any = PrecomputedFamily.from_stack(self._stack, rows)
            self.kernel_names_ = tuple(f"K{j}" for j in range(len(family.grams)))
            return Problem(
                family, self._learner(), constraint, samples.X, samples.targets, samples.weight
            )
        X = samples.X
        if self._is_scaled:
            self.mean_, self.spread_ = standard_scale(X, samples.weight)
            X = (X - self.mean_) / self.spread_
        fitted = self._dictionary().fit_grams(X)
        self.kernel_names_ = fitted.names
        return Problem(
            fitted.as_family(), self._learner(), constraint, X, samples.targets, samples.weight
        )

    @property
    def _is_scaled(self: Any) -> bool:
        if self._is_precomputed:
            return False
        return self.kernels is None if self.scale is None else bool(self.scale)

    def _dictionary(self: Any) -> KernelDictionary:
        if self.kernels is None:
            return default_kernels()
        if isinstance(self.kernels, KernelDictionary):
            return self.kernels
        return KernelDictionary(self.kernels)

    def _algorithm(self: Any) -> tuple[str, dict[str, Any]]:
        if self.algorithm != BEST_RESPONSE:
            return self.algorithm, {}
        return self.algorithm, {
            "init": self.init,
            "n_init": self.n_init,
            "epsilon": 1e-2 if self.tol is None else self.tol,
            "patience": self.patience,
            "run_limit": self.max_iter,
            "cap": self.cap,
            "warm": self.warm,
        }

    def _limits(self: Any) -> tuple[float, int]:
        """Return the relative gap and the iterations that the driver stops at."""
        if self.algorithm == BEST_RESPONSE:
            return _PROVEN, 2 * self.n_init * (self.max_iter + 3)
        return (1e-4 if self.tol is None else self.tol), max(self.max_iter, 1_000_000)

    def _learn(self: Any, samples: Samples) -> None:
        problem = self._make_problem(samples)
        name, params = self._algorithm()
        tol, max_iter = self._limits()
        try:
            result = solve(
                problem,
                name,
                tol=tol,
                max_iter=max_iter,
                max_time=self.max_time,
                random_state=self.random_state,
                verbose=self.verbose,
                on_interrupt=self.on_interrupt,
                **params,
            )
        except SolveInterrupted as stop:
            self._store(problem, stop.result, samples)
            raise
        self._store(problem, result, samples)

    def _store(self: Any, problem: Problem, result: Any, samples: Samples) -> None:
        super()._store(problem, result, samples)  # type: ignore[misc]
        self.problem_ = problem
        self.support_samples_ = self.support_
        self.weights_ = np.asarray(result.parameters)
        self.support_ = np.flatnonzero(self.weights_)

    def _make_kernel(self: Any, problem: Problem, parameters: Any) -> Any:
        kernel = problem.family.kernel(parameters)
        if not self._is_scaled:
            return kernel
        return StandardizedKernel(kernel, self.mean_, self.spread_)

    def _decision(self: Any, X: Any) -> FloatArray:
        if not self._is_precomputed:
            values: FloatArray = super()._decision(X)  # type: ignore[misc]
            return values
        check_is_fitted(self, "kernel_")
        columns = self._rows[:, 0].astype(np.intp)
        stack = X if isinstance(X, PrecomputedGrams) else np.asarray(X)
        n_new = stack.shape[-2] if stack.ndim >= 2 else 0
        intercept = np.atleast_1d(np.asarray(self.intercept_))
        if columns.size == 0:
            return np.tile(intercept, (n_new, 1))
        combined: FloatArray = self.kernel_(stack, columns) @ self._coef.T + intercept
        return combined


class SparseMKLClassifier(_SparseMachine, KernelMachineClassifier):
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
        What was solved, Gram matrices included: `kernelweave.relaxations.certify` reads it.
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
        scale: bool | None = None,
        max_iter: int = 50,
        tol: float | None = None,
        patience: int = 3,
        cap: float | None = None,
        class_weight: Any = None,
        max_time: float | None = None,
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
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.cap = cap
        self.class_weight = class_weight
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _learner(self) -> SVC:
        return SVC(C=self.C)


class SparseMKLRegressor(_SparseMachine, KernelMachineRegressor):
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
        What was solved, Gram matrices included: `kernelweave.relaxations.certify` reads it.
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
        scale: bool | None = None,
        max_iter: int = 50,
        tol: float | None = None,
        patience: int = 3,
        cap: float | None = None,
        max_time: float | None = None,
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
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.cap = cap
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _learner(self) -> SVR:
        return SVR(C=self.C, epsilon=self.epsilon)
