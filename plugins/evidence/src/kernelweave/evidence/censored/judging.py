"""Predicted distributions of targets known by half, and how right those of held-out rows were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from .measures import Curve, calibration_p, integrated_brier, observed_curve, strata_of
from .residuals import ResidualDistribution

if TYPE_CHECKING:
    from ..large.censored import CensoredLandmarks
    from .fit import CensoredPredictor

# parts of the folds, each judged with the residuals of the others
_PARTS = 5


@dataclass(frozen=True)
class Distributions:
    """Distributions of the targets of some rows, on the scale that is learned.

    A target is `centre` plus `deviation` times a residual.

    - `centre`, `deviation` of shape (n,)
    - `posterior` of shape (n,): standard deviation of the centre, given the training rows
    - `residuals`: quantiles, at levels k/(n_quantiles + 1); `which` of shape (n,): each row's
    """

    centre: FloatArray
    deviation: FloatArray
    posterior: FloatArray
    residuals: tuple[FloatArray, ...]
    which: Index

    def survival(self, points: FloatArray, shift: float = 0.0) -> FloatArray:
        """Return the probability of more than each point, shape (n, n_points).

        `shift`: posterior deviations that centres are moved by.
        """
        steps = points - (self.centre + shift * self.posterior)[:, None]
        less, equal, n = self._counts(steps / self.deviation[:, None])
        # as a new observation is one of n + 1 alike, see `PredictiveDistribution.cdf`
        at_most = (less + 0.5 * (equal + 1)) / (n + 1)[:, None]
        at_most = np.where(np.isfinite(points), at_most, np.clip(points, 0.0, 1.0))
        return np.asarray(1.0 - at_most)

    def between(self, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return between which probabilities each target lies, low < high, both of shape (n,).

        A known target has the width of one observation, or of all residuals that it is equal to.

        `ends` of shape (2, n).
        """
        z = ((ends - self.centre) / self.deviation).T
        less, equal, n = self._counts(z)
        below, above = less, less + equal + 1
        known = z[:, 0] == z[:, 1]
        middle = np.where(np.isfinite(z), 0.5 * (below + above), (z > 0.0) * (n + 1)[:, None])
        low = np.where(known, below[:, 0], middle[:, 0])
        high = np.where(known, above[:, 1], middle[:, 1])
        # where no residual is within the ends, they are as wide as one observation
        narrow = np.maximum(0.5 * (1.0 - (high - low)), 0.0)
        low, high = np.maximum(low - narrow, 0.0), np.minimum(high + narrow, n + 1)
        return low / (n + 1), high / (n + 1)

    def take(self, rows: Index | slice) -> Distributions:
        """Return those of some rows."""
        return Distributions(
            self.centre[rows], self.deviation[rows], self.posterior[rows], self.residuals,
            self.which[rows],
        )  # fmt: skip

    def _counts(
        self, z: FloatArray
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return how many residuals are less than and equal to z, shape (n, k), and all, (n,)."""
        less, equal = np.zeros(z.shape, np.int64), np.zeros(z.shape, np.int64)
        sizes = np.array([len(each) for each in self.residuals], dtype=np.int64)
        for k, quantiles in enumerate(self.residuals):
            own = self.which == k
            less[own] = np.searchsorted(quantiles, z[own], side="left")
            equal[own] = np.searchsorted(quantiles, z[own], side="right") - less[own]
        return less, equal, sizes[self.which]


class JudgedTargets(NamedTuple):
    """Rows with known targets, and the distributions that were predicted of them.

    - `rows` of shape (n,): of rows that folds held out, places among those of training
    - `ends` of shape (2, n), `mass` of shape (n,): their targets and weights
    - `parts` of shape (n,): groups of rows, or each row alone
    - `told`: their distributions
    - `n_residuals`: of rows that the fit did not see, see `measures.calibration_p`
    """

    rows: Index
    ends: FloatArray
    mass: FloatArray
    parts: Index
    told: Distributions
    n_residuals: float | None = None


class Measures(NamedTuple):
    """How right predicted distributions were; NaN where that cannot be told.

    - `brier`: integrated Brier score; `brier_one_curve`: that of Kaplan and Meier's curve for
      all rows
    - `calibration_p`: see `measures.calibration_p`
    """

    brier: float
    brier_one_curve: float
    calibration_p: float


class Stratum(NamedTuple):
    """The mean predicted survival function of some rows, and theirs without a model.

    `points` of shape (n_points,) and `predicted` of shape (n_points,); `observed`: as steps. Places
    are in units of the targets.
    """

    n_rows: int
    points: FloatArray
    predicted: FloatArray
    observed: Curve


def distributions_of(
    predictor: CensoredPredictor | CensoredLandmarks, numeric: FloatArray, codes: NDArray[np.int64]
) -> Distributions:
    """Return the distributions that a predictor gives new rows."""
    centre, posterior, deviation = predictor.moments(numeric, codes)
    quantiles, which = (predictor.distribution.quantiles,), np.zeros(len(centre), dtype=np.intp)
    return Distributions(centre, deviation, posterior, quantiles, which)


def held_out_targets(predictor: CensoredPredictor | CensoredLandmarks) -> JudgedTargets | None:
    """Return the rows that folds held out; ``None`` where there are fewer than two folds.

    The residuals that give a row's distribution its shape are those of other folds, or of other
    fifths of the folds where these are many: with its own among them, it would be judged by what it
    has told.
    """
    fold, rows = predictor.fold, predictor.rows
    seen = _held_out_rows(predictor)
    which = np.unique(fold[seen] % _PARTS, return_inverse=True)[1].ravel()
    if len(seen) == 0 or which.max() == 0:
        return None
    assert rows.ends is not None
    ends, mass = rows.ends[:, seen], rows.mass[seen]
    centre = predictor.held_out[seen, 0]
    posterior, deviation = predictor.held_out_spread[:, seen]
    residuals = (ends - centre) / deviation
    others = [which != k for k in range(which.max() + 1)]
    quantiles = tuple(
        ResidualDistribution.of(residuals[:, other], mass[other]).quantiles for other in others
    )
    told = Distributions(centre, deviation, posterior, quantiles, which)
    parts = np.arange(len(seen)) if rows.groups is None else rows.groups[seen]
    return JudgedTargets(seen, ends, mass, parts, told)


def new_targets(
    predictor: CensoredPredictor | CensoredLandmarks,
    numeric: FloatArray,
    codes: NDArray[np.int64],
    ends: FloatArray,
) -> JudgedTargets:
    """Return rows that the fit did not see, with the distributions that are predicted of them.

    `ends` of shape (2, n): their targets, on the scale that is learned.
    """
    told, n = distributions_of(predictor, numeric, codes), ends.shape[1]
    n_residuals = _n_residuals(predictor)
    return JudgedTargets(np.arange(n), ends, np.ones(n), np.arange(n), told, n_residuals)


def _n_residuals(predictor: CensoredPredictor | CensoredLandmarks) -> float:
    """Return how many known targets tell as much of the residuals as the rows held out do.

    Only these rows have residuals: with an order the first rows have none.
    """
    rows = predictor.rows.take(_held_out_rows(predictor))
    # a target that is known by half tells its share, and equal weights are no more rows
    return float(rows.mass.sum() * rows.precision.sum() / (rows.mass @ rows.mass))


def _held_out_rows(predictor: CensoredPredictor | CensoredLandmarks) -> Index:
    """Return the places of the rows that a fold held out, among those of training."""
    return np.flatnonzero((predictor.fold >= 0) & ~np.isnan(predictor.held_out[:, 0]))


def measures_of(judged: JudgedTargets | None, *, log: bool) -> Measures:
    """Return how right the distributions of some rows are; `log`: whether ends are logarithms."""
    if judged is None:
        return Measures(np.nan, np.nan, np.nan)
    told, ends, mass = judged.told, judged.ends, judged.mass
    brier = integrated_brier(ends, mass, told.survival, log=log)
    p = calibration_p(
        *told.between(ends), strata_of(told.centre), mass, judged.parts,
        n_residuals=judged.n_residuals,
    )  # fmt: skip
    return Measures(*brier, p)


def curves_of_strata(
    told: Distributions,
    ends: FloatArray,
    mass: FloatArray,
    n_strata: int,
    *,
    log: bool,
    times: bool,
) -> list[Stratum]:
    """Return predicted and observed survival functions of rows, those predicted lowest first.

    `ends` of shape (2, n); `mass` of shape (n,): weights; `log`: whether ends are logarithms;
    `times`: whether they are times up to an event.

    Raises ValueError where no row has a finite end.
    """
    if not np.isfinite(ends).any():
        what = "ended at time 0 without an event" if times else "has no finite limit"
        raise ValueError(
            f"each of the {ends.shape[1]} rows {what}, which says nothing of its target: give rows "
            "with other targets"
        )
    if times:
        # an event at time 0 is known to be before the first other time, and is shown there; what
        # is censored at 0 is known of no time
        at_zero = np.isneginf(ends[0]) & np.isfinite(ends[1])
        ends = np.array([np.where(at_zero, ends[1], ends[0]), ends[1]])
    strata = strata_of(told.centre, n_strata)
    places = points_between(ends, log=log)
    points = to_learned(places, log=log)
    out = []
    for k in range(int(strata.max()) + 1):
        own = np.flatnonzero(strata == k)
        curve = observed_curve(ends[:, own], mass[own])
        if log:
            curve = curve._replace(places=np.exp(curve.places))
        predicted = mass[own] @ told.take(own).survival(points) / mass[own].sum()
        out.append(Stratum(len(own), places, predicted, curve))
    return out


def points_between(ends: FloatArray, *, log: bool, n_points: int = 200) -> FloatArray:
    """Return points to draw a survival function at, up to the last finite end of targets.

    From 0 where ends are logarithms, else from the first of them.
    """
    finite = ends[np.isfinite(ends)]
    begin, end = (0.0, np.exp(finite.max())) if log else (finite.min(), finite.max())
    return np.linspace(begin, end, n_points)


def to_learned(points: FloatArray, *, log: bool) -> FloatArray:
    """Return points on the scale that is learned: −∞ for what is not positive, of logarithms."""
    if not log:
        return points
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(points, 0.0))
