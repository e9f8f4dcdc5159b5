"""Some landmarks tried out: the ridge that predicts the rows that choose best, and how well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import solve

from ..path import Loss
from ..rows import Rows, Standardised, centred_by_others
from ..scores import mean_with_error
from .features import Landmarks
from .landmarks import LandmarkPredictor
from .levels import GroupLevels, group_features
from .posterior import PosteriorOfSums, latent_variance
from .sums import NormalEquations

if TYPE_CHECKING:
    from .held_out import HeldFolds, RowBlock

# From one ridge to the next: the error of rows held out is flat around its minimum, and each ridge
# costs a factorisation of the order of the landmarks.
_STEP = float(np.sqrt(10.0))
# the least noise that the path may find, too: without any, deviations mean nothing
_LEAST = 1e-5
# Of the loss: less noise must gain more than this, for it brings sums nearer to their rounding.
_LITTLE = 5e-3
# Steps of a walk at most, a factor of 10⁶; it ends where one does not gain.
_WALK = 12


class Choice(NamedTuple):
    """The ridge that serves the rows that choose.

    `losses` of shape (n_choosing,): squared residuals in units of the targets' variance, averaged
    over outputs; `loss`: their weighted mean, or what the user's scorer says; `width`: deviation of
    warped targets around standardised predictions, 0 of others.
    """

    loss: float
    ridge: float
    losses: FloatArray
    width: float


@dataclass(frozen=True)
class RidgeJudge:
    """Rows that choose a ridge, and what predicts them.

    `latent`: returns their standardised predictions under a ridge, ``None`` where rounding leaves
    none; `targets`: as in the sums; `units` of shape (n_outputs,): of the errors: the spread of the
    targets themselves; `loss`: what the ridge makes least, in place of squares; `ratio`: from the
    ridge to that of noise and levels of groups, ``None`` where these have none.
    """

    latent: Callable[[float], FloatArray | None]
    choosing: Rows
    targets: Standardised
    units: FloatArray
    loss: Loss | None = None
    ratio: Callable[[float], float] | None = None

    def choose(self, ridges: Sequence[float]) -> Choice:
        """Walk from the best of some ridges to the least error, in steps of √10."""
        choices = [self._least_that_solves(ridges[0]), *map(self, ridges[1:])]
        enough = (1.0 + _LITTLE) * min(each.loss for each in choices)
        first = max((each for each in choices if each.loss <= enough), key=lambda each: each.ridge)
        best = self._walk(first, 1.0 / _STEP)
        return self._walk(first, _STEP) if best is first else best

    def _least_that_solves(self, ridge: float) -> Choice:
        """Raise a ridge until it is more than the rounding of the sums."""
        for _ in range(2 * _WALK):
            choice = self(ridge)
            if np.isfinite(choice.loss):
                return choice
            ridge *= _STEP
        raise np.linalg.LinAlgError(
            f"a ridge of {ridge:.1e} does not make the normal equations positive definite"
        )

    def _walk(self, best: Choice, step: float) -> Choice:
        """Return the best choice on a walk from one, while each step gains."""
        for _ in range(_WALK):
            if best.ridge * step < _LEAST:
                break
            other = self(best.ridge * step)
            if not other.loss < best.loss * (1.0 - _LITTLE * (step < 1.0)):
                break
            best = other
        return best

    def __call__(self, ridge: float) -> Choice:
        """Return how a ridge does, with an infinite loss where it does not solve."""
        latent = self.latent(ridge)
        if latent is None:
            return Choice(np.inf, ridge, np.empty(0), 0.0)
        width = _width(latent, self.choosing, self.targets)
        predicted = self.targets.moments(latent, width)[0]
        residuals = (self.choosing.targets.T - predicted) / self.units
        losses = np.mean(residuals**2, axis=1)
        share = self.choosing.precision / self.choosing.precision.sum()
        loss = share @ losses if self.loss is None else self.loss(self.choosing, predicted)
        if self.loss is None and self.ratio is not None:
            # noise that hides in the levels of new groups shows within those that are known
            rest = self.targets.of_rows(self.choosing).values.T - latent
            loss = np.sqrt(loss * _loss_of_known(self.choosing, rest, self.ratio(ridge)))
        return Choice(float(loss), ridge, losses, width)


def _width(latent: FloatArray, choosing: Rows, targets: Standardised) -> float:
    """Return the deviation of warped targets around standardised predictions; 0 of others."""
    if not targets.warps:
        return 0.0
    rest = targets.of_rows(choosing).values.T - latent
    return float(np.sqrt(np.average(np.mean(rest**2, axis=1), weights=choosing.precision)))


def _loss_of_known(rows: Rows, residuals: FloatArray, ratio: float) -> float:
    """Return the mean squared residual of rows whose level others of their group tell.

    `residuals` of shape (n, n_outputs): of rows predicted without their group; `ratio`: variance of
    the noise over that of levels. 1 where no group has two rows.
    """
    assert rows.groups is not None
    _, groups, counts = np.unique(rows.groups, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[groups] > 1)
    if not len(several):
        return 1.0
    raw, mass = residuals[several], rows.mass[several]
    among, total = groups[several], np.bincount(groups, weights=rows.mass)
    sums = np.column_stack([np.bincount(groups, weights=rows.mass * r) for r in residuals.T])
    others = sums[among] - mass[:, None] * raw
    rest = raw - others / (total[among] - mass + ratio)[:, None]
    return float(np.average(np.mean(rest**2, axis=1), weights=mass))


@dataclass(frozen=True)
class Trial:
    """Landmarks with the ridge that serves the rows that choose.

    `equations`: of sums without them, ``None`` behind the last sums; `n_rows`: in the sums;
    `ratio`: of the noise to the levels of groups in the sums, ``None`` where these have none.
    """

    landmarks: Landmarks
    choice: Choice
    equations: NormalEquations | None
    n_rows: int
    ratio: float | None = None

    def gain_over(self, other: Trial, weight: FloatArray) -> tuple[float, float]:
        """Return how much less the loss is than another's, and its standard error."""
        return mean_with_error(other.choice.losses - self.choice.losses, weight)


@dataclass(frozen=True)
class FoldLeftOut:
    """A fold's rows predicted by all other rows.

    `which`: of the rows held out; `latent` of shape (n, n_outputs): standardised; `variance` of
    shape (n,): of the function; `dual` of shape (n_landmarks, n_outputs): coefficients without
    these rows.
    """

    which: Index
    latent: FloatArray
    variance: FloatArray
    dual: FloatArray


@dataclass(frozen=True)
class LandmarkSolution:
    """Coefficients by all rows, and what the judging folds say of them.

    `ratio`: of the noise to the levels of groups beside them, ``None`` where these have none.
    """

    landmarks: Landmarks
    ridge: float
    width: float
    dual: FloatArray
    posterior: PosteriorOfSums
    left_out: tuple[FoldLeftOut, ...]
    ratio: float | None = None

    @classmethod
    def of_sums(
        cls,
        trial: Trial,
        total: NormalEquations,
        held_out: HeldFolds,
        share: Callable[[Index], RowBlock],
        n_late: int = 0,
    ) -> LandmarkSolution:
        """Solve the equations of all rows, and those without each fold that judges.

        `share`: returns what some of the rows held out have added to the sums; `n_late`: landmarks
        at the end that are of rows held out, which these are predicted without.
        """
        landmarks, ridge = trial.landmarks, trial.choice.ridge
        ridge, all_dual, factor = total.solved(ridge)
        parts, n_early = [], len(landmarks) - n_late
        early = landmarks.first(n_early, landmarks.dtype) if n_late else landmarks
        judged = total.first(n_early)
        for which, without in held_out.judging_folds():
            less = judged.with_block(early, share(without), -1.0)
            rest = less.solve(ridge)
            if rest is None:
                # rounding: what a little more noise hides
                continue
            rows = held_out.rows.take(which)
            latent = early.products(rows.numeric, rows.codes, rest[0])
            left = PosteriorOfSums.of(early, ridge, less, rest[1])
            variance = latent_variance(early, left, rows.numeric, rows.codes)
            # of new groups nothing is known
            variance += 0.0 if trial.ratio is None else ridge / trial.ratio
            dual = np.vstack([rest[0], np.zeros((n_late, rest[0].shape[1]))])
            parts.append(FoldLeftOut(which, latent, variance, dual))
        posterior = PosteriorOfSums.of(landmarks, ridge, total, factor)
        return cls(
            landmarks, ridge, trial.choice.width, all_dual, posterior, tuple(parts), trial.ratio
        )

    @property
    def judged(self) -> Index:
        """Which of the rows held out judged, in the order of the predictor's."""
        return np.concatenate([np.empty(0, dtype=np.intp), *(p.which for p in self.left_out)])

    def predictor(self, held_out: HeldFolds, targets: Standardised) -> LandmarkPredictor:
        """Return the predictor, its spread set by the rows that judge."""
        which, n_outputs = self.judged, self.dual.shape[1]
        rows = held_out.rows.take(which)
        latent = np.vstack([np.empty((0, n_outputs)), *(part.latent for part in self.left_out)])
        variance = self.ridge + np.concatenate([[], *(part.variance for part in self.left_out)])
        predicted = targets.moments(latent, self.width)[0]
        residuals = targets.of_rows(rows).values.T - latent
        share = rows.mass / max(rows.mass.sum(), np.finfo(np.float64).tiny)
        squares = residuals**2 / variance[:, None]
        inflation = np.maximum(share @ squares, np.finfo(np.float64).tiny)
        if not len(which):
            inflation = np.ones(n_outputs)
        deviation = targets.moments(latent, np.sqrt(variance[:, None] * inflation))[1]
        fold = np.repeat(np.arange(len(self.left_out)), [len(p.which) for p in self.left_out])
        # of the training targets the way back and their range are all that is asked for
        ends = np.column_stack([targets.values.min(axis=1), targets.values.max(axis=1)])
        units = replace(targets, values=ends)
        return LandmarkPredictor(
            self.landmarks, self.ridge, self.dual, self.posterior, units, self.width, inflation,
            (rows.targets.T - predicted) / deviation, rows, predicted, fold,
            tuple(part.dual for part in self.left_out),
        )  # fmt: skip


class LandmarksLeaveOut:
    """Rows left out in closed form of a solution by landmarks.

    They leave the sums with the landmarks Z among them, as new rows are none: with features φ,
    A = ΦᵀWΦ + ρKₘₘ, units e of β and residuals r, they are −W⁻¹v of

        [ φA⁻¹φᵀ − W⁻¹   φA⁻¹e ] [v]   [   r ]
        [ eᵀA⁻¹φᵀ        eᵀA⁻¹e ] [u] = [−β_Z ]

    (the equations less the rows g, with β_Z = 0; Woodbury's identity). Where groups have levels, φ
    is less s/(n + κ) of the row's group and rows of one group have 1/(n + κ) more: `GroupLevels`.

    The mean that targets are centred by is that of the others, for which targets that are all one
    are left out too. Their β is A⁻¹Φᵀ1 (less what levels take), and only its products are needed.

    `rows`: of the table; `places` of shape (n,): where they stand in it; `at` of shape (n,): which
    landmark each row is, −1 of none.
    """

    def __init__(
        self,
        solution: LandmarkSolution,
        targets: Standardised,
        rows: Rows,
        places: Index,
        at: Index,
        levels: GroupLevels | None = None,
    ) -> None:
        self.solution, self.targets, self.levels = solution, targets, levels
        self.rows, self.places, self.at = rows, places, at
        self.dual, self.width = solution.dual, solution.width
        self.values = targets.of_rows(rows).values.T
        # columns and right sides of rows, and behind them of landmarks, that were ever asked for;
        # and the products of those that were asked for together
        self._column = np.full(len(rows) + len(self.dual), -1, dtype=np.intp)
        self._halves = np.empty((len(self.dual), 0))
        self._right = np.empty((0, self.dual.shape[1] + 1))
        self._among, self._inner = np.full_like(self._column, -1), np.empty((0, 0))

    def ask(self, rows: Index) -> None:
        """Work out what leaving any of some rows out takes: far faster than a few at a time."""
        units = np.unique(self.at[rows])
        which = len(self.rows) + units[units >= 0]
        self._multiply(np.concatenate([rows, which]))

    def residuals(self, rows: Index) -> FloatArray:
        """Return residuals of rows predicted from all others, shape (n_rows, n_outputs)."""
        return centred_by_others(self._residuals(rows), self.values, self.rows.precision, rows)

    def _residuals(self, rows: Index) -> FloatArray:
        """Return residuals of the standardised targets and, last, of targets that are all one."""
        units = np.unique(self.at[rows])
        units = units[units >= 0]
        inner, right = self._equations(np.concatenate([rows, len(self.rows) + units]))
        mass = self.rows.precision[rows]
        inner[np.arange(len(rows)), np.arange(len(rows))] -= 1.0 / mass
        # a landmark that no row needs has 1e-15 where rows have 1
        scale = 1.0 / np.sqrt(np.abs(inner).max(axis=1, keepdims=True))
        inner, right = scale * inner * scale.T, scale * right
        moved = scale * solve(inner, right, assume_a="sym", check_finite=False)
        return np.asarray(-moved[: len(rows)] / mass[:, None])

    def alone(self, rows: Index) -> tuple[FloatArray, FloatArray]:
        """Return residuals and variances of rows, each predicted from all others.

        Returns: residuals of shape (n_rows, n_outputs), and of shape (n_rows,) the variances that
        the function had where all but the row were learned from.
        """
        self.ask(rows)
        residuals = np.vstack([self.residuals(rows[[k]]) for k in range(len(rows))])
        subset, ridge = self.rows.take(rows), self.solution.ridge
        # 1 − h, h what a row weighs in its own prediction
        inner, _ = self._equations(rows)
        open_ = 1.0 - subset.precision * np.diag(inner)
        landmarks, posterior = self.solution.landmarks, self.solution.posterior
        halves = posterior.halves(landmarks.features(subset.numeric, subset.codes))
        in_span = ridge * np.einsum("ij,ij->j", halves, halves, dtype=np.float64)
        rest = latent_variance(landmarks, posterior, subset.numeric, subset.codes) - in_span
        return residuals, rest + ridge / subset.precision * (1.0 / open_ - 1.0)

    def _equations(self, which: Index) -> tuple[FloatArray, FloatArray]:
        """Return the products of the columns of rows and landmarks, and their right sides."""
        if (self._among[which] < 0).any():
            self._multiply(which)
        at = self._among[which]
        inner = self._inner[np.ix_(at, at)]
        if self.levels is not None and self.rows.groups is not None:
            places = np.flatnonzero(which < len(self.rows))
            groups = self.rows.groups[which[places]]
            same = groups[:, None] == groups
            inner[np.ix_(places, places)] += same * self._open(self.rows.take(which[places]))
        return inner, self._right[self._column[which]]

    def _multiply(self, which: Index) -> None:
        """Work out the products of the columns of rows and landmarks."""
        new = np.unique(which[self._column[which] < 0])
        if len(new):
            features, right, ones = self._asked(new)
            halves = self.solution.posterior.halves(features)
            ones -= halves.T @ self._half_of_ones
            self._column[new] = len(self._right) + np.arange(len(new))
            self._halves = np.hstack([self._halves, halves])
            self._right = np.vstack([self._right, np.column_stack([right, ones])])
        half = self._halves[:, self._column[which]]
        self._among[:] = -1
        self._among[which] = np.arange(len(which))
        self._inner = half.T @ half

    @cached_property
    def _half_of_ones(self) -> FloatArray:
        """What `halves` makes of the right side of targets that are all one."""
        rows, everything = self.rows, np.arange(len(self.rows))
        if self.levels is not None:
            rows = replace(rows, weight=rows.mass * self.levels.ratio * self._open(rows))
        side = group_features(self.solution.landmarks, rows, everything, 0 * everything)
        return np.asarray(self.solution.posterior.halves(side)[:, 0])

    def _open(self, rows: Rows) -> FloatArray:
        """Return 1/(n + κ) of the group of each row; of a row without a name n is its weight."""
        assert self.levels is not None
        names = self.levels.column.names(rows.numeric, rows.codes)
        return np.where(
            np.isnan(names), 1.0 / (rows.mass + self.levels.ratio), self.levels.open(names)
        )

    def _asked(self, which: Index) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return features and right sides of rows and, behind them, of landmarks.

        And targets that are all one, less their levels.
        """
        n, m = len(self.rows), len(self.dual)
        subset, units = self.rows.take(which[which < n]), which[which >= n] - n
        landmarks = self.solution.landmarks
        features = np.zeros((len(which), m))
        features[: len(subset)] = landmarks.features(subset.numeric, subset.codes)
        if self.levels is not None and self.rows.groups is not None and subset.groups is not None:
            groups, numbers = np.unique(subset.groups, return_inverse=True)
            members = np.flatnonzero(np.isin(self.rows.groups, groups))
            places = np.searchsorted(groups, self.rows.groups[members])
            sums = group_features(landmarks, self.rows, members, places)
            features[: len(subset)] -= sums[numbers.ravel()] * self._open(subset)[:, None]
        features[len(subset) + np.arange(len(units)), units] = 1.0
        latent = landmarks.products(subset.numeric, subset.codes, self.dual)
        if self.levels is not None:
            latent += self.levels.values(subset.numeric, subset.codes)
        rest, ones = self.values[which[which < n]] - latent, np.zeros(len(which))
        ones[: len(subset)] = 1.0 if self.levels is None else self.levels.ratio * self._open(subset)
        if self.levels is not None:
            # a row without a name has told its own level
            names = self.levels.column.names(subset.numeric, subset.codes)
            rest -= np.where(np.isnan(names), subset.mass * self._open(subset), 0.0)[:, None] * rest
        sides = np.vstack([rest, self.dual[units] * -1.0])
        return features, sides, ones
