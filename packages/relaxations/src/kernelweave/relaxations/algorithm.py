"""The global search for the driver: first the relaxation, then the supports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse.algorithm import oracle_of

from .search import SupportSearch
from .settings import BranchAndBound


class GlobalSearch:
    """Cutting planes for the relaxation, then branch and bound on supports with the same cuts."""

    settings: BranchAndBound = BranchAndBound()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> SupportSearch:
        """Evaluate the first sparse weights.

        `problem`: a dictionary, a learner and a `SparseSimplex`; `random_state`: not used.
        """
        accuracy = 1e-5 if self.settings.accuracy is None else self.settings.accuracy
        oracle, _ = oracle_of(problem)
        search = SupportSearch(oracle, problem.constraint.relaxed(len(oracle.grams)), accuracy)
        search.step()
        return search

    def step(self, state: SupportSearch) -> SupportSearch:
        """Take a round of the relaxation, or look at branches."""
        state.step()
        return state

    def gap(self, state: SupportSearch) -> tuple[float, float]:
        """Return the lower bound of the lowest branch and the best objective."""
        return state.lower, state.upper

    def best(self, state: SupportSearch) -> FloatArray:
        """Return the best sparse weights, shape (q,)."""
        assert state.best is not None
        return state.best.weights

    def solution(self, state: SupportSearch) -> Any:
        """Return the learner's solution at the best weights."""
        assert state.best is not None
        return state.best.solution

    def counts(self, state: SupportSearch) -> Mapping[str, int]:
        """Return learner solves, master solves and branches."""
        counts = state.oracle.counts
        return {
            "n_svm_solves": counts.n_svm_solves,
            "n_master_solves": counts.n_master_solves,
            "n_nodes": state.n_nodes,
        }

    def outcome(self, state: SupportSearch) -> Status | None:
        """Stop where rounding lets no branch be closed any further."""
        return Status.STALLED if state.is_stuck else None
