"""The course of a solve: both proved bounds, and the gap between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import History

from .colours import FAINT, GAP, LOWER, UPPER


def plot_convergence(history: History, ax: Any) -> None:
    """Draw the best upper and lower bound after each iteration, and the strip between them.

    Parameters
    ----------
    history : History
        Of a result.
    ax : matplotlib Axes
        Where to draw.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.kernels_core import History
    >>> from kernelweave.workbench import plot_convergence
    >>> history = History()
    >>> history.append(lower=0.0, upper=2.0, value=2.0, seconds=0.1, counts={})
    >>> plot_convergence(history, Figure().subplots())
    """
    n = np.arange(len(history))
    lower, upper = np.array(history.lower), np.array(history.upper)
    shown = np.isfinite(lower)
    ax.fill_between(n[shown], lower[shown], upper[shown], color=FAINT, alpha=0.25, linewidth=0)
    ax.plot(n, upper, color=UPPER, marker="v", markersize=4, label="upper bound (primal)")
    ax.plot(n[shown], lower[shown], color=LOWER, marker="^", markersize=4, label="lower bound")
    _focus(ax, lower[shown], upper)
    ax.set_ylabel("objective")
    ax.legend(frameon=False)
    _whole_numbers(ax)


def _focus(ax: Any, lower: Any, upper: Any) -> None:
    """Let the first lower bounds leave the picture where they would flatten all the others."""
    if len(lower) == 0:
        return
    end = upper[-1]
    reach = 1.15 * max(upper.max() - end, end - np.median(lower))
    if lower.min() < end - 1.5 * reach:
        ax.set_ylim(end - reach, end + reach)


def plot_gap(history: History, tol: float, ax: Any) -> None:
    """Draw the relative gap after each iteration on a logarithmic axis.

    Parameters
    ----------
    history : History
        Of a result.
    tol : float
        The gap asked for, drawn as a line.
    ax : matplotlib Axes
        Where to draw.
    """
    gap = history.gap
    shown = np.isfinite(gap) & (gap > 0)
    ax.semilogy(np.arange(len(gap))[shown], gap[shown], color=GAP, marker="o", markersize=3)
    if tol > 0:
        ax.axhline(tol, color=FAINT, linestyle="--", linewidth=1)
        place = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "bottom"}
        ax.annotate(f"asked for: {tol:g}", (0.01, tol), color=GAP, fontsize=8, **place)
    ax.set_xlabel("iteration")
    ax.set_ylabel("relative gap")
    _whole_numbers(ax)


def _whole_numbers(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.2)
