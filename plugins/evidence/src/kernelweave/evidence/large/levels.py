"""Levels of groups beside landmarks: left out of the normal equations, and found afterwards.

The model is y = f + u_g + noise with f a function of landmarks and a level u of each group, whose
variance is that of the noise over κ. Without the levels, rows of one group have residuals of the
covariance 1 + 11ᵀ/κ: with the sums n = Σw, s = Σwφ and t = Σwy over each group the equations
(ΦᵀWΦ + ρKₘₘ)β = ΦᵀWY lose Σ ssᵀ/(n + κ) and Σ st/(n + κ), and u = (t − sᵀβ)/(n + κ).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..columns.encoded import GroupColumn
from ..rows import Rows
from .batches import BLOCK
from .features import Landmarks

# rows whose features are summed at once
_PIECE = 512


@dataclass(frozen=True)
class GroupLevels:
    """What each group has beside the function of landmarks.

    - `column`: names the groups
    - `names` of shape (n_groups,): ascending
    - `mass` of shape (n_groups,): n
    - `effects` of shape (n_groups, n_outputs): u, standardised
    - `ratio`: κ
    - `ridge`: variance of the noise
    - `variances` of shape (n_groups,): of u and the linear term of the column together, given all
      rows, standardised; ``None`` where nobody will ask
    """

    column: GroupColumn
    names: FloatArray
    mass: FloatArray
    effects: FloatArray
    ratio: float
    ridge: float
    variances: FloatArray | None = None

    @classmethod
    def of(
        cls, rows: Rows, function: Callable[[Rows], FloatArray], ratio: float, ridge: float
    ) -> GroupLevels:
        """Return the levels of all groups.

        `function`: from rows to their residuals without levels, shape (n, n_outputs).
        """
        assert rows.group is not None
        all_names = rows.group.names(rows.numeric, rows.codes)
        named = np.flatnonzero(~np.isnan(all_names))
        names, at = np.unique(all_names[named], return_inverse=True)
        rest = function(rows)[named]
        member = _members(at.ravel(), len(names), rows.mass[named])
        mass = np.asarray(member.sum(axis=1), dtype=np.float64)
        effects = (member @ rest) / (mass + ratio)[:, None]
        return cls(rows.group, names, mass, effects, ratio, ridge)

    def values(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the levels of rows, shape (n, n_outputs); those of new groups are 0."""
        return self.at(self.column.names(numeric, codes))

    def at(self, names: FloatArray) -> FloatArray:
        """Return the levels of named groups."""
        place, has_level = self._find(names)
        if not len(self.names):
            return np.zeros((len(names), self.effects.shape[1]))
        return np.where(has_level[:, None], self.effects[place], 0.0)

    def has(self, names: FloatArray) -> Index:
        """Return which rows of these groups have a level."""
        return np.flatnonzero(self._find(names)[1])

    def open(self, names: FloatArray) -> FloatArray:
        """Return the variance of levels, given the function, over that of the noise, shape (n,)."""
        place, has_level = self._find(names)
        mass = self.mass[place] if len(self.mass) else 0.0
        return np.asarray(1.0 / (np.where(has_level, mass, 0.0) + self.ratio))

    def variance(self, names: FloatArray) -> FloatArray:
        """Return the variance of levels, given the function, shape (n,)."""
        return self.ridge * self.open(names)

    def _find(self, names: FloatArray) -> tuple[Index, NDArray[np.bool_]]:
        if not len(self.names):
            return np.zeros(len(names), dtype=np.intp), np.zeros(len(names), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.names, names), len(self.names) - 1)
        return place, self.names[place] == names


@dataclass
class GroupSums:
    """n, s and t of the groups that some rows are of.

    `numbers` of shape (n_rows,): the group of each row, counted from 0.
    """

    numbers: Index
    mass: FloatArray
    features: FloatArray
    targets: FloatArray

    @classmethod
    def zeros(cls, groups: Index, n_features: int, n_outputs: int) -> GroupSums:
        """Return the sums over no rows; `groups` of shape (n_rows,): of all that will be added."""
        names, numbers = np.unique(groups, return_inverse=True)
        shapes = (n_features, n_outputs)
        empty = (np.zeros((len(names), each)) for each in shapes)
        return cls(numbers.ravel(), np.zeros(len(names)), *empty)

    def add(self, rows: slice, mass: FloatArray, features: FloatArray, cross: FloatArray) -> None:
        """Add some of the rows.

        `mass` of shape (n,): their weights; `features` of shape (n, n_features); `cross` of shape
        (n, n_outputs): weights times targets.
        """
        numbers = self.numbers[rows]
        member = _members(numbers, len(self.mass), mass)
        self.mass += member.sum(axis=1)
        self.features += member @ features
        self.targets += _members(numbers, len(self.mass), np.ones(len(mass))) @ cross

    def lost(self, ratio: float) -> tuple[FloatArray, FloatArray]:
        """Return vectors S and the matrix V: the equations lose SᵀS and SᵀV."""
        share = np.sqrt(1.0 / (self.mass + ratio))[:, None]
        return share * self.features, share * self.targets


@dataclass(frozen=True)
class LevelSums:
    """n, s and t of the groups of some rows, over others that were learned from.

    `numbers` of shape (n_rows,): the group of each row, counted from 0; `ratio`: κ.
    """

    numbers: Index
    mass: FloatArray
    features: FloatArray
    targets: FloatArray
    ratio: float

    @classmethod
    def of(
        cls, landmarks: Landmarks, rows: Rows, known: Rows, cross: FloatArray, ratio: float
    ) -> LevelSums:
        """Return the sums over those known rows that are of groups of the rows.

        `cross` of shape (n_known, n_outputs): weights times standardised targets.
        """
        assert rows.groups is not None
        assert known.groups is not None
        names, numbers = np.unique(rows.groups, return_inverse=True)
        mates = np.flatnonzero(np.isin(known.groups, names))
        at, everything = np.searchsorted(names, known.groups[mates]), np.arange(len(mates))
        known, cross = known.take(mates), cross[mates]
        features = group_features(landmarks, known, everything, at, len(names))
        mass = np.zeros(len(names))
        np.add.at(mass, at, known.precision)
        targets = _members(at, len(names), np.ones(len(known))) @ cross
        return cls(numbers.ravel(), mass, features, targets, ratio)

    def __call__(self, dual: FloatArray) -> FloatArray:
        """Return the levels of the rows beside a function, 0 of new groups, (n, n_outputs)."""
        rest = self.targets - self.features @ dual
        return np.asarray((rest / (self.mass + self.ratio)[:, None])[self.numbers])


def _members(numbers: Index, n_groups: int, values: FloatArray) -> csr_array:
    """Return a matrix of shape (n_groups, n) that sums rows, times values, by their group."""
    n = len(numbers)
    return csr_array((values, (numbers, np.arange(n))), shape=(n_groups, n))


def whole_groups(rows: Rows) -> Iterator[Rows]:
    """Cut rows into blocks, none of which parts a group."""
    assert rows.groups is not None
    order = np.argsort(rows.groups, kind="stable")
    begins = np.append(0, 1 + np.flatnonzero(np.diff(rows.groups[order])))
    wanted = np.arange(0, len(rows), BLOCK)
    cuts = np.unique(begins[np.searchsorted(begins, wanted, side="right") - 1])
    for begin, end in pairwise([*cuts.tolist(), len(rows)]):
        yield rows.take(order[begin:end])


def group_features(
    landmarks: Landmarks, rows: Rows, members: Index, numbers: Index, n_groups: int | None = None
) -> FloatArray:
    """Return s of groups counted from 0.

    `members`, `numbers` of shape (n,): rows and groups; `n_groups`: by default as many as these.
    """
    size = int(numbers.max(initial=-1)) + 1 if n_groups is None else n_groups
    out, by = np.zeros((size, len(landmarks))), np.argsort(numbers, kind="stable")
    for piece in row_slices(len(members), _PIECE):
        subset, own = rows.take(members[by[piece]]), numbers[by[piece]]
        features = landmarks.features(subset.numeric, subset.codes).astype(np.float64)
        # of some groups, one behind the other
        first, last = int(own[0]), int(own[-1]) + 1
        out[first:last] += _members(own - first, last - first, subset.precision) @ features
    return out
