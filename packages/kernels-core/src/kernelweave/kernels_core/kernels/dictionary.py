"""Dictionaries of kernels: named, normalised, and refused or repaired where indefinite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..arrays import Points, RealArray, Rows
from ..checks import LARGEST, check_weights, one_of, real_dtype
from ..exceptions import NotPSDError, warn
from ..grams._fill import add_scaled, largest
from ..grams.psd import REMEDY, Spectrum, describe, find_indefinite
from ._parameters import Parameters, check_pair, check_samples, check_size
from .base import Kernel
from .by_name import View, kernel_by_name, paper_fifty_kernels, paper_ten_kernels, views_of
from .compose import Combination, UnitDiagonal
from .fitted import NORMALIZATION, Clipped, FittedDictionary, fit_normalization, require_stack
from .function import FunctionKernel, is_kernel_function, name_of_function
from .standard import Sigmoid

# name, what was given for the kernel, and its view
Stated: TypeAlias = "list[tuple[str, object, View | None]]"
Normalize: TypeAlias = Literal["trace", "unit-diagonal", "center", "center-trace"]
POLICY = one_of("raise", "drop", "clip", "keep")


class KernelDictionary(Parameters):
    """The family K(β) = Σⱼ βⱼ Kⱼ of the kernels k₁ … k_q.

    Kernels whose positive semidefiniteness is proved (`Kernel.is_psd`) are taken as they are;
    of the others the Gram matrix of the training points is tested.

    Parameters
    ----------
    kernels : list of Kernel, str or callable, dict of str to Kernel, or KernelDictionary
        The kernels. A callable k(X, Z) becomes a `FunctionKernel`. ``"linear"``,
        ``"polynomial"``, ``"rbf"``, ``"laplacian"`` and ``"sigmoid"`` have the γ that the training
        points suggest: 1/(n_features · Var X), as ``gamma="scale"`` in scikit-learn, with √Var X
        for ``"laplacian"``. With ``columns`` also a list of lists of kernels, one per view. Of
        another dictionary its kernels and names are taken, not its ``normalize`` and ``psd``.
    columns : list or dict, optional
        Views; keys of a dict are their names. A view is a list of positions, or what
        scikit-learn's ColumnTransformer takes: a column's name or a list of them, a slice, a mask
        or ``make_column_selector(...)``; a pair ``(transformer, columns)`` turns its columns into
        numbers first, as ``(TfidfVectorizer(), "review")``. Other than positions are for
        estimators, which read the table. A flat ``kernels`` is used on every view (q = number of
        kernels × number of views), a list of lists gives each view its own kernels. ``None``:
        every kernel sees all columns, unless it restricts itself by ``k.on([0, 3])``.
    normalize : None or str
        With K the Gram matrix of the n training points, after clipping; x, y any points:

        - ``"trace"``: k(x, y)·n / tr K, so that the diagonal is 1 on average;
        - ``"unit-diagonal"``: k(x, y) / √(k(x, x) k(y, y)), the cosine; needs no statistics;
        - ``"center"``: k(x, y) − m(x) − m(y) + g with m(x) = (1/n) Σᵢ k(x, xᵢ) and
          g = (1/n) Σᵢ m(xᵢ) over the training points;
        - ``"center-trace"``: ``"center"``, then ``"trace"`` of the centred matrix.

        n, tr K, m and g are those of the training points, also for test points. A constant
        kernel has nothing left after centring and is refused by ``"center-trace"``.
    psd : "raise", "drop", "clip" or "keep"
        What happens to a kernel with an eigenvalue below −10·n·ε·λ_max on the training points:
        an error; left out; its negative eigenvalues set to zero with the matching map for test
        points (`Clipped`); or nothing at all, which is for reproducing published numbers only,
        because bounds and certificates do not hold then.

    Attributes
    ----------
    names : tuple of str
        A name per kernel: its key in a dict, else how it prints.

    Notes
    -----
    Clipping and its map: Chen et al., "Similarity-based classification", JMLR 10 (2009). On the
    data sets of the sparse multiple kernel learning paper its two sigmoid kernels have smallest
    eigenvalues from −10 to −153, which the 1e-6 that the paper adds does not repair.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.kernels import KernelDictionary, Linear, RBF
    >>> dictionary = KernelDictionary([Linear(), RBF(gamma=0.5)], normalize="trace")
    >>> dictionary.names
    ('Linear()', 'RBF(gamma=0.5)')
    >>> fitted = dictionary.fit_grams(np.array([[0.0], [1.0], [3.0]]))
    >>> fitted.gram(fitted.X, [0.5, 0.5]).trace()
    np.float64(3.0)
    """

    name: ClassVar[str] = "dictionary"
    degree: ClassVar[int] = 1

    def __init__(
        self,
        kernels: object,
        columns: Sequence[object] | Mapping[str, object] | None = None,
        normalize: Normalize | None = None,
        psd: Literal["raise", "drop", "clip", "keep"] = "raise",
    ) -> None:
        self.kernels = kernels
        self.columns = columns
        self.normalize = normalize
        self.psd = psd

    @classmethod
    def from_data(cls, X: Rows) -> KernelDictionary:
        """Return `default_kernels`, for standardised data with any number of features."""
        return default_kernels()

    def _stated(self) -> list[tuple[str, Kernel, View | None]]:
        """Return name, kernel and view of every kernel, the names made unique."""
        source = self.kernels
        stated: Stated
        if isinstance(source, KernelDictionary):
            stated = [*source._stated()]
        elif isinstance(source, Mapping):
            stated = [(name, kernel, None) for name, kernel in source.items()]
        else:
            stated = self._listed(source)
        if self.columns is not None and not _is_nested(source):
            views = views_of(self.columns)
            stated = [(v.label(n), _within(k, w), v) for v in views for n, k, w in stated]
        if not stated:
            raise ValueError("kernels is empty: give at least one kernel")
        return _unique(stated)

    def _entries(self) -> list[tuple[str, Kernel]]:
        """Return names and kernels, each on its view."""
        return [(name, _within(kernel, view)) for name, kernel, view in self._stated()]

    def _listed(self, source: object) -> Stated:
        if isinstance(source, (str, bytes)) or not isinstance(source, (Sequence, Iterator)):
            raise ValueError(
                "kernels must be a list of kernels such as [Linear(), RBF(gamma=1.0)], of their "
                f"names or of functions k(X, Z), got {_seen(source)}"
            )
        if isinstance(source, Iterator):
            raise ValueError("kernels must be a list: an iterator is used up by its first reader")
        if not _is_nested(source):
            return [(_label(k), k, None) for k in source]
        if self.columns is None or len(self.columns) != len(source):
            raise ValueError(
                f"kernels holds {len(source)} lists, one per view, so columns must hold "
                f"{len(source)} views, got {None if self.columns is None else len(self.columns)}"
            )
        pairs = zip(source, views_of(self.columns), strict=True)
        return [(view.label(_label(k)), k, view) for group, view in pairs for k in group]

    @property
    def view_names(self) -> tuple[str, ...]:
        """Name of the view that each kernel sees; empty without ``columns``."""
        views = [view for _, _, view in self._stated()]
        return () if None in views else tuple(view.name for view in views if view is not None)

    @property
    def reads_tables(self) -> bool:
        """Whether a view names or selects its columns or transforms them, so that it needs X."""
        return any(view is not None and not view.is_read for _, _, view in self._stated())

    @property
    def names(self) -> tuple[str, ...]:
        """A name per kernel, all different."""
        return tuple(name for name, _, _ in self._stated())

    def __len__(self) -> int:
        return len(self._stated())

    def __iter__(self) -> Iterator[Kernel]:
        return (kernel for _, kernel in self._entries())

    @overload
    def __getitem__(self, key: int | str) -> Kernel: ...
    @overload
    def __getitem__(self, key: slice) -> KernelDictionary: ...
    def __getitem__(self, key: int | str | slice) -> Kernel | KernelDictionary:
        entries = self._entries()
        if isinstance(key, slice):
            return KernelDictionary(dict(entries[key]), normalize=self.normalize, psd=self.psd)
        if isinstance(key, str):
            if key not in dict(entries):
                raise KeyError(f"no kernel {key!r}: there are {', '.join(dict(entries))}")
            return dict(entries)[key]
        return entries[key][1]

    def fit_grams(self, X: Rows, dtype: DTypeLike = np.float64) -> FittedDictionary:
        """Compute the Gram matrices of training points and learn what test points need.

        `X` of shape (n, n_features): training points; `dtype`: type of the samples and the Gram
        matrices. Returns: with ``grams`` of shape (q, n, n). Raises ValueError if a kernel, the
        samples or an option is invalid, or a Gram matrix is not finite.
        """
        NORMALIZATION.check("normalize", self.normalize)
        POLICY.check("psd", self.psd)
        entries = self._entries()
        train = check_samples(X, dtype=real_dtype(dtype))
        check_size(train)
        n = train.shape[0]
        require_stack(len(entries), n, n, train.dtype)
        grams = np.empty((len(entries), n, n), dtype=train.dtype)
        kept: list[int] = []
        kernels: list[Kernel] = []
        spectra: dict[str, Spectrum] = {}
        for j, (label, kernel) in enumerate(entries):
            K = grams[len(kept)]
            usable = self._fit_one(label, kernel, train, K, spectra)
            if usable is not None:
                kernels.append(usable)
                kept.append(j)
        self._report(spectra, kept)
        repaired = {label: s.lambda_min for label, s in spectra.items()}
        return FittedDictionary(
            names=tuple(entries[j][0] for j in kept),
            kernels=tuple(kernels),
            X=train,
            grams=grams[: len(kept)],
            dropped=repaired if self.psd == "drop" else {},
            clipped=repaired if self.psd == "clip" else {},
            kept=np.array(kept, dtype=np.intp),
        )

    def _fit_one(
        self, label: str, kernel: Kernel, X: Points, K: RealArray, indefinite: dict[str, Spectrum]
    ) -> Kernel | None:
        """Write the Gram matrix into K and return the fitted kernel, ``None`` if unusable."""
        kernel = kernel._at(X)
        with np.errstate(over="ignore", invalid="ignore"):
            K[...] = kernel(X)
        if not largest(K) <= LARGEST:
            raise ValueError(
                f"{label} overflows on these samples: scale the features (StandardScaler) or "
                "choose smaller parameters"
            )
        if kernel.is_psd is not True and self.psd != "keep":
            spectrum = find_indefinite(K)
            if spectrum is not None:
                indefinite[label] = spectrum
                if self.psd != "clip":
                    return None
                kernel, _ = Clipped.fit(kernel, X, K)
                K[...] = kernel(X)
        return fit_normalization(kernel, X, K, self.normalize, label)

    def _report(self, indefinite: dict[str, Spectrum], kept: list[int]) -> None:
        clauses = "; ".join(describe(label, s) for label, s in indefinite.items())
        if not indefinite:
            return
        if self.psd == "raise":
            raise NotPSDError(f"{clauses}: {REMEDY}")
        if not kept:
            raise NotPSDError(f"psd='drop' leaves no kernel: {clauses}")
        done = "left out" if self.psd == "drop" else "negative eigenvalues set to zero"
        warn(f"{clauses}: {done} (psd={self.psd!r})")

    def _plain_kernels(self) -> list[Kernel]:
        """Return the kernels as functions of their two points alone, or say why they are not."""
        NORMALIZATION.check("normalize", self.normalize)
        POLICY.check("psd", self.psd)
        kernels = list(self)
        if self.normalize not in (None, "unit-diagonal"):
            raise ValueError(
                f"normalize={self.normalize!r} needs training points: "
                "use fit_grams(X_train), which is a family of a Problem too"
            )
        unknown = [n for n, k in self._entries() if k.is_psd is not True]
        if unknown and self.psd in ("drop", "clip"):
            raise ValueError(
                f"psd={self.psd!r} of {', '.join(unknown)} needs training points: "
                "use fit_grams(X_train), which is a family of a Problem too"
            )
        return [UnitDiagonal(k) for k in kernels] if self.normalize else kernels

    def gram(self, X: Rows, weights: ArrayLike, Y: Rows | None = None) -> RealArray:
        """Return Σⱼ βⱼ kⱼ(X, Y) without holding the q matrices.

        Raises ValueError if the normalisation or the policy needs training points.
        """
        kernels = self._plain_kernels()
        beta = check_weights(weights, len(kernels), signed=True)
        A, B = check_pair(X, Y)
        out = np.zeros((A.shape[0], (A if B is None else B).shape[0]), dtype=A.dtype)
        spectra: dict[str, Spectrum] = {}
        for label, kernel, w in zip(self.names, kernels, beta.tolist(), strict=True):
            if w == 0.0:
                continue
            K = kernel(A, B)
            if B is None and self.psd == "raise" and kernel.is_psd is not True:
                spectrum = find_indefinite(K)
                if spectrum is not None:
                    spectra[label] = spectrum
            add_scaled(out, K, w)
        self._report(spectra, [])
        return out

    def kernel(self, weights: ArrayLike) -> Combination:
        """Return Σⱼ βⱼ kⱼ as one kernel.

        Raises ValueError if the normalisation or the policy needs training points.
        """
        kernels = self._plain_kernels()
        return Combination(kernels, check_weights(weights, len(kernels), signed=True))


def _as_kernel(value: object) -> Kernel:
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        return kernel_by_name(value)
    if is_kernel_function(value):
        return FunctionKernel(value)  # type: ignore[arg-type]
    raise ValueError(
        "kernels must hold kernels such as RBF(gamma=1.0), names such as 'rbf' or functions "
        f"k(X, Z), got {_seen(value)}"
    )


def _seen(value: object) -> str:
    """Return what a message shows of a value that is no kernel, and what to do with it."""
    grams = ": give Gram matrices as X, with kernels='precomputed'"
    if isinstance(value, type) and issubclass(value, Kernel):
        return f"the class {value.__name__}: write {value.__name__}()"
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return f"an array of shape {value.shape}{grams}"
    if isinstance(value, Kernel) or is_kernel_function(value):
        one = value if isinstance(value, Kernel) else name_of_function(value)
        return f"{one}: write [{one}]"
    return repr(value)


def _label(value: object) -> str:
    return value if isinstance(value, str) else repr(_as_kernel(value))


def _within(kernel: object, view: View | None) -> Kernel:
    """Return the kernel on its view."""
    if view is None:
        return _as_kernel(kernel)
    if not view.is_read:
        raise ValueError(
            f"the columns of view {view.name} are known once a table is read, which "
            "SparseMKLClassifier and the other estimators of kernel weights do: here give positions"
        )
    return _as_kernel(kernel).on(view.columns)


def _is_nested(source: object) -> bool:
    if not isinstance(source, (list, tuple)):
        return False
    return any(isinstance(item, (list, tuple)) for item in source)


def _unique(stated: Stated) -> list[tuple[str, Kernel, View | None]]:
    counts = Counter(name for name, _, _ in stated)
    seen: Counter[str] = Counter()
    out: list[tuple[str, Kernel, View | None]] = []
    for name, kernel, view in stated:
        seen[name] += 1
        label = name if counts[name] == 1 else f"{name} #{seen[name]}"
        out.append((str(label), _as_kernel(kernel), view))
    return out


def default_kernels() -> KernelDictionary:
    """Return what ``kernels=None`` means: the paper's ten kernels without the two sigmoids.

    Examples
    --------
    >>> from kernelweave.kernels_core.kernels import default_kernels
    >>> len(default_kernels())
    8
    """
    return KernelDictionary([k for k in paper_ten_kernels() if not isinstance(k, Sigmoid)])


PAPER_TEN = KernelDictionary(paper_ten_kernels())
"""The ten kernels of the sparse multiple kernel learning paper, for standardised data.

Two of them are sigmoids, so that fitting raises NotPSDError on most data; say what to do with
``KernelDictionary(PAPER_TEN, psd="clip")``, or leave them out: `default_kernels`.
"""

PAPER_FIFTY = KernelDictionary(paper_fifty_kernels(), psd="clip")
"""Fifty kernels: 1 linear, 18 polynomial, 12 Gaussian, 12 sigmoid (clipped), 7 Laplacian."""
