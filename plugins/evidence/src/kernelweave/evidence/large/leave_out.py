"""Rows left out in closed form of a solution by landmarks."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.linalg import solve

from ..panels import KNOWN_LATER, KNOWN_NOW, NEW_LATER, NEW_NOW
from ..rows import Rows, Standardised, centred_by_others
from .levels import GroupLevels, group_features
from .panel import FunctionOfRows, Predicted, without_groups
from .posterior import latent_variance

if TYPE_CHECKING:
    from .solution import FoldLeftOut, LandmarkSolution

# rows of known groups that are left out alone at most
_KNOWN = 1000


class LandmarksLeaveOut:
    """Rows left out in closed form of a solution by landmarks.

    They leave the sums with the landmarks Z among them, as new rows are none: with features φ,
    A = ΦᵀWΦ + ρKₘₘ, units e of β and residuals r, they are −W⁻¹v of

        [ φA⁻¹φᵀ − W⁻¹   φA⁻¹e ] [v]   [   r ]
        [ eᵀA⁻¹φᵀ        eᵀA⁻¹e ] [u] = [−β_Z ]

    (the equations less the rows g, with β_Z = 0; Woodbury's identity). Where groups have levels, φ
    is less s/(n + κ) of the row's group and rows of one group have 1/(n + κ) more: `GroupLevels`.

    The mean that targets are centred by is that of the others, for which targets that are all one
    are left out too. Their β is A⁻¹Φᵀ1 (less what levels take), and only its products are needed.

    `rows`: of the table; `places` of shape (n,): where they stand in it; `at` of shape (n,): which
    landmark each row is, −1 of none; `in_order`: whether the folds of the solution are later rows.
    """

    def __init__(
        self,
        solution: LandmarkSolution,
        targets: Standardised,
        rows: Rows,
        places: Index,
        at: Index,
        levels: GroupLevels | None = None,
        in_order: bool = False,
    ) -> None:
        self.solution, self.targets, self.levels = solution, targets, levels
        self.in_order = in_order
        self.rows, self.places, self.at = rows, places, at
        self.dual, self.width = solution.dual, solution.width
        self.values = targets.of_rows(rows).values.T
        # columns and right sides of rows, and behind them of landmarks, that were ever asked for;
        # and the products of those that were asked for together
        self._column = np.full(len(rows) + len(self.dual), -1, dtype=np.intp)
        self._halves = np.empty((len(self.dual), 0))
        self._right = np.empty((0, self.dual.shape[1] + 1))
        self._among, self._inner = np.full_like(self._column, -1), np.empty((0, 0))
        # which row stands at each place
        self._row_at = np.argsort(places)

    def ask(self, rows: Index) -> None:
        """Work out what leaving any of some rows out takes: far faster than a few at a time."""
        units = np.unique(self.at[rows])
        which = len(self.rows) + units[units >= 0]
        self._multiply(np.concatenate([rows, which]))

    def residuals(self, rows: Index) -> FloatArray:
        """Return residuals of rows predicted from all others, shape (n_rows, n_outputs)."""
        return centred_by_others(self._residuals(rows), self.values, self.rows.precision, rows)

    def _residuals(self, rows: Index) -> FloatArray:
        """Return residuals of the standardised targets and, last, of targets that are all one."""
        units = np.unique(self.at[rows])
        units = units[units >= 0]
        inner, right = self._equations(np.concatenate([rows, len(self.rows) + units]))
        mass = self.rows.precision[rows]
        inner[np.arange(len(rows)), np.arange(len(rows))] -= 1.0 / mass
        # from 1, of rows, to 1e-15, of a landmark that no row needs: a unit diagonal first
        scale = 1.0 / np.sqrt(np.abs(inner).max(axis=1, keepdims=True))
        inner, right = scale * inner * scale.T, scale * right
        moved = scale * solve(inner, right, assume_a="sym", check_finite=False)
        return np.asarray(-moved[: len(rows)] / mass[:, None])

    def residuals_of_one(self, rows: Index) -> FloatArray:
        """Return residuals of rows, each predicted from all others, shape (n_rows, n_outputs).

        The equations of a row, and of its landmark where it is one, are solved by hand.
        """
        n_all, mass = len(self.rows), self.rows.precision[rows]
        self.ask(rows)
        inner, right = self._equations(rows)
        own = np.diag(inner) - 1.0 / mass
        units = np.flatnonzero(self.at[rows] >= 0)
        landmarks = n_all + self.at[rows[units]]
        both, sides = self._equations(np.concatenate([rows[units], landmarks]))
        n = len(units)
        across, last = np.diag(both[:n, n:]), np.diag(both[n:, n:])
        moved = right / own[:, None]
        moved[units] = last[:, None] * right[units] - across[:, None] * sides[n:]
        moved[units] /= (own[units] * last - across**2)[:, None]
        residuals = -moved / mass[:, None]
        values = self.values[rows]
        gone = (mass / (self.rows.precision.sum() - mass))[:, None] * values
        return np.asarray(residuals[:, :-1] + gone * residuals[:, -1:])

    @cached_property
    def panel(self) -> tuple[list[Predicted], ...]:
        """Some rows of each of the four kinds of a panel, predicted as new ones of it will be.

        Now, rows of known groups are left out alone, and those of new ones with their groups. Later
        rows are those that judge, in the blocks of time that were held out; of new groups, without
        what came before of theirs.
        """
        rows, solution = self.rows, self.solution
        out: list[list[Predicted]] = [[], [], [], []]
        out[KNOWN_NOW] = [self.known_now()]
        ratio = None if self.levels is None else self.levels.ratio
        function = FunctionOfRows(
            solution.posterior, self.dual, ratio, rows, self.values, self._half_of_ones,
            float(rows.precision.sum()),
        )  # fmt: skip
        out[NEW_NOW] = [without_groups(function, rows)]
        for fold in solution.left_out if self.in_order else ():
            judging = self.rows_of(fold)
            found = Predicted(judging, fold.latent, fold.variance)
            out[KNOWN_LATER].append(found.among(fold.known))
            if fold.new is not None:
                found = fold.new._replace(at=judging[fold.new.at])
            out[NEW_LATER].append(found)
        return tuple([each for each in parts if len(each.at)] for parts in out)

    def rows_of(self, fold: FoldLeftOut) -> Index:
        """Return the rows that a fold judges."""
        return self._row_at[fold.places]

    def known_now(self) -> Predicted:
        """Return some rows of groups with several, each predicted from all others."""
        assert self.rows.groups is not None
        is_several = np.bincount(self.rows.groups)[self.rows.groups] > 1
        if self.levels is not None:
            # a row without a name is of no known group
            names = self.levels.column.names(self.rows.numeric, self.rows.codes)
            is_several &= ~np.isnan(names)
        others = np.flatnonzero(is_several)
        if not len(others):
            return Predicted(others, np.empty((0, self.values.shape[1])), np.empty(0))
        some = np.linspace(0, len(others) - 1, min(_KNOWN, len(others))).astype(np.intp)
        at = others[some]
        residuals, variance = self.alone(at)
        return Predicted(at, self.values[at] - residuals, variance)

    def alone(self, rows: Index) -> tuple[FloatArray, FloatArray]:
        """Return residuals and variances of rows, each predicted from all others.

        Returns: residuals of shape (n_rows, n_outputs), and of shape (n_rows,) the variances that
        the function had where all but the row were learned from.
        """
        residuals = self.residuals_of_one(rows)
        subset, ridge = self.rows.take(rows), self.solution.ridge
        # 1 − h, h what a row weighs in its own prediction
        inner, _ = self._equations(rows)
        open_ = 1.0 - subset.precision * np.diag(inner)
        landmarks, posterior = self.solution.landmarks, self.solution.posterior
        halves = posterior.halves(landmarks.features(subset.numeric, subset.codes))
        in_span = ridge * np.einsum("ij,ij->j", halves, halves, dtype=np.float64)
        rest = latent_variance(landmarks, posterior, subset.numeric, subset.codes) - in_span
        return residuals, rest + ridge / subset.precision * (1.0 / open_ - 1.0)

    def _equations(self, which: Index) -> tuple[FloatArray, FloatArray]:
        """Return the products of the columns of rows and landmarks, and their right sides."""
        if (self._among[which] < 0).any():
            self._multiply(which)
        at = self._among[which]
        inner = self._inner[np.ix_(at, at)]
        if self.levels is not None and self.rows.groups is not None:
            places = np.flatnonzero(which < len(self.rows))
            groups = self.rows.groups[which[places]]
            same = groups[:, None] == groups
            inner[np.ix_(places, places)] += same * self._open(self.rows.take(which[places]))
        return inner, self._right[self._column[which]]

    def _multiply(self, which: Index) -> None:
        """Work out the products of the columns of rows and landmarks."""
        new = np.unique(which[self._column[which] < 0])
        if len(new):
            features, right, ones = self._asked(new)
            halves = self.solution.posterior.halves(features)
            ones -= halves.T @ self._half_of_ones
            self._column[new] = len(self._right) + np.arange(len(new))
            self._halves = np.hstack([self._halves, halves])
            self._right = np.vstack([self._right, np.column_stack([right, ones])])
        half = self._halves[:, self._column[which]]
        self._among[:] = -1
        self._among[which] = np.arange(len(which))
        self._inner = half.T @ half

    @cached_property
    def _half_of_ones(self) -> FloatArray:
        """What `halves` makes of the right side of targets that are all one."""
        rows, everything = self.rows, np.arange(len(self.rows))
        if self.levels is not None:
            rows = replace(rows, weight=rows.mass * self.levels.ratio * self._open(rows))
        side = group_features(self.solution.landmarks, rows, everything, 0 * everything)
        return np.asarray(self.solution.posterior.halves(side)[:, 0])

    def _open(self, rows: Rows) -> FloatArray:
        """Return 1/(n + κ) of the group of each row; of a row without a name n is its weight."""
        assert self.levels is not None
        names = self.levels.column.names(rows.numeric, rows.codes)
        return np.where(
            np.isnan(names), 1.0 / (rows.mass + self.levels.ratio), self.levels.open(names)
        )

    def _asked(self, which: Index) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return features and right sides of rows and, behind them, of landmarks.

        And targets that are all one, less their levels.
        """
        n, m = len(self.rows), len(self.dual)
        subset, units = self.rows.take(which[which < n]), which[which >= n] - n
        landmarks = self.solution.landmarks
        features = np.zeros((len(which), m))
        features[: len(subset)] = landmarks.features(subset.numeric, subset.codes)
        if self.levels is not None and self.rows.groups is not None and subset.groups is not None:
            groups, numbers = np.unique(subset.groups, return_inverse=True)
            members = np.flatnonzero(np.isin(self.rows.groups, groups))
            places = np.searchsorted(groups, self.rows.groups[members])
            sums = group_features(landmarks, self.rows, members, places)
            features[: len(subset)] -= sums[numbers.ravel()] * self._open(subset)[:, None]
        features[len(subset) + np.arange(len(units)), units] = 1.0
        latent = landmarks.products(subset.numeric, subset.codes, self.dual)
        if self.levels is not None:
            latent += self.levels.values(subset.numeric, subset.codes)
        rest, ones = self.values[which[which < n]] - latent, np.zeros(len(which))
        ones[: len(subset)] = 1.0 if self.levels is None else self.levels.ratio * self._open(subset)
        if self.levels is not None:
            # a row without a name has told its own level
            names = self.levels.column.names(subset.numeric, subset.codes)
            rest -= np.where(np.isnan(names), subset.mass * self._open(subset), 0.0)[:, None] * rest
        sides = np.vstack([rest, self.dual[units] * -1.0])
        return features, sides, ones
