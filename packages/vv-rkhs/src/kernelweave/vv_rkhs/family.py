"""A dictionary whose Gram matrices, or factors of them, are already there."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.arrays import RealArray
from kernelweave.kernels_core.checks import check_array
from kernelweave.kernels_core.grams import as_grams
from numpy.typing import DTypeLike

from .grams import DenseGrams, FactoredGrams, Grams


@dataclass(frozen=True, eq=False)
class PrecomputedFamily:
    """K(η) = Σ ηⱼ Kⱼ for given matrices; a sample is its position in them.

    X of the `Problem` is a column of positions, e.g. ``np.arange(l)[:, None]``.

    Parameters
    ----------
    grams : ndarray of shape (n_kernels, n, n), optional
        Gram matrices, float64 or float32, never copied when every sample is used in order.
    factors : sequence of ndarray of shape (n, d_j), optional
        Or Zⱼ with Kⱼ = Zⱼ Zⱼᵀ, never multiplied out.
    check : bool, default=True
        Whether to look for numbers that are not finite and for matrices that are not symmetric,
        in one pass. That they are positive semidefinite, on which every bound rests, is not
        looked at: see `require_psd`.

    Raises
    ------
    ValueError
        Unless exactly one of the two is given, in that shape.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import PrecomputedFamily
    >>> family = PrecomputedFamily(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> family.gram(np.array([[0], [2]]), [1.0, 2.0])
    array([[3., 2.],
           [2., 3.]])
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    grams: RealArray | None = None
    factors: Sequence[RealArray] | None = None
    check: bool = True

    def __post_init__(self) -> None:
        if (self.grams is None) == (self.factors is None):
            raise ValueError("give grams or factors, one of the two")
        if not self.check:
            return
        if self.grams is not None:
            object.__setattr__(self, "grams", as_grams(self.grams, "grams", square=True))
        for j, Z in enumerate(self.factors or ()):
            check_array(f"factors[{j}]", Z, 2)

    def fit_grams(self, X: npt.ArrayLike, dtype: DTypeLike = np.float64) -> PrecomputedFamily:
        """Return the family of the samples at positions X.

        `X` of shape (n_samples, 1): positions; `dtype`: ignored: the matrices keep theirs. Itself
        where X is 0, 1, …, n − 1; a copy of the matrices of fewer samples otherwise. Raises
        ValueError if a position is none of the samples.
        """
        whole = len(self.factors[0]) if self.grams is None else self.grams.shape[1]  # type: ignore[index]
        rows = _positions(X, whole)
        if np.array_equal(rows, np.arange(whole)):
            return self
        if self.grams is None:
            assert self.factors is not None
            return PrecomputedFamily(
                factors=[np.asarray(Z)[rows] for Z in self.factors], check=False
            )
        memory.require(
            self.grams.itemsize * len(self.grams) * len(rows) ** 2,
            f"a copy of {len(self.grams)} Gram matrices for {len(rows)} of their samples",
            alternative="give the matrices of these samples only, or raise memory_limit",
        )
        return PrecomputedFamily(np.stack([K[np.ix_(rows, rows)] for K in self.grams]), check=False)

    @functools.cached_property
    def stack(self) -> DenseGrams:
        """The matrices as solvers use them: a series of problems measures their norms once."""
        assert self.grams is not None
        return DenseGrams(self.grams)

    def gram(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return Σ ηⱼ Kⱼ at positions X, shape (n_samples, n_samples)."""
        K = grams_of(self.fit_grams(X), None).combine(np.asarray(weights, dtype=np.float64))
        matrix: npt.NDArray[np.float64] = K if isinstance(K, np.ndarray) else K.Z @ K.Z.T
        return matrix


def _positions(X: npt.ArrayLike, n_samples: int) -> npt.NDArray[np.intp]:
    rows = np.asarray(X, dtype=np.float64).reshape(-1)
    if not np.isin(rows, np.arange(n_samples)).all():
        raise ValueError(
            f"X must hold positions of samples, whole numbers from 0 to {n_samples - 1} as there "
            f"are {n_samples} samples in the matrices"
        )
    return rows.astype(np.intp)


def grams_of(fitted: Any, root_weight: npt.NDArray[np.float64] | None) -> Grams:
    """Return what the solvers use of a fitted dictionary or a `PrecomputedFamily`.

    `fitted`: E.g. what ``KernelDictionary.fit_grams`` returns; `root_weight` of shape (n_samples,):
    roots of the sample weights. Scaled by the weights.
    """
    if hasattr(fitted, "make_grams"):
        made: Grams = fitted.make_grams(root_weight)
        return made
    factors = getattr(fitted, "factors", None)
    if factors is not None:
        return FactoredGrams(factors, root_weight)
    if root_weight is None and isinstance(fitted, PrecomputedFamily):
        return fitted.stack
    return DenseGrams(fitted.grams, root_weight)
