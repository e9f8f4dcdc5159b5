"""Sparse multiple kernel learning as data: Gram matrices, targets, learner and penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import check_sample_weight
from kernelweave.kernels_core.grams import Stack, as_stack
from kernelweave.qp_smo.learners import BoxLearner
from kernelweave.qp_smo.problem import BoxProblem
from kernelweave.qp_smo.saddle import CutPool, KSupport, SaddleOracle, as_learner
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class SparseProblem:
    """``min over sparse β of Σₜ max κ(uₜ) − ½uₜᵀK(β)uₜ + λ‖β‖²`` as data.

    `targets` of shape (t, n); `sample_weight` of shape (n,).
    """

    grams: Stack
    targets: FloatArray
    learner: BoxLearner
    lam: float
    k0: int
    sample_weight: FloatArray | None = None

    def oracle(self, pool: CutPool | None = None) -> SaddleOracle:
        """Return the saddle function, with the cuts of ``pool``."""
        return SaddleOracle(self.grams, self.targets, self.learner, self.sample_weight, pool)

    def boxes(self) -> list[BoxProblem]:
        """Return the box problem of each task: p, lower, upper and ε of its dual."""
        K = self.grams.matrices[0]
        return [self.learner.problem(K, y, self.sample_weight) for y in self.targets]


def as_problem(
    grams: Stack | ArrayLike | Sequence[ArrayLike],
    y: ArrayLike,
    *,
    C: float | None,
    lam: float,
    k0: int,
    learner: BoxLearner | None = None,
    sample_weight: ArrayLike | None = None,
    check: bool = True,
) -> SparseProblem:
    """Check and gather what every relaxation needs.

    Raises ValueError if the number of targets does not fit the Gram matrices, or λ or k₀ is out of
    range.
    """
    stack = as_stack(grams, check=check)
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
    if targets.shape[1] != stack.n_samples:
        raise ValueError(f"y must have {stack.n_samples} samples, got shape {np.shape(y)}")
    k0 = KSupport(lam, k0).on(len(stack)).capacity
    weight = check_sample_weight(sample_weight, stack.n_samples)
    return SparseProblem(stack, targets, as_learner(C, learner), float(lam), k0, weight)
