"""Axes to draw on, as wide as a column of a paper, and colours for all eyes (Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


UPPER = "#D55E00"
LOWER = "#0072B2"
GAP = "#333333"
FAINT = "#8C8C8C"
HEAT = "cividis"
DIVERGING = "PuOr"
# one style a series: told apart by marker and dash too
SERIES: tuple[dict[str, Any], ...] = tuple(
    {"color": color, "marker": marker, "markersize": 3, "linewidth": 1.2, "linestyle": line}
    for color, marker, line in (
        ("#0072B2", "o", "-"),
        ("#D55E00", "v", "--"),
        ("#009E73", "s", "-."),
        ("#CC79A7", "^", ":"),
        ("#E69F00", "D", "-"),
        ("#56B4E9", "P", "--"),
        ("#333333", "X", "-."),
    )
)

# Inches of a column of a paper, and points of its text.
COLUMN = 3.5
_TEXT = 8


@contextmanager
def on_axes(ax: Axes | None = None, *, height: float = 2.6) -> Iterator[Any]:
    """Yield the given axes, or those of a new figure 3.5 inches wide with text of 8 points.

    Its figure is known to pyplot if it is new, so that ``plt.show()`` shows it.
    """
    if ax is not None:
        yield ax
        return
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context({"font.size": _TEXT, "axes.titlesize": _TEXT + 1}):
        figure, ax = plt.subplots(figsize=(COLUMN, height), layout="constrained")
        yield ax
        # ticks that are made later, when the figure is drawn, take the size from here
        for each in figure.axes:
            each.tick_params(labelsize=_TEXT)
        # the first layout measures rotated labels before they are placed
        figure.draw_without_rendering()


def open_frame(ax: Axes, grid: Literal["both", "x", "y"] | None = "both") -> None:
    """Take away the upper and right spines and draw a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, alpha=0.2)
        ax.set_axisbelow(True)


def write_thousands(axis: Axis) -> None:
    """Write numbers from ten thousand on in full: a power of ten beside an axis is overlooked."""
    from matplotlib.ticker import StrMethodFormatter

    if 1e4 <= max(map(abs, axis.get_view_interval())) < 1e10:
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
