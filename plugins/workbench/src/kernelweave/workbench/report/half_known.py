"""Pictures of targets known by half: limits, ranges, and times up to an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..displays.axes import FAINT, LOWER, UPPER, open_frame, write_thousands
from ..pages import Picture, picture
from .evaluation import HeldOutEvaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 2000
# targets that are spread over more than this have logarithmic axes
_WIDE = 30.0


def half_known_pictures(tested: HeldOutEvaluation) -> list[Picture]:
    """Return the pictures of predictions beside what is known of their targets.

    There are no residuals: those of limits are not known.
    """
    assert tested.held_out.ends is not None
    low, high = tested.held_out.ends.T
    marks = {
        "a point where the target is known": low == high,
        "an arrow up where it is only known to be larger": np.isposinf(high),
        "an arrow down where it is only known to be smaller": np.isneginf(low),
        "a bar where it is in a range": np.isfinite(low) & np.isfinite(high) & (low < high),
    }
    shown = ", ".join(mark for mark, rows in marks.items() if rows.any())
    text = (
        f"Each row is {shown}. On the grey line the prediction, a median, is exact; an arrow that "
        f"points to the line agrees with it. Computed on {tested.rows}."
    )
    return [picture("Predicted values and what is known", text, lambda at: _draw_known(tested, at))]


def _draw_known(tested: HeldOutEvaluation, figure: Figure) -> None:
    """Draw the rows, an even choice of them where they are many."""
    from matplotlib.ticker import MaxNLocator

    held_out = tested.held_out
    assert held_out.ends is not None
    n = len(tested.y)
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.intp))
    predicted = held_out.predicted[rows].astype(np.float64)
    low, high = held_out.ends[rows].T
    known, above, below = low == high, np.isposinf(high), np.isneginf(low)
    between = ~(known | above | below)
    ax = figure.subplots()
    shape: dict[str, Any] = {"s": 14, "alpha": 0.6, "linewidths": 0.0}
    ax.scatter(predicted[known], low[known], color=LOWER, label="known", **shape)
    shape |= {"s": 26}
    if above.any():
        ax.scatter(predicted[above], low[above], color=UPPER, marker="^", label="at least", **shape)
    if below.any():
        ax.scatter(predicted[below], high[below], color=UPPER, marker="v", label="at most", **shape)
    if between.any():
        ends = low[between], high[between]
        ax.vlines(predicted[between], *ends, color=UPPER, alpha=0.55, label="in a range")
    shown = np.concatenate([predicted, low[np.isfinite(low)], high[np.isfinite(high)]])
    is_wide = shown.min() > 0.0 and shown.max() > _WIDE * shown.min()
    if is_wide:
        ax.set(xscale="log", yscale="log")
    ends_of_line = [shown.min(), shown.max()]
    ax.plot(ends_of_line, ends_of_line, color=FAINT, linewidth=1, zorder=0)
    ax.set(xlabel="predicted median", ylabel="what is known of the target")
    if not is_wide:
        for axis, parts in ((ax.xaxis, 5), (ax.yaxis, 6)):
            axis.set_major_locator(MaxNLocator(parts))
            write_thousands(axis)
    ax.legend(frameon=False, fontsize=8, markerscale=1.5)
    open_frame(ax)
