"""Edges as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .effects import Effects

if TYPE_CHECKING:
    import pandas as pd

Matrix = npt.NDArray[np.float64]


def edge_table(
    names: list[str],
    graph: Matrix,
    effects: Effects,
    p: Matrix | None = None,
    adjusted: Matrix | None = None,
    level: float = 0.05,
) -> pd.DataFrame:
    """Return a row per edge of positive weight between different groups.

    Parameters
    ----------
    names : list of str
        Of the groups.
    graph : ndarray of shape (n_groups, n_groups)
        Weight of the edge to the row's group from the column's.
    effects : Effects
        Of the same edges.
    p, adjusted : ndarray of shape (n_groups, n_groups), optional
        p-values of each edge, and of all together.
    level : float, default=0.05
        What an adjusted p-value must not exceed for an edge to pass.

    Returns
    -------
    DataFrame
        ``source``, ``target``, ``lag`` of the strongest effect, ``effect`` (its sign) and
        ``weight``, the heaviest first; with p-values ``p_value``, ``adjusted_p_value`` and
        ``passes``, the smallest first.
    """
    import pandas as pd

    lag = effects.lag()
    there = (graph > 0.0) & ~np.eye(len(graph), dtype=bool)
    targets, sources = (each.tolist() for each in np.nonzero(there))
    columns: dict[str, Any] = {
        "source": [names[j] for j in sources],
        "target": [names[i] for i in targets],
        "lag": lag[targets, sources],
        "effect": [effects.sign(i, j) for i, j in zip(targets, sources, strict=True)],
        "weight": graph[targets, sources],
    }
    order, ascending = ["weight"], [False]
    if p is not None and adjusted is not None:
        columns["p_value"] = p[targets, sources]
        columns["adjusted_p_value"] = adjusted[targets, sources]
        columns["passes"] = columns["adjusted_p_value"] <= level
        order, ascending = ["p_value", "weight"], [True, False]
    table = pd.DataFrame(columns)
    return table.sort_values(order, ascending=ascending, kind="stable", ignore_index=True)
