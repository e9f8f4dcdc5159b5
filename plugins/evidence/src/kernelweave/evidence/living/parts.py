"""Rows of a place as the landmarks of a model see them, and the sums of each fold of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from sklearn.utils.validation import _num_samples

from ..cross import own_kernel
from ..large.batches import Batches
from ..large.dask_parts import is_dask
from ..large.kept import key_of
from ..large.landmarks import LandmarkPredictor
from ..large.levels import GroupSums
from ..new_rows import USUAL
from ..rows import Rows
from ..targets import check_weight
from .reading import groups_of
from .state import HeldOutBy, Label, LivingState

if TYPE_CHECKING:
    from ..base import EvidenceModel
    from ..columns import ColumnEncoder
    from ..rows import Standardised
    from .basis import Basis

# rows whose features are whitened at once
_PIECE = 512
# what `facts` are, a row each
NOT_NEGATIVE, NEAR_ZERO, NOT_ABOVE_ONE, NEAR_ONE, ABOVE_LOW, BELOW_HIGH, WHOLE = range(7)


@dataclass(frozen=True, eq=False)
class PartSums:
    """Sums over some rows of a table, with features z = L⁻¹k of m landmarks, Kₘₘ = LLᵀ.

    - `fold`: rows of one fold are left out together; −1 where they never are
    - `judged`: whether they are predicted by what is left then; copies of landmarks are not, as new
      rows are no landmarks
    - `n_rows`, `mass`: how many, and Σw
    - `inner` of shape (m (m + 1)/2,): Σ w zzᵀ, its lower triangle in LAPACK's rectangular full
      packed format; `right` of shape (m, n_outputs): Σ w z v of standardised targets v
    - `lost`, `lost_right`: what levels of groups take from these; ``None`` where they have none
    - `prior`: Σ w k(x, x)
    - `total`, `squares` of shape (n_outputs,): Σ w v and Σ w v²
    """

    fold: int
    judged: bool
    n_rows: int
    mass: float
    inner: FloatArray
    right: FloatArray
    lost: FloatArray | None
    lost_right: FloatArray | None
    prior: float
    total: FloatArray
    squares: FloatArray

    @property
    def equations(self) -> tuple[FloatArray, FloatArray]:
        """What the rows add to the normal equations: `inner` and `right`, less what levels take."""
        if self.lost is None or self.lost_right is None:
            return self.inner, self.right
        return self.inner - self.lost, self.right - self.lost_right


def part_of(basis: Basis, rows: Rows, fold: int, *, judged: bool) -> PartSums:
    """Return the sums over rows; where groups have levels the rows hold whole groups."""
    m, values = len(basis), basis.units.of_rows(rows).values
    mass, n_outputs = rows.precision, len(values)
    inner, right = np.zeros((m, m), order="F"), np.zeros((m, n_outputs))
    groups = None
    if basis.ratio is not None:
        own = np.arange(len(rows)) if rows.groups is None else rows.groups
        groups = GroupSums.zeros(own, m, n_outputs)
    for piece, z in whitened(basis, rows.numeric, rows.codes):
        w, y = mass[piece], values.T[piece]
        if groups is not None:
            groups.add(piece, w, z.T, w[:, None] * y)
        right += z @ (w[:, None] * y)
        z *= np.sqrt(w)
        inner = blas.dsyrk(1.0, z, beta=1.0, c=inner, overwrite_c=1, lower=1)
    lost = lost_right = None
    if groups is not None and basis.ratio is not None:
        less, moved = groups.lost(basis.ratio)
        lost, lost_right = packed(blas.dsyrk(1.0, less.T, lower=1)), less.T @ moved
    return PartSums(
        fold, judged, len(rows), float(mass.sum()), packed(inner), right, lost, lost_right,
        _prior(basis, rows), values @ mass, values**2 @ mass,
    )  # fmt: skip


def whitened(
    basis: Basis, numeric: FloatArray, codes: NDArray[np.int64]
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield pieces of rows and their features z, shape (m, n_piece).

    Sums of these differ in their last bits whatever the order of the rows; sums of k, whitened
    afterwards, would differ by as much as the kernel of the landmarks is near to singular.
    """
    for piece in row_slices(len(numeric), _PIECE):
        features = basis.landmarks.features(numeric[piece], codes[piece]).astype(np.float64)
        yield piece, blas.dtrsm(1.0, basis.root, features.T, lower=1)


def _prior(basis: Basis, rows: Rows) -> float:
    """Return Σ w k(x, x)."""
    landmarks, total = basis.landmarks, 0.0
    for piece in row_slices(len(rows), 16 * _PIECE):
        points = landmarks.views.points(rows.numeric[piece], rows.codes[piece])
        own = [own_kernel(points, each, landmarks.views.match_weight) for each in landmarks.scales]
        total += float(rows.precision[piece] @ np.sum(own, axis=0))
    return total


def flat_unit(units: Standardised) -> tuple[FloatArray, FloatArray]:
    """Return the middle and the size of targets under no power, each of shape (n_outputs,)."""
    if not units.warps:
        return units.centre, units.spread
    low, middle, high = units.restore(np.array([[-1.0], [0.0], [1.0]]) * np.ones(len(units.centre)))
    return middle, 0.5 * (high - low)


def facts_of(units: Standardised, targets: FloatArray) -> NDArray[np.bool_]:
    """Return what all targets of a table never leave, shape (7, n_outputs); no value is in it."""
    least, most = targets.min(axis=1), targets.max(axis=1)
    spread = flat_unit(units)[1]
    return np.array(
        [
            least >= 0.0, least <= spread, most <= 1.0, most >= 1.0 - spread,
            least >= units.low, most <= units.high, (targets == np.rint(targets)).all(axis=1),
        ]
    )  # fmt: skip


def packed(lower: FloatArray) -> FloatArray:
    """Return a lower triangle in LAPACK's rectangular full packed format."""
    return np.asarray(lapack.dtrttf(np.asfortranarray(lower), uplo="L")[0])


def unpacked(triangle: FloatArray, m: int) -> FloatArray:
    """Return a lower triangle of shape (m, m); what is above the diagonal means nothing."""
    return np.asarray(lapack.dtfttr(m, triangle, uplo="L")[0])


def dealt(
    basis: Basis, rows: Rows, fold: Index, is_landmark: NDArray[np.bool_]
) -> tuple[PartSums, ...]:
    """Return the sums over rows, of each fold apart.

    `fold` of shape (n,): of each row, −1 of none; `is_landmark` of shape (n,): which rows are not
    to be judged. Where groups have levels, a group is judged or is not.
    """
    aside = is_landmark
    if basis.ratio is not None and rows.groups is not None:
        aside = np.isin(rows.groups, rows.groups[is_landmark])
    parts = []
    for k in np.unique(fold):
        for judged in (True, False):
            which = np.flatnonzero((fold == k) & (aside != judged if k >= 0 else not judged))
            if len(which):
                parts.append(part_of(basis, rows.take(which), int(k), judged=judged))
    return tuple(parts)


def summed(parts: Sequence[PartSums]) -> tuple[FloatArray, FloatArray]:
    """Return the normal equations of parts together: packed inner products and right sides."""
    pairs = [each.equations for each in parts]
    return sum(one for one, _ in pairs), sum(other for _, other in pairs)  # type: ignore[return-value]


def read_rows(
    model: EvidenceModel, basis: Basis, X: Any, y: object, sample_weight: object, groups: object
) -> tuple[Rows, Index]:
    """Return the rows that count, and the fold of each, −1 of none, shape (n,).

    Categories that the model has not are new ones to its landmarks, whatever they are called.
    """
    if isinstance(X, Batches) or is_dask(X):
        raise TypeError("sums are of a table in memory: read its parts and merge their sums")
    (by, unit), n_rows = _ways_of(model), _num_samples(X)
    numeric, codes = model.encoder_.transform(X, estimator=model)
    checked = check_weight(sample_weight, n_rows)
    targets, _, mass = model._task.more(y, n_rows, checked)
    n_outputs = len(basis.units.centre)
    if len(targets) != n_outputs:
        raise ValueError(
            f"y has {len(targets)} outputs, and {n_outputs} when the kernel was learned"
        )
    if groups is not None and not by.by_groups:
        raise ValueError("groups must be None, as when the kernel was learned: fit it with groups")
    labels = groups_of(X, groups, by, n_rows) if by.by_groups else None
    mass = np.ones(n_rows) if mass is None else np.asarray(mass, dtype=np.float64)
    kept = np.flatnonzero(mass > 0.0)
    weight = mass / unit[0] / unit[1]
    rows = Rows(numeric, codes, targets, weight, group=basis.column).take(kept)
    own = None if labels is None else [labels[i] for i in kept.tolist()]
    return with_folds(basis, rows, own)


def _ways_of(model: EvidenceModel) -> tuple[HeldOutBy, tuple[float, float]]:
    """Return how rows are held out, and the unit of their weights."""
    rows = model._predictor.rows
    if getattr(model, "_living", None) is None and rows.groups is None and rows.weight is None:
        # of tables that were read in parts: neither was given
        return HeldOutBy(USUAL), (1.0, 1.0)
    state = state_of(model)
    return state.held_out_by, state.unit


def state_of(model: EvidenceModel) -> LivingState:
    """Return how the rows of a model were weighed and held out."""
    state: LivingState | None = getattr(model, "_living", None)
    if state is None:
        raise ValueError(
            "this model kept too little of its fit to add rows in its units: it is of an older "
            "version, or learned groups or weights of a table that was read in parts"
        )
    return state


def rows_of(model: EvidenceModel) -> Rows | None:
    """Return all rows that a model has; ``None`` where it keeps only some of them."""
    predictor = model._predictor
    if isinstance(predictor, LandmarkPredictor):
        kept = predictor.kept
        return None if kept is None or not kept.is_whole else kept.rows
    return predictor.rows


def rows_of_model(
    basis: Basis, encoder: ColumnEncoder, model: EvidenceModel, rows: Rows
) -> tuple[Rows, Index]:
    """Return the rows of a model, and their folds, as another's landmarks see them.

    `encoder`: of the model that has the landmarks, which knows fewer categories, or others.
    """
    state, columns = state_of(model), []
    for new, old, mine in zip(
        encoder._codes_of(model.encoder_), rows.codes.T, encoder._categories, strict=True
    ):
        known = new[np.minimum(old, len(new) - 1)]
        columns.append(np.where(known < 0, mine.categories.rare, known))
    codes = np.column_stack(columns) if columns else rows.codes
    own = Rows(rows.numbers, codes, rows.targets, rows.precision, group=basis.column)
    labels = None
    if rows.groups is not None and state.labels is not None:
        labels = [state.labels[k] for k in rows.groups.tolist()]
    return with_folds(basis, own, labels)


def with_folds(basis: Basis, rows: Rows, labels: Sequence[Label] | None) -> tuple[Rows, Index]:
    """Return rows with their groups, and the fold of each by its group, else by what it holds."""
    keys = content_of(rows)
    if labels is not None:
        # a row without a name for its group is its own
        named = [
            key if label is None else repr(label).encode()
            for key, label in zip(keys, labels, strict=True)
        ]
        alone = [
            (k, name) if label is None else name
            for k, (name, label) in enumerate(zip(named, labels, strict=True))
        ]
        numbers = {each: k for k, each in enumerate(dict.fromkeys(alone))}
        rows = replace(rows, groups=np.array([numbers[each] for each in alone], dtype=np.intp))
        keys = named
    if not basis.n_folds:
        return rows, np.full(len(rows), -1, dtype=np.intp)
    return rows, np.array([key_of(key) % basis.n_folds for key in keys], dtype=np.intp)


def content_of(rows: Rows) -> list[bytes]:
    """Return bytes of each row that its copies share."""
    table = np.ascontiguousarray(np.hstack([rows.numbers + 0.0, rows.codes]), dtype="<f8")
    return [row.tobytes() for row in table]
