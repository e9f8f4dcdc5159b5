"""Classifier and regressor that learn a tessellated or generalized polynomial kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.estimators import KernelMachineClassifier, KernelMachineRegressor
from kernelweave.qp_smo import SVC, SVR
from sklearn.base import clone

from .checks import check_choice, check_number
from .multiclass import fit_parts, one_vs_one_votes
from .positive_matrix import PositiveMatrixMachine

FloatArray = npt.NDArray[np.float64]


class TessellatedKernelClassifier(PositiveMatrixMachine, KernelMachineClassifier):
    """Support vector classifier that learns its kernel over positive matrices.

    Solves min over {P ⪰ 0, tr P = n_P} of the sum over tasks of
    max over 0 ≤ α ≤ C, yᵀα = 0 of Σα − ½ (y∘α)ᵀ K(P) (y∘α), with
    k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, and proves how far from optimal the answer can be.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the hinge loss, in the convention ½‖f‖² + C Σ loss.
    degree : int, default=1
        Degree of the monomials.
    delta : float, default=0.5
        The box of integration is [−δ, 1 + δ] in each scaled feature.
    kernel : {"tessellated", "polynomial"}, default="tessellated"
        Family of kernels.
    algorithm : str, default="tkl-low-rank"
        A registered algorithm for this family.
    tol : float, default=1e-3
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    scale : bool, default=True
        Scale each feature to [0, 1] by its training range.
    domain : (lower, upper), optional
        The box itself, numbers or arrays of shape (n_features,), in scaled features.
    outside : {"clip", "raise"}, default="clip"
        What happens to a test point outside the box: moved to its border with one warning that
        counts them, or refused.
    z_degree : int, optional
        Degree in z at most; 0 is what the authors' program uses.
    min_eig : float, default=0.0
        Keeps P ⪰ min_eig · I, so that the learned kernel stays universal.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    multiclass : {"shared", "ovr", "ovo"}, default="shared"
        One kernel for the sum of the one-vs-rest duals with one certificate; or a kernel per
        one-vs-rest or one-vs-one subproblem, when fitted attributes become lists.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the Gram matrices.
    gram : {"auto", "stored", "blocks"}, default="auto"
        Whether Gram matrices are stored; "blocks" computes entries where they are needed, in the
        memory that there is, with both bounds still proofs. "auto" stores them where they fit,
        else it warns and does without. For ``tkl-low-rank``.
    memory_limit : int, optional
        Bytes that the fit may allocate.
    warm_start : bool, default=False
        Begin at the kernel and the coefficients of the last fit, where they have the right shapes
        and the algorithm is the default one: for a path over C or another parameter.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    P_ : ndarray of shape (n_P, n_P)
        The learned matrix.
    kernel_ : Kernel
        The learned kernel on features as given; works in ``SVC(kernel=...)``.
    dual_coef_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        Signed dual coefficients.
    intercept_ : float or ndarray of shape (n_classes,)
        Offsets.
    support_ : ndarray of shape (n_support,)
        Indices of samples with a nonzero coefficient.
    classes_ : ndarray of shape (n_classes,)
        Labels.
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
    Colbert and Peet, "A convex parametrization of a new class of universal kernel functions"
    and "Efficient convex algorithms for universal kernel learning" (JMLR 2024), corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import TessellatedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TessellatedKernelClassifier(tol=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.certificate_.gap <= 0.01)
    (True, True)
    """

    _parts: ClassVar[tuple[str, ...]] = ("shared", "ovr", "ovo")

    def __init__(
        self,
        C: float = 1.0,
        *,
        degree: int = 1,
        delta: float = 0.5,
        kernel: str = "tessellated",
        algorithm: str = "tkl-low-rank",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        scale: bool = True,
        domain: Any = None,
        outside: str = "clip",
        z_degree: int | None = None,
        min_eig: float = 0.0,
        class_weight: Any = None,
        multiclass: str = "shared",
        dtype: str = "float64",
        gram: str = "auto",
        memory_limit: int | None = None,
        warm_start: bool = False,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.degree = degree
        self.delta = delta
        self.kernel = kernel
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.scale = scale
        self.domain = domain
        self.outside = outside
        self.z_degree = z_degree
        self.min_eig = min_eig
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.dtype = dtype
        self.gram = gram
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("multiclass", self.multiclass, self._parts)

    def _learner(self) -> SVC:
        return SVC(C=float(self.C))

    def _fit_codes(self, X: FloatArray, codes: npt.NDArray[np.intp], weight: FloatArray) -> None:
        self.__dict__.pop("estimators_", None)
        if self.multiclass == "shared" or len(self.classes_) == 2:
            super()._fit_codes(X, codes, weight)
            return
        template = clone(self).set_params(multiclass="shared", class_weight=None, warm_start=False)
        self.estimators_: list[Any] = fit_parts(
            template, X, codes, weight, len(self.classes_), scheme=self.multiclass
        )
        for attribute in (
            *("P_", "kernel_", "dual_coef_", "intercept_", "support_"),
            *("result_", "certificate_", "dual_gap_"),
        ):
            setattr(self, attribute, [getattr(part, attribute) for part in self.estimators_])
        self.n_iter_ = max(part.n_iter_ for part in self.estimators_)

    def _decision(self, X: Any) -> FloatArray:
        parts = getattr(self, "estimators_", None)
        if parts is None:
            return super()._decision(X)
        values = np.column_stack([part.decision_function(X) for part in parts])
        return values if self.multiclass == "ovr" else one_vs_one_votes(values, len(self.classes_))


class TessellatedKernelRegressor(PositiveMatrixMachine, KernelMachineRegressor):
    """Support vector regressor that learns its kernel over positive matrices.

    Solves min over {P ⪰ 0, tr P = n_P} of
    max over −C ≤ α ≤ C, Σα = 0 of yᵀα − ε‖α‖₁ − ½ αᵀ K(P) α, with
    k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, and proves how far from optimal the answer can be.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the ε-insensitive loss, in the convention ½‖f‖² + C Σ loss.
    epsilon : float, default=0.1
        Half-width of the tube without loss, in units of y.
    degree : int, default=1
        Degree of the monomials.
    delta : float, default=0.5
        The box of integration is [−δ, 1 + δ] in each scaled feature.
    kernel : {"tessellated", "polynomial"}, default="tessellated"
        Family of kernels.
    algorithm : str, default="tkl-low-rank"
        A registered algorithm for this family.
    tol : float, default=1e-3
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    scale : bool, default=True
        Scale each feature to [0, 1] by its training range; y is left as it is.
    domain : (lower, upper), optional
        The box itself, numbers or arrays of shape (n_features,), in scaled features.
    outside : {"clip", "raise"}, default="clip"
        What happens to a test point outside the box.
    z_degree : int, optional
        Degree in z at most; 0 is what the authors' program uses.
    min_eig : float, default=0.0
        Keeps P ⪰ min_eig · I, so that the learned kernel stays universal.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the Gram matrices.
    gram : {"auto", "stored", "blocks"}, default="auto"
        Whether Gram matrices are stored; "blocks" computes entries where they are needed, in the
        memory that there is, with both bounds still proofs. "auto" stores them where they fit,
        else it warns and does without. For ``tkl-low-rank``.
    memory_limit : int, optional
        Bytes that the fit may allocate.
    warm_start : bool, default=False
        Begin at the kernel and the coefficients of the last fit, where they have the right shapes
        and the algorithm is the default one: for a path over C or another parameter.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    P_ : ndarray of shape (n_P, n_P)
        The learned matrix.
    kernel_ : Kernel
        The learned kernel on features as given; works in ``SVR(kernel=...)``.
    dual_coef_ : ndarray of shape (n_samples,)
        Signed dual coefficients.
    intercept_ : float
        Offset.
    support_ : ndarray of shape (n_support,)
        Indices of samples with a nonzero coefficient.
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
    Talitckii, Colbert and Peet, "Efficient convex algorithms for universal kernel learning"
    (JMLR 2024), corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.spectahedron import TessellatedKernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TessellatedKernelRegressor(C=100.0, epsilon=10.0, tol=0.05).fit(X, y)
    >>> bool(model.certificate_.gap <= 0.05)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        degree: int = 1,
        delta: float = 0.5,
        kernel: str = "tessellated",
        algorithm: str = "tkl-low-rank",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        scale: bool = True,
        domain: Any = None,
        outside: str = "clip",
        z_degree: int | None = None,
        min_eig: float = 0.0,
        dtype: str = "float64",
        gram: str = "auto",
        memory_limit: int | None = None,
        warm_start: bool = False,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.degree = degree
        self.delta = delta
        self.kernel = kernel
        self.algorithm = algorithm
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.scale = scale
        self.domain = domain
        self.outside = outside
        self.z_degree = z_degree
        self.min_eig = min_eig
        self.dtype = dtype
        self.gram = gram
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("epsilon", self.epsilon, low=0.0)

    def _learner(self) -> SVR:
        return SVR(C=float(self.C), epsilon=float(self.epsilon))
