"""Precomputed Gram matrices as samples: sliced on both sample axes, copied when read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import memory
from ..arrays import FloatArray, RealArray, Rows
from ..checks import LARGEST, check_magnitude
from ._fill import asymmetry, largest
from .psd import refuse_indefinite, require_psd

# sets of samples on which no matrix is indefinite, remembered by a stack: more than folds have
_REMEMBERED = 64


class PrecomputedGrams:
    """A stack of Gram matrices that scikit-learn can slice as if it were one kernel matrix.

    ``len`` is the number of samples and ``shape`` is (n, n_train): to ``KFold``,
    ``GridSearchCV`` and ``cross_val_score`` it looks like one precomputed kernel, which they
    slice on both axes for estimators with the ``pairwise`` tag. Slicing keeps indices only; the
    stack is copied when `grams` (or ``np.asarray``) reads a slice, and never when unsliced. Do not
    change the matrices afterwards: that they are finite and positive semidefinite is checked once
    and remembered, with all slices, as every part of such a matrix is so too.

    Parameters
    ----------
    grams : ndarray, shape (n_kernels, n, n_train)
        Gram matrices, or cross-Gram matrices with rows for new points.

    Attributes
    ----------
    n_kernels : int

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.grams import PrecomputedGrams
    >>> X = PrecomputedGrams(np.stack([np.eye(4), np.ones((4, 4))]))
    >>> len(X), X.shape, X.n_kernels
    (4, (4, 4), 2)
    >>> X[np.ix_([0, 2], [1, 2, 3])].grams.shape
    (2, 2, 3)
    """

    def __init__(self, grams: object) -> None:
        self._set(as_grams(grams, "grams"))

    @classmethod
    def of(cls, grams: object, what: str = "X") -> PrecomputedGrams:
        """Return Gram matrices as samples; ``what`` names the argument in messages."""
        return grams if isinstance(grams, cls) else cls.of_checked(as_grams(grams, what))

    @classmethod
    def of_checked(cls, stack: RealArray) -> PrecomputedGrams:
        """Return a stack that `as_grams` made as samples."""
        new = object.__new__(cls)
        new._set(stack)
        return new

    def _set(self, stack: RealArray) -> None:
        self._stack = stack
        self._passed: list[NDArray[np.intp]] = []
        self._rows: NDArray[np.intp] | None = None
        self._columns: NDArray[np.intp] | None = None

    @property
    def n_kernels(self) -> int:
        """Number of kernels in the stack."""
        return int(self._stack.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n_train), as of one kernel matrix."""
        _, rows, columns = self._stack.shape
        return (
            rows if self._rows is None else len(self._rows),
            columns if self._columns is None else len(self._columns),
        )

    @property
    def ndim(self) -> int:
        """2, as of one kernel matrix."""
        return 2

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the entries."""
        return self._stack.dtype

    @property
    def grams(self) -> RealArray:
        """The matrices, shape (n_kernels, n, n_train): the stack itself, or a copied slice."""
        if self._rows is None and self._columns is None:
            return self._stack
        shape = (self.n_kernels, *self.shape)
        memory.require(
            int(np.prod(shape)) * self.dtype.itemsize,
            f"{shape[0]} precomputed Gram matrices of {shape[1]} x {shape[2]}",
            alternative="use fewer kernels or samples, or float32 Gram matrices",
        )
        out = np.empty(shape, dtype=self.dtype)
        for j in range(len(out)):
            out[j] = self.matrix(j)
        return out

    def matrix(self, j: int) -> RealArray:
        """Return the matrix of kernel j, (n, n_train): that of the stack, or a copied slice."""
        K: RealArray = self._stack[j]
        if self._columns is None:
            return K if self._rows is None else K[self._rows]
        return K[:, self._columns] if self._rows is None else K[np.ix_(self._rows, self._columns)]

    @property
    def is_definite(self) -> bool:
        """Whether all matrices passed the check on these samples, with others or without."""
        rows, columns = self._positions()
        return np.array_equal(rows, columns) and any(
            np.isin(rows, checked).all() for checked in self._passed
        )

    def remember_definite(self) -> None:
        """Remember that no matrix is indefinite on these samples."""
        rows, columns = self._positions()
        if np.array_equal(rows, columns) and len(self._passed) < _REMEMBERED:
            self._passed.append(np.unique(rows))

    def _positions(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        _, n_rows, n_columns = self._stack.shape
        return (
            np.arange(n_rows) if self._rows is None else self._rows,
            np.arange(n_columns) if self._columns is None else self._columns,
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __sizeof__(self) -> int:
        """Return bytes, the stack's included: joblib's Dask backend sends once what is large."""
        return object.__sizeof__(self) + int(self._stack.nbytes)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> RealArray:
        return np.array(self.grams, dtype=dtype, copy=copy)

    def __getitem__(self, key: object) -> PrecomputedGrams:
        """Return a slice: ``X[rows]``, ``X[rows, columns]`` or ``X[np.ix_(rows, columns)]``.

        Both axes are always sliced independently, as ``np.ix_`` does.
        """
        parts = key if isinstance(key, tuple) else (key,)
        parts = tuple(p for p in parts if p is not Ellipsis)
        if len(parts) > 2:
            raise IndexError(f"{len(parts)} indices: samples have two axes, rows and columns")
        new = object.__new__(type(self))
        new._stack, new._rows, new._columns = self._stack, self._rows, self._columns
        new._passed = self._passed
        if parts:
            new._rows = _positions(parts[0], self.shape[0], self._rows)
        if len(parts) == 2:
            new._columns = _positions(parts[1], self.shape[1], self._columns)
        return new

    def __repr__(self) -> str:
        return f"PrecomputedGrams(n_kernels={self.n_kernels}, shape={self.shape})"


def _positions(key: object, size: int, old: NDArray[np.intp] | None) -> NDArray[np.intp] | None:
    """Compose an index into an axis of ``size`` with the positions it already stands for."""
    if isinstance(key, slice) and key == slice(None):
        return old
    axis = np.arange(size) if old is None else old
    index = key if isinstance(key, slice) else np.asarray(key)
    if isinstance(index, np.ndarray):
        if index.ndim == 0:
            raise IndexError(
                f"PrecomputedGrams takes slices and lists of samples, got {key!r}: use [{key!r}]"
            )
        index = index.reshape(-1)
        if index.size == 0:
            index = index.astype(np.intp)
    chosen = np.asarray(axis[index], dtype=np.intp)
    return None if old is None and np.array_equal(chosen, axis) else chosen


def as_grams(X: object, what: str = "X", *, square: bool = False, psd: bool = False) -> RealArray:
    """Return precomputed Gram matrices as one float array, not copied where they are one.

    Parameters
    ----------
    X : PrecomputedGrams, ndarray or list of ndarray, shape (n_kernels, n, n_train)
    what : str
        Name of the argument, for messages.
    square : bool
        Whether they must be square and symmetric, of one sample or more: the Gram matrices of
        training points.
    psd : bool
        Whether a negative eigenvalue is refused too: n³/3 operations a matrix.

    Returns
    -------
    ndarray of float32 or float64, shape (n_kernels, n, n_train)

    Raises
    ------
    ValueError
        If the shape is wrong, an entry is not finite or above 1e50, or (``square``) a matrix is
        not symmetric.
    NotPSDError
        With ``psd``, if one has a negative eigenvalue beyond rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import as_grams
    >>> as_grams([np.eye(3), np.ones((3, 3))], square=True).shape
    (2, 3, 3)
    """
    grams = X.grams if isinstance(X, PrecomputedGrams) else np.asarray(X)
    if grams.ndim != 3 or grams.shape[0] == 0:
        raise ValueError(
            f"{what} has shape {grams.shape}: Gram matrices have shape "
            "(n_kernels, n_samples, n_train)"
        )
    if grams.dtype not in (np.float32, np.float64):
        if grams.dtype.kind not in "fiub":
            raise ValueError(f"{what} has dtype {grams.dtype}: real numbers are needed")
        grams = grams.astype(np.float64)
    if square and grams.shape[1] != grams.shape[2]:
        raise ValueError(f"{what} has shape {grams.shape}: training Gram matrices are square")
    if square and grams.shape[1] == 0:
        raise ValueError(f"{what} has shape {grams.shape}: no samples, at least one is needed")
    for j, K in enumerate(grams):
        size = 0.0 if isinstance(X, PrecomputedGrams) or _is_moderate(K) else largest(K)
        if not np.isfinite(size):
            raise ValueError(f"{what}[{j}] contains NaN or infinity")
        if size > LARGEST:
            check_magnitude(f"{what}[{j}]", K)
        difference = asymmetry(K) if square else 0.0
        if difference > 0.0 and difference > _slack(K):
            raise ValueError(
                f"{what}[{j}] is not symmetric (entries differ by up to {difference:.3g}): "
                "training Gram matrices are, use (K + K.T) / 2"
            )
        if psd:
            require_psd(K, f"{what}[{j}]")
    return grams


def definite_grams(X: object) -> PrecomputedGrams:
    """Return square Gram matrices, none of them indefinite: each set of samples is checked once.

    What is positive semidefinite is so in every principal part.
    """
    grams = as_grams(X, "X", square=True)
    given = X if isinstance(X, PrecomputedGrams) else None
    if given is None or not given.is_definite:
        refuse_indefinite(grams, "X")
        if given is not None:
            given.remember_definite()
    checked = PrecomputedGrams.of_checked(grams)
    checked.remember_definite()
    return checked


def _is_moderate(K: RealArray) -> bool:
    """Whether a sum of squares, which hides no NaN, shows all is well: one read of K."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.vdot(K, K)) < LARGEST**2


def _slack(K: RealArray) -> float:
    """Return the difference between Kᵢⱼ and Kⱼᵢ that is rounding."""
    type_ = np.finfo(K.dtype)
    return 100.0 * float(type_.eps) * max(largest(K), float(type_.tiny))


@dataclass(frozen=True, eq=False)
class PrecomputedKernel:
    """(Σ βⱼ Xⱼ)^{∘d} of a stack X of cross-Gram matrices: the learned kernel on precomputed ones.

    `weights` of shape (q,): β; `degree`: d, a Hadamard power.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.grams import PrecomputedKernel
    >>> PrecomputedKernel(np.array([0.5, 0.5]))(np.array([[[1.0, 2.0]], [[3.0, 4.0]]]))
    array([[2., 3.]])
    """

    weights: FloatArray
    degree: int = 1

    def __call__(self, X: Rows) -> FloatArray:
        """Return the combined matrix, (n_x, n_train); only matrices of nonzero weight are read.

        Raises ValueError if X does not hold one matrix per weight.
        """
        grams = PrecomputedGrams.of(X)
        if grams.n_kernels != len(self.weights):
            raise ValueError(
                f"X must hold {len(self.weights)} Gram matrices, one per kernel, got "
                f"{grams.n_kernels}"
            )
        out = np.zeros(grams.shape)
        for j in np.flatnonzero(self.weights):
            out += self.weights[j] * grams.matrix(int(j))
        return out if self.degree == 1 else np.asarray(out**self.degree)

    def times(self, grams: PrecomputedGrams, u: FloatArray) -> FloatArray:
        """Return the combined matrix times u of shape (n_train, t); a sum of them is not formed."""
        if self.degree > 1:
            used = np.flatnonzero(u.any(axis=1))
            return np.asarray(self(grams[:, used]) @ u[used])
        out = np.zeros((len(grams), u.shape[1]))
        for j in np.flatnonzero(self.weights):
            out += self.weights[j] * (grams.matrix(int(j)) @ u)
        return out


@dataclass(frozen=True, eq=False)
class PrecomputedDictionary:
    """Σ βⱼKⱼ of given Gram matrices: a fitted dictionary and a family in one.

    `grams` of shape (q, n, n): Gram matrices of the training points, symmetric and positive
    semidefinite.
    """

    grams: RealArray
    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1

    def __len__(self) -> int:
        return len(self.grams)

    @property
    def names(self) -> tuple[str, ...]:
        """``"K0"``, ``"K1"``, and so on."""
        return tuple(f"K{j}" for j in range(len(self)))

    @property
    def kept(self) -> NDArray[np.intp]:
        """Position of each kernel, shape (q,): none is left out."""
        return np.arange(len(self))

    @property
    def dropped(self) -> dict[str, float]:
        """Nothing is left out."""
        return {}

    def fit_grams(self, X: Rows, dtype: DTypeLike = np.float64) -> PrecomputedDictionary:
        """Return itself: ``X`` are positions in the stack, and ``dtype`` is that of the stack."""
        return self

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> FloatArray:
        """Return Σ βⱼKⱼ of the training points, shape (n, n), for ``weights`` of shape (q,)."""
        return PrecomputedKernel(np.asarray(weights, dtype=np.float64))(
            PrecomputedGrams.of_checked(self.grams)
        )

    def kernel(self, weights: ArrayLike) -> PrecomputedKernel:
        """Return the kernel that sums cross-Gram matrices with these weights."""
        return PrecomputedKernel(np.asarray(weights, dtype=np.float64))
