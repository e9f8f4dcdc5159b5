"""A picture of the causal graph: edges that pass a test or, without a test, the heaviest ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .graph import GrangerGraph

# colours of arrows by the sign of the effect, and their names in the legend
COLOURS = {"+": "#0072B2", "-": "#D55E00", "±": "#7A5195", "": "#4D4D4D"}
MEANINGS = {"+": "+ raises", "-": "- lowers", "±": "± raises or lowers", "": "no effect"}
# of edges below the gap, of the outlines of nodes, and the fill of nodes that drive themselves most
FAINT, RIM, WARM = "#C9C9C9", "#5A5A5A", "#E69F00"
_NAMED_OUTSIDE = 15  # with more nodes, names are turned like spokes and lags are in the legend only
_LABELLED = 30  # with more edges, lags are in the legend only; with more nodes, lines are thinner
_FAINT_PER_NODE = 3  # most edges below the gap that are drawn, times the number of nodes
_BEND = "arc3,rad=0.14"  # of arrows: i → j and j → i do not cover each other
_LABEL_AT = 0.7  # of the way back from the target, where fewer edges cross than in the middle


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
    weight, the number on it the lag, and the fill of a node how much it drives itself. For other
    layouts and styles, ``GrangerGraph.to_networkx`` gives the graph to networkx.

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

    Raises
    ------
    ValueError
        If an edge names a node that is none of ``names``, or ``self_weights`` has another length.

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
        if ax is None:
            import matplotlib.pyplot as plt

            side = float(np.clip(3.6 + 0.09 * n, 4.2, 11.0))
            _, ax = plt.subplots(figsize=(side, side + 0.5), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        ax.set_title(self._divide(), fontsize=9, pad=self._room())
        angles = np.pi / 2 - 2.0 * np.pi * np.arange(n) / max(n, 1)
        self._place = {
            name: (np.cos(angle), np.sin(angle))
            for name, angle in zip(self.names, angles, strict=True)
        }
        # radius of a node in points: less for many nodes, so that they fit on the circle
        self._radius = float(np.clip(90.0 / max(n, 1), 2.0, 9.0))
        self._draw_edges()
        self._draw_nodes()
        self._draw_legend()
        ax.set(aspect="equal", xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))
        ax.set_axis_off()
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
        """Draw the arrows, and the lags on them where there are several and room for them."""
        import networkx as nx

        share = self.edges_["weight"] / max(self.edges["weight"], default=1.0)
        crowd = 1.0 if len(self.names) <= _LABELLED else 0.5
        widths = (crowd * (0.7 + 2.8 * share)).tolist()
        self._arrows(self.below_, [FAINT] * len(self.below_), [0.6] * len(self.below_))
        self._arrows(self.edges_, self.edges_["effect"].map(COLOURS).tolist(), widths)
        few = len(self.edges_) <= _LABELLED and len(self.names) <= _NAMED_OUTSIDE
        self._has_lags = few and self.edges["lag"].nunique() > 1
        if self._has_lags:
            ends = self.edges_.groupby(["source", "target"], sort=False)["lag"]
            texts = ends.agg(lambda lags: ", ".join(map(str, lags))).to_dict()
            nx.draw_networkx_edge_labels(
                nx.DiGraph(list(texts)),
                self._place,
                texts,
                label_pos=_LABEL_AT,
                rotate=False,
                connectionstyle=_BEND,
                font_size=7,
                ax=self.ax_,
                node_size=(2.0 * self._radius) ** 2,
                bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )

    def _arrows(self, edges: pd.DataFrame, colours: list[str], widths: list[float]) -> None:
        import networkx as nx

        ends = list(zip(edges["source"], edges["target"], strict=True))
        nx.draw_networkx_edges(
            nx.DiGraph(ends),
            self._place,
            ends,
            width=widths,
            edge_color=colours,
            arrowsize=10,
            node_size=(2.0 * self._radius) ** 2,
            connectionstyle=_BEND,
            ax=self.ax_,
        )

    def _draw_nodes(self) -> None:
        """Draw nodes, filled by how much they drive themselves, and their names outside."""
        from matplotlib.colors import LinearSegmentedColormap

        n = len(self.names)
        shade = np.zeros(n) if self.self_weights is None else self.self_weights
        self._most = float(shade.max(initial=0.0))
        places = np.array(list(self._place.values()), dtype=float).reshape(n, 2)
        self.ax_.scatter(
            x=places[:, 0],
            y=places[:, 1],
            s=(2.0 * self._radius) ** 2,
            c=shade,
            cmap=LinearSegmentedColormap.from_list("", ["white", WARM]),
            vmin=0.0,
            vmax=self._most or 1.0,
            edgecolors=RIM,
            linewidths=0.8 if n <= 40 else 0.4,
            zorder=3,
            clip_on=False,
        )
        upright, far = n <= _NAMED_OUTSIDE, self._radius + 3.0
        for name, (x, y) in self._place.items():
            angle, left = float(np.degrees(np.arctan2(y, x))), x < -1e-9
            across = ("right" if left else "left") if abs(x) > 0.1 or not upright else "center"
            along = ("top" if y < 0.0 else "bottom") if abs(y) > 0.1 and upright else "center"
            self.ax_.annotate(
                name,
                (x, y),
                (far * x, far * y),
                textcoords="offset points",
                ha=across,
                va=along,
                rotation=0.0 if upright else angle - 180.0 * np.sign(angle) * left,
                rotation_mode="anchor",
                fontsize=_name_size(n),
            )

    def _draw_legend(self) -> None:
        from matplotlib.lines import Line2D

        drawn = self.edges_
        of_effects = [sign for sign in COLOURS if (drawn["effect"] == sign).any()]
        lines = [(COLOURS[sign], MEANINGS[sign]) for sign in of_effects]
        if len(drawn):
            lags = sorted(set(drawn["lag"]))
            several = "number: lag" if self._has_lags else f"lags {', '.join(map(str, lags))}"
            lines.append(("none", f"widest: weight {max(self.edges['weight']):.2g}"))
            lines.append(("none", several if len(lags) > 1 else f"lag {lags[0]}"))
        if len(self.below_):
            lines.append((FAINT, "below the gap"))
        shown = [Line2D([], [], color=colour, linewidth=1.8, label=text) for colour, text in lines]
        if self.self_weights is not None:
            fill, text = WARM, f"drives itself, {self._most:.2g}"
            if not self._most:
                fill, text = "white", "does not drive itself"
            look: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": RIM}
            shown.append(Line2D([], [], markerfacecolor=fill, label=text, **look))
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


def _name_size(n: int) -> float:
    """Return the font size of the names of n nodes."""
    return 8.5 if n <= _NAMED_OUTSIDE else float(np.clip(200.0 / n, 4.5, 7.5))
