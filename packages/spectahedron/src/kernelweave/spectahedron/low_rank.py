"""Low-rank factors with a saddle-free Newton method: ``tkl-low-rank``, the default.

P = n_P U Uᵀ with ‖U‖ = 1 and U of a few columns. Steps come from the second-order model in a
trust region; where U is stationary but the certificate does not close, the top eigenvector of
D joins U as a new column, so that no saddle point holds the method. Where that crawls (dual points
that jump with U, kinks of OPT_A), an interior point over the whole saddle takes over.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning, Problem, Status, relative_gap
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.formula.learner import Solution
from kernelweave.kernels_core.memory import permits

from .algorithm import SpectahedronSearch
from .curvature import AtomModel, FactorModel, FactorPoint, responses
from .first_order import balanced_direction
from .gram_memory import GramWithEntries, grams_are_stored
from .interior_point import InteriorPath, required_bytes, work
from .saddle import SpectahedronOracle
from .settings import LowRank, Start

# No gap or decrease below this share of OPT_A is asked of the learner: rounding hides it there, and
# the solve would end at its tightest tolerance for nothing.
_FLOOR = 1e-13
# After so many refused steps in a row, each of which halves the limit of its kind at least, or at
# so short a radius, the method has stalled: the interior point takes over or the fit ends. Fewer:
# it gives up where a shorter step would have paid; more: learner solves at one point for nothing.
_MOST_REJECTIONS = 12
_SHORTEST = 1e-14
# From the balanced direction the factor is replaced by the leading eigenvectors of D at most so
# often, and only while the upper bound falls to this share: a far start loses much at once, later a
# Newton step gains more for the same learner solve.
_MOST_RESTARTS = 4
_WORTH = 0.5
# Eigenvalues of the interior point's P that are dropped, relative to the largest: it keeps all of
# them positive, and each one kept is a column that every later step pays for.
_NEGLIGIBLE = 1e-6
# Radius and share of a start near an optimum: the model holds there and its steps are short. In
# units of ‖U‖ = 1.
_NEAR = 0.1
# There the learner is first solved to this share of the value, elsewhere to a tenth.
_CLOSE = 0.01
# From this relative gap on the margin that the upper bound has for the rounding of the Gram matrix
# counts: `refined` leaves a thousandth of it, for one more pass over all pairs.
_FINE = 1e-5
# The learner is solved to this share of the decrease that a step promises.
_INNER_FRACTION = 0.3
# Samples from which a fit begins at a part of them. Measured with parts of 500: the time of 13 of
# 14 fits on seven data sets that were not used to choose halves.
_LARGE = 1000
# The part is solved to this relative gap or for so many steps: its kernel is a start, not an
# answer, and the whole problem moves away from it anyway.
_ROUGH_STEPS = 8
_ROUGH_GAP = 0.02

# Steps that are compared, and what they must gain; `slow` says how. Impatient numbers pay for an
# interior point where a few more steps would do, patient ones wait beside a method that crawls.
_WINDOW = 12
_GAP, _UPPER = 0.25, 0.01
# Flops of an iteration, of which there are about thirty: ten minutes on one slow core in all.
_MOST_WORK = 1e11

# The part is a fifth of the samples, and 500 at least: a small one says too little of the kernel, a
# large one costs what it saves. Measured: 500 at the C itself beat 1500 along five values of C.
_PART = 500
_SHRINK = 5


class LowRankSearch(SpectahedronSearch):
    """``tkl-low-rank``: a saddle-free Newton method on the factor, certified by λ_max(D(α)).

    Where it is slow, `tkl-interior-point` runs once, if the problem is small enough for it, and
    hands its P back. One iteration forms the Gram of r rank-one atoms, one moment matrix, the
    second-order model (what r moment matrices cost, plus a Cholesky factorisation on the free
    samples and an eigendecomposition of order ≤ 400) and one warm-started learner solve. It
    holds one Gram-sized array and the learner's copy of half of another, or none (``gram``).

    - `point`: the best so far
    - `radius`, `share`: the longest step inside the factor, and the largest share of a new column
    - `models`: of both steps at the point, once asked for
    - `rejected`: steps from there that did not pay
    """

    settings: LowRank = LowRank()

    def __init__(
        self, problem: Problem, random_state: np.random.RandomState, settings: LowRank = settings
    ) -> None:
        """Start at the leading eigenvectors of D for a balanced α."""
        self.settings = settings
        stored = grams_are_stored(problem, settings.dtype, settings.gram)
        self.oracle = oracle = SpectahedronOracle(problem, settings.dtype, n_grams=1, stored=stored)
        self.lower = -np.inf
        self._n_interior = 0
        self._bounds = list[tuple[float, float]]()
        self._may_rescue = settings.rescue
        self._rescue: InteriorPath | None = None
        shape = (problem.n_samples,) * 2
        self._array = np.empty(shape, dtype=oracle.dtype) if stored else None
        rank = settings.rank
        if settings.start is not None:
            self._take(self._continued(settings.start), _NEAR, _NEAR)
        elif problem.n_samples >= _LARGE:
            U = coarse_factor(roughly_solved, problem, settings)
            self._take(self._evaluate(U, None, np.inf, relative=_CLOSE), _NEAR, _NEAR)
        else:
            u = balanced_direction(oracle.targets, problem.sample_weight, problem.learner.name)
            U = leading_factor(oracle.moment(u), rank)
            self._take(self._restarted(self._evaluate(U, None, np.inf), rank), 0.3, 0.5)

    def _take(self, point: FactorPoint, radius: float, share: float) -> None:
        """Go on from a point."""
        self.point, self.radius, self.share = point, radius, share
        self.models: tuple[FactorModel, AtomModel] | None = None
        self.rejected = 0
        self.upper, self.inner = point.upper, point.solution

    def _continued(self, start: Start) -> FactorPoint:
        """Return a neighbour's P, with its dual point as the learner's start."""
        oracle = self.oracle
        for name, value, wanted in (
            ("P", start.P, (oracle.n_P, oracle.n_P)),
            ("dual_coef", start.dual_coef, oracle.targets.shape),
        ):
            if np.shape(value) != wanted:
                raise ValueError(f"start.{name} must have shape {wanted}, got {np.shape(value)}")
        U = start.factor(oracle.min_eig)
        gram = self._form_gram(U)
        kernel = oracle.kernel(gram)
        near = oracle.evaluate(kernel, start.dual_coef * oracle.scale, entries=gram.entries)
        return self._solved(U, gram, near, _CLOSE * oracle.upper_bound(near, oracle.matrix(U)))

    def _restarted(self, point: FactorPoint, rank: int) -> FactorPoint:
        """Replace the factor by the leading eigenvectors of D(α) while that pays well."""
        for _ in range(_MOST_RESTARTS):
            U = leading_factor(point.direction.moment, rank)
            trial = self._evaluate(U, point.solution, 0.1 * point.upper)
            if trial.upper > _WORTH * point.upper:
                break
            point = trial
        return point

    def _form_gram(self, U: Matrix) -> GramWithEntries:
        """Return the Gram matrix at U, which overwrites the last stored one."""
        self._gram = self.oracle.gram_with_entries(U, self._array)
        return self._gram

    def _models(self, point: FactorPoint) -> tuple[FactorModel, AtomModel]:
        """Return the models there; its Gram matrix is formed again where another took its place.

        Nothing asks for that matrix afterwards: a rejected trial may be written over it.
        """
        if self._array is not None and point.gram is not self._gram:
            point.gram = self._form_gram(point.U)
        answers = responses(self.oracle, point)
        factor = FactorModel(self.oracle, point, answers)
        return factor, AtomModel(self.oracle, point, answers, self._form_gram)

    def _evaluate(
        self, U: Matrix, warm: Solution | None, target: float, *, relative: float = 0.1
    ) -> FactorPoint:
        return self._solved(U, self._form_gram(U), warm, target, relative=relative)

    def _solved(
        self,
        U: Matrix,
        gram: GramWithEntries,
        warm: Solution | None,
        target: float,
        *,
        relative: float = 0.1,
    ) -> FactorPoint:
        """Return the point at U, and raise the lower bound to what it proves."""
        oracle = self.oracle
        solution = oracle.solve(
            oracle.kernel(gram), warm, target, entries=gram.entries, relative=relative
        )
        direction = oracle.direction(solution)
        self.lower = max(self.lower, direction.lower_bound)
        upper = oracle.upper_bound(solution, oracle.matrix(U))
        if upper - direction.lower_bound <= _FINE * abs(upper):
            solution = oracle.refined(solution, U)
            upper = oracle.upper_bound(solution, oracle.matrix(U))
        return FactorPoint(U, gram, solution, direction, upper)

    def step(self) -> None:
        """Take one step of the method in charge; hand over where that is due."""
        if self._rescue is not None:
            self._interior_step(self._rescue)
        else:
            self._newton_step()
            self._bounds.append((self.lower, self.upper))
            slow = is_slow(self._bounds) or self._exhausted
            if slow and self._may_rescue and affordable(self.oracle):
                self._may_rescue = False
                self._follow(InteriorPath(self.oracle))
        self._n_interior += self._rescue is not None

    def _follow(self, interior: InteriorPath) -> None:
        """Stand where the interior point does; the point stays as it is."""
        self._rescue, self.inner, self.upper = interior, interior.inner, interior.upper
        self.lower = max(self.lower, interior.lower)

    def _interior_step(self, interior: InteriorPath) -> None:
        """Go on with the interior point; at its end return to the factor of its P."""
        interior.step()
        self._follow(interior)
        if not interior.ended:
            return
        self._rescue = None
        values, vectors = np.linalg.eigh(interior.S)
        kept = values > _NEGLIGIBLE * values[-1]
        U = vectors[:, kept] * np.sqrt(values[kept])
        target = max(interior.upper - interior.lower, _FLOOR * interior.upper)
        trial = self._evaluate(U / np.linalg.norm(U), interior.inner, target)
        self._bounds.clear()
        if trial.upper < self.point.upper:
            self._take(trial, 0.1, 0.1)
        else:
            self.rejected = 0
            self.upper, self.inner = self.point.upper, self.point.solution

    def _newton_step(self) -> None:
        """Try the better of two model steps: Newton inside the factor, or a new column."""
        point, oracle = self.point, self.oracle
        gap = max(point.upper - self.lower, _FLOOR * abs(point.upper))
        if self.models is None:
            self.models = self._models(point)
        factor, atom = self.models
        step, decrease = factor.step(self.radius)
        share, growth = atom.step(self.share)
        grows = growth > decrease
        U = grown(point.U, point.direction.vector, share) if grows else point.U + step
        U = U / np.linalg.norm(U)
        expected = max(growth, decrease) / oracle.scale
        noise = _INNER_FRACTION * max(expected, _FLOOR * abs(point.upper))
        trial = self._evaluate(U, point.solution, min(noise, gap))
        ratio = (point.upper - trial.upper) / max(expected, np.finfo(float).tiny)
        self._judge(trial, ratio, share if grows else 0.0)

    def _judge(self, trial: FactorPoint, ratio: float, share: float) -> None:
        """Accept or reject, and set the limit of the kind of step that was tried."""
        if share > 0.0:
            self.share = resized(self.share, share, ratio, 0.5)
            trial.U = compressed(trial.U)
        else:
            length = float(np.linalg.norm(trial.U - self.point.U))
            self.radius = resized(self.radius, length, ratio, 1.0)
        if ratio > 1e-4:
            self._take(trial, self.radius, self.share)
        else:
            self.rejected += 1

    @property
    def parameters(self) -> Matrix:
        """P."""
        U = self.point.U
        return self.oracle.shifted(U @ U.T if self._rescue is None else self._rescue.S)

    @property
    def counts(self) -> dict[str, int]:
        """Learner solves, inner iterations, Grams, interior iterations and the rank."""
        rank = self.point.U.shape[1] if self._rescue is None else self.oracle.n_P
        return {**self.oracle.counts(), "n_interior": self._n_interior, "rank": rank}

    @property
    def _exhausted(self) -> bool:
        return self.rejected > _MOST_REJECTIONS or self.radius < _SHORTEST

    @property
    def outcome(self) -> Status | None:
        """Stop where no step of any length succeeds."""
        return Status.STALLED if self._rescue is None and self._exhausted else None


def roughly_solved(problem: Problem, settings: LowRank) -> Start:
    """Return P and α after eight steps at most, uncertified: a start need not be good."""
    with warnings.catch_warnings():
        # the whole problem has said that its Gram matrices are not stored
        warnings.simplefilter("ignore", KernelWeaveWarning)
        search = LowRankSearch(problem, np.random.RandomState(0), settings)
    for _ in range(_ROUGH_STEPS):
        close = relative_gap(search.lower, search.upper) <= _ROUGH_GAP
        if close or expired() or search.outcome is not None:
            break
        search.step()
    return Start(search.parameters, search.solution.dual_coef)


def leading_factor(D: Matrix, rank: int) -> Matrix:
    """Return U of norm one from the ``rank`` leading eigenvectors of D, weighted by their roots."""
    values, vectors = np.linalg.eigh(D)
    top = slice(-1, -min(rank, len(D)) - 1, -1)
    floor = 1e-3 * max(float(values[-1]), np.finfo(float).tiny)
    U = vectors[:, top] * np.sqrt(np.maximum(values[top], floor))
    factor: Matrix = U / np.linalg.norm(U)
    return factor


def grown(U: Matrix, v: Matrix, share: float) -> Matrix:
    """Return a factor of (1 − share) UUᵀ + share vvᵀ."""
    return np.column_stack([np.sqrt(1.0 - share) * U, np.sqrt(share) * v])


def compressed(U: Matrix) -> Matrix:
    """Return a factor of the same UUᵀ with as few columns as its rank, two at least."""
    left, sizes, _ = np.linalg.svd(U, full_matrices=False)
    kept = max(min(2, len(sizes)), int(np.sum(sizes > 1e-7 * sizes[0])))
    factor: Matrix = left[:, :kept] * sizes[:kept]
    return factor / np.linalg.norm(factor)


def resized(limit: float, taken: float, ratio: float, largest: float) -> float:
    """Return the new limit of a step from how well the model predicted the last one."""
    if ratio < 1e-4:
        return float(np.clip(1.0 / (2.0 - ratio), 0.02, 0.5)) * min(limit, taken)
    if ratio < 0.2:
        return 0.5 * taken
    growth = 4.0 if abs(ratio - 1.0) < 0.1 else 2.0
    return max(limit, min(largest, growth * taken)) if ratio > 0.7 else limit


def is_slow(bounds: list[tuple[float, float]]) -> bool:
    """Return whether the gap is wide and neither it nor the upper bound falls, or it has stopped.

    Wide is more than a hundredth; to fall is to a quarter, and by a hundredth, in a dozen steps. A
    gap that is not wide has stopped when it did not halve in two dozen steps. ``bounds``: the lower
    and the upper one after each step.
    """
    if len(bounds) < 2 * _WINDOW:
        return False
    gaps = [upper - lower for lower, upper in bounds]
    top, before = bounds[-1][1], bounds[-_WINDOW][1]
    if gaps[-1] > _UPPER * top:
        return gaps[-1] >= _GAP * gaps[-_WINDOW] and before - top < _UPPER * top
    return gaps[-1] > 0.5 * gaps[-2 * _WINDOW]


def affordable(oracle: SpectahedronOracle) -> bool:
    """Return whether an interior point is worth its flops, after a warning where it is forbidden.

    A problem whose Gram matrices are not stored has none: it would hold several.
    """
    rows = oracle.problem.n_samples * len(oracle.targets)
    return (
        oracle.stored
        and work(rows, oracle.n_P) <= _MOST_WORK
        and permits(
            required_bytes(rows, oracle.n_P),
            f"the matrices of the interior point over {oracle.problem.n_samples} samples",
        )
    )


def part_of(problem: Problem, size: int) -> Problem:
    """Return the problem over every so many samples with weight, in the order of their targets.

    A class of fewer keeps one. C grows by what the weights of the samples left out would have
    added, so that loss and norm keep their balance and the best kernel hardly changes.
    """
    weight = problem.sample_weight
    whole = np.ones(problem.n_samples) if weight is None else np.asarray(weight)
    order = np.lexsort(problem.targets[::-1])
    order = order[whole[order] > 0.0]
    rows = order[np.linspace(0, len(order) - 1, min(size, len(order))).round().astype(np.intp)]
    if problem.learner.name == "svc":
        above = problem.targets[:, order] > 0.0
        firsts = [*above.argmax(axis=1), *(~above).argmax(axis=1)]
        rows = np.append(rows, order[firsts])
    rows = np.unique(rows)
    C = float(problem.learner.C) * float(whole.sum() / whole[rows].sum())
    return replace(
        problem,
        learner=replace(problem.learner, C=C),
        X=np.asarray(problem.X)[rows],
        y=problem.targets[:, rows],
        sample_weight=None if weight is None else whole[rows],
    )


def coarse_factor(
    solve: Callable[[Problem, LowRank], Start], problem: Problem, settings: LowRank
) -> Matrix:
    """Return a factor of the P of a part of the samples.

    The part is a fifth of the samples, at least 500, which begins at a part of its own where it is
    large too.
    """
    part = part_of(problem, max(_PART, problem.n_samples // _SHRINK))
    start = solve(part, replace(settings, rescue=False, start=None))
    return start.factor(float(problem.constraint.min_eig))
