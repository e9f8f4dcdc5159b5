"""Algorithms that choose the weights by a rule and then train the learner once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import fit_family, require_psd, stack_of
from kernelweave.kernels_core.rounding import UNIT

# The learner's tolerances: of the first solve, and where further steps end since rounding is next.
# Each step asks for a tenth.
_FIRST_TOL, _LAST_TOL = 3e-4, 1e-12


def rule_weights(problem: Problem, random_state: np.random.RandomState) -> RuleWeights:
    """Return the search at the weights of the rule, with the learner solved there.

    Raises NotPSDError if a weight is negative and K(β) is not positive semidefinite.
    """
    rule, learner = problem.constraint, problem.learner
    rule.validate()
    learner.validate()
    targets = np.asarray(problem.targets, dtype=np.float64)
    fitted = fit_family(problem.family, problem.X)
    stack = stack_of(fitted)
    given, weight = getattr(fitted, "grams", stack), problem.sample_weight
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    beta = np.asarray(rule.weights(given, targets, weight, learner=learner))
    K = stack.combine(beta)
    if (beta < 0.0).any():
        require_psd(K, f"the combination with the weights {beta.round(4).tolist()}")
    # what q + 1 roundings leave of Σ |βⱼ| max |Kⱼ|; single matrices may be indefinite
    size = float(stack.largest @ np.abs(beta))
    spread = np.full(stack.n_samples, np.sqrt(1.01 * (len(beta) + 4) * UNIT * size))
    search = RuleWeights(problem, beta, K, spread)
    search.step()
    return search


@dataclass
class RuleWeights:
    """``mkl-average``, ``mkl-easy``, ``mkl-cka``, ``mkl-pwmk``: a rule, then one learner.

    The set of weights is the one point that the constraint finds, so the optimum that the bounds
    enclose is that of the learner at these weights. Steps tighten the learner's tolerance.

    - `parameters` of shape (q,): the weights; `K`: the sum of the matrices there
    - `spread` of shape (n,): s, where entry (i, j) of K is off by sᵢsⱼ at most
    - `tol`: of the last solve; `n_solves`: how many there were
    """

    problem: Problem
    parameters: FloatArray
    K: Any
    spread: FloatArray
    solution: Any = None
    tol: float = 10.0 * _FIRST_TOL
    n_solves: int = 0

    def step(self) -> None:
        """Solve with a tenth of the last tolerance."""
        self.tol *= 0.1
        self.solution = self.problem.learner.solve(
            self.K,
            self.problem.targets,
            sample_weight=self.problem.sample_weight,
            dual0=None if self.solution is None else self.solution.dual_coef,
            tol=self.tol,
            check=False,
        )
        self.n_solves += 1

    @property
    def lower(self) -> float:
        """The dual value, rounded down."""
        return max(float(self.solution.lower_bound - self.solution.margin(self.spread)), 0.0)

    @property
    def upper(self) -> float:
        """The primal value, rounded up."""
        return float(self.solution.upper_bound + self.solution.margin(self.spread))

    @property
    def counts(self) -> dict[str, int]:
        """How many times the learner was solved after the rule."""
        return {"n_svm_solves": self.n_solves}

    @property
    def outcome(self) -> Status | None:
        """Stop where the learner ended early or the tolerance is the least."""
        ended = self.solution.status.value != "converged"
        return Status.STALLED if ended or self.tol <= _LAST_TOL else None
