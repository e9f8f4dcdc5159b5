"""CSV in any dialect: what is wrong is said with its line."""

from __future__ import annotations

import csv
import functools
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pandas as pd

from .dialect import LOOKED_AT, decode, separator_of, without_trailing_blanks
from .errors import TableError
from .table import (
    Table,
    are_codes,
    check_names,
    is_number,
    warn_of_title,
    with_index,
    without_row_numbers,
)
from .written import is_written_number, read_numbers

# at the beginning of a cell
_LED_BY_ZERO = r"(^|[\s\"{}])0[0-9]"


def read_csv(content: bytes, source: str, *, header: bool = True) -> Table:
    """Read a CSV, whatever its separator, its decimal sign and its letters.

    `content`: text; `source`: what messages call it; `header`: whether the first line names the
    columns; without, they are 0, 1, . Raises TableError on bytes that are no text, blank lines
    alone, names that are missing or occur twice, no rows, or rows of different lengths.
    """
    text = decode(content, source)
    if not text.strip():
        raise TableError(f"{source} is empty: there is nothing to learn from")
    separator = separator_of(text)
    if separator == " ":
        text = without_trailing_blanks(text)
    if header:
        text = _without_title(text, source, separator)
    first_line = next(line for line in text.splitlines() if line.strip())
    try:
        first = [cell.strip() for cell in next(_records(first_line, separator))[1]]
    except csv.Error as error:
        raise TableError(f"{source}, line 1: {error}: correct the line") from error
    names = _names(first, source) if header else [str(j) for j in range(len(first))]
    frame, units, texts = read_numbers(
        _parse(text, source, separator, names, header), source, separator
    )
    if frame.empty:
        raise TableError(f"{source} has column names but no rows: there is nothing to learn from")
    lines = functools.cache(lambda: _lines(text, source, separator, len(names), header))
    table = Table(source, frame, lines=lines, units=units, texts=texts, separator=separator)
    return without_row_numbers(table) if header and not first[0] else table


def _without_title(text: str, source: str, separator: str) -> str:
    """Return a text in which lines of a single cell above the names of the columns are blank.

    Numbers are rows, not names: a single cell above them may be the names, separated otherwise.
    """
    try:
        records = list(islice(_records(text, separator), LOOKED_AT))
    except csv.Error:
        return text
    width, _ = Counter(len(cells) for _, cells in records).most_common(1)[0]
    n_above = next((i for i, (_, cells) in enumerate(records) if sum(map(bool, cells)) > 1), 0)
    above, below = records[:n_above], records[n_above][1]
    if width == 1 or not above or any(map(is_written_number, below)):
        return text
    # "a," may name one column of two
    if width == 2 and any(len(cells) > 1 for _, cells in above):
        return text
    last = above[-1][0]
    title = next(filter(None, (cell for _, cells in above for cell in cells)), "")
    warn_of_title(source, "line", above[0][0], title, records[n_above][0])
    return "\n" * last + text.split("\n", last)[last]


def _names(cells: list[str], source: str) -> list[str]:
    """Return the column names of a header, or say what is wrong with it."""
    cells = with_index(cells)
    check_names(filter(None, cells), source)
    if "" in cells:
        raise TableError(
            f"{source}: column {cells.index('') + 1} has no name (a separator too many, or "
            f"a title above the names): name it or remove it"
        )
    counted = [[str(j + start) for j in range(len(cells))] for start in (0, 1)]
    if all(is_number(cell) for cell in cells) and cells not in counted:
        raise TableError(
            f"{source} begins with numbers ({', '.join(cells[:3])}, ...) where column names should "
            f"be: add a line of names, or use --no-header"
        )
    return cells


def _parse(text: str, source: str, separator: str, names: list[str], header: bool) -> pd.DataFrame:
    def read(**options: Any) -> pd.DataFrame:
        frame: pd.DataFrame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            names=names,
            header=0 if header else None,
            index_col=False,
            skipinitialspace=True,
            keep_default_na=False,
            low_memory=False,
            **options,
        )
        return frame

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = read()
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            _lines(text, source, separator, len(names), header)
            raise TableError(f"{source} is not a CSV that can be read: {error}") from error
    whole = [str(name) for name in frame if pd.api.types.is_integer_dtype(frame[name])]
    if not whole or not re.search(_LED_BY_ZERO.format(re.escape(separator)), text, re.MULTILINE):
        return frame
    written = read(usecols=whole, dtype=str)
    codes = [name for name in whole if are_codes(written[name])]
    frame[codes] = written[codes]
    return frame


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of every record that is not blank."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    for cells in reader:
        if cells:
            yield reader.line_num, cells


def _lines(text: str, source: str, separator: str, width: int, header: bool) -> list[int]:
    """Return the line of every row; raise at the first row that is too long or too short."""
    lines = [0]
    try:
        for line, cells in _records(text, separator):
            if len(cells) != width:
                first = "the header has" if header else "the first line has"
                remedy = "correct the line"
                if header and len(lines) == 2:
                    remedy += ", or remove what stands above the names of the columns"
                raise TableError(
                    f"{source}, line {line}: {len(cells)} cells where {first} {width}: {remedy}"
                )
            lines.append(line)
    except csv.Error as error:
        raise TableError(f"{source}, line {lines[-1] + 1}: {error}: correct the line") from error
    del lines[0]
    return lines[1:] if header else lines
