"""Axes as wide as a column of a paper, and colours that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


# Colours, most of them Okabe and Ito's: of upper and lower bounds (LOWER is also that of a picture
# with one colour), of the gap between bounds, and of lines and marks in the background.
UPPER = "#D55E00"
LOWER = "#0072B2"
GAP = "#333333"
FAINT = "#8C8C8C"
# colour maps of heat maps: DIVERGING for values of both signs
HEAT = "cividis"
DIVERGING = "PuOr"
# Line styles of the series of a plot, which markers and dashes also tell apart in black and white.
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

# Width of a column of a paper in inches, and size of its text in points.
COLUMN = 3.5
_TEXT = 8


@contextmanager
def on_axes(ax: Axes | None = None, *, height: float = 2.6) -> Iterator[Any]:
    """Yield the given axes, or those of a new figure 3.5 inches wide with text of 8 points.

    A new figure, ``height`` inches high, is made by pyplot, so that ``plt.show()`` shows it.
    """
    if ax is not None:
        yield ax
        return
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context({"font.size": _TEXT, "axes.titlesize": _TEXT + 1}):
        figure, ax = plt.subplots(figsize=(COLUMN, height), layout="constrained")
        yield ax
        # ticks that are only made when the figure is drawn, after this context, need their size too
        for each in figure.axes:
            each.tick_params(labelsize=_TEXT)
        # The constrained layout is wrong the first time: it measures rotated labels before they are
        # placed. Drawing once here makes the next layout right.
        figure.draw_without_rendering()


def open_frame(ax: Axes, grid: Literal["both", "x", "y"] | None = "both") -> None:
    """Hide the top and right spines; draw faint grid lines of these axes, none if ``None``."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, alpha=0.2)
        ax.set_axisbelow(True)


def write_thousands(axis: Axis) -> None:
    """Write ticks from 10,000 to 10 billion in full: "1e6" at the end of an axis is overlooked."""
    from matplotlib.ticker import StrMethodFormatter

    if 1e4 <= max(map(abs, axis.get_view_interval())) < 1e10:
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
