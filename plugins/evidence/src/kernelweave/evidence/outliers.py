"""Targets far from all others: a likelihood with heavy tails, where rows held out prefer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from scipy.linalg import cho_solve, cholesky
from scipy.stats import norm, t

from .candidates import MOST_SCALES
from .cross import cross_kernel, gram_of
from .folds import Fold
from .intervals import LeftOut
from .learn import Learned, leave_folds_out
from .mixture import Mixture, fit_mixture, left_out_width
from .path import Fit
from .rows import Rows, Standardised
from .scores import mean_with_error
from .terms import JITTER

# degrees of freedom that are tried: fewer are outliers that no mean would survive
_DEGREES = (2.0, 3.0, 4.0, 6.0, 10.0, 30.0)
# steps of the scale, each a weighted mean of squares
_STEPS = 100
_LEAST_SCALE = 1e-6
# Gain of the logarithm of the likelihood of rows left out by heavy tails, to try them; and standard
# errors by which rows held out, as far as they are trusted, must be predicted better.
_TRIED, _BETTER = 25.0, 2.0
# The noise of the scales has the outliers in it, so that shares of it are tried, each a quarter of
# the one before, as long as that is better.
_STEP, _LEAST_SHARE = 0.25, 1e-3
# Of all rows, those that may be outliers: more are the tail of noise that is skewed, whose mean
# they belong to. So are fewer, where without them residuals drift by so many standard errors.
_FEW, _DRIFT = 0.05, 2.0


@dataclass(frozen=True)
class HeavyTails:
    """Student's t distribution of residuals about 0, with their scale.

    `gain`: of the logarithm of the likelihood, over the normal distribution.
    """

    degrees: float
    scale: float
    gain: float

    @classmethod
    def of(cls, residuals: FloatArray, mass: FloatArray) -> HeavyTails:
        """Return the likeliest tails of residuals; `residuals`, `mass` of shape (n,).

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave.evidence.outliers import HeavyTails
        >>> residuals = np.random.RandomState(0).randn(100)
        >>> HeavyTails.of(residuals, np.ones(100)).gain < 1.0
        True
        >>> residuals[0] = 20.0
        >>> HeavyTails.of(residuals, np.ones(100)).gain > 50.0
        True
        """
        total = mass.sum()
        root = np.sqrt(mass @ residuals**2 / total)
        if root == 0.0:
            return cls(np.inf, 1.0, 0.0)
        z, fits = residuals / root, []
        for degrees in _DEGREES:
            scale = 1.0
            for _ in range(_STEPS):
                trust = (degrees + 1.0) / (degrees + (z / scale) ** 2)
                scale = max(np.sqrt(mass @ (trust * z**2) / total), _LEAST_SCALE)
            fits.append((float(mass @ t.logpdf(z, degrees, scale=scale)), degrees, scale))
        best, degrees, scale = max(fits)
        return cls(degrees, float(scale * root), best - float(mass @ norm.logpdf(z)))

    def trust(self, residuals: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the precision of each target, by its residual and with mean one."""
        precision = 1.0 / (1.0 + (residuals / self.scale) ** 2 / self.degrees)
        return np.asarray(precision / np.average(precision, weights=mass))


def with_outliers(learned: Learned) -> Learned:
    """Return a fit to which outliers among the targets count less, where that surely pays.

    Where rows that are left out in turn have residuals with tails far heavier than those of the
    normal distribution, the noise of a target gets the variance that Student's distribution expects
    by the residual, as the row is predicted from the others of the training part, and above 2,000
    rows from all others (an EM step for a scale mixture; Lange, Little and Taylor 1989). The scales
    stay, and rows held out choose the noise of the others. It is kept where they are predicted
    better by them, without a drift.

    For one output and at most 100 columns.
    """
    rows = learned.rows
    if len(rows.targets) > 1 or rows.n_dimensions > MOST_SCALES or learned.missing:
        return learned
    if not learned.folds:
        return learned
    seen = np.flatnonzero(~np.isnan(learned.held_out[:, 0]))
    mass, truth = rows.mass[seen], rows.targets.T[seen]
    # rows held out need no inverse, and have the tails that rows left out one by one have
    if not HeavyTails.of((truth - learned.held_out[seen])[:, 0], mass).gain > _TRIED:
        return learned
    tails, trust = _trust(rows, learned.mixture)
    if not tails.gain > _TRIED:
        return learned
    if rows.mass @ replace(rows, trust=trust[None]).outliers > _FEW * rows.mass.sum():
        return learned
    # of many rows, what training rows trust each other is what all rows do
    own = [trust[fold.places] if learned.left_out else None for fold in learned.folds]
    pairs = list(zip(learned.folds, own, strict=True))
    known = [_KnownFold.of(*each, rows, learned.weights) for each in pairs]
    # and one fold tells the noise
    share = _best_share(known[:1] if learned.left_out else known, rows, trust)
    even, best = (_predicted(known, each, len(rows)) for each in (None, share))
    rest = [(truth - each[seen])[:, 0] for each in (even, best)]
    gain, error = mean_with_error(rest[0] ** 2 - rest[1] ** 2, mass * trust[seen])
    drift, width = mean_with_error(rest[1], mass)
    if not (gain > _BETTER * error and abs(drift) < _DRIFT * width):
        return learned

    def shifted(fit: Fit) -> Fit:
        return replace(fit, theta=np.append(fit.theta[:-1], fit.theta[-1] + np.log(share)))

    rows = replace(rows, trust=trust[None])
    folds = [
        replace(
            each.fold,
            fits=list(map(shifted, each.fold.fits)),
            training=replace(each.fold.training, trust=each.trust[None]),
        )
        for each in known
    ]
    scales = tuple(replace(each, noise=each.noise * share) for each in learned.mixture.scales)
    mixture = fit_mixture(learned.mixture.views, rows, scales)
    fits, left_out = list(map(shifted, learned.fits)), learned.left_out
    if left_out:
        left_out, best = leave_folds_out(mixture, rows, folds)
    return replace(
        learned, mixture=mixture, fits=fits, folds=folds, held_out=best, rows=rows,
        left_out=left_out,
    )  # fmt: skip


def _predicted(known: Sequence[_KnownFold], share: float | None, n_rows: int) -> FloatArray:
    """Return predictions of rows by the fold that held them out, NaN of others, (n_rows, 1).

    `share`: of the noise; ``None``: all of it, and all targets are trusted alike.
    """
    out = np.full((n_rows, 1), np.nan)
    for each in known:
        trust = np.ones_like(each.trust) if share is None else each.trust
        out[each.fold.held_out] = each.predict(trust, 1.0 if share is None else share)
    return out


def _best_share(known: Sequence[_KnownFold], rows: Rows, trust: FloatArray) -> float:
    """Return the share of the noise by which rows held out are predicted best, as trusted."""
    seen = np.concatenate([each.fold.held_out for each in known])

    def loss(share: float) -> float:
        rest = (rows.targets.T - _predicted(known, share, len(rows)))[seen, 0]
        return float(rows.mass[seen] * trust[seen] @ rest**2)

    share, least = 1.0, loss(1.0)
    while share * _STEP >= _LEAST_SHARE and (other := loss(share * _STEP)) < least:
        share, least = share * _STEP, other
    return share


class _KnownFold(NamedTuple):
    """A fold with its kernels, to be solved with other noise.

    `gram` of shape (n_training, n_training); `cross` of shape (n_held_out, n_training); `noise`: σ²
    of the kernel; `trust` of shape (n_training,): in the targets.
    """

    fold: Fold
    gram: FloatArray
    cross: FloatArray
    noise: float
    trust: FloatArray

    @classmethod
    def of(
        cls, fold: Fold, trust: FloatArray | None, rows: Rows, weights: FloatArray
    ) -> _KnownFold:
        """Work out the kernels; `trust`: that of its training rows among themselves by default."""
        views, training, scales = fold.views, fold.training, fold.scales(weights)
        points, held_out = (
            views.points(each.numeric, each.codes) for each in (training, rows.take(fold.held_out))
        )
        cross = cross_kernel(held_out, points, scales, views.match_weight)
        gram = gram_of(points, scales, views.match_weight, whole=False)
        if trust is None:
            mixture = fold.mixture(weights)
            trust = _trust(training, mixture)[1]
            mixture.release()
        return cls(fold, gram, cross, sum(each.noise for each in scales), trust)

    def predict(self, trust: FloatArray, share: float) -> FloatArray:
        """Return predictions of the rows held out, with a share of the noise."""
        rows = replace(self.fold.training, trust=trust[None])
        targets, noise = Standardised.of(rows), share * self.noise
        more = noise * (1.0 / rows.precision - 1.0 / rows.mass)
        S = self.gram.copy()
        S[np.diag_indices_from(S)] += noise / rows.mass + more + JITTER
        factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
        dual = cho_solve((factor, True), targets.values.T, check_finite=False)
        width = left_out_width(factor, rows.mass, more) if targets.warps else 0.0
        return targets.predict(self.cross @ dual, width)


def _trust(rows: Rows, mixture: Mixture) -> tuple[HeavyTails, FloatArray]:
    """Return the tails of rows left out in turn, and the trust that each deserves."""
    (alone,) = LeftOut(mixture, np.arange(len(rows))).unseen
    residuals = alone.scores[:, 0]
    if alone.target.warps:
        # a power makes the outliers that chose it normal
        residuals = (alone.truth - alone.target.restore(alone.latent))[:, 0]
    tails = HeavyTails.of(residuals, rows.mass)
    return tails, tails.trust(residuals, rows.mass)


def trust_in(rows: Rows, mixture: Mixture) -> FloatArray:
    """Return the trust that each target deserves by its residual, where it is left out.

    `mixture`: of these rows, some of which are trusted less than others already.
    """
    return _trust(rows, mixture)[1]
