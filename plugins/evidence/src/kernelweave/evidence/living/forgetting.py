"""Which rows are to be forgotten, and what the kernel still has of those that were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.exceptions import Message
from kernelweave.tables.errors import did_you_mean, place_of
from numpy.typing import NDArray

from .canonical import rows_as_given
from .folds import keys_of_given
from .reading import labels_of
from .state import LivingModel, RowsAsGiven, RowsToJoin

if TYPE_CHECKING:
    from ..columns import ColumnEncoder
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor
    from ..rows import Rows
    from ..views import Views

# a row with fewer others cannot be left out
_FEWEST = 2


def places_to_forget(
    model: LivingModel, rows: Any, conditions: Mapping[str, Any], given: RowsToJoin | None
) -> Index:
    """Return places among the rows that a model was given, ascending.

    `rows`, `conditions`, `given`: what the user says of them, of which one is needed and all must
    hold. Raises ValueError where there is no such row or column, or too few rows would be left.
    """
    known = rows_as_given(model)
    chosen = np.ones(len(known), dtype=np.bool_)
    if rows is None and not conditions and given is None:
        raise ValueError(
            "say what to forget: rows=[0, 5], a column's value such as patient='17', or the rows "
            "themselves as X and y"
        )
    if rows is not None:
        chosen &= _at(rows, len(known))
    for name, value in conditions.items():
        # of a row of weight 0 nothing is kept but its place
        chosen &= _having(model, known, name, value) & (model.owner >= 0)
    if given is not None:
        chosen &= _same(model, known, given.given)
    if not chosen.any():
        told = " and ".join(f"{name}={value!r}" for name, value in conditions.items())
        raise ValueError(f"no row of the model has {told}" if told else "no row was chosen")
    left = model.owner[~chosen]
    n_left = len(np.unique(left[left >= 0]))
    if n_left < _FEWEST:
        raise ValueError(f"{n_left} different rows would be left: a model needs {_FEWEST} at least")
    return np.flatnonzero(chosen)


def _at(rows: Any, n_rows: int) -> NDArray[np.bool_]:
    """Return a flag for each row at some places."""
    places = np.atleast_1d(np.asarray(rows))
    if places.dtype.kind == "b":
        if places.shape != (n_rows,):
            raise ValueError(
                f"rows must be True or False for each of the {n_rows} rows that the model has, got "
                f"shape {places.shape}"
            )
        return places
    if places.ndim != 1 or places.dtype.kind not in "iu":
        got = "none" if not places.size else repr(rows)
        raise ValueError(f"rows must be whole numbers, places from 0 to {n_rows - 1}, got {got}")
    odd = (places < 0) | (places >= n_rows)
    if odd.any():
        raise ValueError(
            f"rows must be places from 0 to {n_rows - 1} among the rows that the model has, got "
            f"{int(places[odd.argmax()])}"
        )
    out = np.zeros(n_rows, dtype=np.bool_)
    out[places] = True
    return out


def _having(model: LivingModel, given: RowsAsGiven, name: str, value: Any) -> NDArray[np.bool_]:
    """Return which rows have one of some values in a column."""
    by, encoder = model.state.held_out_by, model.encoder
    wanted = list(value) if np.iterable(value) and not isinstance(value, str) else [value]
    if given.groups is not None and name in ("groups", by.groups):
        # tables and command lines write 17 and "17"
        texts = {str(each) for each in labels_of(wanted)}
        return np.array([each is not None and str(each) in texts for each in given.groups])
    kinds = {each.source: each.kind for each in encoder.dimensions_ if each.kind in _READABLE}
    if name not in kinds:
        known = [*kinds, *(["groups"] if given.groups is not None else [])]
        hint = did_you_mean(name, known, what="columns")
        text = (
            "the model does not keep the values of {name!r}: give rows=, or the rows themselves as "
            "X and y; {hint}"
        )
        raise ValueError(Message(text, name=name, hint=hint))
    return _in_column(encoder, given, name, wanted)


_READABLE = ("number", "category")


def _in_column(
    encoder: ColumnEncoder, given: RowsAsGiven, name: str, wanted: list[Any]
) -> NDArray[np.bool_]:
    """Return which rows have one of some values, by the numbers or codes of a column.

    ``None`` and NaN are missing values.
    """
    dimensions, n_codes = encoder.dimensions_, given.codes.shape[1]
    place = next(
        k for k, each in enumerate(dimensions) if each.source == name and each.kind in _READABLE
    )
    if dimensions[place].kind == "category":
        j = place - (len(dimensions) - n_codes)
        categories = encoder._categories[j].categories
        labels = labels_of(wanted)
        texts = categories._as_known(tuple(str(each) for each in labels if each is not None))
        codes = [categories.lookup[each] for each in texts if each in categories.lookup]
        if None in labels and categories.missing < len(categories.labels):
            codes.append(categories.missing)
        return np.asarray(np.isin(given.codes[:, j], codes))
    try:
        numbers = np.array([np.nan if each is None else float(each) for each in wanted])
    except (TypeError, ValueError):
        text = "column {name!r} holds numbers, got {wanted!r}"
        raise ValueError(Message(text, name=name, wanted=wanted[0])) from None
    indicator = int(encoder.coding.indicator_of[place])
    filled = np.zeros(len(given), dtype=np.bool_)
    if indicator >= 0:
        filled = given.numeric[:, indicator] != 0.0
    return np.where(filled, np.isnan(numbers).any(), np.isin(given.numeric[:, place], numbers))


def _same(model: LivingModel, known: RowsAsGiven, given: RowsAsGiven) -> NDArray[np.bool_]:
    """Return which rows of a model are those given, one for each."""
    free: dict[bytes, list[int]] = {}
    for i, key in enumerate(keys_of_given(known)):
        if model.owner[i] >= 0:
            free.setdefault(key, []).append(i)
    out = np.zeros(len(known), dtype=np.bool_)
    for i, key in enumerate(keys_of_given(given)):
        if not free.get(key):
            text = "the model does not have the row of X and y in {place}: nothing is forgotten"
            raise ValueError(Message(text, place=place_of(i)))
        out[free[key].pop(0)] = True
    return out


@dataclass(frozen=True)
class Forgotten:
    """What a kernel still has of forgotten rows.

    - `n_rows`: how many were forgotten, and `n_seen`, how many of them, at most, the kernel was
      learned from: its scales, and means and ranks of its columns, are those of them too
    - `n_values`: numbers in columns of these rows that no other row has, and that the ranks of the
      kernel still hold to the last digit
    - `seconds`: of the processor, that the fit took; 0 where that is not known

    Examples
    --------
    >>> from kernelweave.evidence.living.forgetting import Forgotten
    >>> print(Forgotten(n_rows=3, n_seen=0, n_values=0))
    3 rows are forgotten; the kernel was learned without them
    """

    n_rows: int
    n_seen: int
    n_values: int
    seconds: float = 0.0

    def __str__(self) -> str:
        rows = _counted(self.n_rows, "row is", "rows are")
        if not self.n_seen:
            return f"{rows} forgotten; the kernel was learned without them"
        which = "it" if self.n_rows == 1 else f"at most {self.n_seen} of them"
        values = _counted(self.n_values, "number", "numbers")
        took = f" ({self.seconds:.2g} s of the processor the last time)" if self.seconds else ""
        return (
            f"{rows} forgotten, but not by the kernel, which was learned from {which}: its scales "
            f"and ranks are as they were, and the ranks hold {values} of theirs that no other row "
            f"has. Call fit with the rows that are left, and nothing is left of them{took}"
        )

    @classmethod
    def of(
        cls, before: ExactPredictor | LandmarkPredictor, after: ExactPredictor | LandmarkPredictor,
        places: Index, seconds: float = 0.0,
    ) -> Forgotten:  # fmt: skip
        """Return what the kernel has of rows that one predictor has and another not.

        `places` of shape (n_forgotten,): of these rows, as they were given, among those before; −1
        of a weight of 0.
        """
        rows = before.rows.take(places[places >= 0])
        views = [before.views, *(fold.views for fold in getattr(before, "folds", ()))]
        n_seen = int(np.count_nonzero(may_be_seen(before.views, rows)))
        return cls(len(places), n_seen, held_values(views, rows, after.rows), seconds)


def may_be_seen(views: Views, rows: Rows) -> NDArray[np.bool_]:
    """Return which rows a kernel may have been learned from, shape (n,).

    These are rows whose numbers are all among those that the views rank, and whose categories have
    a share in them: others were not seen.
    """
    out = np.ones(len(rows), dtype=np.bool_)
    for column, knots in zip(views.columns or range(len(views.knots)), views.knots, strict=True):
        out &= np.isin(rows.numeric[:, column], knots)
    for codes, share in zip(rows.codes.T, views.shares, strict=True):
        known = np.append(share > 0.0, False)
        out &= known[np.minimum(codes, len(share))]
    return out


def held_values(views: Iterable[Views], gone: Rows, left: Rows) -> int:
    """Return how many numbers of rows that are gone the ranks of any views hold, column by column.

    `left`: rows that are left, whose numbers do not count.
    """
    held: dict[int, list[FloatArray]] = {}
    for each in views:
        columns = each.columns or range(len(each.knots))
        for column, knots in zip(columns, each.knots, strict=True):
            held.setdefault(column, []).append(knots)
    count = 0
    for column, values in held.items():
        alone = np.setdiff1d(gone.numeric[:, column], left.numeric[:, column])
        count += len(np.intersect1d(alone, np.concatenate(values)))
    return count


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
