"""The relaxation over more kernels than are looked at: some of them work, the others are priced.

A cut of many kernels costs one pass through each of their matrices, and few of them have a weight
in the relaxation. So it is solved over a working set, with cuts that are known of it alone; then
the forms of all cuts are computed for the other kernels in one pass, which is the proof, and
kernels that it fails for join the set.
"""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.clock import expired
from kernelweave.qp_smo.saddle import (
    MasterSolution,
    SaddleEvaluation,
    SaddleOracle,
    SaddleSearch,
    WeightPenalty,
)
from numpy.typing import NDArray

# Kernels from which on there is a working set, and how many join it at a time.
WIDE = 200
_JOIN = 48
# Answers of the weights to the learner, one after the other, that find where to begin.
_ANSWERS = 8


class WorkingSet:
    """The kernels that the relaxation is solved over."""

    def __init__(self, oracle: SaddleOracle, penalty: WeightPenalty, tol: float) -> None:
        self.is_priced = len(oracle.grams) < WIDE
        self._oracle, self._penalty, self._tol = oracle, penalty, tol
        self._at_work = np.full(len(oracle.grams), self.is_priced)

    def search(self) -> SaddleSearch:
        """Return the search over the kernels at work, from the cuts that there are."""
        if self._at_work.all():
            return SaddleSearch(self._oracle, self._penalty, self._tol)
        without = self._penalty.excluded | ~self._at_work
        part = self._penalty.restricted(self._penalty.required, without)
        return SaddleSearch(self._oracle, part, self._tol, self._at_work)

    def begin(self) -> list[SaddleEvaluation]:
        """Choose the first kernels by the forms of the learner's answers; return sparse points."""
        allowed, found = self._penalty.allowed, list[SaddleEvaluation]()
        weights: FloatArray = allowed / allowed.sum()
        for _ in range(_ANSWERS):
            point = self._oracle.evaluate(weights, np.inf)
            found.append(point)
            self._join(np.where(allowed, point.forms, -np.inf))
            answer = self._penalty.largest(np.where(allowed, point.forms, 0.0)) * 1.0
            weights = answer / answer.sum()
            if expired() or any(np.array_equal(weights, each.weights) for each in found):
                break
        return found[1:]

    def price(self, master: MasterSolution, lower: float, upper: float) -> bool:
        """Whether a master over all kernels proves most of what the search did over some.

        Else the kernels that its multipliers and weights want join. `lower`: what the search
        proved; `upper`: of the best sparse weights.
        """
        self.is_priced = master.lower_bound >= lower - 0.1 * abs(upper - lower)
        if not self.is_priced:
            gains = master.multipliers @ self._oracle.pool.half_forms - self._penalty.linear
            missing = self._penalty.allowed & ~self._at_work
            self._join(np.where(missing, gains, -np.inf))
            self._at_work |= master.weights > 0.0
        return self.is_priced

    def _join(self, rank: FloatArray) -> None:
        """Let the highest finite ranks join."""
        highest: NDArray[np.intp] = np.argsort(-rank, kind="stable")[:_JOIN]
        self._at_work[highest[np.isfinite(rank[highest])]] = True
