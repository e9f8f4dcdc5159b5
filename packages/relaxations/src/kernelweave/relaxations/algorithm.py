"""The global search for the driver: first the relaxation, then the supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse.algorithm import oracle_of
from kernelweave.qp_smo.saddle import KSupport, SaddleSearch
from numpy.typing import NDArray

from .branch_and_bound import SupportSearch, sparse_part

FloatArray = NDArray[np.float64]


@dataclass
class GlobalState:
    """Where the search is.

    Attributes
    ----------
    root : SaddleSearch
        The relaxation.
    search : SupportSearch
        Branch and bound; it holds the best sparse weights from the start.
    branching : bool
        Whether the relaxation is done.
    """

    root: SaddleSearch
    search: SupportSearch
    branching: bool = False
    idle: int = 0


class GlobalSearch:
    """Cutting planes for the relaxation, then branch and bound on supports with the same cuts."""

    def init(
        self, problem: Problem, random_state: np.random.RandomState, *, accuracy: float = 1e-5
    ) -> GlobalState:
        """Evaluate the first sparse weights.

        Parameters
        ----------
        problem : Problem
            A dictionary, a learner and a `SparseSimplex`.
        random_state : RandomState
            Not used.
        accuracy : float
            Relative gap to which the relaxation and each support are solved.
        """
        oracle, _ = oracle_of(problem)
        penalty = KSupport(problem.constraint.lam, problem.constraint.k0).on(len(oracle.grams))
        root = SaddleSearch(oracle, penalty, accuracy)
        search = SupportSearch(oracle, penalty, penalty.capacity, accuracy)
        root.step()
        assert root.best is not None
        search.visit(sparse_part(root.best.weights, search.k0))
        return GlobalState(root, search)

    def step(self, state: GlobalState) -> GlobalState:
        """Take a round of the relaxation, or look at one branch."""
        if state.branching:
            state.search.step()
            return state
        before = (state.root.lower, state.root.upper)
        state.root.step()
        state.idle = state.idle + 1 if before == (state.root.lower, state.root.upper) else 0
        if state.root.gap <= state.root.tol or state.idle >= 5:
            assert state.root.best is not None
            state.branching = True
            state.search.start(state.root.lower)
            state.search.visit(sparse_part(state.root.best.weights, state.search.k0))
        return state

    def gap(self, state: GlobalState) -> tuple[float, float]:
        """Return the lower bound of the lowest branch and the best objective."""
        upper = state.search.upper
        lower = state.search.lower if state.branching else state.root.lower
        return min(lower, upper), upper

    def best(self, state: GlobalState) -> FloatArray:
        """Return the best sparse weights, shape (q,)."""
        assert state.search.best is not None
        return state.search.best.weights

    def solution(self, state: GlobalState) -> Any:
        """Return the learner's solution at the best weights."""
        assert state.search.best is not None
        return state.search.best.solution

    def counts(self, state: GlobalState) -> Mapping[str, int]:
        """Return learner solves, master solves and branches."""
        counts = state.search.oracle.counts
        return {
            "n_svm_solves": counts.n_svm_solves,
            "n_master_solves": counts.n_master_solves,
            "n_nodes": state.search.n_nodes,
        }

    def outcome(self, state: GlobalState) -> Status | None:
        """Stop where rounding lets no branch be closed any further."""
        return Status.STALLED if state.branching and state.search.is_stuck else None
