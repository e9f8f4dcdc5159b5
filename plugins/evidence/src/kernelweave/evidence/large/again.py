"""A predictor of landmarks for other rows, with the kernel, landmarks, ridge and units it has.

What follows from the rows is worked out by the functions of the fit: sums, coefficients, rows held
out, their spread, noise that varies, levels of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import copy_groups
from numpy.typing import NDArray

from ..noise import noise_of_same_landmarks
from ..rows import Rows, Standardised, natural_range, spread_of
from .features import Landmarks
from .held_out import RowBlock
from .kept import KeptRows, content_keys, equal_places
from .landmark_search import blocks_of
from .landmarks import LandmarkPredictor
from .learning import among_others
from .leave_out import LandmarksLeaveOut
from .level_errors import with_levels_told
from .levels import whole_groups
from .panel import as_wide_as_folds, scores_of_kinds
from .posterior import PosteriorOfSums, root_of
from .solution import Choice, LandmarkSolution, Trial
from .sums import NormalEquations


@dataclass(frozen=True, eq=False)
class Relearned:
    """A predictor for other rows, and what leaves out any of these, where they are all kept."""

    predictor: LandmarkPredictor
    left_out: LandmarksLeaveOut | None


def kept_of(predictor: LandmarkPredictor) -> KeptRows:
    """Return what a predictor keeps; raise ValueError where that is too little."""
    if predictor.kept is None:
        raise ValueError(
            "this model kept too little to learn new rows: its fit was cut short, or read groups "
            "in parts; fit it again"
        )
    return predictor.kept


def ratio_of(predictor: LandmarkPredictor) -> float | None:
    """Return the ratio of the noise to the levels of groups, ``None`` where these have none."""
    return None if predictor.levels is None else predictor.levels.ratio


def relearned(
    old: LandmarkPredictor, rows: Rows, of_groups: NDArray[np.uint64] | None = None
) -> Relearned:
    """Return the predictor of all rows of a table, from sums over these alone.

    A landmark that is none of the rows is left out, and rows that are not held out come in its
    place, those of the least keys.

    `of_groups` of shape (n,): keys of the rows' groups, where whole groups are held out.
    """
    before = kept_of(old)
    keys = before.rule.keys(rows, of_groups)
    fold, out, telling = before.folds_of(rows, keys)
    at, n_early, landmarks = before.landmark_at, before.n_early, _renamed(old.landmarks, rows)
    if before.is_whole:
        at, n_early = _landmark_places(before, rows, out)
        landmarks = _at_rows(old.landmarks, rows, at)
    ratio, targets = ratio_of(old), units_of(old, rows)
    equations = white_sums(landmarks, rows, targets, ratio)
    kept = KeptRows.whole(before.rule, rows, fold, out, telling, n_early, at)
    return judged(old, landmarks, equations, targets, replace(kept, is_exact=True))


def with_more(
    old: LandmarkPredictor, quick: LandmarkPredictor, rows: Rows,
    of_groups: NDArray[np.uint64] | None = None,
) -> Relearned:  # fmt: skip
    """Return the predictor of all rows, the exact sums over which are known.

    `quick`: has these sums; `rows`: those of the old predictor and others behind them; `of_groups`:
    as in `relearned`.
    """
    before = kept_of(old)
    keys = before.rule.keys(rows, of_groups)
    fold, out, telling = before.folds_of(rows, keys)
    at = equal_places(before.rows, before.landmark_at, rows)
    kept = KeptRows.whole(before.rule, rows, fold, out, telling, before.n_early, at)
    return judged(
        old, quick.landmarks, quick.posterior.equations, units_of(old, rows),
        replace(kept, is_exact=True),
    )  # fmt: skip


def white_sums(
    landmarks: Landmarks, rows: Rows, targets: Standardised, ratio: float | None = None
) -> NormalEquations:
    """Return the normal equations of rows, each of which is whitened before it is summed.

    That costs as much as the sums themselves, but rounding stays rounding: whitening sums of
    features multiplies that of the sums by the condition of Kₘₘ.
    """
    size, n_outputs = len(landmarks), len(rows.targets)
    inner = np.zeros((size, size), order="F")
    right = np.zeros((size, n_outputs), order="F")
    equations = NormalEquations(root_of(landmarks.gram()), inner, right)
    cut = blocks_of if ratio is None else whole_groups
    for each in cut(rows):
        block = RowBlock.of(each, targets)._replace(ratio=ratio)
        equations = equations.with_block(landmarks, block, 1.0)
    return equations


def added(
    old: LandmarkPredictor, new: Rows, mates: Rows | None = None, sign: float = 1.0
) -> LandmarkPredictor:
    """Return what predicts means, with rows added to the sums or, by ``sign=-1``, taken away.

    `mates`: other rows of their groups, where groups have levels. What rows held out tell stays.
    """
    ratio, targets = ratio_of(old), old.targets
    block = RowBlock.of(new, targets)._replace(ratio=ratio)
    if ratio is not None and mates is not None and len(mates):
        block = block._replace(rest=RowBlock.of(mates, targets))
    equations = old.posterior.equations.with_block(old.landmarks, block, sign)
    ridge, dual, factor = equations.solved(old.ridge)
    posterior = PosteriorOfSums.of(old.landmarks, ridge, equations, factor)
    return replace(old, ridge=ridge, dual=dual, posterior=posterior)


def with_levels(
    predictor: LandmarkPredictor, rows: Rows, *, sure: bool = True
) -> LandmarkPredictor:
    """Return the predictor with the levels of the groups that all of its rows tell.

    `sure`: as in `with_levels_told`.
    """
    ratio = ratio_of(predictor)
    if ratio is None:
        return predictor
    return with_levels_told(replace(predictor, levels=None), rows, ratio, sure=sure)


def judged(
    old: LandmarkPredictor, landmarks: Landmarks, equations: NormalEquations,
    targets: Standardised, kept: KeptRows,
) -> Relearned:  # fmt: skip
    """Return the predictor of equations, with all that rows held out tell of it."""
    ratio, held = ratio_of(old), kept.held
    trial = Trial(
        landmarks, Choice(np.nan, old.ridge, np.empty(0), old.width), None, kept.n_rows, ratio
    )

    def share(which: Index) -> RowBlock:
        return held.block_of(which, targets, kept.copies)._replace(ratio=ratio)

    n_late, in_order = len(landmarks) - kept.n_early, bool(kept.rule.starts)
    solution = LandmarkSolution.of_sums(trial, equations, held, share, n_late)
    predictor = solution.predictor(held, targets)
    if in_order and not old.of_kinds:
        predictor = as_wide_as_folds(predictor, solution, held.rows)
    if kept.is_whole:
        predictor = with_levels(replace(predictor, levels=old.levels), held.rows)
    if old.varying_noise is not None:
        telling = np.flatnonzero(kept.telling[solution.judged])
        predictor = noise_of_same_landmarks(predictor, old.varying_noise, telling)
    if not kept.is_whole:
        return Relearned(replace(predictor, kept=kept), None)
    predictor, places = among_others(predictor, held.rows, solution.judged)
    if not len(kept.landmark_at):
        return Relearned(replace(predictor, kept=replace(kept, places=places)), None)
    everything = np.arange(len(held.rows))
    left_out = LandmarksLeaveOut(
        solution, predictor.targets, held.rows, everything, _landmark_of(kept), predictor.levels,
        in_order,
    )  # fmt: skip
    if old.of_kinds:
        predictor = replace(predictor, of_kinds=scores_of_kinds(predictor, left_out))
    return Relearned(replace(predictor, kept=replace(kept, places=places)), left_out)


def units_of(old: LandmarkPredictor, rows: Rows) -> Standardised:
    """Return the units of the targets, which stay, with the range of the targets of other rows."""
    least, most = rows.targets.min(axis=1), rows.targets.max(axis=1)
    share = rows.precision / rows.precision.sum()
    spread = spread_of(rows.targets - (rows.targets @ share)[:, None], share)
    low, high = natural_range(rows.targets, least, most, spread)
    return within(old.targets, least, most, low, high)


def within(
    units: Standardised, least: FloatArray, most: FloatArray, low: FloatArray, high: FloatArray
) -> Standardised:
    """Return units with the range of the targets, and what these never leave."""
    ends = np.ascontiguousarray(units.standardise(np.array([least, most])).T)
    return replace(units, values=ends, low=low, high=high)


def _renamed(landmarks: Landmarks, rows: Rows) -> Landmarks:
    """Return landmarks whose groups are named as those of the rows are."""
    if rows.group is None or landmarks.views.group == rows.group:
        return landmarks
    return replace(landmarks, views=replace(landmarks.views, group=rows.group))


def _at_rows(landmarks: Landmarks, rows: Rows, at: Index) -> Landmarks:
    """Return some of the rows as landmarks of the same kernel."""
    views, some = _renamed(landmarks, rows).views, rows.take(at)
    scales = tuple(each.without_levels() for each in landmarks.scales)
    return Landmarks(views, views.points(some.numeric, some.codes), scales, landmarks.dtype)


def _landmark_places(before: KeptRows, rows: Rows, out: NDArray[np.bool_]) -> tuple[Index, int]:
    """Return where the landmarks stand among the rows, and how many are of no row held out.

    Those that are not there give way to rows that are not held out.
    """
    at = equal_places(before.rows, before.landmark_at, rows)
    early, late = at[: before.n_early], at[before.n_early :]
    n_missing = int(np.sum(early < 0))
    early, late = early[early >= 0], late[late >= 0]
    if n_missing:
        more = _not_held(rows, out, np.concatenate([early, late]))[:n_missing]
        early = np.concatenate([early, more])
    if not len(early):
        raise ValueError(
            f"the {len(rows)} rows leave no landmark: at least one must not be held out; give more "
            "rows, or fit again"
        )
    return np.concatenate([early, late]), len(early)


def _not_held(rows: Rows, out: NDArray[np.bool_], taken: Index) -> Index:
    """Return rows that are held out in no fold that judges, copies of none, by their keys."""
    copies = copy_groups(rows.numbers, rows.codes)
    free = ~out[1:].any(axis=0) & ~np.isin(copies, copies[taken])
    places = np.flatnonzero(free)
    places = places[np.argsort(content_keys(rows.take(places)), kind="stable")]
    first = np.sort(np.unique(copies[places], return_index=True)[1])
    return np.asarray(places[first])


def _landmark_of(kept: KeptRows) -> Index:
    """Return which landmark each row is a copy of, −1 of none."""
    copies = copy_groups(kept.rows.numbers, kept.rows.codes)
    of_copies = np.full(int(copies.max(initial=-1)) + 1, -1)
    of_copies[copies[kept.landmark_at]] = np.arange(len(kept.landmark_at))
    return np.asarray(of_copies[copies])
