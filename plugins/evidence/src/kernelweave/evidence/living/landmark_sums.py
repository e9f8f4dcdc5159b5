"""Models that keep sums of more than 50,000 rows: they learn new ones, and forget some."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..columns import ColumnEncoder
from ..large.again import Relearned, added, kept_of, relearned
from ..large.landmarks import LandmarkPredictor
from ..large.summed import of_sums_alone, range_with, with_joined, without_rows
from .canonical import Canonical, canonical
from .landmarks import keys_of_groups, recoded, with_findings
from .state import Label, LivingModel, RowsAsGiven, RowsToJoin, Unsettled


def updated(model: LivingModel, new: RowsToJoin, unsettled: Unsettled | None) -> Unsettled:
    """Return the model with more rows, of which only what means need is worked out.

    `unsettled`: what was learned since the model was settled; its rows are those alone.
    """
    encoder = model.encoder if unsettled is None else unsettled.encoder
    quick, given = model.predictor, new.given
    codes = new.encoder._codes_of(encoder)
    if unsettled is not None:
        quick = unsettled.quick
        given = unsettled.given.recoded(codes).and_others(given)
    assert isinstance(quick, LandmarkPredictor)
    quick = recoded(quick, codes, new.encoder)
    own = canonical(new.given, new.encoder, kept_of(quick).rows, model.state).rows
    if len(own):
        kept, targets = kept_of(quick), range_with(quick, own)
        least = np.minimum(kept.least, own.targets.min(axis=1))
        most = np.maximum(kept.most, own.targets.max(axis=1))
        kept = replace(kept, least=least, most=most)
        quick = replace(added(quick, own), targets=targets, kept=kept)
    return Unsettled(model, new.encoder, given, quick)


def settled(unsettled: Unsettled) -> dict[str, Any]:
    """Return the attributes of a model that learned rows."""
    model, encoder, quick = unsettled.model, unsettled.encoder, unsettled.quick
    old = _recoded(model, encoder)
    found = _numbered_alike(model, encoder, unsettled.given, old)
    keys = kept_of(old).rule.keys(found.rows, keys_of_groups(found))
    n_known = len(model.state.labels or ())
    predictor = with_joined(old, quick, found.rows, keys, n_known)
    return with_findings(model, encoder, found, Relearned(predictor, None))


def refitted(model: LivingModel, new: RowsToJoin) -> dict[str, Any]:
    """Return the attributes of the model of these rows instead of its own."""
    old = _recoded(model, new.encoder)
    found = _numbered_alike(model, new.encoder, new.given, old)
    again = relearned(old, found.rows, keys_of_groups(found))
    again = Relearned(of_sums_alone(old, again), None)
    return with_findings(model, new.encoder, found, again)


def taken_away(model: LivingModel, gone: RowsAsGiven) -> dict[str, Any]:
    """Return the attributes of the model without some rows, which the user gives.

    They are subtracted from the sums, the last digits of which still depend on them.
    """
    old = _recoded(model, model.encoder)
    found = _numbered_alike(model, model.encoder, gone, old)
    predictor = without_rows(old, found.rows)
    found = found._replace(state=model.state)
    return with_findings(model, model.encoder, found, Relearned(predictor, None))


def _recoded(model: LivingModel, encoder: ColumnEncoder) -> LandmarkPredictor:
    """Return what predicts, in the codes of an encoder."""
    old = model.predictor
    assert isinstance(old, LandmarkPredictor)
    return recoded(old, encoder._codes_of(model.encoder), encoder)


def _numbered_alike(
    model: LivingModel, encoder: ColumnEncoder, given: RowsAsGiven, old: LandmarkPredictor
) -> Canonical:
    """Return given rows whose groups have the numbers that the model has, new ones behind."""
    found = canonical(given, encoder, kept_of(old).rows, model.state)
    labels, own = model.state.labels, found.state.labels
    rows, state = found.rows, replace(found.state, mass=None)
    if labels is not None and own is not None and rows.groups is not None:
        place: dict[Label, int] = {label: k for k, label in enumerate(labels) if label is not None}
        every, numbers = list(labels), list[int]()
        for label in own:
            numbers.append(place.get(label, len(every)))
            if label not in place:
                every.append(label)
        rows = replace(rows, groups=np.array(numbers, dtype=np.intp)[rows.groups])
        state = replace(state, labels=tuple(every))
    return found._replace(rows=rows, state=state)
