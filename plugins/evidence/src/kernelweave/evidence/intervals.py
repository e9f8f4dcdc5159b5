"""Prediction intervals by CV+: residuals of held-out rows around the folds' own predictions."""

from __future__ import annotations

import numpy as np

from .rows import FloatArray


def cv_plus(low: FloatArray, high: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return the interval of Barber, Candès, Ramdas and Tibshirani 2021 for every new row.

    Row i of the training rows was held out by one fold, which predicts a new row; ``low`` and
    ``high`` lie below and above that prediction by the residual of row i. The interval lies
    between quantiles of both over all i.

    Parameters
    ----------
    low, high : ndarray of shape (n_new, n_rows)
    confidence : float
        Between 0 and 1; coverage is at least 2·confidence − 1, and nearly ``confidence`` where
        the folds agree.

    Returns
    -------
    low, high : ndarray of shape (n_new,)
        Infinite where the rows are too few for the confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.intervals import cv_plus
    >>> residuals = np.arange(1.0, 10.0)[None]
    >>> below, above = cv_plus(-residuals, residuals, 0.8)
    >>> below.tolist(), above.tolist()
    ([-8.0], [8.0])
    """
    n = low.shape[1]
    rank = int(np.ceil(confidence * (n + 1) - 1e-9))
    if rank > n:
        return np.full(len(low), -np.inf), np.full(len(high), np.inf)
    above = np.partition(high, rank - 1, axis=1)[:, rank - 1]
    below = np.partition(low, n - rank, axis=1)[:, n - rank]
    return below, above
