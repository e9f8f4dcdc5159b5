"""What the classifier and the regressor share: kernels, the constraint, the algorithm."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from kernelweave.kernels_core import Certificate, Problem, get_algorithm
from kernelweave.kernels_core.arguments import check_whole
from kernelweave.kernels_core.driver import check_limits, solve
from kernelweave.kernels_core.estimators import DictionaryMachine
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.exceptions import UnknownNameError
from kernelweave.kernels_core.result import SolveInterrupted
from numpy.typing import NDArray

from .constraint import SparseSimplex
from .scaling import StandardizedKernel, standard_scale

FloatArray = NDArray[np.float64]

GLOBAL = "smkl-global"
BEST_RESPONSE = "smkl-best-response"
# The gap at which Algorithm 1 need not go on: its weights are proven optimal.
_PROVEN = 1e-6
_LOWER = {
    BEST_RESPONSE: "the k-support relaxation over the cuts of all learner solves",
    GLOBAL: "branch and bound on supports, every bound from feasible dual points",
}
_UPPER = "the primal value of the learner at the sparse weights"
_NO_PROOF = "none: an indefinite kernel is among the candidates (psd='keep')"


class SparseMachine(DictionaryMachine):
    """Mixed in before `KernelMachineClassifier` or `KernelMachineRegressor`."""

    tol: Any = None

    def _check_parameters(self: Any) -> None:
        super()._check_parameters()
        self._constraint().validate()
        self._learner().validate()
        check_limits(_PROVEN if self.tol is None else self.tol, self.max_iter, self.max_time)
        try:
            get_algorithm(self.algorithm)
        except UnknownNameError as error:
            if self.algorithm != GLOBAL:
                raise
            raise ImportError(
                f"algorithm={GLOBAL!r} is registered by kernelweave-relaxations, which is not "
                "installed: pip install kernelweave-relaxations"
            ) from error

    def _check_definite(self, stack: Any) -> None:
        """Leave it to the algorithm, whose bounds allow for no eigenvalue below rounding."""

    def _constraint(self: Any) -> SparseSimplex:
        return SparseSimplex(k0=self.k0, lam=self.lam)

    @property
    def _is_scaled(self: Any) -> bool:
        if self._is_precomputed:
            return False
        if self.scale not in (None, True, False):
            raise ValueError(f"scale must be None, True or False, got {self.scale!r}")
        return self.kernels is None if self.scale is None else bool(self.scale)

    def _make_problem(self: Any, samples: Samples) -> Problem:
        if self._is_scaled:
            self.mean_, self.spread_ = standard_scale(samples.X, samples.weight)
            samples = replace(samples, X=(samples.X - self.mean_) / self.spread_)
        problem = super()._make_problem(samples)
        if not self._is_precomputed:
            # a name per weight, those of the kernels that were left out too
            self.kernel_names_ = self._dictionary().names
        return problem

    def _make_kernel(self: Any, problem: Problem, parameters: Any) -> Any:
        kernel = super()._make_kernel(problem, np.asarray(parameters))
        if not self._is_scaled:
            return kernel
        return StandardizedKernel(kernel, self.mean_, self.spread_)

    def _algorithm(self: Any) -> tuple[str, dict[str, Any]]:
        if self.algorithm != BEST_RESPONSE:
            return self.algorithm, {}
        return self.algorithm, {
            "init": self.init,
            "n_init": self.n_init,
            "epsilon": 1e-2 if self.tol is None else self.tol,
            "patience": self.patience,
            "run_limit": self.max_iter,
            "cap": self.cap,
            "warm": self.warm,
        }

    def _limits(self: Any) -> tuple[float, int]:
        """Return the relative gap and the iterations that the driver stops at."""
        if self.algorithm == BEST_RESPONSE:
            check_whole("n_init", self.n_init, low=1)
            return _PROVEN, 2 * self.n_init * (self.max_iter + 3)
        return (1e-4 if self.tol is None else self.tol), max(self.max_iter, 1_000_000)

    def _learn(self: Any, samples: Samples) -> None:
        problem = self._make_problem(samples)
        name, params = self._algorithm()
        tol, max_iter = self._limits()
        try:
            result = solve(
                problem,
                name,
                tol=tol,
                max_iter=max_iter,
                max_time=self.max_time,
                random_state=self.random_state,
                verbose=self.verbose,
                on_interrupt=self.on_interrupt,
                **params,
            )
        except SolveInterrupted as stop:
            self._store(problem, stop.result, samples)
            raise
        self._store(problem, result, samples)

    def _store(self: Any, problem: Problem, result: Any, samples: Samples) -> None:
        super()._store(problem, result, samples)
        # the Gram matrices are computed again when somebody asks: a fitted model stays small
        keeps = self._is_precomputed
        self.problem_ = problem if keeps else replace(problem, family=deepcopy(self._dictionary()))
        self.support_samples_ = self.support_
        self.support_ = np.flatnonzero(self.weights_)
        proven = bool(np.isfinite(result.lower_bound))
        self.certificate_ = Certificate(
            result.lower_bound,
            result.upper_bound,
            _LOWER.get(self.algorithm, self.algorithm) if proven else _NO_PROOF,
            _UPPER if proven else _NO_PROOF,
        )
