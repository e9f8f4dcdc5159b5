"""Algorithms that choose the weights by a rule and then train the learner once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import fit_family, require_psd, stack_of

_UNIT = 2.0**-53
_FIRST_TOL, _LAST_TOL = 3e-4, 1e-12


@dataclass(frozen=True)
class RuleState:
    """The learner at the weights of the rule.

    - `weights` of shape (q,): β
    - `K` of shape (n, n): K(β), or what computes its entries from factors
    - `tol`: tolerance of the last solve
    - `solution`: the learner's duals; ``None`` before the first solve
    - `n_solves`: learner solves after the rule
    """

    weights: FloatArray
    K: Any
    tol: float
    solution: Any
    n_solves: int = 0


class RuleWeights:
    """``mkl-average``, ``mkl-easy``, ``mkl-cka``, ``mkl-pwmk``: a rule, then one learner.

    The set of weights is the one point that the constraint finds, so the optimum that the bounds
    enclose is that of the learner at these weights. Steps tighten the learner's tolerance.
    """

    def init(self, problem: Problem, random_state: np.random.RandomState) -> RuleState:
        """Find the weights.

        `problem`: a dictionary, a learner and a rule; `random_state`: not used: no rule draws
        anything. Returns: after the first solve. Raises NotPSDError if a weight is negative and
        K(β) is not positive semidefinite.
        """
        rule, learner = problem.constraint, problem.learner
        rule.validate()
        learner.validate()
        self.problem = problem
        self.targets = np.asarray(problem.targets, dtype=np.float64)
        weight = problem.sample_weight
        self.sample_weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        known = fit_family(problem.family, problem.X)
        stack = stack_of(known)
        given = getattr(known, "grams", stack)
        beta = np.asarray(rule.weights(given, self.targets, self.sample_weight, learner=learner))
        # a check of the estimator may have formed the sum
        K = known.average if hasattr(known, "average") else stack.combine(beta)
        if (beta < 0.0).any():
            require_psd(K, f"the combination with the weights {beta.round(4).tolist()}")
        # what q + 1 roundings leave of Σ |βⱼ| max |Kⱼ|; single matrices may be indefinite
        size = float(stack.largest @ np.abs(beta))
        self.spread = np.full(stack.n_samples, np.sqrt(1.01 * (len(beta) + 4) * _UNIT * size))
        return self.step(RuleState(beta, K, 10.0 * _FIRST_TOL, None))

    def step(self, state: RuleState) -> RuleState:
        """Return the state after a solve with a tenth of the tolerance of ``state``."""
        tol = 0.1 * state.tol
        solution = self.problem.learner.solve(
            state.K,
            self.targets,
            sample_weight=self.sample_weight,
            dual0=None if state.solution is None else state.solution.dual_coef,
            tol=tol,
            check=False,
        )
        return replace(state, tol=tol, solution=solution, n_solves=state.n_solves + 1)

    def gap(self, state: RuleState) -> tuple[float, float]:
        """Return the dual and the primal value of ``state``, rounded outwards."""
        margin = state.solution.margin(self.spread)
        lower = float(state.solution.lower_bound) - margin
        return max(lower, 0.0), float(state.solution.upper_bound) + margin

    def best(self, state: RuleState) -> FloatArray:
        """Return the weights of ``state``, shape (q,)."""
        return state.weights

    def solution(self, state: RuleState) -> Any:
        """Return the learner's solution at ``state``."""
        return state.solution

    def counts(self, state: RuleState) -> dict[str, int]:
        """Return how many times the learner was solved after the rule, at ``state``."""
        return {"n_svm_solves": state.n_solves}

    def outcome(self, state: RuleState) -> Status | None:
        """Return why to stop at ``state``, or ``None``."""
        ended = state.solution.status.value != "converged"
        return Status.STALLED if ended or state.tol <= _LAST_TOL else None
