"""Choice of C, ε and δ by cross-validation, every fit begun at its neighbour's solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from itertools import product
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Labels, RealArray, Rows
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE
from kernelweave.kernels_core.estimators.base import Estimator
from kernelweave.kernels_core.estimators.search import Folds
from kernelweave.kernels_core.exceptions import (
    KernelWeaveWarning,
    UnderfitWarning,
    convergence_warning,
)
from kernelweave.kernels_core.parameters import fitted, parameter
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .estimators import (
    PositiveMatrixKernel,
    TessellatedKernelClassifier,
    TessellatedKernelRegressor,
    absolute,
    box_of,
    scaled_by,
)
from .neighbours import Fitted, Warm

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# Values of C that "auto" tries, in the units of 1 / mean k(x, x): a factor of ten apart, since the
# error changes slowly with C, and every value is a fit in each fold. Where the best lies at an end
# the search goes on by the same factor.
_STEPS = (0.1, 1.0, 10.0, 100.0, 1000.0)
# in the units of 1 / mean k(x, x): less than the first learns nothing, and what needs more than the
# last separates the classes exactly
_LEAST, _MOST = 1e-4, 1e10


def ends(settings: list[dict[str, float]], chosen: int) -> dict[str, str]:
    """Return which parameters of a setting lie at an end of their grid, and at which.

    `settings`: a product of grids; that of C may depend on the other parameters; `chosen`: index of
    the setting. Name to ``"smallest"`` or ``"largest"``. A grid of one value has no ends.

    Examples
    --------
    >>> ends([{"C": 1.0, "delta": 0.5}, {"C": 10.0, "delta": 0.5}], 1)
    {'C': 'largest'}
    """
    best, found = settings[chosen], {}
    others = {name: value for name, value in best.items() if name != "C"}
    beside = [setting for setting in settings if others.items() <= setting.items()]
    for name, value in best.items():
        grid = [setting[name] for setting in (beside if name == "C" else settings)]
        if min(grid) < max(grid) and value in (min(grid), max(grid)):
            found[name] = "smallest" if value == min(grid) else "largest"
    return found


def _values(name: str, values: object) -> list[float]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a sequence of numbers to choose among, got {values!r}")
    chosen = list(values)
    for value in chosen:
        if not isinstance(value, Real):
            raise ValueError(f"{name} must hold numbers, got {value!r}")
    return chosen


class _Search(Estimator):
    """Shared by both: the grid, the folds, the refit and the delegation."""

    estimator: BaseEstimator | None = parameter(
        "Holds every other parameter; the default one if not given.",
        kind="estimator",
        default=None,
        kw_only=False,
    )
    C: Iterable[float] | str = parameter(
        "Penalties to try, in the ``units`` of the estimator; by default 0.1 to 1000 times "
        "1 / mean k(x, x) at P = I, and further by tens while the best lies at an end.",
        kind='sequence of float or "auto"',
        default="auto",
    )
    delta: Iterable[float] = parameter(
        "Widths of the box to try.", kind="sequence of float", default=(0.5,)
    )
    cv: Folds = parameter(
        "As in scikit-learn; five folds by default.",
        kind="int, splitter or iterable",
        default=None,
    )
    cv_tol: float = parameter(
        "Relative certified gap of the folds' fits; the refit reaches the estimator's own ``tol``.",
        default=0.02,
        rule=NONNEGATIVE,
    )
    cv_max_iter: int = parameter(
        "Steps of a fold's fit at most: enough to rank settings, with ``split_gap`` saying how "
        "near to its optimum each fit is.",
        default=8,
        rule=COUNT,
    )
    scoring: str | Callable[..., float] | None = parameter(
        "Accuracy or R² by default.", kind="str or callable", default=None
    )

    best_estimator_: BaseEstimator = fitted("estimator", "Fitted on all samples.")
    best_params_: dict[str, float] = fitted("dict", "The chosen values.")
    best_score_: float = fitted("float", "Mean score of the folds there.")
    best_index_: int = fitted("int", "Its place in ``cv_results_``.")
    cv_results_: dict[str, Any] = fitted(
        "dict",
        "``params``, ``mean_test_score``, ``std_test_score``, ``split_test_score`` and "
        "``split_gap``.",
    )
    at_end_: dict[str, str] = fitted(
        "dict",
        'Chosen parameters at an end of their grid, with ``"smallest"`` or ``"largest"``: beyond '
        "it may lie a better value. A grid of one value has no ends. Of three values or more a "
        "warning says so.",
    )
    n_solves_: int = fitted("int", "Learner solves of the whole search and the refit.")

    def _template(self) -> BaseEstimator:
        raise NotImplementedError

    def _grid(self, X: FloatArray) -> list[dict[str, float]]:
        """Return settings in an order in which neighbours follow one another: C fastest."""
        axes = self._axes()
        penalties = [] if isinstance(self.C, str) else _values("C", self.C)
        for name, grid in {**axes, "C": penalties}.items():
            if len(grid) == 0 and not (name == "C" and isinstance(self.C, str)):
                raise ValueError(f"{name} must hold at least one value, got none")
        settings = []
        for values in product(*(sorted(axis) for axis in axes.values())):
            setting = dict(zip(axes, values, strict=True))
            settings += [{**setting, "C": C} for C in self._penalties(setting, X)]
        return settings

    def _penalties(self, setting: dict[str, float], X: FloatArray) -> list[float]:
        """Return the values of C to try, in increasing order."""
        if isinstance(self.C, str):
            if self.C != "auto":
                raise ValueError(f"C must be 'auto' or a sequence of numbers, got {self.C!r}")
            return [step * self._unit(setting, X) for step in _STEPS]
        return sorted(float(C) for C in _values("C", self.C))

    def _unit(self, setting: dict[str, float], X: FloatArray) -> float:
        """Return what 1 in the automatic grid of C is in the units of the estimator."""
        model = clone(self._template())
        if model.units == "scale":
            return 1.0
        model.set_params(units="scale", C=1.0, **setting)
        # of penalties in absolute units, one is for targets of spread one
        return float(absolute(model, X, np.tile([-1.0, 1.0], len(X))[: len(X)])["C"])

    def _further(
        self, settings: list[dict[str, float]], means: FloatArray, X: FloatArray
    ) -> list[dict[str, float]]:
        """Return the setting beyond the end of the automatic grid of C where the best lies."""
        best = settings[int(np.argmax(means))]
        end = ends(settings, int(np.argmax(means))).get("C")
        if not isinstance(self.C, str) or end is None:
            return []
        C, unit = best["C"] * (10.0 if end == "largest" else 0.1), self._unit_of(best, X)
        return [{**best, "C": C}] if _LEAST * unit < 1.5 * C < 2.0 * _MOST * unit else []

    def _unit_of(self, setting: dict[str, float], X: FloatArray) -> float:
        return self._unit({k: v for k, v in setting.items() if k != "C"}, X)

    def _axes(self) -> dict[str, list[float]]:
        raise NotImplementedError

    def _search(self, X: FloatArray, y: RealArray, classifier: bool) -> None:
        self._check_parameters()
        template = self._template()
        folds = list(check_cv(self.cv, y, classifier=classifier).split(X, y))
        scorer = check_scoring(template, scoring=self.scoring)
        scaled = scaled_by(template, X)
        settings, warm = self._grid(X), Warm(len(X))
        scores: list[list[float]] = []
        gaps: list[list[float]] = []
        averages: list[Fitted | None] = []
        pending = settings
        while pending:
            for setting in pending:
                fits = [
                    self._fold(setting, scaled, X, y, np.asarray(train), j, warm)
                    for j, (train, _) in enumerate(folds)
                ]
                tests = [test for _, test in folds]
                scores.append(
                    [scorer(m, scaled[at], y[at]) for m, at in zip(fits, tests, strict=True)]
                )
                gaps.append([model.result_.gap for model in fits])
                averages.append(warm.average())
            pending = self._further(settings, np.mean(scores, axis=1), X)
            settings = settings + pending
        self._keep_results(settings, np.array(scores), np.array(gaps))
        chosen = clone(template).set_params(**self.best_params_)
        self._refit(chosen, averages[self.best_index_], X, y, warm)

    def _fold(
        self, setting: dict[str, float], scaled: FloatArray, X: FloatArray, y: Labels,
        train: npt.NDArray[np.intp], fold: int, warm: Warm,
    ) -> PositiveMatrixKernel:  # fmt: skip
        """Fit a fold shortly, with the scaling, the box and the units of all samples."""
        model = clone(self._template()).set_params(**setting)
        box = box_of(model, scaled)
        model.set_params(**absolute(model, X, y), scale=False, domain=box)
        model.set_params(tol=self.cv_tol, max_iter=self.cv_max_iter)
        if self.scoring is None and hasattr(model, "probability"):
            # accuracy asks for none, and they take five fits more
            model.set_params(probability=False)
        with warnings.catch_warnings():
            # a short fit is what is asked for; the refit does warn
            warnings.simplefilter("ignore", convergence_warning())
            warnings.simplefilter("ignore", UnderfitWarning)
            return warm.fit(model, scaled, y, train, fold)

    def _keep_results(
        self, settings: list[dict[str, float]], scores: FloatArray, gaps: FloatArray
    ) -> None:
        means = scores.mean(axis=1)
        best = int(np.argmax(means))
        self.cv_results_ = {
            "params": settings,
            "mean_test_score": means,
            "std_test_score": scores.std(axis=1),
            "split_test_score": scores,
            "split_gap": gaps,
        }
        self.best_index_, self.best_params_ = best, settings[best]
        self.best_score_ = float(means[best])
        self.at_end_ = ends(settings, best)
        for name, end in self.at_end_.items():
            grid = sorted({setting[name] for setting in settings})
            if len(grid) > 2:
                warnings.warn(
                    f"the best {name} of the search, {settings[best][name]:.6g}, is the {end} "
                    f"of its grid: a better one may lie beyond, so widen the grid of {name}",
                    KernelWeaveWarning,
                    stacklevel=4,
                )

    def _refit(
        self, model: BaseEstimator, near: Fitted | None, X: FloatArray, y: Labels, warm: Warm
    ) -> None:
        last = Warm(len(X), warm.n_solves, last=near)
        self.best_estimator_ = last.fit(model, X, y, np.arange(len(X)), -1)
        if hasattr(self, "feature_names_in_"):
            self.best_estimator_.feature_names_in_ = self.feature_names_in_
        self.n_solves_ = last.n_solves

    def predict(self, X: Rows) -> Labels:
        """Return the predictions of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels or targets.
        """
        check_is_fitted(self, "best_estimator_")
        predicted: Labels = self.best_estimator_.predict(X)
        return predicted


def _has_probabilities(search: BaseEstimator) -> bool:
    # raises what the estimator says of probability=True
    return hasattr(search._template(), "probability") and bool(search._template().predict_proba)


class TessellatedKernelClassifierCV(ClassifierMixin, _Search):  # type: ignore[misc]
    """Classifier that learns its kernel, with C and δ chosen by cross-validation.

    Every fit begins at the kernel and the coefficients of its neighbour in the grid, and the
    folds' fits are short, so that the search costs a few learner solves a setting; the refit on
    all samples begins at the mean of the best setting's folds. The folds share the scaling and
    the box of all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import TessellatedKernelClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = TessellatedKernelClassifierCV(C=(0.1, 1.0), cv=3).fit(X, y)
    >>> bool(search.best_score_ > 0.9)
    True
    """

    classes_: Labels = fitted("ndarray of shape (n_classes,)", "Labels.")

    def _template(self) -> BaseEstimator:
        return TessellatedKernelClassifier() if self.estimator is None else self.estimator

    def _axes(self) -> dict[str, list[float]]:
        return {"delta": _values("delta", self.delta)}

    def fit(self, X: Rows, y: ArrayLike) -> TessellatedKernelClassifierCV:
        """Choose C and δ, then learn the kernel from all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Labels of any kind, two classes or more.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If y holds one class only, or a parameter makes no sense.
        """
        points, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError("y must hold samples of at least 2 classes, got 1 class")
        self._search(points, labels, classifier=True)
        return self

    def decision_function(self, X: Rows) -> FloatArray:
        """Return the decision values of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive means ``classes_[1]`` where there are two classes.
        """
        check_is_fitted(self, "best_estimator_")
        values: FloatArray = self.best_estimator_.decision_function(X)
        return values

    @available_if(_has_probabilities)
    def predict_proba(self, X: Rows) -> FloatArray:
        """Return the probabilities of the best estimator, with ``probability=True`` in it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict_proba(X))


class TessellatedKernelRegressorCV(RegressorMixin, _Search):  # type: ignore[misc]
    """Regressor that learns its kernel, with C, ε and δ chosen by cross-validation.

    As `TessellatedKernelClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.spectahedron import TessellatedKernelRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = TessellatedKernelRegressorCV(C=(0.1, 1.0), cv=3).fit(X, y)
    >>> bool(search.best_score_ > 0.3)
    True
    """

    epsilon: Iterable[float] = parameter(
        "Half-widths of the tube to try, in the ``units`` of the estimator.",
        kind="sequence of float",
        default=(0.1,),
    )

    def _template(self) -> BaseEstimator:
        return TessellatedKernelRegressor() if self.estimator is None else self.estimator

    def _axes(self) -> dict[str, list[float]]:
        return {"delta": _values("delta", self.delta), "epsilon": _values("epsilon", self.epsilon)}

    def fit(self, X: Rows, y: ArrayLike) -> TessellatedKernelRegressorCV:
        """Choose C, ε and δ, then learn the kernel from all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Finite targets.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter makes no sense.
        """
        points, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._search(points, np.asarray(targets, dtype=np.float64), classifier=False)
        return self
