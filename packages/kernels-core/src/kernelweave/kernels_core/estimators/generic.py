"""One classifier and one regressor for every registered algorithm, third-party ones included."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from ..checks import NONNEGATIVE, POSITIVE
from ..exceptions import Message
from ..fit import Formula
from ..formula.learner import Learner
from ..formula.problem import Named
from ..parameters import parameter
from ..registry import AlgorithmSpec, ComponentSpec, get_component, parts_for
from ..settings import Settings, spec_of
from .kernel import KernelClassifier, KernelEstimator, KernelRegressor
from .samples import Samples

if TYPE_CHECKING:
    from sklearn.utils import Tags


class _ByName(KernelEstimator):
    """Base of the estimators that combine an algorithm with given or default parts."""

    algorithm: str | Settings = parameter(
        "A name from ``kernelweave.kernels_core.algorithms()``, or an algorithm's settings.",
        kind="str or Settings",
        default="tkl-low-rank",
        kw_only=False,
    )
    C: float = parameter(
        "Penalty of the loss, for the default learner.", default=1.0, rule=POSITIVE
    )
    family: Named | None = parameter(
        "Family of kernels; by default the first that the algorithm accepts.",
        kind="object",
        default=None,
    )
    learner: Learner | None = parameter(
        "Learner; by default the first that the algorithm accepts for the task.",
        kind="object",
        default=None,
    )
    constraint: Named | None = parameter(
        "Set of the kernel's parameters; by default the first that the algorithm accepts.",
        kind="object",
        default=None,
    )
    algorithm_params: dict[str, object] | None = parameter(
        "Settings of the algorithm by name.", kind="dict", default=None
    )

    task: ClassVar[str]

    def _spec(self) -> AlgorithmSpec:
        spec = spec_of(self.algorithm)
        if self.task not in spec.tasks:
            served = ", ".join(spec.tasks)
            raise ValueError(
                Message(f"{{algorithm}}={spec.name!r} serves {served}, not {self.task}")
            )
        return spec

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._spec()

    def _learner_params(self) -> dict[str, object]:
        return {"C": self.C}

    def formula(self, samples: Samples) -> Formula:
        """Return the given parts, and for each other one the first that the algorithm accepts."""
        spec = self._spec()
        family: Any = self.family
        if family is None:
            family = self._first_part(spec, "family", "families").load().from_data(samples.X)
        learner = self.learner
        if learner is None:
            learner_class = self._first_part(spec, "learner", "learners").load()
            accepted = inspect.signature(learner_class).parameters
            params = {k: v for k, v in self._learner_params().items() if k in accepted}
            learner = learner_class(**params)
        constraint = self.constraint
        if constraint is None:
            constraint = self._first_part(spec, "constraint", "constraints").load()()
        return Formula(family, learner, constraint, self.algorithm, self.algorithm_params or {})

    def _first_part(self, spec: AlgorithmSpec, role: str, group: str) -> ComponentSpec:
        """Return the first part of a role that the algorithm accepts."""
        for part in (get_component(group, name) for name in parts_for(spec, group)):
            if role != "learner" or part.load().task == self.task:
                return part
        needs = ", ".join(getattr(spec.needs, role))
        raise ValueError(
            f"algorithm={spec.name!r} needs a {role} with {needs}, and no installed one is for "
            f"{self.task}: pass one as {role}="
        )


class KernelLearningClassifier(_ByName, KernelClassifier):
    """Classifier that learns its kernel with any registered algorithm.

    It does not scale the features: scale them first, or use the estimators of the packages, which
    scale them.

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # C and class weights suit features of unit scale, which scikit-learn's checks do not have
        tags.classifier_tags.poor_score = True
        return tags


class KernelLearningRegressor(_ByName, KernelRegressor):
    """Regressor that learns its kernel with any registered algorithm.

    It does not scale the features: scale them first, or use the estimators of the packages, which
    scale them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.kernels_core import KernelLearningRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, y = X / X.max(axis=0), y / y.std()
    >>> model = KernelLearningRegressor(C=1e-3, algorithm="tkl-low-rank", tol=0.1).fit(X, y)
    >>> bool(model.result_.gap <= 0.1)
    True
    """

    epsilon: float = parameter(
        "Half-width of the tube without loss, for the default learner.",
        default=0.1,
        rule=NONNEGATIVE,
    )
    task: ClassVar[str] = "regression"

    def _learner_params(self) -> dict[str, object]:
        return {"C": self.C, "epsilon": self.epsilon}
