"""A kernel dictionary on training points by low-rank factors in place of Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import memory
from ..arrays import FloatArray, Points, RealArray, Rows
from ..checks import COUNT, LARGEST, check_weights
from ..exceptions import NotPSDError
from ..interrupts import run_interruptibly
from ._parameters import check_samples, check_size
from .base import Kernel, Scaled
from .compose import Combination, UnitDiagonal
from .dictionary import KernelDictionary
from .fitted import _OfFeatures, combination, is_same, trace_scale

# kernel values of all pairs of support vectors that a proof may ask for: some ten seconds
_MOST_PAIRS = 2_000_000_000
_ENTRIES = 2**22

# columns that are drawn before what they leave is looked at again
_BLOCK = 32
# of the largest diagonal entry: less than this is rounding, and no pivot
_FLOOR = 1e-12
# Gram matrices that take no more than this are rather stored than the features of linear kernels
_FEW_BYTES = 2**26
_CENTRING = ("center", "center-trace")


class Nystroem(_OfFeatures):
    """k̃(x, y) = k(x, P) k(P, P)⁻¹ k(P, y): the kernel of some points' features.

    k − k̃ is positive semidefinite, and 0 where x or y is one of the points.

    `kernel`: k, positive semidefinite; `X` of shape (r, n_features): P; `root` of shape (r, r): the
    Cholesky factor of k(P, P), lower triangular.
    """

    name: ClassVar[str] = "nystroem"

    def __init__(self, kernel: Kernel, X: Points, root: FloatArray) -> None:
        self.kernel = kernel
        self.X = X
        self.root = root

    def _features(self, X: Points) -> FloatArray:
        from scipy.linalg import solve_triangular

        K = self.kernel._gram(X, self._training(X)).astype(np.float64, copy=False)
        return solve_triangular(self.root, K.T, lower=True, check_finite=False).T

    def dual(self, sums: FloatArray) -> FloatArray:
        """Return c, shape (r, t), with z(x)ᵀsums = k(x, P) c, for sums of shape (r, t)."""
        from scipy.linalg import solve_triangular

        return solve_triangular(self.root, sums, lower=True, trans="T", check_finite=False)


@dataclass(frozen=True, eq=False)
class Factor:
    """Z with K − ZZᵀ positive semidefinite.

    `Z` of shape (n, r); `pivots` of shape (r,): the samples whose columns of K are those of ZZᵀ;
    `missing` of shape (n,): the diagonal of K − ZZᵀ, at least 0.
    """

    Z: FloatArray
    pivots: NDArray[np.intp]
    missing: FloatArray

    @property
    def root(self) -> FloatArray:
        """Return the Cholesky factor of K over the pivots, shape (r, r)."""
        return np.tril(self.Z[self.pivots])


def factorise(
    kernel: Kernel, X: Points, n_components: int, random_state: np.random.RandomState
) -> Factor:
    """Return a Cholesky factor of at most ``n_components`` columns, pivots drawn at random.

    A sample is drawn in proportion to what its diagonal entry still lacks, so that the expected
    trace of K − ZZᵀ is near the least there is.

    With n components or more the factor is K's own.

    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky: practical approximation of a
    kernel matrix with few entry evaluations", Communications on Pure and Applied Mathematics
    2025, Algorithm 2, in blocks. ``n r`` values of the kernel and ``n r²`` multiplications.
    """
    missing = np.asarray(kernel.diag(X), dtype=np.float64)
    floor = _FLOOR * float(missing.max(initial=0.0))
    n, most = len(missing), min(n_components, len(missing))
    Z = np.zeros((n, most))
    pivots: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    while len(pivots) < most:
        open_ = np.flatnonzero(missing > floor)
        if not len(open_):
            break
        size = min(_BLOCK, most - len(pivots), len(open_))
        share = missing[open_] / missing[open_].sum()
        drawn = random_state.choice(open_, size, replace=False, p=share)
        columns = np.asarray(kernel(X, X[drawn]), dtype=np.float64)
        done = len(pivots)
        columns -= Z[:, :done] @ Z[drawn, :done].T
        new, order = run_interruptibly(_eliminate, columns, drawn, floor)
        kept = drawn[order]
        new[pivots] = 0.0
        Z[:, done : done + len(kept)] = new
        missing = np.maximum(missing - np.einsum("ir,ir->i", new, new), 0.0)
        # what a draw lost to rounding is no pivot any more
        missing[drawn] = 0.0
        pivots = np.concatenate([pivots, kept])
    return Factor(np.ascontiguousarray(Z[:, : len(pivots)]), pivots, missing)


def _eliminate(
    columns: FloatArray, drawn: NDArray[np.intp], floor: float
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the factor's columns of the samples drawn, and which of them are pivots, in order."""
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpstrf

    lower, order, rank, _ = dpstrf(columns[drawn], tol=floor, lower=1)
    order, root = order[:rank] - 1, np.tril(lower[:rank, :rank])
    new = solve_triangular(root, columns[:, order].T, lower=True, check_finite=False).T
    new[drawn[order]] = root
    return new, order


@dataclass(frozen=True, eq=False)
class FittedFactors:
    """The kernels of a dictionary on its training points as K̃ⱼ = ZⱼZⱼᵀ.

    Built by `LowRankDictionary.fit_factors`, and itself the family of a `Problem`. Every Kⱼ − K̃ⱼ is
    positive semidefinite.

    Attributes
    ----------
    names : tuple of str, length q
    exact : tuple of Kernel, length q
        The kernels kⱼ that are approximated, normalised.
    kernels : tuple of Kernel, length q
        The approximations, for any points: `Nystroem`, or kⱼ itself where Zⱼ are its features.
    X : ndarray or CSR of shape (n, n_features)
        Training points.
    factors : ndarray of shape (n, r)
        Z₁ … Z_q side by side.
    ends : ndarray of int, shape (q + 1,)
        The columns of Zⱼ are those from ``ends[j]`` to ``ends[j + 1]``.
    missing : ndarray of shape (q, n)
        The diagonals of Kⱼ − K̃ⱼ.
    family : LowRankDictionary
        What they were built by.
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    names: tuple[str, ...]
    exact: tuple[Kernel, ...]
    kernels: tuple[Kernel, ...]
    X: Points
    factors: FloatArray
    ends: NDArray[np.intp]
    missing: FloatArray
    family: LowRankDictionary

    def __len__(self) -> int:
        return len(self.kernels)

    @property
    def is_exact(self) -> bool:
        """Whether no kernel is approximated: each has few features."""
        return not any(isinstance(k, Nystroem) for k in self.kernels)

    @property
    def kept(self) -> NDArray[np.intp]:
        """Position in the dictionary of each kernel, shape (q,): none is left out."""
        return np.arange(len(self))

    @property
    def dropped(self) -> dict[str, float]:
        """Nothing is left out."""
        return {}

    def kernel(self, weights: ArrayLike) -> Combination:
        """Return Σⱼ βⱼ k̃ⱼ as one kernel for any points, without those of weight 0."""
        return combination(self.kernels, weights)

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> RealArray:
        """Return Σⱼ βⱼ k̃ⱼ(X, Y), shape (n_x, n_y), for β of shape (q,)."""
        return self.kernel(weights)(X, Y)

    def fit_factors(self, X: Rows) -> FittedFactors:
        """Return itself; raises ValueError unless ``X`` are the points it was fitted with."""
        if not is_same(check_samples(X, dtype=np.float64), self.X):
            raise ValueError(
                "this family was fitted on other samples: call fit_factors of the LowRankDictionary"
            )
        return self

    def expansions(
        self, weights: ArrayLike, X: Points, coef: FloatArray
    ) -> list[tuple[Kernel, Points, FloatArray]]:
        """Return (kⱼ, P, c) of each kernel used, with Σⱼ βⱼ k̃ⱼ(x, X) coefᵀ = Σⱼ kⱼ(x, P) c."""
        beta = check_weights(weights, len(self), signed=True)
        parts: list[tuple[Kernel, Points, FloatArray]] = []
        for j in np.flatnonzero(beta):
            k = self.kernels[j]
            if isinstance(k, Nystroem):
                parts.append((k.kernel, k.X, beta[j] * k.dual(k._features(X).T @ coef.T)))
            else:
                parts.append((k, X, beta[j] * coef.T))
        return parts

    def exact_forms(self, u: FloatArray) -> FloatArray:
        """Return Σₜ uₜᵀKⱼuₜ or more of the kernels that are approximated, shape (q,).

        By the kernels' own values where all pairs of samples with u ≠ 0 are at most 2·10⁹ for all
        kernels. Else from ‖Zⱼᵀu‖² and what Kⱼ − ZⱼZⱼᵀ, being positive semidefinite with a known
        diagonal d, can add: (Σ √dᵢ|uᵢ|)² and ‖u‖² Σd, whichever is less.
        """
        used = np.flatnonzero(u.any(axis=0))
        size = np.array([_size(k.diag(self.X[used]), u[:, used]) for k in self.exact])
        margin = 4.0 * (len(used) + 16) * np.finfo(np.float64).eps * size
        if len(self) * len(used) ** 2 <= _MOST_PAIRS:
            pairs = [_forms_of(kernel, self.X[used], u[:, used]) for kernel in self.exact]
            return np.asarray(pairs) + margin
        sums = np.split(u @ self.factors, self.ends[1:-1], axis=1)
        squares = np.array([float(np.sum(part**2)) for part in sums])
        trace = self.missing.sum(axis=1) * float(np.sum(u**2))
        added = np.minimum(trace, [_size(d, u) for d in self.missing])
        return np.asarray(squares + added * (1.0 + 1e-9) + margin)


def _size(diagonal: RealArray, u: FloatArray) -> float:
    """Return Σₜ (Σ √dᵢ|uₜᵢ|)²: no form of a positive semidefinite matrix is larger."""
    return float(np.sum((np.abs(u) @ np.sqrt(diagonal)) ** 2))


def _forms_of(kernel: Kernel, X: Points, u: FloatArray) -> float:
    """Return Σₜ uₜᵀKuₜ, block by block."""
    step, total = max(1, _ENTRIES // max(1, u.shape[1])), 0.0
    for start in range(0, u.shape[1], step):
        rows = slice(start, start + step)
        total += float(np.sum(u[:, rows] * (u @ kernel(X, X[rows]))))
    return total


@dataclass(frozen=True, eq=False)
class LowRankDictionary:
    """K̃(β) = Σⱼ βⱼ ZⱼZⱼᵀ: a dictionary whose Gram matrices are never formed.

    Zⱼ are the features of a linear kernel of ``n_components`` columns or fewer, also scaled or
    with a unit diagonal, so that it is exact; else a Cholesky factor, see `factorise`.

    Parameters
    ----------
    dictionary : KernelDictionary
        Of kernels that are known to be positive semidefinite; neither centred.
    n_components : int, default=300
        Columns of each Zⱼ at most.
    random_state : int, default=0
        Draws them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.kernels import RBF, KernelDictionary, LowRankDictionary
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> family = LowRankDictionary(KernelDictionary([RBF(0.1), RBF(1.0)]), n_components=20)
    >>> fitted = family.fit_factors(X)
    >>> fitted.factors.shape, bool(fitted.missing.max() < 1e-3)
    ((500, 40), True)
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1
    dictionary: KernelDictionary
    n_components: int = 300
    random_state: int = 0

    def __len__(self) -> int:
        return len(self.dictionary)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return self.dictionary.names

    def fit_factors(self, X: Rows) -> FittedFactors:
        """Factorise the Gram matrices of training points, column by column.

        `X` of shape (n, n_features). Raises NotPSDError if a kernel is not known to be positive
        semidefinite; ValueError if the samples are invalid, or the dictionary centres its kernels.
        """
        train = check_samples(X, dtype=np.float64)
        check_size(train)
        COUNT.check("n_components", self.n_components)
        n, rank = train.shape[0], min(self.n_components, train.shape[0])
        widths = self._widths(train, rank)
        size = sum(rank if width is None else width for width in widths)
        memory.require(
            8 * n * (size + 2 * rank),
            f"{rank} components of {len(self)} kernels on {n} samples",
            alternative="use fewer kernels or n_components, or raise {memory_limit}",
        )
        draw = np.random.RandomState(self.random_state)
        exact = tuple(self._normalised(name, k, train) for name, k in self.dictionary._entries())
        stack, ends, kernels = np.empty((n, size)), [0], list[Kernel]()
        missing = np.zeros((len(exact), n))
        for j, (kernel, width) in enumerate(zip(exact, widths, strict=True)):
            Z = None if width is None else kernel._features(train)
            if Z is None:
                part = factorise(kernel, train, rank, draw)
                Z, missing[j] = part.Z, part.missing
                kernel = Nystroem(kernel, train[part.pivots], part.root)
            ends.append(ends[-1] + Z.shape[1])
            stack[:, ends[-2] : ends[-1]] = Z
            kernels.append(kernel)
        factors = np.ascontiguousarray(stack[:, : ends[-1]])
        return FittedFactors(
            self.names, exact, tuple(kernels), train, factors, np.array(ends), missing, self
        )

    def _widths(self, X: Points, most: int) -> list[int | None]:
        """Return how many features each kernel has, None where they are more or not known."""
        first = X[:1]
        rows = [kernel._at(X)._features(first) for _, kernel in self.dictionary._entries()]
        return [None if Z is None or Z.shape[1] > most else Z.shape[1] for Z in rows]

    def is_small(self, X: Points) -> bool:
        """Whether features of all kernels, at most ``n_components``, take a quarter of the Grams.

        Then they are exact. Few Gram matrices are not worth it, and centring needs them.
        """
        n, q = X.shape[0], len(self)
        if 8 * q * n**2 <= _FEW_BYTES or self.dictionary.normalize in _CENTRING:
            return False
        widths = [width for width in self._widths(X, self.n_components) if width is not None]
        return len(widths) == q and 4 * sum(widths) <= q * n

    def _normalised(self, name: str, kernel: Kernel, X: Points) -> Kernel:
        """Return the kernel with the normalisation of the dictionary, or say why it cannot be."""
        wanted = self.dictionary.normalize
        if kernel.is_psd is not True:
            raise NotPSDError(
                f"{name} is not known to be positive semidefinite, and a check of its eigenvalues "
                "needs the whole Gram matrix: leave it out, or set approximation=None"
            )
        if wanted in _CENTRING:
            raise ValueError(
                f"normalize={wanted!r} averages over all pairs of samples, which an approximation "
                "never forms: use 'trace', 'unit-diagonal' or None, or set approximation=None"
            )
        kernel = kernel._at(X)
        kernel = UnitDiagonal(kernel) if wanted == "unit-diagonal" else kernel
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = np.asarray(kernel.diag(X), dtype=np.float64)
        largest = float(diagonal.max())
        if not largest <= LARGEST:
            raise ValueError(
                f"{name} overflows on these samples: scale the features (StandardScaler) or "
                "choose smaller parameters"
            )
        if wanted != "trace":
            return kernel
        return Scaled(kernel, trace_scale(float(diagonal.sum()), diagonal, largest, name))

    def kernel(self, weights: ArrayLike) -> NoReturn:
        """Refuse: only what has been fitted has kernels."""
        raise ValueError("the approximated kernels need training points: use fit_factors(X)")
