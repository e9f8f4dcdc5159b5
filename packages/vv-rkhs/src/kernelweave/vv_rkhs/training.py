"""Training data of the estimators, from points or from precomputed Gram matrices."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, KernelWeaveWarning, Laplacian, Linear, memory
from kernelweave.kernels_core.arrays import FloatArray, Rows
from kernelweave.kernels_core.estimators.samples import merge_samples
from kernelweave.kernels_core.kernels import (
    FittedDictionary,
    KernelDictionary,
    as_grams,
)
from kernelweave.kernels_core.kernels.precomputed import check_once
from kernelweave.kernels_core.kernels.psd import refuse_indefinite
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    validate_data,
)

from .family import PrecomputedFamily
from .gaussian_grid import FittedGrid, GaussianGrid
from .objective import work_bytes

_STRIP = 64
_ALIKE = 1e-10


@dataclass(frozen=True, eq=False)
class Training:
    """What a fit works on.

    - `family`: Gram matrices of the samples that count
    - `targets` of shape (n_outputs, n_used): their targets
    - `weight` of shape (n_used,): their weights; ``None`` where all are one
    - `dictionary`: the kernels; ``None`` for precomputed ones
    - `X` of shape (n_used, n_features): the points; ``None`` for precomputed kernels
    - `owner` of shape (n_samples,): used sample of each sample given, −1 where its weight is zero
    - `share` of shape (n_samples,): part of the used sample's weight that each sample given holds
    """

    family: PrecomputedFamily | FittedGrid
    targets: FloatArray
    weight: FloatArray | None
    dictionary: FittedDictionary | FittedGrid | None
    X: FloatArray | None
    owner: npt.NDArray[np.intp]
    share: FloatArray

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return float(self.targets.shape[1] if self.weight is None else self.weight.sum())

    def centred(self) -> tuple[FloatArray, FloatArray]:
        """Return the weighted mean of the targets, shape (n_outputs,), and targets minus it."""
        mean = np.average(self.targets, axis=1, weights=self.weight)
        return mean, self.targets - mean[:, None]

    def part(self, rows: npt.NDArray[np.intp]) -> Training:
        """Return the same of some of the used samples."""
        place = np.full(self.targets.shape[1], -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        return replace(
            self,
            family=self.family.fit_grams(rows[:, None]),
            targets=self.targets[:, rows],
            weight=None if self.weight is None else self.weight[rows],
            X=None if self.X is None else self.X[rows],
            owner=np.where(self.owner >= 0, place[self.owner], -1),
        )

    def spread(self, values: FloatArray) -> FloatArray:
        """Return values (n_used, n_outputs) as shares of the samples given."""
        out = np.zeros((len(self.owner), values.shape[1]))
        kept = self.owner >= 0
        out[kept] = values[self.owner[kept]] * self.share[kept, None]
        return out


def default_dictionary(X: FloatArray) -> KernelDictionary:
    """Return a linear kernel, five Gaussians and two Laplacians, each scaled to mean diagonal 1.

    Widths follow the spread of the points. Polynomials are left out: far from the training points,
    where a column that is nearly constant among them puts a new one, they grow with a power of the
    distance.

    `X` of shape (n_samples, n_features): training points.
    """
    square, plain = float(X.var(axis=0).sum()) or 1.0, float(X.std(axis=0).sum()) or 1.0
    gaussians = [RBF(gamma=width / square) for width in (0.03, 0.1, 0.3, 1.0, 3.0)]
    laplacians = [Laplacian(gamma=width / plain) for width in (0.1, 0.5)]
    return KernelDictionary([Linear(), *gaussians, *laplacians], normalize="trace")


def from_points(
    kernels: Any, X: FloatArray, targets: FloatArray, weight: FloatArray, dtype: str
) -> Training:
    """Return merged samples and the Gram matrices of a dictionary on them.

    Parameters
    ----------
    kernels : None, KernelDictionary, GaussianGrid, or what makes a dictionary
        ``None``: the default dictionary, each kernel scaled to mean diagonal 1.
    X : ndarray of shape (n_samples, n_features)
        Points.
    targets : ndarray of shape (n_outputs, n_samples)
        Targets.
    weight : ndarray of shape (n_samples,)
        Sample weights.
    dtype : str
        Precision of the Gram matrices.

    Returns
    -------
    Training
        Equal rows with equal targets merged, zero weights dropped, rows sorted.

    Raises
    ------
    MemoryBudgetError
        Before a Gram matrix is made, if they and the work on them do not fit.

    Warns
    -----
    KernelWeaveWarning
        If no kernel tells the samples apart.
    """
    samples = merge_samples(X, targets, weight)
    points = np.asarray(samples.X)
    if kernels is None:
        kernels = default_dictionary(points)
    given = isinstance(kernels, KernelDictionary | GaussianGrid)
    dictionary = kernels if given else KernelDictionary(kernels)
    if not isinstance(dictionary, GaussianGrid):
        _require_memory(len(dictionary), len(points), len(samples.targets), np.dtype(dtype))
    fitted = dictionary.fit_grams(points, dtype=np.dtype(dtype))
    _warn_if_alike(fitted.kernel(np.ones(len(fitted.names))), points)
    return Training(
        fitted if isinstance(fitted, FittedGrid) else PrecomputedFamily(fitted.grams, check=False),
        samples.targets,
        samples.weight,
        fitted,
        points,
        samples.owner,
        samples.share,
    )


def _require_memory(
    n_kernels: int, n_samples: int, n_outputs: int, dtype: np.dtype[np.floating]
) -> None:
    stack = dtype.itemsize * n_kernels * n_samples**2
    memory.require(
        stack + work_bytes(n_samples, n_outputs),
        f"{n_kernels} Gram matrices of {n_samples} samples and the work on {n_outputs} outputs",
        alternative="use fewer kernels or samples, dtype='float32', or a GaussianGrid, which "
        "stores none",
    )


def _warn_if_alike(kernel: Any, X: FloatArray) -> None:
    """Warn where a kernel finds all pairs of different samples equally alike.

    Rows are looked at in strips: the first that differs ends it.
    """
    n = len(X)
    if n < 3:
        return
    low, high, size = np.inf, -np.inf, 0.0
    for start in range(0, n, _STRIP):
        K = kernel(X[start : start + _STRIP], X)
        different = start + np.arange(len(K))[:, None] != np.arange(n)
        low, high = min(low, K[different].min()), max(high, K[different].max())
        size = max(size, float(np.abs(K).max()))
        if high - low > _ALIKE * size:
            return
    scale = float(np.median(np.abs(X - X.mean(axis=0)).max(axis=0)))
    warnings.warn(
        "no kernel tells the samples apart: off its diagonal every Gram matrix is constant, so "
        f"that predictions are. The features are of size {scale:.1e}: scale them (StandardScaler) "
        "or choose widths that fit them",
        KernelWeaveWarning,
        stacklevel=5,
    )


def from_grams(X: Rows, targets: FloatArray, weight: FloatArray) -> Training:
    """Return precomputed Gram matrices, not copied unless a weight is zero.

    `X` of shape (n_kernels, n_samples, n_samples): Gram matrices of the training samples; `targets`
    of shape (n_outputs, n_samples): targets; `weight` of shape (n_samples,): sample weights.
    Samples of weight 0 dropped. Raises NotPSDError if a matrix has an eigenvalue below −1e-10 of
    the largest: no bound would hold.
    """
    grams = as_grams(X, square=True)
    check_once("each matrix", partial(refuse_indefinite, name="X"), X, grams)
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight must be finite and >= 0, with a positive one among them")
    used = np.flatnonzero(weight > 0)
    family = PrecomputedFamily(grams, check=False).fit_grams(used[:, None])
    owner = np.full(len(weight), -1, dtype=np.intp)
    owner[used] = np.arange(len(used))
    kept = weight[used]
    return Training(
        family,
        np.ascontiguousarray(targets[:, used]),
        None if (kept == 1.0).all() else kept,
        None,
        None,
        owner,
        (weight > 0).astype(np.float64),
    )


def read_regression(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, FloatArray, FloatArray, bool]:
    """Return X, targets (n_samples, n_outputs), weights, and whether y was one column.

    - `estimator`: whose ``n_features_in_`` is set
    - `X`: points or Gram matrices
    - `y` of shape (n_samples,) or (n_samples, n_outputs): targets
    - `sample_weight` of shape (n_samples,): weights

    Raises TypeError if y is sparse.
    """
    if issparse(y):
        raise TypeError("y must be a dense array, got a sparse one: pass y.toarray()")
    if estimator.kernels is None or not isinstance(estimator.kernels, str):
        X, y = validate_data(estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        n = X.shape[0]
    else:
        y = check_array(y, dtype=np.float64, ensure_2d=False)
        n = as_grams(X).shape[1]
        check_consistent_length(np.empty(n), y)
        estimator.n_features_in_ = n
    y = np.asarray(y, dtype=np.float64)
    assert_all_finite(y, input_name="y")
    weight = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64)
    single = y.ndim == 1
    return X, y[:, None] if single else y, weight, single
