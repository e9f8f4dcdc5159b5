"""Targets known by half of more rows than pairs are taken of: a likelihood by landmarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from ..censored.fit import LEAST_SHARE
from ..censored.likelihood import Sites, sites
from ..censored.predicting import ByResiduals
from ..censored.residuals import ResidualDistribution
from ..mixture import Expansion
from ..rows import Rows
from ..terms import Stopped
from .features import Landmarks
from .held_out import HeldFolds, RowBlock
from .landmark_search import LandmarkSearch
from .landmarks import LandmarkPredictor
from .posterior import PosteriorOfSums, latent_variance, root_of
from .solution import FoldLeftOut, LandmarkSolution
from .span import SpanMode, SpanProblem, at_mode, mode_in_span, with_curvature

# from one ridge to the next, and how many at most
_STEP, _WALK = float(np.sqrt(10.0)), 8
# rows and landmarks of a mode that no time is left for
_LATE_ROWS, _LATE_LANDMARKS = 5000, 1000
# quantiles that a distribution of residuals keeps at most
_QUANTILES = 2000


@dataclass(frozen=True)
class CensoredLandmarks(ByResiduals, LandmarkPredictor):
    """A function of landmarks at the posterior mode, and how far rows held out were from it."""

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the posterior mean as a sum of kernel values, on the way to medians."""
        return self.to_medians(LandmarkPredictor.expansion(self, fold))

    def among(self, rows: Rows, at: Index) -> Self:
        """Return the predictor with other rows beside those that judge, which are at these places.

        `at` of shape (n_judging,).
        """
        spread = np.zeros((2, len(rows)))
        spread[:, at] = self.held_out_spread
        return replace(super().among(rows, at), held_out_spread=spread)

    def moments(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return centres, their deviations and those of new observations, as learned, (3, n)."""
        latent = self.landmarks.products(numeric, codes, self.dual)
        variance = latent_variance(self.landmarks, self.posterior, numeric, codes)
        centre, spread = self.targets.restore(latent)[:, 0], self.targets.spread[0]
        return np.array(
            [centre, np.sqrt(variance) * spread, np.sqrt(variance + self.ridge) * spread]
        )


def censored_landmarks(
    work: LandmarkSearch, rows: Rows, *, is_whole: bool, log: bool
) -> tuple[LandmarkSolution, LandmarkPredictor, Rows, str]:
    """Return the mode of all rows and of those without each fold that judges; and what predicts.

    The rows that choose tell the noise, as a share of that of the path, and then how much of the
    kernel's variance is left, by their likelihood. Those that judge tell the distribution of
    residuals. Third are all rows with the targets of the mode, and last what time was not left for.

    - `rows`: all, with the ends of their targets
    - `is_whole`: whether the search had the time that it asked for; where it had not, or where the
      time ends here, the mode is of 5,000 rows and 1,000 landmarks at most
    - `log`: whether targets are logarithms
    """
    held = work.roles.held_out
    away = _away(held, rows)
    try:
        if not is_whole:
            raise Stopped
        start = _likeliest(work)
        work.take_late_landmarks()
        landmarks = _scaled(work.best.landmarks, start.problem.noise / start.problem.ridge)
        problem = _problem(work, landmarks, rows, start.problem.noise)
        # with another variance of the kernel the same function has other coefficients
        begin = np.zeros(len(landmarks))
        begin[: work.n_early] = start.mode.dual * start.problem.ridge / start.problem.noise
        mode = with_curvature(problem, mode_in_span(problem, begin))
        parts = [_left_out(problem, mode, held, *each, away, work.n_early) for each in _folds(held)]
        found, missing = at_mode(problem, mode.latent), ""
    except Stopped:
        problem = _late_problem(work, rows)
        mode = mode_in_span(problem, np.zeros(len(problem.landmarks)))
        some, n = _late_rows(len(rows)), len(problem.landmarks)
        parts = [_left_out(problem, mode, held, *each, away[:, some], n) for each in _folds(held)]
        latent = problem.landmarks.products(rows.numeric, rows.codes, mode.dual[:, None])[:, 0]
        found = at_mode(replace(problem, rows=rows), latent)
        missing = f"targets known by half learned from {len(some)} rows, their noise as at first"
    solution, predictor, offset = _predictor(problem, mode, tuple(parts), held, log=log)
    return solution, predictor, replace(found, targets=found.targets + offset), missing


class _Tried(NamedTuple):
    """A mode without the rows that choose, and their log likelihood."""

    problem: SpanProblem
    mode: SpanMode
    log_likelihood: float


def _folds(held: HeldFolds) -> Iterator[tuple[int, Index]]:
    """Yield the number of each fold that judges, and which of the rows held out are of it."""
    for k in range(1, len(held.without)):
        if len(which := np.flatnonzero(held.fold == k)):
            yield k, which


def _away(held: HeldFolds, rows: Rows) -> NDArray[np.bool_]:
    """Return which of all rows are left out where each fold is predicted, copies included."""
    away = np.zeros((len(held.without), len(rows)), dtype=np.bool_)
    away[:, held.places] = held.without
    if held.known_rows is not None:
        at = held.known_rows.find(rows.numeric, rows.codes)
        seen = np.flatnonzero(at >= 0)
        known = np.zeros((len(away), len(held.known_rows)), dtype=np.bool_)
        for own, without in zip(known, held.without, strict=True):
            own[held.copy_of[without]] = True
        away[:, seen] |= known[:, at[seen]]
    return away


def _problem(work: LandmarkSearch, landmarks: Landmarks, rows: Rows, noise: float) -> SpanProblem:
    """Return what a mode of some rows takes, in the units of all targets."""
    root = root_of(landmarks.gram())
    return SpanProblem(landmarks, root, rows, work.targets, noise, noise, work.n_jobs)


def _scaled(landmarks: Landmarks, factor: float) -> Landmarks:
    """Return landmarks of a multiple of the kernel."""
    scales = tuple(replace(each, weights=factor * each.weights) for each in landmarks.scales)
    return Landmarks(landmarks.views, landmarks.points, scales, landmarks.dtype)


def _noise(work: LandmarkSearch) -> float:
    return sum(each.noise for each in work.scales)


def _likeliest(work: LandmarkSearch) -> _Tried:
    """Return the noise, and then the ridge, that make the rows that choose likeliest.

    Each is changed step by step as long as that is better, from the noise of the path and the ridge
    that the search found, first to less, and to more where that was not better.
    """
    rows = work.others(work.plan.first_rows)
    problem = _problem(work, work.best.landmarks, rows, _noise(work))
    problem = replace(problem, ridge=work.best.choice.ridge)

    def tried(changed: SpanProblem, near: SpanMode | None) -> _Tried:
        start = np.zeros(len(problem.landmarks)) if near is None else near.dual
        mode = mode_in_span(changed, start, None if near is None else near.equations)
        _, _, told = _told(changed, mode, work.choosing)
        return _Tried(changed, mode, float(work.choosing.mass @ told.log_likelihood))

    def share(of: SpanProblem, step: float) -> SpanProblem:
        return replace(of, noise=step * of.noise, ridge=step * of.ridge)

    def ridge(of: SpanProblem, step: float) -> SpanProblem:
        return replace(of, ridge=step * of.ridge)

    best, least, most = tried(problem, None), LEAST_SHARE, 1.0 / LEAST_SHARE
    for change, steps in ((share, (0.5, 2.0)), (ridge, (1.0 / _STEP, _STEP))):
        before = best
        for step in steps:
            for _ in range(_WALK):
                other = change(best.problem, step)
                if not least <= other.noise / problem.noise <= most:
                    break
                new = tried(other, best.mode)
                if not new.log_likelihood > best.log_likelihood:
                    break
                best = new
            if best is not before:
                break
    return best


def _told(problem: SpanProblem, mode: SpanMode, rows: Rows) -> tuple[FloatArray, FloatArray, Sites]:
    """Return predictions of other rows, the function's variance, and what their ends say of these.

    All standardised, of shape (n,).
    """
    assert rows.ends is not None
    landmarks = problem.landmarks
    latent = landmarks.products(rows.numeric, rows.codes, mode.dual[:, None])[:, 0]
    posterior = PosteriorOfSums.of(landmarks, problem.ridge, mode.equations, mode.factor)
    variance = latent_variance(landmarks, posterior, rows.numeric, rows.codes)
    variance *= problem.noise / problem.ridge
    ends = problem.units.standardise(rows.ends.reshape(-1, 1)).reshape(2, -1)
    return latent, variance, sites(latent, np.sqrt(variance + problem.noise), ends)


def _left_out(
    problem: SpanProblem, mode: SpanMode, held: HeldFolds, k: int, which: Index,
    away: NDArray[np.bool_], n_early: int,
) -> FoldLeftOut:  # fmt: skip
    """Return a fold's rows as the mode of the others predicts them.

    The mode begins where that of all rows is, with its curvature less what the fold's rows add.

    `which`: of the rows held out; `away` of shape (n_folds, n_rows); `n_early`: landmarks that are
    of no row held out.
    """
    landmarks = problem.landmarks
    early = landmarks.first(n_early, landmarks.dtype)
    out = np.flatnonzero(away[k])
    own = at_mode(replace(problem, rows=problem.rows.take(out)), mode.latent[out])
    share = RowBlock(own, own.precision, np.zeros((len(own), 1)))
    equations = mode.equations.first(n_early).with_block(early, share, -1.0)
    rest = replace(
        problem, landmarks=early, root=equations.root,
        rows=problem.rows.take(np.flatnonzero(~away[k])),
    )  # fmt: skip
    found = mode_in_span(rest, mode.dual[:n_early], equations)
    rows = held.rows.take(which)
    latent, variance, _ = _told(rest, found, rows)
    dual = np.concatenate([found.dual, np.zeros(len(landmarks) - n_early)])
    return FoldLeftOut(which, latent[:, None], variance, dual[:, None])


def _late_rows(n_rows: int) -> Index:
    return np.linspace(0, n_rows - 1, min(n_rows, _LATE_ROWS)).astype(np.intp)


def _late_problem(work: LandmarkSearch, rows: Rows) -> SpanProblem:
    """Return what the mode of some rows and landmarks takes, which no clock ends."""
    landmarks = work.best.landmarks
    landmarks = landmarks.first(min(work.n_early, _LATE_LANDMARKS), landmarks.dtype)
    noise = _noise(work)
    landmarks = _scaled(landmarks, noise / work.best.choice.ridge)
    problem = _problem(work, landmarks, rows.take(_late_rows(len(rows))), noise)
    return replace(problem, is_limited=False)


def _predictor(
    problem: SpanProblem, mode: SpanMode, left_out: tuple[FoldLeftOut, ...], held: HeldFolds, *,
    log: bool,
) -> tuple[LandmarkSolution, CensoredLandmarks, float]:  # fmt: skip
    """Return the coefficients, what predicts, and what moved its predictions to medians."""
    posterior = PosteriorOfSums.of(problem.landmarks, problem.ridge, mode.equations, mode.factor)
    solution = LandmarkSolution(
        problem.landmarks, problem.ridge, 0.0, mode.dual[:, None], posterior, left_out
    )
    rows = held.rows.take(solution.judged)
    latent = np.vstack([np.empty((0, 1)), *(each.latent for each in left_out)])
    variance = np.concatenate([np.empty(0), *(each.variance for each in left_out)])
    spread = np.sqrt([variance, variance + problem.noise]) * problem.units.spread[0]
    centre = problem.units.restore(latent)
    offset, told = 0.0, ResidualDistribution.normal()
    if left_out:
        assert rows.ends is not None
        offset, told = ResidualDistribution.around_median(
            rows.ends, centre[:, 0], spread[1], rows.mass, _QUANTILES
        )
    ends = np.array([problem.units.values.min(), problem.units.values.max()])[None]
    units = replace(problem.units, values=ends).moved(offset)
    fold = np.repeat(np.arange(len(left_out)), [len(each.which) for each in left_out])
    predictor = CensoredLandmarks(
        problem.landmarks, problem.ridge, solution.dual, posterior,
        units, 0.0, np.ones(1), np.empty((0, 1)), rows,
        centre + offset, fold, tuple(each.dual for each in left_out),
        distribution=told, held_out_spread=spread, log=log,
    )  # fmt: skip
    return solution, predictor, offset
