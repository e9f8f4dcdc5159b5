"""Rows of known and new groups, now and later, by landmarks: how far each kind lies from the mean.

Without a group the coefficients are β − A⁻¹Φᵀ(V − ΦA⁻¹Φᵀ)⁻¹r, where Φ and r are its rows' features
and residuals without levels, V is W⁻¹, and 1/κ more everywhere where groups have levels, and A is
the left side of the equations (Woodbury's identity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import inv, solve

from ..forecasts import column_of_times
from ..intervals import for_new_groups
from ..panels import KNOWN_LATER, KNOWN_NOW, NEW_LATER, NEW_NOW, tellers
from .posterior import latent_variance

if TYPE_CHECKING:
    from ..rows import Rows
    from .landmarks import LandmarkPredictor
    from .leave_out import LandmarksLeaveOut
    from .posterior import PosteriorOfSums
    from .solution import LandmarkSolution

# rows of a kind, and rows of their groups that these are predicted without, at most
_MOST, _LEARNED = 1000, 2000
# and groups at least, however long these are
_GROUPS = 8
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


@dataclass(frozen=True)
class FunctionOfRows:
    """A function of landmarks and the rows that it was learned from.

    - `dual` of shape (n_landmarks, n_outputs)
    - `ratio`: of the noise to the levels of groups, ``None`` where these have none
    - `rows`: all of the groups that may be left out; `values` of shape (n, n_outputs): their
      targets, standardised
    - `ones` of shape (n_landmarks,): what `PosteriorOfSums.halves` makes of the right side of
      targets that are all one, and `mass`: of all rows, where targets are to be centred by the mean
      of the others; else ``None``
    """

    posterior: PosteriorOfSums
    dual: FloatArray
    ratio: float | None
    rows: Rows
    values: FloatArray
    ones: FloatArray | None = None
    mass: float = np.inf

    def without(self, group: int, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return what predictions of rows and their variances change by without a group.

        Its landmarks leave too, as rows of new groups are none. Shapes (n, n_outputs) and (n,).
        """
        posterior, n_outputs = self.posterior, self.dual.shape[1]
        landmarks, members = posterior.landmarks, np.flatnonzero(self.rows.groups == group)
        known, values = self.rows.take(members), self.values[members]
        units = self._landmarks_of(known)
        # the last target is one everywhere
        dual = np.column_stack([self.dual, np.zeros(len(self.dual))])
        features = landmarks.features(known.numeric, known.codes).astype(np.float64)
        H, rest = posterior.halves(features), np.column_stack([values, np.ones(len(known))])
        rest -= features @ dual
        own = posterior.halves(landmarks.features(rows.numeric, rows.codes))
        unit = np.zeros((len(units), len(dual)))
        unit[np.arange(len(units)), units] = 1.0
        E = posterior.halves(unit)
        held, extra = dual[units], np.zeros(len(rows))
        if self.ones is not None:
            rest[:, -1] -= H.T @ self.ones
            # β of the last target at the landmarks, as of the others
            held[:, -1], extra = E.T @ self.ones, own.T @ self.ones
        level = 0.0 if self.ratio is None else 1.0 / self.ratio
        moved, told = _moved(H, E, own, rest, held, known.precision, level)
        found = moved[:, :n_outputs]
        if self.ones is not None:
            share = known.precision @ values / (self.mass - known.precision.sum())
            found = found - (1.0 - extra - moved[:, -1])[:, None] * share
        return found, posterior.ridge * told

    def _landmarks_of(self, known: Rows) -> Index:
        """Return which landmarks are rows of the group."""
        landmarks = self.posterior.landmarks
        column = landmarks.views.group
        if column is None:
            return np.empty(0, dtype=np.intp)
        own = column.names(known.numeric, known.codes)
        return np.flatnonzero(np.isin(landmarks.points.G[0], own[~np.isnan(own)]))


def _moved(
    H: FloatArray, E: FloatArray, own: FloatArray, rest: FloatArray, held: FloatArray,
    mass: FloatArray, level: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return what predictions change by without a group and its landmarks, and their variances.

    - `H`, `E`, `own`: halves of the group's rows, of units of its landmarks, and of new rows
    - `rest` of shape (n, n_outputs): residuals of the group's rows; `held`: β of its landmarks
    - `mass` of shape (n,); `level`: 1/κ, 0 without levels

    Variances are in units of the noise.
    """
    n, m = H.shape[1], len(H)
    if _smaller(n + E.shape[1], m):
        left = np.diag(1.0 / mass) + level - H.T @ H
        matrix = np.block([[-left, H.T @ E], [E.T @ H, E.T @ E]])
        across = own.T @ np.hstack([H, E])
        solved = solve(
            matrix, np.column_stack([np.vstack([rest, -held]), across.T]), assume_a="sym"
        )
        found, back = solved[:, : rest.shape[1]], solved[:, rest.shape[1] :]
        return across @ found, -np.einsum("ij,ji->i", across, back)
    # of more rows than landmarks the other side of Woodbury's identity is the smaller system
    weighted = H * mass
    shrunk = level / (1.0 + level * mass.sum())
    inner = weighted @ H.T - shrunk * np.outer(H @ mass, H @ mass)
    right = weighted @ rest - shrunk * np.outer(H @ mass, mass @ rest)
    N = inv(np.eye(m) - inner)
    change, open_ = -N @ right, N - np.eye(m)
    if E.shape[1]:
        # and the landmarks, whose β is then none
        own_of, unit = N @ E, E.T @ N @ E
        back = solve(unit, np.column_stack([held + E.T @ change, own_of.T]), assume_a="pos")
        change = change - own_of @ back[:, : rest.shape[1]]
        open_ = open_ - own_of @ back[:, rest.shape[1] :]
    return own.T @ change, np.einsum("ij,ij->j", own, open_ @ own)


def _smaller(n: int, m: int) -> bool:
    """Return whether a system of n rows and landmarks is that to solve, not of all landmarks."""
    return n <= m


def without_groups(function: FunctionOfRows, rows: Rows) -> Predicted:
    """Return some of the rows, each predicted without all that was learned from its group."""
    at = _some(rows, function.rows)
    rows, posterior = rows.take(at), function.posterior
    landmarks, ratio = posterior.landmarks, function.ratio
    latent = landmarks.products(rows.numeric, rows.codes, function.dual)
    variance = latent_variance(landmarks, posterior, rows.numeric, rows.codes)
    assert rows.groups is not None
    assert function.rows.groups is not None
    for group in np.intersect1d(rows.groups, function.rows.groups).tolist():
        here = np.flatnonzero(rows.groups == group)
        moved, told = function.without(group, rows.take(here))
        latent[here] += moved
        variance[here] += told
    level = 0.0 if ratio is None else posterior.ridge / ratio
    return Predicted(at, latent, variance + level)


def _some(rows: Rows, known: Rows) -> Index:
    """Return rows of some groups: at least of a few, of more while these are small."""
    assert rows.groups is not None
    assert known.groups is not None
    names, counts = np.unique(rows.groups, return_counts=True)
    n_known = np.bincount(known.groups, minlength=int(names.max(initial=-1)) + 1)[names]
    # in an order that has nothing to do with the numbers of groups
    by = np.random.RandomState(0).permutation(len(names))
    first, others = by[:_GROUPS], by[_GROUPS:]
    others = others[n_known[others] <= _LEARNED // _GROUPS]
    counted = np.minimum(counts, _MOST // _GROUPS)
    n_rows = counted[first].sum() + np.cumsum(counted[others])
    n_learned = n_known[first].sum() + np.cumsum(n_known[others])
    more = others[(n_rows <= _MOST) & (n_learned <= _LEARNED)]
    chosen, out = np.concatenate([first, more]), list[Index]()
    for place in chosen.tolist():
        members = np.flatnonzero(rows.groups == names[place])
        spread = np.linspace(0, len(members) - 1, int(counted[place])).astype(np.intp)
        out.append(members[spread])
    return np.sort(np.concatenate([np.empty(0, dtype=np.intp), *out]))


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
        found = _of_kind(scores, rows.mass[at], kind, n_groups)
        if kind in (KNOWN_LATER, NEW_LATER) and parts:
            found = replace(found, size=found.size * _wider(predictor, rows, parts[-1], kind))
        kinds.append(found)
    sizes = [float(np.sqrt(np.mean(each.size**2))) for each in kinds]
    of = tellers([each.n_groups for each in kinds], sizes)
    return tuple(
        KindScores(kinds[k].scores, kinds[k].size, k, each.n_groups)
        for k, each in zip(of, kinds, strict=True)
    )


def _wider(predictor: LandmarkPredictor, rows: Rows, last: Predicted, kind: int) -> float:
    """Return how much wider deviations were in the last fold than they are beyond the last row.

    Its rows are moved as far behind the last one as they were behind what the fold learned from.
    There all rows leave less open, as some that were held out are landmarks now.
    """
    subset, column = rows.take(last.at), column_of_times(rows)
    assert rows.times is not None
    assert subset.times is not None
    numeric = subset.numeric.copy()
    if column >= 0:
        numeric[:, column] += rows.times.max() - subset.times.min()
    new = latent_variance(predictor.landmarks, predictor.posterior, numeric, subset.codes)
    if predictor.levels is not None:
        names = predictor.levels.column.names(numeric, subset.codes)
        if kind == NEW_LATER:
            names = np.full_like(names, np.nan)
        new = new + predictor.levels.variance(names)
    return float(np.sqrt(np.mean(last.variance + predictor.ridge) / np.mean(new + predictor.ridge)))


def as_wide_as_folds(
    predictor: LandmarkPredictor, solution: LandmarkSolution, held_out: Rows
) -> LandmarkPredictor:
    """Return the predictor of rows in order, as wide beyond the last one as the last fold was.

    `held_out`: the rows of the folds, which are later ones. What is wider already stays.
    """
    if not solution.left_out:
        return predictor
    fold = solution.left_out[-1]
    last = Predicted(fold.which, fold.latent, fold.variance)
    wider = max(1.0, _wider(predictor, held_out, last, KNOWN_LATER))
    return replace(predictor, inflation=predictor.inflation * wider**2)


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
