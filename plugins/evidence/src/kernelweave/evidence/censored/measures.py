"""How right predicted distributions are of targets known by half: Brier score and calibration.

Both need the distribution that each row had where it was held out, on the learned scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.stats import f as f_distribution
from scipy.stats import norm

from .residuals import likeliest

# the Brier score is integrated between these quantiles of the observed times, over so many points
_BETWEEN, _POINTS = (0.1, 0.9), 200
# bins of the probabilities, and rows or groups that a test needs for each degree of freedom
_BINS, _ROWS_EACH = 10, 2
_Z = float(norm.ppf(0.975))


class Curve(NamedTuple):
    """A survival function that needs no model, as steps: `survival` from each of `places` on.

    `low`, `high`: ends of 95 % intervals; ``None`` where limits lie on both sides; `before`: what
    it is before the first place, NaN where an upper limit leaves that open.
    """

    places: FloatArray
    survival: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    before: float = 1.0

    def at(self, points: FloatArray) -> FloatArray:
        """Return the survival function at points."""
        steps = np.concatenate([[self.before], self.survival])
        return np.asarray(steps[np.searchsorted(self.places, points, side="right")])


class _ProductLimit(NamedTuple):
    """Kaplan and Meier's estimators of both times, that of the event and that of censoring.

    All of shape (n_places,): `places` ascending; `survival` after each; `variance` of the logarithm
    of that (Greenwood), for rows that count one each; `observed`: the probability not to be
    censored before each.
    """

    places: FloatArray
    survival: FloatArray
    variance: FloatArray
    observed: FloatArray


def _product_limit(ends: FloatArray, mass: FloatArray) -> _ProductLimit:
    """Return the estimators; where an event and a censoring are at one time, the event is first."""
    time, event = _times_of(ends)
    places, which = np.unique(time, return_inverse=True)
    died = np.bincount(which, mass * event, len(places))
    left = np.bincount(which, mass * ~event, len(places))
    at_risk = np.cumsum((died + left)[::-1])[::-1]
    remaining = np.maximum(at_risk - died, 0.0)
    # the last of all may leave nothing to divide by
    lost = np.divide(left, remaining, out=np.zeros_like(left), where=left > 0.0)
    staying = np.cumprod(np.maximum(1.0 - lost, 0.0))
    hazard = died / at_risk
    survival = np.asarray(np.cumprod(np.maximum(1.0 - hazard, 0.0)), dtype=np.float64)
    # weights say how often a row counts, and equal ones are no more rows than there are
    size = float(mass.sum() / (mass @ mass))
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(hazard / (remaining * size))
    return _ProductLimit(places, survival, variance, np.concatenate([[1.0], staying[:-1]]))


def _times_of(ends: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the time that each row was last seen, and whether the event had come by then."""
    low, high = ends
    event = np.isfinite(high)
    return np.where(event, high, low), event


def observed_curve(ends: FloatArray, mass: FloatArray) -> Curve:
    """Return the survival function that the rows have without a model.

    Kaplan and Meier's estimator where each target is known or above a limit, with intervals by
    Greenwood's variance of the logarithm of the cumulative hazard; Turnbull's where others are
    below a limit or in a range. Intervals take rows as independent. Rows without a finite end
    change nothing; where there are no others, the function is NaN.

    `ends` of shape (2, n); `mass` of shape (n,): weights.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.measures import observed_curve
    >>> curve = observed_curve(np.array([[1.0, 2.0, 3.0], [1.0, np.inf, 3.0]]), np.ones(3))
    >>> curve.at(np.array([0.5, 1.0, 2.5, 3.0])).round(3).tolist()
    [1.0, 0.667, 0.667, 0.0]
    """
    tells = np.isfinite(ends).any(axis=0)
    if not tells.any():
        return Curve(np.empty(0), np.empty(0), before=np.nan)
    ends, mass = ends[:, tells], mass[tells]
    low, high = ends
    if ((low == high) | np.isposinf(high)).all():
        found = _product_limit(ends, mass)
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithm = np.log(found.survival)
            reach = _Z * np.sqrt(found.variance) / np.abs(logarithm)
            below, above = (found.survival ** np.exp(sign * reach) for sign in (1.0, -1.0))
        inside = (found.survival > 0.0) & (found.survival < 1.0)
        below, above = (np.where(inside, each, np.nan) for each in (below, above))
        return Curve(found.places, found.survival, below, above)
    places, probabilities = likeliest(ends, mass)
    finite = np.isfinite(places)
    survival = np.clip(1.0 - np.cumsum(probabilities), 0.0, 1.0)
    before = np.nan if np.isneginf(low).any() else 1.0
    return Curve(places[finite], survival[finite], before=before)


class BrierScore(NamedTuple):
    """The integrated Brier score of predictions, and of the same curve for all rows."""

    score: float
    one_curve: float


def integrated_brier(
    ends: FloatArray,
    mass: FloatArray,
    survival: Callable[[FloatArray], FloatArray],
    *,
    log: bool,
) -> BrierScore:
    """Return the integrated Brier score (Graf, Schmoor, Sauerbrei and Schumacher 1999).

    The mean squared difference of the survival function and whether the event is still to come,
    averaged over the times from the 10 % to the 90 % quantile of the times that rows were last
    seen. A row that is censored before counts nothing from then on, and others stand for it: they
    are weighted by the inverse of the probability not to be censored, by Kaplan and Meier. The
    weights are right where censoring depends on no column.

    NaN where a range or an upper limit does not say whether the event was before some of these
    times, as no such weight is known then, or where there is no time between the quantiles.

    - `ends` of shape (2, n); `mass` of shape (n,): weights
    - `survival`: from points on the scale of the ends, shape (n_points,), to shape (n, n_points)
    - `log`: whether ends are logarithms; the score is an average over what they are logarithms of

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.measures import integrated_brier
    >>> ends = np.array([np.arange(10.0), np.arange(10.0)])
    >>> one_half = lambda points: np.full((10, len(points)), 0.5)
    >>> integrated_brier(ends, np.ones(10), one_half, log=False).score
    0.25
    """
    nothing = BrierScore(np.nan, np.nan)
    low, high = ends
    told = np.isfinite(low) | np.isfinite(high)
    time, event = _times_of(ends)
    if not told.any():
        return nothing
    begin, end = map(float, _quantiles(time[told], mass[told], _BETWEEN))
    is_open = (low < high) & event & (low < end) & (high > begin)
    if not begin < end or is_open.any():
        return nothing
    places = points = np.linspace(begin, end, _POINTS)
    if log:
        places = np.linspace(np.exp(begin), np.exp(end), _POINTS)
        # logarithms of the ends may differ from these in their last digit
        points = np.clip(np.log(places), begin, end)
    found = _product_limit(ends, mass)
    own = found.observed[np.searchsorted(found.places, time)]
    at = np.searchsorted(found.places, points)
    observed = np.append(found.observed, np.nan)[at]
    died = event[:, None] & (time[:, None] <= points)
    lives = (time[:, None] > points) | (~event[:, None] & (time[:, None] == points))
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(died, 1.0 / own[:, None], np.where(lives, 1.0 / observed, 0.0))
    share = mass / mass.sum()

    def averaged(predicted: FloatArray) -> float:
        scores = share @ (weight * (lives - predicted) ** 2)
        return float(trapezoid(scores, places) / (places[-1] - places[0]))

    same = Curve(found.places, found.survival).at(points)
    return BrierScore(averaged(survival(points)), averaged(same[None]))


def _quantiles(values: FloatArray, mass: FloatArray, shares: tuple[float, ...]) -> FloatArray:
    """Return the least values that so many rows do not exceed."""
    by = np.argsort(values)
    cumulative = np.cumsum(mass[by]) / mass.sum()
    place = np.searchsorted(cumulative, np.array(shares) - 1e-12)
    return np.asarray(values[by][np.minimum(place, len(by) - 1)])


def strata_of(values: FloatArray, n_strata: int = 3) -> Index:
    """Return the stratum of each prediction, of as many rows each, the lowest 0.

    `values` of shape (n,). Equal ones are in one stratum, so that there may be fewer.
    """
    cuts = np.quantile(values, np.arange(1, n_strata) / n_strata)
    return np.unique(np.searchsorted(cuts, values), return_inverse=True)[1].ravel()


def shares_of_bins(low: FloatArray, high: FloatArray, n_bins: int) -> FloatArray:
    """Return how much of each row lies in each bin of the probabilities (Haider et al. 2020).

    A target that is known by half lies between two probabilities of its predicted distribution, and
    is spread evenly between these.

    `low`, `high` of shape (n,), low < high. Returns shape (n, n_bins), of sum 1 in each row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.measures import shares_of_bins
    >>> shares_of_bins(np.array([0.1, 0.25]), np.array([0.2, 1.0]), 2).round(3).tolist()
    [[1.0, 0.0], [0.333, 0.667]]
    """
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    top = np.minimum(high[:, None], edges[1:])
    overlap = np.maximum(top - np.maximum(low[:, None], edges[:-1]), 0.0)
    return np.asarray(overlap / (high - low)[:, None])


def calibration_p(
    low: FloatArray,
    high: FloatArray,
    strata: Index,
    mass: FloatArray,
    parts: Index,
    *,
    n_residuals: float | None = None,
) -> float:
    """Return the p-value that each stratum of rows has its targets where it should have them.

    The rows of each stratum are spread over bins of the probabilities of their own predicted
    distributions, as in D-calibration (Haider, Hoehn, Davis and Greiner 2020). Of held-out rows the
    test is whether the strata differ. That all of them together are in each bin as often as they
    should would be no news: their residuals gave the distributions their shape. Of other rows it is
    whether each stratum has a tenth in every bin.

    The statistic is Pearson's of a table of strata and bins. Its mean and variance are matched to
    those that the rows, or the groups of rows, show (Rao and Scott 1984, the correction of second
    order), so that weights, targets known by half and rows that are alike within a group need no
    assumption. NaN where rows or groups are fewer than twice the degrees of freedom, or where there
    is only one stratum of held-out rows.

    - `low`, `high` of shape (n,): probabilities between which each target lies, low < high
    - `strata` of shape (n,): from 0 on
    - `mass` of shape (n,): weights; `parts` of shape (n,): rows with one number are a group
    - `n_residuals`: of other rows, how many gave the distributions their shape; ``None`` of
      held-out rows
    """
    groups = np.unique(parts, return_inverse=True)[1].ravel()
    n_parts, n_strata = int(groups.max()) + 1, int(strata.max()) + 1
    held_out = n_residuals is None
    freedom = (n_strata - held_out) * (_BINS - 1)
    if freedom == 0 or n_parts < _ROWS_EACH * freedom:
        return np.nan
    share = mass / mass.sum()
    bins = shares_of_bins(low, high, _BINS)
    inside = (strata[:, None] == np.arange(n_strata)).astype(np.float64)
    sizes = share @ inside
    # in units in which the cells of independent rows have the covariance of a projection, over n
    roots = np.sqrt(sizes)
    left = (inside - sizes if held_out else inside) / roots
    common = 1.0
    if n_residuals is not None:
        # what all strata have in common is also as uncertain as the residuals, and counts less
        common = float(1.0 / np.sqrt(1.0 + 1.0 / ((share @ share) * n_residuals)))
        left -= (1.0 - common) * np.outer(left @ roots, roots)
    right = (bins - (share @ bins if held_out else 1.0 / _BINS)) * np.sqrt(_BINS)
    terms = (share[:, None, None] * left[:, :, None] * right[:, None, :]).reshape(len(share), -1)
    sums = np.array([np.bincount(groups, each, n_parts) for each in terms.T])
    total, rest = sums.sum(axis=1), sums - sums.mean(axis=1, keepdims=True)
    covariance = rest @ rest.T * (n_parts / (n_parts - 1))
    if n_residuals is not None:
        size = common**2 / n_residuals
        covariance += size * np.kron(np.outer(roots, roots), np.eye(_BINS) - 1.0 / _BINS)
    mean = float(np.trace(covariance)) / freedom
    if not mean > 0.0:
        return np.nan
    # what the sum of squares of an estimated covariance has too much is taken off
    uneven = float(np.sum(covariance**2)) / (freedom * mean**2) - freedom / n_parts
    matched = freedom / max(1.0, uneven)
    ratio = float(total @ total) / (mean * freedom)
    return float(f_distribution.sf(ratio, matched, matched * (n_parts - 1)))
