"""Kernels and dictionaries that remember training points: clipping, centring, Gram matrices."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import FloatArray, Points, RealArray, Rows, is_sparse
from ..checks import check_weights, one_of
from ..grams._fill import add_outer, largest, row_blocks
from ..grams.psd import Spectrum, spectrum_of_values
from ..interrupts import run_interruptibly
from ._parameters import check_samples
from .base import DerivedKernel, Kernel, Scaled
from .compose import Combination, UnitDiagonal

NORMALIZATION = one_of("trace", "unit-diagonal", "center", "center-trace").or_none()


def is_same(X: Points, Y: Points) -> bool:
    """Tell whether two checked sample sets hold the same numbers in the same form."""
    if X is Y:
        return True
    if X.shape != Y.shape:
        return False
    if is_sparse(X) or is_sparse(Y):
        return is_sparse(X) and is_sparse(Y) and (X - Y).count_nonzero() == 0
    return np.array_equal(X, Y)


class _OnTrainingPoints(DerivedKernel):
    """A kernel built from another one and the points it was fitted on."""

    X: Points

    def _training(self, X: Points) -> Points:
        """Return the training points, checked to have the features and the type of ``X``."""
        if X.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"{self.kernel!r} was fitted on {self.X.shape[1]} features, got {X.shape[1]}"
            )
        if is_sparse(X) != is_sparse(self.X):
            raise ValueError(
                f"{self.kernel!r} was fitted on {_form(self.X)} samples, got {_form(X)} ones"
            )
        return self.X if self.X.dtype == X.dtype else self.X.astype(X.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel!r}, n_train={self.X.shape[0]})"


class _OfFeatures(_OnTrainingPoints):
    """An inner product of finitely many features, which a subclass writes."""

    is_psd = True

    @abstractmethod
    def _features(self, X: Points) -> FloatArray:
        """Return z with k(x, y) = z(x)ᵀz(y), shape (n, r)."""

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        F = self._features(X)
        K = F @ F.T if Y is None else F @ self._features(Y).T
        return np.asarray(K, dtype=X.dtype)

    def _diag(self, X: Points) -> RealArray:
        F = self._features(X)
        return np.asarray(np.einsum("ir,ir->i", F, F), dtype=X.dtype)


def _form(X: Points) -> str:
    return "sparse" if is_sparse(X) else "dense"


class Clipped(_OfFeatures):
    """The positive part of an indefinite kernel k on its training points X, for any points.

    With K = k(X, X) = U Λ Uᵀ and Λ₊, U₊ the eigenvalues above rounding and their vectors, `values`
    (r,) and `vectors` (n, r), it is k₊(x, y) = k(x, X) U₊ Λ₊⁻¹ U₊ᵀ k(X, y).

    On the training points this is U₊ Λ₊ U₊ᵀ, K with its negative eigenvalues set to zero, and
    between a new point and the training points k(x, X) U₊ U₊ᵀ. It is positive semidefinite
    everywhere, being the inner product of the features φ(x) = Λ₊^(−1/2) U₊ᵀ k(X, x).
    """

    name = "clipped"

    def __init__(self, kernel: Kernel, X: Points, vectors: FloatArray, values: FloatArray) -> None:
        self.kernel = kernel
        self.X = X
        self.vectors = vectors
        self.values = values

    @classmethod
    def fit(cls, kernel: Kernel, X: Points, K: RealArray) -> tuple[Self, Spectrum]:
        """Return the clipped kernel of one with symmetric Gram matrix K on X, and K's spectrum.

        One eigendecomposition, about 9n³ operations.
        """
        values, vectors = run_interruptibly(np.linalg.eigh, K.astype(np.float64, copy=False))
        spectrum = spectrum_of_values(values, K.dtype)
        keep = values > spectrum.tolerance
        return cls(kernel, X, np.ascontiguousarray(vectors[:, keep]), values[keep]), spectrum

    def _features(self, X: Points) -> NDArray[np.float64]:
        train = self._training(X)
        roots = np.sqrt(self.values)
        # exact on the training points; elsewhere 1/√λ also scales the rounding of k(x, X)
        if is_same(X, train):
            return np.asarray(self.vectors * roots)
        return np.asarray(self.kernel._gram(X, train) @ (self.vectors / roots))


class Centered(_OnTrainingPoints):
    """The kernel whose features are centred at the mean of the training points X.

    With m(x) = (1/n) Σᵢ k(x, xᵢ), `means` at these points, and g = (1/n) Σᵢ m(xᵢ) it is k_c(x, y) =
    k(x, y) − m(x) − m(y) + g = ⟨φ(x) − φ̄, φ(y) − φ̄⟩.
    """

    name = "centered"

    def __init__(self, kernel: Kernel, X: Points, means: FloatArray) -> None:
        self.kernel = kernel
        self.X = X
        self.means = means

    @classmethod
    def fit(cls, kernel: Kernel, X: Points, K: RealArray) -> Self:
        """Return the centred kernel of ``kernel`` with Gram matrix K, shape (n, n), on X."""
        return cls(kernel, X, K.mean(axis=1, dtype=np.float64))

    def _means_at(self, X: Points) -> NDArray[np.float64]:
        train = self._training(X)
        if is_same(X, train):
            return np.asarray(self.means)
        return np.asarray(self.kernel._gram(X, train).mean(axis=1, dtype=np.float64))

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.kernel._gram(X, Y)
        self.shift(K, self._means_at(X), None if Y is None else self._means_at(Y))
        return K

    def shift(self, K: RealArray, m_x: RealArray, m_y: RealArray | None) -> None:
        """Turn k(X, Y) into k_c(X, Y) in place, given m at X and Y (None: X)."""
        half = 0.5 * float(np.mean(self.means))
        u = half - m_x
        add_outer(K, u, u if m_y is None else half - m_y)

    def _diag(self, X: Points) -> RealArray:
        out = self.kernel._diag(X) - 2.0 * self._means_at(X) + float(np.mean(self.means))
        return np.asarray(out).astype(X.dtype, copy=False)


def fit_normalization(
    kernel: Kernel, X: Points, K: RealArray, normalize: str | None, label: str
) -> Kernel:
    """Return the normalised kernel and change its Gram matrix K, shape (n, n), in place.

    See `KernelDictionary` for the formulas.
    """
    if normalize in ("center", "center-trace"):
        centered = Centered.fit(kernel, X, K)
        centered.shift(K, centered.means, None)
        kernel = centered
    if normalize in ("trace", "center-trace"):
        scale = trace_scale(float(K.trace(dtype=np.float64)), K, largest(K), label)
        K *= K.dtype.type(scale)
        return Scaled(kernel, scale)
    if normalize == "unit-diagonal":
        unit = UnitDiagonal(kernel)
        unit.scale(K, K.diagonal().copy(), None)
        return unit
    return kernel


def trace_scale(trace: float, values: RealArray, size: float, label: str) -> float:
    """Return n/trace, or say that the trace is nothing but rounding.

    `values`: the matrix or its diagonal, of which the length and the type count.
    """
    if trace <= 10.0 * len(values) * np.finfo(values.dtype).eps * size or size == 0.0:
        raise ValueError(
            f"{label} has trace {trace:.3g} on {len(values)} "
            f"sample{'' if len(values) == 1 else 's'}, so it cannot be scaled to trace n: "
            "leave this kernel out, or use normalize=None"
        )
    return len(values) / trace


def require_stack(n_kernels: int, n_x: int, n_y: int, dtype: DTypeLike) -> None:
    """Refuse a stack of Gram matrices that the memory limit forbids."""
    memory.require(
        n_kernels * n_x * n_y * np.dtype(dtype).itemsize,
        f"{n_kernels} Gram matrices of {n_x} x {n_y} samples",
        alternative="use fewer kernels or samples, or raise {memory_limit}",
    )


@dataclass(frozen=True, eq=False)
class FittedDictionary:
    """The kernels of a dictionary on its training points, clipped and normalised.

    Built by `KernelDictionary.fit_grams`, and itself the family of a `Problem`: unlike a dictionary
    with a normalisation it needs no further statistics, so ``gram`` and ``kernel`` take any points,
    and on the training points the matrices are not computed again.

    Attributes
    ----------
    names : tuple of str, length q
        Names of the kernels that are left.
    kernels : tuple of Kernel, length q
        The same kernels with everything that clipping and normalisation learned: they take any
        points, and ``kernels[j](X_new, X)`` is row block j of ``cross(X_new)``.
    X : ndarray or CSR, shape (n, n_features)
        Training points.
    grams : ndarray, shape (q, n, n)
        Their Gram matrices, exactly symmetric.
    dropped : dict of str to float
        Kernels left out by ``psd="drop"``, with their smallest eigenvalue.
    clipped : dict of str to float
        Kernels repaired by ``psd="clip"``, with the smallest eigenvalue they had.
    kept : ndarray of int, shape (q,)
        Position in the dictionary of each kernel that is left.
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    X: Points
    grams: RealArray
    dropped: dict[str, float]
    clipped: dict[str, float]
    kept: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.kernels)

    def cross(self, X_new: Rows) -> RealArray:
        """Return the cross-Gram matrices kⱼ(X_new, X), shape (q, n_new, n)."""
        new = check_samples(X_new, "X_new", dtype=self.X.dtype)
        if new.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"X_new has {new.shape[1]} features, the dictionary was fitted on {self.X.shape[1]}"
            )
        shape = (len(self), new.shape[0], self.X.shape[0])
        require_stack(*shape, self.X.dtype)
        out = np.empty(shape, dtype=self.X.dtype)
        for j, kernel in enumerate(self.kernels):
            out[j] = kernel(new, self.X)
        return out

    def fit_grams(self, X: Rows, dtype: DTypeLike = np.float64) -> FittedDictionary:
        """Return itself; ``X`` and ``dtype`` must be those it was fitted with.

        Raises ValueError if they are not.
        """
        if np.dtype(dtype) != self.X.dtype or not self._is_training(X):
            raise ValueError(
                "this family was fitted on other samples or another dtype: "
                "call fit_grams of the KernelDictionary"
            )
        return self

    def _is_training(self, X: Rows) -> bool:
        return X is self.X or is_same(check_samples(X, dtype=self.X.dtype), self.X)

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> RealArray:
        """Return Σⱼ βⱼ kⱼ(X, Y), shape (n_x, n_y), of the training points exactly symmetric.

        There, beside the result, only a block of rows is allocated. Cost: 2qn² operations, for
        weights that are not 0.
        """
        if Y is not None or not self._is_training(X):
            return self.kernel(weights)(X, Y)
        beta = check_weights(weights, len(self), signed=True)
        _, n_rows, n_columns = self.grams.shape
        out = np.zeros((n_rows, n_columns), dtype=self.grams.dtype)
        used = np.flatnonzero(beta)
        for rows in row_blocks(n_rows, n_columns):
            for j in used:
                out[rows] += self.grams[j, rows] * out.dtype.type(beta[j])
        return out

    def kernel(self, weights: ArrayLike) -> Combination:
        """Return Σⱼ βⱼ kⱼ as one picklable kernel for any points.

        It holds the kernels of weight 0 no longer, and the training points only if clipping or
        centring needs them.
        """
        return combination(self.kernels, weights)


def combination(kernels: tuple[Kernel, ...], weights: ArrayLike) -> Combination:
    """Return Σⱼ βⱼ kⱼ of the kernels whose weight is not 0, of the first where all are."""
    beta = check_weights(weights, len(kernels), signed=True)
    used = np.flatnonzero(beta)
    used = used if len(used) else np.array([0])
    return Combination([kernels[j] for j in used], beta[used])
