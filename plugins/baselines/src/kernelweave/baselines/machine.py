"""What the estimators share: certificates at the weights of a rule, parameters, algorithms."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from kernelweave.kernels_core import Certificate, Problem, Result
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import POSITIVE, one_of
from kernelweave.kernels_core.estimators import (
    DictionaryMachine,
    KernelMachineClassifier,
    NystroemMachine,
)
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.formula.problem import Named
from kernelweave.kernels_core.grams import PrecomputedStack
from kernelweave.kernels_core.parameters import parameter
from kernelweave.qp_smo import SVC

from .simplex import Simplex

_LOWER = "a feasible dual point at the weights of the rule, which this objective did not choose"
_UPPER = "the primal value at the weights of the rule"
_SADDLE = {"saddle": "mkl-simple", "reduced-gradient": "mkl-simple-gradient"}


class RuleMachine(DictionaryMachine, KernelMachineClassifier):
    """Weights by a rule, then a support vector machine."""

    C: float = parameter(
        "Penalty of the hinge loss, as in scikit-learn's SVC.", default=1.0, rule=POSITIVE
    )
    tol: float = 1e-4
    max_iter: int = 20

    _name: ClassVar[str]
    _rule: ClassVar[type]

    def _algorithm(self, problem: Problem, samples: Samples) -> tuple[str, dict[str, object]]:
        return self._name, {}

    def _learner(self) -> SVC:
        return SVC(C=self.C)

    def _constraint(self) -> Named:
        known = {field.name: getattr(self, field.name) for field in fields(self._rule)}
        constraint: Named = self._rule(**known)
        return constraint

    def _certify(self, problem: Problem, result: Result) -> Certificate:
        return Certificate(result.lower_bound, result.upper_bound, _LOWER, _UPPER)


class MatrixRuleMachine(RuleMachine):
    """Weights by a rule that needs Gram matrices."""

    # no rule draws anything
    random_state: ClassVar[None] = None  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class AveragedStack(PrecomputedStack):
    """Given Gram matrices whose average a check has formed: `average` of shape (n, n)."""

    average: FloatArray


class _Point:
    """What the one point of a rule makes of quadratic forms, as sets say it."""

    def __init__(self, weights: FloatArray) -> None:
        self._weights = weights

    def worst(self, forms: FloatArray) -> float:
        return float(self._weights @ forms)


class LowRankRuleMachine(NystroemMachine, RuleMachine):
    """Weights by a rule that needs no Gram matrix; ``exact_certificate_`` is at these weights."""

    def _charge(self, problem: Problem) -> _Point:
        return _Point(self.weights_)


class SimplexMachine(NystroemMachine):
    """Optimal weights on the simplex by one of two algorithms."""

    algorithm: str = parameter(
        "Cutting planes, or the method of the authors, which needs more solves.",
        default="saddle",
        rule=one_of(*_SADDLE),
    )
    C: float = parameter(
        "Penalty of the loss, as in scikit-learn's SVC and SVR.", default=1.0, rule=POSITIVE
    )
    tol: float = 1e-4

    def _algorithm(self, problem: Problem, samples: Samples) -> tuple[str, dict[str, object]]:
        return _SADDLE[self.algorithm], {}

    def _constraint(self) -> Simplex:
        return Simplex()
