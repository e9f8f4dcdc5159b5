"""Base classes of estimators that learn one kernel: common parameters, and the common ``fit``.

``fit`` checks the data, asks the estimator's ``formula`` for the problem to solve, solves it, and
sets all fitted attributes together at the end. Until then it works on a draft of the estimator, so
that an error or a Ctrl-C cannot leave attributes of two different fits.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import FloatArray, Index, Labels, Points, Rows, is_sparse
from ..checks import COUNT, NONNEGATIVE, ON_INTERRUPT, SECONDS, SEED, integer, one_of
from ..config import blas_threads, config_context
from ..fit import FitResult, Formula, Predicts, attributes_of, solved
from ..grams.precomputed import PrecomputedGrams, definite_grams
from ..parameters import fitted, parameter
from ..result import Certificate, Result
from .base import Estimator, assigned_last
from .cells import cells_named, read_weights
from .classes import (
    SCHEMES,
    ClassWeight,
    DecidingClassifier,
    Given,
    encode_classes,
    group_codes,
    one_vs_rest,
)
from .samples import Samples, merge_samples, standard_deviation
from .underfit import warn_if_underfit

if TYPE_CHECKING:
    from sklearn.utils import Tags


@dataclass(frozen=True, eq=False)
class Data:
    """Checked training data.

    - `X` of shape (n_samples, n_features): points; with `grams` of shape (n_samples, 1): the
      position of each sample in them
    - `targets` of shape (n_tasks, n_samples): numbers; of classes ±1, or 0 and 1
    - `weight` of shape (n_samples,): sample weights, multiplied by those of the classes; of shape
      (n_samples, n_tasks) where tasks have weights of their own
    - `grams`: precomputed Gram matrices that have passed the estimator's checks
    - `groups` of shape (n_samples,): samples with the same number are held out together
    """

    X: Points
    targets: FloatArray
    weight: FloatArray
    grams: PrecomputedGrams | None = None
    groups: Index | None = None

    def labels(self, classes: Labels | None) -> Labels:
        """Return the targets in the user's shape or, if there are ``classes``, the labels."""
        if classes is None:
            return self.targets[0] if len(self.targets) == 1 else self.targets.T
        several, codes = len(self.targets) > 1, (self.targets[0] > 0.0).astype(np.intp)
        labels: Labels = classes[self.targets.argmax(axis=0) if several else codes]
        return labels

    def part(self, rows: Index) -> Data:
        """Return the data of some samples, by their positions."""
        grams = None if self.grams is None else self.grams[rows, rows]
        groups = None if self.groups is None else self.groups[rows]
        return Data(self.X[rows], self.targets[:, rows], self.weight[rows], grams, groups)

    @property
    def given(self) -> Given:
        """The points, or the Gram matrices that stand for them."""
        return self.X if self.grams is None else self.grams

    @property
    def merged(self) -> Samples:
        """The samples of positive weight, equal ones merged into one, see `Samples`."""
        samples = merge_samples(self.X, self.targets, self.weight)
        return replace(samples, grams=self.grams)


class SolvingEstimator(Estimator):
    """Base of estimators whose fit solves a problem: limits, results, and `fit` itself.

    A subclass writes `_read_data`, which checks the data, and `_learn`, which solves the problem.
    """

    tol: float = parameter("Relative certified gap to reach.", default=1e-3, rule=NONNEGATIVE)
    max_iter: int = parameter("Maximum number of outer iterations.", default=1000, rule=COUNT)
    max_time: float | None = parameter("Maximum time in seconds.", default=None, rule=SECONDS)
    memory_limit: int | None = parameter("Bytes that the fit may allocate.", default=None)
    on_interrupt: str = parameter(
        "What Ctrl-C does after the best model so far is stored: raise KeyboardInterrupt, or "
        "return.",
        default="raise",
        rule=ON_INTERRUPT,
    )
    random_state: int | np.random.RandomState | None = parameter(
        "Seed of all random choices.", kind="int or RandomState", default=None, rule=SEED
    )
    verbose: int = parameter(
        "If positive, a line is printed per iteration.", default=0, rule=integer()
    )

    result_: Result = fitted("Result", "Bounds, gap, status and history.")
    certificate_: Certificate = fitted("Certificate", "Both bounds and where they come from.")
    dual_gap_: float = fitted("float", "Upper minus lower bound.")
    n_iter_: int = fitted("int", "Outer iterations.")

    # With metadata routing, scikit-learn passes groups on to ``fit`` unless told otherwise.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    if TYPE_CHECKING:
        # computes decision values or predictions of new points
        _predictor: Predicts = fitted("", "")

    def fit(
        self,
        X: Rows,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: str | ArrayLike | None = None,
    ) -> Self:
        """Learn the kernel and the functions that predict with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features; where the estimator takes ``kernels="precomputed"``, Gram matrices of
            shape (n_kernels, n_samples, n_samples) or a `PrecomputedGrams`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite targets, several where the estimator takes them, or labels of any kind, two
            classes or more.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the loss of a sample; a weight of 0 equals leaving the sample out.
        groups : str or array-like of shape (n_samples,), optional
            Name of a column of X, or group of each sample, such as the patient of a visit. Where
            the fit holds samples out, it holds out whole groups.

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
        with assigned_last(self) as draft:
            data, truth = draft._read_data(X, y, sample_weight, groups)
            fit = draft._fit(data, truth)
            draft.__dict__.update(fit.attributes)
            if fit.stopped is None:
                given = X if data.grams is None else data.grams
                warn_if_underfit(draft, given, truth, data.weight)
        if fit.stopped is not None:
            raise fit.stopped
        return self

    @abstractmethod
    def _read_data(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None, groups: object
    ) -> tuple[Data, Labels]:
        """Return the checked data, and the targets or class codes to judge predictions by."""

    def _fit(self, data: Data, truth: Any) -> FitResult:
        """Return the fitted attributes; classifiers may fit several parts and probabilities."""
        return self._learn(data)

    @abstractmethod
    def _learn(self, data: Data) -> FitResult:
        """Solve one problem with the estimator's parameters; return the fitted attributes."""

    @property
    def _limits(self) -> dict[str, Any]:
        """What `solve` gets of the parameters, by name."""
        names = ("tol", "max_iter", "max_time", "random_state", "verbose", "on_interrupt")
        return {name: getattr(self, name) for name in names}


class KernelEstimator(SolvingEstimator):
    """Base of estimators that learn one kernel; a subclass defines its problem by `formula`."""

    kernel_: Any = fitted(
        "Kernel",
        "The learned kernel of unscaled features; if views read a table, of the numbers that they "
        "make of it.",
    )
    dual_coef_: FloatArray = fitted(
        "ndarray of shape (n_samples,) or (n_tasks, n_samples)", "Signed dual coefficients."
    )
    intercept_: float | FloatArray = fitted("float or ndarray of shape (n_tasks,)", "Offsets.")
    support_: npt.NDArray[np.intp] = fitted(
        "ndarray of int", "Samples with a coefficient that is not 0: the support vectors."
    )

    @abstractmethod
    def formula(self, samples: Samples) -> Formula:
        """Return the problem to solve for merged samples, and the algorithm with its settings."""

    @staticmethod
    def check_grams(X: Rows) -> PrecomputedGrams:
        """Check that X holds square, positive semidefinite Gram matrices and return them."""
        return definite_grams(X)

    def _learn(self, data: Data) -> FitResult:
        """Merge the samples and solve the estimator's formula for them within its limits."""
        with config_context(memory_limit=self.memory_limit):
            samples = data.merged
            with blas_threads(samples.X.shape[0]):
                formula = self.formula(samples)
                problem = formula.problem(samples, samples.targets / formula.unit)
                describe = partial(attributes_of, samples, formula)
                settings = {**self._limits, **formula.settings}
                return solved(problem, formula.algorithm, describe, **settings)

    def _read(
        self, X: Rows, y: ArrayLike, **options: object
    ) -> tuple[Points, Labels, PrecomputedGrams | None]:
        """Return points, targets and None; for precomputed kernels positions, targets and Grams.

        Positions have shape (n_samples, 1). Sets ``n_features_in_`` and ``feature_names_in_``.
        """
        tags = get_tags(self).input_tags
        allowed = "" if "y_numeric" in options else "text"
        if not tags.pairwise:
            options |= {"dtype": np.float64, "accept_sparse": "csr" if tags.sparse else False}
            with cells_named(X, y, allowed=allowed):
                points, targets = validate_data(self, X, y, **options)
            return points, targets, None
        with cells_named(grams=X):
            grams = self.check_grams(X)
        places = np.arange(len(grams), dtype=np.float64)[:, None]
        with cells_named(y=y, allowed=allowed):
            places, targets = validate_data(self, places, y, dtype=np.float64, **options)
        self.n_features_in_ = len(places)
        return places, targets, grams

    def _points(self, X: Rows) -> Any:
        """Return new points, or cross-Gram matrices, checked and as ``_predictor`` takes them."""
        tags = get_tags(self).input_tags
        with cells_named(None if tags.pairwise else X, grams=X if tags.pairwise else None):
            if tags.pairwise:
                return PrecomputedGrams.of(X)
            sparse = "csr" if tags.sparse else False
            return validate_data(self, X, dtype=np.float64, accept_sparse=sparse, reset=False)

    def _values(self, X: Rows) -> FloatArray:
        """Return decision values or predictions, shape (n_samples, n_tasks)."""
        check_is_fitted(self, "kernel_")
        return self._predictor(self._points(X))


class KernelRegressor(RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """Base of the regressors."""

    # whether y may have several columns: the tasks, which share the kernel
    _multi_output: ClassVar[bool] = False
    if TYPE_CHECKING:
        # whether y was of shape (n_samples,), as predictions are then
        _is_flat: bool = fitted("", "")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags

    def _read_data(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None, groups: object
    ) -> tuple[Data, Labels]:
        if is_sparse(y):
            raise TypeError("y is sparse, and targets are dense: use y.toarray()")
        points, values, grams = self._read(X, y, y_numeric=True, multi_output=self._multi_output)
        weight = read_weights(sample_weight, points)
        with cells_named(y=y):
            # scikit-learn lets None pass in an array of objects
            targets = np.asarray(values, dtype=np.float64)
            assert_all_finite(targets, input_name="y")
        self._is_flat = targets.ndim == 1
        codes = group_codes(groups, X, len(weight))
        return Data(points, np.atleast_2d(targets.T), weight, grams, codes), targets

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
        values = self._values(X)
        return values[:, 0] if self._is_flat else values


class SpreadRegressor(KernelRegressor):
    """Base of support vector regressors that may divide y by its standard deviation."""

    epsilon: float = parameter(
        "Half-width of the tube without loss; see ``units``.", default=0.1, rule=NONNEGATIVE
    )
    units: str = parameter(
        'Unit of y. ``"scale"`` divides y by its standard deviation before the fit, so that ``C``, '
        "``epsilon`` and the bounds mean the same for prices and for fractions; "
        '``"absolute"`` takes y as it is.',
        default="scale",
        rule=one_of("scale", "absolute"),
    )


def unit_of(estimator: Any, samples: Samples) -> float:
    """Return what to divide the targets by, 1 or their standard deviation; one task only."""
    return (
        1.0
        if estimator.units == "absolute"
        else standard_deviation(samples.targets[0], samples.weight)
    )


class KernelClassifier(DecidingClassifier, KernelEstimator):
    """Base of the classifiers; several classes share one kernel, one task per class."""

    class_weight: ClassWeight = parameter(
        "Multiplies C per class.", kind='dict or "balanced"', default=None
    )
    multiclass: str = parameter(
        'For three classes or more. ``"shared"``: one kernel for the sum of the one-vs-rest '
        'problems, with one certificate. ``"ovr"``, ``"ovo"``: a kernel per class or per pair of '
        "classes; fitted attributes are then lists.",
        default="shared",
        rule=one_of("shared", *SCHEMES),
    )
    estimators_: list[KernelClassifier] = fitted(
        "list of estimators", 'The binary classifiers of ``"ovr"`` and ``"ovo"``.'
    )

    def _read_data(
        self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None, groups: object
    ) -> tuple[Data, Labels]:
        points, labels, grams = self._read(X, y)
        weight = read_weights(sample_weight, points)
        codes, weight = encode_classes(self, labels, weight)
        targets = one_vs_rest(codes, len(self.classes_))
        return Data(points, targets, weight, grams, group_codes(groups, X, len(weight))), codes

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
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values
