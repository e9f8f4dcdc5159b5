"""From rows of any number to a predictor: metric from some, sums over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from kernelweave.kernels_core import Status
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.memory import require

from ..candidates import KEPT, MOST_SCALES, fit_candidates, screen
from ..mixture import path_weights
from ..noise import of_landmarks_with_varying_noise
from ..objective import evidence_bytes, start
from ..path import Fit, fit_path, said_of_screening
from ..powers import has_skewed_columns, has_skewed_targets
from ..rows import Rows, Split, Standardised
from ..scores import mean_with_error
from ..terms import N_TERMS, Stopped
from .batches import BLOCK
from .held_out import RowRoles
from .holdouts import InOrder, WithoutCopies
from .kept import JoinRule, KeptRows
from .landmark_search import LandmarkSearch, SearchStep, blocks_of
from .landmarks import LandmarkPredictor
from .leave_out import LandmarksLeaveOut
from .level_errors import with_levels_told
from .levels import whole_groups
from .panel import as_wide_as_folds, scores_of_kinds
from .plan import LargePlan
from .solution import LandmarkSolution
from .source import BlockSource, Source
from .stages import Stages, Tell
from .survey import Survey, survey

# of the largest weight by rough scales: a stronger λ with less is not fitted to more rows. So many
# of the other rows predict those that choose.
_HOPELESS, _ROUGH_ROWS = 0.25, 500
# of the rows that choose: without those whose losses change most, a power must still gain
_FAR = 0.01
# from a search, all rows and whether the search had the time that it asked for, to coefficients,
# what predicts, the rows with the targets that it made of them, and what time was not left for
LastStep = Callable[..., tuple[LandmarkSolution, LandmarkPredictor, Rows, str]]
# rows that a predictor keeps, besides those that judge
_KEPT = 10_000


@dataclass(frozen=True)
class LearnedLarge:
    """What a fit leaves.

    - `places`: of the predictor's rows among all, where these are in memory
    - `fits`: the path on the rows of the metric
    - `weights` of shape (n_fits,): how it is combined
    - `errors` of shape (n_fits,): mean squared error of each λ on the rows that choose, in units of
      the targets' variance
    - `left_out`: leaves rows out in closed form; ``None`` where not all rows are in memory
    - `missing`: what the time limit or a Ctrl-C left undone, empty if nothing
    """

    predictor: LandmarkPredictor
    places: Index
    fits: list[Fit]
    weights: FloatArray
    errors: FloatArray
    metric_rows: int
    record: list[SearchStep]
    left_out: LandmarksLeaveOut | None = None
    missing: str = ""

    def __str__(self) -> str:
        steps = ", ".join(
            f"{each.n_landmarks} landmarks and {each.n_rows} rows {each.score:z.4f} ± "
            f"{each.error:.4f}"
            for each in self.record
        )
        powers = ", skewed columns under a power" if any(self.predictor.views.warps) else ""
        if self.predictor.rows.ends is not None:
            powers += ", of what the likeliest normal makes of targets known by half"
        powers += said_of_screening(self.fits, self.predictor.views.n_dimensions)
        # nothing leaves rows out that are not in memory
        alone = "" if self.left_out else "; not known is how new groups and later rows differ"
        return (
            f"metric from {self.metric_rows} rows{powers}; by the rows that chose: {steps}{alone}"
        )


def learn_large(
    source: Rows | Source,
    plan: LargePlan,
    random_state: np.random.RandomState,
    *,
    stratify: bool = False,
    splits: Sequence[Split] | None = None,
    powers: bool = False,
    varying_noise: bool = False,
    n_jobs: int | None = None,
    tell: Tell | None = None,
    last_step: LastStep | None = None,
) -> LearnedLarge:
    """Learn the metric on some rows, and the predictor on all by landmarks.

    - `source`: the rows, or what reads them
    - `random_state`: draws the rows of the metric, those held out and the landmarks
    - `stratify`: whether the targets are ±1 of classes, each of which the rows of the metric must
      show
    - `splits`: how a splitter holds rows in memory out
    - `powers`: whether skewed columns, and skewed targets of a regression, are tried under a power
    - `varying_noise`: whether the rows that judge tell how noise varies
    - `n_jobs`: threads of the sums over rows in memory
    - `tell`: called with what is summed over, the rows done, all of them and the share of the fit
    - `last_step`: what takes the place of the sums of squares over all rows, where these are in
      memory and their targets are known by half
    """
    whole = BlockSource(partial(blocks_of, source), n_jobs) if isinstance(source, Rows) else source
    seen = survey(whole, plan.sample_rows, random_state.randint(2**31 - 1))
    roles = RowRoles.of(seen, plan, stratify, whole, splits)
    sizes = plan.sizes(seen.n_rows, len(roles.landmarks))
    _refuse(sizes[-1], seen, plan)
    summed = whole
    if isinstance(source, Rows) and source.group is not None:
        summed = BlockSource(partial(whole_groups, source), n_jobs)
    report = None
    if tell is not None:
        report = Stages(tell, len(roles.metric), seen.n_rows, roles.n_others).summed
    work = LandmarkSearch(seen, seen.targets, roles, plan, summed, n_jobs, report)
    scaled, screened = _screened(roles.metric, random_state)
    if powers:
        work = _with_powers(work, random_state, scaled)
    fits, finished = _fit_metric(work, random_state, scaled)
    work.start(fits)
    omissions = [] if seen.complete else ["some rows never read"]
    omissions += [] if finished and screened else ["the search cut short"]
    try:
        work.grow_landmarks(sizes[1:])
        work.sharpen()
        if last_step is None:
            work.sum_all()
    except Stopped:
        omissions.append("some rows not learned from")
    places = np.empty(0, dtype=np.intp)
    if last_step is not None and isinstance(source, Rows):
        solution, predictor, source, missing = last_step(work, source, is_whole=not omissions)
        omissions += [missing] if missing else []
    else:
        solution = work.solution()
        predictor = solution.predictor(roles.held_out, work.targets)
    if isinstance(source, Rows):
        predictor = with_levels_told(predictor, source, solution.ratio)
    if varying_noise and not omissions:
        predictor, missing = of_landmarks_with_varying_noise(predictor, random_state)
        omissions += [missing] if missing else []
    if isinstance(source, Rows):
        judging = roles.held_out.places[solution.judged]
        predictor, places = among_others(predictor, source, judging)
    left_out = None if omissions else _left_out(work, solution, source, predictor)
    if not omissions:
        kept = _kept(work, solution, source, predictor, places)
        predictor = replace(predictor, kept=kept)
    asked = varying_noise and predictor.rows.group is not None
    asked |= predictor.rows.is_panel and splits is None and not stratify
    if left_out is not None and asked:
        predictor = replace(predictor, of_kinds=scores_of_kinds(predictor, left_out))
    elif _is_in_order(work) and last_step is None:
        predictor = as_wide_as_folds(predictor, solution, roles.held_out.rows)
    return LearnedLarge(
        predictor, places, fits, work.weights, work.errors, len(roles.metric), work.record,
        left_out, ", ".join(omissions),
    )  # fmt: skip


def _kept(
    work: LandmarkSearch, solution: LandmarkSolution, source: Rows | Source,
    predictor: LandmarkPredictor, places: Index,
) -> KeptRows | None:  # fmt: skip
    """Return what lets rows come and go: all rows of tables that are drawn whole.

    `places`: of the predictor's rows among all, where these are in memory.
    """
    seen, held, judged = work.seen, work.roles.held_out, solution.judged
    noise, n, n_folds = predictor.varying_noise, work.seen.n_rows, len(held.without)
    telling = np.zeros(len(held.rows), dtype=np.bool_)
    told = judged if noise is None or noise.told is None else judged[noise.told]
    telling[told] = True
    share = len(told) / max(1, len(judged))
    rule = JoinRule.of(work.roles.rule, seen.sample, len(judged) / n, n_folds - 1, share)
    n_early = work.n_early
    if len(seen.sample) < n:
        if rule.none or predictor.levels is not None or held.rows.ends is not None:
            return None
        return KeptRows.of_judging(rule, held, work.copies, telling, seen, n_early)
    by = np.argsort(seen.index, kind="stable")
    rows = source if isinstance(source, Rows) else seen.sample.take(by)
    fold, out = np.full(n, -1), np.zeros((n_folds, n), dtype=np.bool_)
    fold[held.places], out[:, held.places] = held.fold, held.without
    telling, told = np.zeros(n, dtype=np.bool_), held.places[told]
    telling[told] = True
    at = seen.index[work.landmarks_at]
    kept = KeptRows.whole(rule, rows, fold, out, telling, n_early, at)
    return replace(kept, places=places)


def _left_out(
    work: LandmarkSearch,
    solution: LandmarkSolution,
    source: Rows | Source,
    predictor: LandmarkPredictor,
) -> LandmarksLeaveOut | None:
    """Return what leaves rows out of the solution, of all rows where they are in memory."""
    seen, n = work.seen, work.seen.n_rows
    whole = len(seen.sample) == n
    if not whole and not isinstance(source, Rows):
        return None
    rows, places = (seen.sample, seen.index) if whole else (source, np.arange(n))
    if whole and isinstance(source, Rows):
        # with the targets that the likelihood made of them
        rows = source.take(places)
    assert isinstance(rows, Rows)
    # a duplicate of a landmark is at the same place as the landmark
    landmarks, duplicate_ids = work.landmarks_at, seen.sample.duplicate_ids
    of_duplicates = np.full(duplicate_ids.max() + 1, -1)
    of_duplicates[duplicate_ids[landmarks]] = np.arange(len(landmarks))
    at = np.full(n, -1)
    at[np.arange(n) if whole else seen.index] = of_duplicates[duplicate_ids]
    return LandmarksLeaveOut(
        solution, predictor.targets, rows, places, at, predictor.levels, _is_in_order(work)
    )


def _is_in_order(work: LandmarkSearch) -> bool:
    """Return whether folds hold out later rows."""
    rule = work.roles.rule
    return isinstance(rule.rule if isinstance(rule, WithoutCopies) else rule, InOrder)


def _screened(metric: Rows, random_state: np.random.RandomState) -> tuple[Index | None, bool]:
    """Return the dimensions of a wide table that have scales, and whether there was time to tell.

    ``None`` where all have. The rows held out are none of those that tell.
    """
    try:
        found = screen(metric.views(), metric, random_state)
    except Stopped:
        return None, False
    return (found[-1] if found else None), True


def _with_powers(
    work: LandmarkSearch, random_state: np.random.RandomState, scaled: Index | None
) -> LandmarkSearch:
    """Return the work with skewed numbers and targets under powers, where these surely pay.

    Rough scales of some rows of the metric, few landmarks and all drawn rows show it to the rows
    that choose. The random state is left as it is: where no power is taken, the fit is the one that
    was offered none.
    """
    plan, metric = work.plan.path, work.roles.metric
    transforms = ["columns"] * has_skewed_columns(metric)
    transforms += ["targets"] * has_skewed_targets(metric, plan)
    if not transforms:
        return work
    best = work
    with suppress(Stopped):
        losses = _rough_losses(work, random_state, scaled)
        for each in transforms:
            columns = each == "columns"
            other = _with_transform(best, columns=columns)
            others = _rough_losses(other, random_state, scaled)
            # what bends the targets bends a trend too, beyond the rows that chose it
            errors = 2.0 if columns or metric.times is not None else 1.0
            if _is_significantly_less(others, losses, work.choosing.precision, errors):
                best, losses = other, others
    return best


def _with_transform(work: LandmarkSearch, *, columns: bool) -> LandmarkSearch:
    """Return the work with columns, or else targets, transformed, beside what already is."""
    seen, targets, metric = work.seen, work.targets, work.roles.metric
    if columns:
        seen, metric = seen.with_transformed_columns(), replace(metric, transform_columns=True)
    else:
        # the sample's, to be cut at the range of all rows
        targets = Standardised.of(replace(seen.sample, transform_targets=True))
        targets = replace(targets, low=seen.targets.low, high=seen.targets.high)
        metric = replace(metric, transform_targets=True)
    return replace(work, seen=seen, targets=targets, roles=replace(work.roles, metric=metric))


def _rough_losses(
    work: LandmarkSearch, random_state: np.random.RandomState, scaled: Index | None
) -> FloatArray:
    """Return the losses of the rows that choose, from rough scales and few landmarks."""
    plan, metric = work.plan.path, work.roles.metric
    chosen = deepcopy(random_state).permutation(len(metric))[: plan.coarse]
    part = metric.take(np.sort(chosen))
    fits = fit_path(part.views(), part, plan.rough, kept=scaled)
    return work.rough_losses([fit.scales for fit in fits])


def _is_significantly_less(
    new: FloatArray, old: FloatArray, mass: FloatArray, n_errors: float
) -> bool:
    """Return whether losses are lower by some standard errors, and not by a few rows alone."""
    gains, share = old - new, mass / mass.sum()
    gain, error = mean_with_error(gains, mass)
    most = np.argsort(-np.abs(share * gains), kind="stable")[: max(1, int(_FAR * len(gains)))]
    rest = gain - float(share[most] @ gains[most])
    return gain > n_errors * error and rest > 0.0


def among_others(
    predictor: LandmarkPredictor, rows: Rows, judging: Index
) -> tuple[LandmarkPredictor, Index]:
    """Return the predictor with other rows than those that judge, and the places of all these.

    Explanations and the range of the targets ask for them; ten thousand tell what a million would.
    """
    n, y = len(rows), rows.targets
    wanted = np.concatenate(
        [judging, y.argmin(axis=1), y.argmax(axis=1), (y != np.rint(y)).argmax(axis=1)]
    )
    chosen = np.union1d(wanted, np.linspace(0, n - 1, min(n, _KEPT)).astype(np.intp))
    at = np.searchsorted(chosen, judging)
    return predictor.among(rows.take(chosen), at), chosen


def _refuse(n_landmarks: int, seen: Survey, plan: LargePlan) -> None:
    """Raise where the largest model would not fit the memory limit."""
    n_held = min(plan.held_out, seen.n_rows)
    width = np.dtype(plan.dtype).itemsize
    n_dimensions, n_outputs = seen.views.n_dimensions, len(seen.targets.centre)
    numbers = 7.0 * n_landmarks**2
    # of the drawn rows their parts, of landmarks their views and sides
    numbers += (2 * len(seen.sample) + 8 * n_landmarks) * n_dimensions
    if seen.views.group is not None:
        # sums of a block's groups
        numbers += BLOCK * n_landmarks
        if seen.sample.times is not None and seen.sample.groups is not None:
            # and of those that choose, of which others were learned from
            numbers += len(np.unique(seen.sample.groups)) * n_landmarks
    n_metric = min(plan.metric_rows, len(seen.sample))
    n_scales = n_dimensions if n_dimensions <= MOST_SCALES else KEPT[-1]
    metric = evidence_bytes(n_scales, n_metric, n_outputs, len(seen.views.group_terms))
    require(
        int(8 * numbers) + metric + width * n_landmarks * n_held,
        f"{n_landmarks} landmarks of {seen.n_rows} rows and {n_dimensions} dimensions",
        alternative="raise {memory_limit} or give fewer n_landmarks or columns",
    )


def _fit_metric(
    work: LandmarkSearch, random_state: np.random.RandomState, scaled: Index | None
) -> tuple[list[Fit], bool]:
    """Return the path on the rows of the metric; whether it was finished.

    `scaled`: the dimensions that have scales, ``None`` where all have.
    """
    rows, plan = work.roles.metric, work.plan.path
    views = rows.views()
    fits: list[Fit] = []
    try:
        if len(rows) <= 1.5 * plan.coarse:
            fits.extend(fit_path(views, rows, plan, kept=scaled))
            return fits, True
        chosen = np.sort(random_state.permutation(len(rows))[: plan.coarse])
        part, rough = rows.take(chosen), replace(plan, tol=max(plan.tol, plan.coarse_tol))
        of_path = fit_candidates(part.views(), part, rough, () if scaled is None else (scaled,))
        path = list(of_path)[: len(plan.precisions)]
        first = _first_of_use(work.path_errors([each.scales for each in path], _ROUGH_ROWS))
        plan = replace(plan, tol=max(plan.tol, plan.polish_tol), precisions=plan.precisions[first:])
        starts = [[each.theta] for each in path[first:]]
        fits.extend(fit_path(views, rows, plan, starts, kept=scaled))
    except Stopped:
        n_terms = len(views.group_terms)
        theta = start(views.n_dimensions, n_terms)
        end = (np.nan, np.inf, 0, Status.MAX_TIME, N_TERMS + n_terms)
        return fits or [Fit(plan.precisions[0], theta, *end)], False
    return fits, True


def _first_of_use(errors: FloatArray) -> int:
    """Return which λ is the strongest to go on with, from the errors of rough scales.

    Those before it predict far worse than the best, and more rows let scales differ more. The one
    before the best stays: two in a mixture do better than one.
    """
    weights = path_weights(errors)
    first = int(np.argmax(weights > _HOPELESS * weights.max()))
    return max(0, min(first, int(np.argmin(errors)) - 1))
