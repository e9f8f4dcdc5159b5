"""The likelihood of normal targets that are known by half, and its mode on a kernel.

A target t = f + noise of deviation s is known to lie between two ends. Its log likelihood,
log(Φ((high − f)/s) − Φ((low − f)/s)), is concave in f, so that the posterior mode of f under a
Gaussian process is unique. At the mode it is the posterior mean for targets f + slope/curvature
whose noise has the variance 1/curvature (Rasmussen and Williams 2006, *Gaussian Processes for
Machine Learning*, section 3.4): a fit to numbers, each with a trust of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from ..terms import Stopped

# least curvature of a row, in that of one that is known: it is divided by
LEAST_TRUST = 1e-6
# ends closer than this in deviations of the noise are one number
_CLOSE = 1e-3
# deviations from the mean beyond which the normal distribution's tail is an exponential one
_FAR = 100.0
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)
# steps of Newton's method, halvings of each, and the change of f that ends them, in deviations
_STEPS, _HALVINGS, _SMALL = 50, 20, 1e-6
_ROUNDING = 1e-12
# the same of the EM algorithm, whose steps are cheap and short
_EM_STEPS, _EM_SMALL = 500, 1e-7
# rows that it is run on at most, evenly spread
_EM_ROWS = 10_000


class Sites(NamedTuple):
    """What a likelihood says near values f of the rows.

    - `log_likelihood` of shape (n,): of a density where a target is known, else of a probability
    - `targets` of shape (n,): of the normal likelihood with its slope and curvature
    - `trust` of shape (n,): that curvature, in units of a known target's; from `LEAST_TRUST` to 1
    """

    log_likelihood: FloatArray
    targets: FloatArray
    trust: FloatArray


def sites(f: FloatArray, deviation: FloatArray | float, ends: FloatArray) -> Sites:
    """Return the likelihood of ends where targets are normal around f.

    `f` of shape (n,); `deviation` of shape (n,) or one for all: of the noise; `ends` of shape
    (2, n).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.likelihood import sites
    >>> found = sites(np.zeros(2), 1.0, np.array([[1.0, 0.0], [1.0, np.inf]]))
    >>> np.exp(found.log_likelihood).round(3).tolist()
    [0.242, 0.5]
    >>> found.trust.round(3).tolist()
    [1.0, 0.637]
    """
    low, high = (ends - f) / deviation
    width = high - low
    known = width < _CLOSE
    middle = np.where(known, 0.5 * np.where(known, ends, f).sum(axis=0), f)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # in the lower tail, where both logarithms are exact
        turned = low + high > 0.0
        a, b = np.where(turned, -high, low), np.where(turned, -low, high)
        log_b = log_ndtr(b)
        log_mass = log_b + np.log1p(-np.exp(log_ndtr(a) - log_b))
        at_a, at_b = (
            np.where(np.isinf(z), 0.0, np.exp(-0.5 * z**2 - _LOG_ROOT - log_mass)) for z in (a, b)
        )
        bent = np.where(np.isinf(a), 0.0, a * at_a) - np.where(np.isinf(b), 0.0, b * at_b)
        slope = at_a - at_b
        trust = slope**2 - bent
        # these differences lose all digits far in the tail
        far = -b > _FAR
        slope[far], trust[far] = _of_tail(-b[far], width[far])
        trust = np.clip(trust, LEAST_TRUST, 1.0)
        # a narrow range has the probability of its density times its width
        wide = np.where(width > 0.0, np.log(width), -np.log(deviation))
    slope = np.where(turned, -slope, slope)
    z = (middle - f) / deviation
    exact = -0.5 * z**2 - _LOG_ROOT + wide
    moved = f + deviation * slope / trust
    return Sites(
        np.where(known, exact, log_mass),
        np.where(known, middle, moved),
        np.where(known, 1.0, trust),
    )


def _of_tail(beyond: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature for ranges of a width so many deviations below the mean.

    What lies there has nearly an exponential distribution.
    """
    steps = beyond * width
    decay = np.where(np.isinf(steps), 0.0, steps * np.exp(-steps) / -np.expm1(-steps))
    shrunk = np.where(np.isinf(steps), 1.0, 1.0 - decay * steps / -np.expm1(-steps))
    return -(beyond + (1.0 - decay) / beyond), 1.0 - shrunk / beyond**2


def normal_of(ends: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Return mean and deviation of the likeliest normal distribution of targets known by half.

    By the EM algorithm: the missing parts are those of targets within their ends. Of more than
    10,000 rows it takes as many, evenly spread.

    `ends` of shape (2, n); `mass` of shape (n,): weights.
    """
    if len(mass) > _EM_ROWS:
        some = np.linspace(0, len(mass) - 1, _EM_ROWS).astype(np.intp)
        ends, mass = ends[:, some], mass[some]
    finite = np.isfinite(ends)
    told = finite.any(axis=0)
    values = np.where(finite, ends, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    share = mass / mass.sum()
    mean = float(np.average(values[told], weights=share[told]))
    spread = float(np.sqrt(np.average((values[told] - mean) ** 2, weights=share[told])))
    spread = spread or 1.0
    for _ in range(_EM_STEPS):
        found = sites(np.full(ends.shape[1], mean), spread, ends)
        known = ends[1] - ends[0] < _CLOSE * spread
        # mean and variance of a target given its ends, by the derivatives of its likelihood
        centres = mean + found.trust * (found.targets - mean)
        within = np.where(known, 0.0, spread**2 * (1.0 - found.trust))
        centres = np.where(known, found.targets, centres)
        new = float(share @ centres)
        new_spread = float(np.sqrt(share @ ((centres - new) ** 2 + within)))
        change = abs(new - mean) + abs(new_spread - spread)
        mean, spread = new, new_spread or spread
        if change < _EM_SMALL * spread:
            break
    return mean, spread


def mode_of(
    gram: FloatArray, noise: float, ends: FloatArray, mass: FloatArray,
    start: FloatArray | None = None, *, is_limited: bool = True,
) -> Sites:  # fmt: skip
    """Return the likelihood at the posterior mode of a Gaussian process with mean 0.

    Minimises ½ aᵀKa − Σᵢ mᵢ log likelihood(fᵢ), f = Ka, by Newton's method, whose steps are halved
    until the objective falls.

    - `gram` of shape (n, n): K, with its jitter
    - `noise`: variance of the noise
    - `ends` of shape (2, n); `mass` of shape (n,): weights, of which 2 counts a row twice
    - `start` of shape (n,): coefficients a to begin at, 0 by default
    - `is_limited`: whether the time limit ends it

    Raises Stopped where time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.censored.likelihood import mode_of
    >>> known, above = np.array([[1.0], [1.0]]), np.array([[1.0], [np.inf]])
    >>> found = [mode_of(np.eye(1), 1.0, ends, np.ones(1)) for ends in (known, above)]
    >>> [each.targets.round(2).item() for each in found]
    [1.0, 2.2]
    """
    deviation = float(np.sqrt(noise))
    dual = np.zeros(len(gram)) if start is None else start
    f = gram @ dual
    found = sites(f, deviation, ends)
    value = 0.5 * float(dual @ f) - float(mass @ found.log_likelihood)
    for _ in range(_STEPS):
        if is_limited and clock.expired():
            raise Stopped
        S = gram.copy()
        S[np.diag_indices_from(S)] += noise / (mass * found.trust)
        factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        step = cho_solve(factor, found.targets, check_finite=False) - dual
        for _ in range(_HALVINGS):
            there = gram @ (dual + step)
            trial = sites(there, deviation, ends)
            penalty = 0.5 * float((dual + step) @ there)
            objective = penalty - float(mass @ trial.log_likelihood)
            if objective <= value + _ROUNDING * abs(value):
                break
            step = 0.5 * step
        else:
            # nothing is left but rounding
            break
        moved = float(np.max(np.abs(there - f))) / deviation
        dual, f, found, value = dual + step, there, trial, objective
        if moved < _SMALL:
            break
    return found
