"""How a text with columns is written: its letters and its separator."""

from __future__ import annotations

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from itertools import islice

from kernelweave.kernels_core import KernelWeaveWarning

from .errors import TableError
from .written import is_written_number

_TRAILING_BLANKS = re.compile(r" +(?=[\r\n]|\Z)")
_NOT_DECIMAL = re.compile(r"(?<!\d),|,(?!\d)")
# the comma last: where commas are decimal, it cuts all lines evenly too
_SEPARATORS = "\t;|,"
# Lines that tell the separator: enough that sentences differ in their commas, and no long read.
LOOKED_AT = 50
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(content: bytes, source: str) -> str:
    """Return a text in UTF-8, in UTF-16 with a mark, or in what Windows writes in the West.

    `content`: the file; `source`: what messages call it. Raises TableError if it is none of
    these.
    """
    if content.startswith(UTF_16):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise TableError(f"{source} is damaged UTF-16 text: save it as UTF-8") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError:
            raise TableError(
                f"{source} is not UTF-8 text (line {line}): save it as UTF-8"
            ) from error
    warnings.warn(
        f"{source} is not UTF-8 text (line {line}) and is read as Windows-1252: check its accents",
        KernelWeaveWarning,
        stacklevel=2,
    )
    return text


def separator_of(text: str) -> str:
    r"""Return the separator that cuts the first lines into the same number of columns.

    Parameters
    ----------
    text : str
        Lines.

    Returns
    -------
    str
        Comma, semicolon, tab or bar; a blank where none of them, or decimal commas alone, and the
        lines have as many blanks and numbers between them: else they are sentences.

    Examples
    --------
    >>> separator_of("size, in m;price, in euro\\n1,5;2,5\\n")
    ';'
    """
    found = max(_SEPARATORS, key=lambda each: _evenness(text, each))
    evenness = _evenness(text, found)
    head = "".join(islice(io.StringIO(text), LOOKED_AT))
    decimal = found == "," and evenness < 1.0 and not _NOT_DECIMAL.search(head)
    if evenness and not decimal:
        return found
    head = without_trailing_blanks(head)
    return " " if _evenness(head, " ") == 1.0 and _has_numbers(head) else ","


def _has_numbers(text: str) -> bool:
    """Whether blanks leave a column of numbers that are not the beginnings of amounts, as 5 kg."""
    reader = csv.reader(io.StringIO(text), delimiter=" ", skipinitialspace=True)
    try:
        table = [cells for cells in reader if cells]
    except csv.Error:
        return True  # what reads the table says what is wrong
    rows = table[1:] or table
    numeric = [
        2 * sum(map(is_written_number, cells)) > len(rows) for cells in zip(*rows, strict=True)
    ]
    amounts = all(is_written_number(" ".join(cells)) for cells in rows)
    return any(numeric) and (numeric[-1] or not amounts)


def without_trailing_blanks(text: str) -> str:
    """Return lines without the blanks at their ends.

    `text`: lines in which blanks stand between columns.
    """
    return _TRAILING_BLANKS.sub("", text)


def _evenness(text: str, separator: str) -> float:
    """Return the share of the first lines that are as wide as most, 0 where that is 1 column."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        widths = [len(cells) for cells in islice(reader, LOOKED_AT) if cells]
    except csv.Error:
        widths = [text.partition("\n")[0].count(separator) + 1]
    width, often = Counter(widths).most_common(1)[0] if widths else (1, 1)
    return often / len(widths) if width > 1 else 0.0
