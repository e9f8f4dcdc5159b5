"""Prediction intervals by CV+: residuals of held-out rows around the folds' own predictions."""

from __future__ import annotations

import numpy as np

from .rows import FloatArray


def cv_plus(
    centres: FloatArray, widths: FloatArray, scores: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of Barber, Candès, Ramdas and Tibshirani 2021 for every new row.

    Row i of the training rows was held out by one fold, which predicts a new row by a centre and
    a width. The interval lies between the quantiles of centre ∓ score · width over all i.

    Parameters
    ----------
    centres, widths : ndarray of shape (n_new, n_rows)
        Column i: of the fold that did not see row i.
    scores : ndarray of shape (n_rows,)
        |residual| of row i in units of its own width.
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
    >>> ones = np.ones((1, 9))
    >>> low, high = cv_plus(0 * ones, ones, np.arange(1.0, 10.0), 0.8)
    >>> low.tolist(), high.tolist()
    ([-8.0], [8.0])
    """
    n = len(scores)
    rank = int(np.ceil(confidence * (n + 1) - 1e-9))
    if rank > n:
        return np.full(len(centres), -np.inf), np.full(len(centres), np.inf)
    reach = widths * scores
    high = np.partition(centres + reach, rank - 1, axis=1)[:, rank - 1]
    low = np.partition(centres - reach, n - rank, axis=1)[:, n - rank]
    return low, high
