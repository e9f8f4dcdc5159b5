"""Scales along a path of prior strengths, each fit begun at the one before, by Newton steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from kernelweave.kernels_core import Progress, Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.progress import notify

from .objective import Evidence, LowRankCurvature, bounds, start
from .rows import Rows, Standardised
from .terms import N_TERMS, GaussianTerm, PairTerms, Scales, Stopped, embedded, restricted
from .views import Points, Views

# what is added to the curvature in every logarithm, at first and at least
_DAMPING = 1.0
_LEAST_DAMPING = 0.05
# no logarithm moves further in a step
_REACH = 2.0
_TRIALS = 8
# steps between two computations of the curvature, which costs as much as all else in a step or,
# where columns or outputs are many, more
_LASTING = 4
# a short step says nothing where the evidence is steeper than this in a logarithm
STEEP = 1.0
# of rows and their held-out predictions
Loss = Callable[[Rows, FloatArray], float]
# λ, from nearly one scale for all columns to a free one each. Measured on 31 tables of 300 rows
# against a tuned machine: 50 alone +3.5 points, 0.5 alone +6.1, all combined +7.2.
PRECISIONS = (500.0, 50.0, 5.0, 0.5)
# tolerance of the rough fits that decide on transforms: the scales need not have converged
ROUGH = 1e-3
# rows of the first pass over the path; a second polishes on all of them
COARSE = 300
# rows of a fold that the scales are learned on at most
PART = 600


@dataclass
class EvidenceDescent:
    """Steps from a point, each of which lowers the objective.

    - `theta`: the best point so far, inside the box
    - `value`: infinite until the first evaluation
    - `slope`: the gradient; zero where θ is at its bound and would leave the box
    """

    evidence: Evidence
    theta: FloatArray
    value: float = np.inf
    slope: FloatArray = field(default_factory=lambda: np.empty(0))
    watch: clock.Stopwatch = field(default_factory=clock.Stopwatch)
    _curvature: FloatArray | LowRankCurvature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n, free = len(self.evidence.match_weight), self.evidence.free
        low, high = np.array(bounds(n, len(free) - 2 * n - 1)).T
        self.low, self.high = np.where(free, low, self.theta), np.where(free, high, self.theta)
        self.theta = np.clip(self.theta, self.low, self.high)
        self._damping, self._age = _DAMPING, 0
        self._raw, self._last = np.zeros_like(self.theta), np.zeros_like(self.theta)

    def run(self, max_iter: int, tol: float) -> Fit:
        """Take steps until two in a row gain less than a share of the value, or none gains.

        The fit's status is stationary where the evidence is not steep, else stalled, max_iter or
        max_time. Raises Stopped where there was no time for the first point.
        """
        status, short = Status.MAX_TIME, 0
        with suppress(Stopped):
            if clock.expired():
                raise Stopped
            self.value = self._reported(self.evidence.value(self.theta))
            self._differentiate()
            for _ in range(max_iter):
                before = self.value
                if not self._step():
                    status = Status.STATIONARY if self._is_flat else Status.STALLED
                    break
                self._differentiate()
                least = tol * max(1.0, abs(self.value))
                short = short + 1 if before - self.value <= least and self._is_flat else 0
                if short == 2:
                    status = Status.STATIONARY
                    break
            else:
                status = Status.MAX_ITER
        if not len(self.slope):
            raise Stopped
        slope, n = float(np.abs(self.slope).max()), self.evidence.n_evaluations
        n_weights = self.evidence.n_weights
        return Fit(self.evidence.precision, self.theta, self.value, slope, n, status, n_weights)

    @property
    def _is_flat(self) -> bool:
        return bool(np.abs(self.slope).max() <= STEEP * len(self.evidence.targets))

    def _reported(self, value: float) -> float:
        """Return the value after a callback has seen it, which may end the search."""
        now = Progress(
            "evidence", self.evidence.n_evaluations, -np.inf, value, np.inf, 0.0, self.watch.seconds
        )
        if notify(now, None, 0):
            raise Stopped
        return value

    def _differentiate(self) -> None:
        if self._age % _LASTING and not isinstance(self._curvature, LowRankCurvature):
            slope = self.evidence.gradient()
            self._curvature = corrected(self._curvature, self._last, slope - self._raw)
        else:
            slope, self._curvature = self.evidence.derivatives()
        self._age += 1
        self._raw = slope
        pinned = (self.theta <= self.low) & (slope > 0) | (self.theta >= self.high) & (slope < 0)
        self._moving = self.evidence.free & ~pinned
        self.slope = np.where(self._moving, slope, 0.0)

    def _step(self) -> bool:
        """Go to a better point; return whether there is one near."""
        for _ in range(_TRIALS):
            theta = np.clip(self.theta + self._newton(), self.low, self.high)
            if clock.expired():
                raise Stopped
            value = self._reported(self.evidence.value(theta))
            step, gain = theta - self.theta, self.value - value
            promised = -(self.slope @ step + 0.5 * step @ (self._curvature @ step))
            if gain > 0.0:
                share = gain / max(float(promised), 1e-300)
                factor = 1.0 / 3.0 if share > 0.75 else 2.0 if share < 0.25 else 1.0
                self._damping = max(self._damping * factor, _LEAST_DAMPING)
                self.theta, self.value, self._last = theta, value, step
                return True
            self._damping *= 4.0
        return False

    def _newton(self) -> FloatArray:
        """Return −(curvature + damping)⁻¹ slope in what may move, not longer than the reach."""
        moving, step = self._moving, np.zeros_like(self.theta)
        if isinstance(self._curvature, LowRankCurvature):
            step[moving] = -self._curvature.solve(moving, self._damping, self.slope[moving])
        else:
            curvature = self._curvature[np.ix_(moving, moving)]
            curvature[np.diag_indices_from(curvature)] += self._damping
            step[moving] = -np.linalg.solve(curvature, self.slope[moving])
        longest = float(np.abs(step).max(initial=0.0))
        return step * min(1.0, _REACH / longest) if longest > 0.0 else step


def corrected(curvature: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the curvature that explains how a step changed the slope (BFGS, damped by Powell).

    Positive semidefinite curvature stays so.
    """
    product = curvature @ step
    size, seen = float(step @ product), float(step @ change)
    if size <= 0.0:
        return curvature
    if seen < 0.2 * size:
        share = 0.8 * size / (size - seen)
        change = share * change + (1.0 - share) * product
        seen = float(step @ change)
    rise, fall = np.outer(change, change) / seen, np.outer(product, product) / size
    return np.asarray(curvature + rise - fall)


@dataclass(frozen=True)
class Fit:
    """One fit of the scales.

    - `precision`: λ of the prior
    - `theta`: logarithms of the scales, (2n + n_weights + 1,)
    - `value`: negative log evidence, priors included
    - `slope`: largest entry of its gradient in the logarithms: 0 at a stationary point
    - `status`: why the search for the scales ended
    - `n_weights`: how many of the scales are weights of terms, those of groups included
    """

    precision: float
    theta: FloatArray
    value: float
    slope: float
    n_evaluations: int
    status: Status = Status.STATIONARY
    n_weights: int = N_TERMS

    def __setstate__(self, state: dict[str, object]) -> None:
        # fits of older files have one term of groups at most, which an odd number of scales tells
        theta = np.asarray(state["theta"])
        vars(self).update(state)
        vars(self).setdefault("n_weights", N_TERMS + len(theta) % 2)

    @property
    def scales(self) -> Scales:
        """The scales themselves."""
        return Scales.from_vector(self.theta, self.n_weights)


def without_scales(fits: Sequence[Fit]) -> Index:
    """Return the dimensions of a wide table that have no scale of their own in any fit."""
    path = [fit.scales.ell for fit in fits if np.isfinite(fit.precision)]
    return np.flatnonzero(~np.any(path, axis=0)) if path else np.empty(0, np.intp)


def said_of_screening(fits: Sequence[Fit], n_dimensions: int) -> str:
    """Return how many dimensions have no scale, for the line of what a fit did; often nothing."""
    away = len(without_scales(fits))
    return f"; {away} of {n_dimensions} dimensions screened away by trees" if away else ""


@dataclass(frozen=True)
class PathPlan:
    """How the path is fitted.

    - `precisions`: λ, strongest first
    - `tol`: a fit ends where a step lowers L by less than this share of it
    - `max_iter`: steps a fit at most
    - `coarse`: rows of a first pass over the path, where there are more than 1.5 times as many
    - `coarse_tol`: the share for that pass, which only leaves starts
    - `part`: rows of the second pass at most: more of them move the scales little
    - `polish_tol`: the share for that pass
    - `classes`: whether the targets are ±1 of classes
    - `linear`: whether ridge regression is a candidate, as it should be where rows are few
    - `smooth`: whether the Gaussian of one scale a dimension is a candidate, where it may pay
    - `loss`: what predictions of held-out rows lose, where it is not their mean squared error
    """

    precisions: tuple[float, ...] = PRECISIONS
    tol: float = 1e-5
    max_iter: int = 200
    coarse: int = COARSE
    coarse_tol: float = 1e-4
    part: int = PART
    polish_tol: float = 1e-3
    classes: bool = False
    linear: bool = False
    smooth: bool = True
    loss: Loss | None = None

    @property
    def rough(self) -> PathPlan:
        """The plan of fits of a middle λ that only decide on transforms."""
        middle = len(self.precisions) // 2
        return replace(
            self, tol=max(self.tol, ROUGH), precisions=self.precisions[middle : middle + 1],
            smooth=False,
        )  # fmt: skip


def fit_path(
    views: Views,
    rows: Rows,
    plan: PathPlan,
    starts: Sequence[Sequence[FloatArray]] = (),
    terms: type[PairTerms | GaussianTerm] = PairTerms,
    kept: Index | None = None,
    points: Points | None = None,
) -> Iterator[Fit]:
    """Yield a fit of the scales for each λ of the plan, on all of the rows, whose views are given.

    - `starts`: for each λ, points to start from beside the fit at the λ before; the best is taken
    - `terms`: `GaussianTerm` leaves the weights of the other terms as they are at the start
    - `kept`: the dimensions that have scales, where those of the others are to be 0
    - `points`: the rows as the views see them, where that is known

    Raises Stopped where time is up, behind the fit that it cut short.
    """
    points = views.points(rows.numeric, rows.codes) if points is None else points
    match_weight, n = views.match_weight, views.n_dimensions
    if kept is not None:
        points, match_weight = points.among(kept), match_weight[kept]
    targets = Standardised.of(rows).values
    before: list[FloatArray] = []
    for i, precision in enumerate(plan.precisions):
        evidence = Evidence(points, match_weight, targets, precision, rows.precision, terms)
        given = starts[i] if starts else []
        n_weights = evidence.n_weights
        if kept is not None:
            given = [restricted(each, kept, n_weights) for each in given]
        thetas = [*before, *given] or [start(len(match_weight), len(views.group_terms))]
        # the best is seldom far behind, and costs nothing where it was evaluated last
        theta = min(reversed(thetas), key=evidence.value) if len(thetas) > 1 else thetas[0]
        fit = EvidenceDescent(evidence, theta).run(plan.max_iter, plan.tol)
        yield fit if kept is None else replace(fit, theta=embedded(fit.theta, kept, n))
        if fit.status is Status.MAX_TIME:
            raise Stopped
        before = [fit.theta]
