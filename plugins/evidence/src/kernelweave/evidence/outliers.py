"""Targets far from all others: a likelihood with heavy tails, where rows held out prefer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from scipy.stats import norm, t

from .candidates import MOST_SCALES
from .intervals import LeftOut
from .learn import Learned
from .mixture import Mixture
from .rows import Rows, Split
from .scores import mean_with_error

# degrees of freedom that are tried: fewer are outliers that no mean would survive
_DEGREES = (2.0, 3.0, 4.0, 6.0, 10.0, 30.0)
# steps of the scale, each a weighted mean of squares
_STEPS = 100
_LEAST_SCALE = 1e-6
# Gain of the logarithm of the likelihood of rows left out by heavy tails, to try them; and standard
# errors by which rows held out, as far as they are trusted, must be predicted better.
_TRIED, _BETTER = 25.0, 2.0
# Standard errors of the gain with the scales that are known, below which learning again is vain: of
# 27 tables on which it was kept, none had less. The noise of those scales has the outliers in it,
# so that a quarter of it is tried too.
_PROMISING, _NOISE = 1.0, (1.0, 0.25)
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


def learn_with_outliers(
    learned: Learned, rows: Rows, splits: Sequence[Split], learn_again: Callable[[Rows], Learned]
) -> Learned:
    """Return a fit to which outliers among the targets count less, where that surely pays.

    Where rows that are left out in turn have residuals with tails far heavier than those of the
    normal distribution, all is learned again: the noise of a target has the variance that Student's
    distribution expects by the residual, as the row is predicted from the others of the training
    part (an EM step for a scale mixture; Lange, Little and Taylor 1989), and what rows held out
    choose is chosen with these weights. It is kept where rows held out are predicted better by
    them, without a drift; and not begun where the weights gain nothing with the scales at hand.

    `rows`, `splits`: what was learned from; `learn_again`: from rows by the same splits. For one
    output and at most 100 columns.
    """
    if len(rows.targets) > 1 or rows.n_dimensions > MOST_SCALES or learned.missing:
        return learned
    tails, trust = _trust(learned.rows, learned.mixture)
    if not tails.gain > _TRIED or len(learned.folds) < len(splits):
        return learned
    if rows.mass @ replace(rows, trust=trust[None]).outliers > _FEW * rows.mass.sum():
        return learned
    trusts = np.vstack([trust, np.ones((len(splits), len(rows)))])
    for out, (training, _), fold in zip(trusts[1:], splits, learned.folds, strict=True):
        out[training] = _trust(fold.training, fold.mixture(learned.weights))[1]
    seen = np.flatnonzero(~np.isnan(learned.held_out[:, 0]))
    mass, truth = rows.mass[seen], rows.targets.T[seen]

    def gain_of(after: FloatArray, before: FloatArray) -> tuple[float, float]:
        squares = [(truth - each[seen])[:, 0] ** 2 for each in (before, after)]
        return mean_with_error(squares[0] - squares[1], mass * trust[seen])

    even = _by_known_scales(learned, np.ones_like(trusts), splits)
    tried = [_by_known_scales(learned, trusts, splits, noise) for noise in _NOISE]
    if all(gain <= _PROMISING * error for gain, error in (gain_of(each, even) for each in tried)):
        return learned
    robust = learn_again(replace(rows, trust=trusts))
    if robust.missing:
        return replace(learned, missing="less weight for outliers")
    drift, width = mean_with_error((truth - robust.held_out[seen])[:, 0], mass)
    gain, error = gain_of(robust.held_out, learned.held_out)
    is_better = gain > _BETTER * error and abs(drift) < _DRIFT * width
    return robust if is_better else learned


def _by_known_scales(
    learned: Learned, trusts: FloatArray, splits: Sequence[Split], noise: float = 1.0
) -> FloatArray:
    """Return predictions of rows held out, with trust in the others and a share of the noise."""
    rows = learned.rows
    out = np.full((len(rows), 1), np.nan)
    for k, (fold, (training, held_out)) in enumerate(zip(learned.folds, splits, strict=True)):
        # noise over precision is all that counts
        trust = trusts[[k + 1]][:, training] / noise
        with_trust = replace(fold, training=replace(fold.training, trust=trust))
        points = fold.views.points(rows.numeric[held_out], rows.codes[held_out])
        out[held_out] = with_trust.mixture(learned.weights).predict(points)
    return out


def _trust(rows: Rows, mixture: Mixture) -> tuple[HeavyTails, FloatArray]:
    """Return the tails of rows left out in turn, and the trust that each deserves."""
    (alone,) = LeftOut(mixture, np.arange(len(rows))).unseen
    residuals = alone.scores[:, 0]
    if alone.target.warps:
        # a power makes the outliers that chose it normal
        residuals = (alone.truth - alone.target.restore(alone.latent))[:, 0]
    tails = HeavyTails.of(residuals, rows.mass)
    return tails, tails.trust(residuals, rows.mass)
