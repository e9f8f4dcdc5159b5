"""Series from a file, for the command line."""

from __future__ import annotations

import gzip
import io
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core.exceptions import KernelWeaveWarning

_SEPARATORS = ",;\t"
# Fewer steps may all rise by chance: a random walk does so in eight once in 256.
_ENOUGH = 8
_GAPS = ("", "nan", "na", "null")
_POINTS = r"\s*\d{1,2}\.\d{1,2}\.\d{2}"
_YEAR = r"\s*\d{4}"


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """A table of series.

    `frame` of shape (n_times, n_nodes): a column per series, its index the times where a column
    holds dates; `replicates`: label of each row.
    """

    frame: pd.DataFrame
    replicates: list[str] | None


def read_series(
    path: str,
    replicate: str | None,
    drop: list[str],
    *,
    gaps: bool = False,
    content: bytes | None = None,
) -> SeriesTable:
    """Read a CSV file, gzipped or not, with a header and one row per point in time.

    `path`: the file; commas, semicolons or tabs separate its cells, and beside the latter two a
    comma may be the decimal sign; `replicate`: the column that names each row's replicate; `drop`:
    columns that are no nodes; `gaps`: whether cells that are empty or NaN are gaps, and no error;
    `content`: what to read in place of the file, then called by its path in messages.

    The first column of dates is the time, by which rows are sorted, with a warning, where they are
    not. Raises ValueError if there is no such file or it is not UTF-8 text, if the names of its
    columns are missing or occur twice, if a column asked for is missing, or, naming it, for the
    first cell that is not a finite number and the first column that is constant.
    """
    separator, cells = _cells(path, content)
    wanted = [*drop, *([] if replicate is None else [replicate])]
    _check_names(path, [str(name) for name in cells], wanted)
    labels = None if replicate is None else cells[replicate]
    cells = cells.drop(columns=wanted)
    times = _times(cells)
    if times is not None:
        cells = cells.drop(columns=[str(times.name)])
    if cells.shape[1] < 2:
        raise ValueError(f"{path} needs at least two series, it has {cells.shape[1]}")
    comma = "." if separator == "," else ","
    frame = cells.apply(lambda column: _numbers(path, column, comma, gaps=gaps))
    flat = frame.columns[frame.nunique() < 2]
    if len(frame) > 1 and len(flat):
        name = flat[0]
        raise ValueError(f"column {name} of {path} is constant: leave it out with --drop {name!r}")
    if times is None:
        _warn_of_a_time(frame, labels)
    else:
        frame.index = pd.DatetimeIndex(times, name=times.name)
        frame, labels = _in_order(path, frame, labels)
    return SeriesTable(frame, None if labels is None else labels.tolist())


def _cells(path: str, content: bytes | None) -> tuple[str, pd.DataFrame]:
    """Return what separates cells, and the cells as they are, under the names of the columns."""
    try:
        if content is not None and content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        widths = {each: _read(path, content, each, n_rows=1).shape[1] for each in _SEPARATORS}
        separator = max(_SEPARATORS, key=widths.__getitem__)
        rows = _read(path, content, separator)
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {path!r}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: save it as UTF-8 CSV") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no complete gzip file: {error}") from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} needs a header and at least one row, it has 0 rows") from error
    except pd.errors.ParserError as error:
        raise ValueError(f"a row of {path} has more cells than the header: {error}") from error
    if len(rows) < 2:
        raise ValueError(f"{path} needs a header and at least one row, it has {len(rows)} rows")
    header = rows.iloc[0].str.strip()
    return separator, rows[1:].set_axis(header, axis=1).reset_index(drop=True)


def _read(
    path: str, content: bytes | None, separator: str, *, n_rows: int | None = None
) -> pd.DataFrame:
    return pd.read_csv(
        Path(path).expanduser() if content is None else io.BytesIO(content),
        sep=separator,
        header=None,
        dtype=str,
        keep_default_na=False,
        encoding="utf-8-sig",
        nrows=n_rows,
    )


def _check_names(path: str, header: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if name not in header:
            raise ValueError(f"{path} has no column {name!r}: it has {', '.join(header[:20])}")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise ValueError(f"{path} has two columns named {twice[0]!r}: rename one")
    if "" in header and "" not in wanted:
        raise ValueError(
            f"column {header.index('') + 1} of {path} has no name: name it, or leave it out "
            "with --drop ''"
        )
    counted = [[str(k + start) for k in range(len(header))] for start in (0, 1)]
    if header not in counted and np.isfinite(pd.to_numeric(header, errors="coerce")).all():
        raise ValueError(
            f"the first row of {path} holds numbers, {', '.join(header[:3])}: "
            "it must name the columns"
        )


def _times(cells: pd.DataFrame) -> pd.Series[pd.Timestamp] | None:
    """Return the first column of dates, if there is one."""
    for name in cells:
        column = cells[name]
        if pd.to_numeric(column.str.replace(",", "."), errors="coerce").notna().any():
            continue
        found = _dates(column)
        if found is not None:
            return found
    return None


def _dates(column: pd.Series[str]) -> pd.Series[pd.Timestamp] | None:
    """Return a column as dates, unless a cell is none.

    With points the day stands first; else where no month can.
    """
    by_day = _parsed(column, day_first=True)
    if column.str.match(_POINTS).all():
        return by_day
    by_month = _parsed(column, day_first=False)
    if by_month is None:
        return by_day
    if by_day is not None and not column.str.match(_YEAR).any():
        _warn_of_months(column, (by_month != by_day).to_numpy())
    return by_month


def _parsed(column: pd.Series[str], *, day_first: bool) -> pd.Series[pd.Timestamp] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a format that it cannot infer
        found = pd.to_datetime(column, errors="coerce", dayfirst=day_first)
    return found if found.notna().all() else None


def _warn_of_months(column: pd.Series[str], differ: npt.NDArray[np.bool_]) -> None:
    """Say if the day of some dates might as well be the month."""
    if differ.any():
        cell = column[int(np.argmax(differ))]
        warnings.warn(
            f"column {column.name}: dates such as {cell} are read with the month first, and might "
            "be meant with the day first: write them as year-month-day",
            KernelWeaveWarning,
            stacklevel=5,
        )


def _numbers(path: str, column: pd.Series[str], comma: str, *, gaps: bool) -> pd.Series[float]:
    """Return a column as numbers, NaN where there is a gap."""
    empty = column.str.strip().str.lower().isin(_GAPS)
    values = pd.to_numeric(column.str.replace(comma, "."), errors="coerce").astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values) & ~(empty & gaps))
    if len(bad):
        row = int(bad[0])
        remedy = "--gaps skip takes it for a gap, " if empty[row] else ""
        raise ValueError(
            f"row {row + 1} below the header of {path} has {column[row]!r} in column "
            f"{column.name}: a finite number is needed; {remedy}--drop {column.name!r} leaves the "
            f"column out"
        )
    return values


def _in_order(
    path: str, frame: pd.DataFrame, labels: pd.Series[str] | None
) -> tuple[pd.DataFrame, pd.Series[str] | None]:
    """Return rows in order of time, replicates in order of appearance."""
    replicate = np.zeros(len(frame)) if labels is None else pd.factorize(labels)[0]
    order = np.lexsort((frame.index, replicate))
    if (order == np.arange(len(order))).all():
        return frame, labels
    warnings.warn(
        f"the rows of {path} are not in order of time: they were sorted by column "
        f"{frame.index.name}",
        KernelWeaveWarning,
        stacklevel=3,
    )
    return frame.iloc[order], None if labels is None else labels.iloc[order]


def _warn_of_a_time(frame: pd.DataFrame, labels: pd.Series[str] | None) -> None:
    """Say if a column rises from each row of a replicate to the next, as a time does.

    Without replicates it may begin anew where one ends.
    """
    together: npt.NDArray[np.bool_] = np.ones(len(frame) - 1, dtype=bool)
    if labels is not None:
        together = labels.to_numpy()[1:] == labels.to_numpy()[:-1]
    steps = np.diff(frame, axis=0)[together]
    if len(steps) < _ENOUGH:
        return
    rises = (steps > 0).all(axis=0)
    again = (steps == steps.max(axis=0, initial=0.0)) | (frame[1:][together] == frame.min())
    # single events between zeros rise in half of the rows at most
    again = again.all(axis=0).to_numpy() & ((steps > 0).mean(axis=0) > 0.5) & (labels is None)
    found = rises if rises.any() else again
    if not found.any():
        return
    name = frame.columns[int(np.argmax(found))]
    counts, remedy = ("rises in every row, as a time does,", "")
    if not rises.any():
        counts = "counts in equal steps and begins again, as the time of several runs does,"
        remedy = ", and --replicate names the column that tells the runs apart"
    warnings.warn(
        f"column {name} {counts} and was taken for a series: --drop {name!r} leaves it out{remedy}",
        KernelWeaveWarning,
        stacklevel=3,
    )
