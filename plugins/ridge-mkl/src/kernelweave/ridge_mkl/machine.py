"""What the three estimators share: parameters, the set of weights, the algorithm."""

from __future__ import annotations

import math
import numbers
from dataclasses import replace
from typing import Any

from kernelweave.kernels_core import Problem, Result
from kernelweave.kernels_core.estimators import DictionaryMachine
from kernelweave.kernels_core.estimators.samples import Samples

from .families import FittedFamily
from .sets import LqBall, Orthant

_PRODUCTS = "a feasible dual point and its tangent in powers of the weights, where F is convex"
_LARGER_BALL = (
    "a feasible dual point over the larger ball with q = degree; products of more than q kernels "
    "are not convex, so nothing is proved of these weights"
)
_UNPROVED = (
    "the objective is nonnegative; products of more than 2 kernels are not convex under a penalty, "
    "so nothing more is proved"
)
_BALL_ONLY = ("krr-pgd", "krr-iia", "krr-pgd2", "krr-trust-region")
_PENALTY_ONLY = ("krr-rpgd", "krr-riia", "krr-rpgd2")
_POWER_ONLY = ("krr-pgd2", "krr-rpgd2")
_LINEAR_ONLY = ("krr-pgd", "krr-rpgd", "krr-iia", "krr-riia", "krr-mm", "krr-newton")


def check_positive(name: str, value: Any, *, low: float = 0.0, strict: bool = True) -> None:
    """Raise unless ``value`` is a number > ``low`` (≥ where not strict).

    Raises
    ------
    ValueError
        Naming the parameter and the value seen.
    """
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or math.isnan(value) or not (value > low if strict else value >= low):
        raise ValueError(
            f"{name} must be a number {'>' if strict else '>='} {low:g}, got {value!r}"
        )


class WeightLearner(DictionaryMachine):
    """Mixed into an estimator base of `kernels_core`: a dictionary, a set and an algorithm."""

    def _check_parameters(self: Any) -> None:
        super()._check_parameters()
        check_positive("q", self.q, low=1.0, strict=False)
        check_positive("radius", self.radius)
        if self.beta is not None:
            check_positive("beta", self.beta)
        degree = self.degree
        if not isinstance(degree, numbers.Integral) or isinstance(degree, bool) or degree < 1:
            raise ValueError(f"degree must be an integer >= 1, got {degree!r}")
        self._check_algorithm()

    def _check_algorithm(self: Any) -> None:
        """Refuse an algorithm for another form of the problem, saying which parameter to set."""
        name = self.algorithm
        wrong = (
            (name in _PENALTY_ONLY and self.beta is None, "solves the penalised form: set beta"),
            (name in _BALL_ONLY and self.beta is not None, "solves the ball: set beta=None"),
            (name in _POWER_ONLY and self.degree == 1, "learns products: set degree=2 or more"),
            (name in _LINEAR_ONLY and self.degree > 1, "learns sums: set degree=1"),
        )
        for is_wrong, reason in wrong:
            if is_wrong:
                raise ValueError(f"algorithm={name!r} {reason}")

    def _algorithm(self: Any) -> tuple[str, dict[str, Any]]:
        params = {} if self.n_starts is None else {"n_starts": self.n_starts}
        return self.algorithm, params

    def _constraint(self: Any) -> LqBall | Orthant:
        if self.beta is not None:
            return Orthant(beta=float(self.beta))
        return LqBall(q=float(self.q), radius=float(self.radius), center=self.center)

    def _family(self: Any, fitted: Any) -> FittedFamily:
        return FittedFamily(fitted, int(self.degree))

    def _store(self: Any, problem: Problem, result: Result, samples: Samples) -> None:
        super()._store(problem, result, samples)
        if problem.family.degree == 1:
            return
        proof = _UNPROVED if self.beta is not None else _LARGER_BALL
        if problem.constraint.proves(problem.family.degree):
            proof = _PRODUCTS
        self.certificate_ = replace(self.certificate_, lower_proof=proof)
