"""What a user has: a table, or a list of tables that are replicates."""

from __future__ import annotations

from typing import Any

import numpy as np


def stack_replicates(X: Any, replicates: Any) -> tuple[Any, Any]:
    """Return one table and the replicate of each row.

    `X`: a list of tables holds one replicate each, with the same columns; `replicates`: labels of
    the rows of one table. Table and labels; both as they are where X is one table. Raises
    ValueError if tables differ in their columns, or labels are given beside a list.
    """
    if not _is_list_of_tables(X):
        return X, replicates
    if replicates is not None:
        raise ValueError("replicates must be None for a list of tables, which are the replicates")
    labels = np.repeat(np.arange(len(X)), [len(table) for table in X])
    if all(hasattr(table, "columns") for table in X):
        import pandas as pd

        first = list(X[0].columns)
        for k, table in enumerate(X):
            if list(table.columns) != first:
                raise ValueError(
                    f"the tables of X must have the same columns in the same order, table {k} has "
                    f"{list(table.columns)} and table 0 {first}"
                )
        return pd.concat(list(X), ignore_index=True), labels
    arrays = [np.asarray(table) for table in X]
    widths = sorted({table.shape[1] for table in arrays})
    if len(widths) > 1:
        raise ValueError(f"the tables of X must have as many columns each, got {widths}")
    return np.vstack(arrays), labels


def _is_list_of_tables(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(np.ndim(table) == 2 for table in X)
