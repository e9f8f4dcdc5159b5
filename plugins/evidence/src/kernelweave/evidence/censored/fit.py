"""From a metric of targets known by half to what predicts: a likelihood on the learned kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..cross import cross_kernel, gram_of, own_kernel
from ..exact import ExactPredictor
from ..mixture import explained_by, fit_mixture
from ..path import Fit
from ..rows import Rows, Standardised
from ..terms import JITTER, Stopped
from .likelihood import mode_of, normal_of, sites
from .residuals import ResidualDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..learn import Learned
    from ..terms import Scales
    from ..views import Views

# of the noise as the scales learned it of targets that were not yet known; at most 1 over it
_LEAST_SHARE = 0.05


def begun(rows: Rows) -> Rows:
    """Return rows whose targets, and the trust in them, are those of the likeliest normal.

    It knows no column: this is where the search for scales begins.
    """
    assert rows.ends is not None
    mean, spread = normal_of(rows.ends, rows.mass)
    found = sites(np.full(len(rows), mean), spread, rows.ends)
    return replace(rows, targets=found.targets[None], trust=found.trust[None])


@dataclass(frozen=True)
class CensoredPredictor(ExactPredictor):
    """A posterior mean of targets known by half, and how far rows held out were from theirs.

    It is the mean by a normal likelihood with the slope and curvature at the posterior mode, which
    is Laplace's approximation. `residuals`: of rows held out, in their deviations.
    """

    residuals: ResidualDistribution

    def deviation(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the standard deviation of a new observation, shape (n, 1)."""
        return super().deviation(numeric, codes) * self.residuals.scale

    def interval(
        self, numeric: FloatArray, codes: NDArray[np.int64], confidence: float
    ) -> FloatArray:
        """Return ends that leave as much on either side, shape (2, n, 1)."""
        members = self.members(numeric, codes)
        n = len(members)
        rank = int(np.floor(0.5 * (1.0 - confidence) * (n + 1) + 1e-9))
        if rank < 1:
            shape = members.shape[1:]
            return np.array([np.full(shape, -np.inf), np.full(shape, np.inf)])
        return members[[rank - 1, n - rank]]

    def members(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return quantiles of new targets, ascending, shape (n_quantiles, n, 1)."""
        points = self.views.points(numeric, codes)
        mixture = self.mixture
        width = np.sqrt(mixture.variance(points) + mixture.nugget)
        ends = mixture.latent(points)[:, 0] + self.residuals.quantiles[:, None] * width
        return mixture.target.restore(ends.reshape(-1, 1)).reshape(*ends.shape, 1)

    def fold_scores(self) -> list[FloatArray]:
        """Return nothing: a residual that is known by half is no score."""
        return []


def censored_predictor(learned: Learned) -> tuple[Learned, CensoredPredictor]:
    """Return the fit with targets, and a trust in them, at the posterior mode; and what predicts.

    Each fold finds the mode of its own training rows, so that rows held out are predicted by what
    has not seen them. They choose the share of the noise by their likelihood, and tell the
    distribution of the residuals.
    """
    rows, weights = learned.rows, learned.weights
    parts = [
        _Part.of(fold.views, fold.training, fold.scales(weights), rows.take(fold.held_out))
        for fold in learned.folds
    ]
    missing = learned.missing
    try:
        share, solved = _best_share(parts)
        everything = _Part.of(learned.mixture.views, rows, learned.mixture.scales, None)
        known = everything.solve(share).training
    except Stopped:
        # rows as the search for scales had them are worse, but what they say is true of them
        share, known = 1.0, rows
        solved = [each.at(each.training, 1.0) for each in parts]
        missing = ", ".join(filter(None, (missing, "the likelihood of targets known by half")))
    shift = _shifted(share)
    folds, held_out = [], np.full((len(rows), 1), np.nan)
    residuals = np.full((2, len(rows)), np.nan)
    for fold, part, found in zip(learned.folds, parts, solved, strict=True):
        fits = list(map(shift, fold.fits))
        folds.append(replace(fold, training=found.training, fits=fits, units=part.units))
        held_out[fold.held_out] = part.units.restore(found.latent[:, None])
        residuals[:, fold.held_out] = (part.ends_held_out - found.latent) / found.width
    scales = tuple(replace(each, noise=each.noise * share) for each in learned.mixture.scales)
    mixture = fit_mixture(learned.mixture.views, known, scales, learned.mixture.target)
    seen = np.flatnonzero(~np.isnan(held_out[:, 0]))
    told = (
        ResidualDistribution.of(residuals[:, seen], rows.mass[seen])
        if len(seen)
        else ResidualDistribution.normal()
    )
    learned = replace(
        learned, mixture=mixture, fits=list(map(shift, learned.fits)), folds=folds,
        held_out=held_out, rows=known, left_out=(), missing=missing,
    )  # fmt: skip
    given = (mixture, folds, weights, known, held_out)
    return learned, CensoredPredictor(*given, told)


class _Solved(NamedTuple):
    """Training rows at the mode, and what they say of rows held out.

    `latent`, `width` of shape (n_held_out,): standardised, the noise included;
    `log_likelihood`: of the rows held out.
    """

    training: Rows
    latent: FloatArray
    width: FloatArray
    log_likelihood: float


class _Part(NamedTuple):
    """Training rows with the kernels that a mode takes, in units of their targets.

    `gram` of shape (n, n); `cross` of shape (n_held_out, n); `own` of shape (n_held_out,): the
    prior variance there; `noise`: variance; `ends`, `ends_held_out` of shape (2, n): standardised;
    `mass_held_out`: weights.
    """

    training: Rows
    units: Standardised
    gram: FloatArray
    cross: FloatArray
    own: FloatArray
    noise: float
    ends: FloatArray
    ends_held_out: FloatArray
    mass_held_out: FloatArray

    @classmethod
    def of(
        cls, views: Views, training: Rows, scales: Sequence[Scales], held_out: Rows | None
    ) -> _Part:
        """Work out the kernels; `held_out`: ``None`` where no row is."""
        units = Standardised.of(training)
        points = views.points(training.numeric, training.codes)
        gram = gram_of(points, scales, views.match_weight)
        gram[np.diag_indices_from(gram)] += JITTER
        noise = sum(each.noise for each in scales)
        assert training.ends is not None
        ends = units.standardise(training.ends.reshape(-1, 1)).reshape(2, -1)
        none = np.empty(0)
        if held_out is None:
            return cls(training, units, gram, np.empty((0, len(gram))), none, noise, ends,
                       np.empty((2, 0)), none)  # fmt: skip
        assert held_out.ends is not None
        others = views.points(held_out.numeric, held_out.codes)
        cross = cross_kernel(others, points, scales, views.match_weight)
        own = np.asarray(sum(own_kernel(others, each, views.match_weight) for each in scales))
        beyond = units.standardise(held_out.ends.reshape(-1, 1)).reshape(2, -1)
        return cls(training, units, gram, cross, own, noise, ends, beyond, held_out.mass)

    def solve(self, share: float) -> _Solved:
        """Return the mode under a share of the noise. Raises Stopped where time is up."""
        found = mode_of(self.gram, share * self.noise, self.ends, self.training.mass)
        targets = self.units.restore(found.targets[:, None]).T
        return self.at(replace(self.training, targets=targets, trust=found.trust[None]), share)

    def at(self, training: Rows, share: float) -> _Solved:
        """Return what training rows with given targets and trust say of the rows held out."""
        noise = share * self.noise
        S = self.gram.copy()
        S[np.diag_indices_from(S)] += noise / training.precision
        factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        values = self.units.of_rows(training).values[0]
        latent = self.cross @ cho_solve(factor, values, check_finite=False)
        variance = np.maximum(self.own - explained_by(factor[0], self.cross), 0.0)
        width = np.sqrt(variance + noise + JITTER)
        told = sites(latent, width, self.ends_held_out).log_likelihood
        return _Solved(training, latent, width, float(self.mass_held_out @ told))


def _best_share(parts: Sequence[_Part]) -> tuple[float, list[_Solved]]:
    """Return the share of the noise that makes rows held out likeliest, and the folds under it.

    Smaller ones are tried as long as they are better, and larger ones where none was.
    """
    found: dict[float, list[_Solved]] = {}

    def value(share: float) -> float:
        found[share] = [part.solve(share) for part in parts]
        return sum(each.log_likelihood for each in found[share])

    best, most = 1.0, value(1.0)
    for step in (0.5, 2.0) if parts else ():
        share = step
        while _LEAST_SHARE <= share <= 1.0 / _LEAST_SHARE and (other := value(share)) > most:
            best, most = share, other
            share *= step
        if best != 1.0:
            break
    return best, found[best]


def _shifted(share: float) -> Callable[[Fit], Fit]:
    """Return what gives a fit a share of its noise."""

    def shift(fit: Fit) -> Fit:
        return replace(fit, theta=np.append(fit.theta[:-1], fit.theta[-1] + np.log(share)))

    return shift
