"""Mean predictions along a monotone column, as the fit has them and rearranged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import integer
from sklearn.utils.validation import check_is_fitted

from ..rows import Rows
from .columns import MonotoneColumn
from .predictor import MonotonePredictor

if TYPE_CHECKING:
    from collections.abc import Callable

# values of the column that a curve has
_VALUES = 60


@dataclass(frozen=True, eq=False)
class MonotoneCurve:
    """The mean prediction over some training rows, as a function of a monotone column.

    Attributes
    ----------
    column : str
    sign : int
        1 where predictions rise with it, −1 where they fall.
    grid : ndarray of shape (n_grid,)
        Values of the column; of a date its days since 1970.
    before, after : ndarray of shape (n_grid,)
        Mean prediction, or probability, if all rows had the value: of the fit, and rearranged.
    wrong_before : float
        Share of steps along the grid, over all rows, that go the wrong way in the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.monotone.curves import MonotoneCurve
    >>> grid = np.arange(3.0)
    >>> curve = MonotoneCurve("dose", 1, grid, np.array([1.0, 0.5, 2.0]), grid, 0.5)
    >>> bool((np.diff(curve.after) >= 0.0).all())
    True
    """

    column: str
    sign: int
    grid: FloatArray
    before: FloatArray
    after: FloatArray
    wrong_before: float


def monotone_curves(
    model: Any, column: str, *, output: int | None = None, n_rows: int = 100
) -> MonotoneCurve:
    """Return how rearrangement changed the mean prediction along a column.

    Parameters
    ----------
    model : EvidenceKernelRegressor or EvidenceKernelClassifier
        Fitted with ``monotone``.
    column : str
        One of its monotone columns.
    output : int, optional
        Which target, or which of ``classes_``, whose probability is shown; the first target, and of
        two classes the second.
    n_rows : int, default=100
        Training rows that predictions are averaged over, at even distances in their order.

    Returns
    -------
    MonotoneCurve

    Raises
    ------
    ValueError
        If the column is not monotone in this model.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from kernelweave.evidence import EvidenceKernelRegressor
    >>> from kernelweave.evidence.monotone.curves import monotone_curves
    >>> X, y = make_friedman1(80, noise=3.0, random_state=0)
    >>> model = EvidenceKernelRegressor(n_folds=2, monotone={"x3": 1}).fit(X, y)
    >>> curve = monotone_curves(model, "x3", n_rows=20)
    >>> curve.sign, len(curve.grid), bool((curve.after[1:] >= curve.after[:-1]).all())
    (1, 60, True)
    """
    check_is_fitted(model, "kernel_")
    integer(1).check("n_rows", n_rows)
    predicts, rows = model._predicts, model._predictor.rows
    found = {each.name: each for each in getattr(predicts, "columns", ())}
    if column not in found:
        known = ", ".join(map(repr, found)) or "none"
        raise ValueError(
            f"column must be one that predictions are monotone in, {known} here, got {column!r}"
        )
    two = len(getattr(model, "classes_", ())) == 2
    which = int(two) if output is None else output
    some = rows.take(np.unique(np.linspace(0, len(rows) - 1, n_rows).astype(np.intp)))
    own = found[column]
    some = some.take(np.flatnonzero(own.known(some.numeric)))
    values = rows.numeric[own.known(rows.numeric), own.place]
    grid = np.linspace(values.min(), values.max(), _VALUES)

    def respond(values: FloatArray) -> FloatArray:
        shown: FloatArray = model._task.response(values, which)
        return shown

    before, after = lines_along(predicts, some, own, grid, respond)
    wrong = own.sign * np.diff(before, axis=0) < 0.0
    return MonotoneCurve(
        column, own.sign, grid, before.mean(axis=1), after.mean(axis=1), float(wrong.mean())
    )


def lines_along(
    predicts: MonotonePredictor,
    rows: Rows,
    column: MonotoneColumn,
    grid: FloatArray,
    respond: Callable[[FloatArray], FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return what is shown of rows with each value of a column, before and after, (n_grid, n)."""
    numeric, codes = np.tile(rows.numeric, (len(grid), 1)), np.tile(rows.codes, (len(grid), 1))
    column.fill(numeric, codes, np.repeat(grid, len(rows)))
    before, after = (
        respond(each.mean(numeric, codes)).reshape(len(grid), -1)
        for each in (predicts.predictor, predicts)
    )
    return before, after
