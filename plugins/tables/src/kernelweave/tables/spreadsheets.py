"""Excel: the sheet that has a table, without the title above it and the notes below."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree.ElementTree import iterparse

import numpy as np
import numpy.typing as npt
import pandas as pd
from kernelweave.kernels_core.exceptions import Message, warn

from .errors import TableError, did_you_mean, one_line
from .sizes import require_memory, require_room
from .table import (
    Table,
    name_columns,
    read_cells,
    warn_of_note,
    warn_of_title,
    without_row_numbers,
    without_total,
)

ZIP, OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_MOST_ROWS, _MOST_COLUMNS = 2**20, 2**14
# of the list of rows in a sheet
_DEPTH = 2
# Bytes of memory that a row takes, each of its cells that holds something, and each character of
# these: 122 a number and 175 a cell of a mixed table of 16 columns were measured, and 390 a row of
# two.
_ROW, _FILLED, _CHARACTER = 400, 200, 8
_REMEDY = "open the file in a spreadsheet program and save it, which computes them"


@dataclass
class FilledCells:
    """The cells of a sheet that hold something.

    - `rows`: of each row that has such cells, by its number from 1, the value of each column
    - `columns`: those that have such cells, from 1
    - `characters`: of its texts; `n_filled`: how many there are
    - `formulas`: by column, the rows of formulas that are kept without their results
    - `merged`: ranges of cells of one row that are one, as (row, first column, last column)
    """

    rows: dict[int, dict[int, object]] = field(default_factory=dict)
    columns: set[int] = field(default_factory=set)
    characters: int = 0
    n_filled: int = 0
    formulas: dict[int, list[int]] = field(default_factory=dict)
    merged: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def memory(self) -> int:
        """Bytes that it takes; the rectangle that the rows span has empty cells too."""
        rectangle = 16 * len(self.rows) * len(self.columns)
        filled = _FILLED * self.n_filled + _CHARACTER * self.characters
        return rectangle + filled + _ROW * len(self.rows)

    def add(self, number: int, cells: dict[int, object]) -> None:
        """Add a row that holds something."""
        self.rows[number] = cells
        self.columns |= cells.keys()
        self.n_filled += len(cells)
        self.characters += sum(len(each) for each in cells.values() if isinstance(each, str))

    @property
    def frame(self) -> pd.DataFrame:
        """The cells, NaN where there is none; rows and columns by their numbers from 1."""
        cells = {
            column: [row.get(column, np.nan) for row in self.rows.values()]
            for column in sorted(self.columns)
        }
        return pd.DataFrame(cells, index=list(self.rows), dtype=object)


def read_excel(
    content: bytes, source: str, *, header: bool = True, wanted: str | None = None
) -> Table:
    """Read a sheet of an Excel file, the first that has a table where none is asked for.

    Without a header columns are 0, 1, …; messages name the rows by the numbers that Excel shows.
    Raises TableError if it is an old ``.xls`` file, damaged, empty or too large for the memory
    limit, or a column has no name or that of another.
    """
    if content.startswith(OLD_EXCEL):
        raise TableError(f"{source} is an old Excel file: save it as .xlsx or as CSV")
    try:
        sheets = _sheets(content, source)
    except (TableError, MemoryError):
        raise
    except Exception as error:  # whatever breaks in the archive, its XML, or what XML means
        raise TableError(f"{source} is not a sound Excel file: {one_line(error)}") from error
    full = {name: sheet for name, sheet in sheets.items() if sheet.rows}
    if not full:
        formulas = any(sheet.formulas for sheet in sheets.values())
        raise TableError(
            f"{source} has no rows in any sheet"
            + (f", but formulas without results: {_REMEDY}" if formulas else "")
        )
    if wanted is not None and wanted not in full:
        raise TableError(
            f"{source} has no sheet {wanted!r} with rows; "
            f"{did_you_mean(wanted, full, what='sheets')}"
        )
    # a cover sheet has a title, or a few lines, and no table
    tables = (each for each, sheet in full.items() if min(len(sheet.rows), len(sheet.columns)) > 1)
    name = wanted or next(tables, next(iter(full)))
    if len(full) > 1 and wanted is None:
        warn(
            Message(
                "{source} has {n} sheets with rows; {name!r} is read: choose another by {sheet}",
                source=source,
                n=len(full),
                name=name,
            )
        )
    return _sheet_table(full[name], source, header)


def _sheets(content: bytes, source: str) -> dict[str, FilledCells]:
    """Return the sheets of a file.

    What openpyxl reads at once, names, texts and styles, has to fit into the memory limit; sheets
    are read row by row and count for what their cells take.
    """
    from openpyxl.packaging.relationship import get_rels_path
    from openpyxl.reader.excel import ExcelReader, _find_workbook_part
    from openpyxl.styles.stylesheet import apply_stylesheet
    from openpyxl.xml.constants import ARC_CONTENT_TYPES, ARC_STYLE, SHARED_STRINGS

    reader = ExcelReader(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
    # no member gives more than it states
    sizes = {each.filename: each.file_size for each in reader.archive.infolist()}

    def require(*names: str) -> None:
        n_bytes = sum(sizes.get(name, 0) for name in names)
        # a byte of a style takes four times as much as one of a text
        text = n_bytes + (3 * sizes.get(ARC_STYLE, 0) if ARC_STYLE in names else 0)
        require_room(text, source, f"has {n_bytes:,} bytes of names, texts and styles")

    require(ARC_CONTENT_TYPES)
    reader.read_manifest()
    texts, book_part = reader.package.find(SHARED_STRINGS), _find_workbook_part(reader.package)
    names = [each.PartName[1:] for each in (texts, book_part) if each is not None]
    require(ARC_CONTENT_TYPES, ARC_STYLE, *names, *map(get_rels_path, names))
    reader.read_strings()
    reader.read_workbook()
    apply_stylesheet(reader.archive, reader.wb)
    sheets: dict[str, FilledCells] = {}
    for sheet, rel in reader.parser.find_sheets():
        if rel.target in sizes and "chartsheet" not in rel.Type:
            taken = sum(each.memory for each in sheets.values())
            sheets[sheet.name] = _read_sheet(reader, rel.target, source, taken)
    return sheets


@dataclass
class _Part:
    """The stream of a sheet, which counts what was read of it since a row ended."""

    stream: Any
    source: str
    pending: int = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes; raise TableError where no row ends in more than there is room."""
        chunk: bytes = self.stream.read(size)
        self.pending += len(chunk)
        what = f"has {self.pending:,} bytes in a sheet without the end of a row"
        require_room(self.pending, self.source, what)
        return chunk


def _read_sheet(reader: Any, name: str, source: str, taken: int) -> FilledCells:
    """Return the cells of a sheet, however far apart they stand.

    `reader`: openpyxl's, of the file; `name`: of the part; `taken`: bytes that other sheets take.
    """
    from openpyxl.utils import range_boundaries
    from openpyxl.worksheet._reader import (
        DATA_TAG,
        FORMULA_TAG,
        MERGE_TAG,
        ROW_TAG,
        WorkSheetParser,
    )  # fmt: skip

    found = FilledCells()

    class Parser(WorkSheetParser):  # type: ignore[misc]
        """Reads cells, and keeps where a formula has no result."""

        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell: dict[str, Any] = super().parse_cell(element)
            # a formula whose result is an empty text says so by its type
            plain = cell["value"] is None and cell["data_type"] == "n"
            if plain and element.find(FORMULA_TAG) is not None:
                found.formulas.setdefault(cell["column"], []).append(cell["row"])
            return cell

    book, depth = reader.wb, 0
    with reader.archive.open(name) as stream:
        parser = Parser(
            stream, reader.shared_strings, data_only=True, epoch=book.epoch,
            date_formats=book._date_formats, timedelta_formats=book._timedelta_formats,
        )  # fmt: skip
        # openpyxl would fill each row up to the last column, and read formats that are not needed
        part, rows = _Part(stream, source), None
        for event, element in iterparse(part, events=("start", "end")):
            depth += 1 if event == "start" else -1
            if event == "start":
                if element.tag == DATA_TAG and depth == _DEPTH:
                    if rows is not None:
                        raise TableError(
                            f"{source} is not a sound Excel file: a sheet starts twice"
                        )
                    rows = element
                continue
            if element.tag == MERGE_TAG:
                for each in element:
                    first, top, last, bottom = range_boundaries(each.get("ref"))
                    if top == bottom:
                        found.merged.append((top, first, last))
            if element.tag != ROW_TAG:
                continue
            if len(element) > _MOST_COLUMNS:
                raise TableError(
                    f"{source} is not a sound Excel file: it has a row of {len(element):,} cells, "
                    f"and Excel has {_MOST_COLUMNS:,} columns"
                )
            number, row = parser.parse_row(element)
            element.clear()
            if rows is not None and depth == _DEPTH:
                # with what stands between two rows
                rows.clear()
                part.pending = 0
            cells = {cell["column"]: _value(cell) for cell in row if _is_filled(cell)}
            if not cells:
                continue
            if number > _MOST_ROWS or max(cells) > _MOST_COLUMNS:
                raise TableError(
                    f"{source} is not a sound Excel file: it has a cell in row {number}, column "
                    f"{max(cells)}, and Excel ends at row {_MOST_ROWS}, column {_MOST_COLUMNS}"
                )
            found.add(number, cells)
            shape = f"has {len(found.rows):,} rows or more of {len(found.columns):,} columns"
            require_memory(taken + found.memory, source, shape, columns=len(found.columns))
    return found


def _is_filled(cell: dict[str, Any]) -> bool:
    """Whether a cell holds something; an error such as #N/A is missing."""
    return cell["value"] not in (None, "") and cell["data_type"] != "e"


def _value(cell: dict[str, Any]) -> object:
    """Return what a cell holds; 3.0 is 3."""
    value = cell["value"]
    whole = cell["data_type"] == "n" and float(value).is_integer()
    return int(value) if whole else value


def _sheet_table(found: FilledCells, source: str, header: bool) -> Table:
    """Return a table without a title above and notes below, which are warned of."""
    sheet = found.frame
    filled = sheet.notna().sum(axis=1).to_numpy()
    places = list(found.rows)

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
        second = cells_of(start + 1) if start + 2 < end else []
        if second and _are_groups(found, places[start], first, second):
            first, start = _joined(first, second), start + 1
            warn(
                f"{source}: rows {places[start - 1]} and {places[start]} are taken for two rows of "
                f"names, as of the columns {', '.join(map(repr, first[:3]))}"
            )
        names, start = name_columns(first, source), start + 1
    lines = places[start:end]
    frame = sheet.iloc[start:end].set_axis(names, axis=1).infer_objects()
    table = without_total(read_cells(frame, source, lines=lambda: lines))
    refused = {
        name: _without_results(name, [row for row in rows if row > places[start - 1]])
        for name, column in zip(names, sheet, strict=True)
        if (rows := found.formulas.get(int(str(column))))
    }
    table = replace(table, refused={**table.refused, **refused})
    return table if first[0] else without_row_numbers(table)


def _are_groups(found: FilledCells, row: int, first: list[str], second: list[str]) -> bool:
    """Whether a row names groups of columns, whose own names stand in the second row.

    What it leaves out is under a merged cell beside others, and has a name in the second row.
    """
    columns = sorted(found.columns)
    without = {columns[j] for j, name in enumerate(first) if not name}
    merged = [range(low, high + 1) for at, low, high in found.merged if at == row]
    covered = {column for each in merged for column in each}
    is_title = any(set(columns) <= set(each) for each in merged)
    are_named = all(second[columns.index(column)] for column in without)
    return bool(without) and without <= covered and not is_title and are_named


def _joined(first: list[str], second: list[str]) -> list[str]:
    """Return names of two rows: that of a group, above its first column, and a column's own."""
    names, group = [], ""
    for above, own in zip(first, second, strict=True):
        group = above or group
        names.append(f"{group} {own}".strip())
    return names


def _without_results(name: str, rows: list[int]) -> str:
    """Return what to say of a column with formulas that are kept without their results."""
    which = f"row {rows[0]}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
    return f"column {name!r} holds formulas without results ({which}): {_REMEDY}"


def _end_of_rows(sheet: pd.DataFrame, filled: npt.NDArray[np.intp]) -> int:
    """Return where a table ends: before texts of a single cell that stand below an empty row."""
    n_rows = len(sheet)
    while sheet.shape[1] > 2 and n_rows > 2 and filled[n_rows - 1] == 1:
        n_rows -= 1
    apart = np.flatnonzero(np.diff(sheet.index.to_numpy()) > 1) + 1
    return next((int(at) for at in apart if at >= n_rows), len(sheet))
