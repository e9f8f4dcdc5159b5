"""Two views of the same rows, a softly capped standard score and ranks in [0, 1]; and powers.

Numbers and targets that are skewed may be taken under the power of Box and Cox, or of Yeo and
Johnson, with weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import boxcox, boxcox1p, inv_boxcox

from ._njit_views import interpolate, mid_ranks
from .columns.encoded import (
    Coding,
    Fills,
    GroupColumn,
    GroupTerm,
    terms_of_groups,
    weighted_median,
)

# Gauss-Hermite quadrature for expectations over a normal variable
NODES, _DENSITY = hermegauss(9)
MASS = _DENSITY / _DENSITY.sum()
_POWERS = (-1.0, 2.0)
# A power of targets is no stronger than the logarithm of either tail: a reciprocal has a pole, near
# which a small error on its scale is any number on that of the target. Where the least is 0, as of
# counts, it stays: without it R² of 400 negative binomial counts was .21 in place of .22.
_LOGARITHMS = (0.0, 2.0)
# Scores are bent softly towards ±8. Measured: without a cap as good in the mean but worse with
# outliers, and a cap at 3 costs 0.4 points.
_CAP = 8.0
# a column whose training values go further has a long tail, where nothing goes on as in the middle
_TAIL = 4.0
# A column under a power leaves its range by so much of it: the logarithm of one new zero is no
# measure of how far a row is. With a whole range two of 4,000 rows cost 5 points of R².
_BEYOND = 0.1
# Beyond the training range the way back from a power goes on as a straight line, no steeper than so
# many chords of the range: a power near its pole has one. A logarithm, or a milder power, that is
# steeper at one end than at the other by a factor of four was chosen for its bend, and goes on
# itself for a quarter of its range; of others a straight line is as likely, and cannot blow up.
_STEEPEST, _BENT, _QUARTER = 5.0, 4.0, 0.25
# skewness from which a column is tried under a power
_SKEWED = 0.5


@dataclass(frozen=True)
class Warp:
    """A monotone map: Box and Cox's of positive numbers, else Yeo and Johnson's.

    `power`: 1 is no change, 0 the logarithm; `origin`, `unit`: the power is taken of (y −
    origin)/unit; `low`, `high`: of y, beyond which the map is straight, so that a step further is a
    step and not any number; `steepest`: the slope of the way back there at most.
    """

    power: float
    origin: float
    unit: float
    positive: bool
    low: float = -np.inf
    high: float = np.inf
    steepest: float = np.inf

    @classmethod
    def of(
        cls,
        y: FloatArray,
        mass: FloatArray | None = None,
        powers: tuple[float, float] = _POWERS,
    ) -> Warp:
        """Fit the power by maximum likelihood.

        `y` of shape (n,); `mass` of shape (n,): 2 counts a value twice; `powers`: the least and the
        largest. Values that are never negative are not shifted, so that zero stays zero.
        """
        share = np.full(len(y), 1.0 / len(y)) if mass is None else mass / mass.sum()
        if y.min() == y.max():
            return cls(1.0, 0.0, 1.0, False)
        if y.min() >= 0.0:
            above, origin = y > 0.0, 0.0
            unit = weighted_median(y[above], share[above])
        else:
            origin = weighted_median(y, share)
            # squares of small targets would underflow
            size = float(np.abs(y - origin).max())
            rest = (y - origin) / size
            unit = size * float(np.sqrt(share @ (rest - share @ rest) ** 2))
        straight = cls(1.0, origin, unit, bool(y.min() > 0.0))
        return replace(straight, power=straight._likeliest(y, share, powers))

    @classmethod
    def of_target(cls, y: FloatArray, mass: FloatArray) -> Warp:
        """Fit the power of a target, of those that have no pole beyond its tail."""
        return cls.of(y, mass, _POWERS if y.min() == 0.0 else _LOGARITHMS)

    def _likeliest(self, y: FloatArray, share: FloatArray, powers: tuple[float, float]) -> float:
        """Return the power of maximum likelihood under a normal distribution."""
        t = (y - self.origin) / self.unit
        slope = float(share @ (np.log(t) if self.positive else np.sign(t) * np.log1p(np.abs(t))))

        def loss(power: float) -> float:
            z = _power(t, power, self.positive)
            return 0.5 * float(np.log(share @ (z - share @ z) ** 2)) - (power - 1.0) * slope

        with np.errstate(all="ignore"):
            best = minimize_scalar(loss, bounds=powers, method="bounded", options={"xatol": 1e-6})
        # with few values the likelihood may have no maximum
        return float(best.x) if np.isfinite(best.fun) else 1.0

    def within(self, y: FloatArray) -> Warp:
        """Return the map that goes on straight beyond some values; as it is where these are one."""
        ends = np.array([y.min(), y.max()])
        z = self._power_of(ends)
        if not z[0] < z[1]:
            return self
        room, slope = _QUARTER * (z[1] - z[0]), self.slope(ends)
        low, high = ends.tolist()
        steepest = _STEEPEST * (high - low) / float(z[1] - z[0])
        if 0.0 <= self.power < 1.0 and slope[1] > _BENT * slope[0]:
            high = float(self._back(z[1:] + room)[0])
        elif self.power > 1.0 and not self.positive and slope[0] > _BENT * slope[1]:
            low = float(self._back(z[:1] - room)[0])
        return replace(self, low=low, high=high, steepest=steepest)

    def slope(self, y: FloatArray) -> FloatArray:
        """Return dy/dz of the power."""
        t = (y - self.origin) / self.unit
        size = t if self.positive else 1.0 + np.abs(t)
        sign = 1.0 if self.positive else np.where(t < 0.0, -1.0, 1.0)
        with np.errstate(over="ignore"):
            return np.asarray(self.unit * size ** (sign * (1.0 - self.power)))

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where the map becomes straight: y, z and the slopes dy/dz from there, (2,) each."""
        y = np.array([self.low, self.high])
        if not np.isfinite(y).all():
            return y, y, np.ones(2)
        return y, self._power_of(y), np.minimum(self.slope(y), self.steepest)

    def forward(self, y: FloatArray) -> FloatArray:
        """Return transformed values."""
        ends, _, slope = self._ends
        inside = np.clip(y, *ends)
        rest = np.asarray(y - inside)
        step = rest / np.where(rest < 0.0, slope[0], slope[1])
        return np.asarray(self._power_of(inside) + step)

    def inverse(self, z: FloatArray) -> FloatArray:
        """Return the original values; input outside the range of the transform is clipped to it."""
        _, ends, slope = self._ends
        inside = np.clip(z, *ends)
        rest = np.asarray(z - inside)
        step = rest * np.where(rest < 0.0, slope[0], slope[1])
        return np.asarray(self._back(inside) + step)

    def _power_of(self, y: FloatArray) -> FloatArray:
        return _power((y - self.origin) / self.unit, self.power, self.positive)

    def _back(self, z: FloatArray) -> FloatArray:
        if self.positive:
            t = inv_boxcox(self._inside(z, self.power), self.power)
        else:
            high = inv_boxcox(self._inside(np.maximum(z, 0.0), self.power), self.power) - 1.0
            other = 2.0 - self.power
            low = 1.0 - inv_boxcox(self._inside(np.maximum(-z, 0.0), other), other)
            t = np.where(z >= 0.0, high, low)
        return np.asarray(self.origin + self.unit * t)

    @staticmethod
    def _inside(z: FloatArray, power: float) -> FloatArray:
        """Clip z to the range of the transform, just inside its end."""
        if power > 0.0:
            return np.maximum(z, -(1.0 - 1e-9) / power)
        return np.minimum(z, -(1.0 - 1e-9) / power) if power < 0.0 else z


def _power(t: FloatArray, power: FloatArray | float, positive: bool) -> FloatArray:
    """Return the power of Box and Cox of positive numbers, of Yeo and Johnson (2000) of others."""
    if positive:
        return np.asarray(boxcox(t, power))
    above, below = boxcox1p(np.maximum(t, 0.0), power), boxcox1p(np.maximum(-t, 0.0), 2.0 - power)
    return np.asarray(np.where(t < 0.0, -below, above))


def bend(t: FloatArray) -> FloatArray:
    """Return standard scores bent softly towards ±8."""
    return np.asarray(t / np.sqrt(1.0 + (t / _CAP) ** 2))


def _slope_of_bend(t: FloatArray) -> FloatArray:
    return np.asarray((1.0 + (t / _CAP) ** 2) ** -1.5)


class Points(NamedTuple):
    """Rows as the kernel sees them, a dimension per row of each array.

    - `X` of shape (p, n): first view of the p numbers
    - `U` of shape (p, n): their ranks in [0, 1]
    - `H` of shape (p + q, n): what one point contributes to κ
    - `C` of shape (q, n): codes of the q columns of categories
    - `G` of shape (n_terms, n): what names the group of each row, NaN where nothing does, for each
      term that groups have; (0, n) where they have none
    - `Z` of shape (n_terms, n): what the row's part in such a term is multiplied by, ``None`` where
      that is 1 everywhere
    """

    X: FloatArray
    U: FloatArray
    H: FloatArray
    C: NDArray[np.int64]
    G: FloatArray
    Z: FloatArray | None = None

    @property
    def n_points(self) -> int:
        """Number of rows."""
        return int(self.H.shape[1])

    def take(self, rows: Index | slice) -> Points:
        """Return some of the rows."""
        Z = None if self.Z is None else np.ascontiguousarray(self.Z[:, rows])
        X, U, H, G = (
            np.ascontiguousarray(each[:, rows]) for each in (self.X, self.U, self.H, self.G)
        )
        return Points(X, U, H, np.ascontiguousarray(self.C[:, rows]), G, Z)

    def and_others(self, other: Points) -> Points:
        """Return these rows and, behind them, others as the same views see them."""
        pairs = zip(self[:5], other[:5], strict=True)
        X, U, H, C, G = (np.concatenate(pair, axis=1) for pair in pairs)
        Z = None
        if self.Z is not None and other.Z is not None:
            Z = np.concatenate([self.Z, other.Z], axis=1)
        return Points(X, U, H, C, G, Z)

    def first(self, size: int) -> Points:
        """Return the first rows."""
        return self.take(slice(size))

    def among(self, kept: Index) -> Points:
        """Return the rows as some of the dimensions see them, ascending."""
        p = len(self.X)
        numbers = kept[kept < p]
        codes = self.C[kept[kept >= p] - p]
        return self._replace(X=self.X[numbers], U=self.U[numbers], H=self.H[kept], C=codes)

    def same_group(
        self, other: Points, rows: slice = slice(None), term: int = 0
    ) -> NDArray[np.bool_]:
        """Return whether some of the rows share a group with others, shape (n_rows, n_others).

        A row without a name for its group is its only member.
        """
        places = np.arange(self.n_points)[rows]
        same: NDArray[np.bool_] = self.G[term, places, None] == other.G[term]
        if self is other:
            same[np.arange(len(places)), places] = True
        return same

    def group_term(self, other: Points, term: int) -> NDArray[np.bool_] | FloatArray:
        """Return a term of groups between the rows and others, its weight left out.

        Of shape (n_rows, n_others): 1(g = g′), or z·z′ of it where Z is given.
        """
        same = self.same_group(other, term=term)
        if self.Z is None or other.Z is None:
            return same
        return np.asarray(same * self.Z[term, :, None] * other.Z[term])

    def own_terms(self) -> FloatArray:
        """Return each term of groups of every row with itself, shape (n_terms, n)."""
        return np.ones_like(self.G) if self.Z is None else self.Z**2


@dataclass(frozen=True, eq=False)
class Ragged:
    """Arrays of several lengths, end to end: one in a file, which of thousands takes long to write.

    `values` of shape (sum of the lengths,); `ends` of shape (n_arrays,): where each ends.
    """

    values: FloatArray
    ends: Index

    @classmethod
    def of(cls, arrays: Sequence[FloatArray]) -> Ragged:
        """Join arrays."""
        ends = np.cumsum([len(each) for each in arrays], dtype=np.intp)
        return cls(np.concatenate(arrays) if len(arrays) else np.empty(0), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[FloatArray]:
        begin = 0
        for end in self.ends.tolist():
            yield self.values[begin:end]
            begin = end

    def among(self, which: Index) -> Ragged:
        """Return some of the arrays."""
        begins = np.append(0, self.ends)
        return Ragged.of([self.values[begins[i] : begins[i + 1]] for i in which.tolist()])

    @property
    def first_and_last(self) -> FloatArray:
        """Of each array, none of them empty, shape (2, n_arrays)."""
        places = np.vstack([np.append(0, self.ends)[:-1], self.ends - 1])
        return np.asarray(self.values[places])


@dataclass(frozen=True, eq=False, repr=False)
class Views:
    """What the views need to know of the training rows.

    `mean`, `scale` of shape (p,): of numbers under their warps; `knots`, `ranks`: distinct values
    of a number and their mid-ranks; `shares`: share of rows in each category; `warps`: the power
    of each number, ``None`` where it is taken as it is; empty where all are; `fills`, `pools`: how
    a part of the rows codes others, see `Coding`; empty where all rows were learned from;
    `group`: the column that names groups, where these have a term of their own; `further`: other
    terms of groups, behind it; `columns`: which columns of numbers these are; empty where all are;
    `slopes` of shape (p,): of the first view beyond the training range, where it goes on as a
    straight line, so that what is linear in the range is linear beyond; that of a long tail is the
    slope of the bend there.
    """

    mean: FloatArray
    scale: FloatArray
    knots: Ragged
    ranks: Ragged
    shares: Ragged
    warps: tuple[Warp | None, ...] = ()
    fills: Fills = ()
    pools: tuple[NDArray[np.int64], ...] = ()
    group: GroupColumn | None = None
    columns: tuple[int, ...] = ()
    slopes: FloatArray = field(default_factory=lambda: np.empty(0))
    further: tuple[GroupTerm, ...] = ()

    def __repr__(self) -> str:
        return f"Views({len(self.knots)} numbers, {len(self.shares)} categories)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Views):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        same = len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))
        pools = map(np.array_equal, self.pools, other.pools)
        return same and self._others() == other._others() and all(pools)

    def __hash__(self) -> int:
        return hash((self._others(), *(array.tobytes() for array in self._arrays())))

    def _arrays(self) -> list[FloatArray]:
        return [self.mean, self.scale, self.slopes, *self.knots, *self.ranks, *self.shares]

    def _others(self) -> tuple[object, ...]:
        pools = len(self.pools)
        return self.warps, self.fills, pools, self.group, self.columns, self.further

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The training range of numbers under their warps, shapes (p,)."""
        low, high = _transformed(self.knots.first_and_last, self.warps, self.knots)
        return low, high

    @property
    def n_dimensions(self) -> int:
        """Numbers and categories together."""
        return len(self.knots) + len(self.shares)

    @property
    def group_terms(self) -> tuple[GroupTerm, ...]:
        """The terms that groups have, in the order of their weights."""
        return terms_of_groups(self.group, self.further)

    @property
    def match_weight(self) -> FloatArray:
        """What κ gains where two rows have the same category, 0 for numbers, shape (p + q,).

        It is larger for columns whose categories rarely agree by chance.
        """
        gains = [1.0 / max(1.0 - np.sum(share**2), 1e-6) for share in self.shares]
        return np.concatenate([np.zeros(len(self.knots)), gains])

    @classmethod
    def of(
        cls,
        numeric: FloatArray,
        codes: NDArray[np.int64],
        weight: FloatArray | None = None,
        *,
        transform_columns: bool = False,
        coding: Coding | None = None,
        group: GroupColumn | None = None,
        further: tuple[GroupTerm, ...] = (),
    ) -> Views:
        """Learn the views from training rows.

        `numeric` of shape (n, p); `codes` of shape (n, q); `weight` of shape (n,): a weight of 2
        counts a row twice; `group`: the column that names groups where these have a term;
        `further`: more such terms; `transform_columns`: whether a power makes skewed columns nearly
        normal; `coding`: of rows that are a part of those encoded, whose medians and categories are
        to be their own.
        """
        w = np.ones(len(numeric)) if weight is None else weight
        share = w / w.sum()
        fills = () if coding is None else coding.fills(numeric, share)
        pools = () if coding is None else coding.pools(codes, share)
        numeric, codes = _recoded(numeric, codes, fills, pools)
        of_categories = [np.bincount(column, weights=share) for column in codes.T]
        shares = Ragged.of([each.astype(np.float64) for each in of_categories])
        knots, ranks = _mid_ranks(numeric, share)
        skewed = is_skewed(numeric, share) if transform_columns else ()
        warps = tuple(
            Warp.of(column, share) if each else None
            for column, each in zip(numeric.T, skewed, strict=False)
        )
        numbers = _transformed(numeric, warps, knots)
        mean = share @ numbers
        rest = numbers - mean
        # squares of small numbers would underflow
        unit = np.frexp(np.abs(rest).max(axis=0, initial=0.0))[1]
        scale = np.ldexp(np.sqrt(share @ np.ldexp(rest, -unit) ** 2), unit)
        scale[~(scale > 1e-12 * np.abs(mean))] = 1.0
        t = (numbers - mean) / scale
        X = bend(t)
        squares, products = share @ X**2, share @ (t * X)
        slopes = np.divide(squares, products, out=np.ones_like(mean), where=products > 0.0)
        return cls(
            mean, scale, knots, ranks, shares, warps, fills, pools, group, slopes=slopes,
            further=further,
        )  # fmt: skip

    def among(self, numbers: Index) -> Views:
        """Return the views of some of the numbers and of all categories, of the same rows.

        `numbers`: some at least, ascending. They must not be those of a part of the rows, nor have
        effects that differ by group.
        """
        own = np.array(self.columns or range(len(self.knots)))
        return replace(
            self, mean=self.mean[numbers], scale=self.scale[numbers],
            knots=self.knots.among(numbers), ranks=self.ranks.among(numbers),
            warps=tuple(self.warps[i] for i in numbers.tolist()) if self.warps else (),
            columns=tuple(own[numbers].tolist()), slopes=self.slopes[numbers],
        )  # fmt: skip

    def points(self, numeric: FloatArray, codes: NDArray[np.int64]) -> Points:
        """Return rows of a table as the kernel sees them."""
        terms = self.group_terms
        names = [each.column.names(numeric, codes) for each in terms]
        G = np.array(names, dtype=np.float64).reshape(len(terms), len(numeric))
        numeric = numeric[:, self.columns] if self.columns else numeric
        numeric, codes = _recoded(numeric, codes, self.fills, self.pools)
        t = ((_transformed(numeric, self.warps, self.knots) - self.mean) / self.scale).T
        low, high = ((each - self.mean) / self.scale for each in self._ends)
        inside = np.clip(t, low[:, None], high[:, None])
        below, above = (
            np.where(np.abs(end) > _TAIL, _slope_of_bend(end), self.slopes) for end in (low, high)
        )
        rest = t - inside
        straight = np.where(rest < 0.0, below[:, None], above[:, None]) * rest
        X = np.ascontiguousarray(bend(inside) + straight)
        # a column with one value in the training rows tells nothing about other values
        X[np.diff(self.knots.ends, prepend=0) == 1] = 0.0
        U, knots = np.empty_like(X), self.knots
        interpolate(np.ascontiguousarray(numeric.T), knots.values, self.ranks.values, knots.ends, U)
        H = np.empty((self.n_dimensions, len(numeric)))
        H[: len(X)] = 3.0 * (U * U - U + 1.0 / 3.0)
        for j, (share, match_weight) in enumerate(
            zip(self.shares, self.match_weight[len(X) :], strict=True)
        ):
            padded = np.append(share, 0.0)
            code = np.minimum(codes[:, j], len(share))
            H[len(X) + j] = match_weight * (0.5 * np.sum(share**2) - padded[code])
        return Points(X, U, H, np.ascontiguousarray(codes.T), G, self._factors(X, terms))

    def _factors(self, X: FloatArray, terms: Sequence[GroupTerm]) -> FloatArray | None:
        """Return Z of `Points`: the first view of the numbers whose effects differ by group."""
        if all(each.slope < 0 for each in terms):
            return None
        own = self.columns or range(len(X))
        ones = np.ones(X.shape[1])
        return np.array([ones if each.slope < 0 else X[own.index(each.slope)] for each in terms])


def is_skewed(numeric: FloatArray, share: FloatArray) -> NDArray[np.bool_]:
    """Return which numbers have a long tail and more than two values, shape (p,).

    `numeric` of shape (n, p); `share` of shape (n,): of the mass in each row.
    """
    rest = numeric - share @ numeric
    size = np.abs(rest).max(axis=0, initial=0.0)
    rest = rest / np.where(size > 0.0, size, 1.0)
    spread = np.sqrt(share @ rest**2)
    skewness = np.abs(share @ rest**3) / np.maximum(spread, 1e-100) ** 3
    several = np.array([len(np.unique(column)) > 2 for column in numeric.T], dtype=np.bool_)
    return np.asarray((skewness > _SKEWED) & several)


def _recoded(
    numeric: FloatArray, codes: NDArray[np.int64], fills: Fills, pools: Sequence[NDArray[np.int64]]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return numbers and codes as a part of the rows has them."""
    if fills:
        numeric = np.array(numeric)
        for j, indicator, median in fills:
            numeric[numeric[:, indicator] != 0.0, j] = median
    if pools:
        columns = zip(codes.T, pools, strict=True)
        codes = np.column_stack([pool[np.minimum(each, len(pool) - 1)] for each, pool in columns])
    return numeric, codes


def _transformed(numeric: FloatArray, warps: Sequence[Warp | None], knots: Ragged) -> FloatArray:
    """Return numbers under their powers, at most a tenth of the training range beyond it."""
    chosen = [warp for warp in warps if warp is not None]
    if not chosen:
        return numeric
    under, out = [i for i, warp in enumerate(warps) if warp is not None], np.array(numeric)
    power, origin, unit = (
        np.array([getattr(warp, name) for warp in chosen]) for name in ("power", "origin", "unit")
    )
    ends = knots.first_and_last[:, under]
    t = (np.vstack([ends, numeric[:, under]]) - origin) / unit
    is_positive = np.array([warp.positive for warp in chosen])
    z = np.empty_like(t)
    with np.errstate(all="ignore"):
        for positive in (True, False):
            which = is_positive == positive
            z[:, which] = _power(t[:, which], power[which], positive)
        low, high = z[:2]
        margin = _BEYOND * (high - low)
        # NaN, of what the power is not defined for, is below
        out[:, under] = np.clip(
            np.where(np.isnan(z[2:]), -np.inf, z[2:]), low - margin, high + margin
        )
    return out


def _mid_ranks(numeric: FloatArray, share: FloatArray) -> tuple[Ragged, Ragged]:
    """Return the distinct values of columns and the share below each plus half of its own."""
    numbers = np.ascontiguousarray(numeric.T)
    order = np.argsort(numbers, axis=1, kind="stable")
    knots, ranks = np.empty((2, numbers.size))
    ends = np.empty(len(numbers), dtype=np.intp)
    mid_ranks(order, numbers, share, knots, ranks, ends)
    last = ends[-1] if len(ends) else 0
    return Ragged(knots[:last].copy(), ends), Ragged(ranks[:last].copy(), ends)
