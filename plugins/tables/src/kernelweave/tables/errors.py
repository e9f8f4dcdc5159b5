"""What is wrong with a table, a column or a cell: one sentence that its reader can act on."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kernelweave.kernels_core import KernelWeaveWarning

# marks that set the direction of writing
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_place: ContextVar[Callable[[int], str]] = ContextVar("place", default="row {}".format)


class TableError(ValueError):
    """A table cannot be read or used; the message says what is wrong, where, and what to do.

    Examples
    --------
    >>> from kernelweave.tables import TableError
    >>> str(TableError("t.csv is empty"))
    't.csv is empty'
    """


def printable(text: str) -> str:
    r"""Return a text of a file without characters that speak to a terminal: each becomes �.

    Line breaks and tabs stay; escapes, and marks that turn the direction of what follows, go.

    Examples
    --------
    >>> printable("red\x1b[2J\u202e")
    'red�[2J�'
    """

    def speaks(each: str) -> bool:
        return each in _TURNS or (unicodedata.category(each) == "Cc" and each not in "\n\t")

    return text if text.isprintable() else "".join("�" if speaks(each) else each for each in text)


def did_you_mean(name: str, known: Iterable[str], *, what: str) -> str:
    """Return the close matches of ``name``, or everything known if it is little.

    `name`: what was asked for. `known`: what there is. `what`: what they are, in the plural, e.g.
    ``"columns"``. The end of an error's sentence.

    Examples
    --------
    >>> did_you_mean("wein", ["iris", "wine"], what="data sets")
    "did you mean 'wine'?"
    >>> did_you_mean("x", ["iris", "wine"], what="data sets")
    "the data sets are 'iris', 'wine'"
    """
    names = list(known)
    folded = {each.casefold(): each for each in names}
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(repr(folded[each]) for each in close)}?"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"the {what} are {', '.join(map(repr, names[:12]))}{more}"


def one_line(error: BaseException) -> str:
    r"""Return an exception's message on one line, its type's name where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def place_of(row: int) -> str:
    """Return what messages call a row, counted from 0: what `CellError.calling_rows` says."""
    return _place.get()(row)


class CellError(ValueError):
    """A cell cannot be used.

    Parameters
    ----------
    column : str
        Name of the column.
    row : int
        Counted from 0.
    what : str
        What is wrong and what would be right.

    Examples
    --------
    >>> from kernelweave.tables import CellError
    >>> print(CellError("height", 3, "the value is infinite"))
    column 'height', row 3: the value is infinite
    """

    def __init__(self, column: str, row: int, what: str) -> None:
        self.column, self.row, self.what = column, row, what
        super().__init__(column, row, what)

    def __str__(self) -> str:
        return f"column {self.column!r}, {place_of(self.row)}: {self.what}"

    @staticmethod
    @contextmanager
    def calling_rows(place: Callable[[int], str]) -> Iterator[None]:
        """Have errors and warnings on cells call a row, counted from 0, by what a function says.

        Without it rows are counted from 0, as ``iloc`` counts them.

        Examples
        --------
        >>> from kernelweave.tables import CellError
        >>> with CellError.calling_rows(lambda row: f"line {row + 2}"):
        ...     print(CellError("height", 3, "the value is infinite"))
        column 'height', line 5: the value is infinite
        """
        before = _place.set(place)
        try:
            yield
        finally:
            _place.reset(before)


class ColumnWarning(KernelWeaveWarning):
    """A column was read in a way that the user may want to change.

    The plan of the column says it too: ignore this category where you show the plans.

    Examples
    --------
    >>> from kernelweave.tables import ColumnWarning
    >>> from kernelweave.kernels_core import KernelWeaveWarning
    >>> issubclass(ColumnWarning, KernelWeaveWarning)
    True
    """
