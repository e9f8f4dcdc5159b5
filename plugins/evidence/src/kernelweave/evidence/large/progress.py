"""Lines for whoever waits: rows done, all rows, and the time left."""

from __future__ import annotations

from kernelweave.kernels_core.clock import Stopwatch


class RowsTold:
    """Prints a line whenever another tenth of the rows is summed over.

    Examples
    --------
    >>> from kernelweave.evidence.large.progress import RowsTold
    >>> RowsTold()("500 landmarks", 1000, 1000)
    [evidence] 500 landmarks: 1,000 of 1,000 rows, 0 s left
    """

    def __init__(self) -> None:
        self.what, self.tenths = "", 0

    def __call__(self, what: str, rows: int, n_rows: int) -> None:
        """Tell that so many rows of all are done."""
        if what != self.what or 10 * rows // n_rows < self.tenths:
            self.what, self.tenths, self.watch = what, 0, Stopwatch()
        tenths = 10 * rows // n_rows
        if tenths > self.tenths:
            self.tenths = tenths
            left = self.watch.seconds * (n_rows - rows) / rows
            print(f"[evidence] {what}: {rows:,} of {n_rows:,} rows, {left:.0f} s left")  # noqa: T201
