"""Classifiers whose kernel weights follow a rule."""

from __future__ import annotations

from typing import Any

from kernelweave.kernels_core.estimators import KernelMachineClassifier

from .alignment import AlignmentWeights
from .average import AverageWeights
from .easymkl import EasyMKLWeights
from .machine import RuleMachine
from .proportional import ProportionalWeights


class AverageMKLClassifier(RuleMachine, KernelMachineClassifier):
    """Support vector classifier on the mean of the kernels, βⱼ = 1/q.

    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.


    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    C : float, default=1.0
        Penalty of the hinge loss, as in scikit-learn's SVC.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    tol : float, default=1e-4
        Relative certified gap to reach.
    max_iter : int, default=20
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
    Lewis, Jebara and Noble, "Support vector machine learning from heterogeneous data: an empirical
    analysis using protein sequence and structure", Bioinformatics 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import AverageMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(AverageMKLClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        normalize: str | None = "trace",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 20,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.normalize = normalize
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def _algorithm(self) -> tuple[str, dict[str, Any]]:
        return "mkl-average", {}

    def _constraint(self) -> Any:
        return AverageWeights()


class EasyMKLClassifier(RuleMachine, KernelMachineClassifier):
    """Support vector classifier on kernels weighted by the margin of their sum.

    ``βⱼ ∝ γᵀYKⱼYγ`` with γ the minimiser of ``(1 − λ)γᵀY(ΣKⱼ)Yγ + λ‖γ‖²`` over pairs of
    distributions, one on each class.
    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.


    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    lam : float, default=0.1
        λ in [0, 1]: 0 is the hard margin, 1 the distance of the class means.
    C : float, default=1.0
        Penalty of the hinge loss, as in scikit-learn's SVC.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    tol : float, default=1e-4
        Relative certified gap to reach.
    max_iter : int, default=20
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
    Aiolli and Donini, "EasyMKL: a scalable multiple kernel learning algorithm", Neurocomputing
    2015. There a classifier of the same margin distribution follows; here a support vector machine.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import EasyMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(EasyMKLClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        lam: float = 0.1,
        C: float = 1.0,
        normalize: str | None = "trace",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 20,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.lam = lam
        self.C = C
        self.normalize = normalize
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def _algorithm(self) -> tuple[str, dict[str, Any]]:
        return "mkl-easy", {}

    def _constraint(self) -> Any:
        return EasyMKLWeights(lam=self.lam)


class CKAClassifier(RuleMachine, KernelMachineClassifier):
    """Support vector classifier on kernels weighted by centred alignment with the labels.

    β maximises ``(βᵀa)²/βᵀMβ``, ``aⱼ = yᵀKⱼᶜy``, ``Mᵢⱼ = ⟨Kᵢᶜ, Kⱼᶜ⟩``, ``‖β‖₂ = 1``.
    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.


    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    method : {"qp", "closed-form"}
        Over β ≥ 0, or M⁻¹a/‖M⁻¹a‖ whatever its signs; the fit is refused if the combination is
        not positive semidefinite.
    C : float, default=1.0
        Penalty of the hinge loss, as in scikit-learn's SVC.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    tol : float, default=1e-4
        Relative certified gap to reach.
    max_iter : int, default=20
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
    Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment",
    JMLR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import CKAClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(CKAClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        method: str = "qp",
        C: float = 1.0,
        normalize: str | None = "trace",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 20,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.method = method
        self.C = C
        self.normalize = normalize
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def _algorithm(self) -> tuple[str, dict[str, Any]]:
        return "mkl-cka", {}

    def _constraint(self) -> Any:
        return AlignmentWeights(method=self.method)


class PWMKClassifier(RuleMachine, KernelMachineClassifier):
    """Support vector classifier on kernels weighted by the accuracy of each alone.

    ``βⱼ ∝ πⱼ − threshold · min π`` with π the cross-validated accuracies.
    The optimum that ``certificate_`` bounds is that of the support vector machine at these
    weights. Several classes share the weights, one task per class.


    Parameters
    ----------
    kernels : None, KernelDictionary, list of Kernel or "precomputed"
        The kernels; by default the ten of the sparse multiple kernel learning paper without the
        two sigmoids. With ``"precomputed"`` X holds Gram matrices, (n_kernels, n, n_train).
    threshold : float, default=0.0
        In [0, 1]; at 1 the worst kernel gets no weight.
    n_folds : int, default=3
        At least 2; the members of a class take turns in the folds.
    C : float, default=1.0
        Penalty of the hinge loss, as in scikit-learn's SVC.
    normalize : None or str, default="trace"
        `KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its own.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    tol : float, default=1e-4
        Relative certified gap to reach.
    max_iter : int, default=20
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
    Tanabe, Ho, Nguyen and Kawasaki, "Simple but effective methods for combining kernels in
    computational biology", RIVF 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.baselines import PWMKClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(PWMKClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        threshold: float = 0.0,
        n_folds: int = 3,
        C: float = 1.0,
        normalize: str | None = "trace",
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 20,
        max_time: float | None = None,
        memory_limit: int | None = None,
        on_interrupt: str = "raise",
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.threshold = threshold
        self.n_folds = n_folds
        self.C = C
        self.normalize = normalize
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    def _algorithm(self) -> tuple[str, dict[str, Any]]:
        return "mkl-pwmk", {}

    def _constraint(self) -> Any:
        return ProportionalWeights(threshold=self.threshold, n_folds=self.n_folds)
