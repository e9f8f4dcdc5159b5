"""Cross-validation along a path: matrices or factors are computed once, cuts are shared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels, RealArray, Rows
from kernelweave.kernels_core.checks import one_of
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.choosing import (
    CHOICES,
    Folds,
    candidates,
    first_near_best,
    folds_of,
    standard_errors,
)
from kernelweave.kernels_core.estimators.kernel import Data, learn_formula
from kernelweave.kernels_core.estimators.labels import class_weights, one_vs_rest
from kernelweave.kernels_core.estimators.parts import alone
from kernelweave.kernels_core.estimators.samples import spread_of
from kernelweave.kernels_core.estimators.weights import (
    dictionary_of,
    is_approximate,
    is_precomputed,
    views_of,
)
from kernelweave.kernels_core.fit import FitResult
from kernelweave.kernels_core.grams import GramStack, LowRankStack, as_grams, require_psd
from kernelweave.kernels_core.kernels import FittedFactors, LowRankDictionary
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.settings import name_of
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .paths import PathPoint, sparse_mkl_path
from .settings import GRIDS, is_scaled, learner_of, method_of

if TYPE_CHECKING:
    from .estimators import _SparseWeights

T = TypeVar("T", bound=Hashable)

# relative gaps that a fit of a fold is proved to, of exact and of approximated kernels
_TOL, _TOL_OF_FACTORS = 1e-4, 1e-3


@dataclass(frozen=True)
class PathScores:
    """Scores of a grid of settings.

    Attributes
    ----------
    params : list of dict
        ``C``, ``lam`` and ``k0`` of each setting, and ``n_views`` where views are limited.
    scores : ndarray of shape (n_settings, n_folds)
        Accuracy or R² on the fold that was left out.
    gaps : ndarray of shape (n_settings, n_folds)
        Proven relative gap of each fit.
    supports : list of list of ndarray of int
        Which kernels each fit uses.
    n_svm_solves : int
        Learner solves of the whole grid over all folds.
    """

    params: list[dict[str, float]]
    scores: FloatArray
    gaps: FloatArray
    supports: list[list[NDArray[np.intp]]]
    n_svm_solves: int

    @property
    def mean(self) -> FloatArray:
        """Return the mean score of each setting, shape (n_settings,)."""
        means: FloatArray = self.scores.mean(axis=1)
        return means

    @property
    def standard_error(self) -> FloatArray:
        """Return the standard error of each mean over the folds, shape (n_settings,)."""
        return standard_errors(self.scores)

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Return settings, means and standard deviations as scikit-learn's searches name them."""
        spread = self.scores.std(axis=1)
        return {"params": self.params, "mean_test_score": self.mean, "std_test_score": spread}

    @property
    def best_params(self) -> dict[str, float]:
        """Return the setting of the best mean score; of equal ones the smallest C and k₀."""
        return self.params[int(np.argmax(self.mean))]

    def best_by(self, name: str) -> dict[float, int]:
        """Return the place of the best setting for each value of one of its names.

        Parameters
        ----------
        name : {"C", "lam", "k0", "n_views"}
            What the settings are grouped by.
        """
        return self._best_of([setting[name] for setting in self.params])

    def _best_of(self, groups: list[T]) -> dict[T, int]:
        places: dict[T, int] = {}
        for i, group in enumerate(groups):
            if group not in places or self.mean[i] > self.mean[places[group]]:
                places[group] = i
        return dict(sorted(places.items()))

    def choose(self, choice: str = "one-standard-error") -> dict[str, float]:
        """Return the setting that wins.

        Parameters
        ----------
        choice : {"one-standard-error", "best"}
            The fewest views, and then kernels, whose best setting is within one standard error of
            the best of all, or the best of all.
        """
        one_of(*CHOICES).check("choice", choice)
        if choice == "best":
            return self.best_params
        sizes = [(setting.get("n_views", 0), setting["k0"]) for setting in self.params]
        return self.params[first_near_best(self.scores, list(self._best_of(sizes).values()))]


def learn_chosen(estimator: _SparseWeights, data: Data) -> FitResult:
    """Choose C, λ, k₀ and the views by folds where several are given, then learn from all."""
    with time_limit(estimator.max_time), blas_threads(data.X.shape[0]):
        grid = {name: candidates(getattr(estimator, name), GRIDS[name]) for name in GRIDS}
        for name, most in _most(estimator, data).items():
            if isinstance(getattr(estimator, name), str):
                # a limit above what there is limits nothing
                grid[name] = [limit for limit in grid[name] if limit <= most]
        chosen = {name: values[0] for name, values in grid.items()}
        scores = None
        if any(len(values) > 1 for values in grid.values()):
            # class weights are in the weights of the samples already
            scores = _scores_of_data(alone(estimator, **chosen), data, grid)
            chosen |= scores.choose(estimator.choice)
        estimator.__dict__.update(chosen)
        fit = learn_formula(estimator, data)
    found = {f"{name}_": value for name, value in chosen.items()}
    return replace(fit, attributes={**fit.attributes, **found, "path_scores_": scores})


def _most(estimator: _SparseWeights, data: Data) -> dict[str, int]:
    """Return how many kernels there are, with ``n_views`` of the largest view, and views."""
    sizes = Counter(views_of(estimator))
    n_kernels = len(dictionary_of(estimator)) if data.grams is None else data.grams.n_kernels
    most = n_kernels if estimator.n_views is None else max(sizes.values())
    return {"k0": most, "n_views": len(sizes)}


def _scores_of_data(reader: _SparseWeights, data: Data, grid: dict[str, list[Any]]) -> PathScores:
    """Return the scores of a grid on the samples that count."""
    is_regressor, targets, weight = hasattr(reader, "epsilon"), data.targets, data.weight
    y = targets[0] if is_regressor or len(targets) == 1 else targets.argmax(axis=0)
    y = y if is_regressor or len(targets) > 1 else y > 0
    kept = np.flatnonzero(weight > 0)
    return cross_validate_path(
        reader,
        data.X[kept] if data.grams is None else data.grams[kept, kept],
        y[kept],
        **{f"{name}s": grid[name] for name in ("C", "lam", "k0")},
        n_views=None if reader.n_views is None else grid["n_views"],
        cv=folds_of(reader.cv, y, weight, classifier=not is_regressor),
        sample_weight=weight[kept],
    )


def cross_validate_path(
    estimator: _SparseWeights,
    X: Rows,
    y: ArrayLike,
    *,
    Cs: Iterable[float] = (1.0,),
    lams: Iterable[float] = (1.0,),
    k0s: Iterable[int] = (3,),
    n_views: Iterable[int] | None = None,
    cv: Folds = 5,
    sample_weight: ArrayLike | None = None,
) -> PathScores:
    """Score every C, λ, k₀ and limit of views of a grid by cross-validation.

    Parameters
    ----------
    estimator : SparseMKLClassifier or SparseMKLRegressor
        Its kernels, scaling, class weights, ε, algorithm and ``tol`` (for ``"smkl-global"``) are
        used; it is not fitted.
    X : array-like of shape (n_samples, n_features)
        Or Gram matrices, with ``kernels="precomputed"``.
    y : array-like of shape (n_samples,)
    Cs, lams : iterable of float
    k0s : iterable of int
    n_views : iterable of int, optional
        Views at most; without them the estimator's own limit, which may be None.
    cv : int or splitter
        As in scikit-learn: folds are stratified for classes.
    sample_weight : array-like of shape (n_samples,), optional
        Of the fits and of the scores.

    Returns
    -------
    PathScores

    Raises
    ------
    ValueError
        If an argument is out of range, or classes have weights of their own.

    Notes
    -----
    Features are standardised, and kernels normalised, clipped or approximated, on all samples
    before the folds are made: no label is seen, but where that matters use scikit-learn's
    GridSearchCV, which computes the Gram matrices of every fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier, cross_validate_path
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate_path(SparseMKLClassifier(), X, y, Cs=[1, 10], k0s=[1, 2], cv=3)
    >>> found.scores.shape, bool(found.mean.max() > 0.9)
    ((4, 3), True)
    """
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv

    estimator._check_parameters()
    labels = np.asarray(y)
    known = _of_all(estimator, X, labels, sample_weight)
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, float)
    task = _Task(estimator, labels, weight, is_classifier(estimator))
    splits = check_cv(cv, labels, classifier=task.is_classifier).split(labels, labels)
    grid: dict[str, Any] = {"Cs": list(Cs), "lams": list(lams), "k0s": list(k0s)}
    limits = [estimator.n_views] if n_views is None else list(n_views)
    folds = [task.fold(known, train, test, grid, limits) for train, test in splits]
    # where max_time ended the work, the settings that every fold has reached
    reached = min(len(scores) for _, scores in folds)
    points = [points[:reached] for points, _ in folds]
    return PathScores(
        params=_settings(points[0], grid, limits),
        scores=np.stack([scores[:reached] for _, scores in folds], axis=1),
        gaps=np.array([[p.gap for p in column] for column in points]).T,
        supports=[list(row) for row in zip(*[[p.support for p in c] for c in points], strict=True)],
        n_svm_solves=sum(p.n_svm_solves for column in points for p in column),
    )


def _settings(
    points: Sequence[PathPoint], grid: dict[str, Any], limits: list[int | None]
) -> list[dict[str, float]]:
    """Return what each point is the best of; the points of a limit of views follow each other."""
    n_points = math.prod(map(len, grid.values()))
    settings: list[dict[str, float]] = []
    for i, point in enumerate(points):
        limit = limits[i // n_points]
        own = {} if limit is None else {"n_views": limit}
        settings.append({"C": point.C, "lam": point.lam, "k0": point.k0} | own)
    return settings


@dataclass(frozen=True)
class _Matrices:
    """The Gram matrices of all samples, shape (q, n, n), and the view of each."""

    grams: RealArray
    views: tuple[str, ...] = ()
    tol: float = _TOL

    def stack(self, rows: NDArray[np.intp]) -> GramStack:
        return GramStack(np.stack([K[np.ix_(rows, rows)] for K in self.grams]), check=False)

    def products(
        self, point: PathPoint, test: NDArray[np.intp], rows: NDArray[np.intp], u: FloatArray
    ) -> FloatArray:
        cross = np.zeros((test.size, rows.size))
        for j in point.support:
            cross += point.weights[j] * self.grams[j][np.ix_(test, rows)]
        return cross @ u.T


@dataclass(frozen=True)
class _Factors:
    """Low-rank factors of the Gram matrices of all samples."""

    fitted: FittedFactors
    views: tuple[str, ...] = ()
    tol: float = _TOL_OF_FACTORS

    def stack(self, rows: NDArray[np.intp]) -> LowRankStack:
        return LowRankStack(self.fitted.factors[rows], self.fitted.ends)

    def products(
        self, point: PathPoint, test: NDArray[np.intp], rows: NDArray[np.intp], u: FloatArray
    ) -> FloatArray:
        values = np.zeros((test.size, len(u)))
        for j in point.support:
            own = self.fitted.factors[:, self.fitted.ends[j] : self.fitted.ends[j + 1]]
            values += point.weights[j] * (own[test] @ (u @ own[rows]).T)
        return values


def _of_all(
    estimator: _SparseWeights, X: Rows, labels: Labels, sample_weight: ArrayLike | None
) -> _Matrices | _Factors:
    """Return the Gram matrices of all samples, or factors where they are approximated."""
    if is_precomputed(estimator):
        stack = as_grams(X, square=True)
        for j, K in enumerate(stack):
            require_psd(K, f"X[{j}]")
        return _Matrices(stack)
    from sklearn.base import clone

    reader = clone(estimator)
    features, _, _ = reader._read(X, labels)
    if is_scaled(estimator):
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        features = Scaling(*mean_and_spread(features, weight))(features)
    if not is_approximate(reader, len(labels)):
        exact = dictionary_of(reader).fit_grams(features)
        return _Matrices(exact.grams, _views_of(reader, exact.kept))
    seed = check_random_state(reader.random_state).randint(2**31 - 1)
    family = LowRankDictionary(dictionary_of(reader), reader.n_components, seed)
    factors = family.fit_factors(features)
    return _Factors(factors, _views_of(reader, factors.kept))


def _views_of(estimator: _SparseWeights, kept: NDArray[np.intp]) -> tuple[str, ...]:
    """Return the views of the kernels that were kept, nothing where there are none."""
    names = views_of(estimator)
    return tuple(names[j] for j in kept) if names else ()


def _in_units(estimator: _SparseWeights, y: Labels, weight: FloatArray) -> FloatArray:
    """Return numbers as the estimator learns them."""
    targets = np.asarray(y, dtype=np.float64)
    is_plain = estimator.units == "absolute"
    return targets if is_plain else np.asarray(targets / spread_of(targets, weight))


class _Task:
    """Labels or numbers: how targets are made of them and predictions scored."""

    def __init__(
        self, estimator: _SparseWeights, labels: Labels, weight: FloatArray, is_classifier: bool
    ) -> None:
        self.estimator = estimator
        # R² is the same in any unit
        self.labels = labels if is_classifier else _in_units(estimator, labels, weight)
        self.weight = weight
        self.is_classifier = is_classifier
        self.classes, self.codes = np.array([]), np.zeros(len(labels), dtype=np.intp)
        if is_classifier:
            self.classes, self.codes = np.unique(labels, return_inverse=True)
            if estimator.multiclass != "shared" and len(self.classes) > 2:
                raise ValueError(
                    "a path needs one set of weights: use multiclass='shared', got "
                    f"{estimator.multiclass!r}"
                )

    def fold(
        self,
        known: _Matrices | _Factors,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
        grid: dict[str, Any],
        limits: list[int | None],
    ) -> tuple[list[PathPoint], FloatArray]:
        """Return the paths on one fold's training part, and the scores on the rest."""
        train = train[self.weight[train] > 0.0]
        stack = known.stack(train)
        points: list[PathPoint] = []
        for limit in limits:
            path = sparse_mkl_path(
                stack,
                self._targets(train),
                **grid,
                views=None if limit is None else known.views,
                n_views=limit,
                learner=learner_of(self.estimator),
                algorithm=name_of(method_of(self.estimator)),
                sample_weight=self._weights(train),
                tol=known.tol if self.estimator.tol is None else self.estimator.tol,
            )
            points += path.points
            if len(path.points) < math.prod(map(len, grid.values())):
                break  # max_time ended it
        scores = [self._score(p, known, train, test) for p in points]
        return points, np.array(scores)

    def _targets(self, train: NDArray[np.intp]) -> FloatArray:
        if self.is_classifier:
            targets: FloatArray = one_vs_rest(self.codes[train], len(self.classes))
            return targets
        return np.asarray(self.labels[train], dtype=np.float64)[None, :]

    def _weights(self, train: NDArray[np.intp]) -> FloatArray:
        weight = self.weight[train]
        if not self.is_classifier:
            return weight
        codes = self.codes[train]
        missing = np.setdiff1d(np.arange(len(self.classes)), codes)
        if missing.size:
            raise ValueError(
                f"class {self.classes[missing[0]]} has no sample in the training part of a fold: "
                "use fewer folds"
            )
        factors: FloatArray = class_weights(self.estimator, self.classes, codes, weight)
        return weight * factors[codes]

    def _score(
        self,
        point: PathPoint,
        known: _Matrices | _Factors,
        train: NDArray[np.intp],
        test: NDArray[np.intp],
    ) -> float:
        from sklearn.metrics import accuracy_score, r2_score

        u = np.atleast_2d(point.solution.dual_coef)
        at = np.flatnonzero(u.any(axis=0))
        values = known.products(point, test, train[at], u[:, at])
        values += np.atleast_1d(point.solution.intercept)
        weight = self.weight[test]
        if not self.is_classifier:
            return float(r2_score(self.labels[test], values[:, 0], sample_weight=weight))
        codes = (values[:, 0] > 0).astype(np.intp) if len(u) == 1 else values.argmax(axis=1)
        return float(accuracy_score(self.codes[test], codes, sample_weight=weight))
