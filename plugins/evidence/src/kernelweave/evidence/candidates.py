"""Candidate kernels for the combination by cross-validation.

They are the path over λ and, after it, kernels of a single term. The last, λ = ∞, is a Gaussian
with one scale for all columns, whose width and ridge minimise the leave-one-out error. It is a
safeguard: for ±1 targets the evidence may explain as noise what plain kernel ridge regression
predicts well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from kernelweave.kernels_core import Status, clock
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import eigh
from sklearn.metrics.pairwise import euclidean_distances

from .cross import gram_of
from .objective import start
from .path import Fit, PathPlan, fit_path
from .rows import Rows, Standardised
from .terms import N_TERMS, GaussianTerm, Scales, Stopped, n_dimensions_of
from .views import Points, Views

# γ times the number of dimensions, and σ² over the weight of the kernel
WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RIDGES = tuple(10.0 ** np.arange(-5.0, 1.5, 0.5))
# σ² over the mean of the linear kernel's diagonal, roughly: least squares to next to nothing
_LINEAR_RIDGES = tuple(10.0 ** np.arange(-4.0, 4.0, 0.5))
_ABSENT, _LINEAR = -60.0, 2
# weight of a term of groups over that of the kernel
_GROUP_SHARES = (0.0, 0.3, 3.0)
# smallest weight of the kernel, for constant targets
_LEAST = 1e-12
# λ of the Gaussian kernel alone, each fit started at the one before; the last is kept
GAUSSIAN_PRECISIONS = (5.0, 0.5, 0.05)
# logarithm of the weight of the other terms where all start at the Gaussian alone
_SMALL = -4.0

# Tables with more dimensions have no smooth candidate: on data sets of 34 to 100 columns one scale
# per dimension cost up to six times the time and gained nothing.
SMOOTH_DIMENSIONS = 30

MOST_SCALES = 100
"""More dimensions than these are screened."""
# How many of them each path has a scale for. Which is better differs from table to table.
KEPT = (6, 48, 96)
_N_TREES = 100
# between so many trees the clock is looked at
_BATCH = 10
# Cells that a split looks at, at most. Two dimensions that count only together are found by looking
# at many: of 230 rows and 1,000 dimensions a tenth found half as many as all of them. Of 10,000,
# three times as many cells found no more, in three times the time.
_CELLS = 300_000
# a split into single rows follows the noise
_LEAF = 5


def fit_gaussian(
    views: Views, rows: Rows, starts: Sequence[FloatArray] = (), points: Points | None = None
) -> Fit:
    """Fit a Gaussian with one scale: width and ridge of the least leave-one-out error.

    The kernel's weight is its likeliest, so that deviations are in units of the targets. `starts`
    are such fits to fewer rows: only their widths and the next narrower one are tried then, as
    each costs a spectrum of the whole matrix. `points`: the rows as the views see them, where that
    is known.
    """
    points = views.points(rows.numeric, rows.codes) if points is None else points
    values, distances = Standardised.of(rows).values, _squared_distances(points)
    trials = [
        (*each, gamma, share)
        for gamma in _widths(views.n_dimensions, starts)
        for share, K in _with_groups(np.exp(-gamma * distances), points, starts)
        for each in leave_one_out_errors(K, values, rows.precision)
    ]
    _, amplitude, ridge, gamma, share = min(trials)
    return _one_term(views.n_dimensions, 0, 2.0 * gamma, amplitude, ridge, share)


def fit_linear(views: Views, rows: Rows) -> Fit:
    """Fit ridge regression: the linear term alone, with the ridge of least leave-one-out error.

    From a few dozen rows the other kernels learn a bend where there is a line. On 23 tables of 16
    to 144 rows, six draws each, R² is 63.2 % with it and 61.5 % without: 12 gain, 6 lose.
    """
    points, n = views.points(rows.numeric, rows.codes), views.n_dimensions
    metric = 1.0 / n
    scales = Scales(np.full(n, np.sqrt(metric)), np.zeros(n), np.eye(N_TERMS)[_LINEAR], 1.0)
    values = Standardised.of(rows).values
    alone = points._replace(G=points.G[:0], Z=None)
    K = gram_of(alone, (scales,), views.match_weight)
    trials = [
        (*each, share)
        for share, gram in _with_groups(K, points)
        for each in leave_one_out_errors(gram, values, rows.precision, _LINEAR_RIDGES)
    ]
    _, amplitude, ridge, share = min(trials)
    return _one_term(n, _LINEAR, metric, amplitude, ridge, share)


def _one_term(
    n: int, term: int, metric: float, amplitude: float, ridge: float, share: tuple[float, ...]
) -> Fit:
    """Return a fit with one scale for all dimensions and one term, and those of groups."""
    amplitude = max(amplitude, _LEAST)
    n_weights = N_TERMS + len(share)
    theta = np.full(2 * n + n_weights + 1, _ABSENT)
    theta[:n] = 0.5 * np.log(metric)
    theta[2 * n + term] = np.log(amplitude)
    for k, each in enumerate(share):
        theta[2 * n + N_TERMS + k] = np.log(amplitude * each) if each else _ABSENT
    theta[-1] = np.log(amplitude * ridge)
    return Fit(np.inf, theta, np.nan, np.nan, 0, n_weights=n_weights)


def _with_groups(
    K: FloatArray, points: Points, starts: Sequence[FloatArray] = ()
) -> Iterator[tuple[tuple[float, ...], FloatArray]]:
    """Yield shares of the terms of groups and kernels with them; the kernel alone without any.

    `starts`: fits to fewer rows, whose shares alone are tried then.
    """
    n_terms = len(points.G)
    terms = [points.group_term(points, term=k) for k in range(n_terms)]
    every = _shares_of_terms(n_terms)
    known = [_share(each, n_terms) for each in starts]
    shares = [each for each in every if any(np.allclose(each, other) for other in known)]
    for share in shares or every:
        gram = K
        for each, term in zip(share, terms, strict=True):
            gram = gram + each * term
        yield share, gram


def _shares_of_terms(n_terms: int) -> list[tuple[float, ...]]:
    """Return shares to try: of one term all, of several each beside a middle one of the others.

    All combinations of several would take a spectrum each.
    """
    none, middle, _ = _GROUP_SHARES
    if n_terms < 2:
        return [(share,) for share in _GROUP_SHARES] if n_terms else [()]
    first = [(none,) * n_terms, (middle,) * n_terms]
    moved = [
        tuple(share if j == k else middle for j in range(n_terms))
        for k in range(n_terms)
        for share in _GROUP_SHARES
        if share != middle
    ]
    return [*first, *moved]


def _share(theta: FloatArray, n_terms: int) -> FloatArray:
    """Return the weights of the terms of groups over that of the term that is there."""
    n = n_dimensions_of(theta, N_TERMS + n_terms)
    return np.asarray(np.exp(theta[2 * n + N_TERMS : 2 * n + N_TERMS + n_terms] - theta[2 * n]))


def _widths(n_dimensions: int, starts: Sequence[FloatArray]) -> FloatArray:
    """Return γ to try, from wide to narrow."""
    widths = np.divide(WIDTHS, n_dimensions)
    places = [np.abs(np.log(0.5 * np.exp(2.0 * each[0]) / widths)).argmin() for each in starts]
    return widths[min(places) : max(places) + 2] if places else widths


def _squared_distances(points: Points) -> FloatArray:
    n = points.n_points
    out = euclidean_distances(points.X.T, squared=True) if len(points.X) else np.zeros((n, n))
    for codes in points.C:
        out += codes[:, None] != codes[None, :]
    return np.asarray(out)


def leave_one_out_errors(
    K: FloatArray, values: FloatArray, mass: FloatArray, ridges: Sequence[float] = RIDGES
) -> list[tuple[float, float, float]]:
    """Return (squared error of rows left out, likeliest weight of K, r) for every ridge r.

    `K` of shape (n, n); `values` of shape (n_outputs, n); `mass` of shape (n,): weights of the
    rows, which divide r.
    """
    root, total = np.sqrt(mass), len(values) * mass.sum()
    spectrum, basis = eigh(root[:, None] * K * root, check_finite=False)
    spectrum = np.maximum(spectrum, 0.0)
    components = basis.T @ (root[:, None] * values.T)
    out = []
    for ridge in ridges:
        inverse = 1.0 / (spectrum + ridge)
        # the dual and the diagonal of (K + r/w)⁻¹, both over root
        dual, diagonal = basis @ (inverse[:, None] * components), root * (basis**2 @ inverse)
        residual = dual / diagonal[:, None]
        error = float(np.sum(mass[:, None] * residual**2) / total)
        amplitude = float(np.sum(inverse[:, None] * components**2) / total)
        out.append((error, amplitude, ridge))
    return out


def candidate_precisions(plan: PathPlan, rows: Rows) -> tuple[float, ...]:
    """Return λ of each fit that `fit_candidates` leaves, in their order."""
    smooth = GAUSSIAN_PRECISIONS[-1:] if _includes_smooth(plan, rows) else ()
    n_paths = len(KEPT) if rows.n_dimensions > MOST_SCALES else 1
    return (*plan.precisions * n_paths, *smooth, *([np.inf] if plan.linear else []), np.inf)


def _includes_smooth(plan: PathPlan, rows: Rows) -> bool:
    """Return whether to include the smooth Gaussian; for classes it lost a quarter of a point."""
    return plan.smooth and not plan.classes and rows.n_dimensions <= SMOOTH_DIMENSIONS


def fit_candidates(
    views: Views, rows: Rows, plan: PathPlan, screened: Sequence[Index] = ()
) -> Iterator[Fit]:
    """Yield the path, the Gaussian of one scale a dimension and the linear kernel where they may
    pay, and the Gaussian of one scale.

    A smooth function asks for the Gaussian term alone, which descent from all terms seldom finds:
    the rough terms take the noise, and then there is little left to gain. So each fit of the path
    may also start at the Gaussian of one scale a dimension. Of a wide table there is a path for the
    dimensions that each of some screens kept.

    - `screened`: the dimensions of each path of a wide table, as `screen` returns them

    Raises Stopped where time is up, behind the fits that there was time for.
    """
    n_path, points = len(plan.precisions), views.points(rows.numeric, rows.codes)
    plain = fit_gaussian(views, rows, points=points)
    if screened:
        for kept in screened:
            yield from fit_path(views, rows, plan, kept=kept, points=points)
    elif _includes_smooth(plan, rows):
        chain = replace(plan, precisions=GAUSSIAN_PRECISIONS)
        smooth = list(
            fit_path(views, rows, chain, [[plain.theta], [], []], GaussianTerm, points=points)
        )
        mixed = _with_all_terms(smooth[1])
        thetas = [start(views.n_dimensions, len(views.group_terms)), mixed]
        thetas_of_path = [thetas, *[[mixed]] * (n_path - 1)]
        yield from fit_path(views, rows, plan, thetas_of_path, points=points)
        yield smooth[-1]
    else:
        yield from fit_path(views, rows, plan, points=points)
    if plan.linear:
        yield fit_linear(views, rows)
    yield plain


def polish(
    views: Views,
    rows: Rows,
    plan: PathPlan,
    starts: Sequence[Sequence[FloatArray]],
    alive: Sequence[int],
    screened: Sequence[Index] = (),
) -> Iterator[tuple[int, Fit]]:
    """Yield some candidates by their places, each begun where fits to other rows ended.

    - `starts`: for each candidate, such points
    - `alive`: the places of those that are fitted, ascending
    - `screened`: as in `fit_candidates`

    Raises Stopped where time is up, behind the fits that there was time for.
    """
    precisions, n_path = candidate_precisions(plan, rows), len(plan.precisions)
    n_of_paths = n_path * max(1, len(screened))
    points = views.points(rows.numeric, rows.codes)
    before: list[FloatArray] = []
    for k in alive:
        own = replace(plan, precisions=precisions[k : k + 1])
        if k < n_of_paths:
            before = before if k % n_path else []
            kept = screened[k // n_path] if screened else None
            begin = [[*before, *starts[k]]]
            (fit,) = fit_path(views, rows, own, begin, kept=kept, points=points)
            before = [fit.theta]
        elif np.isfinite(precisions[k]):
            (fit,) = fit_path(views, rows, own, [starts[k]], GaussianTerm, points=points)
        elif k == len(precisions) - 1:
            fit = fit_gaussian(views, rows, starts[k], points)
        else:
            fit = fit_linear(views, rows)
        yield k, fit


def pad_fits(views: Views, rows: Rows, plan: PathPlan, fits: list[Fit]) -> None:
    """Append a fit for each candidate that there was no time for: the one before it."""
    first = fits or [fit_gaussian(views, rows)]
    last = replace(first[-1], value=np.nan, slope=np.inf, n_evaluations=0, status=Status.MAX_TIME)
    for precision in candidate_precisions(plan, rows)[len(fits) :]:
        fits.append(replace(last, precision=precision))


def _with_all_terms(fit: Fit) -> FloatArray:
    """Return scales of the Gaussian term with a little of every other."""
    n, out = n_dimensions_of(fit.theta, fit.n_weights), fit.theta.copy()
    out[n : 2 * n] = start(n)[n : 2 * n]
    out[2 * n + 1 : 2 * n + N_TERMS] = _SMALL
    return out


def screen(views: Views, rows: Rows, random_state: np.random.RandomState) -> tuple[Index, ...]:
    """Return the dimensions of each path, ascending; none where a table is not wide.

    They come first by the importance that extremely randomised trees of these rows give them. Rows
    held out must not be among these: their score would be too good, by up to 0.10 on 350 rows of
    1,000 columns.

    Raises Stopped where time is up.

    References
    ----------
    Geurts, Ernst and Wehenkel 2006, Extremely randomized trees.
    """
    if rows.n_dimensions <= MOST_SCALES:
        return ()
    order = np.argsort(-_importances(views, rows, random_state), kind="stable")
    return tuple(np.sort(order[:most]) for most in KEPT)


def _importances(views: Views, rows: Rows, random_state: np.random.RandomState) -> FloatArray:
    """Return the mean decrease of the targets' variance by splits of each dimension.

    Of ±1 targets of classes the variance is Gini's index, but for a factor.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    points = views.points(rows.numeric, rows.codes)
    table = np.vstack([points.X, points.C]).T.astype(np.float32)
    targets = Standardised.of(rows).values.T
    forest = ExtraTreesRegressor(
        0, min_samples_leaf=_LEAF, max_features=min(_CELLS // len(table), table.shape[1]),
        random_state=random_state.randint(2**31 - 1), warm_start=True,
    )  # fmt: skip
    for n_trees in range(_BATCH, _N_TREES + 1, _BATCH):
        if clock.expired():
            raise Stopped
        forest.set_params(n_estimators=n_trees)
        forest.fit(table, targets[:, 0] if targets.shape[1] == 1 else targets, rows.weight)
    return np.asarray(forest.feature_importances_)
