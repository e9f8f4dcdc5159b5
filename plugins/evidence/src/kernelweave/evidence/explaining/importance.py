"""What each column is worth: the score that held-out rows lose when its values are shuffled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from ..columns import Dimension
from ..rows import Rows
from ..scores import ratio_with_error

Predict = Callable[[FloatArray, NDArray[np.int64]], FloatArray]
# rows held out, and what predicts them without having seen them
Judge = tuple[NDArray[np.intp], Predict]
# the losses of rows, and the units of the score that they count in
Losses = Callable[[Rows, FloatArray], tuple[FloatArray, FloatArray]]
# As many as scikit-learn's `permutation_importance` takes: more lower the chance of the shuffles,
# not that of the rows held out.
_REPEATS = 5
# more rows held out than these change little and cost much
_MOST_ROWS = 2000
# of wide tables fewer rows, and all columns together no more shuffles than these: a prediction of a
# row costs as much as there are columns
_FEWEST_ROWS = 200
_CELLS = 20_000
_SHUFFLES = 250


class ColumnImportance(NamedTuple):
    """What one column of a table is worth to a model.

    Attributes
    ----------
    column : str
        Name of the column.
    importance : float
        Score that held-out rows lose when the values of the column are shuffled among them.
    error : float
        Its standard error over the rows.

    Examples
    --------
    >>> from kernelweave.evidence import ColumnImportance
    >>> ColumnImportance("height", 0.25, 0.03).importance
    0.25
    """

    column: str
    importance: float
    error: float


def shuffled_importance(
    rows: Rows,
    judges: Sequence[Judge],
    losses: Losses,
    columns: Sequence[str],
    dimensions: Sequence[Dimension],
    random_state: np.random.RandomState,
) -> list[ColumnImportance]:
    """Shuffle each column of the rows held out and measure what their score loses.

    - `rows`: the training rows
    - `judges`: nothing is fitted again
    - `losses`: from rows and predictions to losses and their units, both of shape (n, n_outputs)
    - `columns`: of the user's table
    - `dimensions`: what the kernel sees; those of one column are shuffled together

    Returns: in the table's order; 0 for a column that is not used, NaN where no row was held out.
    """
    if not judges:
        return [ColumnImportance(name, np.nan, np.nan) for name in columns]
    most = min(_MOST_ROWS, max(_FEWEST_ROWS, _CELLS // max(1, len(dimensions)))) // len(judges)
    judges = [(_some(held_out, most, random_state), see) for held_out, see in judges]
    repeats = min(_REPEATS, max(1, _SHUFFLES // len(columns)))
    seen = rows.take(np.concatenate([held_out for held_out, _ in judges]))
    parts = [(rows.take(held_out), see) for held_out, see in judges]
    orders = [[random_state.permutation(len(part)) for part, _ in parts] for _ in range(repeats)]
    before, units = losses(seen, np.vstack([see(own.numeric, own.codes) for own, see in parts]))
    found = []
    for name in columns:
        used = [j for j, each in enumerate(dimensions) if each.source == name]
        after = np.zeros_like(before)
        for order in orders if used else ():
            values = [
                see(*_shuffled(own, used, places))
                for (own, see), places in zip(parts, order, strict=True)
            ]
            after += losses(seen, np.vstack(values))[0] / repeats
        lost = after - before if used else after
        found.append(ColumnImportance(name, *ratio_with_error(lost, units, seen.mass)))
    return found


def _some(
    held_out: NDArray[np.intp], most: int, random_state: np.random.RandomState
) -> NDArray[np.intp]:
    return held_out if len(held_out) <= most else random_state.permutation(held_out)[:most]


def _shuffled(
    rows: Rows, dimensions: Sequence[int], order: NDArray[np.intp]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return numbers and codes, those of some dimensions in another order of the rows."""
    n_numbers = rows.numeric.shape[1]
    numbers = [j for j in dimensions if j < n_numbers]
    levels = [j - n_numbers for j in dimensions if j >= n_numbers]
    numeric, codes = rows.numeric.copy(), rows.codes.copy()
    numeric[:, numbers] = rows.numeric[order][:, numbers]
    codes[:, levels] = rows.codes[order][:, levels]
    return numeric, codes
