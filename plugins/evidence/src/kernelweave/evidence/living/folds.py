"""Which fold holds a row out, once rows come and go: each keeps its own, new ones join one.

A row is known by what it holds, so that a table that is given again finds its folds. Copies, and
rows of one group, stay together. A new row, or group, joins a fold by a hash of what it holds: by
chance, but never by its place in the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from ..columns import ColumnEncoder
from ..division import without_copies
from ..large.kept import key_of
from ..rows import Rows, Split
from .state import Label, LivingState, RowsAsGiven

if TYPE_CHECKING:
    from ..folds import Fold

# what a row is to each fold: neither, learned from, held out; shape (n_rows, n_folds)
Roles: TypeAlias = NDArray[np.uint8]
_LEARNED, _HELD = 1, 2


class RowsWithRoles(NamedTuple):
    """Rows whose folds are known.

    `roles` of shape (n_rows, n_folds); `places`: of what each holds, in all its ways of writing.
    """

    roles: Roles
    places: dict[bytes, int]

    def find(self, keys: list[bytes]) -> Index:
        """Return the place of each row among those that are known, −1 of none."""
        return np.array([self.places.get(key, -1) for key in keys], dtype=np.intp)


def roles_of(folds: list[Fold], n_rows: int) -> Roles:
    """Return what each row is to each fold."""
    out = np.zeros((n_rows, len(folds)), dtype=np.uint8)
    for k, fold in enumerate(folds):
        out[fold.places, k] = _LEARNED
        out[fold.held_out, k] = _HELD
    return out


def known_rows(
    roles: Roles, rows: Rows, given: RowsAsGiven, owner: Index, state: LivingState
) -> RowsWithRoles:
    """Return the rows of a model that its kernel was learned with, by what they hold.

    And by how they were given. Those that joined later are not among them: else their folds would
    tell of rows that are forgotten, as a group's whose first rows are.

    `given`: in the same codes; `owner` of shape (n_given,): the place of each among `rows`.
    """
    labels, later = state.naming, state.joined
    first = np.ones(len(rows), dtype=np.bool_) if later is None else ~later
    merged, kept = keys_of_rows(rows, labels), np.flatnonzero((owner >= 0) & first[owner])
    own = keys_of_given(given.take(kept), rows.columns, alike=labels is None)
    places = {key: int(owner[i]) for key, i in zip(own, kept, strict=True)}
    places |= {merged[k]: k for k in reversed(np.flatnonzero(first).tolist())}
    return RowsWithRoles(roles, places)


def _told(targets: FloatArray, ends: FloatArray | None) -> FloatArray:
    """Return what is known of targets, which a likelihood may have changed."""
    return targets if ends is None else ends


def keys_of_rows(rows: Rows, labels: tuple[Label, ...] | None) -> list[bytes]:
    """Return what each row holds; `labels`: of their groups."""
    groups = None
    if rows.groups is not None and labels is not None:
        groups = [labels[k] for k in rows.groups.tolist()]
    return keys_of(rows.numbers, rows.codes, _told(rows.targets, rows.ends), groups, rows.times)


def keys_of_given(
    given: RowsAsGiven, columns: tuple[int, ...] = (), *, alike: bool = False
) -> list[bytes]:
    """Return what each given row holds.

    `columns`: of numbers that the kernel sees, all if none; `alike`: whether groups say nothing.
    """
    numbers = given.numeric[:, list(columns)] if columns else given.numeric
    told, groups = _told(given.targets, given.ends), None if alike else given.groups
    return keys_of(numbers, given.codes, told, groups, given.times)


def keys_of(
    numbers: FloatArray, codes: NDArray[np.int64], targets: FloatArray,
    groups: list[Label] | tuple[Label, ...] | None, times: FloatArray | None,
) -> list[bytes]:  # fmt: skip
    """Return what each row holds, as bytes that are equal where that is."""
    columns = [numbers + 0.0, codes, targets.T + 0.0]
    if times is not None:
        columns.append(times[:, None] + 0.0)
    table = np.ascontiguousarray(np.hstack(columns), dtype=np.float64)
    named = [b""] * len(table) if groups is None else [repr(each).encode() for each in groups]
    return [row.tobytes() + name for row, name in zip(table, named, strict=True)]


def folds_of_rows(
    rows: Rows, encoder: ColumnEncoder, known: RowsWithRoles, state: LivingState
) -> list[Split]:
    """Return training and held-out places of each fold of the model.

    `rows`: merged, in the codes of the encoder; a fold may have no row any more.
    """
    n_folds = known.roles.shape[1]
    if not n_folds:
        return []
    labels = None
    if state.labels is not None and rows.groups is not None:
        labels = [state.labels[k] for k in rows.groups]
    at = known.find(keys_of_rows(rows, state.naming))
    roles = np.where(at[:, None] >= 0, known.roles[at], 0).astype(np.uint8)
    new = np.flatnonzero(at < 0)
    by = state.held_out_by
    if len(new):
        if by.by_splitter:
            # what comes later must not be learned from in the folds
            roles[new] = 0 if by.in_order else _LEARNED
        elif by.by_order:
            assert rows.times is not None
            roles[new] = _of_blocks(rows.times[new], state.starts)
        else:
            _join(roles, rows, encoder, at, labels)
    folds = [
        (np.flatnonzero(column == _LEARNED), np.flatnonzero(column == _HELD)) for column in roles.T
    ]
    if by.random and not by.by_splitter:
        return folds
    copies = rows.without_names().duplicate_ids
    full = [k for k, pair in enumerate(folds) if min(map(len, pair))]
    for k, pair in zip(full, without_copies([folds[k] for k in full], copies), strict=True):
        folds[k] = pair
    return folds


def _of_blocks(times: FloatArray, starts: tuple[float, ...]) -> Roles:
    """Return the roles of rows by their moments, (n, n_blocks): later rows go to the last block."""
    ends = (*starts[1:], np.inf)
    columns = [
        np.where(times < start, _LEARNED, np.where(times < end, _HELD, 0))
        for start, end in zip(starts, ends, strict=True)
    ]
    return np.column_stack(columns).astype(np.uint8)


def _join(
    roles: Roles, rows: Rows, encoder: ColumnEncoder, at: Index, labels: list[Label] | None
) -> None:
    """Give new rows the roles of their copies or group, else of a fold that a hash tells."""
    together = rows.kept_together if rows.groups is not None else rows.duplicate_ids
    n_folds, by = roles.shape[1], np.argsort(together, kind="stable")
    bounds = np.flatnonzero(np.diff(together[by])) + 1
    for part in np.split(by, bounds):
        new = part[at[part] < 0]
        if not len(new):
            continue
        old = part[at[part] >= 0]
        held = old[(roles[old] == _HELD).any(axis=1)]
        if len(held):
            fold = int((roles[held[0]] == _HELD).argmax())
        elif len(old):
            roles[new] = roles[old[0]]
            continue
        else:
            fold = _hash_of(rows, encoder, labels, part) % n_folds
        roles[new] = _LEARNED
        roles[new, fold] = _HELD


def _hash_of(rows: Rows, encoder: ColumnEncoder, labels: list[Label] | None, places: Index) -> int:
    """Return a number of rows held out together: of their groups' first label, or the first row."""
    if labels is not None:
        named = [repr(labels[i]) for i in places if labels[i] is not None]
        if named:
            return key_of(min(named).encode())
    i = int(places[0])
    words = [each.categories for each in encoder.dimensions_ if each.kind == "category"]
    pairs = zip(words, rows.codes[i].tolist(), strict=True)
    texts = [known[code] if code < len(known) else "" for known, code in pairs]
    return key_of((rows.numbers[i] + 0.0).tobytes() + "\0".join(texts).encode())
