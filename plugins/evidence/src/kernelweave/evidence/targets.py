"""Targets, classes and weights as the user gives them, checked row by row."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels
from kernelweave.kernels_core.checks import LARGEST
from kernelweave.kernels_core.exceptions import Message, warn
from kernelweave.tables.errors import place_of
from kernelweave.tables.frames import levels_of
from numpy.typing import NDArray

# Folds of fewer hold out two or three rows, whose error says next to nothing.
_FEW_ROWS = 10


def check_numbers(
    y: object, n_rows: int, weight: FloatArray | None = None
) -> tuple[FloatArray, bool]:
    """Return the targets of a regression, (n_outputs, n_rows), and whether the user gave one list.

    `y` of shape (n_rows,) or (n_rows, n_outputs): numbers, or objects that are numbers; `n_rows`:
    what X has; `weight` of shape (n_rows,): what `check_weight` returned: rows of weight 0 do not
    count. Raises ValueError if a target is missing, infinite or no
    number, an output is constant, or rows are missing.
    """
    values, flat = more_numbers(y, n_rows)
    counted = values if weight is None else values[:, weight > 0.0]
    for i, row in enumerate(counted):
        if (row == row[0]).all():
            text = "{y}" if flat else "output {i} of {y}"
            text += " is {value:.6g} in every row" + ("" if weight is None else " that counts")
            text += ": there is nothing to learn"
            raise ValueError(Message(text, i=i, value=row[0]))
    warn_if_few(counted.shape[1])
    return values, flat


def more_numbers(y: object, n_rows: int) -> tuple[FloatArray, bool]:
    """Return targets of rows that a model is to learn too, as `check_numbers` does.

    They may be few, and all the same.
    """
    array = _array(y)
    flat = array.ndim == 1
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"y must have shape (n_rows,) or (n_rows, n_outputs), got {array.shape}")
    _check_length(array, n_rows)
    columns = (array[:, None] if flat else array).T
    return np.array([finite_numbers(column) for column in columns]), flat


def more_classes(y: object, n_rows: int, known: Labels) -> NDArray[np.intp]:
    """Return which of the classes of training each row has, shape (n_rows,).

    `known` of shape (n_classes,). Raises ValueError where a label is none of them, naming it.
    """
    import pandas as pd
    from sklearn.utils import column_or_1d

    array = column_or_1d(_array(y))
    _check_length(array, n_rows)
    check_labels(array)
    index: Any = pd.Index(known)
    codes = index.get_indexer(array)
    if (codes < 0).any():
        row = int(np.argmin(codes))
        listed = ", ".join(shown(each) for each in known[:5]) + (", …" if len(known) > 5 else "")
        text = (
            "class {label} in {place} is none that the kernel was learned with ({listed}): fit the "
            "model again with its rows"
        )
        raise ValueError(Message(text, label=shown(array[row]), place=place_of(row), listed=listed))
    return np.asarray(codes, dtype=np.intp)


def check_classes(
    y: object, n_rows: int, weight: FloatArray | None = None
) -> tuple[Labels, NDArray[np.intp]]:
    """Return the sorted classes, and which of them each row has, shape (n_rows,).

    `y` of shape (n_rows,): labels of any kind, at least two different ones; `n_rows`: what X has;
    `weight` of shape (n_rows,): what `check_weight` returned: each class needs a row that counts.
    Raises ValueError if a label is missing or a
    fraction, there is one class only, or rows are missing.
    """
    from sklearn.utils import column_or_1d
    from sklearn.utils.multiclass import check_classification_targets

    array = _array(y)
    if array.dtype.names:
        text = "{y} must be labels, got the fields {names}: of events and times learns a regressor"
        raise ValueError(Message(text, names=", ".join(array.dtype.names)))
    array = column_or_1d(array, warn=True)
    _check_length(array, n_rows)
    check_labels(array)
    check_classification_targets(array)
    labels, codes = np.unique(array, return_inverse=True)
    counted = codes if weight is None else codes[weight > 0.0]
    present = np.unique(counted)
    if len(present) < 2:
        text = (
            "{y} has one class only, {label}: at least two classes are needed, each with a "
            "positive weight"
        )
        raise ValueError(Message(text, label=shown(labels[present[0]])))
    if len(present) < len(labels):
        lost = labels[np.setdiff1d(np.arange(len(labels)), present)[0]]
        text = "class {label} has no row of positive weight: drop it from {y}"
        raise ValueError(Message(text, label=shown(lost)))
    warn_if_few(len(counted))
    return labels, codes


def ranks_of(labels: Labels, levels: Any, y: object = None) -> NDArray[np.intp] | None:
    """Return the place of each class in the order of the levels, 0 for the lowest.

    `labels` of shape (n_classes,); `levels`: they all and perhaps others, lowest first; by default
    those of y where it is an ordered categorical column. ``None`` where classes have no order.
    Raises ValueError if a class is no level.
    """
    import pandas as pd

    if levels is None:
        levels = levels_of(y)
    if levels is None:
        return None
    if isinstance(levels, str) or np.ndim(levels) != 1:
        raise ValueError(f"levels must be a list of the classes, lowest first, got {levels!r}")
    index: Any = pd.Index(levels)
    if not index.is_unique:
        raise ValueError(f"levels must be different from each other, got {index.tolist()}")
    places = index.get_indexer(labels)
    if places.min() < 0:
        raise ValueError(
            f"levels must be all classes of y, lowest first: {shown(labels[places.argmin()])} is "
            f"not in {index.tolist()}"
        )
    return np.argsort(np.argsort(places))


def check_labels(labels: Labels, first: int = 0) -> None:
    """Raise where a label is missing or infinite, or words and numbers are mixed.

    `labels` of shape (n_rows,); `first`: where the first row stands in the user's table.
    """
    refuse_missing(labels, first=first)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        row = first + int(np.argmax(np.isinf(labels)))
        raise ValueError(f"y is infinite (infinity) in {place_of(row)}")
    kinds = sorted({type(each).__name__ for each in labels}) if labels.dtype == object else []
    if "str" in kinds and len(kinds) > 1:
        raise ValueError(
            f"y mixes labels of the types {' and '.join(kinds)}: give all classes one type"
        )


def check_weight(sample_weight: object, n_rows: int) -> FloatArray | None:
    """Return weights, ``None`` where there are none.

    `sample_weight` of shape (n_rows,): not negative, and positive somewhere; `n_rows`: what X has.
    """
    if sample_weight is None:
        return None
    weight = _array(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(n_rows, weight[()])
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be 1D, one weight a row, shape ({n_rows},), got {weight.shape}"
        )
    weight = finite_numbers(weight, "sample_weight")
    refuse_negative(weight)
    if not weight.any():
        raise ValueError("sample_weight is zero in every row: at least one must be positive")
    return weight


def refuse_negative(weight: FloatArray, first: int = 0) -> None:
    """Raise where a weight is negative; ``first`` is the place of the first row."""
    if len(weight) and weight.min() < 0.0:
        row = int(np.argmin(weight))
        raise ValueError(
            f"sample_weight must not be negative, got {weight[row]:.6g} in {place_of(first + row)}"
        )


def _array(values: object, name: str = "y") -> Labels:
    """Return one of the libraries' columns, or what numpy makes an array of."""
    if values is None:
        # the words that scikit-learn's checks look for
        raise ValueError("fit requires y to be passed, but the target y is None")
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is sparse: give a dense array, {name}.toarray()")
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers: Complex data not supported")
    return array


def _check_length(array: Labels, n_rows: int) -> None:
    if len(array) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and y has {len(array)}: inconsistent numbers of samples"
        )


def finite_numbers(column: Labels, name: str = "y", first: int = 0) -> FloatArray:
    """Return a column as finite numbers.

    `column` of shape (n_rows,); `name`: for messages; `first`: where its first row stands in the
    user's table. Raises ValueError if a value is missing, infinite, too large or no number, naming
    its row.
    """
    if column.dtype.kind in "mM":
        raise ValueError(f"{name} must hold numbers, got {column.dtype} values")
    refuse_missing(column, name, first)
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        _refuse_no_number(column, name, first)
    with np.errstate(invalid="ignore"):
        large = ~(np.abs(values) <= LARGEST)
    if large.any():
        row = int(np.argmax(large))
        text = "infinite (infinity)" if np.isinf(values[row]) else f"{values[row]:.3g}, too large,"
        raise ValueError(
            f"{name} is {text} in {place_of(first + row)}: give finite numbers of at most "
            f"{LARGEST:g}"
        )
    return values


def refuse_missing(column: Labels, name: str = "y", first: int = 0) -> None:
    """Raise where a column has missing values; see `finite_numbers`."""
    import pandas as pd

    missing = np.asarray(pd.isna(column))
    if missing.any():
        rows = int(missing.sum())
        many = f"{rows} rows, the first is {place_of(first + int(np.argmax(missing)))}"
        raise ValueError(f"{name} is missing (NaN) in {many}: drop these rows")


def _refuse_no_number(column: Labels, name: str, first: int) -> NoReturn:
    for row, value in enumerate(column):
        try:
            float(value)
        except (TypeError, ValueError):
            hint = "; for classes take a classifier" if name == "y" else ""
            raise ValueError(
                f"{name} must hold numbers, got {shown(value)} in {place_of(first + row)}{hint}"
            ) from None
    raise ValueError(f"{name} must hold numbers, got {column.dtype} values")


def shown(value: object) -> str:
    """Return a value as people write it, without numpy's types."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def warn_if_few(n_rows: int) -> None:
    """Warn of rows too few to choose a kernel by, and raise ValueError where there is only one."""
    if n_rows < 2:
        raise ValueError("1 sample is too few: at least 2 are needed, 50 or more make sense")
    if n_rows < _FEW_ROWS:
        warn(f"{n_rows} rows are too few to choose a kernel reliably")
