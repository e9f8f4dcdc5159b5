"""Scales along a path of prior strengths, each fit started at the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kernelweave.kernels_core import Progress, clock
from kernelweave.kernels_core.progress import notify
from numpy.typing import NDArray
from scipy.optimize import minimize

from .objective import Evidence, bounds, start
from .rows import FloatArray, Rows, Standardised
from .terms import Scales
from .views import Views

PRECISIONS = (500.0, 50.0, 5.0, 0.5)
# rows of the first pass over the path; a second polishes on all of them
COARSE = 300
# curvature of the evidence in a logarithm, roughly: it only scales the steps
_CURVATURE = 10.0
# a short step says nothing where the evidence is steeper than this in a logarithm
_STEEP = 1.0


class Stopped(Exception):  # noqa: N818
    """The time limit passed or somebody pressed Ctrl-C."""


@dataclass(frozen=True)
class Fit:
    """One fit of the scales.

    Attributes
    ----------
    precision : float
        λ of the prior.
    theta : ndarray of shape (2n + 6,)
        Logarithms of the scales.
    value : float
        Negative log evidence, priors included.
    slope : float
        Largest entry of its gradient in the logarithms: 0 at a stationary point.
    n_evaluations : int
    """

    precision: float
    theta: FloatArray
    value: float
    slope: float
    n_evaluations: int

    @property
    def scales(self) -> Scales:
        """The scales themselves."""
        return Scales.from_vector(self.theta)


@dataclass(frozen=True)
class Plan:
    """How the path is fitted.

    Attributes
    ----------
    precisions : tuple of float
        λ, strongest first.
    tol : float
        A fit ends where a step lowers L by less than this share of it.
    max_iter : int
        Steps a fit at most.
    coarse : int
        Rows of a first pass over the path, where there are half as many more.
    polish_tol : float
        The share for a fit that starts at one of fewer rows or of the folds.
    """

    precisions: tuple[float, ...] = PRECISIONS
    tol: float = 1e-6
    max_iter: int = 200
    coarse: int = COARSE
    polish_tol: float = 1e-5


class _Rescaled:
    """θ = P z: steps in z are of like size along a common scale and along differences."""

    def __init__(self, n_dimensions: int, precision: float) -> None:
        self.n = n_dimensions
        self.own = 1.0 / np.sqrt(1.0 + precision / _CURVATURE)

    def _apply(self, v: FloatArray, own: float) -> FloatArray:
        out = v.copy()
        for part in (slice(0, self.n), slice(self.n, 2 * self.n)):
            mean = v[part].mean()
            out[part] = mean + own * (v[part] - mean)
        return out

    def to_theta(self, z: FloatArray) -> FloatArray:
        """Return P z; P is symmetric, so it takes a gradient in θ to one in z too."""
        return self._apply(z, self.own)

    def to_z(self, theta: FloatArray) -> FloatArray:
        """Return P⁻¹ θ."""
        return self._apply(theta, 1.0 / self.own)


@dataclass
class _Descent:
    """The objective as the optimiser sees it; remembers the best point."""

    evidence: Evidence
    change: _Rescaled
    low: FloatArray
    high: FloatArray
    best: tuple[float, FloatArray, float] = field(default=(np.inf, np.empty(0), np.inf))
    watch: clock.Stopwatch = field(default_factory=clock.Stopwatch)

    def __call__(self, z: FloatArray) -> tuple[float, FloatArray]:
        if clock.expired():
            raise Stopped
        raw = self.change.to_theta(z)
        theta = np.clip(raw, self.low, self.high)
        value, slope = self.evidence(theta)
        self._tell(value)
        inside = raw == theta
        if value < self.best[0]:
            free = np.abs(slope[inside])
            self.best = (value, theta, float(free.max(initial=0.0)))
        # a quadratic wall where θ leaves its box
        outside = raw - theta
        value += 0.5 * _CURVATURE * float(outside @ outside)
        return value, self.change.to_theta(np.where(inside, slope, _CURVATURE * outside))

    def _tell(self, value: float) -> None:
        """Let whoever watches see the value, and stop if they ask for it."""
        now = Progress(
            "evidence", self.evidence.n_evaluations, -np.inf, value, np.inf, 0.0, self.watch.seconds
        )
        if notify(now, None, 0):
            raise Stopped


def fit_scales(evidence: Evidence, theta: FloatArray, *, max_iter: int, tol: float) -> Fit:
    """Minimise the negative log evidence from θ by L-BFGS.

    Raises
    ------
    Stopped
        Where time is up; its argument is the best fit so far, if there is one.
    """
    low, high = np.array(bounds(len(evidence.jump))).T
    descent = _Descent(evidence, _Rescaled(len(evidence.jump), evidence.precision), low, high)
    stopped = False
    try:
        _descend(descent, theta, max_iter, tol)
    except Stopped:
        stopped = True
    value, best, slope = descent.best
    if not len(best):
        raise Stopped
    fit = Fit(evidence.precision, best, value, slope, evidence.n_evaluations)
    if stopped:
        raise Stopped(fit)
    return fit


def _descend(descent: _Descent, theta: FloatArray, max_iter: int, tol: float) -> None:
    """Take steps from θ, anew from the best point where they have grown short on a slope."""
    options: Any = {
        "maxiter": max_iter,
        "maxfun": 2 * max_iter,
        "ftol": tol,
        "gtol": 1e-4,
        "maxcor": 20,
    }
    steep = _STEEP * len(descent.evidence.targets)
    while options["maxiter"] > 0:
        before, z = descent.best[0], descent.change.to_z(theta)
        run: Any = minimize(descent, z, jac=True, method="L-BFGS-B", options=options)
        value, theta, slope = descent.best
        if slope <= steep or before - value <= tol * max(1.0, abs(value)):
            return
        options["maxiter"] -= run.nit


def fit_path(
    views: Views,
    rows: Rows,
    plan: Plan,
    starts: Sequence[Sequence[FloatArray]] = (),
    fits: list[Fit] | None = None,
) -> list[Fit]:
    """Fit the scales for each λ of the plan, on all of the rows.

    Parameters
    ----------
    views : Views
        Of these rows.
    rows : Rows
    plan : Plan
    starts : sequence of sequences of ndarray
        For each λ, points to start from beside the fit at the λ before; the best is taken.
    fits : list, optional
        Takes each fit as it is made, so that those made before a `Stopped` are known.

    Returns
    -------
    list of Fit

    Raises
    ------
    Stopped
        Where time is up.
    """
    points = views.points(rows.numeric, rows.codes)
    targets = Standardised.of(rows).values
    theta = start(views.n_dimensions)
    fits = [] if fits is None else fits
    for i, precision in enumerate(plan.precisions):
        evidence = Evidence(points, views.jump, targets, precision, rows.weight)
        others = list(starts[i]) if starts else []
        if others:
            known = [theta, *others] if fits else others
            theta = min(known, key=lambda each: evidence(each)[0]) if len(known) > 1 else known[0]
        tol = plan.polish_tol if others else plan.tol
        try:
            fits.append(fit_scales(evidence, theta, max_iter=plan.max_iter, tol=tol))
        except Stopped as stop:
            fits.extend(stop.args)
            raise
        theta = fits[-1].theta
    return fits


def coarse_starts(
    rows: Rows, plan: Plan, random_state: np.random.RandomState
) -> list[list[FloatArray]]:
    """Return the path of a part of the rows, to start from; empty where they are few."""
    if len(rows) <= 1.5 * plan.coarse:
        return []
    chosen: NDArray[np.intp] = np.sort(random_state.permutation(len(rows))[: plan.coarse])
    part = rows.take(chosen)
    views = Views.of(part.numeric, part.codes, part.weight)
    return [[fit.theta] for fit in fit_path(views, part, plan)]
