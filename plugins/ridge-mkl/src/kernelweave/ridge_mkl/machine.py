"""What the three estimators share: parameters, kernels, precomputed Gram matrices, weights."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Certificate, KernelDictionary, Problem, Result, Status
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.kernels import as_grams, default_kernels
from sklearn.utils.validation import check_is_fitted

from .families import FittedFamily, PrecomputedStack
from .sets import LqBall, Orthant

FloatArray = npt.NDArray[np.float64]

_UNPROVED = "the objective is nonnegative; it is not convex above degree 1, so no more is proved"
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


class WeightLearner:
    """Mixed into an estimator base of `kernels_core`: a dictionary, a set and an algorithm."""

    def __sklearn_tags__(self: Any) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        return tags

    @property
    def _precomputed(self: Any) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _check_parameters(self: Any) -> None:
        if isinstance(self.kernels, str) and not self._precomputed:
            raise ValueError(
                f"kernels must be None, a KernelDictionary, a list of kernels or 'precomputed', "
                f"got {self.kernels!r}"
            )
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

    def _make_problem(self: Any, samples: Samples) -> Problem:
        fitted: Any
        if self._precomputed:
            rows = samples.X[:, 0].astype(np.intp)
            grams = self._stack
            if len(rows) < grams.shape[1] or (rows != np.arange(len(rows))).any():
                grams = grams[:, rows][:, :, rows]
            fitted = PrecomputedStack(grams)
        else:
            fitted = self._dictionary().fit_grams(samples.X)
            self._n_listed = len(fitted) + len(fitted.dropped)
        family = FittedFamily(fitted, int(self.degree))
        learner, constraint = self._learner(), self._constraint()
        return Problem(family, learner, constraint, samples.X, samples.targets, samples.weight)

    def _dictionary(self: Any) -> KernelDictionary:
        if isinstance(self.kernels, KernelDictionary):
            return self.kernels
        kernels = default_kernels() if self.kernels is None else self.kernels
        return KernelDictionary(kernels, normalize=self.normalize)

    def _make_kernel(self: Any, problem: Problem, parameters: FloatArray) -> Any:
        fitted = problem.family.fitted
        size = len(parameters) if self._precomputed else self._n_listed
        self.weights_ = np.zeros(size)
        self.weights_[fitted.kept] = parameters
        self.kernel_names_ = None if self._precomputed else fitted.names
        return problem.family.kernel(parameters)

    def _store(self: Any, problem: Problem, result: Result, samples: Samples) -> None:
        super()._store(problem, result, samples)  # type: ignore[misc]
        if result.status is Status.STATIONARY or problem.family.degree > 1:
            old = self.certificate_
            self.certificate_ = Certificate(
                old.lower_bound, old.upper_bound, _UNPROVED, old.upper_proof
            )

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the kernel weights and the predictor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite features; with ``kernels="precomputed"`` Gram matrices of shape
            (n_kernels, n_samples, n_samples) or a `PrecomputedGrams`.
        y : array-like of shape (n_samples,)
            Targets or labels.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the loss per sample; a weight of 0 equals leaving the sample out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if not self._precomputed:
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        self._stack = as_grams(X, "X", square=True)
        n = self._stack.shape[1]
        try:
            super().fit(np.arange(n, dtype=np.float64)[:, None], y, sample_weight)  # type: ignore[misc]
        finally:
            del self._stack
        self.n_features_in_ = n
        return self

    def _decision(self: Any, X: Any) -> FloatArray:
        if not self._precomputed:
            return np.asarray(super()._decision(X))  # type: ignore[misc]
        check_is_fitted(self, "kernel_")
        stack = as_grams(X, "X")
        if stack.shape[0] != len(self.weights_) or stack.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X must have shape ({len(self.weights_)}, n_samples, {self.n_features_in_}), one "
                f"cross-Gram matrix per kernel, got {stack.shape}"
            )
        rows = self._rows[:, 0].astype(np.intp)
        used = np.flatnonzero(self.weights_)
        K = np.zeros((stack.shape[1], len(rows)))
        for k in used:
            K += self.weights_[k] * stack[k][:, rows]
        return np.asarray(K**self.degree @ self._coef.T + np.atleast_1d(self.intercept_))
