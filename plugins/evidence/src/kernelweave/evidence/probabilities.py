"""What a calibrated classifier answers: logits, probabilities, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels, Rows
from scipy.special import log_softmax, softmax

from .large.dask_parts import by_parts
from .tasks import Classification


class CalibratedClasses:
    """Mixed into classifiers whose decision values held-out rows calibrate."""

    if TYPE_CHECKING:
        classes_: Labels
        _task: Classification

        def _values(self, X: Rows) -> FloatArray:
            """Return decision values, shape (n_samples, n_outputs); one output for two classes."""

    def _logits(self, X: Rows) -> FloatArray:
        values = self._values(X)
        return self._task.answers(values)

    @by_parts
    def decision_function(self, X: Rows) -> FloatArray:
        """Return the logits of the classes, calibrated on held-out rows.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_columns)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive means ``classes_[1]`` where there are two classes.
        """
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    @by_parts
    def predict_proba(self, X: Rows) -> FloatArray:
        """Return the probability of each class, calibrated on held-out rows.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_columns)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        return np.asarray(softmax(self._logits(X), axis=1))

    @by_parts
    def predict_log_proba(self, X: Rows) -> FloatArray:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_columns)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(log_softmax(self._logits(X), axis=1))

    @by_parts
    def predict(self, X: Rows) -> Labels:
        """Return the most probable labels.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_columns)

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        best = self._logits(X).argmax(axis=1)
        labels: Labels = self.classes_[best]
        return labels
