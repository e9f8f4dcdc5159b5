"""From a metric of targets known by half to what predicts: a likelihood on the learned kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..cross import cross_kernel, gram_of, own_kernel
from ..exact import ExactPredictor
from ..mixture import Expansion, explained_by, fit_mixture
from ..path import Fit
from ..rows import Rows, Standardised
from ..terms import JITTER, Stopped
from .likelihood import Sites, mode_of, normal_of, sites
from .predicting import ByResiduals
from .residuals import ResidualDistribution

if TYPE_CHECKING:
    from ..folds import Fold
    from ..learn import Learned
    from ..terms import Scales
    from ..views import Views

# of the noise as the scales learned it of targets that were not yet known; at most 1 over it
LEAST_SHARE = 0.05
# folds that choose it, at most
_JUDGES = 3
# rows of a mode that time is not left for
_SOME = 1000


def begun(rows: Rows) -> Rows:
    """Return rows whose targets, and the trust in them, are those of the likeliest normal.

    It knows no column: this is where the search for scales begins.
    """
    assert rows.ends is not None
    mean, spread = normal_of(rows.ends, rows.mass)
    found = sites(np.full(len(rows), mean), spread, rows.ends)
    return replace(rows, targets=found.targets[None], information=found.trust)


@dataclass(frozen=True)
class CensoredPredictor(ByResiduals, ExactPredictor):
    """A posterior mean of targets known by half, and how far rows held out were from theirs.

    It is the mean by a normal likelihood with the slope and curvature at the posterior mode, which
    is Laplace's approximation.

    `metric_units`: of the targets before they were moved to medians; without values.
    """

    metric_units: Standardised = field(kw_only=True)

    def expansion(self, fold: int | None = None) -> Expansion:
        """Return the posterior mean as a sum of kernel values, on the way to medians."""
        return self.to_medians(ExactPredictor.expansion(self, fold))

    def moments(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return centres, their deviations and those of new observations, as learned, (3, n)."""
        mixture, points = self.mixture, self.views.points(numeric, codes)
        variance, spread = mixture.variance(points), mixture.target.spread[0]
        centre = mixture.target.restore(mixture.latent(points))[:, 0]
        return np.array(
            [centre, np.sqrt(variance) * spread, np.sqrt(variance + mixture.nugget) * spread]
        )

    def again(self, plain: ExactPredictor) -> CensoredPredictor:
        """Return the posterior mean of other rows at their mode, and what is far from it.

        The noise is that of the scales, which have its share in them. On the fit's own rows this
        finds the fit's predictions to some 1e-10 of their spread, as searches begin elsewhere.

        `plain`: of which targets count by their ends alone.

        Raises Stopped where time is up.
        """
        views, rows, weights = plain.views, plain.rows, plain.weights
        found = CensoredPart.of(views, rows, plain.scales, None, self.metric_units).mode()
        solved = []
        for fold in plain.folds:
            held_out, scales = rows.take(fold.held_out), fold.scales(weights)
            units = fold.metric_units
            part = CensoredPart.of(fold.views, fold.training, scales, held_out, units)
            solved.append(part.mode())
        modes = _Modes(views, tuple(plain.scales), rows, found, plain.folds, solved)
        return modes.predictor(weights, log=self.log)


def censored_predictor(learned: Learned, *, log: bool) -> tuple[Learned, CensoredPredictor]:
    """Return the fit with targets, and a trust in them, at the posterior mode; and what predicts.

    Each fold finds the mode of its own training rows, so that rows held out are predicted by what
    has not seen them. They choose the share of the noise by their likelihood, and tell the
    distribution of the residuals. Where time is up before, modes are of 1,000 rows, and the noise
    is that of the scales.

    `log`: whether the targets are logarithms.
    """
    share, found, solved, missing = _solved(learned)
    folds = [
        replace(each, fits=[_shifted(fit, share) for fit in each.fits]) for each in learned.folds
    ]
    views = learned.mixture.views
    scales = tuple(replace(each, noise=each.noise * share) for each in learned.mixture.scales)
    predictor = _Modes(views, scales, learned.rows, found, folds, solved).predictor(
        learned.weights, log=log
    )
    learned = replace(
        learned, mixture=predictor.mixture, fits=[_shifted(fit, share) for fit in learned.fits],
        folds=predictor.folds, held_out=predictor.held_out, rows=predictor.rows, left_out=(),
        missing=", ".join(filter(None, (learned.missing, missing))),
    )  # fmt: skip
    return learned, predictor


def _solved(learned: Learned) -> tuple[float, _Solved, list[_Solved], str]:
    """Return the share of the noise, the modes of all rows and of the folds, and what is missing.

    The last, in words, is what the time limit left undone.
    """
    rows, mixture, folds = learned.rows, learned.mixture, learned.folds
    judges = range(0, len(folds), -(-len(folds) // _JUDGES) or 1)
    share, judged, found = 1.0, None, None
    if not clock.expired():
        share, judged = best_share([_part_of(learned, folds[k]) for k in judges])
    solved: list[_Solved] = []
    if judged is not None:
        found = CensoredPart.of(mixture.views, rows, mixture.scales, None).solve(share)
        known = dict(zip(judges, judged, strict=True))
        for k, fold in enumerate(folds if found is not None else ()):
            of_fold = known.get(k) or _part_of(learned, fold).solve(share)
            if of_fold is None:
                break
            solved.append(of_fold)
    if found is not None and len(solved) == len(folds):
        return share, found, solved, ""
    found = _by_some(mixture.views, rows, mixture.scales, None)
    solved = [
        _by_some(f.views, f.training, f.scales(learned.weights), rows.take(f.held_out))
        for f in folds
    ]
    what = "the noise of targets known by half"
    what += f", their likelihood beyond {_SOME} rows" if len(rows) > _SOME else ""
    return 1.0, found, solved, what


class _Modes(NamedTuple):
    """Rows with their ends, and the modes of all of them and of the folds.

    `scales` and those of `folds` have their share of the noise.
    """

    views: Views
    scales: tuple[Scales, ...]
    rows: Rows
    found: _Solved
    folds: Sequence[Fold]
    solved: Sequence[_Solved]

    def predictor(self, weights: FloatArray, *, log: bool) -> CensoredPredictor:
        """Return what predicts, moved to medians where residuals clearly have another."""
        rows, found = self.rows, self.found
        held_out, spread = np.full((len(rows), 1), np.nan), np.zeros((2, len(rows)))
        for fold, each in zip(self.folds, self.solved, strict=True):
            held_out[fold.held_out] = each.units.restore(each.latent[:, None])
            spread[:, fold.held_out] = each.deviations * each.units.spread
        offset, told = 0.0, ResidualDistribution.normal()
        if len(seen := np.flatnonzero(~np.isnan(held_out[:, 0]))):
            assert rows.ends is not None
            offset, told = ResidualDistribution.around_median(
                rows.ends[:, seen], held_out[seen, 0], spread[1, seen], rows.mass[seen]
            )
        kept = []
        for fold, each in zip(self.folds, self.solved, strict=True):
            bare = each.bare_units
            training, units = moved(each.training, bare, offset)
            kept.append(replace(fold, training=training, units=units, metric_units=bare))
        training, units = moved(found.training, found.bare_units, offset)
        mixture = fit_mixture(self.views, training, self.scales, units)
        return CensoredPredictor(
            mixture, kept, weights, training, held_out + offset, distribution=told,
            held_out_spread=spread, log=log, metric_units=found.bare_units,
        )  # fmt: skip


def moved(rows: Rows, units: Standardised, offset: float) -> tuple[Rows, Standardised]:
    """Return targets of a mode and their units, both moved: what is predicted moves with them."""
    return replace(rows, targets=rows.targets + offset), units.moved(offset)


def _part_of(learned: Learned, fold: Fold) -> CensoredPart:
    """Return the training rows of a fold with their kernels, and the rows that it held out."""
    held_out = learned.rows.take(fold.held_out)
    return CensoredPart.of(fold.views, fold.training, fold.scales(learned.weights), held_out)


def _by_some(
    views: Views, training: Rows, scales: Sequence[Scales], held_out: Rows | None
) -> _Solved:
    """Return training rows at the mode of some of them, which no time limit ends.

    The others have the targets that their likelihood makes of what these say of them, so that the
    next factorisation is a step of Newton's method for all.
    """
    units = Standardised.of(training)
    some = np.linspace(0, len(training) - 1, min(len(training), _SOME)).astype(np.intp)
    part = CensoredPart.of(views, training.take(some), scales, held_out, units)
    found = mode_of(part.gram, part.noise, part.ends, part.training.mass, is_limited=False)
    solved = part.at(found, 1.0)
    assert training.ends is not None
    ends = units.standardise(training.ends.reshape(-1, 1)).reshape(2, -1)
    every, own = (views.points(each.numeric, each.codes) for each in (training, part.training))
    latent = cross_kernel(every, own, scales, views.match_weight) @ solved.dual
    of_all = sites(latent, float(np.sqrt(part.noise)), ends)
    targets = units.restore(of_all.targets[:, None]).T
    return solved._replace(training=replace(training, targets=targets, information=of_all.trust))


class _Solved(NamedTuple):
    """Training rows at the mode, and what they say of rows held out.

    `units`: of the targets; `dual` of shape (n,): coefficients; `latent` of shape (n_held_out,):
    standardised; `deviations` of shape (2, n_held_out): without and with the noise; `told` of shape
    (n_held_out,): log likelihood of the rows held out, and `log_likelihood`, their weighted sum.
    """

    training: Rows
    units: Standardised
    dual: FloatArray
    latent: FloatArray
    deviations: FloatArray
    told: FloatArray
    log_likelihood: float

    @property
    def bare_units(self) -> Standardised:
        """The units without the values of the training rows."""
        return replace(self.units, values=np.empty((1, 0)))


class CensoredPart(NamedTuple):
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
        cls,
        views: Views,
        training: Rows,
        scales: Sequence[Scales],
        held_out: Rows | None,
        units: Standardised | None = None,
    ) -> CensoredPart:
        """Work out the kernels.

        `held_out`: ``None`` where no row is; `units`: of the targets, by default those of the
        training rows.
        """
        units = Standardised.of(training) if units is None else units
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

    def solve(self, share: float, near: _Solved | None = None) -> _Solved | None:
        """Return the mode under a share of the noise; ``None`` where time is up.

        `near`: the mode under another share, to begin at.
        """
        try:
            return self.mode(share, None if near is None else near.dual)
        except Stopped:
            return None

    def mode(self, share: float = 1.0, start: FloatArray | None = None) -> _Solved:
        """Return the mode under a share of the noise.

        `start`: coefficients to begin at, 0 by default. Raises Stopped where time is up.
        """
        found = mode_of(self.gram, share * self.noise, self.ends, self.training.mass, start)
        return self.at(found, share)

    def at(self, found: Sites, share: float) -> _Solved:
        """Return what training rows at a mode say of the rows held out."""
        targets = self.units.restore(found.targets[:, None]).T
        training = replace(self.training, targets=targets, information=found.trust)
        noise = share * self.noise
        S = self.gram.copy()
        S[np.diag_indices_from(S)] += noise / training.precision
        factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        dual = cho_solve(factor, found.targets, check_finite=False)
        latent = self.cross @ dual
        variance = np.maximum(self.own - explained_by(factor[0], self.cross), 0.0)
        width = np.sqrt(variance + noise + JITTER)
        told = sites(latent, width, self.ends_held_out).log_likelihood
        likelihood = float(self.mass_held_out @ told)
        deviations = np.array([np.sqrt(variance), width])
        return _Solved(training, self.units, dual, latent, deviations, told, likelihood)


def best_share(parts: Sequence[CensoredPart]) -> tuple[float, list[_Solved] | None]:
    """Return the share of the noise that makes rows held out likeliest, and what was found there.

    Smaller ones are tried as long as they are better, and larger ones where none was; each begins
    at the modes of the one before. ``None`` where time is up.
    """

    def found(share: float, near: Sequence[_Solved | None]) -> list[_Solved] | None:
        solved = [part.solve(share, each) for part, each in zip(parts, near, strict=True)]
        known = [each for each in solved if each is not None]
        return known if len(known) == len(parts) else None

    best, most = 1.0, found(1.0, [None] * len(parts))
    for step in (0.5, 2.0) if parts else ():
        share = step
        while most is not None and LEAST_SHARE <= share <= 1.0 / LEAST_SHARE:
            other = found(share, most)
            if other is not None and _likelihood(other) <= _likelihood(most):
                break
            best, most = share, other
            share *= step
        if best != 1.0:
            break
    return best, most


def _likelihood(solved: Sequence[_Solved]) -> float:
    return sum(each.log_likelihood for each in solved)


def _shifted(fit: Fit, share: float) -> Fit:
    """Return a fit with a share of its noise."""
    return replace(fit, theta=np.append(fit.theta[:-1], fit.theta[-1] + np.log(share)))
