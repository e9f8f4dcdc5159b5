"""Algorithms that choose the weights by a rule and then train the learner once."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import fit_family, require_psd, stack_of
from kernelweave.kernels_core.rounding import UNIT

# The learner's tolerances: of the first solve, and where further steps end since rounding is next.
# Each step asks for a tenth.
_FIRST_TOL, _LAST_TOL = 3e-4, 1e-12


class RuleWeights:
    """``mkl-average``, ``mkl-easy``, ``mkl-cka``, ``mkl-pwmk``: a rule, then one learner.

    The set of weights is the one point that the constraint finds, so the optimum that the bounds
    enclose is that of the learner at these weights. Steps tighten the learner's tolerance.
    """

    def __init__(self, problem: Problem, random_state: np.random.RandomState) -> None:
        """Find the weights and solve the learner there.

        `problem`: a dictionary, a learner and a rule; `random_state`: not used: no rule draws
        anything. Raises NotPSDError if a weight is negative and K(β) is not positive semidefinite.
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
        self.spread = np.full(stack.n_samples, np.sqrt(1.01 * (len(beta) + 4) * UNIT * size))
        self.parameters: FloatArray = beta
        self.solution: Any = None
        self._K, self._tol, self._n_solves = K, 10.0 * _FIRST_TOL, 0
        self.step()

    def step(self) -> None:
        """Solve with a tenth of the last tolerance."""
        self._tol *= 0.1
        self.solution = self.problem.learner.solve(
            self._K,
            self.targets,
            sample_weight=self.sample_weight,
            dual0=None if self.solution is None else self.solution.dual_coef,
            tol=self._tol,
            check=False,
        )
        self._n_solves += 1
        self._margin = float(self.solution.margin(self.spread))

    @property
    def lower(self) -> float:
        """The dual value, rounded down."""
        return max(float(self.solution.lower_bound) - self._margin, 0.0)

    @property
    def upper(self) -> float:
        """The primal value, rounded up."""
        return float(self.solution.upper_bound) + self._margin

    @property
    def counts(self) -> dict[str, int]:
        """How many times the learner was solved after the rule."""
        return {"n_svm_solves": self._n_solves}

    @property
    def outcome(self) -> Status | None:
        """Stop where the learner ended early or the tolerance is the least."""
        ended = self.solution.status.value != "converged"
        return Status.STALLED if ended or self._tol <= _LAST_TOL else None
