"""Regression of several outputs with learned input and output kernels, and classification by it."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, Rows
from kernelweave.kernels_core.checks import one_of
from kernelweave.kernels_core.estimators.cells import cells_named, read_weights
from kernelweave.kernels_core.estimators.classes import (
    ClassWeight,
    DecidingClassifier,
    encode_classes,
    group_codes,
)
from kernelweave.kernels_core.estimators.kernel import Data
from kernelweave.kernels_core.estimators.weights import is_precomputed
from kernelweave.kernels_core.parameters import fitted, parameter
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._set_output import ADAPTERS_MANAGER
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from .fitting import SeparableKernelEstimator
from .training import read_regression, square_grams

_CONTAINERS = ADAPTERS_MANAGER.adapters


class MatrixValuedKernelRegressor(MultiOutputMixin, RegressorMixin, SeparableKernelEstimator):  # type: ignore[misc]
    """Regressor for several outputs that chooses its kernel and can learn how outputs are related.

    min over f, η, L of (1/l) Σ ‖f(xᵢ) − yᵢ‖² + λ Σ ‖fⱼ‖²/ηⱼ + λω(η), f = Σ fⱼ, fⱼ in the space of
    the matrix-valued kernel kⱼ L, L ⪰ 0, tr L ≤ τ. With one kernel and L = I it is
    ``KernelRidge(alpha=lam * n_samples)``.

    ``sample_weight`` multiplies the squared error per sample, or with shape (n_samples, n_outputs)
    per cell; l is their sum, per cell over the number of outputs. At a given λ an output of larger
    numbers weighs more, in the squared error and in tr L; ``lam="loo"`` brings all to one scale.

    By default λ and the rule for the weights η are chosen by the leave-one-out error, because at a
    fixed λ the objective always prefers the narrowest of several widths, and L = (τ/n) I, because
    learning L hardly improves predictions. Such problems are convex, and every fit has a proof.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import RBF
    >>> from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
    >>> X = np.linspace(0, 1, 20)[:, None] * [1.0, 0.0]
    >>> X[:, 1] = X[::-1, 0] ** 2 % 0.3
    >>> Y = np.column_stack([np.sin(6 * X[:, 0]), 2 * np.sin(6 * X[:, 0])])
    >>> kernels = [RBF(gamma=10.0).on([0]), RBF(gamma=10.0).on([1])]
    >>> model = MatrixValuedKernelRegressor(kernels).fit(X, Y)
    >>> model.selection_.rule, model.weights_
    ('kernel 0', array([1., 0.]))
    >>> model.predict(X[:3]).shape
    (3, 2)
    """

    lam: float | str = "loo"
    learn_output: bool = False
    missing: str = parameter(
        "What to do with NaN in y: raise an error, or leave these cells out of the loss. "
        'Missing cells that differ between outputs need ``algorithm="vv-spg"``; ``lam="loo"`` '
        "then uses the six most frequent patterns.",
        default="raise",
        rule=one_of("raise", "skip"),
    )

    output_names_: list[str] | None = fitted(
        "list of str or None", "Columns of y, where it was a DataFrame: predictions have them too."
    )

    def _read_data(
        self, X: Rows, y: Any, sample_weight: ArrayLike | None, groups: object
    ) -> tuple[Data, FloatArray]:
        names = getattr(y, "columns", None)
        self._columns, self._library = names, type(y).__module__.partition(".")[0]
        self.output_names_ = None if names is None else [str(name) for name in names]
        data, self._single = read_regression(self, X, y, sample_weight, groups)
        return data, data.targets.T

    def predict(self, X: Rows) -> Any:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or cross-Gram matrices
            Points to predict.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples,) or (n_samples, n_outputs)
            As many columns as y had; a DataFrame with its names where y was one.
        """
        values = self._values(X)
        if self._columns is not None and self._library in _CONTAINERS:
            adapter = _CONTAINERS[self._library]
            return adapter.create_container(values, X, columns=self._columns)
        return values[:, 0] if self._single else values

    def score(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of the outputs' R².

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or cross-Gram matrices
            Points.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; missing ones are left out with ``missing="skip"``.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            1 for a perfect prediction, 0 for one no better than the mean.
        """
        from sklearn.metrics import r2_score

        values, truth = self._values(X), np.asarray(y, dtype=np.float64)
        if self.missing != "skip" or not np.isnan(truth).any():
            return float(r2_score(truth, self.predict(X), sample_weight=sample_weight))
        truth = truth.reshape(values.shape)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        scores = [
            r2_score(column[there], each[there], sample_weight=weight[there])
            for column, each, there in zip(truth.T, values.T, ~np.isnan(truth.T), strict=True)
        ]
        return float(np.mean(scores))


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

    def _read_data(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None, groups: object
    ) -> tuple[Data, Index]:
        grams = None
        if is_precomputed(self):
            labels, grams = column_or_1d(y), square_grams(X)
            check_consistent_length(grams, labels)
            self.n_features_in_ = n = len(labels)
            points = np.arange(n, dtype=np.float64)[:, None]
        else:
            with cells_named(X, y, allowed="text"):
                points, labels = validate_data(self, X, y, dtype=np.float64)
        weight = read_weights(sample_weight, points)
        codes, weight = encode_classes(self, labels, weight)
        targets, parts = np.eye(len(self.classes_))[codes].T, group_codes(groups, X, len(labels))
        return Data(points, targets, weight, grams, parts), codes

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
