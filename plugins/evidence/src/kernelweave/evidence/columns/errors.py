"""What is wrong with a cell or a column of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kernelweave.kernels_core import KernelWeaveWarning

_place: ContextVar[Callable[[int], str]] = ContextVar("place", default="row {}".format)


def place_of(row: int) -> str:
    """Return what messages call a row, counted from 0: what `CellError.calling_rows` says."""
    return _place.get()(row)


class CellError(ValueError):
    """A cell cannot be used; whoever read the table may know better where it stands.

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
    >>> from kernelweave.evidence import CellError
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
        """Have errors and warnings on cells call rows by what a function says.

        Parameters
        ----------
        place : callable
            Takes a row, counted from 0, and returns such as ``"line 3"``.

        Yields
        ------
        None
            Until it ends. Without it rows are counted from 0, as ``iloc`` counts them.

        Examples
        --------
        >>> from kernelweave.evidence import CellError
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
    """What training did with a column that its owner may want otherwise.

    ``report_`` of `ColumnEncoder` says it too: ignore this category where you show the report.

    Examples
    --------
    >>> from kernelweave.evidence import ColumnWarning
    >>> from kernelweave.kernels_core import KernelWeaveWarning
    >>> issubclass(ColumnWarning, KernelWeaveWarning)
    True
    """
