"""The base of both estimators: from training data to a fitted predictor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import (
    Certificate,
    Problem,
    Result,
    SolveInterrupted,
    config_context,
    solve,
)
from kernelweave.kernels_core.kernels import as_grams
from kernelweave.kernels_core.magnitude import check_decision
from kernelweave.kernels_core.memory import limit_bytes
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .constraint import FrobeniusOutputKernels, SeparableKernels
from .learner import VectorLeastSquares
from .penalties.choose import as_penalty
from .training import Training, from_grams, from_points

FloatArray = npt.NDArray[np.float64]

_LOWER_PROOF = "the concave dual value at C, at the worst weights or output kernel in the set"
_JOINT_PROOF = "a convex relaxation, every kernel with an output kernel of its own: not tight"
_NO_PROOF = "a sum of squares is not negative: the relaxation waits for a stationary point"
_UPPER_PROOF = "the primal value at C and the learned kernel"
_ALGORITHMS = ("vv-spg", "vv-block-descent")


class MatrixValuedKernelMachine(BaseEstimator):  # type: ignore[misc]
    """Shared by regressor and classifier: from training data to a fitted predictor."""

    def __init__(
        self,
        kernels: Any = None,
        *,
        p: float = 1.0,
        penalty: Any = "lp",
        mu: float = 0.5,
        groups: Any = None,
        lam: float = 1e-3,
        tau: float | None = None,
        rho: float = 1.0,
        learn_input: bool = True,
        learn_output: bool = True,
        algorithm: str = "vv-spg",
        algorithm_params: dict[str, Any] | None = None,
        center: bool = False,
        dtype: str = "float64",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        memory_limit: float | None = None,
        on_interrupt: str = "raise",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.p = p
        self.penalty = penalty
        self.mu = mu
        self.groups = groups
        self.lam = lam
        self.tau = tau
        self.rho = rho
        self.learn_input = learn_input
        self.learn_output = learn_output
        self.algorithm = algorithm
        self.algorithm_params = algorithm_params
        self.center = center
        self.dtype = dtype
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory_limit = memory_limit
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        return tags

    def _check_parameters(self) -> None:
        if isinstance(self.kernels, str) and self.kernels != "precomputed":
            raise ValueError(
                "kernels must be None, 'precomputed', a KernelDictionary or a list of kernels, "
                f"got {self.kernels!r}"
            )
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r}")
        if self.center not in (True, False):
            raise ValueError(f"center must be True or False, got {self.center!r}")
        self._constraint().validate()
        VectorLeastSquares(self.lam).validate()

    def _constraint(self) -> Any:
        if self.algorithm == "vv-dinuzzo":
            if not self.learn_output:
                raise ValueError(
                    "learn_output must be True for algorithm='vv-dinuzzo', which learns nothing "
                    f"else, got {self.learn_output!r}"
                )
            return FrobeniusOutputKernels(self.rho)
        penalty = as_penalty(self.penalty, p=self.p, mu=self.mu, groups=self.groups)
        return SeparableKernels(penalty, self.tau, self.learn_input, self.learn_output)

    def _fit_arrays(self, X: Any, Y: FloatArray, weight: FloatArray) -> None:
        """Fit targets of shape (n_samples, n_outputs)."""
        with config_context(memory_limit=self.memory_limit):
            if self._precomputed:
                data = from_grams(X, Y.T, weight)
            else:
                data = from_points(self.kernels, X, Y.T, weight, self.dtype)
            targets = data.targets
            self.intercept_ = np.zeros(len(targets))
            if self.center:
                self.intercept_, targets = data.centred()
            positions = np.arange(targets.shape[1], dtype=np.float64)[:, None]
            learner = VectorLeastSquares(self.lam)
            problem = Problem(
                data.family, learner, self._constraint(), positions, targets, data.weight
            )
            self._solve(problem, data)

    def _solve(self, problem: Problem, data: Training) -> None:
        params = dict(self.algorithm_params or {})
        if self.algorithm in _ALGORITHMS:
            params.setdefault("stationarity_tol", self.tol)
        try:
            result = solve(
                problem,
                self.algorithm,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
                random_state=self.random_state,
                verbose=self.verbose,
                on_interrupt=self.on_interrupt,
                **params,
            )
        except SolveInterrupted as stop:
            self._store(stop.result, data)
            raise
        self._store(result, data)

    def _store(self, result: Result, data: Training) -> None:
        self.result_ = result
        self.n_iter_ = result.n_iter
        self.dual_gap_ = result.dual_gap
        self.certificate_ = Certificate(
            result.lower_bound, result.upper_bound, self._lower_proof(result, data), _UPPER_PROOF
        )
        self.weights_ = result.parameters.weights
        self.output_kernel_ = result.parameters.output_kernel
        coef = result.solution.C @ self.output_kernel_
        self.dual_coef_ = data.spread(coef)
        if data.dictionary is None:
            for name in ("kernel_names_", "kernel_", "_rows", "_coef", "feature_names_in_"):
                self.__dict__.pop(name, None)  # of an earlier fit to points
            return
        self.kernel_names_ = data.dictionary.names
        self.kernel_ = data.dictionary.kernel(self.weights_)
        self._rows, self._coef = data.X, coef

    def _lower_proof(self, result: Result, data: Training) -> str:
        joint = self.learn_input and self.learn_output and len(data.targets) > 1
        if not joint or self.algorithm == "vv-dinuzzo":
            return _LOWER_PROOF
        return _JOINT_PROOF if result.lower_bound > 0.0 else _NO_PROOF

    def _values(self, X: Any) -> FloatArray:
        """Return f(X), shape (n_samples, n_outputs), in blocks that respect the memory limit."""
        check_is_fitted(self, "weights_")
        if self._precomputed:
            return self._values_precomputed(X)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        rows: Any = self._rows
        with config_context(memory_limit=self.memory_limit):
            per_row = 8 * 8 * max(1, len(rows))
            block = int(max(1, min(X.shape[0], 4096, limit_bytes() // per_row)))
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                self.kernel_(X[start : start + block], rows) @ self._coef
                for start in range(0, X.shape[0], block)
            ]
        values: FloatArray = np.vstack(parts) + self.intercept_
        check_decision(values, X)
        return values

    def _values_precomputed(self, X: Any) -> FloatArray:
        grams = as_grams(X)
        wanted = (len(self.weights_), len(self.dual_coef_))
        if (grams.shape[0], grams.shape[2]) != wanted:
            raise ValueError(
                f"X must have shape ({wanted[0]}, n_samples, {wanted[1]}): a matrix per kernel, a "
                f"column per training sample; got {grams.shape}"
            )
        values = np.tile(self.intercept_, (grams.shape[1], 1))
        for weight, K in zip(self.weights_, grams, strict=True):
            if weight != 0.0:
                values += weight * (K @ self.dual_coef_)
        return values
