"""Some landmarks tried out: the ridge that predicts the rows that choose best, and how well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from ..path import Loss
from ..rows import Rows, Standardised
from ..scores import mean_with_error
from .features import Landmarks
from .landmarks import LandmarkPredictor
from .levels import GroupLevels
from .panel import FunctionOfRows, Predicted, without_groups
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
    targets themselves; `loss`: what the ridge makes least, in place of squares.
    """

    latent: Callable[[float], FloatArray | None]
    choosing: Rows
    targets: Standardised
    units: FloatArray
    loss: Loss | None = None

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
        return Choice(float(loss), ridge, losses, width)


def _width(latent: FloatArray, choosing: Rows, targets: Standardised) -> float:
    """Return the deviation of warped targets around standardised predictions; 0 of others."""
    if not targets.warps:
        return 0.0
    rest = targets.of_rows(choosing).values.T - latent
    return float(np.sqrt(np.average(np.mean(rest**2, axis=1), weights=choosing.precision)))


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

    - `which`: of the rows held out
    - `latent` of shape (n, n_outputs): standardised
    - `variance` of shape (n,): of the function and the levels
    - `dual` of shape (n_landmarks, n_outputs): coefficients without these rows
    - `places` of shape (n,): of these rows among all; empty where nobody will ask
    - `levels`: of groups that have other rows, ``None`` where none has
    - `known` of shape (n_known,): which of these rows are of groups that have other rows
    - `new`: some of these rows predicted as of new groups: without the fold and without the other
      rows of their groups
    """

    which: Index
    latent: FloatArray
    variance: FloatArray
    dual: FloatArray
    places: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    levels: GroupLevels | None = None
    known: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    new: Predicted | None = None


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
            block = share(without)
            less = judged.with_block(early, block, -1.0)
            rest = less.solve(ridge)
            if rest is None:
                # rounding: what a little more noise hides
                continue
            left = PosteriorOfSums.of(early, ridge, less, rest[1])
            found = _fold_left_out(left, rest[0], block, held_out, which)
            dual = np.vstack([rest[0], np.zeros((n_late, rest[0].shape[1]))])
            parts.append(replace(found, dual=dual))
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
            fold_levels=tuple(part.levels for part in self.left_out),
        )  # fmt: skip


def _fold_left_out(
    posterior: PosteriorOfSums, dual: FloatArray, block: RowBlock, held_out: HeldFolds, which: Index
) -> FoldLeftOut:
    """Return the rows that a fold judges, predicted without what it leaves out.

    `posterior`, `dual`: of the others; `block`: what is left out, with the other rows of its groups
    where these have levels.
    """
    landmarks, ridge, ratio = posterior.landmarks, posterior.ridge, block.ratio
    rows, others = held_out.rows.take(which), block.rest
    latent = landmarks.products(rows.numeric, rows.codes, dual)
    variance = latent_variance(landmarks, posterior, rows.numeric, rows.codes)
    found = FoldLeftOut(which, latent, variance, dual, held_out.places[which])
    known = np.empty(0, dtype=np.intp)
    if others is not None and rows.groups is not None and others.rows.groups is not None:
        known = np.flatnonzero(np.isin(rows.groups, others.rows.groups))
    if others is None or not len(known):
        # of new groups nothing is known
        return found if ratio is None else replace(found, variance=variance + ridge / ratio)
    values = others.cross / others.mass[:, None]

    def residuals(known: Rows) -> FloatArray:
        return np.asarray(values - landmarks.products(known.numeric, known.codes, dual))

    new = without_groups(FunctionOfRows(posterior, dual, ratio, others.rows, values), rows)
    found = replace(found, known=known, new=new)
    if ratio is None:
        return found
    levels = GroupLevels.of(others.rows, residuals, ratio, ridge)
    names = levels.column.names(rows.numeric, rows.codes)
    return replace(
        found, latent=latent + levels.at(names), variance=variance + levels.variance(names),
        levels=levels, known=levels.has(names),
    )  # fmt: skip
