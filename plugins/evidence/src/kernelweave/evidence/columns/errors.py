"""What is wrong with a cell or a column of a table."""

from __future__ import annotations

from kernelweave.kernels_core import KernelWeaveWarning


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
        return f"column {self.column!r}, row {self.row}: {self.what}"


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
