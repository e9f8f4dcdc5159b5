"""Panels: rows with groups and an order, which of four kinds a row is, and what tells of each.

A row may be of a known group or a new one, now or later. Later is what comes after the last
training row; where no column has the order, every new row is later, and where none names the
groups, every new row is of a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from .forecasts import column_of_times
from .intervals import FoldResiduals, LeftOut, UnseenRows
from .new_rows import USUAL, Kind

if TYPE_CHECKING:
    from .exact import ExactPredictor
    from .folds import Fold
    from .forecasts import Forecasts
    from .rows import Rows

# of a known group now, of a new one now, of a known one later, of a new one later
KNOWN_NOW, NEW_NOW, KNOWN_LATER, NEW_LATER = KINDS = tuple(range(4))
NEW_KINDS = NEW_NOW, NEW_LATER
# groups that tell how far rows of a kind lie from their predictions, at least, and blocks of time
_FEWEST_GROUPS, _FEWEST_BLOCKS = 6, 2
# kinds that differ from each in one thing, those of new groups first
_NEIGHBOURS = (
    (NEW_NOW, KNOWN_LATER),
    (NEW_LATER, KNOWN_NOW),
    (NEW_LATER, KNOWN_NOW),
    (NEW_NOW, KNOWN_LATER),
)
# what each of the four is called
RowKinds: TypeAlias = tuple[str, str, str, str]
# of a moment, so that rows at the last one are not later by rounding
_ROUNDING = 1e-9


def names_of_kinds(groups: str | None, order: str | None, held_out: str) -> RowKinds:
    """Return what rows of known and new groups, now and later, are called in ``held_out_``.

    `groups`, `order`: their columns, empty where no column has them, ``None`` where rows have none;
    `held_out`: what those that folds hold out are called.

    Examples
    --------
    >>> from kernelweave.evidence.panels import names_of_kinds
    >>> names_of_kinds("firm", "year", "")
    ('known firm, now', 'new firm, now', 'known firm, later by year', 'new firm, later by year')
    >>> names_of_kinds("firm", None, "new firm")
    ('rows like these', 'new firm', 'rows like these', 'new firm')
    """
    if groups is None and order is None:
        return held_out, held_out, held_out, held_out
    if order is None:
        return USUAL.name, held_out, USUAL.name, held_out
    if groups is None:
        return USUAL.name, USUAL.name, held_out, held_out
    later = f"later by {order}" if order else "later"
    known, new = (f"{each} {groups or 'groups'}" for each in ("known", "new"))
    return f"{known}, now", f"{new}, now", f"{known}, {later}", f"{new}, {later}"


def is_of_panel(name: str) -> bool:
    """Return whether a kind of new rows is one of the four.

    Examples
    --------
    >>> from kernelweave.evidence.panels import is_of_panel
    >>> is_of_panel("new firm, now"), is_of_panel("new firm"), is_of_panel("later by year")
    (True, False, False)
    """
    return name.startswith(("known ", "new ")) and (name.endswith(", now") or ", later" in name)


def panel_kinds(rows: Rows, names: Sequence[str]) -> list[Kind]:
    """Return the four kinds as closed forms leave them out; `names`: of `names_of_kinds`.

    A row that is alone in its group is of none that is known without it.
    """
    groups, times = rows.groups, rows.times
    assert groups is not None
    assert times is not None
    numbers = np.unique(groups, return_inverse=True)[1].ravel()
    several = np.where(np.bincount(numbers)[numbers] > 1, numbers, -1)
    called = [f"rows of {each}" for each in names]
    return [
        Kind(names[KNOWN_NOW], called[KNOWN_NOW], "", several, known=True),
        Kind(names[NEW_NOW], called[NEW_NOW], "", numbers, known=False),
        Kind(names[KNOWN_LATER], called[KNOWN_LATER], "", numbers, times, known=True),
        Kind(names[NEW_LATER], called[NEW_LATER], "", numbers, times, known=False),
    ]


def kinds_of_rows(
    rows: Rows, numeric: FloatArray, codes: NDArray[np.int64], known: NDArray[np.bool_]
) -> Index:
    """Return which of the four kinds new rows are, shape (n,).

    `rows`: of training; `known` of shape (n,): which new rows are of a group that these have.
    """
    later = np.full(len(numeric), rows.times is not None)
    if rows.times is not None and (column := column_of_times(rows)) >= 0:
        moments, last = numeric[:, column], rows.times.max()
        later = np.asarray(moments > last + _ROUNDING * abs(last))
    return np.where(later, KNOWN_LATER, KNOWN_NOW) + ~known


def known_since(rows: Rows) -> FloatArray:
    """Return the first moment of each row's group, shape (n,)."""
    assert rows.groups is not None
    assert rows.times is not None
    numbers = np.unique(rows.groups, return_inverse=True)[1].ravel()
    first = np.full(numbers.max() + 1, np.inf)
    np.minimum.at(first, numbers, rows.times)
    return np.asarray(first[numbers])


def tellers(n_groups: Sequence[int], sizes: Sequence[float]) -> list[int]:
    """Return which kind tells how far rows of each of the four lie from their predictions.

    Itself where its rows are of groups enough, else the kind with the largest residuals of those
    that differ from it in one thing.

    `n_groups`: that tell of each kind; `sizes`: of their residuals.
    """
    out = []
    for kind, neighbours in enumerate(_NEIGHBOURS):
        enough = [each for each in neighbours if n_groups[each] >= _FEWEST_GROUPS]
        if n_groups[kind] >= _FEWEST_GROUPS:
            enough = [kind]
        # of less than that each tells as little
        some = [each for each in (kind, *neighbours) if n_groups[each]]
        out.append(max(enough or some[:1] or [kind], key=lambda each: sizes[each]))
    return out


def told_by_others(
    names: RowKinds, n_groups: Sequence[int], of: Sequence[int], kinds: Sequence[int]
) -> list[str]:
    """Return sentences on kinds whose intervals others tell.

    `names`: what kinds are called; `of`: the kind that tells of each, see `tellers`; `kinds`: which
    rows may be of.
    """
    out = []
    for kind in kinds:
        if n_groups[kind] < _FEWEST_GROUPS:
            name, other = names[kind], of[kind]
            whose = f"as wide as for {names[other]!r}" if other != kind else "a guess"
            out.append(
                f"intervals for {name!r} are {whose}: {n_groups[kind]} groups tell of such rows, "
                f"and {_FEWEST_GROUPS} are needed"
            )
    return out


class Told(NamedTuple):
    """What tells of a kind: rows left out, and forecasts where later rows are the farther the less.

    `of`: the kind whose rows they are, another one where rows of the kind are too few.
    """

    parts: Sequence[LeftOut | FoldResiduals]
    forecasts: Forecasts | None


@dataclass(frozen=True)
class PanelResiduals:
    """How far rows of each kind lie from their predictions, in deviations of the model.

    Rows now are left out in closed form of all rows, with the kernel of a fold: those that it held
    out alone, and a share of the groups whole. Later rows are those that folds held out after what
    they learned from; of new groups, without what came before of theirs.
    """

    predictor: ExactPredictor

    @property
    def rows(self) -> Rows:
        """Of training."""
        return self.predictor.rows

    @cached_property
    def _groups(self) -> Index:
        assert self.rows.groups is not None
        return np.unique(self.rows.groups, return_inverse=True)[1].ravel()

    def told(self, kind: int) -> Told:
        """Return what tells of a kind: its own rows, or those of the widest neighbour."""
        return self._told_each(self.of[kind])

    @cached_property
    def of(self) -> list[int]:
        """Which kind tells of each."""
        few = [kind for kind, n in enumerate(self.n_groups) if n < _FEWEST_GROUPS]
        asked = {each for kind in few for each in (kind, *_NEIGHBOURS[kind])}
        sizes = [
            _size(self._told_each(kind)) if kind in asked and n else 0.0
            for kind, n in enumerate(self.n_groups)
        ]
        return tellers(self.n_groups, sizes)

    @cached_property
    def n_groups(self) -> list[int]:
        """How many groups tell of each kind; none where it has less than two blocks of time."""
        return [self._n_groups_of(kind) for kind in range(len(_NEIGHBOURS))]

    def _n_groups_of(self, kind: int) -> int:
        rows = [each for each in self._places(kind) if len(each)]
        if not rows or (kind >= KNOWN_LATER and len(rows) < _FEWEST_BLOCKS):
            return 0
        return len(np.unique(self._groups[np.concatenate(rows)]))

    def _places(self, kind: int) -> list[Index]:
        """Return the rows of each fold that tell of a kind; of new groups now a share of all."""
        groups, folds = self._groups, self.predictor.folds
        share = [np.flatnonzero(groups % max(1, len(folds)) == k) for k in range(len(folds) or 1)]
        held = [fold.held_out for fold in folds]
        if kind == KNOWN_NOW:
            several = np.bincount(groups)[groups] > 1
            return [rows[several[rows]] for rows in held or share]
        if kind == KNOWN_LATER:
            pairs = zip(held, folds, strict=True)
            return [rows[np.isin(groups[rows], groups[fold.places])] for rows, fold in pairs]
        return share if kind == NEW_NOW else held

    def _told_each(self, kind: int) -> Told:
        if kind < KNOWN_LATER:
            return Told(self._now(kind), None)
        parts = self._later(kind)
        forecasts = self._forecasts(parts, kind)
        n_groups = self.n_groups[kind] if kind == NEW_LATER else None
        residuals = FoldResiduals(self.predictor.mixture, parts, forecasts, n_groups)
        return Told([residuals], forecasts)

    def _now(self, kind: int) -> list[LeftOut]:
        """Return rows left out of all, alone or by groups, by the kernel of a fold."""
        predictor, keys = self.predictor, self._groups
        if kind == KNOWN_NOW:
            keys = self.rows.duplicate_ids
        parts = []
        for k, rows in enumerate(self._places(kind)):
            mixture = predictor.mixture
            if predictor.folds and not predictor.closed:
                mixture = predictor.folds[k].among(self.rows, predictor.weights)
            alone = len(np.unique(keys[rows])) == len(rows)
            if len(rows):
                n_groups = self.n_groups[kind] if kind == NEW_NOW else None
                parts.append(LeftOut(mixture, rows, None if alone else keys[rows], n_groups))
        return parts

    def _later(self, kind: int) -> list[UnseenRows]:
        """Return rows that folds held out, one for each fold with such rows."""
        if kind == KNOWN_LATER:
            pairs = zip(self.predictor.unseen_rows(), self._places(kind), strict=True)
            out = [each.among(rows) for each, rows in pairs]
        else:
            out = [self._without_groups(f) for f in self.predictor.folds if len(f.held_out)]
        return [each for each in out if len(each.rows)]

    def _without_groups(self, fold: Fold) -> UnseenRows:
        """Return the rows that a fold held out, predicted by its training rows of other groups."""
        part, held = fold.mixture(self.predictor.weights), self.rows.take(fold.held_out)
        points = part.views.points(held.numeric, held.codes)
        _, latent, variance = part.posterior(points)
        width = np.sqrt(variance + part.nugget)
        learned, own = self._groups[fold.places], self._groups[fold.held_out]
        for group in np.unique(own):
            rows, at = np.flatnonzero(learned == group), np.flatnonzero(own == group)
            if len(rows):
                left = LeftOut(part, rows, np.zeros(len(rows), dtype=np.intp))
                # without the group each of its rows is predicted alike
                means, widths = left.predict(held.numeric[at], held.codes[at])
                latent[at], width[at] = means[0], widths[0]
        return UnseenRows(fold.held_out, part.target.of_rows(self.rows), latent, width)

    def _forecasts(self, later: Sequence[UnseenRows], kind: int) -> Forecasts | None:
        """Return forecasts with the scores of a kind, in what they grow by with the distance."""
        known = self.predictor.forecasts
        if known is None or kind == KNOWN_LATER:
            return known
        times, scores = self.rows.times, list[FloatArray]()
        assert times is not None
        folds = [fold for fold in self.predictor.folds if len(fold.held_out)]
        for fold, each in zip(folds, later, strict=True):
            scores.append(each.scores / known.at(times[each.rows] - times[fold.places].max()))
        rows = np.concatenate([each.rows for each in later])
        return replace(known, scores=np.concatenate(scores), rows=rows)


def _size(told: Told) -> float:
    """Return the root mean square of the scores."""
    return float(np.sqrt(np.mean(np.concatenate([each.scores for each in told.parts]) ** 2)))
