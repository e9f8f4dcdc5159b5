"""From what a user writes on the command line to a table."""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path

from kernelweave.kernels_core import datasets

from .csv import read_csv
from .data_folder import folder_files, folder_remark
from .dialect import UTF_16
from .errors import TableError, did_you_mean
from .formats import OLD_EXCEL, PARQUET, ZIP, read_excel, read_json, read_parquet
from .frames import read_frame
from .libsvm import read_libsvm
from .named import read_named
from .openml import PREFIX, read_openml
from .table import Table

_LIBSVM_LINE = re.compile(rb"^\s*[-+\d.eE]+(\s+qid:\d+)?(\s+\d+:[-+\d.eEinfaN]+)+\s*(#.*)?$")
_JSON = re.compile(rb"^(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\{\]])")
_COMMENT = re.compile(rb"^\s*(#.*)?$")


def read_table(source: object, *, header: bool = True, target: str | None = None) -> Table:
    """Read a table from a file, a data set by name, standard input, or a data frame.

    Parameters
    ----------
    source : str, Path or DataFrame
        A path to a CSV of any dialect, Parquet, Excel, JSON (lines, or a list) or LIBSVM file,
        each also compressed by gzip, the name of a registered data set or of a file in the
        folder ``KERNELWEAVE_DATA``, ``openml:NAME@VERSION`` or ``openml:ID``, ``-`` for standard
        input, or a data frame of pandas, polars or Arrow. A file goes before a data set of its
        name.
    header : bool, default=True
        Whether the first line of a CSV or an Excel sheet names the columns; without, they are 0,
        1, ...
    target : str or None, default=None
        The column to predict, where the source does not name it.

    Returns
    -------
    Table
        Named columns.

    Raises
    ------
    TableError
        One sentence: what is wrong, where, and what to do.

    Examples
    --------
    >>> from kernelweave.tables import read_table
    >>> read_table("iris").frame.shape
    (150, 5)
    """
    if not isinstance(source, str | os.PathLike):
        return read_frame(source, target=target)
    table = _read_named_source(os.fspath(source), header)
    if target is None:
        return table
    if target not in table.columns:
        hint = did_you_mean(target, table.columns, what="columns")
        raise TableError(f"{table.source} has no column {target!r}; {hint}")
    return replace(table, target=target)


def _read_named_source(source: str, header: bool) -> Table:
    if source in ("-", "stdin:"):
        return _read_content(
            _unpacked(sys.stdin.buffer.read(), "standard input"), "standard input", header
        )
    if source.startswith(PREFIX):
        return read_openml(source)
    path = Path(source).expanduser()
    if path.is_dir():
        raise TableError(f"{source} is a folder, not a file: name a file in it")
    if not path.exists():
        return _read_by_name(source, header)
    return _read_file(path, source, header)


def _read_file(path: Path, source: str, header: bool) -> Table:
    content = _read_bytes(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return read_parquet(content, source)
    return _read_content(content, source, header)


def _read_by_name(source: str, header: bool) -> Table:
    known, files = datasets(), folder_files()
    if source in known:
        return read_named(known[source])
    if source in files:
        return _read_file(files[source], source, header)
    missing = f"there is no file {source!r} and no data set of that name"
    if "/" in source or "." in source:
        raise TableError(missing)
    hint = did_you_mean(source, [*known, *files], what="data sets")
    remark = folder_remark()
    raise TableError(f"{missing}; {hint}" + (f" ({remark})" if remark else ""))


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or error}") from error
    return _unpacked(content, str(path))


def _unpacked(content: bytes, source: str) -> bytes:
    try:
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TableError(f"{source} is a damaged gzip file ({error}): copy it again") from error


def _read_content(content: bytes, source: str, header: bool) -> Table:
    """Read what the bytes themselves say they are."""
    if content.startswith(PARQUET):
        return read_parquet(content, source)
    if content.startswith((ZIP, OLD_EXCEL)):
        return read_excel(content, source, header=header)
    if b"\0" in content[:4096] and not content.startswith(UTF_16):
        raise TableError(
            f"{source} is not text: CSV, Excel, Parquet, JSON and LIBSVM files are read"
        )
    if _JSON.match(content):
        return read_json(content, source)
    if _is_libsvm(content):
        return read_libsvm(content, source)
    return read_csv(content, source, header=header)


def _is_libsvm(content: bytes) -> bool:
    """Whether the first line that says something reads ``label index:value ...``."""
    for line in content[:65536].splitlines():
        if not _COMMENT.match(line):
            return bool(_LIBSVM_LINE.match(line))
    return False
