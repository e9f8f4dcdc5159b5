"""What an estimator says of a cell that is no finite real number: where it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ..arrays import FloatArray, Labels, is_sparse
from ..grams.precomputed import PrecomputedGrams

_TEXT = "turn text into numbers first, for example with OneHotEncoder in a ColumnTransformer"
_MISSING = "fill such cells, for example with SimpleImputer in a pipeline, or leave out these rows"
_COMPLEX = "give real and imaginary parts as two columns"
_DATES = "turn dates into numbers first, such as days since the first of them"


@contextmanager
def cells_named(
    X: Any = None, y: Any = None, *, allowed: str = "", weight: Any = None, grams: Any = None
) -> Iterator[None]:
    """Turn an error about data into one that names the cell, if a cell is what is wrong.

    `X` of shape (n_samples, n_features), `y` of shape (n_samples,) or (n_samples, n_outputs) and
    `weight` like y: what the block reads; `allowed`: "text" or "NaN" if y may hold that;
    `grams`: what should be Gram matrices of shape (n_kernels, n_samples, n_train). The data are
    looked at only after an error, so that sound data cost nothing. Raises ValueError.
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError):
        fault = (
            fault_of_grams(grams)
            or fault_of_table(X)
            or _fault_of_column(y, "y", allowed)
            or _fault_of_column(weight, "sample_weight")
        )
        if fault is None:
            raise
        raise ValueError(fault) from None


def read_weights(sample_weight: Any, X: Any) -> FloatArray:
    """Return the weights of the samples of X, shape (n_samples,), 1 each by default."""
    with cells_named(weight=sample_weight):
        weight: FloatArray = _check_sample_weight(sample_weight, X, dtype=np.float64)
    return weight


def fault_of_table(X: Any) -> str | None:
    """Return what is wrong with the first cell of a table that is no finite number, if any."""
    found = first_fault(X)
    if found is None:
        return None
    column, row, value, others = found
    return sentence("X", value, f"column {column!r}, row {row}{others}", _TEXT, _MISSING)


def first_fault(X: Any) -> tuple[object, int, object, str] | None:
    """Return the column, the row and the value of the first cell that is no finite real number.

    The column is a name where X has names, else a position; last stands in words how many more
    rows of the column are so. None if all cells are finite numbers, or X is no table.
    """
    for column, values in _columns(X):
        rows = _wrong_rows(values)
        if len(rows):
            more = len(rows) - 1
            others = f" and {more} more row{'s' if more > 1 else ''}" if more else ""
            return column, int(rows[0]), values[rows[0]], others
    return None


def fault_of_grams(X: Any) -> str | None:
    """Return what is wrong with precomputed Gram matrices and how to mend it, if it is known."""
    wanted = "kernels='precomputed' takes Gram matrices of shape (n_kernels, n_samples, n_train)"
    if X is None or isinstance(X, PrecomputedGrams):
        return None
    if is_sparse(X):
        return f"X is sparse: {wanted}, dense ones, such as np.stack([K.toarray()])"
    try:
        stack = np.asarray(X)
    except ValueError:
        shapes = ", ".join(str(np.shape(K)) for K in X)
        return f"X holds matrices of shapes {shapes}: {wanted}, all of one shape"
    if stack.ndim == 2 and stack.shape[0] == stack.shape[1]:
        return f"X has shape {stack.shape}: {wanted}, so for one kernel give X[None]"
    if stack.ndim == 2:
        return f"X has shape {stack.shape}: {wanted}; for points give a list of kernels instead"
    if stack.ndim == 3 and stack.shape[0] == stack.shape[1] != stack.shape[2]:
        return f"X has shape {stack.shape}: {wanted}, so give np.moveaxis(X, 2, 0)"
    for j, K in enumerate(stack if stack.ndim == 3 else ()):
        found = first_fault(K)
        if found is not None:
            column, row, value, _ = found
            advice = "leave out the sample or the kernel"
            return sentence(f"X[{j}]", value, f"row {row}, column {column}", advice, advice)
    return None


def _fault_of_column(values: Any, name: str, allowed: str = "") -> str | None:
    """Return what is wrong with targets or weights, which may hold what is allowed."""
    if values is None or is_sparse(values):
        return None
    flat = np.ndim(values) < 2
    for column, each in _columns(np.asarray(values)[:, None] if flat else values):
        rows = [row for row in _wrong_rows(each) if _kind(each[row]) != allowed]
        if rows:
            place = f"row {rows[0]}" if flat else f"column {column!r}, row {rows[0]}"
            text = "for classes take a classifier" if name == "y" else "weights are numbers"
            return sentence(name, each[rows[0]], place, text, "leave out such rows")
    return None


def sentence(name: str, value: object, place: str, text: str, missing: str) -> str:
    """Return the message on a value of a kind that is no finite real number."""
    shown, kind = value.item() if isinstance(value, np.generic) else value, _kind(value)
    if kind == "complex":
        return f"Complex data not supported: {name} has {shown} in {place}: {_COMPLEX}"
    if kind == "date":
        return f"{name} has a date, {str(value)!r} in {place}: {_DATES}"
    if kind == "text":
        return f"{name}: could not convert {shown!r} in {place} to a number: {text}"
    if kind == "NaN":
        said = "NaN" if isinstance(value, float) else f"NaN ({shown})"
        return f"{name} contains {said} in {place}: {missing}"
    return f"{name} contains infinity or a number above 1.8e308 in {place}: {missing}"


def _columns(X: Any) -> Iterator[tuple[object, Labels]]:
    """Yield the name, else the position, and the values of each column; nothing of other things."""
    names = getattr(X, "columns", None)
    if is_sparse(X):
        by_column: Any = X.tocsc()
        for j in range(X.shape[1]):
            part = slice(by_column.indptr[j], by_column.indptr[j + 1])
            column = np.zeros(X.shape[0], dtype=X.dtype)
            column[by_column.indices[part]] = by_column.data[part]
            yield j, column
    elif hasattr(X, "iloc") and names is not None:
        for j, name in enumerate(names):
            yield name, np.asarray(X.iloc[:, j])
    else:
        try:
            table = np.asarray(X)
        except (TypeError, ValueError):
            return
        for j in range(table.shape[1] if table.ndim == 2 else 0):
            yield (j if names is None else names[j]), table[:, j]


def _wrong_rows(values: Labels) -> Any:
    """Return the rows, in order, whose value is text, missing, infinite, complex or a date."""
    if values.dtype.kind in "biu":
        return np.empty(0, dtype=np.intp)
    if values.dtype.kind == "f":
        return np.flatnonzero(~np.isfinite(values))
    return [row for row, value in enumerate(values) if _kind(value)]


def _kind(value: Any) -> str:
    """Return what is wrong with a cell, "" for a finite number and for what has no name here."""
    named = type(value).__name__
    if isinstance(value, complex | np.complexfloating):
        return "complex"
    # pandas' missing values, by name: comparing them gives no truth value
    if value is None or named in ("NAType", "NaTType"):
        return "NaN"
    if isinstance(value, np.datetime64 | np.timedelta64):
        return "NaN" if np.isnat(value) else "date"
    if named in ("Timestamp", "Timedelta", "Period", "datetime", "date"):
        return "date"
    try:
        number = float(value)
    except OverflowError:
        return "infinity"
    except (TypeError, ValueError):
        return "text" if isinstance(value, str | bytes) else ""
    if np.isfinite(number):
        return ""
    if isinstance(value, str | bytes):
        return "text"
    return "NaN" if np.isnan(number) else "infinity"
