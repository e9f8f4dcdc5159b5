"""New rows, read as those of training were."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.estimators.classes import column_of
from kernelweave.kernels_core.exceptions import Message
from sklearn.utils.validation import _num_samples

from ..division import moments_of
from ..targets import check_weight
from .state import HeldOutBy, Label, LivingModel, RowsAsGiven, RowsToJoin

if TYPE_CHECKING:
    from ..columns import ColumnEncoder


def read_new(
    model: LivingModel, encoder: ColumnEncoder, X: Table, y: object, weight: object, groups: object,
    order: object, *, alone: bool = False,
) -> RowsToJoin:  # fmt: skip
    """Return rows as the encoder and the task of a model read them.

    `encoder`: that of the model, with the categories that came since; `alone`: whether the rows are
    to be found in the model, so that categories that it does not have say nothing.

    Raises ValueError or TypeError where columns, targets, weights, groups or moments are not as in
    training, naming which.
    """
    n_rows, by = _num_samples(X), model.state.held_out_by
    checked = check_weight(weight, n_rows)
    if not alone:
        encoder = encoder._gaining(X, model.estimator)
    numeric, codes = encoder.transform(X, estimator=model.estimator, folds=True)
    targets, ends, mass = model.task.more(y, n_rows, checked)
    n_outputs = len(model.predictor.rows.targets)
    if len(targets) != n_outputs:
        raise ValueError(
            f"y has {len(targets)} outputs, and {n_outputs} when the kernel was learned"
        )
    mass = np.ones(n_rows) if mass is None else np.asarray(mass, dtype=np.float64)
    _refuse_if_given(groups, "groups", by, known=by.by_groups)
    _refuse_if_given(order, "order", by, known=by.by_order)
    labels = groups_of(X, groups, by, n_rows) if by.by_groups else None
    times = _times_of(X, order, by, n_rows) if by.by_order else None
    return RowsToJoin(encoder, RowsAsGiven(numeric, codes, targets, mass, labels, times, ends))


def labels_of(values: Sequence[Any]) -> tuple[Label, ...]:
    """Return values of a column as labels of groups: plain texts and numbers, ``None`` of none.

    Whole numbers are integers, however a table stores them: a column with a gap has fractions.
    """
    return tuple(_label(each) for each in values)


def _label(value: Any) -> Label:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or (value == value) is not True:
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int | float) else _as_text(value)


def _as_text(value: Any) -> str:
    return str(value.isoformat() if isinstance(value, date) else value)


def groups_of(X: Table, given: object, by: HeldOutBy, n_rows: int) -> tuple[Label, ...]:
    """Return the label of each row's group, by the column of the fit or as they are given."""
    if by.alike:
        # a near copy of a row that the model has is held out with it, whatever its group is
        return (None,) * n_rows
    given = _named(given, by.groups, "groups")
    return labels_of(column_of(X, given, "groups", n_rows).tolist())


def _times_of(X: Table, given: object, by: HeldOutBy, n_rows: int) -> FloatArray:
    given = _named(given, by.order, "order")
    name = given if isinstance(given, str) else ""
    return moments_of(column_of(X, given, "order", n_rows), name)


def _named(given: object, name: str, argument: str) -> object:
    """Return what says it row by row, or the column that the fit was told."""
    if given is None and not name:
        text = "give {argument} for the new rows, a value for each: the fit got them so"
        raise ValueError(Message(text, argument=argument))
    return name if given is None else given


def _refuse_if_given(given: object, argument: str, by: HeldOutBy, *, known: bool) -> None:
    """Raise where rows are told apart by what the fit did not know."""
    if given is not None and not known:
        how = "groups" if by.by_groups else "an order" if by.by_order else "neither"
        text = "{argument} must be None: the kernel was learned with {how}; fit the model again"
        raise ValueError(Message(text, argument=argument, how=how))
