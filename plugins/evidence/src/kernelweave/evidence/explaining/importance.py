"""Permutation importance of columns on cross-validated predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from ..columns import Dimension
from ..rows import Rows
from ..scores import ratio_with_error

Predict = Callable[[FloatArray, NDArray[np.int64]], FloatArray]
# the held-out rows of a fold, and the prediction function that was fitted without them
FoldPredictor = tuple[NDArray[np.intp], Predict]
# from rows and predictions to the loss of each row and the units of the score
Losses = Callable[[Rows, FloatArray], tuple[FloatArray, FloatArray]]
# the default of scikit-learn's `permutation_importance`; more repeats lower the variance of the
# shuffles, not that of the held-out rows
_REPEATS = 5
# more held-out rows change the result little and cost much
_MOST_ROWS = 2000
# Wide tables get fewer rows and shuffles, because the cost of a prediction grows with the columns:
# at least `_FEWEST_ROWS` rows, about `_CELLS` cells, and `_SHUFFLES` shuffles over all columns.
_FEWEST_ROWS = 200
_CELLS = 20_000
_SHUFFLES = 250


class ColumnImportance(NamedTuple):
    """Permutation importance of one column of a table.

    Attributes
    ----------
    column : str
        Name of the column.
    importance : float
        Drop of the cross-validated score when the values of the column are shuffled.
    error : float
        Standard error of the importance over the rows.

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
    fold_predictors: Sequence[FoldPredictor],
    losses: Losses,
    columns: Sequence[str],
    dimensions: Sequence[Dimension],
    random_state: np.random.RandomState,
) -> list[ColumnImportance]:
    """Shuffle each column among held-out rows and return the drop of their score.

    - `rows`: the training rows
    - `fold_predictors`: of the fitted folds; nothing is fitted again
    - `losses`: from rows and predictions to losses and their units, both of shape (n, n_outputs)
    - `columns`: names of the columns of the user's table
    - `dimensions`: inputs of the kernel; those of one column are shuffled together

    Returns one value per column, in the order of the table: 0 if it is unused, NaN without folds.
    Raises TimeoutError where a time limit ends it.
    """
    if not fold_predictors:
        return [ColumnImportance(name, np.nan, np.nan) for name in columns]
    most = min(_MOST_ROWS, max(_FEWEST_ROWS, _CELLS // max(1, len(dimensions))))
    most //= len(fold_predictors)
    folds = [
        (each if len(each) <= most else random_state.permutation(each)[:most], predict)
        for each, predict in fold_predictors
    ]
    repeats = min(_REPEATS, max(1, _SHUFFLES // len(columns)))
    seen = rows.take(np.concatenate([held_out for held_out, _ in folds]))
    parts = [(rows.take(held_out), predict) for held_out, predict in folds]
    orders = [[random_state.permutation(len(part)) for part, _ in parts] for _ in range(repeats)]
    told = np.vstack([predict(part.numeric, part.codes) for part, predict in parts])
    before, units = losses(seen, told)
    importances: list[ColumnImportance] = []
    for name in columns:
        if clock.expired():
            raise TimeoutError(f"time was up after {len(importances)} of {len(columns)} columns")
        used = [j for j, each in enumerate(dimensions) if each.source == name]
        after = np.zeros_like(before)
        for order in orders if used else ():
            values = [
                predict(*_shuffled(part, used, places))
                for (part, predict), places in zip(parts, order, strict=True)
            ]
            after += losses(seen, np.vstack(values))[0] / repeats
        lost = after - before if used else after
        importances.append(ColumnImportance(name, *ratio_with_error(lost, units, seen.mass)))
    return importances


def _shuffled(
    rows: Rows, dimensions: Sequence[int], order: NDArray[np.intp]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return numbers and codes with the given dimensions in another order of the rows."""
    n_numbers, layouts = rows.n_numbers, (range(rows.numeric.shape[1]), *rows.of_folds)
    # a text's components in every fold
    numbers = list({each[j] for each in layouts for j in dimensions if j < n_numbers})
    categories = [j - n_numbers for j in dimensions if j >= n_numbers]
    numeric, codes = rows.numeric.copy(), rows.codes.copy()
    numeric[:, numbers] = rows.numeric[order][:, numbers]
    codes[:, categories] = rows.codes[order][:, categories]
    return numeric, codes
