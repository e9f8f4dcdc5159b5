"""Held-out scores along paths: matrices or factors are computed once, cuts are shared in a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Points, RealArray
from kernelweave.kernels_core.estimators.classes import alone
from kernelweave.kernels_core.estimators.folds import (
    Fold,
    FoldFit,
    FoldScore,
    Scores,
    Setting,
    score_settings,
)
from kernelweave.kernels_core.estimators.kernel import Data
from kernelweave.kernels_core.estimators.samples import standard_deviation
from kernelweave.kernels_core.estimators.search import fold_fits
from kernelweave.kernels_core.estimators.weights import fit_dictionary, views_of
from kernelweave.kernels_core.grams import (
    GramStack,
    LowRankStack,
    PrecomputedGrams,
    PrecomputedKernel,
    require_psd,
)
from kernelweave.kernels_core.kernels import FittedFactors
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.settings import name_of

from .paths import PathPoint, Walk
from .settings import GLOBAL, is_scaled, learner_of, method_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from .estimators import _SparseWeights

# relative gaps that a fit of a fold is proved to, of exact and of approximated kernels
_TOL, _TOL_OF_FACTORS = 1e-4, 1e-3


def score_paths(
    estimator: _SparseWeights,
    settings: list[Setting],
    data: Data,
    folds: list[Fold],
    score: FoldScore,
) -> Scores:
    """Return the scores of settings along a path in each fold.

    Features are standardised, and kernels normalised, clipped or approximated, on all samples
    before the folds are made: no target is seen.
    """
    if estimator.scoring is not None and getattr(estimator, "probability", False):
        # probabilities take fits of their own within each fold
        return score_settings(settings, folds, fold_fits(estimator, data, folds), score)
    return score_settings(settings, folds, _path_fits(estimator, data, folds), score)


def _path_fits(estimator: _SparseWeights, data: Data, folds: list[Fold]) -> FoldFit:
    """Return a fit that walks along the path of a fold to a setting, and makes a model there."""
    stored, targets, unit = _stored(estimator, data), data.targets, 1.0
    if getattr(estimator, "units", "absolute") == "scale":
        unit = standard_deviation(targets[0], data.weight)
        targets = targets / unit
    tol = stored.tol if estimator.tol is None else estimator.tol
    is_global = name_of(method_of(estimator)) == GLOBAL
    walks: dict[tuple[int, int | None], Walk] = {}

    def fit(setting: Setting, fold: int) -> tuple[BaseEstimator, Any]:
        (train, test), limit = folds[fold], setting.get("n_views")
        if (fold, limit) not in walks:
            _require_classes(estimator, targets[:, train])
            walks.clear()
            walks[fold, limit] = Walk(
                stored.stack(train),
                targets[:, train],
                learner_of(estimator),
                data.weight[train],
                tol,
                (None if limit is None else stored.views, limit),
            )
        walk = walks[fold, limit]
        if setting["C"] != walk.C:
            walk.move_to(setting["C"])
        solve = walk.globally if is_global else walk.by_best_response
        point = solve(float(setting["lam"]), min(setting["k0"], len(walk.grams)))
        rows, values = stored.predictor(point, train, test)
        model = alone(estimator, **stored.parameters)
        model.__dict__.update(
            result_=point,
            kernel_=None,
            classes_=getattr(estimator, "classes_", None),
            _predictor=lambda X: unit * values(X),
            _is_flat=True,
            _table=None,
            n_features_in_=rows.shape[1],
        )
        return model, rows

    return fit


def _require_classes(estimator: _SparseWeights, targets: FloatArray) -> None:
    """Raise ValueError where a class has no sample to learn from."""
    present = np.vstack([-targets, targets] if len(targets) == 1 else [targets]).max(axis=1) > 0.0
    if hasattr(estimator, "classes_") and not present.all():
        missing = estimator.classes_[int(np.argmin(present))]
        raise ValueError(
            f"class {missing} has no sample in the training part of a fold: use fewer folds"
        )


@dataclass(frozen=True)
class _Matrices:
    """The Gram matrices of all samples, shape (q, n, n), and the view of each."""

    grams: RealArray
    views: tuple[str, ...] = ()
    tol: float = _TOL
    parameters: ClassVar[dict[str, str]] = {"kernels": "precomputed"}

    def stack(self, rows: Index) -> GramStack:
        return GramStack(np.stack([K[np.ix_(rows, rows)] for K in self.grams]), check=False)

    def predictor(
        self, point: PathPoint, train: Index, test: Index
    ) -> tuple[PrecomputedGrams, Callable[[PrecomputedGrams], FloatArray]]:
        """Return held-out samples, and the values of the point at such."""
        used, u, intercept = _expansion(point)
        kernel = PrecomputedKernel(point.weights)
        rows = PrecomputedGrams.of_checked(self.grams)[test, train]
        return rows, lambda X: np.asarray(kernel(X[:, used]) @ u.T + intercept)


@dataclass(frozen=True)
class _Factors:
    """Low-rank factors of the Gram matrices of all samples: features of linear kernels."""

    fitted: FittedFactors
    views: tuple[str, ...] = ()
    tol: float = _TOL_OF_FACTORS
    parameters: ClassVar[dict[str, str]] = {}

    def stack(self, rows: Index) -> LowRankStack:
        return LowRankStack(self.fitted.factors[rows], self.fitted.ends)

    def predictor(
        self, point: PathPoint, train: Index, test: Index
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return held-out samples, and the values of the point at such."""
        used, u, intercept = _expansion(point)
        weights = np.repeat(point.weights, np.diff(self.fitted.ends))
        coef = weights * (u @ self.fitted.factors[train[used]])
        return self.fitted.factors[test], lambda X: np.asarray(X @ coef.T + intercept)


def _expansion(point: PathPoint) -> tuple[Index, FloatArray, FloatArray]:
    """Return the support vectors of a point, their coefficients and the intercepts."""
    u = np.atleast_2d(point.solution.dual_coef)
    used = np.flatnonzero(u.any(axis=0))
    return used, u[:, used], np.atleast_1d(point.solution.intercept)


def _stored(estimator: _SparseWeights, data: Data) -> _Matrices | _Factors:
    """Return the Gram matrices of all samples, or factors where they are approximated."""
    if data.grams is not None:
        grams = data.grams.grams
        for j, K in enumerate(grams):
            require_psd(K, f"X[{j}]")
        return _Matrices(grams)
    features: Points = data.X
    if is_scaled(estimator):
        features = Scaling(*mean_and_spread(np.asarray(features), data.weight))(features)
    names, fitted = views_of(estimator), fit_dictionary(estimator, features)
    views = tuple(names[j] for j in fitted.kept if names)
    if isinstance(fitted, FittedFactors):
        return _Factors(fitted, views, _TOL if fitted.is_exact else _TOL_OF_FACTORS)
    return _Matrices(fitted.grams, views)
