"""Edges as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix

from .effects import Effects

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
    """Return a row per edge of positive weight between different groups.

    - `names`: of the groups
    - `weights` of shape (n_groups, n_groups, n_lags or 1): of the edges to the first group from the
      second
    - `effects`: of the same edges
    - `p`, `adjusted`: p-values of each edge, and of all together
    - `level`: what an adjusted p-value must not exceed for an edge to pass

    ``source``, ``target``, ``lag``, of the strongest effect unless lags have weights of their own,
    ``effect`` (its sign) and ``weight``, the heaviest first; with p-values ``p_value``,
    ``adjusted_p_value`` and ``passes``, the smallest first.
    """
    import pandas as pd

    there = (weights > 0.0) & ~np.eye(len(names), dtype=bool)[:, :, None]
    targets, sources, slots = (each.tolist() for each in np.nonzero(there))
    at = slots if weights.shape[2] == len(effects.lags) else effects.lag()[targets, sources]
    edges = list(zip(targets, sources, at, strict=True))
    columns: dict[str, object] = {
        "source": [names[j] for j in sources],
        "target": [names[i] for i in targets],
        "lag": [effects.lags[k] for k in at],
        "effect": [effects.sign(*each) for each in edges],
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


def as_networkx(table: pd.DataFrame, names: list[str], self_weights: Matrix) -> nx.MultiDiGraph:
    """Return a directed multigraph of the edges of a table, keyed by lag.

    `table`: rows of `edge_table`; `names`: nodes; `self_weights` of shape (n_groups,): how much
    each drives itself. With the columns of the table as attributes of the edges, which all formats
    can write.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for name, weight in zip(names, self_weights.tolist(), strict=True):
        graph.add_node(name, self_weight=weight)
    for row in table.to_dict("records"):
        given = {str(name): value for name, value in row.items() if name not in _ENDS}
        graph.add_edge(row["source"], row["target"], key=int(row["lag"]), **given)
    return graph


def as_dot(table: pd.DataFrame, names: list[str]) -> str:
    """Return the edges of a table as text in the DOT language of Graphviz.

    `table`: rows of `edge_table`; `names`: nodes. A digraph; labels hold lag and sign, widths
    follow weights.
    """
    heaviest = max(table["weight"], default=1.0)
    lines = ["digraph {", *(f"  {_quoted(name)};" for name in names)]
    for row in table.to_dict("records"):
        label = f"{row['lag']} {row['effect']}".strip()
        width = 0.5 + 3.0 * row["weight"] / heaviest
        ends = f"{_quoted(row['source'])} -> {_quoted(row['target'])}"
        lines.append(f"  {ends} [label={_quoted(label)}, penwidth={width:.2f}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: object) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


_ENDS = ("source", "target")
