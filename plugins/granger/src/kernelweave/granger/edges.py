"""The edges of a graph as a table, and as a graph of networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix

from .target import Effects

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


def edge_table(
    names: list[str],
    weights: npt.NDArray[np.float64],
    effects: Effects,
    p: Matrix | None = None,
    adjusted: Matrix | None = None,
    level: float = 0.05,
) -> pd.DataFrame:
    """Return a row per edge of positive weight between different groups, see `edges_`.

    `weights` of shape (n_groups, n_groups, n_lags or 1); `p`, `adjusted`: likewise, an edge passing
    where the latter is at most `level`. Where lags have no weights of their own, the lag is that of
    the strongest effect.
    """
    import pandas as pd

    there = (weights > 0.0) & ~np.eye(len(names), dtype=bool)[:, :, None]
    targets, sources, slots = (each.tolist() for each in np.nonzero(there))
    at = slots if weights.shape[2] == len(effects.lags) else effects.lag()[targets, sources]
    columns: dict[str, object] = {
        "source": [names[j] for j in sources],
        "target": [names[i] for i in targets],
        "lag": [effects.lags[k] for k in at],
        "effect": effects.signs()[targets, sources, at].tolist(),
        "weight": weights[there],
    }
    order, ascending = ["weight"], [False]
    if p is not None and adjusted is not None:
        columns["p_value"] = p[there]
        columns["adjusted_p_value"] = adjusted[there]
        columns["passes"] = adjusted[there] <= level
        order, ascending = ["p_value", "weight"], [True, False]
    table = pd.DataFrame(columns)
    return table.sort_values(order, ascending=ascending, kind="stable", ignore_index=True)


def passing_edges(edges: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table of edges that pass, all of them without p-values."""
    kept = edges[edges["passes"]] if "passes" in edges else edges
    return [{str(k): value for k, value in row.items()} for row in kept.to_dict("records")]


def as_networkx(names: list[str], graph: Matrix, edges: pd.DataFrame) -> nx.MultiDiGraph:
    """Return nodes with the weight of their own past, and the edges that pass, keyed by lag."""
    import networkx as nx

    out = nx.MultiDiGraph()
    for name, weight in zip(names, np.diag(graph).tolist(), strict=True):
        out.add_node(name, self_weight=weight)
    for row in passing_edges(edges):
        source, target = row.pop("source"), row.pop("target")
        out.add_edge(source, target, key=int(row["lag"]), **row)
    return out
