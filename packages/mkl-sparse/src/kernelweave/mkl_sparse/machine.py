"""What the classifier and the regressor share: kernels, the constraint, the algorithm."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import Certificate, Problem, Result, get_algorithm
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, Rule
from kernelweave.kernels_core.estimators import DictionaryMachine
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.exceptions import UnknownNameError
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.parameters import fitted, parameter, parameter_of
from kernelweave.kernels_core.settings import Settings, name_of
from numpy.typing import NDArray

from .algorithm import ROUNDS
from .constraint import SparseSimplex
from .settings import BestResponse

GLOBAL = "smkl-global"
BEST_RESPONSE = "smkl-best-response"
_OF_ALGORITHM_1 = ("init", "n_init", "warm", "patience", "cap")
# The relative gap of a proof: the global search stops there by default, Algorithm 1 need not go on.
_PROVEN = 1e-4
# smaller gaps than this are below what rounding leaves
_FINEST = 1e-9
_LOWER = {
    BEST_RESPONSE: "the k-support relaxation over the cuts of all learner solves",
    GLOBAL: "branch and bound on supports, every bound from feasible dual points",
}
_UPPER = "the primal value of the learner at the sparse weights"
_ABSENT = "(kernelweave-relaxations, which is not installed, finds and proves the optimum)"
_NO_PROOF = "none: an indefinite kernel is among the candidates (psd='keep')"
_SCALE = Rule("None, True or False", lambda value: value is None or value is True or value is False)


class SparseMachine(DictionaryMachine):
    """Mixed in before `KernelMachineClassifier` or `KernelMachineRegressor`."""

    C: float = parameter("Penalty of the loss.", default=1.0, rule=POSITIVE)
    lam: float = parameter_of(SparseSimplex, "lam")
    k0: int = parameter_of(SparseSimplex, "k0")
    algorithm: str | Settings | None = parameter(
        "Algorithm 1 of the paper, or the certified global optimum, which needs "
        "kernelweave-relaxations. None: the optimum where that is installed, else Algorithm 1. "
        "Settings, `BestResponse` or `kernelweave.relaxations.BranchAndBound`, count as they are; "
        "the parameters of Algorithm 1 here are then not read.",
        kind='{"smkl-best-response", "smkl-global"} or Settings',
        default=None,
    )
    init: Any = parameter(
        "Where Algorithm 1 starts.",
        kind='{"saddle", "random", "sdp-3x3", "soc-random"} or array-like of shape (q,)',
        default="saddle",
    )
    n_init: int = parameter_of(BestResponse, "n_init")
    warm: str = parameter_of(BestResponse, "warm")
    normalize: Any = None
    scale: bool | None = parameter(
        "Whether to standardise the features first; None does so where ``kernels`` is None.",
        default=None,
        rule=_SCALE,
    )
    max_iter: int = parameter(
        "Steps at most: rounds of the relaxation and branches. Algorithm 1 takes no more than 50 a "
        "run in any case; `BestResponse` sets its own.",
        default=1_000_000,
        rule=COUNT,
    )
    tol: float | None = parameter(  # type: ignore[assignment]
        "Algorithm 1: the absolute fall of the objective that counts, 1e-2 by default. Global: the "
        "relative certified gap, 1e-4 by default.",
        default=None,
        rule=NONNEGATIVE,
    )
    patience: int = parameter_of(BestResponse, "patience")
    cap: float | None = parameter_of(BestResponse, "cap")

    kernel_support_: NDArray[np.intp] = fitted("ndarray of int", "The kernels that are used.")
    problem_: Problem = fitted(
        "Problem",
        "What was solved; `kernelweave.relaxations.certify` reads it. Its family computes the Gram "
        "matrices again, or refers to the precomputed ones.",
    )

    # the algorithm does, whose bounds allow for no eigenvalue below rounding
    _definite: ClassVar[str | None] = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._learner().validate()
        if self.algorithm is None:
            for name in _OF_ALGORITHM_1:
                value, default = getattr(self, name), type(self).__dataclass_fields__[name].default
                if value is not default and not np.array_equal(value, default):
                    raise ValueError(
                        f"{name} is a setting of Algorithm 1: set algorithm={BEST_RESPONSE!r} as "
                        f"well, got algorithm=None and {name}={value!r}"
                    )
            return
        try:
            get_algorithm(name_of(self.algorithm))
        except UnknownNameError as error:
            if self.algorithm != GLOBAL:
                raise
            raise ImportError(
                f"algorithm={GLOBAL!r} is registered by kernelweave-relaxations, which is not "
                "installed: pip install kernelweave-relaxations"
            ) from error

    @property
    def _method(self) -> str | Settings:
        """Return the algorithm that runs, Algorithm 1 with the settings that it was given."""
        if self.algorithm is None and _has_global():
            return GLOBAL
        if self.algorithm not in (None, BEST_RESPONSE):
            return self.algorithm
        return BestResponse(
            init=self.init,
            n_init=self.n_init,
            epsilon=1e-2 if self.tol is None else self.tol,
            patience=self.patience,
            run_limit=min(BestResponse().run_limit, self.max_iter),
            cap=self.cap,
            warm=self.warm,
        )

    def _constraint(self) -> SparseSimplex:
        return SparseSimplex(k0=self.k0, lam=self.lam)

    @property
    def _is_scaled(self) -> bool:
        if self._is_precomputed:
            return False
        return self.kernels is None if self.scale is None else bool(self.scale)

    @property
    def _accepts_sparse(self) -> bool:
        return super()._accepts_sparse and not self._is_scaled

    def _scaling(self, samples: Samples) -> Scaling | None:
        return Scaling(*mean_and_spread(samples.X, samples.weight)) if self._is_scaled else None

    def _problem(self, samples: Samples) -> Problem:
        problem = super()._problem(samples)
        if not self._is_precomputed:
            # a name per weight, those of the kernels that were left out too
            self.kernel_names_ = self._dictionary().names
        return problem

    def _kernel(self, problem: Problem, parameters: Any) -> Any:
        return problem.family.kernel(np.asarray(parameters))

    def _algorithm(
        self, problem: Problem, samples: Samples
    ) -> tuple[str | Settings, dict[str, Any]]:
        method = self._method
        if name_of(method) == GLOBAL and getattr(method, "accuracy", None) is None:
            return method, {"accuracy": max(self._limits()[0], _FINEST)}
        return method, {}

    def _limits(self) -> tuple[float, int]:
        method = self._method
        if isinstance(method, BestResponse):
            return _PROVEN, ROUNDS + 2 * method.n_init * (method.run_limit + 3)
        return (_PROVEN if self.tol is None else self.tol), self.max_iter

    def _certify(self, problem: Problem, result: Result) -> Certificate:
        proven = bool(np.isfinite(result.lower_bound))
        return Certificate(
            result.lower_bound,
            result.upper_bound,
            self._lower_proof() if proven else _NO_PROOF,
            _UPPER if proven else _NO_PROOF,
        )

    def _lower_proof(self) -> str:
        method = name_of(self._method)
        proof = _LOWER.get(method, method)
        return proof if method != BEST_RESPONSE or _has_global() else f"{proof} {_ABSENT}"

    def _keep(self, problem: Problem, result: Result) -> None:
        super()._keep(problem, result)
        # the Gram matrices are computed again when somebody asks: a fitted model stays small
        keeps = self._is_precomputed
        self.problem_ = problem if keeps else replace(problem, family=deepcopy(self._dictionary()))
        self.kernel_support_ = np.flatnonzero(self.weights_)


def _has_global() -> bool:
    try:
        get_algorithm(GLOBAL)
    except UnknownNameError:
        return False
    return True
