"""Kernels made of kernels: sums, products, multiples, columns, weighted sums, unit diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from ..arrays import Points, RealArray, is_sparse
from ..checks import Rule, number
from ._fill import add_scaled, scale_outer
from ._validation import check_weights
from .base import KERNEL, Kernel


def _all_psd(kernels: Sequence[Kernel]) -> bool | None:
    answers = {k.is_psd for k in kernels}
    if False in answers:
        return False
    return None if None in answers else True


def _first_refuser(kernels: Sequence[Kernel]) -> Kernel | None:
    refusers = (k._sparse_refuser() for k in kernels)
    return next((r for r in refusers if r is not None), None)


_WEIGHT = replace(
    number(least=0.0),
    words="a finite number >= 0 (a negative multiple of a kernel is not positive semidefinite)",
)


def _is_columns(value: object) -> bool:
    S = np.asarray(value)
    return S.ndim == 1 and S.size > 0 and S.dtype.kind in "iu" and bool(S.min() >= 0)


_COLUMNS = Rule(
    "a list of 0-based column numbers, at least one",
    _is_columns,
    then=Rule("without repetitions", lambda value: len(np.unique(value)) == len(value)),
)


class _Pair(Kernel):
    """Two kernels joined by an operation on their matrices."""

    _rules: ClassVar[dict[str, Rule]] = {"k1": KERNEL, "k2": KERNEL}

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1 = k1
        self.k2 = k2

    @property
    def is_psd(self) -> bool | None:
        """Proved when both kernels are."""
        return _all_psd((self.k1, self.k2))

    def _sparse_refuser(self) -> Kernel | None:
        return _first_refuser((self.k1, self.k2))


class Sum(_Pair):
    """k(x, y) = k₁(x, y) + k₂(x, y), written ``k1 + k2``.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Linear, RBF
    >>> (Linear() + RBF(gamma=1.0))([[1.0, 1.0]])
    array([[3.]])
    """

    name = "sum"

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.k1._gram(X, Y)
        K += self.k2._gram(X, Y)
        return K

    def _diag(self, X: Points) -> RealArray:
        return np.asarray(self.k1._diag(X) + self.k2._diag(X))

    def __repr__(self) -> str:
        return f"{self.k1!r} + {self.k2!r}"


class Product(_Pair):
    """k(x, y) = k₁(x, y) k₂(x, y), written ``k1 * k2`` (positive semidefinite by Schur).

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Linear, RBF
    >>> (Linear() * RBF(gamma=1.0))([[1.0, 1.0]])
    array([[2.]])
    """

    name = "product"

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.k1._gram(X, Y)
        K *= self.k2._gram(X, Y)
        return K

    def _diag(self, X: Points) -> RealArray:
        return np.asarray(self.k1._diag(X) * self.k2._diag(X))

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.k1, self.k2))


class Scaled(Kernel):
    """k(x, y) = w k₁(x, y), written ``w * k1``.

    Parameters
    ----------
    kernel : Kernel
        k₁.
    weight : float, nonnegative
        w.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import RBF
    >>> 2.0 * RBF(gamma=1.0)
    2.0 * RBF(gamma=1.0)
    """

    name = "scaled"

    _rules: ClassVar[dict[str, Rule]] = {"kernel": KERNEL, "weight": _WEIGHT}

    def __init__(self, kernel: Kernel, weight: float = 1.0) -> None:
        self.kernel = kernel
        self.weight = weight

    @property
    def is_psd(self) -> bool | None:
        """What the scaled kernel is."""
        return self.kernel.is_psd

    def _sparse_refuser(self) -> Kernel | None:
        return self.kernel._sparse_refuser()

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.kernel._gram(X, Y)
        K *= K.dtype.type(self.weight)
        return K

    def _diag(self, X: Points) -> RealArray:
        d = self.kernel._diag(X)
        return np.asarray(d * d.dtype.type(self.weight))

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel)
        return f"{float(self.weight)!r} * {inner}"


class Columns(Kernel):
    """k(x, y) = k₁(x_S, y_S): a kernel that sees some columns only, written ``k.on(S)``.

    A kernel that takes no sparse samples gets these columns of them as a dense array.

    Parameters
    ----------
    kernel : Kernel
        k₁.
    columns : sequence of int
        S, 0-based and without repetition.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Linear
    >>> Linear().on([1])([[5.0, 2.0]])
    array([[4.]])
    """

    name = "columns"

    _rules: ClassVar[dict[str, Rule]] = {"kernel": KERNEL, "columns": _COLUMNS}

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel = kernel
        self.columns = columns

    @property
    def is_psd(self) -> bool | None:
        """What the restricted kernel is."""
        return self.kernel.is_psd

    def _sparse_refuser(self) -> Kernel | None:
        return None  # a kernel that refuses sparse samples gets its columns dense

    def _at(self, X: Points) -> Kernel:
        return Columns(self.kernel._at(self._select(X)), self.columns)

    def _select(self, X: Points) -> Points:
        S = np.asarray(self.columns)
        if S.max() >= X.shape[1]:
            raise ValueError(
                f"{self!r} needs column {S.max()}, but the samples have {X.shape[1]} features"
            )
        out = X[:, S]
        if not is_sparse(out):
            return np.ascontiguousarray(out)
        if self.kernel._sparse_refuser() is None:
            return out
        n, m = out.shape
        memory.require(
            n * m * out.dtype.itemsize,
            f"{m} columns of {n} samples, dense for {self.kernel!r}",
            alternative="use Linear, Polynomial or RBF on them, which take sparse samples",
        )
        return out.toarray()

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        return self.kernel._gram(self._select(X), None if Y is None else self._select(Y))

    def _diag(self, X: Points) -> RealArray:
        return self.kernel._diag(self._select(X))

    def __repr__(self) -> str:
        compound = isinstance(self.kernel, (Sum, Product, Scaled))
        inner = f"({self.kernel!r})" if compound else repr(self.kernel)
        return f"{inner}.on({np.asarray(self.columns).tolist()})"


class UnitDiagonal(Kernel):
    """k(x, y) = k₁(x, y) / √(k₁(x, x) k₁(y, y)), the cosine in k₁'s feature space.

    A point with k₁(x, x) = 0 is the origin of the feature space and stays there: k = 0.

    Parameters
    ----------
    kernel : Kernel
        k₁, with a nonnegative diagonal.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import Linear, UnitDiagonal
    >>> UnitDiagonal(Linear())([[3.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.7071]])
    """

    name = "unit-diagonal"

    _rules: ClassVar[dict[str, Rule]] = {"kernel": KERNEL}

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def is_psd(self) -> bool | None:
        """Proved when k₁ is: the scaling is a congruence."""
        return _all_psd((self.kernel,))

    def _sparse_refuser(self) -> Kernel | None:
        return self.kernel._sparse_refuser()

    def _inverse_norms(self, d: RealArray) -> RealArray:
        if d.size and d.min() < 0:
            raise ValueError(
                f"{self.kernel!r} has the negative diagonal value {d.min():.3g}: "
                "a unit diagonal needs a positive semidefinite kernel"
            )
        out = np.zeros_like(d, dtype=np.float64)
        np.divide(1.0, np.sqrt(d, dtype=np.float64), out=out, where=d > 0)
        return out

    def scale(self, K: RealArray, d_x: RealArray, d_y: RealArray | None) -> None:
        """Turn k₁(X, Y) into k(X, Y) in place, given k₁'s diagonals at X and Y (None: X)."""
        u = self._inverse_norms(d_x)
        scale_outer(K, u, u if d_y is None else self._inverse_norms(d_y))
        if d_y is None:
            np.fill_diagonal(K, (u > 0).astype(K.dtype))

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.kernel._gram(X, Y)
        self.scale(K, self.kernel._diag(X), None if Y is None else self.kernel._diag(Y))
        return K

    def _diag(self, X: Points) -> RealArray:
        return (self._inverse_norms(self.kernel._diag(X)) > 0).astype(X.dtype)


class Combination(Kernel):
    """k(x, y) = Σⱼ βⱼ kⱼ(x, y), the kernel that multiple kernel learning finds.

    Kernels of weight 0 are not evaluated.

    Parameters
    ----------
    kernels : list of Kernel, length q
    weights : array, shape (q,)
        β.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import RBF, Combination, Linear
    >>> Combination([Linear(), RBF(gamma=1.0)], [0.25, 0.75])([[2.0]])
    array([[1.75]])
    """

    name = "combination"

    def __init__(self, kernels: Sequence[Kernel], weights: ArrayLike) -> None:
        self.kernels = kernels
        self.weights = weights

    def _terms(self) -> list[tuple[float, Kernel]]:
        pairs = zip(np.asarray(self.weights, dtype=float).tolist(), self.kernels, strict=True)
        return [(w, k) for w, k in pairs if w != 0.0]

    @property
    def is_psd(self) -> bool | None:
        """Proved when no weight is negative and all kernels used are proved."""
        terms = self._terms()
        return False if any(w < 0 for w, _ in terms) else _all_psd([k for _, k in terms])

    def _sparse_refuser(self) -> Kernel | None:
        return _first_refuser([k for _, k in self._terms()])

    def _validate(self) -> None:
        for index, kernel in enumerate(self.kernels):
            KERNEL.check(f"Combination: kernels[{index}]", kernel)._validate()
        check_weights(self.weights, len(self.kernels))

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        out = np.zeros((X.shape[0], (X if Y is None else Y).shape[0]), dtype=X.dtype)
        for weight, kernel in self._terms():
            add_scaled(out, kernel._gram(X, Y), weight)
        return out

    def _diag(self, X: Points) -> RealArray:
        out = np.zeros(X.shape[0], dtype=X.dtype)
        for weight, kernel in self._terms():
            out += out.dtype.type(weight) * kernel._diag(X)
        return out
