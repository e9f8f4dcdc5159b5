"""What a user has: a table, or a list of tables that are replicates, with times or without."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.kernels_core.arrays import Index, Matrix

if TYPE_CHECKING:
    import pandas as pd

_UNEVEN = 1.5  # months are of 28 to 31 days


def stack_replicates(X: Any, replicates: object) -> tuple[Any, object]:
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
        return pd.concat(list(X)), labels
    arrays = [np.asarray(table) for table in X]
    widths = sorted({table.shape[1] for table in arrays})
    if len(widths) > 1:
        raise ValueError(f"the tables of X must have as many columns each, got {widths}")
    return np.vstack(arrays), labels


def _is_list_of_tables(X: object) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(np.ndim(table) == 2 for table in X)


def warn_of_times(X: object, replicate: Index) -> None:
    """Warn where the steps of the times differ that X, a DataFrame, may have as its index.

    `replicate` of shape (n_times,): replicate of each row. Warns KernelWeaveWarning, as lags count
    rows. Raises ValueError if times do not rise within a replicate.
    """
    times = getattr(getattr(X, "index", None), "asi8", None)
    if times is None:
        return
    steps = np.diff(times)[np.diff(replicate) == 0]
    if len(steps) == 0:
        return
    if steps.min() <= 0:
        raise ValueError("the times in the index of X must rise from row to row: sort the rows")
    usual = float(np.median(steps))
    if steps.max() > _UNEVEN * usual:
        warnings.warn(
            f"the times in the index of X are uneven, with steps of up to {steps.max() / usual:.3g}"
            " times the usual one, and lags count rows: where rows are missing, add them as NaN "
            "(asfreq) and set gaps='skip'",
            KernelWeaveWarning,
            stacklevel=4,
        )


def later(index: Any, steps: int) -> Any:
    """Return the labels of the rows that come after a pandas Index, as evenly as it goes on.

    Counts from its length where nothing can be told.
    """
    import pandas as pd

    if hasattr(index, "asi8") and len(index) > 1:
        known = index.freq or (pd.infer_freq(index) if len(index) > 2 else None)
        step = index[-1] - index[-2] if known is None else pd.tseries.frequencies.to_offset(known)
        return type(index)([index[-1] + (k + 1) * step for k in range(steps)], name=index.name)
    if pd.api.types.is_integer_dtype(index.dtype) and len(index) > 1:
        step = index[-1] - index[-2]
        first = index[-1] + step
        return pd.RangeIndex(first, first + steps * step, step, name=index.name)
    return pd.RangeIndex(len(index), len(index) + steps, name=index.name)


def as_frame(values: Matrix, X: pd.DataFrame, index: pd.Index) -> pd.DataFrame:
    """Return values under the names of X, a DataFrame, with an index of their own."""
    import pandas as pd

    return pd.DataFrame(values, index=index, columns=X.columns)


def is_frame(X: object) -> TypeGuard[pd.DataFrame]:
    """Tell whether X is a pandas DataFrame, whose answers are DataFrames too."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def future_rows(future: Any, names: list[str], given: Index, steps: int) -> Matrix:
    """Return the coming rows, shape (steps, n_columns), of a table or a DataFrame by name.

    `names`: of the columns; `given`: those that are read. Raises ValueError if a DataFrame lacks
    one of them, if the shape is another, or if a value that is read is NaN.
    """
    needed = [names[j] for j in given]
    if hasattr(future, "columns"):
        missing = [name for name in needed if name not in future.columns]
        if missing:
            raise ValueError(f"future must have a column {missing[0]!r}: it has no model")
        rows = np.full((len(future), len(names)), np.nan)
        rows[:, given] = np.asarray(future[needed], dtype=np.float64)
    else:
        rows = np.asarray(future, dtype=np.float64)
    if rows.shape != (steps, len(names)) or np.isnan(rows[:, given]).any():
        raise ValueError(
            f"future must have shape {(steps, len(names))} and no gap in {', '.join(needed)}, "
            f"which have no model, got shape {rows.shape}"
        )
    return rows
