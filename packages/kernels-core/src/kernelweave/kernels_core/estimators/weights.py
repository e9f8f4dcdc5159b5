"""Estimators that weight kernels: a dictionary of them, or Gram matrices that the user computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_array, check_X_y, validate_data

from ..arrays import FloatArray, Labels, Points, Rows
from ..checks import COUNT, Rule, one_of
from ..grams.precomputed import PrecomputedDictionary, PrecomputedGrams
from ..kernels import (
    FittedDictionary,
    FittedFactors,
    KernelDictionary,
    LowRankDictionary,
    default_kernels,
)
from ..parameters import fitted, parameter
from ..result import Certificate
from .kernel import KernelEstimator
from .samples import Samples

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from ..kernels import Kernel
    from ..kernels.dictionary import Normalize


KERNELS = Rule(
    "a KernelDictionary, a list of kernels or of their names such as ['rbf'], or 'precomputed'",
    lambda value: not isinstance(value, str) or value == "precomputed",
)
# memory of Gram matrices above which "auto" approximates: eight kernels of 8,192 samples
EXACT_BYTES = 2**32


class TableReader:
    """Turns tables into numbers, a block of columns per view, and knows where each view lies.

    `stated`: with views that name, select or transform columns; `X` of shape (n_samples,
    n_columns): training table: the selectors and transformers are fitted to it; `y` of shape
    (n_samples,): for transformers that look at targets. `dictionary`: the same kernels, by the
    positions of their columns in `points`; `points` of shape (n_samples, n_features): the training
    table in numbers; sparse where most of it is 0.
    """

    def __init__(self, stated: KernelDictionary, X: Rows, y: ArrayLike | None) -> None:
        views = {view.name: view for _, _, view in stated._stated() if view is not None}
        for name, view in views.items():
            fault = _unknown_name(view.columns, getattr(X, "columns", None))
            if fault is not None:
                raise ValueError(f"view {name} has {fault}")
        places = {name: str(place) for place, name in enumerate(views)}
        steps = [
            (places[name], *_step(view.transformer, view.columns)) for name, view in views.items()
        ]
        self._table = ColumnTransformer(steps)
        transformed = self._table.fit_transform(X, y)
        # without any column scikit-learn returns early
        slices = getattr(self._table, "output_indices_", {})
        for name, place in places.items():
            if place not in slices or slices[place].start == slices[place].stop:
                raise ValueError(f"view {name} selects no column of X: leave it out")
        self.points = _numbers(transformed)
        source: Any = stated
        while source.columns is None:
            source = source.kernels
        self.dictionary = KernelDictionary(
            source.kernels,
            columns={name: np.r_[slices[place]].tolist() for name, place in places.items()},
            normalize=stated.normalize,
            psd=stated.psd,
        )

    def transform(self, X: Rows) -> Points:
        """Return other rows in numbers, shape (n_samples, n_features)."""
        return _numbers(self._table.transform(X))


def _unknown_name(columns: object, known: Any) -> str | None:
    """Return what is wrong with a view's names where X has others, `known`, or none."""
    items = [columns] if isinstance(columns, str) else columns
    names = [each for each in items if isinstance(each, str)] if isinstance(items, Iterable) else []
    if names and known is None:
        return f"columns by name, {names[0]!r}, and X has no names: pass a DataFrame or positions"
    for name in names:
        if name not in known:
            near = get_close_matches(name, map(str, known), n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            return f"the column {name!r}, which X does not have{hint}"
    return None


def _step(transformer: object, columns: object) -> tuple[object, object]:
    """Return a step of a ColumnTransformer; what is passed through must have two dimensions."""
    if transformer is None:
        return "passthrough", [columns] if isinstance(columns, str) else columns
    return transformer, columns


def _numbers(X: Rows) -> Points:
    try:
        numbers: Points = check_array(X, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            f"a view has values that are not numbers ({error}): give it a transformer, such as "
            "(TfidfVectorizer(), 'review') for text or (OneHotEncoder(), ['colour']) for categories"
        ) from None
    return numbers


class WeightedKernels(KernelEstimator):
    """Parameters of estimators that weight kernels.

    Mixed in before `KernelClassifier` or `KernelRegressor`.
    """

    kernels: KernelDictionary | Sequence[Kernel | str] | str | None = parameter(
        "The kernels; by default the ten of the sparse multiple kernel learning paper without "
        'the two sigmoids. With ``"precomputed"``, X has the Gram matrices, (n_kernels, n, '
        "n_train); pass them as `PrecomputedGrams` for GridSearchCV.",
        kind='None, KernelDictionary, list of Kernel or str, or "precomputed"',
        default=None,
        rule=KERNELS,
        kw_only=False,
    )
    normalize: Normalize | None = parameter(
        "`KernelDictionary.normalize` where ``kernels`` is None or a list; a dictionary has its "
        "own.",
        kind="None or str",
        default="trace",
    )

    weights_: FloatArray = fitted(
        "ndarray of shape (n_kernels,)",
        "Weight of each kernel; 0 for kernels that the dictionary left out.",
    )
    kernel_names_: tuple[str, ...] = fitted("tuple of str", "Names of the kernels used.")
    view_weights_: dict[str, float] | list[dict[str, float]] = fitted(
        "dict of str to float",
        "The weight of each view, summed over its kernels; empty if the dictionary has no "
        "``columns``.",
    )

    if TYPE_CHECKING:
        # what the fit to a table left whose views are not simply positions
        _table: TableReader | None = fitted("", "")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        is_given = is_precomputed(self)
        tags.input_tags.pairwise = tags.input_tags.three_d_array = is_given
        # the default kernels see standardised features, never sparse
        tags.input_tags.sparse = self.kernels is not None and not is_given
        return tags

    def _read(
        self, X: Rows, y: ArrayLike, **options: object
    ) -> tuple[Points, Labels, PrecomputedGrams | None]:
        is_given = is_precomputed(self)
        if issparse(X) and not (is_given or get_tags(self).input_tags.sparse):
            remedy = (
                "pass kernels such as ['linear', 'rbf']"
                if self.kernels is None
                else "set scale=False"
            )
            raise TypeError(
                "Sparse data was passed for X, and features that are standardised first are dense: "
                f"{remedy}, or pass X.toarray()"
            )
        self._table = None
        if is_given or not dictionary_of(self).reads_tables:
            return super()._read(X, y, **options)
        self._table = TableReader(dictionary_of(self), X, y)
        points, targets = check_X_y(self._table.points, y, "csr", dtype=np.float64, **options)
        validate_data(self, X, skip_check_array=True)
        # from here on the kernels see its numbers
        self.kernels = self._table.dictionary
        return points, targets, None

    def _points(self, X: Rows) -> Any:
        if self._table is None:
            return super()._points(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._table.transform(X)


def is_precomputed(estimator: Any) -> bool:
    """Return whether X holds Gram matrices."""
    return isinstance(estimator.kernels, str) and estimator.kernels == "precomputed"


def dictionary_of(estimator: WeightedKernels) -> KernelDictionary:
    """Return the kernels of an estimator that are not precomputed, as a dictionary."""
    if isinstance(estimator.kernels, KernelDictionary):
        return estimator.kernels
    kernels = default_kernels() if estimator.kernels is None else estimator.kernels
    return KernelDictionary(kernels, normalize=estimator.normalize)


def views_of(estimator: WeightedKernels) -> tuple[str, ...]:
    """Return the view of each kernel, nothing where there are none."""
    return () if is_precomputed(estimator) else dictionary_of(estimator).view_names


def fit_kernels(
    estimator: WeightedKernels, samples: Samples
) -> FittedDictionary | FittedFactors | PrecomputedDictionary:
    """Return the Gram matrices of scaled samples, or their factors where they are approximated."""
    if samples.grams is None:
        return fit_dictionary(estimator, samples.X)
    if getattr(estimator, "approximation", None) == "nystroem":
        raise ValueError(
            "approximation='nystroem' draws columns of kernels, and kernels='precomputed' "
            "gives their Gram matrices: give the kernels, or set approximation=None"
        )
    rows, grams = samples.places, samples.grams.grams
    if len(rows) < grams.shape[1]:
        grams = np.stack([K[np.ix_(rows, rows)] for K in grams])
    return PrecomputedDictionary(grams)


def fit_dictionary(estimator: WeightedKernels, X: Points) -> FittedDictionary | FittedFactors:
    """Return the Gram matrices of points, or their factors where these are smaller or asked for."""
    dictionary = dictionary_of(estimator)
    if isinstance(estimator, ApproximatedKernels) and estimator.approximation is not None:
        low_rank = LowRankDictionary(dictionary, estimator.n_components)
        is_large = 8 * len(dictionary) * X.shape[0] ** 2 > EXACT_BYTES
        if estimator.approximation == "nystroem" or is_large or low_rank.is_small(X):
            seed = check_random_state(estimator.random_state).randint(2**31 - 1)
            return replace(low_rank, random_state=seed).fit_factors(X)
    return dictionary.fit_grams(X)


def weight_attributes(
    estimator: WeightedKernels, stored: Any, weights: FloatArray
) -> dict[str, Any]:
    """Return the attributes made of the weights, 0 for kernels that were left out."""
    all_weights = np.zeros(len(stored) + len(stored.dropped))
    all_weights[stored.kept] = weights
    views = views_of(estimator)
    sums = dict.fromkeys(views, 0.0)
    for view, weight in zip(views, all_weights.tolist(), strict=bool(views)):
        sums[view] += weight
    attributes = {"weights_": all_weights, "kernel_names_": stored.names, "view_weights_": sums}
    if isinstance(estimator, ApproximatedKernels):
        approximate = isinstance(stored, FittedFactors) and not stored.is_exact
        attributes["approximation_"] = "nystroem" if approximate else None
    return attributes


class ApproximatedKernels(WeightedKernels):
    """Parameters of estimators whose Gram matrices may be approximated.

    The algorithm must take families with ``fit_factors``.
    """

    approximation: str | None = parameter(
        "Whether each Gram matrix K is replaced by ZZᵀ with ``n_components`` columns, drawn by "
        "randomly pivoted Cholesky. ``None``: never. ``'auto'``: where all of them would take more "
        "than 4 GiB, which 8 kernels do above 8,192 samples. Z of a linear kernel is its columns, "
        "so that nothing is lost: ``'auto'`` takes them where that saves three quarters of more "
        "than 64 MiB.",
        kind='{"auto", "nystroem"} or None',
        default="auto",
        rule=one_of("auto", "nystroem").or_none(),
    )
    n_components: int = parameter(
        "Maximum number of columns of Z for each kernel.", default=300, rule=COUNT
    )

    approximation_: str | None = fitted(
        "str or None", "``'nystroem'`` where the kernels were approximated."
    )
    exact_certificate_: Certificate = fitted(
        "Certificate",
        "Where the kernels were approximated: bounds of the optimum with the exact ones.",
    )
