"""Base classes of estimators that weight kernels: of a dictionary, or precomputed by the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from .cells import cells_named, first_fault, sentence
from .kernel import KernelEstimator
from .samples import Samples

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from ..kernels import Kernel
    from ..kernels.dictionary import Normalize

    Function = Callable[[Any, Any], Any]


KERNELS = Rule(
    "a KernelDictionary, a list of kernels, names or functions such as ['rbf'], or 'precomputed'",
    lambda value: not isinstance(value, str) or value == "precomputed",
)
# memory of Gram matrices above which "auto" approximates: eight kernels of 8,192 samples
EXACT_BYTES = 2**32


class TableReader:
    """Turns a table into numbers, a block of columns per view, with a `ColumnTransformer`.

    - `stated`: dictionary with views that name, select or transform columns of a table
    - `X` of shape (n_samples, n_columns): training table, to which selectors and transformers are
      fitted; `y` of shape (n_samples,) or None: targets, for transformers that use them
    - `points` of shape (n_samples, n_features), dense or CSR: the training table in numbers
    - `dictionary`: the same kernels, with views given as positions of columns of `points`
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
        # the name of each view, and whether its columns are taken as they are
        self._views = [(name, view.transformer is None) for name, view in views.items()]
        try:
            transformed = self._table.fit_transform(X, y)
        except (TypeError, ValueError) as error:
            # with each view alone, to say which it is
            for (name, _), step in zip(self._views, steps, strict=True):
                try:
                    ColumnTransformer([step]).fit(X, y)
                except (TypeError, ValueError) as its_own:
                    raise ValueError(f"view {name} cannot be made of X: {its_own}") from its_own
            raise ValueError(f"the views cannot be made of X: {error}") from error
        # ColumnTransformer does not set this where no view selects a column
        slices = getattr(self._table, "output_indices_", {})
        for name, place in places.items():
            if place not in slices or slices[place].start == slices[place].stop:
                raise ValueError(f"view {name} selects no column of X: leave it out")
        self.points = self._numbers(transformed, X)
        source: Any = stated
        # a dictionary that is made of another one may have the views of that
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
        return self._numbers(self._table.transform(X), X)

    def _numbers(self, transformed: Any, X: Any) -> Points:
        """Return a transformed table as float64, dense or CSR; ValueError if it holds others."""
        try:
            numbers: Points = check_array(transformed, accept_sparse="csr", dtype=np.float64)
        except (TypeError, ValueError):
            # by position, also where a setting of scikit-learn makes it a DataFrame
            found = first_fault(transformed if issparse(transformed) else np.asarray(transformed))
            if found is None:
                raise
            raise ValueError(self._fault(*found[:3], X)) from None
        return numbers

    def _fault(self, place: Any, row: int, value: object, X: Any) -> str:
        """Return what to say of a value of the transformed table that is no finite number."""
        parts = self._table.output_indices_.items()
        key, block = next((k, s) for k, s in parts if s.start <= place < s.stop)
        view, as_they_are = self._views[int(key)]
        _, transformer, columns = next(step for step in self._table.transformers_ if step[0] == key)
        if not as_they_are:
            made = f"what {type(transformer).__name__} of view {view} makes of X"
            return sentence(made, value, f"row {row}", *["use a transformer without these"] * 2)
        name = _chosen(columns, X)[place - block.start]
        give = "give the view a transformer, such as"
        return sentence(
            f"view {view}",
            value,
            f"column {name!r}, row {row}",
            f"{give} (OneHotEncoder(), [{name!r}]) for categories or (TfidfVectorizer(), {name!r}) "
            "for text",
            f"{give} (SimpleImputer(), [{name!r}]), or leave out such rows",
        )


def _unknown_name(columns: object, known: Any) -> str | None:
    """Return what is wrong with the columns of a view if it names any that X does not have.

    `known`: the column names of X, ``None`` if X is an array. Returns the end of a message, or
    ``None`` if nothing is wrong.
    """
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
    """Return the transformer and the columns of a view, as `ColumnTransformer` takes them."""
    if transformer is None:
        # one name would select a column with one dimension, which cannot be passed through
        return "passthrough", [columns] if isinstance(columns, str) else columns
    return transformer, columns


def _chosen(columns: Any, X: Any) -> list[object]:
    """Return the names, else the positions, of the columns that a view takes from X."""
    names = getattr(X, "columns", None)
    if isinstance(columns, slice) and names is not None:
        of_names = isinstance(columns.start, str) or isinstance(columns.stop, str)
        return list((X.loc if of_names else X.iloc)[:, columns].columns)
    every = np.atleast_1d(np.asarray(columns, dtype=object))
    if all(isinstance(each, str) for each in every):
        return list(every)
    places: list[object] = np.arange(np.shape(X)[1])[columns].tolist()
    return places if names is None else [names[place] for place in places]


class WeightedKernels(KernelEstimator):
    """Parameters of estimators that weight kernels, and how they read tables.

    To be listed before `KernelClassifier` or `KernelRegressor` among the bases.
    """

    kernels: KernelDictionary | Sequence[Kernel | str | Callable[..., Any]] | str | None = (
        parameter(
            "The kernels; by default the ten of the sparse multiple kernel learning paper without "
            "the two sigmoids; a callable is a kernel k(X, Z) as in scikit-learn's SVC, see "
            '`FunctionKernel`. With ``"precomputed"``, X holds the Gram matrices, of shape '
            "(n_kernels, n_samples, n_train). GridSearchCV and cross_val_score take them as "
            "`PrecomputedGrams`; of an array they would count the first axis, the kernels, as "
            "samples.",
            kind='None, KernelDictionary, list of Kernel, str or callable, or "precomputed"',
            default=None,
            rule=KERNELS,
            kw_only=False,
        )
    )
    normalize: Normalize | None = parameter(
        "How kernels are normalised, see `KernelDictionary`, if ``kernels`` is None or a list; a "
        "dictionary has its own ``normalize``.",
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
        "Weight of each view: the sum of the weights of its kernels. Empty if the dictionary has "
        "no ``columns``.",
    )

    if TYPE_CHECKING:
        # set if a view names, selects or transforms columns, else None
        _table: TableReader | None = fitted("", "")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        is_given = is_precomputed(self)
        tags.input_tags.pairwise = tags.input_tags.three_d_array = is_given
        # the default kernels are for standardised features, which are dense
        tags.input_tags.sparse = self.kernels is not None and not is_given
        return tags

    def _read(
        self, X: Rows, y: ArrayLike, **options: object
    ) -> tuple[Points, Labels, PrecomputedGrams | None]:
        """Return what the base returns, after a table with views has been turned into numbers."""
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
        allowed = "" if "y_numeric" in options else "text"
        with cells_named(y=y, allowed=allowed):
            points, targets = check_X_y(self._table.points, y, "csr", dtype=np.float64, **options)
        validate_data(self, X, skip_check_array=True)
        # This estimator is a draft, see `assigned_last`, so that the user's parameter stays as it
        # was: from here on the kernels refer to columns of `points`.
        self.kernels = self._table.dictionary
        return points, targets, None

    def _points(self, X: Rows) -> Any:
        if self._table is None:
            return super()._points(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._table.transform(X)


def is_precomputed(estimator: Any) -> bool:
    """Return whether ``kernels="precomputed"``, so that X holds Gram matrices."""
    return isinstance(estimator.kernels, str) and estimator.kernels == "precomputed"


def dictionary_of(estimator: WeightedKernels) -> KernelDictionary:
    """Return the kernels of an estimator as a dictionary; they must not be precomputed."""
    if isinstance(estimator.kernels, KernelDictionary):
        return estimator.kernels
    kernels = default_kernels() if estimator.kernels is None else estimator.kernels
    return KernelDictionary(kernels, normalize=estimator.normalize)


def views_of(estimator: WeightedKernels) -> tuple[str, ...]:
    """Return the name of each kernel's view; empty without views or with precomputed kernels."""
    return () if is_precomputed(estimator) else dictionary_of(estimator).view_names


def fit_kernels(
    estimator: WeightedKernels, samples: Samples
) -> FittedDictionary | FittedFactors | PrecomputedDictionary:
    """Return the Gram matrices of merged samples, or factors where they are approximated."""
    if samples.grams is None:
        return fit_dictionary(estimator, samples.X)
    if getattr(estimator, "approximation", None) == "nystroem":
        raise ValueError(
            "approximation='nystroem' draws columns of kernels, and kernels='precomputed' "
            "gives their Gram matrices: give the kernels, or set approximation=None"
        )
    rows, grams = samples.places, samples.grams.grams
    # samples of weight 0 are left out, and copies of one another may share a place
    if not np.array_equal(rows, np.arange(grams.shape[1])):
        grams = np.stack([K[np.ix_(rows, rows)] for K in grams])
    return PrecomputedDictionary(grams)


def fit_dictionary(estimator: WeightedKernels, X: Points) -> FittedDictionary | FittedFactors:
    """Return the Gram matrices of points, or factors where ``approximation`` asks for them."""
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
    """Return the fitted attributes that follow from the weights.

    `stored`: what `fit_kernels` returned; `weights` of shape (n_kept,): of the kernels that it has.
    Kernels that the dictionary left out get weight 0.
    """
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
    """Parameters of estimators whose Gram matrices may be approximated by low-rank factors.

    Their algorithm must accept `FittedFactors` as the family of its problem.
    """

    approximation: str | None = parameter(
        "Whether each Gram matrix K is replaced by ZZᵀ, with up to ``n_components`` columns drawn "
        "by randomly pivoted Cholesky. ``None``: never. ``'auto'``: if the Gram matrices would "
        "take more than 4 GiB, which 8 kernels do above 8,192 samples. For a linear kernel Z "
        "consists of the columns that it sees, so that nothing is lost: ``'auto'`` also uses such "
        "Z if the Gram matrices would take more than 64 MiB and all Z at most a quarter of them.",
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
        "Bounds of the optimum with the exact kernels; only if they were approximated.",
    )
