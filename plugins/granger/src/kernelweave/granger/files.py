"""Series from a file, for the command line."""

from __future__ import annotations

import csv
import gzip
import io
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.exceptions import KernelWeaveWarning

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = ",;\t"
_ENOUGH = 8
_GAPS = ("", "nan", "na", "null")


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """A table of series.

    `frame` of shape (n_times, n_nodes): a column per series; `replicates`: label of each row.
    """

    frame: pd.DataFrame
    replicates: list[str] | None


def read_series(
    path: str, replicate: str | None, drop: list[str], *, gaps: bool = False
) -> SeriesTable:
    """Read a CSV file, gzipped or not, with a header and one row per point in time.

    `path`: the file; commas, semicolons or tabs separate its cells, and beside the latter two a
    comma may be the decimal sign; `replicate`: the column that names each row's replicate; `drop`:
    columns that are no nodes; `gaps`: whether cells that are empty or NaN are gaps, and no error.
    Raises ValueError if there is no such file or it is not UTF-8 text, if the names of its columns
    are missing or occur twice, if a column asked for is missing, or, naming it, for the first cell
    that is not a finite number and the first column that is constant.
    """
    separator, rows = _rows(path)
    comma = "." if separator == "," else ","
    if len(rows) < 2:
        raise ValueError(f"{path} needs a header and at least one row, it has {len(rows)} rows")
    header, body = [cell.strip() for cell in rows[0]], rows[1:]
    ragged = next((k for k, row in enumerate(body) if len(row) != len(header)), None)
    if ragged is not None:
        raise ValueError(f"row {ragged + 1} of {path} has not {len(header)} cells like the header")
    _check_names(path, header, [*drop, *([replicate] if replicate is not None else [])])
    nodes = [k for k, name in enumerate(header) if name not in {*drop, replicate}]
    names = [header[k] for k in nodes]
    if len(nodes) < 2:
        raise ValueError(f"{path} needs at least two series, it has {len(nodes)}")
    values = np.array(
        [
            [_number(path, header[k], at, row[k].replace(comma, "."), gaps) for k in nodes]
            for at, row in enumerate(body)
        ]
    )
    flat = np.flatnonzero([len(np.unique(each[~np.isnan(each)])) < 2 for each in values.T])
    if len(values) > 1 and len(flat):
        name = names[flat[0]]
        raise ValueError(f"column {name} of {path} is constant: leave it out with --drop {name!r}")
    labels = None if replicate is None else [row[header.index(replicate)] for row in body]
    _warn_of_a_time(names, values, labels)
    import pandas as pd

    return SeriesTable(pd.DataFrame(values, columns=names), labels)


def _rows(path: str) -> tuple[str, list[list[str]]]:
    """Return what separates cells, and the rows that are not empty, in cells."""
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(Path(path).expanduser(), "rt", encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {path!r}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: save it as UTF-8 CSV") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} is no complete gzip file: {error}") from error
    separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
    read = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return separator, [row for row in read if row]


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
    if header not in counted and all(np.isfinite(_as_number(name)) for name in header):
        raise ValueError(
            f"the first row of {path} holds numbers, {', '.join(header[:3])}: "
            "it must name the columns"
        )


def _as_number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _number(path: str, column: str, row: int, cell: str, gaps: bool) -> float:
    empty = cell.strip().lower() in _GAPS
    value = np.nan if empty else _as_number(cell)
    if not np.isfinite(value) and not (gaps and empty):
        remedy = "--gaps skip takes it for a gap, " if empty else ""
        raise ValueError(
            f"row {row + 1} of {path} has {cell!r} in column {column}: a finite number is needed; "
            f"{remedy}--drop {column!r} leaves the column out"
        )
    return value


def _warn_of_a_time(
    names: list[str], values: npt.NDArray[np.float64], labels: list[str] | None
) -> None:
    """Say if a column rises from each row of a replicate to the next, as a time does."""
    together = np.ones(len(values) - 1, dtype=bool)
    if labels is not None:
        together = np.array(labels[1:]) == np.array(labels[:-1])
    rises = (np.diff(values, axis=0)[together] > 0).all(axis=0)
    if together.sum() >= _ENOUGH and rises.any():
        name = names[np.flatnonzero(rises)[0]]
        warnings.warn(
            f"column {name} rises in every row, as a time does, and was taken for a series: "
            f"--drop {name!r} leaves it out",
            KernelWeaveWarning,
            stacklevel=3,
        )
