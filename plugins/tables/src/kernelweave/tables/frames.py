"""Tables of any library, arrays, lists and sparse matrices as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import Rows
from kernelweave.kernels_core.memory import require
from numpy.typing import NDArray

from .columns import Dates, Numbers, Raw, RawTable, Words, comma_of, read_labels, read_objects

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def read_columns(X: Rows, estimator: BaseEstimator | None = None) -> RawTable:
    """Return the columns of a table.

    A sparse matrix is made dense within the memory limit. Raises ValueError if the shape is wrong,
    nothing is there, two columns share a name, or numbers are complex; TypeError if a column holds
    what is no number, word or date, or X is no table; MemoryBudgetError if a sparse matrix is too
    large.
    """
    import narwhals.stable.v2 as nw
    from scipy import sparse

    if nw.dependencies.is_into_dataframe(X):
        return _read_frame(X)
    if isinstance(X, nw.LazyFrame) or nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X is a lazy table, which has no rows yet: call X.collect() first")
    if sparse.issparse(X):
        matrix: Any = X
        n_rows, n_columns = matrix.shape
        require(
            n_rows * n_columns * 8,
            f"{n_rows} rows of {n_columns} sparse columns, made dense,",
            alternative="reduce the columns first, for instance by "
            "sklearn.decomposition.TruncatedSVD",
        )
        X = matrix.toarray()
    if isinstance(X, Iterable) and not hasattr(X, "__len__") and not hasattr(X, "__array__"):
        raise TypeError(
            f"X must be a table or an array, got {type(X).__name__}, which is read part by part: "
            "predict its parts one after the other"
        )
    return _read_array(X, estimator)


def _read_frame(X: Any) -> RawTable:
    import narwhals.stable.v2 as nw

    columns = [str(each) for each in getattr(X, "column_names", X.columns)]
    repeated = [each for each, count in Counter(columns).items() if count > 1]
    if repeated:
        raise ValueError(f"X has several columns called {repeated[0]!r}: give each its own name")
    frame = X
    if not nw.dependencies.is_pandas_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
    if frame.shape[1] == 0:
        # the words that scikit-learn's checks look for
        raise ValueError(
            f"X has 0 feature(s) (shape=({len(frame)}, 0)) while a minimum of 1 is required."
        )
    if len(frame) == 0:
        raise ValueError("X has no rows: at least one is needed")
    raws = tuple(map(read_series, (frame[name] for name in frame.columns), columns))
    known = getattr(X, "attrs", None) or {}
    comma, kinds = known.get("comma") or comma_of(raws), known.get("kinds", {})
    return RawTable(tuple(columns), raws, named=True, comma=comma, kinds=kinds)


def read_series(series: Any, name: str) -> Raw:
    """Return a series of pandas or narwhals as a column.

    A partial dependence reads a table a hundred times, and a wrapper costs ten times a column: of
    pandas, only series of other types than numpy's and strings get one.
    """
    import narwhals.stable.v2 as nw
    import pandas as pd

    if isinstance(series, pd.Series):
        if isinstance(series.dtype, np.dtype):
            return read_values(series.to_numpy(), name)
        if isinstance(series.dtype, pd.StringDtype):
            return read_objects(series.array, name)
        series = nw.from_native(series, series_only=True)
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        codes, uniques = pd.factorize(np.asarray(series.to_numpy(), dtype=object))
        return read_labels(codes, list(uniques), "categories")
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        moments = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        local = pd.Series(moments).dt.tz_localize("UTC").dt.tz_convert(dtype.time_zone)
        return Dates(local)
    if dtype.is_decimal():
        series = series.cast(nw.Float64)
    return read_values(np.asarray(series.to_numpy()), name)


def _read_array(X: Rows, estimator: BaseEstimator) -> RawTable:
    from sklearn.utils.validation import check_array

    array = check_array(X, dtype=None, ensure_all_finite=False, input_name="X", estimator=estimator)
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    if array.dtype.kind == "S":
        array = np.char.decode(array)
    if array.dtype.kind == "U":
        array = array.astype(object)
    return RawTable(
        names, tuple(read_values(array[:, j], name) for j, name in enumerate(names)), named=False
    )


def read_values(values: NDArray[Any], name: str) -> Raw:
    """Return the values of one column by their numpy type."""
    import pandas as pd

    match values.dtype.kind:
        case "i" | "u":
            return Numbers(values.astype(np.float64), whole=True)
        case "f":
            return Numbers(values.astype(np.float64))
        case "b":
            return Words(values.astype(np.int64), ("False", "True"), "booleans")
        case "M":
            return Dates(pd.Series(values.astype("datetime64[us]")))
        case "m":
            seconds = values / np.timedelta64(1, "s")
            return Numbers(seconds.astype(np.float64), seen="durations")
        case "c":
            raise ValueError(
                f"Complex data not supported: column {name!r} holds {values.dtype} values; pass "
                "real and imaginary parts as two columns"
            )
        case _:
            return read_objects(values.astype(object), name)
