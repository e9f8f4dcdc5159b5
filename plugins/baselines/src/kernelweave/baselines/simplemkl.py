"""SimpleMKL: the saddle over kernel weights on the simplex, by cuts.

``min over β ≥ 0, Σβ = 1 of [Σₜ max κ(uₜ) − ½ Σⱼ βⱼ uₜᵀKⱼuₜ]``: Rakotomamonjy, Bach, Canu and
Grandvalet, "SimpleMKL", JMLR 2008, problem (10). The authors descend along a reduced gradient and
search a line; the cuts of all learner solves together reach the same optimum in far fewer.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.grams import fit_family, stack_of
from kernelweave.kernels_core.parameters import Value
from kernelweave.kernels_core.psd_cone import project_simplex
from kernelweave.qp_smo.saddle import KSupport, SaddleOracle, SaddleSearch


class Simplex(Value):
    """{β ≥ 0, Σβ = 1}.

    Examples
    --------
    >>> from kernelweave.baselines import Simplex
    >>> Simplex().start(4)
    array([0.25, 0.25, 0.25, 0.25])
    >>> Simplex().project([1.0, 0.6, 0.0])
    array([0.7, 0.3, 0. ])
    """

    name: ClassVar[str] = "simplex"
    total: ClassVar[float] = 1.0
    curvature: ClassVar[float] = 0.0

    def validate(self, n_kernels: int | None = None) -> None:
        """Do nothing: the set has no parameters, and any number of kernels is allowed."""

    def start(self, n_kernels: int) -> FloatArray:
        """Return equal weights, 1/q each."""
        return np.full(n_kernels, 1.0 / n_kernels)

    def random_start(self, n_kernels: int, random_state: np.random.RandomState) -> FloatArray:
        """Return a point drawn evenly from the simplex, shape (q,), for q = ``n_kernels``."""
        drawn = random_state.exponential(size=n_kernels)
        return np.asarray(drawn / drawn.sum())

    def project(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the nearest weights, shape (q,): (β − τ)₊ with the τ that makes them sum to 1."""
        return project_simplex(np.asarray(weights, dtype=np.float64), 1.0)

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return 0: the set has no penalty."""
        return 0.0

    def penalty_gradient(self, weights: FloatArray) -> FloatArray:
        """Return zeros, shape (q,)."""
        return np.zeros(len(weights))

    def worst(self, forms: FloatArray) -> float:
        """Return the exact maximum of formsᵀβ over the set, the largest entry of ``forms``."""
        return float(np.max(forms))


# The relative gap that the search by cuts aims at, which determines the accuracy of its last
# solves. A larger `tol` stops the search earlier.
_TIGHTEST_GAP = 1e-9


def oracle_of(problem: Problem) -> SaddleOracle:
    """Return the saddle function of a problem: learner solves at given weights, and their cuts.

    Raises ValueError if a parameter of the learner is out of range.
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
        """Solve the learner at equal weights; nothing is drawn."""
        oracle = oracle_of(problem)
        super().__init__(oracle, KSupport(0.0).on(len(oracle.grams)), _TIGHTEST_GAP)
        self.visit(problem.constraint.start(len(oracle.grams)))
