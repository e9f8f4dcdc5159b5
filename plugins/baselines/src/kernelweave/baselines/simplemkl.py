"""SimpleMKL: the saddle over kernel weights on the simplex, by cuts shared with the package.

``min over β ≥ 0, Σβ = 1 of [Σₜ max κ(uₜ) − ½ Σⱼ βⱼ uₜᵀKⱼuₜ]``: Rakotomamonjy, Bach, Canu and
Grandvalet, "SimpleMKL", JMLR 2008, problem (10). The authors descend along a reduced gradient
(`kernelweave.baselines.reduced_gradient`); the cuts of all learner solves together need fewer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import fit_family, stack_of
from kernelweave.qp_smo.saddle import NoPenalty, SaddleOracle, SaddleSearch

_TIGHTEST = 1e-9
_IDLE = 5


def oracle_of(problem: Problem) -> SaddleOracle:
    """Return the saddle function of a problem: learner solves at given weights, and their cuts.

    `problem`: a dictionary, a learner and a set of all weights that sum to one. Raises ValueError
    if a parameter of the learner is out of range.
    """
    problem.learner.validate()
    weight = problem.sample_weight
    return SaddleOracle(
        stack_of(fit_family(problem.family, problem.X)),
        np.asarray(problem.targets, dtype=np.float64),
        problem.learner,
        None if weight is None else np.asarray(weight, dtype=np.float64),
    )


class SimpleMKL:
    """``mkl-simple``: cutting planes, one learner solve a step."""

    def init(self, problem: Problem, random_state: np.random.RandomState) -> SaddleSearch:
        """Solve the learner at equal weights.

        `problem`: a dictionary, a learner and a set of all weights that sum to one; `random_state`:
        not used.
        """
        oracle = oracle_of(problem)
        search = SaddleSearch(oracle, NoPenalty().on(len(oracle.grams)), _TIGHTEST)
        search.visit(problem.constraint.start(len(oracle.grams)))
        self.idle = 0
        return search

    def step(self, state: SaddleSearch) -> SaddleSearch:
        """Evaluate ``state`` where its cuts say, and bound it again."""
        before = (state.lower, state.upper)
        state.step()
        self.idle = self.idle + 1 if (state.lower, state.upper) == before else 0
        return state

    def gap(self, state: SaddleSearch) -> tuple[float, float]:
        """Return the least value of the cuts of ``state`` and its best primal value."""
        return min(state.lower, state.upper), state.upper

    def best(self, state: SaddleSearch) -> FloatArray:
        """Return the weights of the best point of ``state``, shape (q,)."""
        assert state.best is not None
        return state.best.weights

    def solution(self, state: SaddleSearch) -> Any:
        """Return the learner's solution at the best point of ``state``."""
        assert state.best is not None
        return state.best.solution

    def counts(self, state: SaddleSearch) -> dict[str, int]:
        """Return how many times ``state`` solved the learner."""
        return {"n_svm_solves": state.oracle.counts.n_svm_solves}

    def outcome(self, state: SaddleSearch) -> Status | None:
        """Return why to stop at ``state``, or ``None``."""
        return Status.STALLED if self.idle >= _IDLE else None
