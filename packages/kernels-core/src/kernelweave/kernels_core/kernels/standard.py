"""The standard kernels: linear, polynomial, Gaussian, Laplacian and sigmoid."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..arrays import Points, RealArray, is_sparse
from ..checks import COUNT, POSITIVE, Rule, number
from ..grams._fill import fill_pairs, inner, row_blocks, squared_norms
from .base import Kernel


class Linear(Kernel):
    """k(x, y) = ⟨x, y⟩.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Linear
    >>> Linear()([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """

    name = "linear"
    accepts_sparse = True
    is_psd = True

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        return inner(X, Y)

    def _features(self, X: Points) -> RealArray | None:
        return None if is_sparse(X) else X

    def _diag(self, X: Points) -> RealArray:
        return squared_norms(X)


class Polynomial(Kernel):
    """k(x, y) = (γ⟨x, y⟩ + c₀)^d.

    Parameters
    ----------
    degree : int, at least 1
        d.
    gamma : float, positive
        γ.
    coef0 : float
        c₀. Negative values may lose positive semidefiniteness.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0)([[1.0, 2.0]], [[3.0, 0.0]])
    array([[16.]])
    """

    name = "polynomial"
    accepts_sparse = True

    _rules: ClassVar[dict[str, Rule]] = {"degree": COUNT, "gamma": POSITIVE, "coef0": number()}

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def is_psd(self) -> bool | None:
        """Proved for c₀ ≥ 0: products and nonnegative sums of inner products."""
        return True if self.coef0 >= 0 else None

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = inner(X, Y)
        for rows in row_blocks(*K.shape):
            K[rows] = self._of_inner(K[rows])
        return K

    def _diag(self, X: Points) -> RealArray:
        return self._of_inner(squared_norms(X))

    def _of_inner(self, t: RealArray) -> RealArray:
        """(γt + c₀)^d by squaring: multiplications only, so equal t give equal values."""
        base = t * t.dtype.type(self.gamma)
        base += t.dtype.type(self.coef0)
        out: RealArray = base.copy()
        for bit in bin(int(self.degree))[3:]:
            out *= out
            if bit == "1":
                out *= base
        return out


class _OfDistances(Kernel):
    """A kernel of distances with a width, 1 at a distance of 0."""

    # characteristic functions, of Gauss and Cauchy distributions
    is_psd = True
    _rules: ClassVar[dict[str, Rule]] = {"gamma": POSITIVE}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _diag(self, X: Points) -> RealArray:
        return np.ones(X.shape[0], dtype=X.dtype)


class RBF(_OfDistances):
    """k(x, y) = exp(−γ‖x − y‖²).

    Squared distances come from ‖x‖² + ‖y‖² − 2⟨x, y⟩ in float64 after the samples are centred
    (which changes no distance), so an offset of the data costs no digits; they are 0 on the
    diagonal and never negative.

    Parameters
    ----------
    gamma : float, positive
        γ.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import RBF
    >>> RBF(gamma=0.5)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    name = "rbf"
    accepts_sparse = True

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        A = X.astype(np.float64, copy=False)
        B = A if Y is None else Y.astype(np.float64, copy=False)
        if not is_sparse(A) and not is_sparse(B) and len(B):
            centre = B.mean(axis=0)
            B = B - centre
            A = B if Y is None else A - centre
        norms_a = squared_norms(A)
        norms_b = norms_a if Y is None else squared_norms(B)
        gamma = float(self.gamma)

        def block(rows: slice, columns: slice) -> RealArray:
            K = inner(A[rows], B[columns])
            left, right = norms_a[rows, None], norms_b[None, columns]
            for at in row_blocks(*K.shape):
                part = K[at]
                part *= -2.0
                part += left[at] + right
                np.maximum(part, 0.0, out=part)
                part *= -gamma
                np.exp(part, out=part)
            return K

        K = fill_pairs(A.shape[0], None if Y is None else B.shape[0], block, X.dtype)
        if Y is None:
            np.fill_diagonal(K, 1.0)
        return K


class Laplacian(_OfDistances):
    """k(x, y) = exp(−γ‖x − y‖₁).

    Parameters
    ----------
    gamma : float, positive
        γ.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, -1.0]]).round(4)
    array([[0.3679]])
    """

    name = "laplacian"

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        from scipy.spatial.distance import cdist

        A = np.asarray(X)
        B = A if Y is None else np.asarray(Y)
        gamma = float(self.gamma)

        def block(rows: slice, columns: slice) -> RealArray:
            K = np.asarray(cdist(A[rows], B[columns], "cityblock"))
            for at in row_blocks(*K.shape):
                part = K[at]
                part *= -gamma
                np.exp(part, out=part)
            return K

        return fill_pairs(X.shape[0], None if Y is None else B.shape[0], block, X.dtype)


class Sigmoid(Kernel):
    """k(x, y) = tanh(γ⟨x, y⟩ + c₀), not positive semidefinite in general.

    On the data of the sparse multiple kernel learning paper its smallest eigenvalues reach
    −153: a `KernelDictionary` refuses it by default, see its ``psd``.

    Parameters
    ----------
    gamma : float, positive
        γ.
    coef0 : float
        c₀.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5, coef0=1.0)([[1.0]], [[2.0]]).round(4)
    array([[0.964]])
    """

    name = "sigmoid"
    # though single Gram matrices may be
    is_psd = False

    _rules: ClassVar[dict[str, Rule]] = {"gamma": POSITIVE, "coef0": number()}

    def __init__(self, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        return self._of_inner(inner(X, Y))

    def _diag(self, X: Points) -> RealArray:
        return self._of_inner(squared_norms(X))

    def _of_inner(self, t: RealArray) -> RealArray:
        t *= t.dtype.type(self.gamma)
        t += t.dtype.type(self.coef0)
        return np.asarray(np.tanh(t, out=t))


def standard_kernels() -> dict[str, type[Kernel]]:
    """Return the standard kernel classes by their names in the registry."""
    return {cls.name: cls for cls in (Linear, Polynomial, RBF, Laplacian, Sigmoid)}
