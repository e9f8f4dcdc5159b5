"""Rows in one order, whatever way they came, and the way back to those that were given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from ..columns import ColumnEncoder
from ..columns.encoded import GroupColumn
from ..division import Division, codes_of_groups
from ..findings import HeldOutRows, rearranged_attributes
from ..kernel import EvidenceKernel
from ..read_table import merged_rows
from ..rows import Rows
from .state import Label, LivingModel, LivingState, RowsAsGiven

if TYPE_CHECKING:
    from ..exact import ExactPredictor
    from ..large.landmarks import LandmarkPredictor


class Canonical(NamedTuple):
    """Rows as a predictor has them: merged, sorted, with weights in the unit of the fit.

    `owner` of shape (n_given,): the place of each given row among them, −1 of weight 0; `state`:
    with what the rows do not tell of those that were given; `first` of shape (n_rows,): where each
    stands first among them.
    """

    rows: Rows
    owner: Index
    state: LivingState
    first: Index


def rows_as_given(model: LivingModel) -> RowsAsGiven:
    """Return the rows that a settled model has, as they were given."""
    rows, owner, state = model.rows, model.owner, model.state
    at = np.where(owner >= 0, owner, 0)
    numeric, targets = rows.numeric[at], rows.targets[:, at]
    numeric[state.apart], targets[:, state.apart] = state.apart_numeric, state.apart_targets
    mass = np.ones(len(owner)) if state.mass is None else state.mass.copy()
    mass[owner < 0] = 0.0
    groups = None
    if state.labels is not None and rows.groups is not None:
        groups = tuple(state.labels[k] for k in rows.groups[at].tolist())
    times = None if rows.times is None else rows.times[at]
    ends = None if rows.ends is None else rows.ends[:, at]
    return RowsAsGiven(numeric, rows.codes[at], targets, mass, groups, times, ends)


def rows_left(model: LivingModel, places: Index) -> RowsAsGiven:
    """Return the rows that a model has without some of those given, in their order."""
    given = rows_as_given(model)
    return given.take(np.delete(np.arange(len(given)), places))


def _counted_anew(given: RowsAsGiven, state: LivingState) -> RowsAsGiven:
    """Return rows whose moments, where places are their order, have no gaps.

    Gaps would tell where rows were that are forgotten.
    """
    if given.times is None or not state.held_out_by.by_place:
        return given
    places = np.unique(given.times, return_inverse=True)[1].ravel()
    return replace(given, times=places.astype(np.float64))


def with_codes_in_use(
    given: RowsAsGiven, encoder: ColumnEncoder, state: LivingState
) -> tuple[RowsAsGiven, ColumnEncoder]:
    """Return rows counted anew, and an encoder that has left of the categories what they have.

    `given`: in the codes of the encoder; those returned are in the codes of the other.
    """
    kept = np.flatnonzero(given.mass > 0.0)
    if not len(kept):
        raise ValueError("every row has a weight of 0: nothing is left to learn from")
    pruned = encoder._keeping(given.codes[kept], given.mass[kept])
    return _counted_anew(given, state).recoded(pruned._codes_of(encoder)), pruned


def attributes_with(
    model: LivingModel, encoder: ColumnEncoder, found: Canonical,
    predictor: ExactPredictor | LandmarkPredictor, held_out: HeldOutRows, work: str,
) -> dict[str, Any]:  # fmt: skip
    """Return the attributes of an estimator whose rows are predicted so.

    `held_out`: rows as folds held them out; `work`: which rows the certificate tells of.
    """
    state, given = found.state, model.random_state
    seed = given if isinstance(given, int | np.integer) else state.random_state()
    attributes, _, monotone = rearranged_attributes(
        model.task, state.held_out_by, held_out, predictor, model.monotone,
        check_random_state(seed),
    )  # fmt: skip
    certificate = replace(
        model.certificate, held_out_score=attributes["held_out_score_"],
        held_out_error=attributes["held_out_error_"], monotone=monotone,
        work=f"kernel from {state.n_seen} rows, {work}",
    )  # fmt: skip
    return attributes | {
        "kernel_": EvidenceKernel(predictor.views, tuple(predictor.scales)),
        "noise_": predictor.noise,
        "dimensions_": list(encoder.dimensions_),
        "encoder_": encoder,
        "certificate_": certificate,
        "_predictor": predictor,
        "_owner": held_out.owner,
        "_importance": None,
        "_living": state,
    }


def canonical(
    given: RowsAsGiven, encoder: ColumnEncoder, like: Rows, state: LivingState,
    pairs: list[tuple[Index, Index]] | None = None,
) -> Canonical:  # fmt: skip
    """Return given rows merged and in order, as a fit has them.

    `like`: rows of the model, which the others are seen as; `pairs`: where a splitter held rows
    out, training and held-out places among the given.
    """
    kept = np.flatnonzero(given.mass > 0.0)
    some = given.take(kept)
    n_main = like.n_numbers
    groups, labels = _numbered(some.groups)
    by = state.held_out_by
    cv = None
    if pairs is not None:
        at = np.full(len(given), -1)
        at[kept] = np.arange(len(kept))
        cv = check_cv([tuple(at[each][at[each] >= 0] for each in pair) for pair in pairs])
    division = Division(groups, some.times, cv, by.kind, np.zeros(len(kept)), by.groups)
    weight = None if (some.mass == 1.0).all() else some.mass
    every = Rows(
        np.ascontiguousarray(some.numeric[:, :n_main]), some.codes, some.targets, weight,
        coding=encoder.coding, groups=groups, times=some.times, ends=some.ends,
    )  # fmt: skip
    rows, place = merged_rows(every, encoder, division)
    first = np.unique(place, return_index=True)[1]
    if like.columns:
        rows = replace(rows, numeric=_as_folds_know(rows, some.numeric[first], like))
    rows = replace(
        rows, weight=_in_unit(rows.weight, len(rows), state.unit),
        group=renewed(like.group, encoder),
        names=like.names, by_folds=like.by_folds, transform_targets=like.transform_targets,
        transform_columns=like.transform_columns, columns=like.columns, of_folds=like.of_folds,
    )  # fmt: skip
    owner = np.full(len(given), -1, dtype=np.intp)
    owner[kept] = place
    apart = (some.numeric != rows.numeric[place]).any(axis=1)
    apart |= (some.targets != rows.targets[:, place]).any(axis=0)
    state = replace(
        state,
        labels=labels,
        mass=None if (given.mass == 1.0).all() else given.mass,
        apart=kept[apart],
        apart_numeric=some.numeric[apart],
        apart_targets=np.ascontiguousarray(some.targets[:, apart]),
    )
    return Canonical(rows, owner, state, kept[first])


def renewed(group: GroupColumn | None, encoder: ColumnEncoder) -> GroupColumn | None:
    """Return the column that names groups, with the codes that it has now."""
    return None if group is None else GroupColumn.of(group.place, encoder.coding)


def _numbered(
    labels: tuple[Label, ...] | None,
) -> tuple[Index | None, tuple[Label, ...] | None]:
    """Return the number of each row's group, and the label of each number."""
    if labels is None:
        return None, None
    values = np.empty(len(labels), dtype=object)
    values[:] = labels
    numbers = codes_of_groups(values)
    by_number = np.unique(numbers, return_index=True)[1]
    return numbers, tuple(labels[i] for i in by_number.tolist())


def _as_folds_know(rows: Rows, given: FloatArray, like: Rows) -> FloatArray:
    """Return numbers with the components of texts as each fold knows them, (n_rows, n_numeric)."""
    n_texts = like.n_numbers - _n_plain(like)
    return np.hstack(
        [rows.numeric[:, : rows.numeric.shape[1] - n_texts], given[:, _n_plain(like) :]]
    )


def _n_plain(like: Rows) -> int:
    """Return how many numbers are no components of texts that folds know in their own way."""
    own = set(like.columns).intersection(*map(set, like.of_folds)) if like.of_folds else ()
    return len(own)


def _in_unit(
    weight: FloatArray | None, n_rows: int, unit: tuple[float, float]
) -> FloatArray | None:
    """Return weights of merged rows in the unit of the fit, ``None`` where all are 1."""
    raw = np.ones(n_rows) if weight is None else weight
    mass = np.asarray(raw / unit[0] / unit[1])
    return None if (mass == 1.0).all() else mass


def unit_of(weight: FloatArray | None) -> tuple[float, float]:
    """Return what `normalise_weights` divides by; weights of a common factor are all 1."""
    if weight is None:
        return 1.0, 1.0
    most = float(weight.max())
    share = weight / most
    return most, 1.0 if (share == 1.0).all() else float(share[share > 0.0].mean())
