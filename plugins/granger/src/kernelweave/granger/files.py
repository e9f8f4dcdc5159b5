"""Series from a file, for the command line."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """A table of series.

    Attributes
    ----------
    names : list of str
        Nodes.
    X : ndarray of shape (n_times, n_nodes)
        Values.
    replicates : list of str or None
        Label of each row.
    """

    names: list[str]
    X: npt.NDArray[np.float64]
    replicates: list[str] | None


def read_series(path: str, replicate: str | None, drop: list[str]) -> SeriesTable:
    """Read a CSV file, gzipped or not, with a header and one row per point in time.

    Parameters
    ----------
    path : str
        The file.
    replicate : str or None
        The column that names each row's replicate.
    drop : list of str
        Columns that are no nodes.

    Returns
    -------
    SeriesTable
        Numbers.

    Raises
    ------
    ValueError
        Naming the missing column, or the first cell that is not a finite number.
    """
    opened = gzip.open if path.endswith(".gz") else open
    with opened(Path(path).expanduser(), "rt", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    if len(rows) < 2:
        raise ValueError(f"{path} needs a header and at least one row, it has {len(rows)} rows")
    header, body = [cell.strip() for cell in rows[0]], rows[1:]
    for name in [*drop, *([replicate] if replicate is not None else [])]:
        if name not in header:
            raise ValueError(f"{path} has no column {name!r}: it has {', '.join(header[:20])}")
    ragged = next((k for k, row in enumerate(body) if len(row) != len(header)), None)
    if ragged is not None:
        raise ValueError(f"row {ragged + 1} of {path} has not {len(header)} cells like the header")
    nodes = [k for k, name in enumerate(header) if name not in {*drop, replicate}]
    values = np.array(
        [[_number(path, header[k], at, row[k]) for k in nodes] for at, row in enumerate(body)]
    )
    labels = None if replicate is None else [row[header.index(replicate)] for row in body]
    return SeriesTable([header[k] for k in nodes], values, labels)


def _number(path: str, column: str, row: int, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise ValueError(
            f"row {row + 1} of {path} has {cell!r} in column {column}: a finite number is needed"
        )
    return value
