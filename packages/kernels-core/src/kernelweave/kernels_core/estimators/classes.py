"""What classifiers answer from decision values: labels, and probabilities where asked for."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..arrays import FloatArray, Index, Labels, Rows
from ..checks import FLAG
from ..parameters import fitted, parameter
from .base import Estimator
from .parts import Given, take

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

    def _for_parts(self) -> dict[str, object]:
        """Return the parameters that fits of a part of the rows or classes have otherwise."""
        return {}

    def _calibrate(self, X: Given, codes: Index, weight: FloatArray, counted: FloatArray) -> None:
        """Set ``calibration_`` by fits without a part of the rows.

        `codes`: places in ``classes_``; `weight` and `counted`: sample weights with and without
        those of the classes.
        """
        self.__dict__.pop("calibration_", None)
        if not self.probability:
            return
        rows = np.flatnonzero(counted > 0)
        counts = np.bincount(codes[rows])
        if counts.min() < 2:
            rare = self.classes_.tolist()[int(counts.argmin())]
            raise ValueError(
                f"probability=True holds rows of each class out, and class {rare!r} has 1 row of "
                "positive weight: add rows, or set probability=False"
            )
        known = self.get_params(deep=False)
        alone: dict[str, object] = {"probability": False, "class_weight": None, "warm_start": False}
        alone |= self._for_parts()
        template = clone(self).set_params(**{k: v for k, v in alone.items() if k in known})
        values = np.empty((len(codes), len(counts) if len(counts) > 2 else 1))
        folds = StratifiedKFold(min(_FOLDS, int(counts.min())))
        for learned, held_out in folds.split(rows, codes[rows]):
            own, other = rows[learned], rows[held_out]
            with warnings.catch_warnings():
                # the fit on all rows has said it already
                warnings.simplefilter("ignore")
                part = clone(template).fit(take(X, own, own), codes[own], weight[own])
                given = part.decision_function(take(X, other, own))
            values[other] = given.reshape(len(other), -1)
        self.calibration_ = _sigmoid(values[rows], codes[rows], counted[rows])

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
            Columns in the order of ``classes_``. The most probable label need not be that of
            `predict`, which decides by the sign, as with scikit-learn's SVC.
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
            Labels from ``classes_``.
        """
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        labels: Labels = self.classes_[codes]
        return labels


def _sigmoid(values: FloatArray, codes: Index, weight: FloatArray) -> LogisticRegression:
    """Return the logistic regression of classes on decision values in their own units.

    Its penalty, that of scikit-learn's default, keeps probabilities of separated classes from 0
    and 1; it is of values of spread one and weights of mean one.
    """
    spread = float(values.std()) or 1.0
    model = LogisticRegression().fit(values / spread, codes, weight / weight.mean())
    model.coef_ = model.coef_ / spread
    return model
