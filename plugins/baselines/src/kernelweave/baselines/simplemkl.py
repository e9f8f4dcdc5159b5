"""SimpleMKL: the saddle over kernel weights on the simplex, by cuts shared with the package.

``min over β ≥ 0, Σβ = 1 of [Σₜ max κ(uₜ) − ½ Σⱼ βⱼ uₜᵀKⱼuₜ]``: Rakotomamonjy, Bach, Canu and
Grandvalet, "SimpleMKL", JMLR 2008, problem (10). The authors descend along a reduced gradient
(`kernelweave.baselines.reduced_gradient`); the cuts of all learner solves together need fewer.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.grams import fit_family, stack_of
from kernelweave.qp_smo.saddle import NoPenalty, SaddleOracle, SaddleSearch

# The relative gap that the search itself aims at, which sets how exact its last solves are. Whoever
# asks for a wider one is served before.
_TIGHTEST = 1e-9


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


class SimpleMKL(SaddleSearch):
    """``mkl-simple``: cutting planes, one learner solve a step."""

    def __init__(self, problem: Problem, random_state: np.random.RandomState) -> None:
        """Solve the learner at equal weights.

        `problem`: a dictionary, a learner and a set of all weights that sum to one; `random_state`:
        not used.
        """
        oracle = oracle_of(problem)
        super().__init__(oracle, NoPenalty().on(len(oracle.grams)), _TIGHTEST)
        self.visit(problem.constraint.start(len(oracle.grams)))
