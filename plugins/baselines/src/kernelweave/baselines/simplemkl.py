"""SimpleMKL: the saddle over kernel weights on the simplex, by cuts or by a reduced gradient.

``min over β ≥ 0, Σβ = 1 of [Σₜ max κ(uₜ) − ½ Σⱼ βⱼ uₜᵀKⱼuₜ]``: Rakotomamonjy, Bach, Canu and
Grandvalet, "SimpleMKL", JMLR 2008, problem (10). The authors descend along a reduced gradient
(Algorithm 1 and equation (14)), then search a line; the cuts of all learner solves together need
fewer.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import Problem, Status
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.grams import fit_family, stack_of
from kernelweave.kernels_core.parameters import Value
from kernelweave.kernels_core.psd_cone import project_simplex
from kernelweave.kernels_core.rounding import UNIT
from kernelweave.qp_smo.saddle import KSupport, SaddleEvaluation, SaddleOracle, SaddleSearch


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
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)
# the golden section search of the authors' program ends at this share of the first step
_SECTION = 0.1
# Smaller weights are set to 0, as in the authors' program. Shorter steps end a search, and the
# golden section search is not refined below this share.
_TINY = 1e-8
# Accuracy of a learner solve relative to the gap: it must be smaller than the decreases that the
# line search compares.
_INNER = 1e-3
# Smallest accuracy of a learner solve relative to the value: below it is rounding.
_TIGHTEST = 1e-10


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


def reduced_direction(weights: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the descent direction D on the simplex at β with gradient ∇J, equation (14).

    It sums to 0: the gradient reduced by that of the largest weight, where a weight is positive or
    wants to grow.
    """
    largest = int(np.argmax(weights))
    reduced = gradient - gradient[largest]
    direction = np.where((weights <= 0.0) & (reduced > 0.0), 0.0, -reduced)
    direction[largest] = 0.0
    direction[largest] = -direction.sum()
    return direction


def longest_step(weights: FloatArray, direction: FloatArray) -> tuple[float, int]:
    """Return the step from β along D at which the first weight vanishes, and which, or −1."""
    falling = np.flatnonzero(direction < 0.0)
    if not len(falling):
        return 0.0, -1
    steps = -weights[falling] / direction[falling]
    first = int(np.argmin(steps))
    return float(steps[first]), int(falling[first])


def _cleaned(weights: FloatArray) -> FloatArray:
    """Return weights on the simplex, those below 1e-8 set to 0 as in the authors' program."""
    kept = np.where(weights < _TINY, 0.0, weights)
    return np.asarray(kept / kept.sum())


class ReducedGradient:
    """``mkl-simple-gradient``: one descent direction and its line search a step.

    The direction is followed to the end, weight after weight, while the objective falls; then the
    best point of the last segment is found by a golden section search. The gap is the authors':
    that of one dual point, ``κ − ½ maxⱼ uᵀKⱼu`` against the primal value.
    """

    def __init__(self, problem: Problem, random_state: np.random.RandomState) -> None:
        """Solve the learner at equal weights; nothing is drawn."""
        self.oracle = oracle_of(problem)
        self.accuracy = np.inf
        at = self._evaluate(problem.constraint.start(len(self.oracle.grams)))
        self.accuracy = max(_INNER * (at.upper_bound - self._lower(at)), _TIGHTEST * at.upper_bound)
        self.at, self.best_lower = at, self._lower(at)
        # how exact the next line search is, as a share of its first step
        self.section = _SECTION
        self.stalled = False

    def _evaluate(self, weights: FloatArray) -> SaddleEvaluation:
        return self.oracle.evaluate(weights, self.accuracy)

    def _lower(self, at: SaddleEvaluation) -> float:
        """Return the value of the newest cut at its worst corner of the simplex."""
        kappa = at.solution.kappa
        worst = 0.5 * float(at.forms.max())
        return kappa - worst - 4.0 * UNIT * (abs(kappa) + worst)

    def step(self) -> None:
        """Search along one direction."""
        here = self.at
        gap = here.upper_bound - self.best_lower
        self.accuracy = max(_INNER * gap, _TIGHTEST * abs(here.upper_bound))
        start = here
        if start.upper_bound - start.lower_bound > 3.0 * self.accuracy:
            start = self._evaluate(start.weights)
        direction = reduced_direction(start.weights, -0.5 * start.forms)
        reached, base, direction = self._follow(start, direction)
        found = self._section(reached, base, direction)
        self.best_lower = max(self.best_lower, self._lower(found))
        if found.upper_bound < here.upper_bound:
            self.at = found
        elif self.section > _TINY:
            self.section *= 0.01
        else:
            self.stalled = True

    def _follow(
        self, at: SaddleEvaluation, direction: FloatArray
    ) -> tuple[SaddleEvaluation, FloatArray, FloatArray]:
        """Walk from corner to corner while the objective falls.

        Returns the best corner, where its segment goes on from, and along which direction.
        """
        base, largest = at.weights, int(np.argmax(at.weights))
        while True:
            step, first = longest_step(base, direction)
            if first < 0 or step * float(np.abs(direction).max()) < _TINY:
                return at, base, direction
            corner = base + step * direction
            corner[first] = 0.0
            corner = _cleaned(corner)
            tried = self._evaluate(corner)
            if tried.upper_bound >= at.upper_bound:
                return at, base, direction
            at, base = tried, corner
            if first == largest:
                return at, base, np.zeros_like(direction)
            direction = direction.copy()
            # what the vanished weight gave goes to the largest one no longer
            direction[[largest, first]] = 0.0
            direction[largest] = -direction.sum()

    def _section(
        self, best: SaddleEvaluation, base: FloatArray, direction: FloatArray
    ) -> SaddleEvaluation:
        """Return the lowest point met by a golden section search along the segment."""
        end, first = longest_step(base, direction)
        if first < 0 or end * float(np.abs(direction).max()) < _TINY:
            return best

        def value_at(step: float) -> SaddleEvaluation:
            return self._evaluate(_cleaned(base + step * direction))

        low, high = 0.0, end
        left, right = value_at((1.0 - _GOLDEN) * end), value_at(_GOLDEN * end)
        while high - low > self.section * end:
            if left.upper_bound <= right.upper_bound:
                high, right = low + _GOLDEN * (high - low), left
                left = value_at(low + (1.0 - _GOLDEN) * (high - low))
            else:
                low, left = low + (1.0 - _GOLDEN) * (high - low), right
                right = value_at(low + _GOLDEN * (high - low))
        return min((best, left, right), key=lambda at: at.upper_bound)

    @property
    def lower(self) -> float:
        """The best lower bound so far."""
        return min(self.best_lower, self.upper)

    @property
    def upper(self) -> float:
        """The primal value."""
        return self.at.upper_bound

    @property
    def parameters(self) -> FloatArray:
        """The weights, shape (q,)."""
        return self.at.weights

    @property
    def solution(self) -> Solution:
        """The learner's solution."""
        return self.at.solution

    @property
    def counts(self) -> dict[str, int]:
        """How many times the learner was solved."""
        return {"n_svm_solves": self.oracle.counts.n_svm_solves}

    @property
    def outcome(self) -> Status | None:
        """Stop where the line search found nothing lower."""
        return Status.STALLED if self.stalled else None
