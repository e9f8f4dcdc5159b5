"""The base of every estimator: validate, canonicalise, run, store, predict.

A subclass says how to make the `Problem` from canonical samples and which algorithm to run.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from ..checks import ITERATIONS, NONNEGATIVE, SECONDS, one_of
from ..clock import time_limit
from ..config import config_context
from ..driver import solve
from ..magnitude import check_decision
from ..memory import limit_bytes
from ..parameters import fitted, parameter
from ..problem import Problem
from ..result import Certificate, Result, SolveInterrupted, Status
from .base import Estimator
from .samples import Samples, merge_samples

FloatArray = npt.NDArray[np.float64]

_LOWER_PROOF = "a feasible dual point and a proven bound of the maximum over the kernels"
_UPPER_PROOF = "the primal value of the learner at the learned kernel"
_LATE_SECONDS = 1.0


class KernelMachine(Estimator):
    """Shared by classifiers and regressors: from canonical samples to a fitted predictor."""

    tol: float = parameter("Relative certified gap to reach.", default=1e-3, rule=NONNEGATIVE)
    max_iter: int = parameter("Outer iterations at most.", default=1000, rule=ITERATIONS)
    max_time: float | None = parameter("Seconds at most.", default=None, rule=SECONDS)
    memory_limit: int | None = parameter("Bytes that the fit may allocate.", default=None)
    on_interrupt: str = parameter(
        "What Ctrl-C does after the best iterate is stored.",
        default="raise",
        rule=one_of("raise", "return"),
    )
    random_state: int | np.random.RandomState | None = parameter(
        "The only source of randomness.", kind="int or RandomState", default=None
    )
    verbose: int = parameter("Positive: a line per iteration.", default=0)

    kernel_: Any = fitted("Kernel", "The learned kernel, on features as given.")
    dual_coef_: FloatArray = fitted(
        "ndarray of shape (n_samples,) or (n_tasks, n_samples)", "Signed dual coefficients."
    )
    intercept_: Any = fitted("float or ndarray of shape (n_tasks,)", "Offsets.")
    support_: npt.NDArray[np.intp] = fitted(
        "ndarray of int", "Samples with a coefficient that is not 0: the support vectors."
    )
    result_: Result = fitted("Result", "Bounds, gap, status and history.")
    certificate_: Certificate = fitted("Certificate", "Both bounds and where they come from.")
    dual_gap_: float = fitted("float", "Upper minus lower bound.")
    n_iter_: int = fitted("int", "Outer iterations.")

    @abstractmethod
    def _make_problem(self, samples: Samples) -> Problem:
        """Return the problem to solve; may fit a preprocessing of X first."""

    @abstractmethod
    def _algorithm(self) -> tuple[str, dict[str, Any]]:
        """Return the algorithm's name and its parameters."""

    @abstractmethod
    def _make_kernel(self, problem: Problem, parameters: Any) -> Any:
        """Return the learned kernel, a callable on rows of X as the user gives them."""

    def _learn(self, samples: Samples) -> None:
        problem = self._make_problem(samples)
        name, params = self._algorithm()
        try:
            result = solve(
                problem,
                name,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                random_state=self.random_state,
                verbose=self.verbose,
                on_interrupt=self.on_interrupt,
                **params,
            )
        except SolveInterrupted as stop:
            self._store(problem, stop.result, samples)
            raise
        self._store(problem, result, samples)

    def _store(self, problem: Problem, result: Result, samples: Samples) -> None:
        solution = result.solution
        if solution is None:
            solution = self._refit(problem, result)
        self.result_ = result
        self.dual_gap_ = result.dual_gap
        # making the first iterate counts, as in scikit-learn
        self.n_iter_ = max(1, result.n_iter)
        self.certificate_ = Certificate(
            result.lower_bound, result.upper_bound, _LOWER_PROOF, _UPPER_PROOF
        )
        self.kernel_ = self._make_kernel(problem, result.parameters)
        u = np.atleast_2d(solution.dual_coef).astype(np.float64)
        used = np.flatnonzero(u.any(axis=0))
        self._rows = samples.X[used]
        self._coef = u[:, used]
        spread = samples.spread(u)
        intercept = np.atleast_1d(np.asarray(solution.intercept, dtype=np.float64))
        self.support_ = np.flatnonzero(spread.any(axis=0))
        self.dual_coef_ = spread if len(spread) > 1 else spread[0]
        self.intercept_ = intercept if len(intercept) > 1 else float(intercept[0])

    def _refit(self, problem: Problem, result: Result) -> Any:
        """Solve the learner at the best kernel, for algorithms that keep no solution.

        After a limit or a Ctrl-C it has a second, and its best point is good enough.
        """
        hurry = result.status in (Status.MAX_TIME, Status.INTERRUPTED)
        with time_limit(_LATE_SECONDS if hurry else None):
            K = problem.family.gram(problem.X, result.parameters)
            return problem.learner.solve(
                K, problem.targets, sample_weight=problem.sample_weight, tol=1e-4
            )

    def _decision(self, X: Any) -> FloatArray:
        """Return K(X, X_support) · coefficients + intercept, shape (n_samples, n_tasks).

        The cross Gram is formed in blocks of rows that respect the memory limit.
        """
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        intercept = np.atleast_1d(np.asarray(self.intercept_))
        if len(self._rows) == 0:
            return np.tile(intercept, (X.shape[0], 1))
        per_row = 8 * 8 * max(1, len(self._rows))
        block = max(1, min(X.shape[0], 4096, limit_bytes() // per_row))
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                self.kernel_(X[start : start + block], self._rows) @ self._coef.T
                for start in range(0, X.shape[0], block)
            ]
        values: FloatArray = np.vstack(parts) + intercept
        check_decision(values, X)
        return values

    def _run(self, X: FloatArray, targets: FloatArray, weight: FloatArray) -> None:
        samples = merge_samples(X, targets, weight)
        with config_context(memory_limit=self.memory_limit):
            self._learn(samples)


class KernelMachineRegressor(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Base of the regressors."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelMachineRegressor:
        """Learn the kernel and the regression function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Finite targets.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C per sample; a weight of 0 equals leaving the sample out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self._run(X, np.asarray(y, dtype=np.float64)[None, :], weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets.
        """
        return self._decision(X)[:, 0]


class KernelMachineClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Base of the classifiers; several classes share one kernel, one task per class."""

    class_weight: Any = parameter(
        "Multiplies C per class.", kind='dict or "balanced"', default=None
    )
    classes_: npt.NDArray[Any] = fitted("ndarray of shape (n_classes,)", "Labels.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelMachineClassifier:
        """Learn the kernel and the decision functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features.
        y : array-like of shape (n_samples,)
            Labels of any kind, two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C per sample; a weight of 0 equals leaving the sample out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight must be finite and >= 0")
        self.classes_, codes = np.unique(y, return_inverse=True)
        present = np.unique(codes[weight > 0])
        if len(self.classes_) < 2 or len(present) < len(self.classes_):
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, each with a "
                f"positive weight; got 1 class"
                if len(present) < 2
                else f"class {self.classes_[np.setdiff1d(np.arange(len(self.classes_)), present)]}"
                f" has no sample of positive weight: drop it from y"
            )
        weight = weight * class_weights(self, self.classes_, codes, weight)[codes]
        self._fit_codes(X, codes, weight)
        return self

    def _fit_codes(self, X: FloatArray, codes: npt.NDArray[np.intp], weight: FloatArray) -> None:
        self._run(X, one_vs_rest(codes, len(self.classes_)), weight)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to judge.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive means ``classes_[1]`` where there are two classes.
        """
        values = self._decision(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predicted labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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


def one_vs_rest(codes: npt.NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return ±1 targets, shape (1, n_samples) for two classes, else (n_classes, n_samples)."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[None, :]
    return np.where(codes[None, :] == np.arange(n_classes)[:, None], 1.0, -1.0)


def class_weights(
    estimator: Any,
    classes: npt.NDArray[Any],
    codes: npt.NDArray[np.intp],
    weight: FloatArray,
) -> FloatArray:
    """Return the factor of each class; ``"balanced"`` counts samples by their weights."""
    setting = getattr(estimator, "class_weight", None)
    if setting is None:
        return np.ones(len(classes))
    if isinstance(setting, str):
        if setting != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {setting!r}")
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
