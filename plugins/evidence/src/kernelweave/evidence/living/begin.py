"""What a fit leaves for its model to live by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.estimators.classes import column_of
from numpy.typing import NDArray

from ..exact import ExactPredictor
from ..large.censored import CensoredLandmarks
from ..learn import SHARED_METRIC
from ..rows import Rows
from .canonical import unit_of
from .reading import labels_of
from .state import HeldOutBy, Label, LivingState

if TYPE_CHECKING:
    from ..findings import Fitted
    from ..read_table import ReadTable


def state_of(
    samples: ReadTable, fitted: Fitted, groups: object, order: object, seconds: float
) -> LivingState | None:
    """Return what a fit leaves, ``None`` where that is too little to live by.

    `groups`, `order`: as the user gave them; `seconds`: of the processor that the fit took.
    """
    predictor, rows, division = fitted.predictor, samples.rows, samples.division
    owner, given = samples.owner, samples.weight
    alike = isinstance(groups, str) and not division.column
    is_exact = isinstance(predictor, ExactPredictor)
    # a predictor of landmarks may keep no rows
    own: Rows | None = getattr(getattr(predictor, "kept", predictor), "rows", None)
    if own is None or not isinstance(rows, Rows) or (alike and not is_exact):
        return None
    if rows.further:
        # whose names may change as rows come
        return None
    if isinstance(predictor, CensoredLandmarks):
        # each change of the rows asks for another mode, and all of them for other distributions
        return None
    assert fitted.draws is not None
    times = None if isinstance(order, str) else division.order
    by_place = times is not None and np.array_equal(times, np.arange(len(owner)))
    by = HeldOutBy(
        division.kind, division.column, order if isinstance(order, str) else "",
        division.groups is not None, division.order is not None, division.cv is not None,
        division.in_order, alike, by_place,
    )  # fmt: skip
    starts: tuple[float, ...] = ()
    if isinstance(predictor, ExactPredictor) and own.times is not None:
        starts = tuple(float(own.times[f.held_out].min()) for f in predictor.folds)
    kept, mass = owner >= 0, np.ones(len(owner)) if given is None else given
    summed = np.bincount(owner[kept], mass[kept], len(rows)).astype(np.float64)
    apart, numeric, targets = _apart(samples, own)
    if not is_exact and len(own) < len(rows):
        # sums of rows alone: nothing of each is kept
        mass = np.ones(1)
    return LivingState(
        held_out_by=by,
        labels=_labels(samples, groups, alike=alike),
        starts=starts,
        unit=unit_of(None if (summed == 1.0).all() else summed),
        mass=None if (mass == 1.0).all() else np.asarray(mass, dtype=np.float64),
        apart=apart,
        apart_numeric=numeric,
        apart_targets=targets,
        shared=len(rows) > SHARED_METRIC,
        n_seen=int(np.count_nonzero(kept)),
        seconds=seconds,
        draws=fitted.draws,
    )


def draws_of(state: np.random.RandomState) -> NDArray[np.uint32]:
    """Return the state of random numbers, shape (625,)."""
    _, keys, place, *_ = state.get_state()
    return np.append(keys, np.uint32(place)).astype(np.uint32)


def _labels(samples: ReadTable, groups: object, *, alike: bool) -> tuple[Label, ...] | None:
    """Return the label of each group, by its number."""
    numbers = samples.division.groups
    if numbers is None:
        return None
    first = np.unique(numbers, return_index=True)[1]
    if alike:
        return tuple(range(len(first)))
    values = column_of(samples.table, groups, "groups", len(numbers))
    return labels_of(values[first].tolist())


def _apart(samples: ReadTable, rows: Rows) -> tuple[Index, FloatArray, FloatArray]:
    """Return the given rows that differ by rounding from those that they were merged to."""
    owner, merged = samples.owner, samples.rows
    assert isinstance(merged, Rows)
    kept = np.flatnonzero(owner >= 0)
    none = np.empty(0, dtype=np.intp)
    if len(kept) > len(merged):
        given: Any = samples.encoder.transform(samples.table, folds=True).numeric[kept]
        assert samples.targets is not None
        targets = samples.targets[:, kept]
        apart = (given != rows.numeric[owner[kept]]).any(axis=1)
        apart |= (targets != merged.targets[:, owner[kept]]).any(axis=0)
        return kept[apart], given[apart], np.ascontiguousarray(targets[:, apart])
    return none, np.empty((0, rows.numeric.shape[1])), np.empty((len(merged.targets), 0))
