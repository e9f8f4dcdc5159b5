"""One classifier and one regressor for every registered algorithm, third parties' included."""

from __future__ import annotations

import inspect
import numbers
from typing import Any

import numpy as np

from ..problem import Problem
from ..registry import AlgorithmSpec, get_algorithm, get_component
from .machine import KernelMachineClassifier, KernelMachineRegressor
from .samples import Samples


class _ByName:
    """Builds the problem that an algorithm accepts, from defaults or the parts given."""

    task: str

    def _spec(self) -> AlgorithmSpec:
        spec = get_algorithm(self.algorithm)  # type: ignore[attr-defined]
        if self.task not in spec.tasks:
            raise ValueError(
                f"algorithm={spec.name!r} serves {', '.join(spec.tasks)}, not {self.task}"
            )
        return spec

    def _check_parameters(self) -> None:
        self._spec()
        for name, value in self._learner_params().items():
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            least = "> 0" if name == "C" else ">= 0"
            if not number or not np.isfinite(value) or value < 0 or (name == "C" and value == 0):
                raise ValueError(f"{name} must be a finite number {least}, got {value!r}")

    def _algorithm(self) -> tuple[str, dict[str, Any]]:
        return self.algorithm, dict(self.algorithm_params or {})  # type: ignore[attr-defined]

    def _learner_params(self) -> dict[str, Any]:
        return {"C": self.C}  # type: ignore[attr-defined]

    def _make_problem(self, samples: Samples) -> Problem:
        family_name, learner_name, constraint_name = self._triple()
        family = self.family  # type: ignore[attr-defined]
        if family is None:
            family = get_component("families", family_name).load().from_data(samples.X)
        learner = self.learner  # type: ignore[attr-defined]
        if learner is None:
            kind = get_component("learners", learner_name).load()
            known = inspect.signature(kind).parameters
            learner = kind(**{k: v for k, v in self._learner_params().items() if k in known})
        constraint = self.constraint  # type: ignore[attr-defined]
        if constraint is None:
            constraint = get_component("constraints", constraint_name).load()()
        return Problem(family, learner, constraint, samples.X, samples.targets, samples.weight)

    def _triple(self) -> tuple[str, str, str]:
        """Return the first accepted triple that fits the task and the parts given."""
        given = tuple(
            getattr(getattr(self, role), "name", None)
            for role in ("family", "learner", "constraint")
        )
        spec = self._spec()
        for triple in spec.accepts:
            fits = all(
                have in (None, want) or want == "*"
                for have, want in zip(given, triple, strict=True)
            )
            learner = triple[1]
            if not fits or (learner == "*" and given[1] is None):
                continue
            if given[1] is not None or self._serves(learner):
                return triple
        raise ValueError(
            f"algorithm={spec.name!r} accepts {spec.accepts}, none of which fits a {self.task} "
            f"problem with family, learner, constraint = {given}"
        )

    def _serves(self, learner: str) -> bool:
        return bool(get_component("learners", learner).load().task == self.task)

    def _make_kernel(self, problem: Problem, parameters: Any) -> Any:
        return problem.family.kernel(parameters)


class KernelLearningClassifier(_ByName, KernelMachineClassifier):
    """Classifier that learns its kernel with any registered algorithm.

    It takes the features as they are: scale them first, or use the estimators of the packages,
    which do.

    Parameters
    ----------
    algorithm : str, default="tkl-low-rank"
        A name from ``kernelweave.kernels_core.algorithms()``.
    C : float, default=1.0
        Penalty of the loss, for the default learner.
    family, learner, constraint : object, optional
        Parts of the `Problem`; what the algorithm accepts first, by default.
    algorithm_params : dict, optional
        Passed to the algorithm.
    class_weight : dict or "balanced", optional
        Multiplies C per class.
    tol : float, default=1e-3
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    kernel_ : callable
        The learned kernel, usable as ``SVC(kernel=...)``.
    result_ : Result
        Bounds, gap, status, history.
    certificate_ : Certificate
        Both bounds and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.
    classes_ : ndarray
        Labels.
    dual_coef_ : ndarray of shape (n_samples,) or (n_classes, n_samples)
        Signed dual coefficients.
    intercept_ : float or ndarray of shape (n_classes,)
        Offsets.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.kernels_core import KernelLearningClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLearningClassifier(algorithm="tkl-low-rank", tol=0.1).fit(X, y)
    >>> model.result_.status.success, bool(model.score(X, y) > 0.9)
    (True, True)
    """

    task = "classification"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # far from unit scale C means something else, and class weights of 1e-4 drown
        tags.classifier_tags.poor_score = True
        return tags

    def __init__(
        self,
        algorithm: str = "tkl-low-rank",
        *,
        C: float = 1.0,
        family: Any = None,
        learner: Any = None,
        constraint: Any = None,
        algorithm_params: dict[str, Any] | None = None,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.C = C
        self.family = family
        self.learner = learner
        self.constraint = constraint
        self.algorithm_params = algorithm_params
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose


class KernelLearningRegressor(_ByName, KernelMachineRegressor):
    """Regressor that learns its kernel with any registered algorithm.

    It takes the features as they are: scale them first, or use the estimators of the packages,
    which do.

    Parameters
    ----------
    algorithm : str, default="tkl-low-rank"
        A name from ``kernelweave.kernels_core.algorithms()``.
    C : float, default=1.0
        Penalty of the loss, for the default learner.
    epsilon : float, default=0.1
        Half-width of the tube without loss, for the default learner.
    family, learner, constraint : object, optional
        Parts of the `Problem`; what the algorithm accepts first, by default.
    algorithm_params : dict, optional
        Passed to the algorithm.
    tol : float, default=1e-3
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does after the best iterate is stored.
    random_state : int or RandomState, optional
        The only source of randomness.
    verbose : int, default=0
        Positive: a line per iteration.

    Attributes
    ----------
    kernel_ : callable
        The learned kernel, usable as ``SVR(kernel=...)``.
    result_ : Result
        Bounds, gap, status, history.
    certificate_ : Certificate
        Both bounds and where they come from.
    dual_gap_ : float
        Upper minus lower bound.
    n_iter_ : int
        Outer iterations.
    dual_coef_ : ndarray of shape (n_samples,)
        Signed dual coefficients.
    intercept_ : float
        Offset.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.kernels_core import KernelLearningRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelLearningRegressor(algorithm="tkl-low-rank", tol=0.1).fit(X, y)
    >>> bool(model.result_.gap <= 0.1)
    True
    """

    task = "regression"

    def __init__(
        self,
        algorithm: str = "tkl-low-rank",
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        family: Any = None,
        learner: Any = None,
        constraint: Any = None,
        algorithm_params: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.C = C
        self.epsilon = epsilon
        self.family = family
        self.learner = learner
        self.constraint = constraint
        self.algorithm_params = algorithm_params
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    def _learner_params(self) -> dict[str, Any]:
        return {"C": self.C, "epsilon": self.epsilon}
