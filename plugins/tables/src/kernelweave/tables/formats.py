"""Parquet and the files of statistics programs by pandas, LIBSVM by scikit-learn."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import TableError, one_line
from .frames import check_names
from .sizes import require_room
from .table import Table, read_cells

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
PARQUET = b"PAR1"


def read_parquet(content: bytes, source: str) -> Table:
    """Read a Parquet file, whose rows are counted from 1 in messages.

    Raises TableError if it is damaged, empty, has a name twice, or is too large for the memory
    limit.
    """
    from pyarrow import ArrowException, parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        check_names(file.schema_arrow.names, source)
        _require_room_for_parquet(file, content, source)
        frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except TableError:
        raise
    except (ValueError, OSError, ArrowException) as error:
        raise TableError(f"{source} is not a sound Parquet file: {one_line(error)}") from error
    return read_cells(frame, source)


def _require_room_for_parquet(file: Any, content: bytes, source: str) -> None:
    """Raise TableError where a file has more cells, or longer texts, than there is room for."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    meta = file.metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    n_cells = sum(each.column(j).num_values for each in groups for j in range(each.num_columns))
    n_cells = max(n_cells, meta.num_rows * meta.num_columns)
    n_bytes, n_columns = sum(each.total_byte_size for each in groups), meta.num_columns
    shape = f"has {meta.num_rows:,} rows of {n_columns:,} columns"
    require_room(n_cells + n_bytes, source, shape, columns=n_columns)
    # a text that recurs is written once, and has to be read as often as it stands there
    leaves = [file.schema.column(j) for j in range(n_columns)]
    of_bytes = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
    texts = [
        each.name
        for each in file.schema_arrow
        if each.name in of_bytes
        and not (pa.types.is_dictionary(each.type) or pa.types.is_decimal(each.type))
    ]
    short = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts)
    n_characters = 0
    for part in short.iter_batches(columns=texts) if texts else ():
        for column in part.columns:
            if pa.types.is_dictionary(column.type):
                lengths = pc.binary_length(column.dictionary).take(column.indices)
                n_characters += pc.sum(lengths).as_py() or 0
        require_room(n_cells + n_characters, source, f"{shape} with long texts", columns=n_columns)


def read_statistics(path: Path, source: str) -> Table:
    """Read a file of Stata, SAS or SPSS; labelled values become their labels.

    Raises TableError if it is damaged or too large for the memory limit, or a file of SPSS and
    pyreadstat is missing.
    """
    ending = path.suffix.lower()
    read: Any = {
        ".dta": pd.read_stata, ".sav": pd.read_spss, ".zsav": pd.read_spss, ".xpt": _read_transport,
    }.get(ending, partial(pd.read_sas, encoding="infer"))  # fmt: skip
    try:
        require_room(_text_of(path, ending), source, "has more cells than there is room for")
        frame = read(path)
    except (TableError, MemoryError):
        raise
    except Exception as error:
        raise TableError(f"{source} is not a sound {ending} file: {one_line(error)}") from error
    return read_cells(frame, source)


def _text_of(path: Path, ending: str) -> int:
    """Return the bytes of a file of statistics when it is not compressed."""
    n_bytes = path.stat().st_size
    if ending == ".sas7bdat":
        file_of_pandas: Any = pd.read_sas(path, format="sas7bdat", iterator=True)
        with file_of_pandas as reader:
            return max(n_bytes, int(reader.row_count * reader.row_length))
    if ending in (".sav", ".zsav"):
        try:
            import pyreadstat
        except ImportError as error:
            raise TableError(
                f"reading {path} needs pyreadstat: pip install pyreadstat, or save it as CSV"
            ) from error
        _, meta = pyreadstat.read_sav(path, metadataonly=True)
        # a file of SPSS need not say how many rows it has; at most each byte is a number
        n_rows, widths = meta.number_rows, sum(meta.variable_storage_width.values())
        return max(n_bytes, n_rows * widths) if n_rows is not None else 8 * n_bytes
    return n_bytes


def _read_transport(path: Path) -> pd.DataFrame:
    """Return a SAS transport file of version 5; days and moments, counted from 1960, are dates."""
    content = path.read_bytes()
    if b"LIBV8" in content[:80]:
        raise TableError(
            f"{path.name} is a SAS transport file of version 8, and only version 5 can be "
            "read: save it as .sas7bdat or CSV, or in SAS by the libname engine XPORT"
        )
    ways: Any = {"format": "xport", "encoding": "ISO-8859-1", "iterator": True}
    with warnings.catch_warnings():
        # of a length that is none of whole records: refused below
        warnings.simplefilter("ignore")
        file_of_pandas: Any = pd.read_sas(io.BytesIO(content), **ways)
    with file_of_pandas as reader:
        rows = content[reader.record_start :]
        reader.nobs = _n_rows_of_transport(rows, reader.record_length, path.name)
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


def _n_rows_of_transport(rows: bytes, width: int, name: str) -> int:
    """Return how many rows of a width there are; blanks fill the last record of 80 bytes.

    Raises TableError where a row is cut short, or another table follows.
    """
    if b"HEADER RECORD*******MEMBER" in rows:
        raise TableError(f"{name} holds several tables: save one of them as a file of its own")
    # no file says how many rows it has: the last of them may be blank, but not a whole record
    filled = len(rows.rstrip(b" "))
    n_rows = max(-(-filled // width), -(-(len(rows) - 79) // width), 0)
    if len(rows) % 80 or n_rows * width > len(rows):
        raise TableError(
            f"{name} ends in the middle of a row, after {filled // width} whole rows: the file is "
            "cut short; copy it again"
        )
    return n_rows


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
    shape = f"has {X.shape[0]:,} rows of {len(used):,} features, and kernels need all of them"
    require_room(X.shape[0] * len(used), source, shape, columns=len(used))
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
