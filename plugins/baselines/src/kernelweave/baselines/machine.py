"""What the estimators share: certificates at the weights of a rule, parameters, algorithms."""

from __future__ import annotations

from typing import Any

from kernelweave.kernels_core import Certificate, Problem, Result
from kernelweave.kernels_core.estimators import DictionaryMachine
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.qp_smo import SVC

_LOWER = "a feasible dual point at the weights of the rule, which this objective did not choose"
_UPPER = "the primal value at the weights of the rule"
_SADDLE = {"saddle": "mkl-simple", "reduced-gradient": "mkl-simple-gradient"}


class RuleMachine(DictionaryMachine):
    """Weights by a rule, then a support vector machine."""

    random_state = None

    def _check_parameters(self: Any) -> None:
        super()._check_parameters()
        self._learner().validate()
        self._constraint().validate()

    def _learner(self: Any) -> Any:
        return SVC(C=self.C)

    def _store(self: Any, problem: Problem, result: Result, samples: Samples) -> None:
        super()._store(problem, result, samples)  # type: ignore[misc]
        old = self.certificate_
        self.certificate_ = Certificate(old.lower_bound, old.upper_bound, _LOWER, _UPPER)


class SimplexMachine(DictionaryMachine):
    """Optimal weights on the simplex by one of two algorithms."""

    random_state = None

    def _check_parameters(self: Any) -> None:
        super()._check_parameters()
        self._learner().validate()
        if self.algorithm not in _SADDLE:
            raise ValueError(f"algorithm must be one of {tuple(_SADDLE)}, got {self.algorithm!r}")

    def _algorithm(self: Any) -> tuple[str, dict[str, Any]]:
        return _SADDLE[self.algorithm], {}
