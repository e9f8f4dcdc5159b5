"""Columns of numbers and dates as one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import LARGEST
from kernelweave.tables.columns import Raw
from kernelweave.tables.dates import DateParts
from kernelweave.tables.errors import CellError
from kernelweave.tables.plans import as_dates, check_dates, numbers_of
from numpy.typing import NDArray

from .training import NumberColumn


def stack(
    columns: Sequence[NumberColumn],
    raws: Sequence[Raw],
    rows: NDArray[np.intp],
    comma: str = "",
) -> FloatArray:
    """Return the numbers of columns side by side, NaN where there is a gap.

    `columns`: what they were in training; `raws`: what they are; `rows` of shape (n_rows,): where
    each row stands in the user's table, for messages; `comma`: as in `RawTable`. Raises ValueError
    if a number is infinite or too large, or a column is not what it was in training.
    """
    widths = [len(column.dimensions()) for column in columns]
    values = np.empty((len(rows), sum(widths)))
    start = 0
    for column, raw, width in zip(columns, raws, widths, strict=True):
        own = values[:, start : start + width]
        if not isinstance(column.reading, DateParts):
            own[:, 0] = numbers_of(raw, column.reading, column.name, int(rows[0]), comma)
            _check_size(own[:, 0], column.name, rows)
        else:
            read = as_dates(raw, column.name)
            own[:] = column.reading.transform(read)
            form = column.reading.format
            check_dates(read, np.isnan(own[:, -1]), column.name, int(rows[0]), form)
        start += width
    return values


def _check_size(values: FloatArray, name: str, rows: NDArray[np.intp]) -> None:
    """Raise where a number is infinite, or so large that its products overflow."""
    with np.errstate(invalid="ignore"):
        large = np.abs(values) > LARGEST
    if not large.any():
        return
    at = int(np.argmax(large))
    if np.isinf(values[at]):
        what = "the value is infinite (infinity): put a finite number or a gap there"
    else:
        what = (
            f"the value {values[at]:.3g} is too large, products of such numbers overflow: scale "
            f"the column to at most {LARGEST:g}"
        )
    raise CellError(name, int(rows[at]), what)
