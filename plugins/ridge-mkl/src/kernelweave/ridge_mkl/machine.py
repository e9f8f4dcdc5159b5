"""What the estimators share: parameters, the set of weights, the algorithm."""

from __future__ import annotations

from dataclasses import replace

from kernelweave.kernels_core import Certificate, Problem, Result
from kernelweave.kernels_core.checks import COUNT, POSITIVE
from kernelweave.kernels_core.estimators import DictionaryMachine
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.formula.problem import Named
from kernelweave.kernels_core.grams import PrecomputedStack
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.kernels_core.parameters import parameter
from kernelweave.kernels_core.settings import Settings, name_of
from numpy.typing import ArrayLike

from .families import power_of
from .projection import EXPONENT
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


class WeightLearner(DictionaryMachine):
    """Mixed into an estimator base of `kernels_core`: a dictionary, a set and an algorithm."""

    q: float = parameter("Norm of the ball; 1 gives sparse changes.", default=2.0, rule=EXPONENT)
    radius: float = parameter("Λ.", default=1.0, rule=POSITIVE)
    center: ArrayLike = parameter(
        "μ₀; 0 is ℓq-norm multiple kernel learning, where every weight is free. The paper has 1, "
        "below which no weight falls.",
        kind="float or array-like of shape (n_kernels,)",
        default=0.0,
    )
    beta: float | None = parameter("β: penalise instead of constrain.", default=None, rule=POSITIVE)
    degree: int = parameter(
        "d, a Hadamard power: 2 takes all products of two kernels.", default=1, rule=COUNT
    )
    algorithm: str | Settings = parameter(
        "A registered algorithm for the form of the problem, or its settings such as "
        "``ProjectedNewton(n_starts=2)``.",
        kind="str or Settings",
        default="krr-auto",
    )
    n_starts: int | None = parameter(
        "Starting points; 1 where the result can be proved optimal, else 5.",
        default=None,
        rule=COUNT,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        name, degrees = name_of(self.algorithm), self._values("degree")
        wrong = (
            (name in _PENALTY_ONLY and self.beta is None, "solves the penalised form: set beta"),
            (name in _BALL_ONLY and self.beta is not None, "solves the ball: set beta=None"),
            (name in _POWER_ONLY and 1 in degrees, "learns products: set degree=2 or more"),
            (name in _LINEAR_ONLY and max(degrees) > 1, "learns sums: set degree=1"),
        )
        for is_wrong, reason in wrong:
            if is_wrong:
                raise ValueError(f"algorithm={name!r} {reason}")
        if self.beta is not None and len(self._values("q")) > 1:
            raise ValueError(
                f"q={self.q!r} gives several norms to choose among, and beta={self.beta!r} "
                "penalises without a ball: give one q, or beta=None"
            )

    def _values(self, name: str) -> list[float]:
        """Return what a parameter may be in the fit: one value, unless folds choose."""
        return [getattr(self, name)]

    def _value(self, name: str) -> float:
        """Return a parameter as given, or as chosen, before that the first of several."""
        values = self._values(name)
        return values[0] if len(values) == 1 else getattr(self, f"{name}_", values[0])

    def _algorithm(
        self, problem: Problem, samples: Samples
    ) -> tuple[str | Settings, dict[str, object]]:
        params: dict[str, object] = {} if self.n_starts is None else {"n_starts": self.n_starts}
        return self.algorithm, params

    def _constraint(self) -> LqBall | Orthant:
        if self.beta is not None:
            # the paper's objective is twice that of the problem
            return Orthant(beta=0.5 * float(self.beta))
        return LqBall(q=float(self._value("q")), radius=float(self.radius), center=self.center)

    def _family(self, stored: FittedDictionary | PrecomputedStack) -> Named:
        return power_of(super()._family(stored), int(self._value("degree")))

    def _certify(self, problem: Problem, result: Result) -> Certificate:
        proved = super()._certify(problem, result)
        if problem.family.degree == 1:
            return proved
        proof = _UNPROVED if self.beta is not None else _LARGER_BALL
        if problem.constraint.proves(problem.family.degree):
            proof = _PRODUCTS
        return replace(proved, lower_proof=proof)
