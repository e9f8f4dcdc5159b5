"""A kernel is a value that is called on samples; so are sums, products, multiples and columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import memory
from ..arrays import Points, RealArray, Rows, is_sparse
from ..checks import Rule, number
from ._parameters import Parameters, check_pair, check_samples, is_vector


class Kernel(Parameters, ABC):
    """A kernel k(x, y) as a value: it is called, adds, multiplies, scales, prints and copies.

    ``k(X)`` is the Gram matrix, ``k(X, Y)`` the cross-Gram matrix, ``k(x, y)`` of two vectors a
    number, ``k.diag(X)`` the values k(xᵢ, xᵢ). ``k1 + k2``, ``k1 * k2`` and ``2.0 * k`` are
    kernels, and ``k.on([0, 3])`` sees two columns only. Kernels are equal when their parameters
    are, work with ``sklearn.base.clone`` and nested ``set_params``, and serve as
    ``SVC(kernel=k)`` or ``KernelRidge(kernel=k)``.

    A subclass stores its constructor's parameters under their own names, unchanged, and writes
    `_gram`; it may also write `_diag`, `_validate`, `is_psd` and set ``name`` and ``_rules``,
    which say what its parameters must be.

    Attributes
    ----------
    name : str
        The kernel's name in the registry.
    accepts_sparse : bool
        Whether samples may be a scipy sparse array.
    """

    name: ClassVar[str] = "kernel"
    accepts_sparse: ClassVar[bool] = False
    _rules: ClassVar[dict[str, Rule]] = {}
    # numpy numbers leave ``number * kernel`` to the kernel
    __array_ufunc__ = None

    @property
    def is_psd(self) -> bool | None:
        """Whether every Gram matrix is positive semidefinite: True is proved, False is refuted.

        ``None``, the default, means that nobody knows. Where it is not True, the Gram matrix
        itself is tested; a sum or product with a refuted kernel counts as refuted.
        """
        return None

    @abstractmethod
    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        """Return k(X, Y), shape (n_x, n_y), for checked samples of one float type.

        ``Y=None`` means X, and asks for an exactly symmetric matrix. The array is new: the caller
        may overwrite it.
        """

    def _diag(self, X: Points) -> RealArray:
        """Return k(xᵢ, xᵢ), shape (n,), for checked samples."""
        values = [self._gram(X[i : i + 1], None)[0, 0] for i in range(X.shape[0])]
        return np.array(values, dtype=X.dtype)

    def _validate(self) -> None:
        """Raise ValueError when a parameter, or one of a kernel inside, has no meaning."""
        for name, rule in self._rules.items():
            value = rule.check(f"{type(self).__name__}: {name}", getattr(self, name))
            if isinstance(value, Kernel):
                value._validate()

    def _features(self, X: Points) -> RealArray | None:
        """Return Z with k(X) = ZZᵀ, shape (n, r), up to a rounding or two of each entry.

        None, the default: there are no such finitely many features, or nobody knows them.
        """
        return None

    def _at(self, X: Points) -> Kernel:
        """Return the kernel with what it takes from training points, itself as a rule."""
        return self

    def _sparse_refuser(self) -> Kernel | None:
        """Return the kernel inside this one that cannot take sparse samples, if any."""
        return None if self.accepts_sparse else self

    def _check_ready(self, X: Points) -> None:
        self._validate()
        if not is_sparse(X):
            return
        refuser = self._sparse_refuser()
        if refuser is not None:
            raise TypeError(
                f"{refuser!r} does not accept sparse samples: pass X.toarray(), or use Linear, "
                "Polynomial or RBF, which do"
            )

    def __call__(self, X: Rows, Y: Rows | None = None) -> RealArray:
        """Return the (cross-)Gram matrix Kᵢⱼ = k(xᵢ, yⱼ).

        Parameters
        ----------
        X : array-like or sparse, shape (n_x, n_features), or one vector (n_features,)
        Y : array-like or sparse, shape (n_y, n_features), or one vector; default X

        Returns
        -------
        ndarray, shape (n_x, n_y), or a number for vectors
            float32 where X and Y are float32, else float64; exactly symmetric for ``Y=None``.

        Raises
        ------
        ValueError
            If a parameter or the samples are invalid.
        TypeError
            If the samples are sparse and the kernel needs dense ones.
        """
        if is_vector(X):
            return self._of_vectors(X, Y)
        A, B = check_pair(X, Y)
        self._check_ready(A)
        return self._gram(A, B).astype(A.dtype, copy=False)

    def _of_vectors(self, x: Rows, y: Rows | None) -> RealArray:
        if y is not None and not is_vector(y):
            raise ValueError(
                f"X is one vector and Y has shape {np.shape(np.asarray(y))}: "
                "give two vectors or two 2-dimensional arrays"
            )
        row = np.asarray(x)[None, :]
        other = None if y is None or y is x else np.asarray(y)[None, :]
        number: RealArray = self(row, other)[0, 0]
        return number

    def diag(self, X: Rows) -> RealArray:
        """Return the diagonal k(xᵢ, xᵢ), shape (n,), without the matrix."""
        A = check_samples(X)
        self._check_ready(A)
        return self._diag(A).astype(A.dtype, copy=False)

    def on(self, columns: int | Sequence[int] | NDArray[np.integer]) -> Columns:
        """Return this kernel restricted to some columns of the samples.

        Examples
        --------
        >>> from kernelweave.kernels_core.kernels import RBF
        >>> RBF(gamma=0.5).on([0, 3])
        RBF(gamma=0.5).on([0, 3])
        """
        single = isinstance(columns, (int, np.integer)) and not isinstance(columns, bool)
        return Columns(self, [columns] if single else columns)  # type: ignore[list-item, arg-type]

    def __add__(self, other: object) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: object) -> Kernel:
        # sum([k1, k2]) starts from 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, other: object) -> Product | Scaled:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: object) -> Scaled:
        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented


KERNEL = Rule("a kernel such as RBF(gamma=1.0)", lambda value: isinstance(value, Kernel))


def all_psd(kernels: Sequence[Kernel]) -> bool | None:
    """Return whether all are positive semidefinite, None where nobody knows."""
    answers = {k.is_psd for k in kernels}
    if False in answers:
        return False
    return None if None in answers else True


def first_refuser(kernels: Sequence[Kernel]) -> Kernel | None:
    """Return the first kernel within them that takes no sparse samples."""
    refusers = (k._sparse_refuser() for k in kernels)
    return next((r for r in refusers if r is not None), None)


class DerivedKernel(Kernel):
    """A kernel made of another one, ``kernel``: what is known of that holds for this one too."""

    kernel: Kernel
    _rules: ClassVar[dict[str, Rule]] = {"kernel": KERNEL}

    @property
    def is_psd(self) -> bool | None:
        """What the kernel inside is."""
        return self.kernel.is_psd

    def _sparse_refuser(self) -> Kernel | None:
        return self.kernel._sparse_refuser()


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
        return all_psd((self.k1, self.k2))

    def _sparse_refuser(self) -> Kernel | None:
        return first_refuser((self.k1, self.k2))


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


class Scaled(DerivedKernel):
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

    def _gram(self, X: Points, Y: Points | None) -> RealArray:
        K = self.kernel._gram(X, Y)
        K *= K.dtype.type(self.weight)
        return K

    def _features(self, X: Points) -> RealArray | None:
        Z = self.kernel._features(X)
        return None if Z is None else np.sqrt(self.weight) * Z

    def _diag(self, X: Points) -> RealArray:
        d = self.kernel._diag(X)
        return np.asarray(d * d.dtype.type(self.weight))

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel)
        return f"{float(self.weight)!r} * {inner}"


class Columns(DerivedKernel):
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

    def _features(self, X: Points) -> RealArray | None:
        return self.kernel._features(self._select(X))

    def _diag(self, X: Points) -> RealArray:
        return self.kernel._diag(self._select(X))

    def __repr__(self) -> str:
        compound = isinstance(self.kernel, (Sum, Product, Scaled))
        inner = f"({self.kernel!r})" if compound else repr(self.kernel)
        return f"{inner}.on({np.asarray(self.columns).tolist()})"
