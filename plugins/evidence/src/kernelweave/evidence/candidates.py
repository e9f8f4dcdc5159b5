"""What the held-out rows choose from: the path, and kernels of one term after it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core import Status
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from .objective import start
from .path import Fit, PathPlan, fit_path
from .plain import linear_fit, plain_fit
from .rows import Rows
from .screening import KEPT, MOST_SCALES
from .terms import N_TERMS, GaussianTerm, Stopped
from .views import Views

# λ of the Gaussian kernel alone, each fit started at the one before; the last is kept
GAUSSIAN_PRECISIONS = (5.0, 0.5, 0.05)
# logarithm of the weight of the other terms where all start at the Gaussian alone
_SMALL = -4.0

# where a table has more dimensions, a scale for each is not learned from a few hundred rows: on
# sets of 34 to 100 columns it cost up to six times as much and gained nothing
SMOOTH_DIMENSIONS = 30

Starts = Sequence[Sequence[FloatArray]]


def candidate_precisions(plan: PathPlan, rows: Rows) -> tuple[float, ...]:
    """Return λ of each fit that `fit_candidates` leaves, in their order."""
    smooth = GAUSSIAN_PRECISIONS[-1:] if _asks_for_smooth(plan, rows) else ()
    n_paths = len(KEPT) if rows.n_dimensions > MOST_SCALES else 1
    return (*plan.precisions * n_paths, *smooth, *([np.inf] if plan.linear else []), np.inf)


def _asks_for_smooth(plan: PathPlan, rows: Rows) -> bool:
    """Classes are no smooth functions: there the candidate lost a quarter of a point."""
    return not plan.classes and rows.n_dimensions <= SMOOTH_DIMENSIONS


def fit_candidates(
    views: Views,
    rows: Rows,
    plan: PathPlan,
    starts: Starts = (),
    fits: list[Fit] | None = None,
    screened: Sequence[Index] = (),
) -> list[Fit]:
    """Return the path, the Gaussian of one scale a dimension and the linear kernel where they may
    pay, and the Gaussian of one scale.

    A smooth function asks for the Gaussian term alone, which descent from all terms seldom finds:
    the rough terms take the noise, and then there is little left to gain. So each fit of the path
    may also start at the Gaussian of one scale a dimension. Of a wide table there is a path for the
    dimensions that each of two screens kept.

    - `starts`: for each candidate, points to start from
    - `fits` takes each fit as it is made, so that those made before a `Stopped` are known
    - `screened`: the dimensions of each path of a wide table, as `screen` returns them

    Raises Stopped where time is up.
    """
    fits = [] if fits is None else fits
    n_path, last = len(plan.precisions), len(candidate_precisions(plan, rows)) - 1
    plain = plain_fit(views, rows, starts[last] if len(starts) > last else ())
    if screened:
        plan = replace(plan, tol=max(plan.tol, plan.coarse_tol))
        for k, kept in enumerate(screened):
            own = slice(k * n_path, (k + 1) * n_path)
            fit_path(views, rows, plan, starts[own], fits, kept=kept)
    elif starts:
        plan = replace(plan, tol=plan.polish_tol)
        fit_path(views, rows, plan, starts[:n_path], fits)
        alone = replace(plan, precisions=GAUSSIAN_PRECISIONS[-1:])
        for known in starts[n_path : last - plan.linear]:
            fits += fit_path(views, rows, alone, [known], terms=GaussianTerm)
    elif _asks_for_smooth(plan, rows):
        chain = replace(plan, precisions=GAUSSIAN_PRECISIONS)
        smooth = fit_path(views, rows, chain, [[plain.theta], [], []], terms=GaussianTerm)
        mixed = _with_all_terms(smooth[1].theta)
        known = [start(views.n_dimensions), mixed]
        fit_path(views, rows, plan, [known, *[[mixed]] * (n_path - 1)], fits)
        fits.append(smooth[-1])
    else:
        fit_path(views, rows, plan, fits=fits)
    if plan.linear:
        fits.append(linear_fit(views, rows))
    fits.append(plain)
    return fits


def coarse_starts(
    rows: Rows,
    plan: PathPlan,
    random_state: np.random.RandomState,
    screened: Sequence[Index] = (),
) -> Starts:
    """Return the fits of a part of the rows, to start from; empty where they are few.

    Where time is up, those that were done.
    """
    if len(rows) <= 1.5 * plan.coarse:
        return []
    chosen: NDArray[np.intp] = np.sort(random_state.permutation(len(rows))[: plan.coarse])
    part = rows.take(chosen)
    views = part.views()
    plan = replace(plan, tol=max(plan.tol, plan.coarse_tol))
    fits: list[Fit] = []
    with suppress(Stopped):
        fit_candidates(views, part, plan, fits=fits, screened=screened)
    return [[fit.theta] for fit in fits]


def fill_up(views: Views, rows: Rows, plan: PathPlan, starts: Starts, fits: list[Fit]) -> None:
    """Append what time left undone: where a fit would have begun, else what came before it."""
    if not fits and not starts:
        starts = [[plain_fit(views, rows).theta]]
    precisions = candidate_precisions(plan, rows)
    for k in range(len(fits), len(precisions)):
        theta = starts[k][0] if k < len(starts) else fits[-1].theta
        fits.append(Fit(precisions[k], theta, np.nan, np.inf, 0, Status.MAX_TIME))


def _with_all_terms(theta: FloatArray) -> FloatArray:
    """Return scales of the Gaussian term with a little of every other."""
    n, out = (len(theta) - N_TERMS - 1) // 2, theta.copy()
    out[n : 2 * n] = start(n)[n : 2 * n]
    out[2 * n + 1 : -1] = _SMALL
    return out
