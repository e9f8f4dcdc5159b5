"""Tables that exist already: pandas, polars, Arrow, and whatever else narwhals knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from .errors import TableError
from .table import Table, check_names
from .written import read_numbers

if TYPE_CHECKING:
    import narwhals as nw
    from kernelweave.kernels_core.arrays import Labels


def read_frame(frame: object, *, target: str | None = None) -> Table:
    """Return a table of a data frame.

    `frame`: of pandas, polars, pyarrow, or any library with the Arrow stream interface
    (``__arrow_c_stream__``), which needs pyarrow; `target`: the column that is predicted, if the
    frame has it. A copy, column by column, in which written numbers such as "71,5 kg" are numbers.
    Raises TableError if it is no table, has no rows, a name twice, or no column ``target``.

    Examples
    --------
    >>> import polars as pl
    >>> from kernelweave.tables import read_table
    >>> read_table(pl.DataFrame({"x": [1.5, 2.5], "y": ["a", "b"]}), target="y").columns
    ['x', 'y']
    """
    if isinstance(frame, pd.DataFrame):
        check_names(map(str, frame.columns), "the table")
    native = _eager(frame)
    names = [str(name) for name in native.columns]
    if not names or native.shape[0] == 0:
        raise TableError("the table has no rows or no columns: there is nothing to learn from")
    if target is not None and target not in names:
        raise TableError(f"the table has no column {target!r}; it has {', '.join(names[:12])}")
    columns = {str(name): _column(native[name]) for name in native.columns}
    source = "the table"
    read, units, texts = read_numbers(pd.DataFrame(columns), source)
    return Table(source, read, target=target, units=units, texts=texts)


def _eager(frame: object) -> nw.DataFrame:
    """Return the frame as narwhals sees it."""
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return native
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return nw.from_arrow(frame, backend="pyarrow")
        except ImportError as error:
            raise TableError(
                f"a {type(frame).__name__} is read through Arrow, which needs pyarrow: pip "
                f"install pyarrow"
            ) from error
    raise TableError(
        f"a table must be a file, a data set's name or a data frame of pandas, polars or Arrow, "
        f"got {type(frame).__name__}"
    )


def _column(series: nw.Series) -> Labels | pd.Series:
    """Return the cells: numbers as an array, anything else as objects with None for nothing."""
    if series.dtype.is_numeric() and not series.is_null().any():
        return series.to_numpy()
    if series.dtype.is_temporal():
        return pd.Series(series.to_list())
    return pd.Series(series.to_list(), dtype=None if series.dtype.is_numeric() else object)
