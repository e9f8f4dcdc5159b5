"""One classifier and one regressor for every registered algorithm, third parties' included."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from ..checks import NONNEGATIVE, POSITIVE
from ..formula.problem import Problem
from ..parameters import parameter
from ..registry import AlgorithmSpec, get_component
from ..settings import Settings, spec_of
from .machine import KernelMachine, KernelMachineClassifier, KernelMachineRegressor
from .samples import Samples


class _ByName(KernelMachine):
    """Builds the problem that an algorithm accepts, from defaults or the parts given."""

    algorithm: str | Settings = parameter(
        "A name from ``kernelweave.kernels_core.algorithms()``, or an algorithm's settings.",
        kind="str or Settings",
        default="tkl-low-rank",
        kw_only=False,
    )
    C: float = parameter(
        "Penalty of the loss, for the default learner.", default=1.0, rule=POSITIVE
    )
    family: Any = parameter(
        "Of the `Problem`; what the algorithm accepts first, by default.",
        kind="object",
        default=None,
    )
    learner: Any = parameter("Likewise.", kind="object", default=None)
    constraint: Any = parameter("Likewise.", kind="object", default=None)
    algorithm_params: dict[str, Any] | None = parameter(
        "Settings of the algorithm by name.", kind="dict", default=None
    )

    task: ClassVar[str]

    def _spec(self) -> AlgorithmSpec:
        spec = spec_of(self.algorithm)
        if self.task not in spec.tasks:
            raise ValueError(
                f"algorithm={spec.name!r} serves {', '.join(spec.tasks)}, not {self.task}"
            )
        return spec

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._spec()

    def _algorithm(
        self, problem: Problem, samples: Samples
    ) -> tuple[str | Settings, dict[str, Any]]:
        return self.algorithm, dict(self.algorithm_params or {})

    def _learner_params(self) -> dict[str, Any]:
        return {"C": self.C}

    def _problem(self, samples: Samples) -> Problem:
        family_name, learner_name, constraint_name = self._triple()
        family = self.family
        if family is None:
            family = get_component("families", family_name).load().from_data(samples.X)
        learner = self.learner
        if learner is None:
            kind = get_component("learners", learner_name).load()
            known = inspect.signature(kind).parameters
            learner = kind(**{k: v for k, v in self._learner_params().items() if k in known})
        constraint = self.constraint
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


class KernelLearningClassifier(_ByName, KernelMachineClassifier):
    """Classifier that learns its kernel with any registered algorithm.

    It takes the features as they are: scale them first, or use the estimators of the packages,
    which do.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.kernels_core import KernelLearningClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X = X / X.max(axis=0)
    >>> model = KernelLearningClassifier(algorithm="tkl-low-rank", tol=0.1).fit(X, y)
    >>> model.result_.status.success, bool(model.score(X, y) > 0.9)
    (True, True)
    """

    task: ClassVar[str] = "classification"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # far from unit scale C means something else, and class weights of 1e-4 drown
        tags.classifier_tags.poor_score = True
        return tags


class KernelLearningRegressor(_ByName, KernelMachineRegressor):
    """Regressor that learns its kernel with any registered algorithm.

    It takes the features as they are: scale them first, or use the estimators of the packages,
    which do.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.kernels_core import KernelLearningRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelLearningRegressor(algorithm="tkl-low-rank", tol=0.1).fit(X, y)
    >>> bool(model.result_.gap <= 0.1)
    True
    """

    epsilon: float = parameter(
        "Half-width of the tube without loss, for the default learner.",
        default=0.1,
        rule=NONNEGATIVE,
    )
    task: ClassVar[str] = "regression"

    def _learner_params(self) -> dict[str, Any]:
        return {"C": self.C, "epsilon": self.epsilon}
