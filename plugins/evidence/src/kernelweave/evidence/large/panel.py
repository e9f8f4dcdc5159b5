"""Rows of known and new groups, now and later, by landmarks: how far each kind lies from the mean.

Without a group the coefficients are β − A⁻¹Φᵀ(V − ΦA⁻¹Φᵀ)⁻¹r, where Φ and r are its rows' features
and residuals without levels, V is W⁻¹, and 1/κ more everywhere where groups have levels, and A is
the left side of the equations (Woodbury's identity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import solve

from ..intervals import for_new_groups
from ..panels import KNOWN_NOW, NEW_LATER, NEW_NOW, tellers
from .posterior import latent_variance

if TYPE_CHECKING:
    from ..rows import Rows
    from .landmarks import LandmarkPredictor
    from .leave_out import LandmarksLeaveOut
    from .posterior import PosteriorOfSums

# rows of a kind, and rows of their groups that these are predicted without, at most
_MOST, _LEARNED = 1000, 2000
# and groups that are left out at least, as far as their rows are no more than four times as many
_GROUPS, _TIMES = 12, 4
# later rows are of two blocks of time at least, as one may be of any size
_FEWEST_BLOCKS = 2


class Predicted(NamedTuple):
    """Rows predicted without themselves and some that are like them.

    `at` of shape (n,): which rows; `latent` of shape (n, n_outputs): standardised; `variance` of
    shape (n,): of the function and the level.
    """

    at: Index
    latent: FloatArray
    variance: FloatArray

    def among(self, which: Index) -> Predicted:
        """Return some of them."""
        return Predicted(self.at[which], self.latent[which], self.variance[which])


@dataclass(frozen=True)
class KindScores:
    """How far rows of a kind lie from their predictions.

    - `scores` of shape (n, n_outputs): in the model's deviations, their root mean square one
    - `size` of shape (n_outputs,): what these deviations are multiplied by for such rows
    - `of`: the kind whose rows tell of it, another one where its own are too few
    - `n_groups`: that its own rows are of
    """

    scores: FloatArray
    size: FloatArray
    of: int
    n_groups: int


def without_groups(
    posterior: PosteriorOfSums, dual: FloatArray, ratio: float | None, rows: Rows, known: Rows,
    values: FloatArray,
) -> Predicted:  # fmt: skip
    """Return some of the rows, each predicted without all that was learned from its group.

    - `posterior`, `dual`: of the function
    - `ratio`: of the noise to the levels of groups, ``None`` where these have none
    - `rows`: that are predicted, or some of them where they are many
    - `known`: all rows of their groups that were learned from; `values` of shape (n_known,
      n_outputs): their targets, standardised
    """
    at, learned = _some(rows, known)
    rows, known, values = rows.take(at), known.take(learned), values[learned]
    landmarks, ridge, n_outputs = posterior.landmarks, posterior.ridge, values.shape[1]
    features = landmarks.features(rows.numeric, rows.codes)
    latent, own = np.asarray(features @ dual, dtype=np.float64), posterior.halves(features)
    variance = latent_variance(landmarks, posterior, rows.numeric, rows.codes)
    features = landmarks.features(known.numeric, known.codes)
    rest, theirs = values - features @ dual, posterior.halves(features)
    level = 0.0 if ratio is None else 1.0 / ratio
    assert rows.groups is not None
    assert known.groups is not None
    for group in np.unique(known.groups):
        here, there = np.flatnonzero(rows.groups == group), np.flatnonzero(known.groups == group)
        half, across = theirs[:, there], own[:, here].T @ theirs[:, there]
        left = np.diag(1.0 / known.precision[there]) + level - half.T @ half
        moved = solve(left, np.column_stack([rest[there], across.T]), assume_a="sym")
        latent[here] -= across @ moved[:, :n_outputs]
        variance[here] += ridge * np.einsum("ij,ji->i", across, moved[:, n_outputs:])
    return Predicted(at, latent, variance + ridge * level)


def _some(rows: Rows, known: Rows) -> tuple[Index, Index]:
    """Return rows of some groups, and those of the known rows that are of these."""
    assert rows.groups is not None
    assert known.groups is not None
    names, counts = np.unique(rows.groups, return_counts=True)
    n_known = np.bincount(known.groups, minlength=int(names.max()) + 1)[names]
    # in an order that has nothing to do with the numbers of groups
    by = np.random.RandomState(0).permutation(len(names))
    most = np.where(np.arange(len(names)) < _GROUPS, _TIMES, 1)
    n_rows, n_learned = np.cumsum(counts[by]), np.cumsum(n_known[by])
    chosen = names[by[(n_rows <= most * _MOST) & (n_learned <= most * _LEARNED)]]
    here, there = (np.flatnonzero(np.isin(each, chosen)) for each in (rows.groups, known.groups))
    return here, there


def scores_of_kinds(
    predictor: LandmarkPredictor, left_out: LandmarksLeaveOut
) -> tuple[KindScores, ...]:
    """Return how far rows of each of the four kinds lie from their predictions.

    Empty where no row tells of any. Without an order all that judge are of new groups.
    """
    rows = left_out.rows
    assert rows.groups is not None
    if rows.times is None:
        known = left_out.known_now()
        if not len(known.at):
            return ()
        n_groups = len(np.unique(rows.groups[known.at]))
        first = _of_kind(
            _scores(predictor, rows, [known]), rows.mass[known.at], KNOWN_NOW, n_groups
        )
        new = KindScores(predictor.own_scores, np.ones_like(first.size), NEW_NOW, 0)
        return first, new, first, new
    kinds: list[KindScores] = []
    for kind, parts in enumerate(left_out.panel):
        at = np.concatenate([np.empty(0, dtype=np.intp), *(each.at for each in parts)])
        n_groups = len(np.unique(rows.groups[at]))
        if kind not in (KNOWN_NOW, NEW_NOW) and len(parts) < _FEWEST_BLOCKS:
            n_groups = 0
        scores = _scores(predictor, rows, parts)
        if kind in (NEW_NOW, NEW_LATER):
            scores = for_new_groups(scores, n_groups)
        kinds.append(_of_kind(scores, rows.mass[at], kind, n_groups))
    sizes = [float(np.sqrt(np.mean(each.size**2))) for each in kinds]
    of = tellers([each.n_groups for each in kinds], sizes)
    return tuple(
        KindScores(kinds[k].scores, kinds[k].size, k, each.n_groups)
        for k, each in zip(of, kinds, strict=True)
    )


def _of_kind(scores: FloatArray, mass: FloatArray, kind: int, n_groups: int) -> KindScores:
    """Return scores in units of their own root mean square."""
    size = np.ones(scores.shape[1])
    if len(scores):
        size = np.sqrt(np.average(scores**2, axis=0, weights=mass))
        size[size == 0.0] = 1.0
    return KindScores(scores / size, size, kind, n_groups)


def _scores(predictor: LandmarkPredictor, rows: Rows, parts: Sequence[Predicted]) -> FloatArray:
    """Return residuals of rows in the deviations that these have without them, (n, n_outputs)."""
    out = [predictor.scores[:0]]
    for each in parts:
        subset = rows.take(each.at)
        out.append(predictor.scores_of(subset, each.latent, each.variance))
    return np.concatenate(out)
