"""What classifiers answer from decision values: labels, and probabilities where asked for."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, fields
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import _get_feature_names, _num_features, check_is_fitted

from ..arrays import FloatArray, Index, Labels, Points, Rows, is_sparse
from ..checks import FLAG, check_sample_weight
from ..clock import time_limit
from ..exceptions import UnderfitWarning
from ..fit import FitResult, interrupted
from ..grams.precomputed import PrecomputedGrams
from ..parameters import fitted, parameter
from ..result import Status
from .base import Estimator
from .cells import cells_named
from .copies import FEW_VALUES, first_copies
from .folds import Fold, folds_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from .kernel import Data


# As many as scikit-learn's own calibration takes. More: each learns from more rows and is nearer
# the model that is calibrated, and is one more fit.
_FOLDS = 5

# by label, or "balanced"
ClassWeight: TypeAlias = "dict[str, float] | dict[int, float] | dict[float, float] | str | None"


# training points, or the Gram matrices that stand for them
Given: TypeAlias = "Points | PrecomputedGrams"
SCHEMES = ("ovr", "ovo")
# what has one value for all parts
_COMMON = ("classes_", "estimators_", "kernel_names_", "n_iter_")


def parts_of(codes: Index, n_classes: int, scheme: str) -> list[tuple[Index, Index]]:
    """Return rows and 0/1 labels of each subproblem, 1 for the class or the second of a pair."""
    everything = np.arange(codes.size)
    if scheme == "ovr":
        return [(everything, (codes == c).astype(np.intp)) for c in range(n_classes)]
    pairs = combinations(range(n_classes), 2)
    rows = [(np.flatnonzero((codes == a) | (codes == b)), b) for a, b in pairs]
    return [(at, (codes[at] == b).astype(np.intp)) for at, b in rows]


def alone(estimator: BaseEstimator, **changed: object) -> BaseEstimator:
    """Return an unfitted copy, to be fitted to a part of the rows or classes.

    A Ctrl-C in its fit is raised. `changed`: parameters to set, where the estimator has them.
    """
    changed |= {"probability": False, "class_weight": None, "warm_start": False}
    changed["on_interrupt"] = "raise"
    parameters = estimator.get_params(deep=False)
    copy: BaseEstimator = clone(estimator)
    return copy.set_params(**{k: v for k, v in changed.items() if k in parameters})


@dataclass(frozen=True, eq=False)
class PartsPredictor:
    """A decision value per class: of the one-vs-rest parts, or votes of the pairs.

    `estimators`: fitted to the parts; `rows`: the training samples of each; `n_classes`: without
    it, one part is one class. Votes have confidences as tie-breakers.
    """

    estimators: list[BaseEstimator]
    rows: list[Index]
    n_classes: int | None

    def __call__(self, X: Given) -> FloatArray:
        """Return the decision values, shape (n_new, n_classes)."""
        given = isinstance(X, PrecomputedGrams)
        parts = [
            part.decision_function(X[:, rows] if given else X)
            for part, rows in zip(self.estimators, self.rows, strict=True)
        ]
        values = np.column_stack(parts)
        if self.n_classes is None:
            return values
        votes: FloatArray = _ovr_decision_function(values > 0, values, self.n_classes)
        return votes


def fit_parts(estimator: BaseEstimator, data: Data, codes: Index) -> dict[str, Any]:
    """Fit a clone per subproblem and return a dict from attribute to their values."""
    n_classes, template = len(estimator.classes_), alone(estimator, multiclass="shared")
    parts = parts_of(codes, n_classes, estimator.multiclass)
    with warnings.catch_warnings():
        # all classes together are judged
        warnings.simplefilter("ignore", UnderfitWarning)
        fits = [
            clone(template).fit(
                take(data.given, rows, rows),
                labels,
                data.weight[rows],
                groups=None if data.groups is None else data.groups[rows],
            )
            for rows, labels in parts
        ]
    first = fits[0]
    attributes: dict[str, Any] = {
        field.name: [getattr(part, field.name) for part in fits]
        for field in fields(estimator)
        if not field.init and field.name not in _COMMON and hasattr(first, field.name)
    }
    attributes["estimators_"], attributes["n_iter_"] = fits, max(part.n_iter_ for part in fits)
    if hasattr(first, "kernel_names_"):
        attributes["kernel_names_"] = first.kernel_names_
    several = None if estimator.multiclass == "ovr" else n_classes
    attributes["_predictor"] = PartsPredictor(fits, [rows for rows, _ in parts], several)
    return attributes


def take(X: Given, rows: Index, columns: Index) -> Given:
    """Return some of the points; of Gram matrices their entries with the training columns."""
    return X[rows, columns] if isinstance(X, PrecomputedGrams) else X[rows]


def encode_classes(
    estimator: BaseEstimator, y: ArrayLike, weight: FloatArray
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Set ``classes_``; return the class of each sample and its weight times that of its class.

    Raises ValueError if fewer than two classes have samples of positive weight, or one has none.
    """
    check_sample_weight(weight, len(weight))
    with cells_named(y=y, allowed="text"):
        classes, codes = _sorted(y)
        check_classification_targets(y)
    estimator.classes_ = classes
    mass = np.bincount(codes, weights=weight, minlength=len(estimator.classes_))
    n_present = int((mass > 0.0).sum())
    if n_present < max(2, len(mass)):
        got = "1 class" if n_present == 1 else f"{n_present} classes"
        without = [
            f", class {label!r} without any" for label in estimator.classes_[mass == 0.0].tolist()
        ]
        raise ValueError(
            f"{type(estimator).__name__} needs samples of at least 2 classes, each with a positive "
            f"weight; got {got}{''.join(without)}"
        )
    return codes, weight * class_weights(estimator, estimator.classes_, codes, weight)[codes]


def _sorted(y: ArrayLike) -> tuple[Labels, npt.NDArray[np.intp]]:
    """Return the distinct labels in order, and the place of each sample's among them."""
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in np.asarray(y).tolist()})
        raise ValueError(
            f"y holds labels of types {' and '.join(kinds)}, which have no order: give all of "
            "them as text, or all as numbers"
        ) from None


def one_vs_rest(codes: npt.NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return ±1 targets, shape (1, n_samples) for two classes, else (n_classes, n_samples)."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[None, :]
    return np.where(codes[None, :] == np.arange(n_classes)[:, None], 1.0, -1.0)


def class_weights(
    estimator: BaseEstimator, classes: Labels, codes: npt.NDArray[np.intp], weight: FloatArray
) -> FloatArray:
    """Return the factor of each class; ``"balanced"`` counts samples by their weights."""
    setting = getattr(estimator, "class_weight", None)
    if setting is None:
        return np.ones(len(classes))
    if isinstance(setting, str) and setting == "balanced":
        mass = np.bincount(codes, weights=weight, minlength=len(classes))
        return np.asarray(weight.sum() / (len(classes) * mass))
    if not isinstance(setting, dict):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {setting!r}")
    unknown = [key for key in setting if key not in classes]
    if unknown:
        raise ValueError(f"class_weight has keys that are no classes: {unknown}")
    factors = np.array([float(setting.get(label, 1.0)) for label in classes])
    if not np.isfinite(factors).all() or (factors <= 0).any():
        raise ValueError(f"class_weight values must be finite and > 0, got {setting!r}")
    return factors


def column_of(X: object, given: object, argument: str, n_samples: int) -> Labels:
    """Return the values of a column of X, shape (n_samples,), or those given.

    Columns of arrays are called x0, x1 and so on, as by scikit-learn.
    Raises ValueError if there is no such column, or another number of values than samples.
    """
    if isinstance(given, str):
        features = _get_feature_names(X)
        names = [f"x{j}" for j in range(_num_features(X))] if features is None else list(features)
        if given not in names:
            near = get_close_matches(given, names, 1)
            listing = f"X has no names but {names[0]} to {names[-1]}"
            listing = listing if features is None else f"X has {', '.join(names)}"
            hint = f"did you mean {near[0]!r}?" if near and features is not None else listing
            raise ValueError(f"{argument} must name a column of X, got {given!r}: {hint}")
        X = X if features is not None or is_sparse(X) else np.asarray(X)
        given = _safe_indexing(X, given if features is not None else names.index(given), axis=1)
        given = given.toarray().ravel() if is_sparse(given) else given
    values = np.asarray(given)
    if values.shape != (n_samples,):
        raise ValueError(
            f"{argument} must be a column's name or one value a sample, shape ({n_samples},), got "
            f"shape {values.shape}"
        )
    return values


def group_codes(groups: object, X: object, n_samples: int) -> npt.NDArray[np.intp] | None:
    """Return a number for the group of each sample, ascending with the groups; None without any.

    `groups`: a name of a column of X, or a value a sample; a gap is a group of its own.
    """
    if groups is None:
        return None
    values = column_of(X, groups, "groups", n_samples)
    missing = np.array([each is None or (each == each) is not True for each in values.tolist()])
    codes = np.empty(n_samples, dtype=np.intp)
    known_groups, codes[~missing] = np.unique(values[~missing], return_inverse=True)
    codes[missing] = len(known_groups) + np.arange(np.count_nonzero(missing))
    return codes


def _is_asked(estimator: BaseEstimator) -> bool:
    if estimator.probability:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has probabilities only with probability=True, which takes "
        f"{_FOLDS} more fits, or one for each fold of a splitter"
    )


class DecidingClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Mixed in before an estimator: labels and probabilities from ``decision_function``."""

    probability: bool = parameter(
        "Whether to learn `predict_proba`: a sigmoid of the decision values (a softmax for "
        f"several classes), fitted to cross-validated ones. It takes {_FOLDS} more fits; an "
        "estimator with a parameter ``cv`` takes one for each fold of a splitter or a list.",
        default=False,
        rule=FLAG,
    )

    classes_: Labels = fitted("ndarray of shape (n_classes,)", "Labels.")
    calibration_: LogisticRegression = fitted(
        "LogisticRegression", "Maps decision values to probabilities, with ``probability=True``."
    )

    def _fit(self, data: Data, codes: Index) -> FitResult:
        """Fit all classes and, with ``probability=True``, the calibration.

        `codes` of shape (n_samples,): positions in ``classes_``.
        """
        if self.probability:
            refuse_rare(self.classes_, codes, data.weight)
        # one limit for the fit and those of the calibration together; a fit alone has its own
        with time_limit(self.max_time if self.probability else None):
            if getattr(self, "multiclass", "shared") == "shared" or len(self.classes_) == 2:
                fit = self._learn(data)
            else:
                fit = FitResult(fit_parts(self, data, codes))
            return with_probabilities(fit, self, data, codes)

    @abstractmethod
    def decision_function(self, X: Rows) -> FloatArray:
        """Return the decision values, shape (n_samples,) or (n_samples, n_classes)."""

    @available_if(_is_asked)
    def predict_proba(self, X: Rows) -> FloatArray:
        """Return the probability of each class, with ``probability=True``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; `predict` returns the most probable label. With
            ``class_weight`` they are those of rows that count so, as of a logistic regression.
        """
        check_is_fitted(self, "calibration_")
        values = self.decision_function(X)
        return np.asarray(self.calibration_.predict_proba(values.reshape(len(values), -1)))

    @available_if(_is_asked)
    def predict_log_proba(self, X: Rows) -> FloatArray:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Rows) -> Labels:
        """Return the predicted labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or cross-Gram matrices
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``: the most probable ones with ``probability=True``, else those
            of the largest decision value.
        """
        if self.probability and hasattr(self, "calibration_"):
            best: Labels = self.classes_[self.predict_proba(X).argmax(axis=1)]
            return best
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        labels: Labels = self.classes_[codes]
        return labels


def refuse_rare(labels: Labels, codes: Index, weight: FloatArray) -> None:
    """Raise ValueError where a class has one row, which no fold can hold out."""
    counts = np.bincount(codes[weight > 0])
    if counts.min() < 2:
        rare = labels.tolist()[int(counts.argmin())]
        raise ValueError(
            f"probability=True holds rows of each class out, and class {rare!r} has 1 row of "
            "positive weight: add rows, or set probability=False"
        )


def with_probabilities(
    fit: FitResult, estimator: DecidingClassifier, data: Data, codes: Index
) -> FitResult:
    """Return a fit, with ``calibration_`` added where ``probability=True``.

    After a Ctrl-C the model is whole but has no probabilities.
    """
    status = getattr(fit.attributes["result_"], "status", None)
    if fit.stopped is not None or status is Status.INTERRUPTED or not estimator.probability:
        return fit
    try:
        calibration = calibrate(estimator, data, codes)
    except KeyboardInterrupt as stop:
        return interrupted(fit.attributes, stop, estimator.on_interrupt)
    return FitResult({**fit.attributes, "calibration_": calibration})


def calibrate(estimator: DecidingClassifier, data: Data, codes: Index) -> LogisticRegression:
    """Return the map from decision values to probabilities, learned from held-out rows.

    `codes` of shape (n_samples,): places in the classes.
    """
    X, weight = data.given, data.weight
    rows, template = np.flatnonzero(weight > 0), alone(estimator)
    n_classes = len(estimator.classes_)
    values, held_out = [], []
    for learned, other in _calibration_folds(estimator, data, codes):
        train, out = rows[learned], rows[other]
        with warnings.catch_warnings():
            # the fit on all rows has said it already
            warnings.simplefilter("ignore")
            part = clone(template).fit(take(X, train, train), codes[train], weight[train])
            given = part.decision_function(take(X, out, train))
        values.append(given.reshape(len(out), -1))
        held_out.append(out)
    at = np.concatenate(held_out)
    if len(np.unique(codes[at])) < n_classes:
        raise ValueError(
            "probability=True needs validation rows of every class: give other folds as cv, or set "
            "probability=False"
        )
    order = np.argsort(at, kind="stable")
    at = at[order]
    return _sigmoid(np.concatenate(values)[order], codes[at], weight[at])


def _calibration_folds(estimator: DecidingClassifier, data: Data, codes: Index) -> list[Fold]:
    """Return folds of rows of positive weight: of a splitter or list ``cv``, else stratified.

    Copies of a row are held out with it, where no splitter says how. A fold learns from every
    class: ValueError where one cannot.
    """
    X, weight, groups = data.given, data.weight, data.groups
    rows = np.flatnonzero(weight > 0)
    cv, counts = getattr(estimator, "cv", None), np.bincount(codes[rows])
    if cv is None or isinstance(cv, numbers.Integral):
        n_folds = min(_FOLDS, int(counts.min()))
        if groups is not None:
            return _whole_groups(n_folds, codes[rows], groups[rows])
        copies = _copies(X)[rows]
        if len(np.unique(copies)) < len(rows):
            # a copy in another fold would tell the class; of too few there is no other way
            with suppress(ValueError):
                return _whole_groups(n_folds, codes[rows], copies)
        return list(StratifiedKFold(n_folds).split(rows, codes[rows]))
    labels = estimator.classes_[codes]
    folds = folds_of(cv, X, labels, weight, groups, classifier=True)
    for k, (train, _) in enumerate(folds):
        missing = np.flatnonzero(np.bincount(codes[rows[train]], minlength=len(counts)) == 0)
        if len(missing):
            raise ValueError(
                f"probability=True learns from every class in each fold, and fold {k + 1} of cv "
                f"has no row of class {estimator.classes_.tolist()[missing[0]]!r} to learn from: "
                "give other folds, or set probability=False"
            )
    return folds


def _copies(X: Given) -> Index:
    """Return a number for each group of copies, all different where new points will equal these.

    They will where columns of few values allow so few combinations that most points recur.
    """
    copies = first_copies(X)
    if isinstance(X, PrecomputedGrams) or is_sparse(X) or 2 * len(np.unique(copies)) > len(copies):
        return copies
    few = all(len(np.unique(column)) <= FEW_VALUES for column in X.T)
    return np.arange(len(copies)) if few else copies


def _whole_groups(n_folds: int, codes: Index, groups: Index) -> list[tuple[Index, Index]]:
    """Return folds that hold out whole groups, and learn from every class."""
    n_folds = min(n_folds, len(np.unique(groups)))
    folds = [] if n_folds < 2 else StratifiedGroupKFold(n_folds).split(codes, codes, groups)
    splits = [split for split in folds if len(split[1])]
    n_classes = len(np.unique(codes))
    if not splits or any(len(np.unique(codes[train])) < n_classes for train, _ in splits):
        raise ValueError(
            "probability=True leaves out whole groups, and a class has all of its rows in one "
            "group: pass more groups, or set probability=False"
        )
    return splits


def _sigmoid(values: FloatArray, codes: Index, weight: FloatArray) -> LogisticRegression:
    """Return the logistic regression of classes on decision values in their own units.

    Its penalty, that of scikit-learn's default, keeps probabilities of separated classes from 0
    and 1; it is of values of spread one and weights of mean one.
    """
    spread = float(values.std()) or 1.0
    model = LogisticRegression().fit(values / spread, codes, weight / weight.mean())
    model.coef_ = model.coef_ / spread
    if len(model.coef_) == 1 and model.coef_[0, 0] < 0.0:
        # held-out rows say nothing of the classes: a value then says no more than their shares do
        shares = np.bincount(codes, weights=weight)
        model.coef_, model.intercept_ = np.zeros((1, 1)), np.log(shares[1:] / shares[0])
    return model
