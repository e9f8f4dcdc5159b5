"""From what a user names to a table: files, data sets by name, standard input, data frames."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import urllib.error
import warnings
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kernelweave.kernels_core import DatasetSpec, datasets, memory

from .data_folder import folder_files, folder_remark
from .errors import TableError, did_you_mean, one_line
from .formats import PARQUET, STATISTICS, read_libsvm, read_parquet, read_statistics
from .frames import as_pandas
from .objects import read_json
from .sizes import read_all, require_room
from .spreadsheets import OLD_EXCEL, ZIP, read_excel
from .table import Table, read_cells
from .text import read_csv, wide_encoding_of

_TARGET = "target"
_OPENML = "openml:"
_OPENML_NAME = re.compile(r"(?P<id>\d+)|(?P<name>[^@\s]+)@(?P<version>\d+)")
_LIBSVM_LINE = re.compile(rb"^\s*[-+\d.eE]+(\s+qid:\d+)?(\s+\d+:[-+\d.eEinfaN]+)+\s*(#.*)?$")
_JSON = re.compile(rb"^(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[\{\]])")
_MARKUP = re.compile(rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype|html|\?xml)\b")
_GZIP = b"\x1f\x8b"
# What no text has; of a NUL alone its line is told.
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_COMMENT = re.compile(rb"^\s*(#.*)?$")


def read_table(
    source: object,
    *,
    header: bool = True,
    target: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Table:
    """Read a table from a file, a data set by name, standard input, or a data frame.

    Parameters
    ----------
    source : str, Path or DataFrame
        A path to a CSV of any dialect, Parquet, Excel, JSON (lines, or a list), LIBSVM, Stata, SAS
        or SPSS file, text also compressed by gzip or zip, the name of a registered data set or of
        a file in the folder ``KERNELWEAVE_DATA``, ``openml:NAME@VERSION`` or ``openml:ID``, ``-``
        for standard input, or a data frame of pandas, polars or Arrow. A file goes before a data
        set of its name.
    header : bool, default=True
        Whether the first line of a CSV or an Excel sheet names the columns; without, they are 0,
        1, ...
    target : str or None, default=None
        The column to predict, where the source does not name it.
    encoding : str or None, default=None
        Character encoding of a text file, such as ``"shift_jis"``; detected if None.
    sheet : str or None, default=None
        Sheet of an Excel file; the first one with a table if None.

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
    if isinstance(source, str | os.PathLike):
        ways = {"header": header, "encoding": encoding, "sheet": sheet}
        table = _read_named_source(os.fspath(source), ways)
    else:
        frame = as_pandas(source)
        if frame is None:
            raise TableError(
                "a table must be a file, a data set's name or a data frame of pandas, polars or "
                f"Arrow, got {type(source).__name__}"
            )
        table = read_cells(frame, "the table")
    if target is None:
        return table
    if target not in table.columns:
        hint = did_you_mean(target, table.columns, what="columns")
        raise TableError(f"{table.source} has no column {target!r}; {hint}")
    return replace(table, target=target)


def _read_named_source(source: str, ways: dict[str, Any]) -> Table:
    # the command line spells a lone dash out
    if source in ("-", "stdin:"):
        content = read_all(sys.stdin.buffer, "standard input", "has")
        return _read_content(content, "standard input", ways)
    if source.startswith(_OPENML):
        return read_openml(source)
    path = Path(source).expanduser()
    if path.is_dir():
        raise TableError(f"{source} is a folder, not a file: name a file in it")
    if not path.exists():
        specs, files = datasets(), folder_files()
        if source in specs:
            return read_named(specs[source])
        if source not in files:
            raise TableError(_not_found(source, [*specs, *files]))
        path = files[source]
    if path.suffix.lower() in STATISTICS:
        return read_statistics(path, source)
    try:
        n_bytes = path.stat().st_size
        require_room(n_bytes, source, f"has {memory.size_text(n_bytes)}")
        with path.open("rb") as file:
            # a pipe or a device has no size, and may have no end
            content = read_all(file, source, "has")
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or error}") from error
    return _read_content(content, source, ways)


def _not_found(source: str, known: list[str]) -> str:
    """Return what to say of a name that is no file and none of the known data sets."""
    missing = f"there is no file {source!r} and no data set of that name"
    if "/" in source or "." in source:
        return missing
    remark = folder_remark()
    hint = did_you_mean(source, known, what="data sets")
    return f"{missing}; {hint}" + (f" ({remark})" if remark else "")


def _read_content(content: bytes, source: str, ways: dict[str, Any]) -> Table:
    """Return the table in a file's bytes, which tell its format themselves."""
    content = _unpacked(content, source)
    if content.startswith((ZIP, OLD_EXCEL)):
        return read_excel(content, source, header=ways["header"], wanted=ways["sheet"])
    if ways["sheet"] is not None:
        raise TableError(f"{source} is no Excel file and has no sheet {ways['sheet']!r}")
    if content.startswith(PARQUET):
        return read_parquet(content, source)
    head = content[:4096]
    is_binary = b"\0" in head and _CONTROLS.search(head)
    if is_binary and ways["encoding"] is None and not wide_encoding_of(content):
        raise TableError(
            f"{source} is not text: CSV, Excel, Parquet, JSON and LIBSVM files are read"
        )
    if _MARKUP.match(content):
        raise TableError(f"{source} is a web page or XML, not a table: save the table as CSV")
    if _JSON.match(content):
        return read_json(content, source)
    lines = content[:65536].splitlines()
    first = next((line for line in lines if not _COMMENT.match(line)), b"")
    if _LIBSVM_LINE.match(first):
        return read_libsvm(content, source)
    return read_csv(content, source, header=ways["header"], encoding=ways["encoding"])


def _unpacked(content: bytes, source: str) -> bytes:
    """Return what a gzip file, or a zip file of one member, holds; other files as they are."""
    try:
        if content.startswith(_GZIP):
            with gzip.open(io.BytesIO(content)) as stream:
                return read_all(stream, source, "unpacks to")
        if content.startswith(ZIP):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = [each for each in archive.namelist() if not each.startswith("__MACOSX/")]
                if "[Content_Types].xml" in members or "xl/workbook.xml" in members:
                    return content
                if len(members) != 1:
                    few = ", ".join(members[:4])
                    raise TableError(f"{source} holds {len(members)} files ({few}): unpack one")
                with archive.open(members[0]) as member:
                    return read_all(member, source, "unpacks to")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        kind = "gzip" if content.startswith(_GZIP) else "zip"
        raise TableError(f"{source} is a damaged {kind} file ({error}): copy it again") from error
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise TableError(
            f"{source} is not a sound Excel file, nor a zip file that can be read: {error}"
        ) from error
    return content


def read_named(spec: DatasetSpec) -> Table:
    """Load a registered data set.

    `spec`: its loader returns a mapping with ``data``, ``target`` and, where it has them,
    ``feature_names`` and ``target_names``. Returns: features by name and the target, which is
    called ``"target"`` unless it has a name, with the classes' names in it. Raises TableError if
    the loader fails or returns something else.
    """
    try:
        bunch = spec.load()()
        X, y = bunch["data"], np.asarray(bunch["target"])
    except Exception as error:
        raise TableError(f"the data set {spec.name!r} cannot be loaded: {error}") from error
    frame, names = pd.DataFrame(X).reset_index(drop=True), bunch.get("feature_names")
    frame.columns = pd.Index(map(str, frame.columns if names is None else names))
    column = str(getattr(bunch["target"], "name", _TARGET))
    labels = bunch.get("target_names")
    named = spec.task == "classification" and labels is not None and y.dtype.kind in "iu"
    frame[column] = np.asarray(labels)[y] if named else y
    return read_cells(frame, spec.name, target=column, task=spec.task)


def read_openml(source: str) -> Table:
    """Read a data set of OpenML; only the first time from the network.

    scikit-learn compares what it fetches with the checksum that OpenML states, and keeps it below
    `sklearn.datasets.get_data_home()`.

    `source`: ``openml:NAME@VERSION`` or ``openml:ID``. Returns: with the target that OpenML names;
    text columns stay text. Raises TableError if the source names no version, the set is not
    there, it cannot be reached, or it has no single target.
    """
    from sklearn.datasets import fetch_openml, get_data_home

    match = _OPENML_NAME.fullmatch(source.removeprefix(_OPENML))
    if match is None:
        raise TableError(
            f"{source} names no version: say openml:NAME@VERSION, e.g. openml:iris@1, or "
            f"openml:ID, so that the data stay the same"
        )
    which: dict[str, object] = {"data_id": int(match["id"])} if match["id"] else {}
    if not which:
        which = {"name": match["name"], "version": int(match["version"])}
    try:
        with warnings.catch_warnings():
            # each retry would be a warning of its own
            warnings.simplefilter("ignore")
            bunch = fetch_openml(**which, as_frame=True, parser="pandas", n_retries=1, delay=0.5)
    except urllib.error.HTTPError as error:
        raise TableError(f"OpenML has no data set {source}: {one_line(error)}") from error
    except OSError as error:
        raise TableError(
            f"{source} is not in scikit-learn's cache {get_data_home()} and OpenML cannot be "
            f"reached: {one_line(error)}"
        ) from error
    except (ValueError, KeyError) as error:
        raise TableError(f"{source} cannot be read: {one_line(error)}") from error
    frame, names = bunch["frame"], [str(name) for name in bunch["target_names"]]
    if len(names) > 1:
        raise TableError(f"{source} has {len(names)} targets ({', '.join(names[:4])}, ...)")
    target = names[0] if names else None
    text = target is not None and isinstance(frame[target].dtype, pd.CategoricalDtype)
    return read_cells(frame, source, target=target, task="classification" if text else None)
