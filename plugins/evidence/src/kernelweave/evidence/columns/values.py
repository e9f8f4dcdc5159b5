"""Columns of numbers and dates as one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import LARGEST
from numpy.typing import NDArray

from .choices import as_dates, as_numbers, check_dates
from .errors import CellError
from .raw import Raw
from .training import NumberColumn


def stack(
    columns: Sequence[NumberColumn], raws: Sequence[Raw], rows: NDArray[np.intp]
) -> FloatArray:
    """Return the numbers of columns side by side, NaN where there is a gap.

    `columns`: what they were in training; `raws`: what they are; `rows` of shape (n_rows,): where
    each row stands in the user's table, for messages. Raises ValueError if a number is infinite or
    too large, or a column is not what it was in training.
    """
    widths = [1 if column.parts is None else len(column.parts.names) for column in columns]
    values = np.empty((len(rows), sum(widths)))
    start = 0
    for column, raw, width in zip(columns, raws, widths, strict=True):
        own = values[:, start : start + width]
        if column.parts is None:
            own[:, 0] = as_numbers(raw, column.name, int(rows[0]))
            _check_size(own[:, 0], column.name, rows)
        else:
            read = as_dates(raw, column.name)
            own[:] = column.parts.transform(read)
            form = column.parts.format
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
