"""Scales along a path of prior strengths, each fit started at the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core import Status
from kernelweave.kernels_core.arrays import FloatArray, Index

from .objective import Evidence, start
from .rows import Rows, Standardised
from .screening import embedded, restricted
from .steps import EvidenceDescent
from .terms import GaussianTerm, PairTerms, Scales, Stopped
from .views import Views

# of rows and their held-out predictions
Loss = Callable[[Rows, FloatArray], float]
# λ, from nearly one scale for all columns to a free one each. Measured on 31 tables of 300 rows
# against a tuned machine: 50 alone +3.5 points, 0.5 alone +6.1, all combined +7.2.
PRECISIONS = (500.0, 50.0, 5.0, 0.5)
# rows of the first pass over the path; a second polishes on all of them
COARSE = 300


@dataclass(frozen=True)
class Fit:
    """One fit of the scales.

    - `precision`: λ of the prior
    - `theta`: logarithms of the scales, (2n + 6,)
    - `value`: negative log evidence, priors included
    - `slope`: largest entry of its gradient in the logarithms: 0 at a stationary point
    - `status`: why the search for the scales ended
    """

    precision: float
    theta: FloatArray
    value: float
    slope: float
    n_evaluations: int
    status: Status = Status.STATIONARY

    @property
    def scales(self) -> Scales:
        """The scales themselves."""
        return Scales.from_vector(self.theta)


@dataclass(frozen=True)
class PathPlan:
    """How the path is fitted.

    - `precisions`: λ, strongest first
    - `tol`: a fit ends where a step lowers L by less than this share of it
    - `max_iter`: steps a fit at most
    - `coarse`: rows of a first pass over the path, where there are half as many more
    - `coarse_tol`: the share for that pass, which only leaves starts
    - `polish_tol`: the share for a fit that starts at one of fewer rows or of the folds
    - `classes`: whether the targets are ±1 of classes
    - `linear`: whether ridge regression is a candidate, as it should be where rows are few
    - `loss`: what predictions of held-out rows lose, where it is not their mean squared error
    """

    precisions: tuple[float, ...] = PRECISIONS
    tol: float = 1e-5
    max_iter: int = 200
    coarse: int = COARSE
    coarse_tol: float = 1e-4
    polish_tol: float = 1e-5
    classes: bool = False
    linear: bool = False
    loss: Loss | None = None


def fit_scales(evidence: Evidence, theta: FloatArray, *, max_iter: int, tol: float) -> Fit:
    """Minimise the negative log evidence from θ.

    Raises Stopped where time is up; its argument is the best fit so far, if there is one.
    """
    descent, status = EvidenceDescent(evidence, theta), Status.MAX_TIME
    with suppress(Stopped):
        status = descent.run(max_iter, tol)
    if not len(descent.slope):
        raise Stopped
    slope, n = float(np.abs(descent.slope).max()), evidence.n_evaluations
    fit = Fit(evidence.precision, descent.theta, descent.value, slope, n, status)
    if status is Status.MAX_TIME:
        raise Stopped(fit)
    return fit


def fit_path(
    views: Views,
    rows: Rows,
    plan: PathPlan,
    starts: Sequence[Sequence[FloatArray]] = (),
    fits: list[Fit] | None = None,
    terms: type[PairTerms | GaussianTerm] = PairTerms,
    kept: Index | None = None,
) -> list[Fit]:
    """Fit the scales for each λ of the plan, on all of the rows, whose views are given.

    - `starts`: for each λ, points to start from beside the fit at the λ before; the best is taken
    - `fits` takes each fit as it is made, so that those made before a `Stopped` are known
    - `terms`: `GaussianTerm` leaves the weights of the other terms as they are at the start
    - `kept`: the dimensions that have scales, where those of the others are to be 0

    Raises Stopped where time is up.
    """
    points, jump, n = views.points(rows.numeric, rows.codes), views.jump, views.n_dimensions
    if kept is not None:
        points, jump = points.among(kept), jump[kept]
    targets = Standardised.of(rows).values
    fits = [] if fits is None else fits
    before: list[FloatArray] = []
    for i, precision in enumerate(plan.precisions):
        evidence = Evidence(points, jump, targets, precision, rows.weight, terms)
        given = starts[i] if starts else []
        known = [*before, *(given if kept is None else [restricted(t, kept) for t in given])]
        known = known or [start(len(jump))]
        theta = min(known, key=evidence.value) if len(known) > 1 else known[0]
        try:
            found = fit_scales(evidence, theta, max_iter=plan.max_iter, tol=plan.tol)
        except Stopped as stop:
            fits.extend(_of_all(each, kept, n) for each in stop.args)
            raise
        fits.append(_of_all(found, kept, n))
        before = [found.theta]
    return fits


def _of_all(fit: Fit, kept: Index | None, n_dimensions: int) -> Fit:
    """Return a fit to some dimensions as one to all."""
    return fit if kept is None else replace(fit, theta=embedded(fit.theta, kept, n_dimensions))
