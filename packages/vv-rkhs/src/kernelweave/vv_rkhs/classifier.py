"""Classification by vector-valued regression on one-hot targets."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels, Rows
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.estimators.base import assigned_last
from kernelweave.kernels_core.estimators.classes import (
    DecidingClassifier,
    refuse_rare,
    with_probabilities,
)
from kernelweave.kernels_core.estimators.labels import ClassWeight, encode_classes, group_codes
from kernelweave.kernels_core.estimators.parts import Given
from kernelweave.kernels_core.estimators.underfit import warn_if_underfit
from kernelweave.kernels_core.estimators.weights import is_precomputed
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.kernels_core.parameters import fitted, parameter
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from .fitting import SeparableKernelEstimator, learn_separable


class MatrixValuedKernelClassifier(DecidingClassifier, SeparableKernelEstimator):
    """Classifier by vector-valued regression on one-hot targets (V, section 4).

    The output kernel then says which classes look alike.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.vv_rkhs import MatrixValuedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MatrixValuedKernelClassifier(learn_output=False).fit(X, y).score(X, y) > 0.95
    True
    """

    center: bool = True
    class_weight: ClassWeight = parameter(
        "Multiplies the sample weights per class.", kind='dict or "balanced"', default=None
    )

    classes_: Labels = fitted(
        "ndarray of shape (n_classes,)", "Labels, in the order of ``output_kernel_``."
    )

    def fit(
        self,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: str | ArrayLike | None = None,
    ) -> MatrixValuedKernelClassifier:
        """Learn the kernel and the functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or precomputed Gram matrices
            Training points.
        y : array-like of shape (n_samples,)
            Labels, two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the squared error per sample.
        groups : str or array-like of shape (n_samples,), optional
            The name of a column of X, or which samples go together: where samples are left out for
            λ or for probabilities, whole groups are.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        with assigned_last(self) as draft:
            table, is_given = X, is_precomputed(self)
            if is_given:
                labels = column_or_1d(y)
                samples: Given = PrecomputedGrams.of(X)
                check_consistent_length(samples, labels)
                draft.n_features_in_ = len(labels)
            else:
                samples, labels = validate_data(draft, X, y, dtype=np.float64)
            n = len(labels)
            weight = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64)
            codes, weight = encode_classes(draft, labels, weight)
            if self.probability:
                refuse_rare(draft.classes_, codes, weight)
            # all fits together; one alone looks at the clock itself
            with time_limit(self.max_time if self.probability else None):
                targets, parts = np.eye(len(draft.classes_))[codes], group_codes(groups, table, n)
                fit = learn_separable(draft, samples, targets, weight, labels, parts)
                fit = with_probabilities(fit, draft, samples, codes, weight, parts)
            draft.__dict__.update(fit.attributes)
            if fit.stopped is None:
                warn_if_underfit(draft, samples if is_given else table, codes, weight)
        if fit.stopped is not None:
            raise fit.stopped
        return self

    def decision_function(self, X: Rows) -> FloatArray:
        """Return the decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or cross-Gram matrices
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Outputs per class; for two classes the second minus the first.
        """
        values = self._values(X)
        difference: FloatArray = values[:, 1] - values[:, 0]
        return difference if values.shape[1] == 2 else values
