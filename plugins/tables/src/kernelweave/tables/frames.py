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
from .errors import TableError

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


def as_pandas(X: Any) -> pd.DataFrame | None:
    """Return a table of any library, or an Arrow stream, as one of pandas; ``None`` of others.

    Raises TableError if two columns share a name.
    """
    import narwhals.stable.v2 as nw
    import pandas as pd

    if nw.dependencies.is_into_dataframe(X):
        check_names(map(str, getattr(X, "column_names", X.columns)), "the table")
        return X if isinstance(X, pd.DataFrame) else nw.from_native(X, eager_only=True).to_pandas()
    if hasattr(X, "__arrow_c_stream__") and not nw.dependencies.is_into_series(X):
        return nw.from_arrow(X, backend="pyarrow").to_pandas()
    return None


def levels_of(values: Any) -> list[Any] | None:
    """Return the classes of ordered categories of any library, lowest first; ``None`` of others."""
    import pandas as pd

    if isinstance(getattr(values, "dtype", None), pd.ArrowDtype):
        values = values.array.__arrow_array__()
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    dtype = getattr(values, "dtype", None)
    if not isinstance(dtype, pd.CategoricalDtype) or not dtype.ordered:
        return None
    levels: list[Any] = dtype.categories.tolist()
    return levels


def check_names(names: Iterable[str], source: str) -> None:
    """Raise where two columns share a name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{source} has two columns named {twice[0]!r}: rename one")


def read_columns(X: Rows, estimator: BaseEstimator | None = None) -> RawTable:
    """Return the columns of a table.

    A sparse matrix is made dense within the memory limit. Raises ValueError if the shape is wrong,
    nothing is there, two columns share a name, or numbers are complex; TypeError if a column holds
    what is no number, word or date, or X is no table; MemoryBudgetError if a sparse matrix is too
    large.
    """
    import narwhals.stable.v2 as nw
    from scipy import sparse

    if isinstance(X, nw.LazyFrame) or nw.dependencies.is_polars_lazyframe(X):
        raise TypeError("X is a lazy table, which has no rows yet: call X.collect() first")
    frame = as_pandas(X)
    if frame is not None:
        return _read_frame(frame)
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


def _read_frame(frame: pd.DataFrame) -> RawTable:
    if frame.shape[1] == 0:
        # the words that scikit-learn's checks look for
        raise ValueError(
            f"X has 0 feature(s) (shape=({len(frame)}, 0)) while a minimum of 1 is required."
        )
    if len(frame) == 0:
        raise ValueError("X has no rows: at least one is needed")
    names = tuple(map(str, frame.columns))
    raws = tuple(read_series(frame[each], name) for each, name in zip(frame, names, strict=True))
    kinds = frame.attrs.get("kinds", {})
    return RawTable(names, raws, named=True, comma=comma_of(raws), kinds=kinds)


def read_series(series: pd.Series, name: str) -> Raw:
    """Return a column of a data frame."""
    import pandas as pd

    if isinstance(series.dtype, pd.ArrowDtype):
        import pyarrow as pa

        series = pa.array(series).to_pandas()
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, present = pd.factorize(series)
        return read_labels(codes, list(present), "categories")
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return Dates(series.reset_index(drop=True))
    if isinstance(series.dtype, pd.StringDtype):
        return read_objects(series.array, name)
    return read_values(series.to_numpy(), name)


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
            return Numbers(seconds.astype(np.float64), seen="durations", unit="s")
        case "c":
            raise ValueError(
                f"Complex data not supported: column {name!r} holds {values.dtype} values; pass "
                "real and imaginary parts as two columns"
            )
        case _:
            return read_objects(values.astype(object), name)
