"""Classification by vector-valued regression on one-hot targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.estimators.machine import class_weights
from kernelweave.kernels_core.kernels import as_grams
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from .machine import MatrixValuedKernelMachine

FloatArray = npt.NDArray[np.float64]


class MatrixValuedKernelClassifier(ClassifierMixin, MatrixValuedKernelMachine):  # type: ignore[misc]
    """Classifier by vector-valued regression on one-hot targets (V, section 4).

    The output kernel then says which classes look alike.

    Parameters
    ----------
    kernels : None, KernelDictionary, GaussianGrid, list of Kernel, dict or "precomputed"
        As for `MatrixValuedKernelRegressor`, like all but ``class_weight``.
    p, penalty, mu, groups, lam, tau, rho, learn_input, learn_output : object
        The problem.
    algorithm, algorithm_params, dtype, tol, max_iter, max_time : object
        How to solve it.
    memory_limit, on_interrupt, random_state, verbose : object
        Limits and manners.
    center : bool, default=True
        Whether the class frequencies are the prediction far from all samples, instead of 0.
    class_weight : dict or "balanced", optional
        Multiplies the sample weights per class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in the order of ``output_kernel_``.
    weights_, output_kernel_, dual_coef_, intercept_, kernel_, kernel_names_ : object
        As for `MatrixValuedKernelRegressor`.
    result_, certificate_, dual_gap_, n_iter_ : object
        Likewise.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.vv_rkhs import MatrixValuedKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MatrixValuedKernelClassifier(tol=1e-2).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 1.0,
        penalty: Any = "lp",
        mu: float = 0.5,
        groups: Any = None,
        lam: float = 1e-3,
        tau: float | None = None,
        rho: float = 1.0,
        learn_input: bool = True,
        learn_output: bool = True,
        algorithm: str = "vv-spg",
        algorithm_params: dict[str, Any] | None = None,
        center: bool = True,
        class_weight: Any = None,
        dtype: str = "float64",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: float | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernels,
            p=p,
            penalty=penalty,
            mu=mu,
            groups=groups,
            lam=lam,
            tau=tau,
            rho=rho,
            learn_input=learn_input,
            learn_output=learn_output,
            algorithm=algorithm,
            algorithm_params=algorithm_params,
            center=center,
            dtype=dtype,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            memory_limit=memory_limit,
            on_interrupt=on_interrupt,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MatrixValuedKernelClassifier:
        """Learn the kernel and the functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or precomputed Gram matrices
            Training points.
        y : array-like of shape (n_samples,)
            Labels, two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the squared error per sample.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        if self._precomputed:
            y = column_or_1d(y)
            n = as_grams(X).shape[1]
            check_consistent_length(np.empty(n), y)
            self.n_features_in_ = n
        else:
            X, y = validate_data(self, X, y, dtype=np.float64)
            n = X.shape[0]
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64)
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight must be finite and >= 0")
        self.classes_, codes = np.unique(y, return_inverse=True)
        mass = np.bincount(codes, weights=weight, minlength=len(self.classes_))
        if len(mass) < 2 or (mass == 0).any():
            without = [
                f"class {label!r} without any" for label in self.classes_[mass == 0].tolist()
            ]
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, each with a positive "
                f"weight; got {', '.join(without) or 'one class'}"
            )
        weight = weight * class_weights(self, self.classes_, codes, weight)[codes]
        self._fit_arrays(X, np.eye(len(self.classes_))[codes], weight)
        return self

    def decision_function(self, X: Any) -> FloatArray:
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

    def predict(self, X: Any) -> npt.NDArray[Any]:
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
        labels: npt.NDArray[Any] = self.classes_[codes]
        return labels
