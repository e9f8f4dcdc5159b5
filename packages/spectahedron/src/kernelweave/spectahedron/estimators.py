"""Classifier and regressor that learn a tessellated or generalized polynomial kernel."""

from __future__ import annotations

from kernelweave.kernels_core.checks import NONNEGATIVE
from kernelweave.kernels_core.estimators.kernel import KernelClassifier, KernelRegressor
from kernelweave.kernels_core.parameters import parameter

from .positive_matrix import PositiveMatrixKernel


class TessellatedKernelClassifier(PositiveMatrixKernel, KernelClassifier):
    """Support vector classifier that learns its kernel over positive matrices.

    Solves min over {P ⪰ 0, tr P = n_P} of the sum over tasks of
    max over 0 ≤ α ≤ C, yᵀα = 0 of Σα − ½ (y∘α)ᵀ K(P) (y∘α), with
    k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, and proves how far from optimal the answer can be.

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


class TessellatedKernelRegressor(PositiveMatrixKernel, KernelRegressor):
    """Support vector regressor that learns its kernel over positive matrices.

    Solves min over {P ⪰ 0, tr P = n_P} of
    max over −C ≤ α ≤ C, Σα = 0 of yᵀα − ε‖α‖₁ − ½ αᵀ K(P) α, with
    k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz, and proves how far from optimal the answer can be.

    References
    ----------
    Talitckii, Colbert and Peet, "Efficient convex algorithms for universal kernel learning"
    (JMLR 2024), corrected.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.spectahedron import TessellatedKernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TessellatedKernelRegressor(tol=0.05).fit(X, y)
    >>> bool(model.certificate_.gap <= 0.05)
    True
    """

    epsilon: float = parameter(
        "Half-width of the tube without loss, in the standard deviation of y or in the units of y: "
        "see ``units``.",
        default=0.1,
        rule=NONNEGATIVE,
    )
