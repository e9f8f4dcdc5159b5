"""A whole plugin in one file: exponentiated gradient over a dictionary of kernels.

min over β in the simplex, max over the learner's dual variables u, of
κ(u) − ½ Σⱼ βⱼ Σₜ uₜᵀ Kⱼ uₜ  (Kivinen and Warmuth 1997 give the update). It asks nothing of the
learner but its solution, so it serves every learner, yours too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import (
    AlgorithmSpec,
    ComponentSpec,
    Needs,
    Problem,
    Solution,
    hookimpl,
)
from kernelweave.kernels_core.formula import lower_bound
from kernelweave.kernels_core.rounding import gamma

NAME = "template-exponentiated-gradient"


@dataclass(frozen=True)
class TemplateSimplex:
    """{β : β ≥ 0, Σβ = 1}, one weight per kernel."""

    name: ClassVar[str] = "template-simplex"
    total: ClassVar[float] = 1.0

    def validate(self, n_kernels: int | None = None) -> None:
        """Do nothing: there is nothing to choose."""

    def start(self, n_kernels: int) -> npt.NDArray[np.float64]:
        """Return equal weights, shape (n_kernels,)."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return 0: the set charges nothing."""
        return 0.0

    def worst(self, forms: npt.NDArray[np.float64]) -> float:
        """Return the largest formsᵀβ: all weight on the largest entry."""
        return float(forms.max())


class ExponentiatedGradient:
    """βⱼ ← βⱼ exp(r qⱼ / max q) / Σ; the rate r grows by 1.5 after a descent, else it halves.

    ``parameters`` are the weights β, ``solution`` is the learner's there, and ``lower`` and
    ``upper`` are proofs.
    """

    def __init__(self, problem: Problem, random_state: np.random.RandomState) -> None:
        """Start at equal weights; nothing is random."""
        self.problem = problem
        self.fitted = problem.family.fit_grams(problem.X)
        self.diagonals = np.abs(np.einsum("jii->ji", self.fitted.grams))
        self.rate = 1.0
        beta = problem.constraint.start(len(self.fitted))
        self._enter(beta, self._solve(beta, None))

    def _solve(
        self, beta: npt.NDArray[np.float64], dual0: npt.NDArray[np.float64] | None
    ) -> Solution:
        problem = self.problem
        solution: Solution = problem.learner.solve(
            self.fitted.gram(problem.X, beta),
            problem.targets,
            sample_weight=problem.sample_weight,
            dual0=dual0,
            tol=1e-6,
        )
        return solution

    def _enter(self, beta: npt.NDArray[np.float64], solution: Solution) -> None:
        """Make β the present iterate, with qⱼ = Σₜ uₜᵀ Kⱼ uₜ there."""
        u = solution.dual_coef
        self.q = np.einsum("ti,jik,tk->j", u, self.fitted.grams, u, optimize=True)
        self.parameters, self.solution = beta, solution

    def step(self) -> None:
        """Move the weights towards the kernels with the largest q, unless the value rises."""
        largest = max(self.q.max(), np.finfo(np.float64).tiny)
        beta = self.parameters * np.exp(self.rate * (self.q / largest - 1.0))
        beta = beta / beta.sum()
        solution = self._solve(beta, self.solution.dual_coef)
        if solution.upper_bound <= self.solution.upper_bound:
            self._enter(beta, solution)
            self.rate *= 1.5
        else:
            self.rate *= 0.5

    @property
    def lower(self) -> float:
        """max over s of κ(su) − ½s² max q, proved for any feasible u, rounded down."""
        mass = (np.sqrt(self.diagonals) @ np.abs(self.solution.dual_coef).T) ** 2
        rounding = gamma(2 * self.problem.n_samples + 8) * mass.sum(axis=1)
        above = np.maximum(self.q, 0.0) + rounding
        return lower_bound(self.solution, self.problem.constraint, above)

    @property
    def upper(self) -> float:
        """The learner's primal value, with what rounding can change in K(β)."""
        beta = self.parameters
        spread = np.sqrt(gamma(len(beta) + 4) * (beta @ self.diagonals))
        return self.solution.upper_bound + self.solution.margin(spread)


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    """Register the algorithm; the target is imported when it runs."""
    register(
        AlgorithmSpec(
            name=NAME,
            target="kernelweave_template:ExponentiatedGradient",
            needs=Needs(
                family=("fit_grams", "degree=1"),
                learner=("solve",),
                constraint=("worst", "total=1.0"),
            ),
            prefers=("svc", "svr", TemplateSimplex.name),
            tasks=("classification", "regression"),
            paper="Kivinen and Warmuth 1997",
            summary="multiplicative updates of the kernel weights",
            scaling={"m": 2.1, "q": 1.0},
        )
    )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    """Register the set of the weights."""
    register(
        ComponentSpec(
            name=TemplateSimplex.name,
            target="kernelweave_template:TemplateSimplex",
            summary="{β ≥ 0, Σβ = 1}",
        )
    )
