"""The distribution of a new observation at each row, as points that are equally likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RandomState
from kernelweave.kernels_core.checks import number
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

OPEN_SHARE = number(above=0.0, below=1.0)


@dataclass(frozen=True)
class PredictiveDistribution:
    """Conformal predictive distributions of new targets, one a row.

    Each row left out of training says what a new target would be if its residual, in units of its
    deviation, were that of the row: a point of the distribution. With n points, p of which are
    less than y, the probability of at most y is about (p + ½)/(n + 1).

    Parameters
    ----------
    points : ndarray of shape (n_points, n_samples) or (n_points, n_samples, n_outputs)
        Ascending along the first axis.
    lower : float, default=-inf
        The end of the range of targets on the left: all are larger. It is 0 where logarithms were
        learned, and where targets are times up to an event.

    Notes
    -----
    Where one predictor makes all residuals and predictions, these are the split conformal
    predictive distributions of Vovk, Petej, Nouretdinov, Manokhin and Gammerman 2020, which proves
    that ``cdf(y)``, its ties broken at random, is uniform for exchangeable rows. With a predictor
    without each row they are cross-conformal, for which it is measured.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence import PredictiveDistribution
    >>> points = np.arange(1.0, 10.0)[:, None]
    >>> distribution = PredictiveDistribution(points)
    >>> distribution.ppf(0.25).tolist(), distribution.cdf(4.5).tolist()
    ([2.0], [0.45])
    """

    points: FloatArray
    lower: float = -np.inf

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Return the probability of targets of at most y, ties half.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        at = self._targets(y)
        less, equal = np.sum(self.points < at, axis=0), np.sum(self.points == at, axis=0)
        share = np.asarray((less + 0.5 * (equal + 1)) / (len(self.points) + 1))
        # however few the points: no target is outside the range of targets
        beyond = np.where(at <= self.lower, -np.inf, at)
        return np.where(np.isfinite(beyond), share, np.clip(beyond, 0.0, 1.0))

    def ppf(self, q: float) -> FloatArray:
        """Return the q-quantile: outwards where it lies between two points.

        Parameters
        ----------
        q : float
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Where the points are too few for q, infinite, or ``lower`` for a small q.
        """
        OPEN_SHARE.check("q", q)
        n = len(self.points)
        place = q * (n + 1)
        rank = int(np.floor(place + 1e-9) if q < 0.5 else np.ceil(place - 1e-9))
        if 1 <= rank <= n:
            return np.array(self.points[rank - 1])
        return np.full(self.points.shape[1:], self.lower if rank < 1 else np.inf)

    def sf(self, y: ArrayLike) -> FloatArray:
        """Return the survival function, the probability of more than y: one less ``cdf(y)``.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return np.asarray(1.0 - self.cdf(y))

    def cumulative_hazard(self, y: ArrayLike) -> FloatArray:
        """Return the cumulative hazard of times up to an event: −log of the survival function.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(self.sf(y)))

    def mean(self, horizon: float | None = None) -> FloatArray:
        """Return the means of the points, shape (n_samples,) or (n_samples, n_outputs).

        Parameters
        ----------
        horizon : float, optional
            What lies beyond counts as this: of times up to an event the restricted mean survival
            time. Without it the mean is infinite where no training row tells how far the tail goes,
            and NaN where none tells it of either tail.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        points = self.points if horizon is None else np.minimum(self.points, horizon)
        with np.errstate(invalid="ignore"):
            return np.asarray(points.mean(axis=0))

    def std(self) -> FloatArray:
        """Return their standard deviations, shape (n_samples,) or (n_samples, n_outputs).

        Infinite where a point is.
        """
        with np.errstate(invalid="ignore"):
            return np.where(self._is_open, np.inf, self.points.std(axis=0))

    def rvs(self, size: int = 1, random_state: RandomState = None) -> FloatArray:
        """Return draws among the points.

        Parameters
        ----------
        size : int, default=1
            How many for each row.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        ndarray of shape (size, n_samples) or (size, n_samples, n_outputs)
        """
        state = check_random_state(random_state)
        which = state.randint(len(self.points), size=(size, *self.points.shape[1:]))
        return np.take_along_axis(self.points, which, axis=0)

    def crps(self, y: ArrayLike) -> FloatArray:
        """Return the continuous ranked probability score of each target, in its unit.

        E|Y − y| − ½ E|Y − Y'| with Y and Y' drawn among the points (Gneiting and Raftery 2007,
        equation 21): the mean pinball loss over all quantiles, twice; of a single point the
        absolute error.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Infinite where a point is.
        """
        n = len(self.points)
        ranks = (2.0 * np.arange(1, n + 1) - n - 1) / n**2
        with np.errstate(invalid="ignore"):
            spread = np.tensordot(ranks, self.points, axes=1)
            score = np.abs(self.points - self._targets(y)).mean(axis=0) - spread
        return np.where(self._is_open, np.inf, score)

    @property
    def _is_open(self) -> NDArray[np.bool_]:
        """Where no training row tells how far a tail goes."""
        return np.asarray(np.isinf(self.points[[0, -1]]).any(axis=0))

    def _targets(self, y: ArrayLike) -> FloatArray:
        """Return one target for all, or one a row and output."""
        at, shape = np.asarray(y, dtype=np.float64), self.points.shape[1:]
        if at.ndim and at.shape != shape:
            raise ValueError(f"y must have shape {shape}, or be one number, got shape {at.shape}")
        return at
