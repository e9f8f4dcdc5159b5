"""Tables of series with times or without, and warnings of what p-values take for granted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, Vector
from kernelweave.kernels_core.exceptions import Message, warn

if TYPE_CHECKING:
    import pandas as pd


_UNEVEN = 1.5  # months are of 28 to 31 days

_LONG = 50  # rows from which a series shows whether it returns, or a season
_TREND = 0.5  # share of the variance that a straight line explains
_WALK = 6.0  # n(1 − autocorrelation): its median is 4.4 for random walks, 20 for 0.9 and n = 150
_LINE = 1e-3  # chance that a node of noise has a peak somewhere; two have it in one place
_AROUND = 12  # frequencies on each side that a peak is compared with


def stack_replicates(X: Any, replicates: object) -> tuple[Any, object]:
    """Return one table and the replicate of each row, of a list of tables; else both as they are.

    Raises ValueError if tables differ in their columns, or labels are given beside a list.
    """
    if not (isinstance(X, list | tuple) and X and all(np.ndim(table) == 2 for table in X)):
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


def check_cells(X: Any, *, allow_missing: bool, where: str = "") -> None:
    """Raise where a cell of a series is no finite number, or of one of a list of tables.

    What is no table is left to others. `allow_missing`: whether NaN and None may be; `where`: what
    messages say before the row. Raises ValueError with the series, the row counted from 0, the
    value and the remedy, TypeError where it is no number, word or time.
    """
    from kernelweave.tables.frames import as_pandas

    frame = as_pandas(X)
    if frame is None and isinstance(X, list | tuple) and all(np.ndim(each) == 2 for each in X):
        for k, table in enumerate(X):
            check_cells(table, allow_missing=allow_missing, where=f"table {k}, ")
        return
    columns: Iterable[tuple[object, Any]]
    if frame is None:
        array = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
        if array.ndim != 2:
            return
        columns = enumerate(array.T)
    else:
        columns = ((frame.columns[j], frame.iloc[:, j]) for j in range(frame.shape[1]))
    for name, column in columns:
        if column.dtype.kind != "c":
            _check_series(f"series {str(name)!r}, {where}row", column, allow_missing)


def _check_series(place: str, column: Any, allow_missing: bool) -> None:
    """Raise where a cell of a series is no finite number; `place`: which, up to the row."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iufb":
        values = column.astype(np.float64)
    else:
        values = _as_numbers(place, column)
    gaps = np.isnan(values)
    if gaps.any() and not allow_missing:
        raise ValueError(
            Message(
                "{place} {row}: the value is missing (NaN): fill it in, or set {missing}='skip' to "
                "leave out rows with a missing value or history",
                place=place,
                row=int(gaps.argmax()),
            )
        )
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise ValueError(f"{place} {row}: the value is {values[row]}, not finite: correct it")


def _as_numbers(place: str, column: Any) -> Vector:
    """Return the cells of a series as numbers, NaN where one is missing."""
    import pandas as pd

    cells = pd.Series(column)
    if cells.dtype.kind in "iufb":
        numbers: Vector = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers
    values = np.full(len(cells), np.nan)
    for i in np.flatnonzero(cells.notna()):
        cell = cells.iloc[i]
        try:
            values[i] = float(cell)
        except (TypeError, ValueError) as error:
            wrong: type[Exception] = ValueError
            shown = f"{place} {i}: {cell!s:.60}"
            if isinstance(cell, date | timedelta | pd.Period):
                what = "is a time, not a number: make the times the index of a DataFrame"
            elif isinstance(error, TypeError):
                # the words that scikit-learn's checks look for
                what, wrong = "is no cell: the argument must be a string or a number", TypeError
            else:
                shown, what = f"{place} {i}: {cell!r:.60}", "is not a number: give numbers"
            raise wrong(f"{shown} {what}, or leave the series out") from error
    return values


def warn_of_constants(names: list[str], values: Vector) -> None:
    """Warn that constant series are left out."""
    listed = [f"{name} ({value:g})" for name, value in zip(names, values, strict=True)]
    some = ", ".join(listed[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    one = len(names) == 1
    warn(
        f"series {some} {'is' if one else 'are'} constant and left out: "
        f"{'it has' if one else 'they have'} no model and no edges"
    )


def warn_of_times(X: object, replicate: Index) -> None:
    """Warn, as lags count rows, where steps between times in the index of X, a DataFrame, differ.

    Raises ValueError if times do not rise within a replicate.
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
        warn(
            Message(
                "the times in the index of X are uneven, with steps of up to "
                f"{steps.max() / usual:.3g} times the usual one, and lags count rows: where rows "
                "are missing, add them as NaN (asfreq) and set {missing}='skip'"
            )
        )


def extend_index(index: Any, steps: int) -> Any:
    """Return the labels of the next rows after a pandas Index, with its frequency or step.

    They count up from its length where it has neither.
    """
    import pandas as pd

    if hasattr(index, "asi8") and len(index) > 1:
        freq = index.freq or (pd.infer_freq(index) if len(index) > 2 else None)
        step = index[-1] - index[-2] if freq is None else pd.tseries.frequencies.to_offset(freq)
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

    Raises ValueError if one of the columns that are read, `given`, is absent or lacks a value, or
    the shape is another.
    """
    needed = [names[j] for j in given]
    # what is missing where a model says what comes is not read
    check_cells(future, allow_missing=True, where="future, ")
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
            f"future must have shape {(steps, len(names))} and no missing value in "
            f"{', '.join(needed)}, which have no model, got shape {rows.shape}"
        )
    return rows


def warn_of_series(scaled: npt.NDArray[np.float64], names: list[str], replicate: Index) -> bool:
    """Warn of random walks, trends and shared seasons, once each; return whether there are any.

    Only the longest replicate is checked, if it has 50 rows.
    """
    longest = scaled[replicate == np.bincount(replicate).argmax()]
    if len(longest) < _LONG:
        return False
    nonstationary = [
        name for name, x in zip(names, longest.T, strict=True) if looks_nonstationary(x)
    ]
    if nonstationary:
        warn(
            f"{_some(nonstationary)} be random walks or follow a trend: such series often seem "
            "to drive one another, and p-values come out too small; take differences or remove the "
            "trend"
        )
    period, sharing = shared_season(longest)
    if len(sharing) > 1:
        warn(
            f"{_some([names[j] for j in sharing])} share a season of about {period:.3g} rows: "
            "p-values may take it for influence; remove it, or add it as a series of its own"
        )
    return bool(nonstationary) or len(sharing) > 1


def warn_of_draws(
    n_draws: int, p_smallest: float, n_edges: int, level: float, adjust: str, most: float = np.inf
) -> None:
    """Warn where a single edge could not pass, however strong.

    `p_smallest`: the smallest p-value that an edge can have; `most`: draws that there are.
    """
    least = 1.0 / (1.0 + n_draws) if adjust == "max-t" else min(1.0, n_edges * p_smallest)
    if least > level:
        needed = int(np.ceil(n_draws * least / level))
        what_can = f"{needed} draws can"
        if needed > most:
            what_can = (
                f"{needed} draws could, but one replicate has {most:g} that differ: give a longer "
                "series or replicates, or forbid links"
            )
        warn(
            f"{n_draws} draws per series cannot bring a single edge of {n_edges} to an adjusted "
            f"p-value below {least:.3g}, and a level of {level:g} was asked: {what_can}"
        )


def looks_nonstationary(x: Vector) -> bool:
    """Return whether a series looks like a random walk or follows a linear trend.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.frames import looks_nonstationary
    >>> noise = np.random.default_rng(0).standard_normal(200)
    >>> looks_nonstationary(noise), looks_nonstationary(noise.cumsum())
    (False, True)
    >>> looks_nonstationary(noise + np.arange(200) / 20)
    True
    """
    time = np.arange(len(x), dtype=np.float64)
    if np.corrcoef(time, x)[0, 1] ** 2 > _TREND:
        return True
    centred = x - x.mean()
    repeats = float(centred[1:] @ centred[:-1] / (centred[:-1] @ centred[:-1]))
    return len(x) * (1.0 - repeats) < _WALK


def shared_season(X: npt.NDArray[np.float64]) -> tuple[float, Index]:
    """Return the period in rows that most series share as a sharp peak, and which: none or two.

    A peak is a power of the first differences far above the median around it, which slow series and
    broad resonances are not.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger.frames import shared_season
    >>> X = np.random.default_rng(0).standard_normal((240, 3))
    >>> X[:, :2] += np.sin(np.arange(240) * np.pi / 6)[:, None]
    >>> period, sharing = shared_season(X)
    >>> round(period), sharing
    (12, array([0, 1]))
    """
    steps = np.diff(X, axis=0) * np.hanning(len(X) - 1)[:, None]
    power = np.abs(np.fft.rfft(steps, axis=0)) ** 2
    n = len(power)
    usual = np.empty_like(power)
    for k in range(n):
        usual[k] = np.median(power[max(1, k - _AROUND) : k + _AROUND + 1], axis=0)
    # powers of noise are exponential: their median is log 2 times their mean
    peak = power * np.log(2.0) > usual * np.log(n / _LINE)
    peak[: min(n, 4)] = False  # fewer than four turns are no season
    common = peak.sum(axis=1)
    at = int(common.argmax())
    if common[at] < 2:
        return np.inf, np.array([], dtype=np.intp)
    # among the frequencies that share it, the one of most power
    tied = np.flatnonzero(common == common[at])
    at = int(tied[power[tied].sum(axis=1).argmax()])
    return len(steps) / at, np.flatnonzero(peak[at])


def _some(names: list[str]) -> str:
    if len(names) == 1:
        return f"series {names[0]} seems to"
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"series {listed} seem to"
