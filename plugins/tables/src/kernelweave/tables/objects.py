"""JSON: an object a line, or one list of objects, whose entries are columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .errors import TableError, one_line
from .frames import check_names
from .sizes import require_room
from .table import Table, read_cells

# the rows that have a value in each column, and the values
Columns: TypeAlias = dict[str, tuple[list[int], list[Any]]]
_BLANK = " \t\r\n"


def read_json(content: bytes, source: str) -> Table:
    """Read JSON lines, an object each, or one list of objects.

    What an object lacks is missing; of objects inside a column, each entry is a column, such as
    ``user.age``. Raises TableError if it is no such text, or has more cells than the memory limit
    has room for.
    """
    text = content.decode("utf-8-sig", errors="replace")
    is_list = text.lstrip().startswith("[")
    places: list[int] = []

    def rows() -> Iterator[tuple[int, dict[str, Any]]]:
        for i, (place, row) in enumerate(
            _in_list(text, source) if is_list else _lines(text, source)
        ):
            if not isinstance(row, dict):
                where = f"{'row' if is_list else 'line'} {place}"
                raise TableError(f"{source}, {where}: {row!r:.40} is not an object with columns")
            places.append(place)
            yield i, row

    columns = _columns(rows(), source)
    n_rows, n_columns = len(places), len(columns)
    shape = f"has {n_rows:,} rows and {n_columns:,} columns"
    require_room(n_rows * n_columns + len(text), source, shape, columns=n_columns)
    frame = pd.DataFrame(_filled(columns, n_rows), index=range(n_rows))
    return read_cells(frame, source, lines=None if is_list else lambda: places)


def _lines(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """Yield what each line holds, with its number."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise TableError(
                    f"{source}, line {number}: not JSON ({one_line(error)})"
                ) from error


def _in_list(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """Yield the members of a list, counted from 1, one after the other."""
    decoder, place = json.JSONDecoder(), 0

    def behind_blanks(at: int) -> int:
        while text[at : at + 1] and text[at] in _BLANK:
            at += 1
        return at

    at = behind_blanks(text.index("[") + 1)
    try:
        while place or text[at : at + 1] != "]":
            place += 1
            row, at = decoder.raw_decode(text, at)
            yield place, row
            at = behind_blanks(at)
            if text[at : at + 1] != ",":
                break
            at = behind_blanks(at + 1)
        if text[at : at + 1] != "]":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        if rest := text[at + 1 :].strip():
            raise json.JSONDecodeError("Extra data", text, text.index(rest, at + 1))
    except (ValueError, RecursionError) as error:
        raise TableError(f"{source}, line 1: not JSON ({one_line(error)})") from error


def _columns(rows: Iterable[tuple[int, dict[str, Any]]], source: str) -> Columns:
    """Return the columns of objects; one of objects is one of each of their entries.

    `rows`: the place of each object, counted from 0, in order.
    """
    columns: Columns = {}
    for place, row in rows:
        for name, value in row.items():
            places, values = columns.setdefault(name, ([], []))
            places.append(place)
            values.append(value)
    found: Columns = {}
    names: list[str] = []
    for name, (places, values) in columns.items():
        inside = {name: (places, values)}
        present = [pair for pair in zip(places, values, strict=True) if pair[1] is not None]
        if present and all(isinstance(value, dict) for _, value in present):
            entries = _columns(present, source)
            inside = {f"{name}.{inner}": cells for inner, cells in entries.items()}
        names += inside
        found |= inside
    # an entry may be called as another column is: user.age
    check_names(names, source)
    return found


def _filled(columns: Columns, n_rows: int) -> dict[str, list[Any]]:
    """Return the cells of all rows, NaN where an object has none."""
    cells: dict[str, list[Any]] = {}
    for name, (places, values) in columns.items():
        cells[name] = values
        if len(places) < n_rows:
            cells[name] = [np.nan] * n_rows
            for i, value in zip(places, values, strict=True):
                cells[name][i] = value
    return cells
