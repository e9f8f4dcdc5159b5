"""What is wrong with a table: one sentence that its reader can act on."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

# marks that set the direction of writing
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class TableError(ValueError):
    """A table cannot be read or used; the message says what is wrong, where, and what to do.

    Examples
    --------
    >>> from kernelweave.tables import TableError
    >>> str(TableError("t.csv is empty: there is nothing to learn from"))
    't.csv is empty: there is nothing to learn from'
    """


def printable(text: str) -> str:
    r"""Return a text without characters that speak to a terminal: each becomes �.

    `text`: of a file: the name of a column, a cell. Line breaks and tabs stay; escapes, and marks
    that turn the direction of what follows, go.

    Examples
    --------
    >>> printable("red\x1b[2J\u202e")
    'red�[2J�'
    """
    if text.isprintable():
        return text

    def speaks(each: str) -> bool:
        return each in _TURNS or (unicodedata.category(each) == "Cc" and each not in "\n\t")

    return "".join("�" if speaks(each) else each for each in text)


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
    shown = ", ".join(map(repr, names[:12]))
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"the {what} are {shown}{more}"


def one_line(error: BaseException) -> str:
    r"""Return an exception's message on one line, its type's name where it has none.

    Parameters
    ----------
    error : BaseException
        Any exception.

    Returns
    -------
    str
        Without line breaks or repeated blanks.

    Examples
    --------
    >>> one_line(ValueError("C must be > 0,\n  got -1"))
    'C must be > 0, got -1'
    """
    return " ".join(str(error).split()) or type(error).__name__
