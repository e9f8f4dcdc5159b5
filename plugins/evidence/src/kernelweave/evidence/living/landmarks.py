"""Models of landmarks that learn new rows, and forget some.

Of tables in memory with up to 50,000 rows all rows are kept. New ones are added to the normal
equations, whose size the landmarks alone tell; and what is forgotten is never taken away: the sums
over the others are worked out from scratch, so that nothing of it is left in their last digits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.typing import NDArray

from ..columns import ColumnEncoder
from ..findings import HeldOutRows
from ..large.again import (
    Relearned,
    added,
    kept_of,
    ratio_of,
    relearned,
    units_of,
    white_sums,
    with_levels,
    with_more,
)
from ..large.kept import content_keys, key_of
from ..large.landmarks import LandmarkPredictor
from ..large.posterior import PosteriorOfSums
from ..rows import Rows
from .canonical import (
    Canonical,
    attributes_with,
    canonical,
    renewed,
    rows_as_given,
    rows_left,
    with_codes_in_use,
)
from .state import LivingModel, RowsAsGiven, RowsToJoin, Unsettled

# products of numbers in sums over all rows, n · m² for m landmarks: as long as that takes a second,
# the sums of a fit give way to exact ones before rows are added to them
_SECOND = 1.5e10


def updated(model: LivingModel, new: RowsToJoin, unsettled: Unsettled | None) -> Unsettled:
    """Return the model with more rows, of which only what means need is worked out.

    `unsettled`: what was learned since the model was settled.
    """
    encoder = model.encoder if unsettled is None else unsettled.encoder
    before = rows_as_given(model) if unsettled is None else unsettled.given
    quick = model.predictor if unsettled is None else unsettled.quick
    assert isinstance(quick, LandmarkPredictor)
    codes = new.encoder._codes_of(encoder)
    quick, before = recoded(quick, codes, new.encoder), before.recoded(codes)
    old = _as_rows(model, new.encoder, before, quick)
    quick = _exact(quick, old)
    own = _as_rows(model, new.encoder, new.given, quick)
    given = before.and_others(new.given)
    every = _as_rows(model, new.encoder, given, quick)
    if not len(own):
        return Unsettled(model, new.encoder, given, quick)
    has_levels = ratio_of(quick) is not None
    quick = _with_groups(quick, own, old, every) if has_levels else added(quick, own)
    quick = replace(quick, targets=units_of(quick, every))
    return Unsettled(model, new.encoder, given, quick)


def refitted(model: LivingModel, new: RowsToJoin) -> dict[str, Any]:
    """Return the attributes of the model of these rows instead of its own."""
    return _attributes(model, new.encoder, new.given)


def without(model: LivingModel, places: Index) -> dict[str, Any]:
    """Return the attributes of the model without some of the rows that it was given.

    A landmark that is one of them, and of no other row a copy, gives way to another row.
    """
    return _attributes(model, model.encoder, rows_left(model, places))


def settled(unsettled: Unsettled) -> dict[str, Any]:
    """Return the attributes of a model that learned rows."""
    return _attributes(unsettled.model, unsettled.encoder, unsettled.given, unsettled.quick)


def _attributes(
    model: LivingModel, encoder: ColumnEncoder, given: RowsAsGiven,
    quick: LandmarkPredictor | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the attributes of the model of some rows with the kernel of a model.

    `given`: in the codes of the encoder; `quick`: where the sums over these rows are known.
    """
    old = model.predictor
    assert isinstance(old, LandmarkPredictor)
    given, pruned = with_codes_in_use(given, encoder, model.state)
    old = recoded(old, pruned._codes_of(model.encoder), pruned)
    found = canonical(given, pruned, kept_of(old).rows, model.state)
    keys = keys_of_groups(found)
    if quick is not None and kept_of(quick).is_exact:
        quick = recoded(quick, pruned._codes_of(encoder), pruned)
        again = with_more(replace(old, landmarks=quick.landmarks), quick, found.rows, keys)
    else:
        again = relearned(old, found.rows, keys)
    return with_findings(model, pruned, found, again)


def _as_rows(
    model: LivingModel, encoder: ColumnEncoder, given: RowsAsGiven, quick: LandmarkPredictor
) -> Rows:
    """Return given rows as the sums take them."""
    return canonical(given, encoder, kept_of(quick).rows, model.state).rows


def _exact(quick: LandmarkPredictor, rows: Rows) -> LandmarkPredictor:
    """Return what predicts, by exact sums over the rows where that takes no more than a second."""
    kept = kept_of(quick)
    if kept.is_exact or len(rows) * len(quick.landmarks) ** 2 > _SECOND:
        return quick
    equations = white_sums(quick.landmarks, rows, quick.targets, ratio_of(quick))
    ridge, dual, factor = equations.solved(quick.ridge)
    posterior = PosteriorOfSums.of(quick.landmarks, ridge, equations, factor)
    return replace(
        quick, ridge=ridge, dual=dual, posterior=posterior, kept=replace(kept, is_exact=True)
    )


def _with_groups(quick: LandmarkPredictor, own: Rows, old: Rows, every: Rows) -> LandmarkPredictor:
    """Return what predicts with new rows, whose groups have levels; `every`: old and new rows."""
    assert own.group is not None
    names = [own.group.names(each.numeric, each.codes) for each in (own, old)]
    mates = np.flatnonzero(np.isin(names[1], names[0]))
    of_both = np.concatenate([names[0], names[1][mates]])
    alone = np.isnan(of_both)
    numbers = np.unique(of_both, return_inverse=True)[1].ravel()
    numbers[alone] = len(of_both) + np.arange(int(alone.sum()))
    rest = replace(old.take(mates), groups=numbers[len(own) :])
    quick = added(quick, replace(own, groups=numbers[: len(own)]), rest)
    # what predicts means, until rows are settled
    return with_levels(quick, every, sure=False)


def recoded(
    predictor: LandmarkPredictor, codes: list[NDArray[np.int64]], encoder: ColumnEncoder
) -> LandmarkPredictor:
    """Return a predictor whose rows and landmarks have other codes of categories.

    `codes`: what each becomes, by column; `encoder`: whose codes these are.
    """
    kept, landmarks = kept_of(predictor), predictor.landmarks
    group = renewed(landmarks.views.group, encoder)
    stays = all(np.array_equal(each, np.arange(len(each))) for each in codes)
    if stays and group == landmarks.views.group:
        return predictor
    held = replace(kept.held, rows=_recoded_rows(kept.held.rows, codes, encoder))
    points = landmarks.points
    if len(codes):
        C = np.array([new[old] for new, old in zip(codes, points.C, strict=True)])
        points = points._replace(C=np.ascontiguousarray(C))
    if group is not None:
        points = points._replace(G=_names(kept.held.rows, held.rows, points.G))
    landmarks = replace(landmarks, points=points, views=replace(landmarks.views, group=group))
    posterior = replace(predictor.posterior, landmarks=landmarks)
    vars(posterior).update(
        (name, value) for name, value in vars(predictor.posterior).items() if name == "root"
    )
    levels = predictor.levels
    if levels is not None and group is not None:
        levels = replace(levels, column=group)
    return replace(
        predictor, landmarks=landmarks, posterior=posterior, levels=levels,
        kept=replace(kept, held=held), rows=_recoded_rows(predictor.rows, codes, encoder),
    )  # fmt: skip


def _names(before: Rows, after: Rows, G: FloatArray) -> FloatArray:
    """Return the names of groups that landmarks had, as they are called now."""
    assert before.group is not None
    assert after.group is not None
    old, new = (
        each.group.names(each.numeric, each.codes) for each in (before, after) if each.group
    )
    names, first = np.unique(old, return_index=True)
    at = np.minimum(np.searchsorted(names, G[0]), len(names) - 1)
    return np.where(np.isnan(G[0]), np.nan, new[first][at])[None]


def _recoded_rows(rows: Rows, codes: list[NDArray[np.int64]], encoder: ColumnEncoder) -> Rows:
    if codes:
        columns = [new[each] for new, each in zip(codes, rows.codes.T, strict=True)]
        rows = replace(rows, codes=np.ascontiguousarray(np.column_stack(columns)))
    return replace(rows, coding=encoder.coding, group=renewed(rows.group, encoder))


def keys_of_groups(found: Canonical) -> NDArray[np.uint64] | None:
    """Return a number for each row's group that its label tells; rows alone have that of theirs."""
    labels, rows = found.state.labels, found.rows
    if labels is None or rows.groups is None:
        return None
    pairs = zip((labels[k] for k in rows.groups.tolist()), content_keys(rows).tolist(), strict=True)
    keys = [own if label is None else key_of(repr(label).encode()) for label, own in pairs]
    return np.array(keys, dtype=np.uint64)


def _kept_places(found: Canonical, places: Index) -> Index:
    """Return where each given row is among those that the predictor keeps, −1 of none."""
    # the last is that of rows without a weight
    at = np.full(len(found.rows) + 1, -1, dtype=np.intp)
    at[places] = np.arange(len(places))
    return np.asarray(at[found.owner])


def with_findings(
    model: LivingModel, encoder: ColumnEncoder, found: Canonical, again: Relearned
) -> dict[str, Any]:
    """Return the attributes of an estimator whose rows are predicted so."""
    predictor, left_out = again.predictor, again.left_out
    kept = kept_of(predictor)
    owner = np.arange(len(predictor.rows))
    if kept.is_whole:
        kept = replace(kept, owner=found.owner)
        predictor, owner = replace(predictor, kept=kept), _kept_places(found, kept.places)
    if left_out is not None:
        left_out.places = found.first
    held_out = HeldOutRows(
        predictor.rows, predictor.held_out, predictor.fold, owner, encoder.dimensions_,
        lambda: left_out,
    )  # fmt: skip
    work = f"{len(predictor.landmarks)} landmarks of {kept.n_rows} rows"
    return attributes_with(model, encoder, found, predictor, held_out, work)
