"""Estimators that weight kernels of any number of samples, by low-rank factors above a size."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..arrays import FloatArray, Rows
from ..checks import COUNT, check_decision, one_of
from ..formula import lower_bound
from ..formula.problem import Problem
from ..grams.combined import PrecomputedStack
from ..kernels import FittedDictionary, LowRankDictionary
from ..kernels.scaled import Scaling
from ..parameters import fitted, parameter
from ..result import Certificate, Result
from .dictionary import DictionaryMachine
from .samples import Samples, like

# what "auto" lets the Gram matrices take: eight kernels of 8,192 samples
EXACT_BYTES = 2**32
_BLOCK = 4096
_OF_FACTORS = "of the approximated kernels ZZᵀ; exact_certificate_ says what holds for K"
_EXACT_LOWER = "a multiple of the fitted dual point, with forms uᵀKu of the exact kernels or more"
_EXACT_UPPER = "the primal value with ZZᵀ: K − ZZᵀ is positive semidefinite, up to rounding"


class NystroemMachine(DictionaryMachine):
    """A `DictionaryMachine` whose Gram matrices may be approximated.

    Mixed in before `KernelMachineClassifier` or `KernelMachineRegressor`. The algorithm must take
    families with ``fit_factors``.
    """

    approximation: str | None = parameter(
        "Whether each Gram matrix K is replaced by ZZᵀ with ``n_components`` columns, drawn by "
        "randomly pivoted Cholesky. ``None``: never. ``'auto'``: where all of them would take more "
        "than 4 GiB, which 8 kernels do above 8,192 samples.",
        kind='{"auto", "nystroem"} or None',
        default="auto",
        rule=one_of("auto", "nystroem").or_none(),
    )
    n_components: int = parameter(
        "Columns of Z of each kernel at most, where K is approximated.", default=300, rule=COUNT
    )

    approximation_: str | None = fitted(
        "str or None", "``'nystroem'`` where the kernels were approximated."
    )
    exact_certificate_: Certificate = fitted(
        "Certificate",
        "Where the kernels were approximated: bounds of the optimum with the exact ones.",
    )

    def _fitted(self, samples: Samples) -> FittedDictionary | PrecomputedStack | Any:
        """Return the Gram matrices of the canonical samples, or their factors."""
        self.approximation_ = "nystroem" if self._is_approximate(samples.X.shape[0]) else None
        if self.approximation_ is None:
            return super()._fitted(samples)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        family = LowRankDictionary(self._dictionary(), self.n_components, seed)
        return family.fit_factors(samples.X)

    def _is_approximate(self, n_samples: int) -> bool:
        if self._is_precomputed and self.approximation == "nystroem":
            raise ValueError(
                "approximation='nystroem' draws columns of kernels, and kernels='precomputed' "
                "gives their Gram matrices: give the kernels, or set approximation=None"
            )
        if self.approximation != "auto" or self._is_precomputed:
            return self.approximation == "nystroem"
        return 8 * len(self._dictionary()) * n_samples**2 > EXACT_BYTES

    def _store(
        self, problem: Problem, result: Result, samples: Samples, scaling: Scaling | None
    ) -> None:
        super()._store(problem, result, samples, scaling)
        self._scale, self._expansions = scaling, None
        self.__dict__.pop("exact_certificate_", None)
        if self.approximation_ is not None:
            rows = self._rows if scaling is None else scaling(self._rows)
            parts = problem.family.fitted.expansions(result.parameters, rows, self._coef)
            self._expansions = parts
            own = self.certificate_
            self.certificate_ = replace(
                own,
                lower_proof=f"{own.lower_proof}; {_OF_FACTORS}",
                upper_proof=f"{own.upper_proof}; {_OF_FACTORS}",
            )
            # a third party's algorithm may keep no solution to bound it by
            if result.solution is not None:
                self.exact_certificate_ = self._certify_exact(problem, result)

    def _charge(self, problem: Problem) -> Any:
        """Return what knows the set's ``worst``, as `formula.lower_bound` asks."""
        return problem.constraint

    def _certify_exact(self, problem: Problem, result: Result) -> Certificate:
        """Bound the optimum of the exact kernels.

        With K − ZZᵀ positive semidefinite the learner's maximum is lower with K than with ZZᵀ at
        all weights, so that every upper bound stays one. A feasible dual point is feasible for
        both, and bounds from below what its quadratic forms in K allow.
        """
        stored, solution = problem.family.fitted, result.solution
        forms = stored.exact_forms(np.atleast_2d(solution.dual_coef))
        lower = lower_bound(solution, self._charge(problem), forms)
        upper = result.upper_bound
        return Certificate(min(lower, upper), upper, _EXACT_LOWER, _EXACT_UPPER)

    def _products(self, X: Rows) -> FloatArray:
        if self._expansions is None:
            return super()._products(X)
        X = like(self._rows, self._points(X))
        scaled = X if self._scale is None else self._scale(X)
        values = np.zeros((X.shape[0], len(self._coef)))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, X.shape[0], _BLOCK):
                rows = slice(start, start + _BLOCK)
                for kernel, points, dual in self._expansions:
                    values[rows] += kernel(scaled[rows], points) @ dual
        check_decision(values, X)
        return values

    def _unfitted(self, problem: Problem) -> Problem:
        """Return the problem with a family that computes matrices or factors again when asked."""
        if self._is_precomputed:
            return problem
        exact = self.approximation_ is None
        family = self._dictionary() if exact else replace(problem.family, fitted=None)
        return replace(problem, family=deepcopy(family))
