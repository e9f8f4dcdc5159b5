"""A whole plugin in one file: exponentiated gradient over a dictionary of kernels.

min over β in the simplex, max over the learner's dual variables u, of
κ(u) − ½ Σⱼ βⱼ Σₜ uₜᵀ Kⱼ uₜ  (Kivinen and Warmuth 1997 give the update). It asks nothing of the
learner but its solution, so it serves every learner, yours too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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


class State(NamedTuple):
    """Weights, the learner's solution at them, and qⱼ = Σₜ uₜᵀ Kⱼ uₜ."""

    beta: npt.NDArray[np.float64]
    solution: Solution
    q: npt.NDArray[np.float64]
    rate: float


class ExponentiatedGradient:
    """βⱼ ← βⱼ exp(r qⱼ / max q) / Σ; the rate r grows by 1.5 after a descent, else it halves."""

    def init(self, problem: Problem, random_state: np.random.RandomState) -> State:
        """Start at equal weights; nothing is random."""
        self.problem = problem
        self.fitted = problem.family.fit_grams(problem.X)
        beta = problem.constraint.start(len(self.fitted))
        return self._solve(beta, rate=1.0, warm=None)

    def _solve(self, beta: npt.NDArray[np.float64], rate: float, warm: Any) -> State:
        problem, K = self.problem, self.fitted.gram(beta)
        weight = problem.sample_weight
        solution = problem.learner.solve(
            K, problem.targets, sample_weight=weight, dual0=warm, tol=1e-6
        )
        u = solution.dual_coef
        q = np.einsum("ti,jik,tk->j", u, self.fitted.grams, u, optimize=True)
        return State(beta, solution, q, rate)

    def step(self, state: State) -> State:
        """Move the weights towards the kernels with the largest q."""
        largest = max(state.q.max(), np.finfo(np.float64).tiny)
        beta = state.beta * np.exp(state.rate * (state.q / largest - 1.0))
        new = self._solve(beta / beta.sum(), state.rate, warm=state.solution.dual_coef)
        if new.solution.upper_bound <= state.solution.upper_bound:
            return new._replace(rate=1.5 * state.rate)
        return state._replace(rate=0.5 * state.rate)

    def gap(self, state: State) -> tuple[float, float]:
        """Return max over s of κ(su) − ½s² max q, proved for any feasible u, and the primal value.

        What rounding can change in q and in K(β) is added, so that both bounds are proofs.
        """
        diagonals = np.abs(np.einsum("jii->ji", self.fitted.grams))
        mass = (np.sqrt(diagonals) @ np.abs(state.solution.dual_coef).T) ** 2
        above = np.maximum(state.q, 0.0) + gamma(2 * self.problem.n_samples + 8) * mass.sum(axis=1)
        lower = lower_bound(state.solution, self.problem.constraint, above)
        spread = np.sqrt(gamma(len(state.beta) + 4) * (state.beta @ diagonals))
        return lower, state.solution.upper_bound + state.solution.margin(spread)

    def best(self, state: State) -> npt.NDArray[np.float64]:
        """Return β."""
        return state.beta

    def solution(self, state: State) -> Any:
        """Return the learner's solution at β, so that it is not solved again."""
        return state.solution


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
            scaling={"m": 2.1, "n_kernels": 1.0},
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
