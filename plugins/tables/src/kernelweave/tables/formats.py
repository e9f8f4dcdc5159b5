"""Parquet, Excel, JSON and the files of statistics programs by pandas, LIBSVM by scikit-learn."""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.exceptions import Message, warn

from .errors import TableError, did_you_mean, one_line
from .frames import check_names
from .table import (
    Table,
    name_columns,
    read_cells,
    warn_of_note,
    warn_of_title,
    without_row_numbers,
    without_total,
)

STATISTICS = (".dta", ".sas7bdat", ".xpt", ".sav", ".zsav")
TARGET = "target"
_TOKEN = re.compile(rb"^(qid|\d+):[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|inf|nan)$")
# formats of SAS that show a number as a day, and as a moment; of others it stays a number
_DAYS = re.compile(
    "DATE$|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?$|(WEEK|WORD)DAT[EX]$|[BE]8601DA$|JULIAN$|MONYY$"
)
_MOMENTS = re.compile("DATE(TIME|AMPM)$|DT(DATE|MONYY|YEAR|WKDATX)$|MDYAMPM$|[BE]8601(D[NTXZ]|LX)$")
# from which SAS counts days and seconds, and the seconds of the years 1 to 9999
_EPOCH = datetime(1960, 1, 1)
_CALENDAR = tuple(
    (end - _EPOCH).total_seconds() for end in (datetime.min, datetime.max.replace(microsecond=0))
)
PARQUET, ZIP, OLD_EXCEL = b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


def read_parquet(content: bytes, source: str) -> Table:
    """Read a Parquet file, whose rows are counted from 1 in messages.

    Raises TableError if it is damaged, empty or has a name twice.
    """
    from pyarrow import parquet

    try:
        check_names(parquet.read_schema(io.BytesIO(content)).names, source)
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except (ValueError, OSError) as error:
        raise TableError(f"{source} is not a sound Parquet file: {one_line(error)}") from error
    return read_cells(frame, source)


def read_excel(
    content: bytes, source: str, *, header: bool = True, wanted: str | None = None
) -> Table:
    """Read a sheet of an Excel file, the first that has a table where none is asked for.

    Without a header columns are 0, 1, …; messages name the rows by the numbers that Excel shows.
    Raises TableError if it is an old ``.xls`` file, damaged or empty, or a column has no name or
    that of another.
    """
    if content.startswith(OLD_EXCEL):
        raise TableError(f"{source} is an old Excel file: save it as .xlsx or as CSV")
    try:
        sheets = pd.read_excel(
            io.BytesIO(content), sheet_name=None, header=None, dtype=object, na_values=[""],
            keep_default_na=False,
        )  # fmt: skip
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise TableError(f"{source} is not a sound Excel file: {one_line(error)}") from error
    full = {name: sheet.dropna(how="all") for name, sheet in sheets.items()}
    full = {name: sheet.dropna(how="all", axis=1) for name, sheet in full.items() if len(sheet)}
    if not full:
        raise TableError(f"{source} has no rows in any sheet")
    if wanted is not None and wanted not in full:
        raise TableError(
            f"{source} has no sheet {wanted!r} with rows; "
            f"{did_you_mean(wanted, full, what='sheets')}"
        )
    # a cover sheet has a title, or a few lines, and no table
    tables = (each for each, sheet in full.items() if min(sheet.shape) > 1)
    name = wanted or next(tables, next(iter(full)))
    sheet = full[name]
    if len(full) > 1 and wanted is None:
        warn(
            Message(
                "{source} has {n} sheets with rows; {name!r} is read: choose another by {sheet}",
                source=source,
                n=len(full),
                name=name,
            )
        )
    return _sheet_table(sheet, source, header)


def read_statistics(path: Path, source: str) -> Table:
    """Read a file of Stata, SAS or SPSS; labelled values become their labels.

    Raises TableError if it is damaged, or a file of SPSS and pyreadstat is missing.
    """
    ending = path.suffix.lower()
    read: Any = {
        ".dta": pd.read_stata, ".sav": pd.read_spss, ".zsav": pd.read_spss, ".xpt": _read_transport,
    }.get(ending, partial(pd.read_sas, encoding="infer"))  # fmt: skip
    try:
        frame = read(path)
    except TableError:
        raise
    except ImportError as error:
        raise TableError(
            f"reading {source} needs pyreadstat: pip install pyreadstat, or save it as CSV"
        ) from error
    except Exception as error:
        raise TableError(f"{source} is not a sound {ending} file: {one_line(error)}") from error
    return read_cells(frame, source)


def _read_transport(path: Path) -> pd.DataFrame:
    """Return a SAS transport file of version 5; days and moments, counted from 1960, are dates."""
    with path.open("rb") as file:
        if b"LIBV8" in file.read(80):
            raise TableError(
                f"{path.name} is a SAS transport file of version 8, and only version 5 can be "
                "read: save it as .sas7bdat or CSV, or in SAS by the libname engine XPORT"
            )
    file_of_pandas: Any = pd.read_sas(path, format="xport", encoding="ISO-8859-1", iterator=True)
    with file_of_pandas as reader:
        frame: pd.DataFrame = reader.read()
        shown = {each["name"].decode(): each["nform"].decode().strip() for each in reader.fields}
    # what pandas makes of a zero
    frame = frame.replace(16.0**-65, 0.0)
    for name, form in shown.items():
        seconds = 86_400 if _DAYS.match(form) else 1 if _MOMENTS.match(form) else 0
        if seconds and frame[name].dtype.kind == "f":
            since = seconds * frame[name]
            # a number that is none of the calendar's moments is kept, and so are those beside it
            if since.dropna().between(*_CALENDAR).all():
                frame[name] = _EPOCH + (1e6 * since).round().astype("timedelta64[us]")
    return frame


def read_json(content: bytes, source: str) -> Table:
    """Read JSON lines, an object each, or one list of objects.

    What an object lacks is missing; of objects inside a column, each entry is a column, such as
    ``user.age``.
    """
    text = content.decode("utf-8-sig", errors="replace")
    lines = {i: line for i, line in enumerate(text.splitlines(), 1) if line.strip()}
    is_list = text.lstrip().startswith("[")
    rows = _loaded(text, source, 1) if is_list else [_loaded(lines[i], source, i) for i in lines]
    places = range(1, len(rows) + 1) if is_list else list(lines)
    for place, row in zip(places, rows, strict=True):
        if not isinstance(row, dict):
            where = f"{'row' if is_list else 'line'} {place}"
            raise TableError(f"{source}, {where}: {row!r:.40} is not an object with columns")
    of_rows = None if is_list else lambda: places
    return read_cells(_unnested(pd.DataFrame(rows)), source, lines=of_rows)


def _unnested(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in which a column of objects is one of each of their entries, ``user.age``."""
    parts: list[pd.DataFrame | pd.Series] = []
    for name, column in frame.items():
        present = column.notna()
        if not present.any() or not all(isinstance(cell, dict) for cell in column[present]):
            parts.append(column)
            continue
        inside = pd.DataFrame(column[present].tolist(), index=column.index[present])
        parts.append(_unnested(inside.reindex(column.index)).add_prefix(f"{name}."))
    return pd.concat(parts, axis=1) if parts else frame


def _loaded(text: str, source: str, line: int) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{source}, line {line}: not JSON ({one_line(error)})") from error


def _sheet_table(sheet: pd.DataFrame, source: str, header: bool) -> Table:
    """Return a table without a title above and notes below, which are warned of."""
    filled = sheet.notna().sum(axis=1).to_numpy()
    places = [int(str(place)) + 1 for place in sheet.index]

    def cells_of(row: int) -> list[str]:
        return ["" if pd.isna(cell) else str(cell).strip() for cell in sheet.iloc[row]]

    start = int(np.argmax(filled > 1)) if header and sheet.shape[1] > 2 else 0
    if start:
        above = [(places[row], cells_of(row)) for row in range(start + 1)]
        warn_of_title(source, "row", above)
    end = _end_of_rows(sheet, filled)
    for row in range(end, len(sheet)):
        warn_of_note(source, "row", places[row], next(filter(None, cells_of(row))))
    first = names = [str(j) for j in range(sheet.shape[1])]
    if header:
        first = cells_of(start)
        names, start = name_columns(first, source), start + 1
    lines = places[start:end]
    frame = sheet.iloc[start:end].set_axis(names, axis=1).infer_objects()
    table = without_total(read_cells(frame, source, lines=lambda: lines))
    return table if first[0] else without_row_numbers(table)


def _end_of_rows(sheet: pd.DataFrame, filled: npt.NDArray[np.intp]) -> int:
    """Return where a table ends: before texts of a single cell that stand below an empty row."""
    n_rows = len(sheet)
    while sheet.shape[1] > 2 and n_rows > 2 and filled[n_rows - 1] == 1:
        n_rows -= 1
    apart = np.flatnonzero(np.diff(sheet.index.to_numpy()) > 1) + 1
    return next((int(at) for at in apart if at >= n_rows), len(sheet))


def read_libsvm(content: bytes, source: str) -> Table:
    """Read LIBSVM: a label and index:value pairs a line; what is absent is zero.

    The table is dense, with column ``"target"``; features are named by their index in the file.
    """
    from scipy.sparse import csr_matrix
    from sklearn.datasets import load_svmlight_file

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError, Warning) as error:
        raise TableError(f"{source}, {_libsvm_fault(content)}: {one_line(error)}") from error
    # a feature that is never mentioned is zero, and a single large index would cost what it counts
    used, columns = np.unique(X.indices, return_inverse=True)
    memory.require(
        8 * X.shape[0] * len(used),
        f"{X.shape[0]} dense rows of {len(used)} features",
        alternative="select fewer features, since kernels are computed on dense rows",
    )
    dense = csr_matrix((X.data, columns, X.indptr), (X.shape[0], len(used))).toarray()
    frame = pd.DataFrame(dense, columns=pd.Index([str(j) for j in used]))
    frame[TARGET] = y.astype(np.int64) if np.array_equal(y, np.round(y)) else y
    lines = partial(_libsvm_lines, content)
    return read_cells(frame, source, target=TARGET, lines=lines, sparse=True)


def _libsvm_lines(content: bytes) -> Sequence[int]:
    """Return the line of each row; comments and blank lines are none."""
    lines = enumerate(content.splitlines(), 1)
    return [number for number, line in lines if line.partition(b"#")[0].strip()]


def _libsvm_fault(content: bytes) -> str:
    """Return the first line with a token that is not ``index:value``, and the token."""
    for number, line in enumerate(content.splitlines(), 1):
        for token in line.partition(b"#")[0].split()[1:]:
            if not _TOKEN.match(token):
                return f"line {number}: {token.decode(errors='replace')!r} is not index:value"
    return "a LIBSVM file"
