"""Models that keep sums of more rows than they keep: rows join them, or are taken away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.copies import copy_groups
from numpy.typing import NDArray

from ..copies import KnownRows
from ..rows import Rows, Standardised, natural_range, spread_of
from .again import Relearned, added, judged, kept_of, within
from .held_out import HeldFolds
from .kept import KeptRows, places_in
from .landmarks import LandmarkPredictor


def with_joined(
    old: LandmarkPredictor, quick: LandmarkPredictor, new: Rows,
    keys: NDArray[np.uint64], n_known: int = 0,
) -> LandmarkPredictor:  # fmt: skip
    """Return the predictor of the rows of an old one and new ones, the sums over which are known.

    `quick`: has these sums; `keys` of shape (n,): of new rows; `n_known`: groups of lower numbers
    were learned from before.
    """
    before, targets = kept_of(old), range_with(old, new)
    fold = _folds_of_new(before, new, keys, n_known)
    out = fold == np.arange(len(before.held.without))[:, None]
    if before.rule.starts:
        out = fold >= np.arange(len(before.held.without))[:, None]
        out[0] = False
    joining = np.flatnonzero(out.any(axis=0))
    held, copies = _joined(before, targets, new, joining, fold, out)
    telling = np.concatenate([before.telling, before.rule.tells(keys[joining])])
    kept = replace(
        before, held=held, copies=copies, telling=telling, n_rows=before.n_rows + len(new),
        mass=before.mass + float(new.mass.sum()), least=np.minimum(before.least, _least(new)),
        most=np.maximum(before.most, _most(new)),
    )  # fmt: skip
    again = judged(old, quick.landmarks, quick.posterior.equations, targets, kept)
    return _with_others(again, old.rows.take(np.flatnonzero(old.fold < 0)))


def without_rows(old: LandmarkPredictor, gone: Rows) -> LandmarkPredictor:
    """Return the predictor without some rows, by subtraction from the sums.

    The last digits of these still depend on them, and so do landmarks and the range of the targets,
    as the other rows are not here.
    """
    before, targets = kept_of(old), old.targets
    if len(gone) >= before.n_rows:
        raise ValueError(
            f"{len(gone)} rows to forget are as many as the model has, {before.n_rows}: give fewer"
        )
    quick = added(old, gone, sign=-1.0)
    copies = before.copies
    if copies is not None and before.held.known_rows is not None:
        copies = _summed(copies, before.held.known_rows, targets, gone, -1.0)
    at = places_in(before.rows, gone)
    left = np.setdiff1d(np.arange(len(before.rows)), at[at >= 0])
    held, copies = _rebuilt(before.held, copies, left)
    kept = replace(
        before, held=held, copies=copies, telling=before.telling[left],
        n_rows=before.n_rows - len(gone), mass=before.mass - float(gone.mass.sum()),
    )  # fmt: skip
    again = judged(old, old.landmarks, quick.posterior.equations, targets, kept)
    others = old.rows.take(np.flatnonzero(old.fold < 0))
    at = places_in(others, gone)
    return _with_others(again, others.take(np.setdiff1d(np.arange(len(others)), at[at >= 0])))


def of_sums_alone(old: LandmarkPredictor, whole: Relearned) -> LandmarkPredictor:
    """Return a predictor that was learned from all rows as one that keeps those that judge.

    `old`: finds copies as it does.
    """
    kept, line = kept_of(whole.predictor), kept_of(old).held.known_rows
    used = np.flatnonzero(kept.held.without[1:].any(axis=0))
    rows, known, copies, copy_of = kept.rows.take(used), None, None, np.arange(len(used))
    if line is not None and len(used):
        groups = copy_groups(rows.numbers, rows.codes)
        first = np.unique(groups, return_index=True)[1]
        known, copy_of = KnownRows.of(line.line, rows.numeric[first], rows.codes[first]), groups
        zero = np.zeros(len(first)), np.zeros((len(first), len(rows.targets)))
        copies = _summed(zero, known, whole.predictor.targets, kept.rows, 1.0)
    out = kept.held.without[:, used].copy()
    out[0] = False
    held = HeldFolds(rows, np.arange(len(used)), kept.held.fold[used], out, known, copy_of)
    some = replace(
        kept, held=held, copies=copies, is_whole=False, telling=kept.telling[used],
        landmark_at=used[:0], places=used[:0], owner=used[:0],
    )  # fmt: skip
    return replace(whole.predictor, kept=some)


def range_with(old: LandmarkPredictor, new: Rows) -> Standardised:
    """Return the units of the targets, with the range of those that a model had and new ones."""
    kept, targets = kept_of(old), np.hstack([old.rows.targets, new.targets])
    least, most = np.minimum(kept.least, _least(new)), np.maximum(kept.most, _most(new))
    share = np.full(targets.shape[1], 1.0 / targets.shape[1])
    spread = spread_of(targets - (targets @ share)[:, None], share)
    return within(old.targets, least, most, *natural_range(targets, least, most, spread))


def _least(rows: Rows) -> FloatArray:
    return np.asarray(rows.targets.min(axis=1, initial=np.inf))


def _most(rows: Rows) -> FloatArray:
    return np.asarray(rows.targets.max(axis=1, initial=-np.inf))


def _folds_of_new(kept: KeptRows, new: Rows, keys: NDArray[np.uint64], n_known: int) -> Index:
    """Return the folds of new rows: of their moment, of their group or copies, or of their keys."""
    rule, held = kept.rule, kept.held
    if rule.none:
        return np.full(len(new), -1, dtype=np.intp)
    if rule.starts:
        assert new.times is not None
        return np.asarray(np.searchsorted(rule.starts, new.times, side="right") - 1)
    fold = rule.joined(keys)
    if rule.by_groups:
        assert new.groups is not None
        assert held.rows.groups is not None
        fold[new.groups < n_known] = -1
        names, first = np.unique(held.rows.groups, return_index=True)
        at = np.minimum(np.searchsorted(names, new.groups), len(names) - 1)
        return np.where(names[at] == new.groups, held.fold[first][at], fold)
    if held.known_rows is not None:
        copy = held.known_rows.find(new.numeric, new.codes)
        of_known = np.full(len(held.known_rows), -1, dtype=np.intp)
        of_known[held.copy_of] = held.fold
        fold = np.where(copy >= 0, of_known[copy], fold)
    return fold


def _joined(
    kept: KeptRows, targets: Standardised, new: Rows, joining: Index, fold: Index,
    out: NDArray[np.bool_],
) -> tuple[HeldFolds, tuple[FloatArray, FloatArray] | None]:  # fmt: skip
    """Return rows held out with those that join them, and the sums of all their copies."""
    held, copies, some = kept.held, kept.copies, new.take(joining)
    rows = held.rows.and_others(some)
    places = np.arange(len(rows))
    folds = np.concatenate([held.fold, np.where(fold[joining] > 0, fold[joining], -1)])
    both = np.hstack([held.without, out[:, joining]])
    if copies is None or held.known_rows is None:
        return HeldFolds(rows, places, folds, both, held.known_rows, places), copies
    known, copy_of = held.known_rows, held.known_rows.find(some.numeric, some.codes)
    fresh = np.flatnonzero(copy_of < 0)
    groups = copy_groups(some.numbers[fresh], some.codes[fresh])
    copy_of[fresh] = len(known) + groups
    first = fresh[np.unique(groups, return_index=True)[1]]
    numeric = np.empty((len(known) + len(first), rows.numeric.shape[1]))
    codes = np.empty((len(numeric), rows.codes.shape[1]), dtype=np.int64)
    numeric[known.given], codes[known.given] = known.numeric, known.codes
    numeric[len(known) :], codes[len(known) :] = some.numeric[first], some.codes[first]
    more = KnownRows.of(known.line, numeric, codes)
    n = len(first)
    padded = np.pad(copies[0], (0, n)), np.pad(copies[1], ((0, n), (0, 0)))
    both_copies = np.concatenate([held.copy_of, copy_of])
    sums = _summed(padded, more, targets, new, 1.0)
    return HeldFolds(rows, places, folds, both, more, both_copies), sums


def _summed(
    copies: tuple[FloatArray, FloatArray], known: KnownRows, targets: Standardised, rows: Rows,
    sign: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return Σw and Σwy over the copies of known rows, with those among some rows."""
    at = known.find(rows.numeric, rows.codes)
    seen = np.flatnonzero(at >= 0)
    mass, cross = copies[0].copy(), copies[1].copy()
    weight = sign * rows.precision[seen]
    np.add.at(mass, at[seen], weight)
    np.add.at(cross, at[seen], weight[:, None] * targets.of_rows(rows).values.T[seen])
    return mass, cross


def _rebuilt(
    held: HeldFolds, copies: tuple[FloatArray, FloatArray] | None, left: Index
) -> tuple[HeldFolds, tuple[FloatArray, FloatArray] | None]:
    """Return some of the rows held out, and what is known of their copies alone."""
    rows = held.rows.take(left)
    some = replace(
        held, rows=rows, places=np.arange(len(left)), fold=held.fold[left],
        without=held.without[:, left], copy_of=np.arange(len(left)),
    )  # fmt: skip
    if copies is None or held.known_rows is None:
        return some, copies
    names, first, copy_of = np.unique(held.copy_of[left], return_index=True, return_inverse=True)
    known = KnownRows.of(held.known_rows.line, rows.numeric[first], rows.codes[first])
    return (
        replace(some, known_rows=known, copy_of=copy_of.ravel()),
        (copies[0][names], copies[1][names]),
    )


def _with_others(again: Relearned, others: Rows) -> LandmarkPredictor:
    """Return a predictor with other rows behind those that judge, for explanations."""
    predictor = again.predictor
    rows = predictor.rows.and_others(others)
    return predictor.among(rows, np.arange(len(predictor.rows)))
