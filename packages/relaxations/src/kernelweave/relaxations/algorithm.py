"""The global search for the driver: first the relaxation, then the supports."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse.algorithm import oracle_of

from .search import SupportSearch
from .settings import BranchAndBound

_DEFAULTS = BranchAndBound()


def global_search(
    problem: Problem,
    random_state: np.random.RandomState,
    settings: BranchAndBound = _DEFAULTS,
) -> GlobalSearch:
    """Return the search at its first sparse weights.

    `problem`: a dictionary, a learner and a `SparseSimplex`; `random_state`: not used.
    """
    accuracy = 1e-5 if settings.accuracy is None else settings.accuracy
    oracle, _ = oracle_of(problem)
    search = GlobalSearch(oracle, problem.constraint.relaxed(len(oracle.grams)), accuracy)
    search.step()
    return search


class GlobalSearch(SupportSearch):
    """Cutting planes for the relaxation, then branch and bound on supports with the same cuts."""

    @property
    def parameters(self) -> FloatArray:
        """Return the best sparse weights, shape (q,)."""
        assert self.best is not None
        return self.best.weights

    @property
    def solution(self) -> Solution:
        """Return the learner's solution at the best weights."""
        assert self.best is not None
        return self.best.solution

    @property
    def counts(self) -> dict[str, int]:
        """Return learner solves, master solves and branches."""
        counts = self.oracle.counts
        return {
            "n_svm_solves": counts.n_svm_solves,
            "n_master_solves": counts.n_master_solves,
            "n_nodes": self.n_nodes,
        }

    @property
    def outcome(self) -> Status | None:
        """Stop where rounding lets no branch be closed any further."""
        return Status.STALLED if self.is_stuck else None
