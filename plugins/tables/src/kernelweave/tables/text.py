"""Text with columns, CSV in any dialect: letters, separators, what is wrong with its line."""

from __future__ import annotations

import csv
import functools
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from kernelweave.kernels_core.exceptions import Message, warn

from .errors import TableError
from .sizes import require_room
from .table import (
    Table,
    hold_codes,
    is_number,
    name_columns,
    read_cells,
    warn_of_note,
    warn_of_title,
    without_row_numbers,
    without_total,
)
from .written import is_written_number

_NO_LETTERS = re.compile("[\\0-\\x08\ufffd]")
# at the beginning of a cell
_LED_BY_ZERO = r"(^|[\s\"{}])0[0-9]"
_BLANK_CELLS = r"^[ \t\r{0}]*[{0}][ \t\r{0}]*$"
_BEYOND_ASCII = re.compile(rb"[^\r\n]*[\x80-\xff][^\r\n]*")
_SEPARATOR_LINE = re.compile(r"sep=([;,|\t])\r?\n")
_TRAILING_BLANKS = re.compile(r" +(?=[\r\n]|\Z)")
_NOT_DECIMAL = re.compile(r"(?<!\d),|,(?!\d)")
# the comma last: where commas are decimal, it cuts all lines evenly too
_SEPARATORS = "\t;|,"
# Lines that tell the separator: enough that sentences differ in their commas, and no long read.
_LOOKED_AT = 50
_UTF_8 = "utf-8-sig"
# What spreadsheets and statistical offices write beside UTF-8.
_ENCODINGS = (
    *("cp1252", "cp932", "gb18030", "euc_kr", "euc_jp", "big5", "cp1250", "cp1251", "cp1253"),
    *("cp1254", "cp1255", "cp1256", "koi8_r"),
)
# Bytes that tell the letters: a detector need not read more.
_SAMPLE = 2**18
# So few bytes beyond ASCII fit any alphabet, and are most often Western.
_FEWEST_LETTERS = 4


def read_csv(
    content: bytes, source: str, *, header: bool = True, encoding: str | None = None
) -> Table:
    """Read a CSV, whatever its separator, its decimal sign and its letters.

    Without a header columns are 0, 1, …; the encoding is found where none is given. Raises
    TableError on bytes that are no text, blank lines alone, names that are missing or occur twice,
    no rows, or rows of different lengths.
    """
    text, _ = decode(content, source, encoding)
    if not text.strip():
        raise TableError(f"{source} is empty")
    separator, n_above = _separator_and_skip(text, source, header=header)
    # blank lines keep the numbers of those below
    text = "\n" * n_above + text.split("\n", n_above)[n_above]
    if separator == " ":
        text = _TRAILING_BLANKS.sub("", text)
    text = _without_empty_rows(text, source, separator)
    if not text.strip():
        raise TableError(f"{source} is empty: no cell has a value")
    if header:
        text = _without_last_separators(text, separator)
    first = _first_record(text, source, separator)
    names = [str(j) for j in range(len(first))]
    if header:
        counted = names, [str(j + 1) for j in range(len(first))]
        if all(map(is_number, first)) and first not in counted:
            message = Message(
                "{source} begins with numbers ({first}, ...) where column names should be: add a "
                "line of names{or_no_header}",
                source=source,
                first=", ".join(first[:3]),
                or_no_header=", or read it with header=False",
            )
            raise TableError(message)
        names = name_columns(first, source)
    require_room(len(text), source, f"has {len(names):,} columns", columns=len(names))
    text = _without_footer(text, source, separator, len(names))
    cells = _parse(text, source, separator, names, header)
    lines = functools.cache(lambda: _lines(text, source, separator, len(names), header))
    # pandas fills up a row that is too short
    last = cells.iloc[:, -1]
    if last.isna().any() or (last == "").any():
        lines()
    if cells.empty:
        raise TableError(f"{source} has column names but no rows")
    comma = "thousands" if separator == "," else "decimal"
    table = without_total(read_cells(cells, source, comma, lines=lines))
    return without_row_numbers(table) if header and not first[0] else table


def decode(content: bytes, source: str, encoding: str | None = None) -> tuple[str, str]:
    """Return a text and its encoding: UTF-8, -16, -32, or what charset-normalizer finds, warned of.

    `content`: the file; `source`: what messages call it; `encoding`: its name where it is known.
    Raises TableError if it is none of these.
    """
    codec = encoding or wide_encoding_of(content) or _UTF_8
    try:
        return _without_nul(content.decode(codec).removeprefix("\ufeff"), source), codec
    except LookupError as error:
        raise TableError(
            f"there is no encoding {encoding!r}: utf-8, cp1252 and shift_jis are some"
        ) from error
    except UnicodeDecodeError as error:
        if encoding is None and codec != _UTF_8:
            name = codec[:6].upper()
            raise TableError(f"{source} is damaged {name} text: save it as UTF-8") from error
        likeliest = None if encoding else _likeliest_encoding(content)
        line = error.object.count(b"\n", 0, error.start) + 1
        if likeliest is None:
            message = "{source} is not {name} text (line {line})"
            message += "" if encoding else ": save it as UTF-8, or give its {encoding}"
            message = Message(message, source=source, name=encoding or "UTF-8", line=line)
            raise TableError(message) from error
    message = (
        "{source} is not UTF-8 text (line {line}) and is read as {name}: check its accents and "
        "letters, or give its {encoding}"
    )
    name = {"cp1252": "Windows-1252", "cp932": "Shift_JIS"}.get(likeliest, likeliest)
    warn(Message(message, source=source, line=line, name=name))
    return _without_nul(content.decode(likeliest), source), likeliest


def _without_nul(text: str, source: str) -> str:
    """Return a text; raise TableError where it has a NUL, which no cell can hold."""
    at = text.find("\0")
    if at < 0:
        return text
    line = text.count("\n", 0, at) + 1
    raise TableError(
        f"{source}, line {line}: there is a NUL byte, which no text has: the file is damaged or "
        "is not text; copy it again, or remove the byte"
    )


class Dialect(NamedTuple):
    """How the lines of a CSV are read.

    - `n_above`: how many lines stand above the names of the columns
    - `names`: of the columns; the first is "index" if it has none
    - `has_index`: whether the first column has no name
    """

    encoding: str
    separator: str
    n_above: int
    names: list[str]
    has_index: bool


def dialect_of(path: Path) -> Dialect:
    """Return how a CSV that is long is read, as its beginning tells.

    Raises TableError if it is empty or no text, its columns have no names, or the same, or the
    first row has more cells, or fewer, than there are names.
    """
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
    text, encoding = decode(head.rpartition(b"\n")[0] or head, path.name)
    if not text.strip():
        raise TableError(f"{path.name} is empty")
    separator, n_above = _separator_and_skip(text, path.name)
    lines = text.split("\n", n_above + 2)[n_above:]
    first = _first_record("\n".join(lines), path.name, separator)
    names = name_columns(first, path.name)
    # pandas would take the first cell of a row that is too long for its name
    two = _TRAILING_BLANKS.sub("", "\n" * n_above + "\n".join(lines[:2]))
    if not two.count('"') % 2:
        _lines(two, path.name, separator, len(names), header=True)
    return Dialect(encoding, separator, n_above, names, not first[0])


def _separator_and_skip(text: str, source: str, *, header: bool = True) -> tuple[str, int]:
    """Return the separator, and how many lines stand above the table, its title warned of.

    Excel writes the separator in a first line of its own.
    """
    line = _SEPARATOR_LINE.match(text)
    n_above, separator = (1, line[1]) if line else (0, separator_of(text))
    return separator, _lines_above(text, source, separator, n_above) if header else n_above


def _first_record(text: str, source: str, separator: str) -> list[str]:
    """Return the cells below blank lines; a quoted one may have several lines, or be blank."""
    # a tab may end a first cell that is blank
    below = re.sub(r"\A(?: *\r?\n)+" if separator == "\t" else r"\A(?:[ \t]*\r?\n)+", "", text)
    try:
        _, cells = next(_records(below, separator), (1, [""]))
        return [cell.strip() for cell in cells]
    except csv.Error as error:
        raise TableError(f"{source}, line 1: {error}. Correct the line.") from error


def _likeliest_encoding(content: bytes) -> str | None:
    """Return the likeliest of the usual encodings that all bytes have, ``None`` if there is none.

    Letters that several encodings have in common are Western.
    """
    from charset_normalizer import from_bytes

    # of a table of numbers with an accent somewhere, only that line tells
    telling, n_bytes = list[bytes](), 0
    for line in _BEYOND_ASCII.finditer(content):
        telling.append(line[0])
        n_bytes += len(line[0])
        if n_bytes > _SAMPLE:
            break
    sample = b"\n".join(telling)[:_SAMPLE]
    few = sum(byte > 127 for byte in sample) < _FEWEST_LETTERS
    matches = list(from_bytes(sample, cp_isolation=["cp1252"] if few else list(_ENCODINGS)))
    names = [each.encoding for each in matches]
    equals = [each for each in matches if each.chaos == matches[0].chaos]
    if any("cp1252" in each.could_be_from_charset for each in equals):
        names = ["cp1252"]
    for name in names:
        with suppress(UnicodeDecodeError):
            content.decode(name)
            return str(name)
    return None


def wide_encoding_of(content: bytes) -> str | None:
    """Return the encoding of a text in UTF-16 or UTF-32, with a mark or not; ``None`` of others.

    `content`: the file. Separators, digits and line breaks have zeros in all bytes but one.
    """
    if content.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    head = content[:4096]
    for codec, width in (("utf-32", 4), ("utf-16", 2)):
        zeros = [head[k::width].count(0) for k in range(width)]
        for ending, (most, *rest) in (("le", zeros), ("be", zeros[::-1])):
            # most letters have the byte that tells them first, or last
            if most == 0 and min(rest) > 0.2 * len(head) / width:
                # a letter may be cut in two at the end
                letters = head.decode(f"{codec}-{ending}", errors="replace")[:-1]
                return None if _NO_LETTERS.search(letters) else f"{codec}-{ending}"
    return None


def separator_of(text: str) -> str:
    r"""Return the separator that cuts the first lines into the same number of columns.

    Comma, semicolon, tab or bar; a blank where none of them, or decimal commas alone, and the lines
    have as many blanks and numbers between them: else they are sentences.

    Examples
    --------
    >>> separator_of("size, in m;price, in euro\\n1,5;2,5\\n")
    ';'
    """
    head = "".join(islice(io.StringIO(text), _LOOKED_AT))
    best = max(_SEPARATORS, key=lambda each: _evenness(head, each))
    evenness = _evenness(head, best)
    decimal = best == "," and evenness < 1.0 and not _NOT_DECIMAL.search(head)
    if evenness and not decimal:
        return best
    head = _TRAILING_BLANKS.sub("", head)
    return " " if _evenness(head, " ") == 1.0 and _has_numbers(head) else ","


def _has_numbers(text: str) -> bool:
    """Whether blanks leave a column of numbers that are not the beginnings of amounts, as 5 kg."""
    try:
        table = [cells for _, cells in _records(text, " ")]
    except csv.Error:
        return True  # what reads the table says what is wrong
    rows = table[1:] or table
    numeric = [
        2 * sum(map(is_written_number, cells)) > len(rows) for cells in zip(*rows, strict=True)
    ]
    amounts = all(is_written_number(" ".join(cells)) for cells in rows)
    return any(numeric) and (numeric[-1] or not amounts)


def _evenness(text: str, separator: str) -> float:
    """Return the share of the first lines that are as wide as most, 0 where that is 1 column."""
    try:
        widths = [len(cells) for _, cells in _records(text, separator)]
    except csv.Error:
        widths = [text.partition("\n")[0].count(separator) + 1]
    width, often = Counter(widths).most_common(1)[0] if widths else (1, 1)
    return often / len(widths) if width > 1 else 0.0


def empty_row_of(text: str, separator: str) -> re.Match[str] | None:
    """Return where the first line of separators alone is, if there is one."""
    if separator == " ":
        return None
    return re.search(_BLANK_CELLS.format(separator), text, re.MULTILINE)


def _without_empty_rows(text: str, source: str, separator: str) -> str:
    """Return a text in which lines of separators alone, as Excel writes them, are blank."""
    empty, blanks = empty_row_of(text, separator), _BLANK_CELLS.format(separator)
    if empty is None:
        return text
    # a quoted cell keeps its lines
    pattern = re.compile(rf'"[^"]*"|{blanks}', re.MULTILINE)
    cleaned = pattern.sub(lambda each: each[0] if each[0].startswith('"') else "", text)
    if cleaned != text:
        line = text.count("\n", 0, empty.start()) + 1
        warn(f"{source}: all cells of line {line} are empty: such lines are passed over")
    return cleaned


def _without_last_separators(text: str, separator: str) -> str:
    """Return a text without the separator that ends every row, as some programs write it.

    The names may end in one too. What follows it is a column without a name and without a cell.
    """
    end = re.compile(rf"{re.escape(separator)} *(?=\r?$)", re.MULTILINE)
    while separator != " ":
        lines = (line for line in io.StringIO(text) if line.strip())
        names, first = next(lines, ""), next(lines, "")
        is_longer = first.count(separator) == names.count(separator) + 1
        if not (end.search(first) and (end.search(names) or is_longer)):
            break
        # a line with an odd quote belongs to a cell of several lines
        if names.count('"') % 2 or first.count('"') % 2:
            break
        if not all(end.search(line) and not line.count('"') % 2 for line in lines):
            break
        text = end.sub("", text)
    return text


def _lines_above(text: str, source: str, separator: str, first: int) -> int:
    """Return the number of lines above the names of the columns: those of a single cell each.

    Numbers are rows, not names: a single cell above them may be the names, separated otherwise.

    `first`: lines that are above it for sure.
    """
    head = "\n" * first + "".join(islice(io.StringIO(text), first, first + _LOOKED_AT))
    try:
        records = list(_records(_TRAILING_BLANKS.sub("", head), separator))
    except csv.Error:
        return first
    counts = Counter(len(cells) for _, cells in records).most_common(1)
    width = counts[0][0] if counts else 1
    n_above = next((i for i, (_, cells) in enumerate(records) if sum(map(bool, cells)) > 1), 0)
    # "a," may name one column of two
    names = width == 2 and any(len(cells) > 1 for _, cells in records[:n_above])
    if width == 1 or not n_above or names or any(map(is_written_number, records[n_above][1])):
        return first
    warn_of_title(source, "line", records[: n_above + 1])
    return records[n_above][0] - 1


def _without_footer(text: str, source: str, separator: str, width: int) -> str:
    """Return a text without the lines of a single cell below a table of three columns or more."""
    rest = text.rstrip()
    while width > 2:
        above, _, line = rest.rpartition("\n")
        cells: list[str] = []
        with suppress(csv.Error, StopIteration):
            cells = next(_records(line, separator))[1]
        # the last line of a cell of several has its closing quote
        if len(cells) != 1 or line.count('"') % 2 or is_written_number(cells[0]) or not above:
            break
        warn_of_note(source, "line", above.count("\n") + 2, cells[0])
        rest = above.rstrip()
    return text if len(rest) == len(text.rstrip()) else rest


def _parse(text: str, source: str, separator: str, names: list[str], header: bool) -> pd.DataFrame:
    def read(**options: Any) -> pd.DataFrame:
        frame: pd.DataFrame = pd.read_csv(
            io.StringIO(text), sep=separator, names=names, header=0 if header else None,
            index_col=False, skipinitialspace=True, keep_default_na=False, low_memory=False,
            **options,
        )  # fmt: skip
        return frame

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = read()
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            _lines(text, source, separator, len(names), header)
            raise TableError(f"{source} is not a CSV that can be read: {error}") from error
    whole = [str(name) for name in frame if pd.api.types.is_integer_dtype(frame[name])]
    if not whole or not may_hold_codes(text, separator):
        return frame
    written = read(usecols=whole, dtype=str)
    codes = [name for name in whole if hold_codes(written[name])]
    frame[codes] = written[codes]
    return frame


def may_hold_codes(text: str, separator: str) -> bool:
    """Whether a zero leads a cell of some lines, as in 01067."""
    return bool(re.search(_LED_BY_ZERO.format(re.escape(separator)), text, re.MULTILINE))


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line where it begins, cells) of every record that is not blank."""
    reader, line = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True), 1
    for cells in reader:
        if cells:
            yield line, cells
        # a quoted cell goes on below
        line = reader.line_num + 1


def _lines(text: str, source: str, separator: str, width: int, header: bool) -> list[int]:
    """Return the line of every row; raise at the first row that is too long or too short."""
    lines = [0]
    try:
        for line, cells in _records(text, separator):
            if len(cells) != width:
                first = "the header has" if header else "the first line has"
                remedy = "Fix or remove the line"
                if header and len(lines) == 2:
                    remedy += ", or what stands above the names of the columns"
                many = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
                raise TableError(f"{source}: line {line} has {many} but {first} {width}. {remedy}.")
            lines.append(line)
    except csv.Error as error:
        raise TableError(f"{source}, line {lines[-1] + 1}: {error}. Correct the line.") from error
    return lines[2:] if header else lines[1:]
