"""From rows to a predictor: folds, path, weights, one factorisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .candidates import Starts, candidate_precisions, coarse_starts, fit_candidates
from .folds import Fold, fit_fold
from .mixture import Mixture, fit_mixture, path_weights, weighted
from .objective import start
from .path import Fit, Plan
from .rows import Rows, spread_of
from .steps import Stopped
from .views import Views
from .warp import Warp

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Tell = Callable[[int, int], None]
# a power nearer to 1 changes too little to pay for a second fit
_BENT = 0.15
# and whether it pays is seen before the scales have converged
_ROUGH = 1e-4


@dataclass(frozen=True)
class Learned:
    """What a fit leaves.

    - `mixture`: the predictor from all rows
    - `fits`: the path on all rows, and after it the Gaussian kernels
    - `weights`: how they are combined, (n_fits,)
    - `errors`: held-out mean squared error of each fit, in units of the targets' variance; NaN
      where no fold was finished
    - `folds`: those that were finished
    - `held_out`: predictions of rows by the fold that did not see them, (n_rows, n_outputs); NaN
      where it was not finished
    - `rows`: the training rows, with the word whether their targets are warped
    - `missing`: what the time limit or a Ctrl-C left undone, empty if nothing
    """

    mixture: Mixture
    fits: list[Fit]
    weights: FloatArray
    errors: FloatArray
    folds: list[Fold]
    held_out: FloatArray
    rows: Rows
    missing: str = ""

    def __str__(self) -> str:
        n = self.mixture.points.n_points
        return f"metric and predictor from all pairs of {n} rows, {len(self.folds)} folds"


def learn(
    rows: Rows,
    splits: Sequence[Split],
    plan: Plan,
    random_state: np.random.RandomState,
    *,
    warp: bool = False,
    n_jobs: int | None = None,
    tell: Tell | None = None,
) -> Learned:
    """Fit the path in every fold and on all rows, and combine it.

    - `splits`: training and held-out indices
    - `random_state` draws the rows of the first, coarse pass
    - `warp`: whether the targets are also tried under a power, where one is far from none;
      held-out rows decide
    - `n_jobs`: processes for the folds
    - `tell` is called with the parts done and all parts
    """
    seeds = random_state.randint(2**31 - 1, size=len(splits) + 1)
    if warp and len(rows) > 2 * plan.coarse:
        rows = replace(rows, warped=warp_pays(rows, plan, random_state))
        warp = False
    rows, folds, held_out, errors = _choose(
        rows, warp, lambda each: _fit_folds(each, splits, plan, seeds, n_jobs, tell), plan
    )
    weights = path_weights(errors) if folds else _strongest(len(errors))
    views = Views.of(rows.numeric, rows.codes, rows.weight)
    fits, polished = _fit_all(views, rows, plan, folds, seeds[-1])
    weights = weights[: len(fits)] if weights[: len(fits)].any() else _strongest(len(fits))
    weights = weights / weights.sum()
    mixture = fit_mixture(views, rows, weighted([fit.scales for fit in fits], weights))
    if tell is not None:
        tell(len(splits) + 1, len(splits) + 1)
    missing = _missing(len(splits), folds, polished)
    combined = np.einsum("k,kit->it", _padded(weights, held_out), held_out)
    return Learned(mixture, fits, weights, errors, folds, combined, rows, missing)


def is_bent(rows: Rows) -> bool:
    """Return whether a power far from none makes a target nearly normal."""
    return any(abs(Warp.of(each).power - 1.0) > _BENT for each in rows.targets)


def warp_pays(rows: Rows, plan: Plan, random_state: np.random.RandomState) -> bool:
    """Return what held-out rows of a part prefer: two fits of all would cost twice."""
    part = rows.take(np.sort(random_state.permutation(len(rows))[: 3 * plan.coarse // 2]))
    index = random_state.permutation(len(part))
    splits = [(np.setdiff1d(index, held_out), held_out) for held_out in np.array_split(index, 3)]
    seeds = random_state.randint(2**31 - 1, size=3)
    plan = replace(plan, tol=_ROUGH)
    return _choose(part, True, lambda each: _fit_folds(each, splits, plan, seeds, 1, None), plan)[
        0
    ].warped


def _choose(
    rows: Rows, warp: bool, fit: Callable[[Rows], list[Fold]], plan: Plan
) -> tuple[Rows, list[Fold], FloatArray, FloatArray]:
    """Return the rows with their targets as they are or warped, by the held-out errors."""
    candidates = [rows]
    if warp and is_bent(rows):
        candidates.append(replace(rows, warped=True))
    tried, n_fits = [], len(candidate_precisions(plan, rows))
    for each in candidates:
        folds = fit(each)
        tried.append((each, folds, *_judge(each, folds, n_fits)))
    # a warp whose folds were cut short says nothing
    whole = [each for each in tried if len(each[1]) == len(tried[0][1])]
    return min(whole, key=lambda each: float(np.nan_to_num(each[3], nan=np.inf).min()))


def _padded(weights: FloatArray, held_out: FloatArray) -> FloatArray:
    return np.asarray(np.append(weights, np.zeros(len(held_out) - len(weights))))


def _strongest(n_fits: int) -> FloatArray:
    return np.asarray(np.eye(n_fits)[0])


def _missing(n_folds: int, folds: Sequence[Fold], polished: bool) -> str:
    undone, cut = n_folds - len(folds), sum(not fold.whole for fold in folds)
    parts = [f"{undone} of the folds"] if undone else []
    parts += [f"part of the path in {cut} of the folds"] if cut else []
    parts += [] if polished else ["part of the path on all rows"]
    return " and ".join(parts)


def _fit_folds(
    rows: Rows,
    splits: Sequence[Split],
    plan: Plan,
    seeds: NDArray[np.intp],
    n_jobs: int | None,
    tell: Tell | None,
) -> list[Fold]:
    seconds, workers = clock.seconds_left(), effective_n_jobs(n_jobs)
    # the fit of all rows comes last
    rounds = [(len(splits) - 1 - k) // workers + 2 for k in range(len(splits))]
    jobs = [
        delayed(_timed_fold)(rows, *split, plan, int(seed), seconds, left)
        for split, seed, left in zip(splits, seeds, rounds, strict=False)
    ]
    folds = []
    for done, fold in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(jobs)):
        if fold is not None:
            folds.append(fold)
        if tell is not None:
            tell(done + 1, len(splits) + 1)
    return folds


def _timed_fold(
    rows: Rows,
    training: NDArray[np.intp],
    held_out: NDArray[np.intp],
    plan: Plan,
    seed: int,
    seconds: float,
    rounds: int,
) -> Fold | None:
    """Fit a fold; ``None`` where time is up.

    `seconds`: what was left when the folds began, which another process cannot know; `rounds`: fits
    that are still to come one after the other, this one among them, of which each has its share.
    """
    if clock.expired():
        return None
    share = min(seconds, clock.seconds_left()) / rounds
    with clock.time_limit(None if np.isinf(share) else share):
        return fit_fold(rows, training, held_out, plan, np.random.RandomState(seed))


def _judge(rows: Rows, folds: Sequence[Fold], n_fits: int) -> tuple[FloatArray, FloatArray]:
    """Return held-out predictions of each λ and their errors in units of the variance."""
    held_out = np.full((n_fits, len(rows), len(rows.targets)), np.nan)
    if not folds:
        return held_out, np.full(n_fits, np.nan)
    seen = np.concatenate([fold.held_out for fold in folds])
    for fold in folds:
        held_out[:, fold.held_out] = fold.predictions
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    share = weight[seen] / weight[seen].sum()
    spread = spread_of(rows.targets - rows.targets.mean(axis=1, keepdims=True), rows.mass)
    residual = (held_out[:, seen] - rows.targets.T[seen]) / spread
    errors: FloatArray = np.einsum("i,kit->k", share, residual**2) / len(spread)
    return held_out, errors


def _fit_all(
    views: Views, rows: Rows, plan: Plan, folds: Sequence[Fold], seed: int
) -> tuple[list[Fit], bool]:
    """Return the candidates on all rows, started at those of the folds; whether it was finished."""
    precisions = candidate_precisions(plan, rows)
    starts: Starts = [
        [np.mean(thetas, axis=0), *thetas]
        for k in range(len(precisions) if folds else 0)
        for thetas in [[fold.fits[k].theta for fold in folds]]
    ]
    done: list[Fit] = []
    try:
        state = np.random.RandomState(seed)
        fit_candidates(views, rows, plan, starts or coarse_starts(rows, plan, state), done)
    except Stopped:
        guesses = starts or [[start(views.n_dimensions)]]
        done += [
            Fit(precisions[k], guesses[k][0], np.nan, np.inf, 0)
            for k in range(len(done), len(guesses))
        ]
        return done, False
    return done, True
