"""The relaxation over more kernels than are looked at: some of them work, the others are priced.

A cut of many kernels costs one pass through each of their matrices, and few of them have a weight
in the relaxation. So it is solved over a working set, with cuts that are known of it alone; then
the forms of all cuts are computed for the other kernels in one pass, which is the proof, and
kernels that it fails for join the set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.clock import expired
from kernelweave.qp_smo.saddle import (
    MasterSolution,
    SaddleEvaluation,
    SaddleOracle,
    SaddleSearch,
    WeightPenalty,
    lower_bound_from,
)
from numpy.typing import NDArray

# Kernels from which on there is a working set, and how many join it at a time.
WIDE = 200
_JOIN = 48
# Answers of the weights to the learner, one after the other, that find where to begin.
_ANSWERS = 8
# At most how many kernels a branch is peeled of; how many are few enough; how many learner solves
# look for fewer, and their accuracy as a share of the threshold.
_MOST_PEELED, _FEW, _TRIES, _ROUGH = 200, 12, 4, 0.02


@dataclass(frozen=True)
class Peeled:
    """A cut, the kernels that it is low on, the lowest first, and its bound without them."""

    cut: int
    kernels: NDArray[np.intp]
    bound: float


class WorkingSet:
    """The kernels that the relaxation is solved over."""

    def __init__(self, oracle: SaddleOracle, penalty: WeightPenalty, tol: float) -> None:
        self.is_wide = len(oracle.grams) >= WIDE
        self.is_priced = not self.is_wide
        self._oracle, self._penalty, self._tol = oracle, penalty, tol
        self._at_work = np.full(len(oracle.grams), self.is_priced)

    @property
    def has_begun(self) -> bool:
        """Whether any kernel is at work."""
        return bool(self._at_work.any())

    def search(self) -> SaddleSearch:
        """Return the search over the kernels at work, from the cuts that there are."""
        if self._at_work.all():
            return SaddleSearch(self._oracle, self._penalty, self._tol)
        without = self._penalty.excluded | ~self._at_work
        part = self._penalty.restricted(self._penalty.required, without)
        return SaddleSearch(self._oracle, part, self._tol, self._at_work)

    def peel(self, branch: WeightPenalty, threshold: float) -> Peeled | None:
        """Return the kernels without which one cut closes a branch, or None if they are many.

        Cuts from weights that are shared out among all kernels are low on few of them: others
        below the threshold contain one of these. Where no known cut does well, the learner is
        solved at the required kernels and equal weights, then at more of what that leaves.
        """
        peeled = self._peeled(branch, threshold)
        others, few = branch.free, max(int(branch.required.sum()), 1)
        # where one kernel is left to choose, to look at a few more costs less than a solve
        for _ in range(_TRIES if branch.n_supports > int(others.sum()) else 0):
            if (peeled is not None and peeled.kernels.size <= _FEW) or expired():
                break
            shared = np.zeros(others.size)
            shared[np.flatnonzero(others)[:: max(1, int(others.sum()) // WIDE)]] = 1.0
            weights = shared / max(float(shared.sum()), 1.0)
            if peeled is not None:
                weights[peeled.kernels] += 1.0 / peeled.kernels.size
                weights /= weights.sum()
            weights += branch.required * (0.5 / few)
            self._oracle.evaluate(weights / weights.sum(), _ROUGH * abs(threshold))
            again = self._peeled(branch, threshold)
            if again is None or (peeled is not None and again.kernels.size >= peeled.kernels.size):
                break
            peeled = again
        return peeled

    def _peeled(self, branch: WeightPenalty, threshold: float) -> Peeled | None:
        pool, free = self._oracle.pool, branch.free
        room = (pool.kappa - threshold)[:, None]
        over = pool.half_forms > room
        over[:, ~branch.allowed] = False
        counts = np.where(over[:, branch.required].any(axis=1), over.shape[1], over.sum(axis=1))
        cut = int(np.argmin(counts))
        if counts[cut] > min(_MOST_PEELED, 0.5 * int(free.sum())):
            return None
        kernels = np.flatnonzero(over[cut])
        rest = branch.restricted(branch.required, branch.excluded | over[cut])
        bound = np.inf if not rest.allowed.any() else self.bound(cut, rest)
        order = np.argsort(-pool.half_forms[cut, kernels], kind="stable")
        return Peeled(cut, kernels[order], bound) if bound >= threshold else None

    def bound(self, cut: int, branch: WeightPenalty) -> float:
        """Return what one cut proves of a branch."""
        pool, one = self._oracle.pool, slice(cut, cut + 1)
        return lower_bound_from(pool.kappa[one], pool.half_forms[one], np.ones(1), branch)

    def begin(self) -> list[SaddleEvaluation]:
        """Choose the first kernels by the forms of the learner's answers; return sparse points."""
        allowed, evaluations = self._penalty.allowed, list[SaddleEvaluation]()
        weights: FloatArray = allowed / allowed.sum()
        for _ in range(_ANSWERS):
            point = self._oracle.evaluate(weights, np.inf)
            evaluations.append(point)
            self._join(np.where(allowed, point.forms, -np.inf))
            answer = self._penalty.largest(np.where(allowed, point.forms, 0.0)) * 1.0
            weights = answer / answer.sum()
            if expired() or any(np.array_equal(weights, each.weights) for each in evaluations):
                break
        return evaluations[1:]

    def price(self, master: MasterSolution, lower: float, upper: float) -> bool:
        """Whether a master over all kernels proves most of what the search did over some.

        Else the kernels that its multipliers and weights want join. `lower`: what the search
        proved; `upper`: of the best sparse weights.
        """
        self.is_priced = master.lower_bound >= lower - 0.1 * abs(upper - lower)
        if not self.is_priced:
            gains = master.multipliers @ self._oracle.pool.half_forms
            missing = self._penalty.allowed & ~self._at_work
            self._join(np.where(missing, gains, -np.inf))
            self._at_work |= master.weights > 0.0
        return self.is_priced

    def _join(self, rank: FloatArray) -> None:
        """Let the highest finite ranks join."""
        highest: NDArray[np.intp] = np.argsort(-rank, kind="stable")[:_JOIN]
        self._at_work[highest[np.isfinite(rank[highest])]] = True
