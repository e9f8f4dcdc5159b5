"""What a table takes of memory: known, and refused, before it is taken.

One rule for every format: a table has as much text as it would have as CSV, a separator for each of
its cells and the characters in them, and each of these takes `_TEXT` bytes.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import IO

import pandas as pd
from kernelweave.kernels_core import memory
from kernelweave.kernels_core.exceptions import Message

from .errors import TableError

# Bytes of memory that a byte of text takes: 20 where a row is "1,2", and 32 where it is "007,1",
# the most that was measured. What several columns of words take is counted apart.
_TEXT = 32
# For each column, beside its cells: 4.6 kB was measured.
_COLUMN = 5000
# For each cell of a column of words, and for each that is different: amounts with a unit take most.
_CELL, _WORD = 50, 700


def require_room(text: int, source: str, what: str, *, columns: int = 0) -> None:
    """Raise TableError where a table has more text than the memory limit has room for.

    `text`: bytes, or cells and the characters in them; `what`: what it is, with its verb;
    `columns`: how many it has, where that is known.
    """
    require_memory(_TEXT * text, source, what, columns=columns)


def require_memory(needed: int, source: str, what: str, *, columns: int = 0) -> None:
    """Raise TableError where a table takes more bytes than the memory limit.

    `what`: what it is, with its verb; `columns`: how many it has, where that is known.
    """
    needed += _COLUMN * columns
    if needed > memory.limit_bytes():
        _refuse(needed, source, what)


def require_words(columns: Iterable[pd.Series], source: str) -> None:
    """Raise TableError where columns of words take more than the memory limit."""
    given = list(columns)
    n_cells = sum(map(len, given))
    # that is all that a usual table is asked: to count words takes time
    if _WORD * n_cells <= memory.limit_bytes():
        return
    n_words = sum(map(_n_different, given))
    needed = _CELL * n_cells + _WORD * n_words
    if needed > memory.limit_bytes():
        _refuse(needed, source, f"has {n_words:,} different texts in {n_cells:,} cells")


def read_all(stream: IO[bytes] | gzip.GzipFile, source: str, what: str) -> bytes:
    """Return what a stream holds; TableError where that is more text than there is room for.

    `what`: what it does, such as "unpacks to".
    """
    most = memory.limit_bytes() // _TEXT
    content = stream.read(most + 1)
    if len(content) > most:
        _refuse(_TEXT * len(content), source, f"{what} more than {memory.size_text(most)}")
    return content


def _n_different(column: pd.Series) -> int:
    try:
        return int(column.nunique())
    except TypeError:
        # of lists, which are refused later
        return len(column)


def _refuse(needed: int, source: str, what: str) -> None:
    raise TableError(
        Message(
            "{source} {what}: reading it may take {needed}, more than the memory limit of "
            "{limit}: use fewer rows or columns, or raise {memory_limit}",
            source=source,
            what=what,
            needed=memory.size_text(needed),
            limit=memory.size_text(memory.limit_bytes()),
        )
    )
