"""Pictures: the graph, its weights, and how the nodes of a group go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .graph import GrangerGraph

HEAT = "cividis"
EDGE, WEAK, NODE = "#0072B2", "#8C8C8C", "#F0E442"


def strongest(graph: npt.NDArray[np.float64], n_edges: int) -> list[tuple[int, int, float]]:
    """Return the heaviest edges between different groups, as (target, source, weight).

    Parameters
    ----------
    graph : ndarray of shape (n_groups, n_groups)
        Weights.
    n_edges : int
        How many at most.

    Returns
    -------
    list of (int, int, float)
        Descending, without zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.displays import strongest
    >>> strongest(np.array([[9.0, 2.0], [0.0, 9.0]]), 3)
    [(0, 1, 2.0)]
    """
    pairs = [
        (i, j, float(graph[i, j]))
        for i in range(len(graph))
        for j in range(len(graph))
        if i != j and graph[i, j] > 0
    ]
    return sorted(pairs, key=lambda each: -each[2])[:n_edges]


class CausalGraphDisplay:
    """Groups on a circle and the heaviest arrows between them, from driver to driven.

    Parameters
    ----------
    graph : array-like of shape (n_groups, n_groups)
        Weight of the edge to the row's group from the column's.
    names : sequence of str
        Of the groups.
    p_values : array-like of shape (n_groups, n_groups) or None, default=None
        Of the edges.
    n_draws : int or None, default=None
        Permutations behind the p-values, for the title.

    Attributes
    ----------
    edges_ : list of (int, int, float)
        Target, source and weight of what is drawn, the heaviest first.
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.

    Examples
    --------
    >>> from kernelweave.granger import CausalGraphDisplay
    >>> display = CausalGraphDisplay([[1.0, 0.5], [0.0, 1.0]], ["price", "rain"]).plot()
    >>> display.edges_
    [(0, 1, 0.5)]
    """

    def __init__(
        self,
        graph: npt.ArrayLike,
        names: Sequence[str],
        *,
        p_values: npt.ArrayLike | None = None,
        n_draws: int | None = None,
    ) -> None:
        self.graph = np.asarray(graph, dtype=np.float64)
        if self.graph.shape != (len(names), len(names)):
            raise ValueError(
                f"graph must have shape {(len(names), len(names))}, got {self.graph.shape}"
            )
        self.names = list(map(str, names))
        self.p_values = None if p_values is None else np.asarray(p_values, dtype=np.float64)
        self.n_draws = n_draws

    @classmethod
    def from_estimator(
        cls,
        estimator: GrangerGraph,
        *,
        n_edges: int = 20,
        max_p_value: float | None = None,
        ax: Any = None,
    ) -> CausalGraphDisplay:
        """Draw the graph of a fit.

        Parameters
        ----------
        estimator : GrangerGraph
            Fitted.
        n_edges, max_p_value, ax
            As in `plot`.

        Returns
        -------
        CausalGraphDisplay
            Drawn.
        """
        display = cls(
            estimator.graph_,
            estimator.group_names_,
            p_values=estimator.p_values_,
            n_draws=estimator.n_draws_,
        )
        return display.plot(n_edges=n_edges, max_p_value=max_p_value, ax=ax)

    def plot(
        self, *, n_edges: int = 20, max_p_value: float | None = None, ax: Any = None
    ) -> CausalGraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        n_edges : int, default=20
            Arrows at most; width follows weight.
        max_p_value : float, optional
            Leaves out edges of larger p-value; the title then names the draws.
        ax : matplotlib Axes or None, default=None
            Where; a new figure 3.5 inches wide without it.

        Returns
        -------
        CausalGraphDisplay
            Itself.

        Raises
        ------
        ValueError
            If ``max_p_value`` is given and there are no p-values.
        """
        graph = self.graph.copy()
        if max_p_value is not None:
            if self.p_values is None:
                raise ValueError("max_p_value needs p-values: fit with significance='permutation'")
            graph[~(self.p_values <= max_p_value)] = 0.0
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.edges_ = strongest(graph, n_edges)
        self._draw()
        title = f"{len(self.edges_)} heaviest edges"
        if max_p_value is not None:
            title += f" with p ≤ {max_p_value:g} ({self.n_draws} draws)"
        ax.set_title(title)
        return self

    def _draw(self) -> None:
        import networkx as nx

        drawing: Any = nx.DiGraph()
        drawing.add_nodes_from(range(len(self.graph)))
        drawing.add_weighted_edges_from([(source, target, w) for target, source, w in self.edges_])
        place = nx.circular_layout(drawing)
        widest = max((w for *_, w in self.edges_), default=1.0)
        ax = self.ax_
        nx.draw_networkx_nodes(drawing, place, ax=ax, node_color=NODE, edgecolors=WEAK)
        self._name_nodes(place)
        nx.draw_networkx_edges(
            drawing,
            place,
            ax=ax,
            edge_color=EDGE,
            width=[0.5 + 3.0 * drawing.edges[each]["weight"] / widest for each in drawing.edges],
            connectionstyle="arc3,rad=0.12",
        )
        ax.margins(0.15)
        ax.set_axis_off()

    def _name_nodes(self, place: dict[int, npt.NDArray[np.float64]]) -> None:
        """Write each name outside the circle, where it hides neither node nor arrow."""
        for node, name in enumerate(self.names):
            x, y = place[node] if len(self.names) > 1 else (0.0, 1.0)
            self.ax_.annotate(
                name,
                place[node],
                (12.0 * x, 12.0 * y),
                textcoords="offset points",
                ha="center" if abs(x) < 0.1 else "left" if x > 0 else "right",
                va="center" if abs(y) < 0.1 else "bottom" if y > 0 else "top",
                fontsize=8,
            )


def plot_weights(model: GrangerGraph, ax: Any) -> None:
    """Draw the weight matrix: targets down, drivers across; a dot marks p ≤ 0.05.

    Parameters
    ----------
    model : GrangerGraph
        Fitted.
    ax : matplotlib Axes
        Where to draw; a colour bar is added beside it.
    """
    image = ax.imshow(model.graph_, cmap=HEAT, vmin=0.0)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.set_label("weight")
    _name_axes(ax, model.group_names_)
    ax.set_xlabel("drives")
    ax.set_ylabel("is driven")
    if model.p_values_ is not None:
        rows, columns = np.nonzero(model.p_values_ <= 0.05)
        ax.plot(columns, rows, "o", color="white", markeredgecolor="black", markersize=4)
        what = "p" if model.significance == "permutation" else "error rate"
        ax.set_title(f"dots: {what} ≤ 0.05 for the edge, {model.n_draws_} draws")


def plot_output_kernel(model: GrangerGraph, group: str, ax: Any) -> None:
    """Draw the output kernel of one target group.

    Parameters
    ----------
    model : GrangerGraph
        Fitted.
    group : str
        Its name.
    ax : matplotlib Axes
        Where to draw; a colour bar is added beside it.

    Raises
    ------
    ValueError
        If there is no such group.
    """
    if group not in model.targets_:
        raise ValueError(f"group must be one of {', '.join(model.targets_)}, got {group!r}")
    at = model.targets_.index(group)
    L, nodes = model.output_kernels_[at], model._columns[at]
    limit = float(np.abs(L).max()) or 1.0
    image = ax.imshow(L, cmap="PuOr", vmin=-limit, vmax=limit)
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    _name_axes(ax, [str(names[node]) for node in nodes])
    ax.set_title(f"output kernel of {group}")


def _name_axes(ax: Any, names: list[str]) -> None:
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
