"""What classifiers answer from decision values: labels, and probabilities where asked for."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..arrays import FloatArray, Index, Labels, Rows
from ..checks import FLAG
from ..fit import FitResult
from ..parameters import fitted, parameter
from .base import Estimator
from .parts import Given, alone, take

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# As many as scikit-learn's own calibration takes. More: each learns from more rows and is nearer
# the model that is calibrated, and is one more fit.
_FOLDS = 5


def _is_asked(estimator: BaseEstimator) -> bool:
    if estimator.probability:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} learns probabilities where probability=True, which takes "
        f"{_FOLDS} more fits"
    )


class DecidingClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Mixed in before a machine: labels and probabilities from ``decision_function``."""

    probability: bool = parameter(
        "Whether to learn `predict_proba` too: a sigmoid of the decision values, of several "
        f"classes their softmax, fitted to rows that {_FOLDS} more fits hold out.",
        default=False,
        rule=FLAG,
    )

    classes_: Labels = fitted("ndarray of shape (n_classes,)", "Labels.")
    calibration_: LogisticRegression = fitted(
        "LogisticRegression", "From decision values to probabilities, with ``probability=True``."
    )

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
    """Raise ValueError where a class has one row, which no fold can hold out.

    `labels`: of the classes; `codes` of shape (n_samples,): places in them; `weight` likewise.
    """
    counts = np.bincount(codes[weight > 0])
    if counts.min() < 2:
        rare = labels.tolist()[int(counts.argmin())]
        raise ValueError(
            f"probability=True holds rows of each class out, and class {rare!r} has 1 row of "
            "positive weight: add rows, or set probability=False"
        )


def with_probabilities(
    fit: FitResult,
    estimator: DecidingClassifier,
    X: Given,
    codes: Index,
    weight: FloatArray,
    groups: Index | None = None,
) -> FitResult:
    """Return a fit with what makes probabilities, where they are asked for.

    After a Ctrl-C what is learned is whole, but for its probabilities. Arguments as `calibrate`'s.
    """
    if fit.stopped is not None or not estimator.probability:
        return fit
    try:
        calibration = calibrate(estimator, X, codes, weight, groups)
    except KeyboardInterrupt as stop:
        return FitResult(fit.attributes, stop)
    return FitResult({**fit.attributes, "calibration_": calibration})


def calibrate(
    estimator: DecidingClassifier,
    X: Given,
    codes: Index,
    weight: FloatArray,
    groups: Index | None = None,
) -> LogisticRegression:
    """Return what makes probabilities of decision values, by fits without a part of the rows.

    `estimator`: its parameters are read; `X`: training points; `codes` of shape (n_samples,):
    places in the classes; `weight` likewise: sample weights, those of the classes included;
    `groups` likewise: what is held out together.
    """
    rows = np.flatnonzero(weight > 0)
    counts = np.bincount(codes[rows])
    template = alone(estimator)
    values = np.empty((len(codes), len(counts) if len(counts) > 2 else 1))
    n_folds = min(_FOLDS, int(counts.min()))
    splits = StratifiedKFold(n_folds).split(rows, codes[rows])
    if groups is not None:
        splits = _whole_groups(n_folds, codes[rows], groups[rows])
    for learned, held_out in splits:
        own, other = rows[learned], rows[held_out]
        with warnings.catch_warnings():
            # the fit on all rows has said it already
            warnings.simplefilter("ignore")
            part = clone(template).fit(take(X, own, own), codes[own], weight[own])
            given = part.decision_function(take(X, other, own))
        values[other] = given.reshape(len(other), -1)
    return _sigmoid(values[rows], codes[rows], weight[rows])


def _whole_groups(n_folds: int, codes: Index, groups: Index) -> list[tuple[Index, Index]]:
    """Return folds that hold out whole groups, and learn from every class."""
    n_folds = min(n_folds, len(np.unique(groups)))
    folds = [] if n_folds < 2 else StratifiedGroupKFold(n_folds).split(codes, codes, groups)
    splits = [split for split in folds if len(split[1])]
    n_classes = len(np.unique(codes))
    if not splits or any(len(np.unique(codes[own])) < n_classes for own, _ in splits):
        raise ValueError(
            "probability=True holds whole groups out, and one class or more has rows in one group "
            "alone: give more groups, or set probability=False"
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
