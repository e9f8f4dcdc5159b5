"""The problem of sparse multiple kernel learning: Gram matrices, targets, learner and penalty."""

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
    """``min over β of Σₜ max κ(uₜ) − ½uₜᵀK(β)uₜ + λ‖β‖²``, β ≥ 0, Σβ = 1, at most k₀ of them > 0.

    - `grams`: the q Gram matrices of the n samples
    - `targets` of shape (t, n): a row for each task
    - `learner`: κ and the box of u, such as `SVC` or `SVR`
    - `lam`, `k0`: λ and k₀, the latter at most q
    - `sample_weight` of shape (n,): multiplies C for each sample; ``None`` for ones
    """

    grams: Stack
    targets: FloatArray
    learner: BoxLearner
    lam: float
    k0: int
    sample_weight: FloatArray | None = None

    def oracle(self, pool: CutPool | None = None) -> SaddleOracle:
        """Return what evaluates the inner maximum at any β; ``pool``: known cuts to start from."""
        return SaddleOracle(self.grams, self.targets, self.learner, self.sample_weight, pool)

    def boxes(self) -> list[BoxProblem]:
        """Return the dual of each task's learner, for its p, lower, upper and ε.

        These do not depend on β, so any of the Gram matrices will do as its K.
        """
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
    """Check the arguments that all relaxations share and return them as a problem.

    `y` of shape (n,) or (t, n); either `C`, for `SVC`, or a `learner`; `check`: whether to check
    the Gram matrices. A `k0` above the number of kernels is set to that number. Raises ValueError
    if y does not have n samples, if λ or k₀ is out of range, or if not exactly one of C and learner
    is given.
    """
    stack = as_stack(grams, check=check)
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64))
    if targets.shape[1] != stack.n_samples:
        raise ValueError(f"y must have {stack.n_samples} samples, got shape {np.shape(y)}")
    k0 = KSupport(lam, k0).on(len(stack)).capacity
    weight = check_sample_weight(sample_weight, stack.n_samples)
    return SparseProblem(stack, targets, as_learner(C, learner), float(lam), k0, weight)
