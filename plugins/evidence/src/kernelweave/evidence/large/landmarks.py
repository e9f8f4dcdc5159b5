"""The predictor of a table of any length: landmarks, a ridge, and rows held out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from ..intervals import conformal
from ..mixture import Expansion
from ..panels import KNOWN_NOW, NEW_NOW, kinds_of_rows
from .panel import KindScores
from .posterior import PosteriorOfSums, latent_variance

if TYPE_CHECKING:
    from ..explaining.importance import FoldPredictor
    from ..noise import VaryingNoise
    from ..rows import Rows, Standardised
    from ..terms import Scales
    from ..views import Views
    from .features import Landmarks
    from .kept import KeptRows
    from .levels import GroupLevels

# points of a distribution at most
_MEMBERS = 2000


@dataclass(frozen=True)
class LandmarkPredictor:
    """A regression function of landmark features, and its residuals on rows held out.

    - `ridge`: ρ of (KₓₘᵀWKₓₘ + ρKₘₘ)β = KₓₘᵀWY
    - `dual` of shape (n_landmarks, n_outputs): β, for standardised targets
    - `posterior`: the variance that the rows leave
    - `targets`: centre, spread and cut of all training targets, and their warp
    - `width`: deviation of a warped target around its prediction; 0 where there is no warp
    - `inflation` of shape (n_outputs,): what the posterior variance is multiplied by, so that
      held-out residuals have variance one in its units
    - `scores` of shape (n_judging, n_outputs): residual/deviation of rows by all others
    - `rows`: training rows, or only those that judge where the others were not kept
    - `held_out` of shape (n_rows, n_outputs): predictions of rows that judge, by equations without
      their fold and their copies; NaN for the others
    - `fold` of shape (n_rows,): which of these folds a row is in, -1 for the others
    - `duals`: β without each fold
    - `varying_noise`: how noise varies, where it does; its rows are those that judge
    - `of_kinds`: of each of the four kinds of rows, of known groups and new, now and later, how far
      they lie from their predictions; empty where there are no groups
    - `levels`: of groups, beside the landmarks; ``None`` where there are none
    - `group_counts`: of each term that groups have the names of these, shape (n_groups,), and how
      many rows each has; empty where rows are not in memory
    - `kept`: what lets rows come and go; ``None`` where the fit was cut short
    - `fold_levels`: without each fold; empty where these hold out whole groups
    """

    landmarks: Landmarks
    ridge: float
    dual: FloatArray
    posterior: PosteriorOfSums
    targets: Standardised
    width: float
    inflation: FloatArray
    scores: FloatArray
    rows: Rows
    held_out: FloatArray
    fold: Index
    duals: tuple[FloatArray, ...]
    varying_noise: VaryingNoise | None = None
    of_kinds: tuple[KindScores, ...] = ()
    levels: GroupLevels | None = None
    group_counts: tuple[tuple[FloatArray, Index], ...] = ()
    kept: KeptRows | None = field(default=None, kw_only=True)
    fold_levels: tuple[GroupLevels | None, ...] = field(default=(), kw_only=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        known, size = state.pop("known_scores", None), state.pop("known_size", None)
        vars(self).update(state)
        if known is not None:
            # a file of before there were four kinds
            first = KindScores(known, size, KNOWN_NOW, 0)
            new = KindScores(self.own_scores, np.ones_like(size), NEW_NOW, 0)
            vars(self)["of_kinds"] = first, new, first, new

    @property
    def views(self) -> Views:
        """Views of the training rows."""
        return self.landmarks.views

    @property
    def scales(self) -> tuple[Scales, ...]:
        """Of the kernel, a weighted sum; the first has the weight of the groups' levels."""
        scales = self.landmarks.scales
        if self.levels is None:
            return scales
        weights = np.zeros(len(scales))
        weights[0] = self.ridge / self.levels.ratio
        pairs = zip(scales, weights.tolist(), strict=True)
        return tuple(each.with_levels(weight) for each, weight in pairs)

    @property
    def noise(self) -> float:
        """σ², in units of the targets' variance: the ridge."""
        return self.ridge

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the posterior mean, shape (n, n_outputs)."""
        return self.targets.moments(self._latent(numeric, codes), self.width)[0]

    def _latent(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return standardised predictions, shape (n, n_outputs)."""
        out = self.landmarks.products(numeric, codes, self.dual)
        return out if self.levels is None else out + self.levels.values(numeric, codes)

    def residuals(self, rows: Rows) -> FloatArray:
        """Return standardised targets less their predictions, shape (n, n_outputs)."""
        truth = self.targets.of_rows(rows).values.T
        return np.asarray(truth - self._latent(rows.numeric, rows.codes))

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, n_outputs)."""
        latent = latent_variance(self.landmarks, self.posterior, numeric, codes)
        if self.levels is not None:
            # as if the function and the levels were not known to make up for each other
            latent += self.levels.variance(self.levels.column.names(numeric, codes))
        width = self._width(latent)
        if self.of_kinds:
            width *= np.array([each.size for each in self.of_kinds])[self.kinds_of(numeric, codes)]
        value = self._latent(numeric, codes) if self.targets.warps else width
        out = self._in_units(value, width)
        return out if self.varying_noise is None else out * self.varying_noise(numeric, codes)

    def _width(self, variance: FloatArray) -> FloatArray:
        """Return deviations of standardised observations, `variance` the function's."""
        return np.asarray(np.sqrt(variance + self.ridge)[:, None] * np.sqrt(self.inflation))

    def _in_units(self, value: FloatArray, width: FloatArray) -> FloatArray:
        """Return deviations of targets around standardised values."""
        if self.targets.warps:
            return self.targets.moments(value, width)[1]
        return np.asarray(width * self.targets.spread)

    def fold_predictors(self) -> list[FoldPredictor]:
        """Return the rows of each fold that judges, and predictions of any row without it."""

        def predict(k: int, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
            latent = self.landmarks.products(numeric, codes, self.duals[k])
            if (levels := self._levels(k)) is not None:
                latent += levels.values(numeric, codes)
            return self.targets.moments(latent, self.width)[0]

        return [
            (np.flatnonzero(self.fold == k), partial(predict, k)) for k in range(len(self.duals))
        ]

    def _levels(self, fold: int | None) -> GroupLevels | None:
        """Return the levels of groups by all rows, or without a fold."""
        if fold is None:
            return self.levels
        return self.fold_levels[fold] if self.fold_levels else None

    def fold_scores(self) -> list[FloatArray]:
        """Return residuals of the rows of each fold that judges, in their deviations."""
        ends = np.cumsum(np.bincount(self.fold[self.fold >= 0]))
        return np.split(self.scores, ends[:-1])

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the regression function, without a fold if asked, as a sum of kernel values."""
        dual = self.dual if fold is None else self.duals[fold]
        return Expansion(
            self.views, self.landmarks.points, self.landmarks.scales, dual, self.targets,
            self.width, self.posterior.explained, self.inflation,
            self._levels(fold),
        )  # fmt: skip

    def learned_from(self, fold: int | None) -> Rows:
        """Return the rows that the predictor without a fold has seen, as far as they were kept."""
        return self.rows if fold is None else self.rows.take(np.flatnonzero(self.fold != fold))

    def among(self, rows: Rows, at: Index) -> Self:
        """Return the predictor with other rows beside those that judge, which are at these places.

        `at` of shape (n_judging,).
        """
        held_out = np.full((len(rows), self.held_out.shape[1]), np.nan)
        fold = np.full(len(rows), -1, dtype=np.intp)
        held_out[at], fold[at] = self.held_out, self.fold
        return replace(self, rows=rows, held_out=held_out, fold=fold)

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return both ends of split conformal intervals, shape (2, n, n_outputs).

        The half width is the quantile of the held-out residuals in units of their deviations, so
        that at least ``confidence`` of new observations lie inside; infinite where the rows held
        out are too few for it.
        """
        centre, half_width = self.mean(numeric, codes), self.deviation(numeric, codes)
        for which, scores in self._scores_of(numeric, codes):
            half_width[which] *= conformal(np.abs(scores), confidence)
        return np.array([centre - half_width, centre + half_width])

    def _scores_of(
        self, numeric: FloatArray, codes: NDArray[np.int64]
    ) -> list[tuple[Index, FloatArray]]:
        """Return places of rows of each kind, with the scores for them."""
        if not self.of_kinds:
            return [(np.arange(len(numeric)), self.own_scores)]
        kinds = self.kinds_of(numeric, codes)
        return [
            (np.flatnonzero(kinds == kind), self.of_kinds[kind].scores)
            for kind in np.unique(kinds).tolist()
        ]

    def kinds_of(self, numeric: FloatArray, codes: NDArray[np.int64]) -> Index:
        """Return which of the four kinds of a panel new rows are, shape (n,)."""
        return kinds_of_rows(self.rows, numeric, codes, self.is_known(numeric, codes))

    def is_known(self, numeric: FloatArray, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows are of a group that was learned from, shape (n,)."""
        if self.views.group is None:
            return np.zeros(len(numeric), dtype=np.bool_)
        # without levels all rows are landmarks
        names = self.landmarks.points.G[0] if self.levels is None else self.levels.names
        return np.isin(self.views.group.names(numeric, codes), names)

    def scores_of(self, rows: Rows, latent: FloatArray, variance: FloatArray) -> FloatArray:
        """Return residuals of rows in their deviations, shape (n, n_outputs).

        `latent` of shape (n, n_outputs): standardised predictions without them; `variance` of shape
        (n,): of the function and the level there.
        """
        away = rows.targets.T - self.targets.moments(latent, self.width)[0]
        width = self._in_units(latent, self._width(variance))
        if self.varying_noise is not None:
            width *= self.varying_noise(rows.numeric, rows.codes)
        return np.asarray(away / width)

    @property
    def own_scores(self) -> FloatArray:
        """Scores in units of each row's own noise, shape (n_judging, n_outputs)."""
        return (
            self.scores if self.varying_noise is None else self.scores / self.varying_noise.held_out
        )

    def members(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return what targets would be with the scores of rows held out, as of `ExactPredictor`.

        Of more than 2,000 scores as many quantiles stand for them.
        """
        centre, width = self.mean(numeric, codes), self.deviation(numeric, codes)
        n = min(len(self.scores), _MEMBERS)
        out = np.empty((n, *centre.shape))
        for which, unsorted in self._scores_of(numeric, codes):
            scores = np.sort(unsorted, axis=0)
            if len(scores) != n:
                scores = np.quantile(scores, (np.arange(n) + 0.5) / n, axis=0)
            out[:, which] = centre[which] + scores[:, None, :] * width[which]
        return out
