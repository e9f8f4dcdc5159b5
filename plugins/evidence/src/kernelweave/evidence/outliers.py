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
    them, without a drift.

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
    robust = learn_again(replace(rows, trust=trusts))
    if robust.missing:
        return replace(learned, missing="less weight for outliers")
    seen = np.flatnonzero(~np.isnan(robust.held_out[:, 0]))
    before, after = ((rows.targets.T - each.held_out)[seen, 0] for each in (learned, robust))
    drift, width = mean_with_error(after, rows.mass[seen])
    gain, error = mean_with_error(before**2 - after**2, (rows.mass * trust)[seen])
    is_better = gain > _BETTER * error and abs(drift) < _DRIFT * width
    return robust if is_better else learned


def _trust(rows: Rows, mixture: Mixture) -> tuple[HeavyTails, FloatArray]:
    """Return the tails of rows left out in turn, and the trust that each deserves."""
    (alone,) = LeftOut(mixture, np.arange(len(rows))).unseen
    residuals = alone.scores[:, 0]
    if alone.target.warps:
        # a power makes the outliers that chose it normal
        residuals = (alone.truth - alone.target.restore(alone.latent))[:, 0]
    tails = HeavyTails.of(residuals, rows.mass)
    return tails, tails.trust(residuals, rows.mass)
