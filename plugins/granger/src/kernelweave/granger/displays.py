"""A picture of the causal graph: edges that pass a test or, without a test, the heaviest ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Vector

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .graph import GrangerGraph

# a row of the table of edges
_Edge: TypeAlias = Mapping[Hashable, Any]
# colours of arrows by the sign of the effect, and their names in the legend
COLOURS = {"+": "#0072B2", "-": "#D55E00", "±": "#7A5195", "": "#4D4D4D"}
MEANINGS = {"+": "+ raises", "-": "- lowers", "±": "± raises or lowers", "": "no effect"}
# of edges below the gap, of the outlines of nodes, and the fill of nodes that drive themselves most
FAINT, RIM, WARM = "#C9C9C9", "#5A5A5A", "#E69F00"
_NAMED_OUTSIDE = 15  # with more nodes, names are turned like spokes and lags are in the legend only
_LABELLED = 30  # with more edges, lags are in the legend only; with more nodes, lines are thinner
_FAINT_PER_NODE = 3  # most edges below the gap that are drawn, times the number of nodes


def above_the_gap(weights: npt.ArrayLike) -> int:
    """Return how many weights lie above the largest gap between neighbours in sorted order.

    `weights` of shape (n_edges,), at least 0. The gap between the smallest one and 0 counts too.

    Examples
    --------
    >>> from kernelweave.granger.displays import above_the_gap
    >>> above_the_gap([0.9, 0.2, 0.8, 0.1])
    2
    """
    falling = np.append(-np.sort(-np.asarray(weights, dtype=np.float64)), 0.0)
    return int(np.diff(-falling).argmax()) + 1 if len(falling) > 1 else 0


class CausalGraphDisplay:
    """Causal graph with nodes on a circle and an arrow from source to target for each edge.

    With p-values, only the edges that pass the test are drawn. Without, nothing is tested and the
    title says "unscreened": edges above the largest gap of the sorted weights are drawn in colour,
    the next ones in grey. The colour of an arrow shows the sign of the effect, its width the
    weight, the number on it the lag, and the fill of a node how much it drives itself.

    Parameters
    ----------
    edges : DataFrame
        Table of edges with the columns of ``GrangerGraph.edges_``; with a column ``passes`` the
        edges are tested.
    names : sequence of str
        Names of the nodes, clockwise from the top.
    self_weights : array-like of shape (n_nodes,), optional
        How much each node drives itself.
    tested : str, default=""
        The test, for the title: "3 edges pass" is followed by it, such as ``"at level 0.05"``.

    Attributes
    ----------
    edges_ : DataFrame
        The edges that are drawn in colour.
    below_ : DataFrame
        The edges that are drawn in grey.
    ax_ : matplotlib Axes
        The axes of the last drawing.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.granger import CausalGraphDisplay
    >>> row = {"source": "rain", "target": "price", "lag": 2, "effect": "-", "weight": 0.5}
    >>> display = CausalGraphDisplay(pd.DataFrame([row]), ["price", "rain"]).plot()
    >>> display.ax_.get_title()
    'unscreened: 1 edge above the largest gap'
    """

    def __init__(
        self,
        edges: pd.DataFrame,
        names: Sequence[str],
        *,
        self_weights: npt.ArrayLike | None = None,
        tested: str = "",
    ) -> None:
        self.names = list(map(str, names))
        unknown = {*edges["source"], *edges["target"]} - set(self.names)
        if unknown:
            raise ValueError(f"edges name {sorted(unknown)[0]!r}, which is none of names")
        self.edges = edges
        self.self_weights = None if self_weights is None else np.asarray(self_weights, dtype=float)
        if self.self_weights is not None and self.self_weights.shape != (len(self.names),):
            raise ValueError(
                f"self_weights must have shape {(len(self.names),)}, got {self.self_weights.shape}"
            )
        self.tested = tested

    @classmethod
    def from_estimator(
        cls, estimator: GrangerGraph, *, ax: Axes | None = None
    ) -> CausalGraphDisplay:
        """Draw the graph that an estimator has learned.

        Parameters
        ----------
        estimator : GrangerGraph
            Fitted estimator.
        ax : matplotlib Axes or None, default=None
            Axes to draw on, as in `plot`.

        Returns
        -------
        CausalGraphDisplay
            The display, already drawn.
        """
        tested = f"at level {estimator.level:g} ({estimator.n_draws_} draws)"
        weights = np.diag(estimator.graph_)
        display = cls(estimator.edges_, estimator.group_names_, self_weights=weights, tested=tested)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> CausalGraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on; by default those of a new figure, larger for more nodes.

        Returns
        -------
        CausalGraphDisplay
            The display itself.
        """
        n = len(self.names)
        new: Figure | None = None
        if ax is None:
            import matplotlib.pyplot as plt

            side = float(np.clip(3.6 + 0.09 * n, 4.2, 11.0))
            new, ax = plt.subplots(figsize=(side, side + 0.5), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_title(self._divide(), fontsize=9, pad=self._room())
        self._place = _circle(n)
        ax.set_aspect("equal")
        ax.set_xlim(-1.06, 1.06)
        ax.set_ylim(-1.06, 1.06)
        ax.set_axis_off()
        # radius of a node in points: less for many nodes, so that they fit on the circle
        self._radius = float(np.clip(90.0 / max(n, 1), 2.0, 9.0))
        self._draw_edges()
        self._draw_nodes()
        self._draw_legend()
        if new is not None:
            # The first layout measures title and legend before the aspect is made equal.
            new.draw_without_rendering()
        return self

    def _divide(self) -> str:
        """Set ``edges_``, drawn in colour, and ``below_``, drawn in grey; return the title."""
        edges = self.edges
        if "passes" in edges:
            self.edges_, self.below_ = edges[edges["passes"]], edges[:0]
            many = "edge passes" if len(self.edges_) == 1 else "edges pass"
            return f"{len(self.edges_)} {many} {self.tested}".rstrip()
        falling = edges.sort_values("weight", ascending=False, kind="stable")
        above = above_the_gap(falling["weight"])
        self.edges_ = falling[:above]
        self.below_ = falling[above : above + _FAINT_PER_NODE * len(self.names)]
        many = "edge" if above == 1 else "edges"
        return f"unscreened: {above} {many} above the largest gap"

    def _room(self) -> float:
        """Return the height in points that names need above and below the circle."""
        n = len(self.names)
        if n <= _NAMED_OUTSIDE:
            return 22.0
        # names stand on end here; a letter is about 0.62 of the font size wide
        return 14.0 + 0.62 * _name_size(n) * max(map(len, self.names))

    def _draw_edges(self) -> None:
        heaviest = max(self.edges["weight"], default=1.0)
        for row in self.below_.to_dict("records"):
            self._arrow(row, FAINT, 0.6, 1)
        labelled = len(self.edges_) <= _LABELLED and len(self.names) <= _NAMED_OUTSIDE
        several = self.edges["lag"].nunique() > 1
        for row in self.edges_.to_dict("records"):
            width = self._width(row["weight"] / heaviest)
            self._arrow(row, COLOURS[row["effect"]], width, 2)
            if labelled and several:
                self._label(row)
        self._labels_shown = labelled and several

    def _width(self, share: float) -> float:
        """Return a line width in points; `share`: the weight divided by the largest one."""
        crowd = 1.0 if len(self.names) <= _LABELLED else 0.5
        return crowd * (0.7 + 2.8 * share)

    def _ends(self, row: _Edge) -> tuple[Vector, Vector]:
        """Return the places of an edge's source and target, each of shape (2,)."""
        start, end = (self._place[self.names.index(row[each])] for each in ("source", "target"))
        return start, end

    def _arrow(self, row: _Edge, colour: str, width: float, order: int) -> None:
        from matplotlib.patches import FancyArrowPatch

        start, end = self._ends(row)
        arrow = FancyArrowPatch(
            tuple(start),
            tuple(end),
            connectionstyle=f"arc3,rad={self._bend(start, end, row)}",
            arrowstyle="-|>",
            mutation_scale=6.0 + 2.0 * width if len(self.names) <= 40 else 4.0 + width,
            shrinkA=self._radius,
            shrinkB=self._radius,
            color=colour,
            linewidth=width,
            alpha=0.9,
            zorder=order,
            clip_on=False,
        )
        self.ax_.add_patch(arrow)

    def _bend(self, start: Vector, end: Vector, row: _Edge) -> float:
        """Return the bend of an arrow, see `_BEND`; with many nodes always towards the centre."""
        if len(self.names) <= _NAMED_OUTSIDE:
            return _BEND
        along, middle = end - start, 0.5 * (start + end)
        inwards = -float(np.sign(along[1] * middle[0] - along[0] * middle[1])) or 1.0
        # Both directions between two nodes bend the same way here: by different amounts.
        return inwards * (_BEND if str(row["source"]) < str(row["target"]) else 2.0 * _BEND)

    def _label(self, row: _Edge) -> None:
        """Write the lag on an edge, nearer its source, where fewer edges cross."""
        start, end = self._ends(row)
        along = end - start
        # control point of the quadratic Bézier curve that matplotlib draws
        control = 0.5 * (start + end) + _BEND * np.array([along[1], -along[0]])
        t = _LABEL_AT
        x, y = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
        self.ax_.text(
            x,
            y,
            str(row["lag"]),
            fontsize=7,
            color=COLOURS[row["effect"]],
            ha="center",
            va="center",
            zorder=4,
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        )

    def _draw_nodes(self) -> None:
        n = len(self.names)
        shade = np.zeros(n) if self.self_weights is None else self.self_weights
        self._most = float(shade.max(initial=0.0)) or 1.0
        self.ax_.scatter(
            self._place[:, 0],
            self._place[:, 1],
            s=(2.0 * self._radius) ** 2,
            c=[_fill(each / self._most) for each in shade],
            edgecolors=RIM,
            linewidths=0.8 if n <= 40 else 0.4,
            zorder=3,
            clip_on=False,
        )
        size = _name_size(n)
        for name, (x, y) in zip(self.names, self._place, strict=True):
            upright = n <= _NAMED_OUTSIDE
            angle = float(np.degrees(np.arctan2(y, x)))
            left = x < -1e-9
            far = self._radius + 3.0
            self.ax_.annotate(
                name,
                (x, y),
                (far * x, far * y),
                textcoords="offset points",
                ha=_toward(x, "right", "left") if upright else "right" if left else "left",
                va=_toward(y, "top", "bottom") if upright else "center",
                rotation=0.0 if upright else angle - 180.0 * np.sign(angle) * left,
                rotation_mode="anchor",
                fontsize=size,
            )

    def _draw_legend(self) -> None:
        from matplotlib.lines import Line2D

        def line(colour: str, width: float, label: str) -> Line2D:
            return Line2D([], [], color=colour, linewidth=width, label=label)

        def dot(share: float, label: str) -> Line2D:
            return Line2D(
                [],
                [],
                marker="o",
                linestyle="none",
                markersize=7,
                markeredgecolor=RIM,
                markerfacecolor=_fill(share),
                label=label,
            )

        drawn = self.edges_
        shown = [
            line(COLOURS[sign], 1.8, MEANINGS[sign])
            for sign in COLOURS
            if (drawn["effect"] == sign).any()
        ]
        if len(drawn):
            heaviest = max(self.edges["weight"])
            shown.append(line(RIM, self._width(1.0), f"weight {heaviest:.2g}"))
            shown.append(line(RIM, self._width(0.5), f"weight {heaviest / 2:.2g}"))
            lags = sorted(set(drawn["lag"]))
            text = "number: lag" if self._labels_shown else f"lags {', '.join(map(str, lags))}"
            shown.append(line("none", 0.0, text if len(lags) > 1 else f"lag {lags[0]}"))
        if len(self.below_):
            shown.append(line(FAINT, 1.0, "below the gap"))
        if self.self_weights is not None:
            if self.self_weights.any():
                shown.append(dot(1.0, f"drives itself, {self._most:.2g}"))
                shown.append(dot(0.0, "does not"))
            else:
                shown.append(dot(0.0, "does not drive itself"))
        if shown:
            self.ax_.legend(
                handles=shown,
                ncols=3,
                fontsize=7,
                frameon=False,
                loc="upper center",
                bbox_to_anchor=(0.5, 0.0),
                borderaxespad=self._room() / 7.0,
            )


# Bend of an arrow: its control point lies this far from the middle of the straight line, as a share
# of that line's length. Enough that the arrows i → j and j → i do not cover each other.
_BEND = 0.14
# Where a lag is written, as a share of the way from source to target: not in the middle, where more
# edges cross.
_LABEL_AT = 0.3


def _circle(n: int) -> npt.NDArray[np.float64]:
    """Return n places on the unit circle, clockwise from the top, shape (n, 2)."""
    angle = np.pi / 2 - 2.0 * np.pi * np.arange(n) / max(n, 1)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _name_size(n: int) -> float:
    """Return the font size of the names of n nodes."""
    return 8.5 if n <= _NAMED_OUTSIDE else float(np.clip(200.0 / n, 4.5, 7.5))


def _toward(offset: float, below: str, above: str) -> str:
    """Return an alignment by the sign of a coordinate of a node; "center" where it is near 0."""
    return "center" if abs(offset) < 0.1 else above if offset > 0 else below


def _fill(share: float) -> tuple[float, float, float]:
    """Return the fill of a node: white for a share of 0, orange for 1, mixed in between."""
    from matplotlib.colors import to_rgb

    white, warm = np.ones(3), np.array(to_rgb(WARM))
    red, green, blue = (white + float(np.clip(share, 0.0, 1.0)) * (warm - white)).tolist()
    return red, green, blue
