"""Predictions beside the truth: decision values by class, residuals of a regression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .colours import FAINT, GAP, LOWER, UPPER

_BINS = 10
_Z = 1.959963984540054


def wilson_interval(hits: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's formula.

    Parameters
    ----------
    hits, n : float
        How many of how many.

    Returns
    -------
    tuple of float
        Both ends, in [0, 1].

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    share = hits / n
    centre = share + _Z**2 / (2 * n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    scale = 1 + _Z**2 / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def plot_calibration(decision: npt.NDArray[Any], positive: npt.NDArray[np.bool_], ax: Any) -> None:
    """Draw how often the positive class is true at each height of the decision value.

    Samples are put into ten bins of equal counts; bars are 95 % Wilson intervals. A support
    vector machine promises a sign, not a probability: the curve says what its values are worth.

    Parameters
    ----------
    decision : ndarray of shape (n,)
        Values of the decision function.
    positive : ndarray of shape (n,), bool
        Whether the sample is of the positive class.
    ax : matplotlib Axes
        Where to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.workbench import plot_calibration
    >>> d = np.linspace(-1, 1, 40)
    >>> plot_calibration(d, d > 0, Figure().subplots())
    """
    order = np.argsort(decision, kind="stable")
    n_bins = min(_BINS, max(1, len(order) // 5))
    for part in np.array_split(order, n_bins):
        hits, n = float(positive[part].sum()), len(part)
        low, high = wilson_interval(hits, n)
        share, middle = hits / n, float(np.median(decision[part]))
        reach = [[max(0.0, share - low)], [max(0.0, high - share)]]
        ax.errorbar(middle, share, reach, fmt="o", color=LOWER, markersize=4)
    ax.axvline(0.0, color=FAINT, linewidth=1)
    ax.axhline(0.5, color=FAINT, linewidth=1, linestyle="--")
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("decision value")
    ax.set_ylabel("share of the positive class")
    ax.spines[["top", "right"]].set_visible(False)


def plot_residuals(y: npt.NDArray[Any], predicted: npt.NDArray[Any], ax: Any) -> None:
    """Draw prediction against target, the line of no error among them.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Targets and predictions.
    ax : matplotlib Axes
        Where to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.workbench import plot_residuals
    >>> plot_residuals(np.arange(5.0), np.arange(5.0) + 0.1, Figure().subplots())
    """
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, color=GAP, linewidth=1)
    ax.plot(y, predicted, ".", color=UPPER, markersize=4, alpha=0.6)
    ax.set_xlabel("target")
    ax.set_ylabel("prediction")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.2)
