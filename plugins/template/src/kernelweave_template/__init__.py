"""A whole plugin in one file: exponentiated gradient over a dictionary of kernels.

min over β in the simplex, max over the learner's dual variables u, of
κ(u) − ½ Σⱼ βⱼ Σₜ uₜᵀ Kⱼ uₜ  (Kivinen and Warmuth 1997 give the update).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Problem, hookimpl

NAME = "template-exponentiated-gradient"


@dataclass(frozen=True)
class TemplateSimplex:
    """{β : β ≥ 0, Σβ = 1}, one weight per kernel."""

    name: ClassVar[str] = "template-simplex"


class State(NamedTuple):
    """Weights, the learner's solution at them, and qⱼ = ½ Σₜ uₜᵀ Kⱼ uₜ."""

    beta: npt.NDArray[np.float64]
    solution: Any
    q: npt.NDArray[np.float64]
    rate: float


class ExponentiatedGradient:
    """βⱼ ← βⱼ exp(r qⱼ / max q) / Σ; the rate r grows by 1.5 after a descent, else it halves."""

    def init(self, problem: Problem, random_state: np.random.RandomState) -> State:
        """Start at equal weights; nothing is random."""
        self.problem = problem
        self.fitted = problem.family.fit_grams(problem.X)
        beta = np.full(len(self.fitted), 1.0 / len(self.fitted))
        return self._solve(beta, rate=1.0, warm=None)

    def _solve(self, beta: npt.NDArray[np.float64], rate: float, warm: Any) -> State:
        problem, K = self.problem, self.fitted.gram(beta)
        weight = problem.sample_weight
        solution = problem.learner.solve(
            K, problem.targets, sample_weight=weight, dual0=warm, tol=1e-6
        )
        u = solution.dual_coef
        q = 0.5 * np.einsum("ti,jik,tk->j", u, self.fitted.grams, u, optimize=True)
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
        """Return κ(u) − max q, no larger than the optimum for any u, and the primal value."""
        slack = self._rounding(state.solution.dual_coef)
        lower = state.solution.kappa - state.q.max() - slack
        return float(lower), float(state.solution.upper_bound + slack)

    def _rounding(self, u: npt.NDArray[np.float64]) -> float:
        """Bound what rounding in K(β) and q can change, so that both bounds are proofs."""
        problem, mass = self.problem, np.abs(u).sum(axis=1)
        weight = problem.sample_weight
        caps = problem.learner.C * (problem.n_samples if weight is None else np.sum(weight))
        terms = 2 * problem.n_samples + len(self.fitted)
        unit = terms * np.finfo(np.float64).eps * np.abs(self.fitted.grams).max()
        return float(unit * np.sum(mass * (mass + caps)))

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
            accepts=tuple(("dictionary", each, TemplateSimplex.name) for each in ("svc", "svr")),
            tasks=("classification", "regression"),
            paper="Kivinen and Warmuth 1997",
            summary="multiplicative updates of the kernel weights",
            scaling={"m": 2.4, "n_kernels": 1.0},
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
