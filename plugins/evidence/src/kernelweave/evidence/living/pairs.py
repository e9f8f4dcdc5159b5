"""Models of all pairs of rows that learn new rows, and forget some.

What follows from the rows is worked out from them by `settled`, whatever way they came: nothing is
taken out of a factorisation, and no rounding adds up. Point predictions of a regression have a
shorter way: the Cholesky factor is bordered by the new rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.exceptions import Message

from ..censored.fit import begun
from ..columns import ColumnEncoder
from ..exact import ExactPredictor
from ..findings import HeldOutRows
from ..folds import Fold
from ..learn import leave_folds_out
from ..leave_out import PairsLeaveOut
from ..mixture import Mixture, fit_mixture
from ..noise import with_varying_noise
from ..outliers import trust_in
from ..read_table import FACTOR_ROWS
from ..rows import Rows, Split, Standardised
from ..tasks import Classification
from .bordering import QuickMean
from .canonical import (
    Canonical,
    attributes_with,
    canonical,
    renewed,
    rows_as_given,
    rows_left,
    with_codes_in_use,
)
from .folds import RowsWithRoles, folds_of_rows, keys_of_given, keys_of_rows, known_rows, roles_of
from .state import LivingModel, LivingState, RowsAsGiven, RowsToJoin, Unsettled

# times as many rows as a fit takes by all pairs may come to be there
_MOST = 2 * FACTOR_ROWS


def updated(model: LivingModel, new: RowsToJoin, unsettled: Unsettled | None) -> Unsettled:
    """Return the model with more rows, of which only what means need is worked out.

    `unsettled`: what was learned since the model was settled.
    """
    old = model.predictor
    assert isinstance(old, ExactPredictor)
    old.check_targets(new.given.targets)
    encoder = model.encoder if unsettled is None else unsettled.encoder
    before = rows_as_given(model) if unsettled is None else unsettled.given
    recoding = new.encoder._codes_of(encoder)
    given = before.recoded(recoding).and_others(new.given)
    _refuse_many(given)
    quick = None if unsettled is None else unsettled.quick
    if unsettled is None and _has_a_short_way(old):
        quick = QuickMean(old.mixture, old.rows)
    moved = (not np.array_equal(each[:-1], np.arange(len(each) - 1)) for each in recoding)
    if quick is not None:
        # the factor's points hold codes of before: where one has changed, it cannot grow
        quick = None if any(moved) else quick.with_rows(new, model.state)
    return Unsettled(model, new.encoder, given, quick)


def refitted(model: LivingModel, new: RowsToJoin) -> dict[str, Any]:
    """Return the attributes of the model of these rows instead of its own."""
    assert isinstance(model.predictor, ExactPredictor)
    model.predictor.check_targets(new.given.targets)
    _refuse_many(new.given)
    return _attributes(model, new.encoder, new.given)


def without(model: LivingModel, places: Index) -> dict[str, Any]:
    """Return the attributes of the model without some of the rows that it was given."""
    return _attributes(model, model.encoder, rows_left(model, places))


def settled(unsettled: Unsettled) -> dict[str, Any]:
    """Return the attributes of a model that learned rows."""
    return _attributes(unsettled.model, unsettled.encoder, unsettled.given)


def _refuse_many(given: RowsAsGiven) -> None:
    if len(given) > _MOST:
        text = (
            "{n} rows are more than a kernel of all pairs takes, {most}: fit the model again, "
            "which learns so many by landmarks"
        )
        raise ValueError(Message(text, n=len(given), most=_MOST))


def _has_a_short_way(predictor: ExactPredictor) -> bool:
    """Return whether its means are those of one Gaussian mixture, and targets are trusted alike."""
    rows = predictor.rows
    return type(predictor) is ExactPredictor and rows.trust is None and not rows.recurring


def _attributes(model: LivingModel, encoder: ColumnEncoder, given: RowsAsGiven) -> dict[str, Any]:
    """Return the attributes of the model of some rows with the kernel of a model.

    `given`: in the codes of the encoder.
    """
    old, state = model.predictor, model.state
    assert isinstance(old, ExactPredictor)
    given, pruned = with_codes_in_use(given, encoder, state)
    known = _known(model, pruned)
    if state.held_out_by.alike:
        given = _named_as_known(given, known, old.rows, state)
    pairs = None
    if state.held_out_by.by_splitter:
        pairs = _pairs_given(known, given, old.rows)
    found = canonical(given, pruned, old.rows, state, pairs)
    joined = known.find(keys_of_rows(found.rows, found.state.naming)) < 0
    now = replace(found.state, joined=joined if joined.any() else None)
    found = found._replace(state=now)
    predictor = _predictor(model, pruned, found, known)
    return _with_findings(model, pruned, found, predictor)


def _known(model: LivingModel, encoder: ColumnEncoder) -> RowsWithRoles:
    """Return the rows of a model and their folds, in the codes of an encoder."""
    old = model.predictor
    assert isinstance(old, ExactPredictor)
    codes = encoder._codes_of(model.encoder)
    given = rows_as_given(model).recoded(codes)
    rows = old.rows
    if codes:
        columns = [new[each] for new, each in zip(codes, rows.codes.T, strict=True)]
        rows = replace(rows, codes=np.column_stack(columns))
    return known_rows(roles_of(old.folds, len(rows)), rows, given, model.owner, model.state)


def _named_as_known(
    given: RowsAsGiven, known: RowsWithRoles, rows: Rows, state: LivingState
) -> RowsAsGiven:
    """Return rows with the groups of near copies that those known have; others are alone."""
    assert rows.groups is not None
    assert state.labels is not None
    at = known.find(keys_of_given(given, rows.columns, alike=True))
    labels = [state.labels[k] for k in rows.groups.tolist()]
    groups = tuple(labels[i] if i >= 0 else None for i in at.tolist())
    return replace(given, groups=groups)


def _pairs_given(known: RowsWithRoles, given: RowsAsGiven, like: Rows) -> list[Split]:
    """Return training and held-out places among given rows, as a splitter parted those known."""
    at = known.find(keys_of_given(given, like.columns))
    roles = np.where(at[:, None] >= 0, known.roles[at], 0)
    return [(np.flatnonzero(each == 1), np.flatnonzero(each == 2)) for each in roles.T]


def _predictor(
    model: LivingModel, encoder: ColumnEncoder, found: Canonical, known: RowsWithRoles
) -> ExactPredictor:
    """Return what predicts, of rows in order, with the kernel and the last step of a model."""
    old, rows, state = model.predictor, found.rows, model.state
    assert isinstance(old, ExactPredictor)
    at = known.find(keys_of_rows(rows, found.state.naming))
    splits = folds_of_rows(rows, encoder, known, found.state)
    if rows.ends is not None:
        rows = begun(rows)
    if old.rows.trust is not None:
        rows = _trusted(old, rows, at, encoder)
    folds = []
    for k, (before, split) in enumerate(zip(old.folds, splits, strict=True)):
        if not min(map(len, split)):
            continue
        fold = _fold_of(before, rows.in_fold(k), split, encoder)
        if rows.trust is not None and state.shared:
            fold = replace(fold, training=replace(fold.training, trust=rows.trust[:, split[0]]))
        elif rows.trust is not None:
            fold = _trusted_in_fold(fold, before, at, old.weights)
        folds.append(fold)
    mixture = _mixture_of(old.mixture, rows, encoder)
    closed: tuple[Any, ...] = ()
    if state.shared and folds:
        closed, held_out = leave_folds_out(mixture, rows, folds)
    else:
        held_out = _held_out(rows, folds, old.weights)
    plain = ExactPredictor(mixture, folds, old.weights, rows, held_out, closed=closed)
    if not isinstance(model.task, Classification) and rows.ends is None:
        if state.held_out_by.in_order:
            plain = plain.with_forecasts()
        else:
            plain = with_varying_noise(plain, state.random_state())[0]
    return old.again(plain)


def _mixture_of(old: Mixture, rows: Rows, encoder: ColumnEncoder) -> Mixture:
    """Return the mixture of a kernel on other rows, in the units that its targets had."""
    views = replace(old.views, group=renewed(old.views.group, encoder))
    return fit_mixture(views, rows, old.scales, old.target.of_others(rows))


def _fold_of(old: Fold, rows: Rows, split: Split, encoder: ColumnEncoder) -> Fold:
    """Return a fold with its metric and other rows, which are trusted alike."""
    training = rows.take(split[0])
    units = old.units or Standardised.of(old.training)
    units = units.of_others(training)
    return replace(
        old, places=split[0], held_out=split[1], training=training,
        views=replace(old.views, group=renewed(old.views.group, encoder)),
        predictions=np.empty((0, 0, len(rows.targets))),
        units=replace(units, values=np.empty((len(units.centre), 0))),
    )  # fmt: skip


def _trusted(old: ExactPredictor, rows: Rows, at: Index, encoder: ColumnEncoder) -> Rows:
    """Return rows with the trust that they had; that of new ones is told by their residuals.

    `at` of shape (n_rows,): the place of each among those of the old predictor, −1 of new ones.
    """
    assert old.rows.trust is not None
    return _with_trust(
        rows, old.rows.trust[0], at, lambda some: _mixture_of(old.mixture, some, encoder)
    )


def _trusted_in_fold(fold: Fold, old: Fold, at: Index, weights: FloatArray) -> Fold:
    """Return a fold whose training rows have the trust that they had there, as `_trusted` has it.

    Rows held out have no part in it.
    """
    assert old.training.trust is not None
    place = np.full(max(int(old.places.max()), int(at.max())) + 1, -1)
    place[old.places] = np.arange(len(old.places))
    mine = np.where(at[fold.places] >= 0, place[at[fold.places]], -1)
    training = _with_trust(
        fold.training, old.training.trust[0], mine,
        lambda some: replace(fold, training=some).mixture(weights),
    )  # fmt: skip
    return replace(fold, training=training)


def _with_trust(
    rows: Rows, told: FloatArray, at: Index, learned: Callable[[Rows], Mixture]
) -> Rows:
    """Return rows with the trust that was told, and with that of new ones by their residuals.

    `at` of shape (n_rows,): the place of each in `told`, −1 of new ones; `learned`: from rows.
    """
    new = np.flatnonzero(at < 0)
    # of rows that are still there: others are forgotten, or joined as these do
    stays = told[at[at >= 0]]
    trust = np.where(at >= 0, told[at], float(np.median(stays)) if len(stays) else 1.0)
    if len(new):
        mixture = learned(replace(rows, trust=trust[None]))
        trust[new] = trust_in(replace(rows, trust=trust[None]), mixture)[new]
        mixture.release()
    return replace(rows, trust=trust[None])


def _held_out(rows: Rows, folds: list[Fold], weights: FloatArray) -> FloatArray:
    """Return predictions of rows by the fold that has not seen them, (n_rows, n_outputs).

    Those of the fits of its path, combined: as a fit judges them. NaN of rows that none held out.
    """
    out = np.full((len(rows), len(rows.targets)), np.nan)
    for k, fold in enumerate(folds):
        test = rows.in_fold(k).take(fold.held_out)
        points = fold.views.points(test.numeric, test.codes)
        if fold.training.trust is not None:
            out[fold.held_out] = fold.mixture(weights).predict(points)
            continue
        seen = fold.views.points(fold.training.numeric, fold.training.codes)
        values, done = np.zeros((len(weights), len(test), len(rows.targets))), {}
        for place in np.flatnonzero(weights).tolist():
            fit = fold.fits[place]
            key = fit.theta.tobytes()
            if key not in done:
                part = fit_mixture(fold.views, fold.training, (fit.scales,), fold.units, seen)
                done[key] = part.predict(points)
            values[place] = done[key]
        out[fold.held_out] = np.einsum("k,kit->it", weights, values)
    return out


def _with_findings(
    model: LivingModel, encoder: ColumnEncoder, found: Canonical, predictor: ExactPredictor
) -> dict[str, Any]:
    """Return the attributes of an estimator whose rows are predicted so."""
    mixture, rows = predictor.mixture, predictor.rows

    def left_out() -> PairsLeaveOut:
        return PairsLeaveOut(
            mixture.inverse, mixture.target, rows, found.first, mixture.width, mixture.diagonal
        )

    held_out = HeldOutRows(
        rows, predictor.held_out, predictor.fold, found.owner, encoder.dimensions_, left_out
    )
    work = f"predictor from all pairs of {len(rows)} rows, {len(predictor.folds)} folds"
    attributes = attributes_with(model, encoder, found, predictor, held_out, work)
    mixture.release()
    return attributes
