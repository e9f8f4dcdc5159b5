"""Pictures beside the graph: all weights, how the nodes of a group go together, one effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.checks import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .graph import GrangerGraph

HEAT = "cividis"
_NAMED = 40  # nodes whose names have room on an axis


def plot_weights(model: GrangerGraph, ax: Axes) -> None:
    """Draw the weight matrix: targets down, drivers across; a dot marks edges that pass.

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
    if model.adjusted_p_values_ is not None:
        rows, columns = np.nonzero(model.adjusted_p_values_ <= model.level)
        size = float(np.clip(80.0 / len(model.graph_), 1.0, 4.0))
        ax.plot(columns, rows, "o", color="white", markeredgecolor="black", markersize=size)
        what = "adjusted p" if model.significance == "permutation" else "expected false edges"
        ax.set_title(f"dots: {what} ≤ {model.level:g}, {model.n_draws_} draws", fontsize=9)


def plot_output_kernel(model: GrangerGraph, group: str, ax: Axes) -> None:
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
    one_of(*model.targets_).check("group", group)
    at = model.targets_.index(group)
    L, nodes = model.output_kernels_[at], model._columns[at]
    limit = float(np.abs(L).max()) or 1.0
    image = ax.imshow(L, cmap="PuOr", vmin=-limit, vmax=limit)
    ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    _name_axes(ax, [str(names[node]) for node in nodes])
    ax.set_title(f"output kernel of {group}")


def plot_effect(model: GrangerGraph, edge: Mapping[Any, Any], ax: Axes) -> None:
    """Draw what the source of an edge adds to the prediction of its target.

    Parameters
    ----------
    model : GrangerGraph
        Fitted.
    edge : mapping
        A row of ``edges_``: its ``source``, ``target`` and ``lag``.
    ax : matplotlib Axes
        Where to draw.

    Raises
    ------
    ValueError
        If there is no such edge.
    """
    from .displays import COLOURS

    for end in ("source", "target"):
        one_of(*model.group_names_).check(end, edge[end])
    source, target = (model.group_names_.index(edge[end]) for end in ("source", "target"))
    if edge["lag"] not in model.lags_:
        raise ValueError(f"lag must be one of {list(model.lags_)}, got {edge['lag']!r}")
    lag, effects = model.lags_.index(edge["lag"]), model.effects_
    colour = COLOURS[effects.sign(target, source, lag)]
    ax.axhline(0.0, color="#C9C9C9", linewidth=0.8)
    ax.plot(effects.values[source], effects.curves[target, source, lag], color=colour)
    steps = "step" if edge["lag"] == 1 else "steps"
    ax.set_xlabel(f"{edge['source']}, {edge['lag']} {steps} before", fontsize=8)
    ax.set_ylabel(f"adds to {edge['target']}", fontsize=8)
    ax.tick_params(labelsize=7)


def _name_axes(ax: Axes, names: list[str]) -> None:
    if len(names) > _NAMED:
        return
    size = float(np.clip(140.0 / max(len(names), 1), 5.0, 10.0))
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    ax.set_yticks(range(len(names)), names, fontsize=size)
