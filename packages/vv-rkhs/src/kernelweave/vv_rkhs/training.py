"""Training data of the estimators, from points or from precomputed Gram matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, Laplacian, Linear, memory
from kernelweave.kernels_core.arrays import FloatArray, Rows
from kernelweave.kernels_core.estimators.cells import cells_named, read_weights
from kernelweave.kernels_core.estimators.classes import group_codes
from kernelweave.kernels_core.estimators.kernel import Data
from kernelweave.kernels_core.estimators.samples import Samples, merge_samples
from kernelweave.kernels_core.estimators.weights import is_precomputed
from kernelweave.kernels_core.exceptions import warn
from kernelweave.kernels_core.grams import PrecomputedGrams, definite_grams
from kernelweave.kernels_core.kernels import FittedDictionary, Kernel, KernelDictionary
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    validate_data,
)

from .family import PrecomputedFamily
from .gaussian_grid import FittedGrid, GaussianGrid
from .objective import work_bytes

if TYPE_CHECKING:
    from kernelweave.kernels_core.kernels.dictionary import Normalize

    from .estimators import MatrixValuedKernelRegressor

# as an estimator's parameter says it
Kernels: TypeAlias = (
    "KernelDictionary | GaussianGrid | Sequence[Kernel | str] | Mapping[str, Kernel] | str | None"
)

# Rows that are looked at together: nearly always the first strip already differs.
_STRIP = 64
# Entries off the diagonal that differ by less, relative to the largest, are one constant.
_ALIKE = 1e-10


@dataclass(frozen=True, eq=False)
class Training:
    """What a fit works on.

    - `family`: Gram matrices of the samples that count
    - `targets` of shape (n_outputs, n_used): their targets
    - `weight` of shape (n_used,): their weights; ``None`` where all are one
    - `cells` of shape (n_outputs, n_used): weights per cell instead, 0 where missing
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
    cells: FloatArray | None = None

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights; of weights per cell over the number of outputs."""
        if self.cells is not None:
            return float(self.cells.sum()) / len(self.targets)
        return float(self.targets.shape[1] if self.weight is None else self.weight.sum())

    def means(self, values: FloatArray) -> FloatArray:
        """Return the weighted mean of each row of values like the targets, shape (n_outputs,)."""
        weight = self.weight if self.cells is None else self.cells
        return np.average(values, axis=1, weights=weight)

    def centred(self) -> tuple[FloatArray, FloatArray]:
        """Return the weighted mean of the targets, shape (n_outputs,), and targets minus it."""
        mean = self.means(self.targets)
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
            cells=None if self.cells is None else self.cells[:, rows],
            X=None if self.X is None else self.X[rows],
            owner=np.where(self.owner >= 0, place[self.owner], -1),
        )

    def to_original_rows(self, values: FloatArray) -> FloatArray:
        """Return values (n_used, n_outputs) as shares of the samples given."""
        out = np.zeros((len(self.owner), values.shape[1]))
        kept = self.owner >= 0
        out[kept] = values[self.owner[kept]] * self.share[kept, None]
        return out


def default_kernels(X: FloatArray) -> list[Kernel]:
    """Return a linear kernel, five Gaussians and two Laplacians.

    Widths follow the spread of the points. Polynomials are left out: far from the training points,
    where a column that is nearly constant among them puts a new one, they grow with a power of the
    distance.
    """
    square, plain = float(X.var(axis=0).sum()) or 1.0, float(X.std(axis=0).sum()) or 1.0
    gaussians = [RBF(gamma=width / square) for width in (0.03, 0.1, 0.3, 1.0, 3.0)]
    laplacians = [Laplacian(gamma=width / plain) for width in (0.1, 0.5)]
    return [Linear(), *gaussians, *laplacians]


def from_points(
    kernels: Kernels,
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    dtype: str,
    parts: FloatArray | None = None,
    normalize: Normalize | None = None,
) -> Training:
    """Return merged samples and the Gram matrices of a dictionary on them.

    ``normalize`` is for kernels that are no dictionary, which has its own.
    ``weight`` is (n_samples,), or (n_samples, n_outputs) of cells. Equal rows with equal targets
    are merged unless their numbers in ``parts`` differ, zero weights dropped, rows sorted; with
    weights per cell rows without any value are dropped and no more. Raises MemoryBudgetError before
    a Gram matrix is made, if they and the work on them do not fit; warns if no kernel tells the
    samples apart.
    """
    if weight.ndim == 2:
        samples = _valued(X, targets, weight)
    elif parts is None:
        samples = merge_samples(X, targets, weight)
    else:
        samples = merge_samples(X, np.vstack([targets, parts]), weight)
        samples = replace(samples, targets=samples.targets[:-1])
    points = np.asarray(samples.X)
    if kernels is None:
        kernels = default_kernels(points)
    if not isinstance(kernels, KernelDictionary | GaussianGrid):
        kernels = KernelDictionary(kernels, normalize=normalize)
    if not isinstance(kernels, GaussianGrid):
        _require_memory(len(kernels), len(points), len(samples.targets), np.dtype(dtype))
    fitted = kernels.fit_grams(points, dtype=np.dtype(dtype))
    _warn_if_alike(fitted.kernel(np.ones(len(fitted.names))), points)
    return Training(
        fitted if isinstance(fitted, FittedGrid) else PrecomputedFamily(fitted.grams, check=False),
        samples.targets,
        samples.weight,
        fitted,
        points,
        samples.owner,
        samples.share,
        None if weight.ndim == 1 else np.ascontiguousarray(weight[samples.owner >= 0].T),
    )


def _valued(X: FloatArray, targets: FloatArray, cells: FloatArray) -> Samples:
    """Return the samples that have a value, in their order."""
    valued: npt.NDArray[np.bool_] = np.asarray(cells.any(axis=1))
    owner = np.where(valued, np.cumsum(valued) - 1, -1)
    share: FloatArray = valued.astype(np.float64)
    return Samples(X[valued], targets[:, valued], None, owner, share)


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


def _warn_if_alike(kernel: Kernel, X: FloatArray) -> None:
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
    warn(
        "all samples are equally similar for every kernel: off its diagonal each Gram matrix is "
        "constant, and so are predictions. The features have values of about "
        f"{scale:.1e}: scale them (StandardScaler) or choose kernel widths of that size"
    )


def from_grams(X: Rows, targets: FloatArray, weight: FloatArray) -> Training:
    """Return precomputed Gram matrices without samples of weight 0, else not copied.

    ``weight`` is (n_samples,), or (n_samples, n_outputs) of cells. Raises NotPSDError if a matrix
    has an eigenvalue below −1e-10 of the largest: no bound would hold.
    """
    grams = definite_grams(X).grams
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight must be finite and >= 0, with a positive one among them")
    each = weight.reshape(len(weight), -1).max(axis=1)
    used = np.flatnonzero(each > 0)
    family = PrecomputedFamily(grams, check=False).fit_grams(used[:, None])
    owner = np.full(len(weight), -1, dtype=np.intp)
    owner[used] = np.arange(len(used))
    kept = weight[used]
    return Training(
        family,
        np.ascontiguousarray(targets[:, used]),
        None if weight.ndim == 2 or (kept == 1.0).all() else kept,
        None,
        None,
        owner,
        (each > 0).astype(np.float64),
        np.ascontiguousarray(kept.T) if weight.ndim == 2 else None,
    )


def read_regression(
    estimator: MatrixValuedKernelRegressor,
    X: Any,
    y: Any,
    sample_weight: npt.ArrayLike | None,
    groups: object,
) -> tuple[Data, bool]:
    """Return what a fit is given, checked, and whether y was one column.

    Weights are (n_samples, n_outputs) where those of the outputs differ, 0 where missing, else
    (n_samples,). What NaN in y means the estimator says by ``missing``. Raises TypeError if y is
    sparse.
    """
    if issparse(y):
        raise TypeError("y must be a dense array, got a sparse one: pass y.toarray()")
    skips, grams = estimator.missing == "skip", None
    finite, allowed = ("allow-nan", "NaN") if skips else (True, "")
    if is_precomputed(estimator):
        with cells_named(y=y, allowed=allowed):
            y = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite=finite)
        grams = square_grams(X)
        estimator.n_features_in_ = grams.shape[1]
        points = np.arange(grams.shape[1], dtype=np.float64)[:, None]
    else:
        rules = {"dtype": np.float64}
        y_rules = {"ensure_2d": False, "dtype": None, "ensure_all_finite": finite}
        with cells_named(X, y, allowed=allowed):
            points, y = validate_data(estimator, X, y, validate_separately=(rules, y_rules))
    check_consistent_length(points, y)
    with cells_named(y=y, allowed=allowed):
        y = np.asarray(y, dtype=np.float64)
        assert_all_finite(y, input_name="y", allow_nan=skips)
    single = y.ndim == 1
    Y = y[:, None] if single else y
    weight = _weights(sample_weight, Y, several=not single)
    codes = group_codes(groups, X, len(Y))
    return Data(points, np.nan_to_num(Y).T, weight, grams, codes), single


def square_grams(X: Any) -> PrecomputedGrams:
    """Return precomputed Gram matrices of training samples, whose other checks come later."""
    with cells_named(grams=X):
        grams = PrecomputedGrams.of(X)
        if grams.shape[0] != grams.shape[1]:
            raise ValueError(f"X has Gram matrices of shape {grams.shape}: they must be square")
    return grams


def _weights(sample_weight: npt.ArrayLike | None, Y: FloatArray, *, several: bool) -> FloatArray:
    """Return one weight per sample, or per cell where those of the outputs differ."""
    observed = ~np.isnan(Y)
    if several and sample_weight is not None and np.asarray(sample_weight).ndim == 2:
        with cells_named(weight=sample_weight):
            cells = check_array(sample_weight, dtype=np.float64, input_name="sample_weight")
        if cells.shape != Y.shape or (cells < 0).any():
            raise ValueError(
                f"sample_weight must have shape {(len(Y),)} or {Y.shape} and be >= 0, got shape "
                f"{cells.shape} with a least entry of {cells.min():g}"
            )
        cells = np.where(observed, cells, 0.0)
    else:
        weight = read_weights(sample_weight, np.empty((len(Y), 1)))
        if observed.all():
            return weight
        cells = np.where(observed, weight[:, None], 0.0)
    empty = np.flatnonzero(~cells.any(axis=0))
    if len(empty):
        raise ValueError(f"output {empty[0]} of y has no value of positive weight: leave it out")
    alike: bool = (cells == cells[:, :1]).all()
    return cells[:, 0] if alike else cells
