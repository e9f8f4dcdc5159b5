"""SimpleMKL as a classifier and as a regressor."""

from __future__ import annotations

from typing import Any

from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.qp_smo import SVC, SVR

from .machine import SimplexMachine
from .simplemkl import Simplex


class SimpleMKLClassifier(SimplexMachine, KernelMachineClassifier):
    """Support vector classifier on the kernel weights that are best for it.

    ``min over β ≥ 0, Σβ = 1 of Σₜ max over α of 1ᵀα − ½(y∘α)ᵀK(β)(y∘α)``, to a certified gap.
    Several classes share the weights, one task per class.


    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    algorithm : {"saddle", "reduced-gradient"}
        Cutting planes, or the method of the authors, which needs more solves.
    C : float, default=1.0
        Penalty of the hinge loss, as in scikit-learn's SVC.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
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
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        β; 0 for kernels that the dictionary left out.
    kernel_ : Kernel
        The learned kernel; works in ``SVC(kernel=...)``.
    kernel_names_ : tuple of str
        Names of the kernels used.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    dual_coef_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        y∘α.
    intercept_ : float or ndarray of shape (n_classes,)
        b.
    support_ : ndarray of int
        Support vectors.
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
    Rakotomamonjy, Bach, Canu and Grandvalet, "SimpleMKL", JMLR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import SimpleMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SimpleMKLClassifier(tol=1e-2).fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        algorithm: str = "saddle",
        C: float = 1.0,
        normalize: str | None = "trace",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.algorithm = algorithm
        self.C = C
        self.normalize = normalize
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def _learner(self) -> SVC:
        return SVC(C=self.C)

    def _constraint(self) -> Simplex:
        return Simplex()


class SimpleMKLRegressor(SimplexMachine, KernelMachineRegressor):
    """Support vector regressor on the kernel weights that are best for it.

    ``min over β ≥ 0, Σβ = 1 of max over α of yᵀα − ε‖α‖₁ − ½αᵀK(β)α``, to a certified gap.


    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    algorithm : {"saddle", "reduced-gradient"}
        Cutting planes, or the method of the authors, which needs more solves.
    C : float, default=1.0
        Penalty of the loss, as in scikit-learn's SVR.
    epsilon : float, default=0.1
        Half-width of the tube without loss.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
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
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        β; 0 for kernels that the dictionary left out.
    kernel_ : Kernel
        The learned kernel; works in ``SVR(kernel=...)``.
    kernel_names_ : tuple of str
        Names of the kernels used.
    dual_coef_ : ndarray of shape (n_samples,)
        α.
    intercept_ : float
        b.
    support_ : ndarray of int
        Support vectors.
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
    Rakotomamonjy, Bach, Canu and Grandvalet, "SimpleMKL", JMLR 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.baselines import SimpleMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SimpleMKLRegressor(C=100.0, epsilon=10.0, tol=1e-2).fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-2)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        algorithm: str = "saddle",
        C: float = 1.0,
        epsilon: float = 0.1,
        normalize: str | None = "trace",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.algorithm = algorithm
        self.C = C
        self.epsilon = epsilon
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def _learner(self) -> SVR:
        return SVR(C=self.C, epsilon=self.epsilon)

    def _constraint(self) -> Simplex:
        return Simplex()
