"""The base of every estimator: validate, canonicalise, run, store, predict.

Every fit takes the same steps: read points or Gram matrices, encode targets, fit the parts of
several classes or merge the samples, scale, solve, store. A subclass says how to make the
`Problem` from canonical samples and which algorithm to run.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .. import interrupts
from ..arrays import FloatArray, Labels, Points, RealArray, Rows, is_sparse
from ..checks import (
    COUNT,
    NONNEGATIVE,
    ON_INTERRUPT,
    SECONDS,
    check_decision,
    integer,
    one_of,
)
from ..clock import LATE_SECONDS, time_limit
from ..config import blas_threads, config_context
from ..driver import solve
from ..formula.learner import Solution
from ..formula.problem import Problem
from ..grams.precomputed import PrecomputedGrams, as_grams, check_once
from ..grams.psd import refuse_indefinite
from ..kernels.scaled import Scaling
from ..memory import limit_bytes
from ..parameters import fitted, parameter
from ..result import Certificate, Result, SolveInterrupted, Status
from ..settings import Settings
from .base import Estimator, assigned_last
from .classes import DecidingClassifier, calibrate, refuse_rare
from .labels import ClassWeight, encode_classes, one_vs_rest
from .parts import SCHEMES, fit_parts
from .samples import Samples, like, merge_samples
from .underfit import warn_if_underfit

if TYPE_CHECKING:
    from sklearn.utils import Tags


_LOWER_PROOF = "a feasible dual point and a proven bound of the maximum over the kernels"
_UPPER_PROOF = "the primal value of the learner at the learned kernel"


class KernelMachine(Estimator):
    """Shared by classifiers and regressors: from canonical samples to a fitted predictor."""

    tol: float = parameter("Relative certified gap to reach.", default=1e-3, rule=NONNEGATIVE)
    max_iter: int = parameter("Outer iterations at most.", default=1000, rule=COUNT)
    max_time: float | None = parameter("Seconds at most.", default=None, rule=SECONDS)
    memory_limit: int | None = parameter("Bytes that the fit may allocate.", default=None)
    on_interrupt: str = parameter(
        "What Ctrl-C does after the best iterate is stored.",
        default="raise",
        rule=ON_INTERRUPT,
    )
    random_state: int | np.random.RandomState | None = parameter(
        "The only source of randomness.", kind="int or RandomState", default=None
    )
    verbose: int = parameter("Positive: a line per iteration.", default=0, rule=integer())

    kernel_: Any = fitted(
        "Kernel",
        "The learned kernel, on features as given; of a table that views read, on its numbers.",
    )
    dual_coef_: FloatArray = fitted(
        "ndarray of shape (n_samples,) or (n_tasks, n_samples)", "Signed dual coefficients."
    )
    intercept_: float | FloatArray = fitted("float or ndarray of shape (n_tasks,)", "Offsets.")
    support_: npt.NDArray[np.intp] = fitted(
        "ndarray of int", "Samples with a coefficient that is not 0: the support vectors."
    )
    result_: Result = fitted("Result", "Bounds, gap, status and history.")
    certificate_: Certificate = fitted("Certificate", "Both bounds and where they come from.")
    dual_gap_: float = fitted("float", "Upper minus lower bound.")
    n_iter_: int = fitted("int", "Outer iterations.")

    # which check refuses indefinite precomputed matrices; None leaves it to the algorithm
    _definite: ClassVar[str | None] = "each matrix"

    @property
    def _is_precomputed(self) -> bool:
        """Whether X holds Gram matrices."""
        return False

    @property
    def _accepts_sparse(self) -> bool:
        """Whether X may be a scipy sparse matrix."""
        return False

    @abstractmethod
    def _problem(self, samples: Samples) -> Problem:
        """Return the problem to solve."""

    @abstractmethod
    def _algorithm(
        self, problem: Problem, samples: Samples
    ) -> tuple[str | Settings, dict[str, Any]]:
        """Return the algorithm and what changes its settings."""

    def _limits(self) -> tuple[float, int]:
        """Return the relative gap and the iterations that the driver stops at."""
        return self.tol, self.max_iter

    def _scaling(self, samples: Samples) -> Scaling | None:
        """Return how features are scaled before the kernels see them, if they are."""
        return None

    def _kernel(self, problem: Problem, parameters: Any) -> Any:
        """Return the learned kernel, on features as the problem has them."""
        return problem.family.kernel(parameters)

    def _certify(self, problem: Problem, result: Result) -> Certificate:
        """Return both bounds and where they come from."""
        ends = (result.lower_bound, result.upper_bound, _LOWER_PROOF, _UPPER_PROOF)
        return Certificate(*ends, premise=result.premise)

    def _choosing(
        self, X: Points, targets: FloatArray, weight: FloatArray, grams: RealArray | None
    ) -> AbstractContextManager[None]:
        """Return what surrounds a solve: the search by folds, where they choose parameters."""
        return nullcontext()

    def _keep(self, problem: Problem, result: Result) -> None:
        """Set the attributes that only this estimator has."""

    def _read(
        self, X: Rows, y: ArrayLike, **options: object
    ) -> tuple[Points, Labels, RealArray | None]:
        """Return points, targets, and the Gram matrices where X holds them: points are places."""
        if not self._is_precomputed:
            sparse = "csr" if self._accepts_sparse else False
            points, targets = validate_data(
                self, X, y, dtype=np.float64, accept_sparse=sparse, **options
            )
            return points, targets, None
        grams = self._matrices_of(X)
        places = np.arange(grams.shape[1], dtype=np.float64)[:, None]
        places, targets = validate_data(self, places, y, dtype=np.float64, **options)
        self.n_features_in_ = len(places)
        return places, targets, grams

    def _matrices_of(self, X: Rows) -> RealArray:
        """Return the Gram matrices of X, each of them square, finite and symmetric."""
        grams = as_grams(X, "X", square=True)
        if self._definite is not None:
            check_once(self._definite, partial(refuse_indefinite, name="X"), X, grams)
        return grams

    def _parts_of(self, grams: RealArray) -> PrecomputedGrams:
        """Return checked matrices as samples whose slices need no check."""
        X = PrecomputedGrams.of_checked(grams)
        if self._definite is not None:
            X.remember(self._definite)
        return X

    def _run(
        self, X: Points, targets: FloatArray, weight: FloatArray, grams: RealArray | None
    ) -> None:
        """Choose, merge, scale, solve, store."""
        samples = replace(merge_samples(X, targets, weight), grams=grams)
        with (
            blas_threads(samples.X.shape[0]),
            self._choosing(X, targets, weight, grams),
            config_context(memory_limit=self.memory_limit),
        ):
            scaling = self._scaling(samples)
            scaled = samples if scaling is None else replace(samples, X=scaling(samples.X))
            problem = self._problem(scaled)
            algorithm, params = self._algorithm(problem, scaled)
            tol, max_iter = self._limits()
            try:
                result = solve(
                    problem,
                    algorithm,
                    tol=tol,
                    max_iter=max_iter,
                    max_time=self.max_time,
                    random_state=self.random_state,
                    verbose=self.verbose,
                    on_interrupt=self.on_interrupt,
                    **params,
                )
            except SolveInterrupted as stop:
                with interrupts.kept():
                    self._store(problem, stop.result, samples, scaling)
                raise
            with interrupts.kept():
                self._store(problem, result, samples, scaling)

    def _store(
        self, problem: Problem, result: Result, samples: Samples, scaling: Scaling | None
    ) -> None:
        solution = result.solution
        if solution is None:
            solution = self._refit(problem, result)
        self.result_ = result
        self.dual_gap_ = result.dual_gap
        # making the first iterate counts, as in scikit-learn
        self.n_iter_ = max(1, result.n_iter)
        self.certificate_ = self._certify(problem, result)
        kernel = self._kernel(problem, result.parameters)
        self.kernel_ = kernel if scaling is None else scaling.of_kernel(kernel)
        u = np.atleast_2d(solution.dual_coef).astype(np.float64)
        used = np.flatnonzero(u.any(axis=0))
        self._rows = samples.X[used]
        self._coef = u[:, used]
        spread = samples.spread(u)
        intercept = np.atleast_1d(np.asarray(solution.intercept, dtype=np.float64))
        self.support_ = np.flatnonzero(spread.any(axis=0))
        self.dual_coef_ = spread if len(spread) > 1 else spread[0]
        self.intercept_ = intercept if len(intercept) > 1 else float(intercept[0])
        self._keep(problem, result)

    def _refit(self, problem: Problem, result: Result) -> Solution:
        """Solve the learner at the best kernel, for algorithms that keep no solution.

        After a limit or a Ctrl-C it has a second, and its best point is good enough.
        """
        hurry = result.status in (Status.MAX_TIME, Status.INTERRUPTED)
        with time_limit(LATE_SECONDS if hurry else None):
            K = problem.family.gram(problem.X, result.parameters)
            solution: Solution = problem.learner.solve(
                K, problem.targets, sample_weight=problem.sample_weight, tol=1e-4
            )
            return solution

    def _decision(self, X: Rows) -> FloatArray:
        """Return K(X, X_support) · coefficients + intercept, shape (n_samples, n_tasks)."""
        check_is_fitted(self, "kernel_")
        if hasattr(self, "estimators_"):
            parts = PrecomputedGrams.of(X) if self._is_precomputed else self._points(X)
            decided: FloatArray = self._predictor(parts)
            return decided
        intercept = np.atleast_1d(np.asarray(self.intercept_))
        values: FloatArray = self._products(X) + intercept
        return values

    def _points(self, X: Rows) -> Points:
        """Return points to judge as the fit has them."""
        sparse = "csr" if self._accepts_sparse else False
        points: Points = validate_data(self, X, dtype=np.float64, accept_sparse=sparse, reset=False)
        return points

    def _keep_parts(self) -> None:
        """Set the attributes that the parts do not give."""

    def _products(self, X: Rows) -> FloatArray:
        """Return K(X, X_support) · coefficients.

        The cross Gram is formed in blocks of rows that respect the memory limit.
        """
        X = self._points(X)
        if self._rows.shape[0] == 0:
            return np.zeros((X.shape[0], len(self._coef)))
        per_row = 8 * 8 * self._rows.shape[0]
        block = max(1, min(X.shape[0], 4096, limit_bytes() // per_row))
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, blas_threads(self._rows.shape[0]):
            parts = [
                self.kernel_(like(self._rows, X[start : start + block]), self._rows) @ self._coef.T
                for start in range(0, X.shape[0], block)
            ]
        values: FloatArray = np.vstack(parts)
        check_decision(values, X)
        return values


class KernelMachineRegressor(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Base of the regressors."""

    # whether y may have several columns, which share the kernel
    _multi_output: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags

    def fit(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> KernelMachineRegressor:
        """Learn the kernel and the regression function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features; where the estimator takes ``kernels="precomputed"``, Gram matrices of
            shape (n_kernels, n_samples, n_samples) or a `PrecomputedGrams`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite targets, several where the estimator takes them (`RidgeMKLRegressor`).
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C per sample; a weight of 0 equals leaving the sample out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NotPSDError
            If a precomputed matrix has an eigenvalue below −1e-10 of the largest.
        """
        self._check_parameters()
        if is_sparse(y):
            raise TypeError("y is sparse, and targets are dense: use y.toarray()")
        table = X
        with assigned_last(self) as draft:
            X, y, grams = draft._read(X, y, y_numeric=True, multi_output=self._multi_output)
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            draft._is_flat = y.ndim == 1
            y = np.asarray(y, dtype=np.float64)
            draft._run(X, draft._learned(np.atleast_2d(y.T), weight), weight, grams)
            warn_if_underfit(draft, table if grams is None else draft._parts_of(grams), y, weight)
        return self

    def _learned(self, targets: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the targets in the unit of the problem, shape (n_tasks, n_samples)."""
        return targets

    def predict(self, X: Rows) -> FloatArray:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to predict.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets.
        """
        values = self._decision(X)
        return values[:, 0] if self._is_flat else values


class KernelMachineClassifier(DecidingClassifier, KernelMachine):
    """Base of the classifiers; several classes share one kernel, one task per class."""

    class_weight: ClassWeight = parameter(
        "Multiplies C per class.", kind='dict or "balanced"', default=None
    )
    multiclass: str = parameter(
        "With three classes or more: one kernel for the sum of the one-vs-rest problems, with one "
        "certificate; or a kernel per class or per pair, and then the fitted attributes are lists.",
        default="shared",
        rule=one_of("shared", *SCHEMES),
    )
    estimators_: list[KernelMachineClassifier] = fitted(
        "list of estimators", 'The binary parts of ``"ovr"`` and ``"ovo"``.'
    )

    def fit(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> KernelMachineClassifier:
        """Learn the kernel and the decision functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features; where the estimator takes ``kernels="precomputed"``, Gram matrices of
            shape (n_kernels, n_samples, n_samples) or a `PrecomputedGrams`.
        y : array-like of shape (n_samples,)
            Labels of any kind, two classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies C per sample; a weight of 0 equals leaving the sample out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        NotPSDError
            If a precomputed matrix has an eigenvalue below −1e-10 of the largest.
        """
        self._check_parameters()
        table = X
        with assigned_last(self) as draft:
            X, y, grams = draft._read(X, y)
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            codes, weight = encode_classes(draft, y, weight)
            n_classes = len(draft.classes_)
            samples = X if grams is None else draft._parts_of(grams)
            # all fits together; one alone looks at the clock itself
            with time_limit(self.max_time if self.probability else None):
                if self.multiclass == "shared" or n_classes == 2:
                    draft._run(X, one_vs_rest(codes, n_classes), weight, grams)
                else:
                    draft.__dict__.update(fit_parts(draft, samples, codes, weight))
                    draft._keep_parts()
                if self.probability:
                    refuse_rare(draft.classes_, codes, weight)
                    draft.calibration_ = calibrate(draft, samples, codes, weight)
            warn_if_underfit(draft, table if grams is None else samples, codes, weight)
        return self

    def decision_function(self, X: Rows) -> FloatArray:
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
