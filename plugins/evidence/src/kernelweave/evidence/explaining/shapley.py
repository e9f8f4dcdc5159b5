"""Why a prediction is what it is: Shapley values of the columns, exact for a sum of products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, row_slices
from kernelweave.kernels_core.checks import integer
from kernelweave.kernels_core.memory import require
from numpy.typing import NDArray

from .._njit_exp import exp_of_multiples
from ..cross import cross_kernel, pairs_of_dimension
from ..mixture import Expansion
from ..rows import Rows
from ..terms import FLAT, N_TERMS, Scales, blocks
from ..views import Points, Views
from . import _njit_games as games

# exp(−d) as a sum of Gaussians errs by about e to minus this: 5e-9 at most with 50 of them
_NATURAL_DIGITS = 20.0
# e^{-t} is nothing from e to the power of this on
_TOP = 3.4
# so sharp that only equal values have a factor that is not zero
_SHARPEST = 1e300
# of the weight of the kernel: less changes no value
_NOTHING = 1e-14
# cells of factors that are worked out at a time: they stay in a core's second cache
_CELLS = 2**15
# of Shapley values of the points of a kernel
_MOST_CELLS = 2**21
# nodes that are tried before those that are exact
_FEW_NODES = (2, 4, 6, 8)


class _Family(NamedTuple):
    """Products of one factor a column.

    That is exp(−rate · distance²), or that of the tessellated term, or of an effect that differs by
    group, the one at place `slope`: whether groups are one, times the product of a number.
    """

    weight: float
    rate: float | None
    slope: int = -1


@dataclass(frozen=True)
class Players:
    """The columns that take part in a kernel, each with its dimensions.

    A factor of a column is the product of those of its dimensions. Levels of groups count as a
    linear term of the column that names them; an effect that differs by group is a product of that
    column and the one with the numbers.

    - `dimensions`: which of the kernel's dimensions each column has
    - `scales`: of one kernel
    - `views`: of its rows
    - `least`: weight that changes no value
    """

    dimensions: Sequence[NDArray[np.intp]]
    scales: Scales
    views: Views
    least: float

    @cached_property
    def match_weight(self) -> FloatArray:
        """How much κ grows where two rows agree, of each dimension."""
        return self.views.match_weight

    def _owner(self, dimension: int) -> int:
        """Return which column a dimension is of."""
        return next(k for k, each in enumerate(self.dimensions) if dimension in each)

    @cached_property
    def _levels(self) -> list[tuple[int, int, float]]:
        """The terms that are levels of groups: the column that names these, place and weight."""
        pairs = zip(self.views.group_terms, self.scales.of_groups.tolist(), strict=False)
        return [
            (self._owner(term.column.place), k, weight)
            for k, (term, weight) in enumerate(pairs)
            if term.slope < 0 and weight
        ]

    @cached_property
    def _slopes(self) -> list[tuple[int, int, int, float]]:
        """The other terms: the columns of groups and of numbers, place and weight."""
        pairs = zip(self.views.group_terms, self.scales.of_groups.tolist(), strict=False)
        return [
            (self._owner(term.column.place), self._owner(term.slope), k, weight)
            for k, (term, weight) in enumerate(pairs)
            if term.slope >= 0
        ]

    @cached_property
    def families(self) -> list[_Family]:
        """The products whose sum is the kernel but for its linear term, and their weights."""
        gaussian, laplacian, _, product, wide = self.scales.weights[:N_TERMS]
        terms = [_Family(gaussian, 0.5), _Family(wide, 1.0 / FLAT), _Family(product, None)]
        terms += [_Family(laplacian * share, rate) for rate, share in zip(*mixture(), strict=True)]
        terms += [_Family(each[-1], None, k) for k, each in enumerate(self._slopes)]
        return [each for each in terms if abs(each.weight) > self.least]

    def parts(
        self, left: Points, right: Points, rows: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return squared distances, factors of products and linear terms of each column.

        Of shapes (n_rows, n_players, n_points), (1 + n_slopes, n_rows, n_players, n_points) and
        (n_rows, n_players, n_points). Products are the tessellated one, and those of effects that
        differ by group.
        """
        shape = (left.H[:, rows].shape[1], len(self.dimensions), right.n_points)
        far, linear = np.zeros(shape), np.zeros(shape)
        products = np.ones((1 + len(self._slopes), *shape))
        part, rest, match_weight = self.scales.shape(self.match_weight)
        for player, dimensions in enumerate(self.dimensions):
            for i in dimensions:
                kappa, square, line = pairs_of_dimension(left, right, rows, int(i), match_weight)
                far[:, player] += self.scales.ell[i] ** 2 * square
                linear[:, player] += self.scales.weights[2] * self.scales.ell[i] ** 2 * line
                products[0, :, player] *= rest[i] + part[i] * kappa
        for player, k, weight in self._levels:
            linear[:, player] += weight * left.same_group(right, rows, k)
        for product, (player, other, k, _) in zip(products[1:], self._slopes, strict=True):
            product[:, player] *= left.same_group(right, rows, k)
            if left.Z is not None and right.Z is not None:
                product[:, other] *= left.Z[k, rows, None] * right.Z[k]
        return far, products, linear

    def own(self, points: Points) -> tuple[FloatArray, FloatArray]:
        """Return factors of products and linear terms of rows with themselves.

        Of shapes (1 + n_slopes, n_players, n) and (n_players, n).
        """
        p, (part, rest, _) = len(points.X), self.scales.shape(self.match_weight)[:, :, None]
        kappa = 2.0 * points.H + self.match_weight[:, None]
        square = np.vstack([points.X**2, 0.5 * kappa[p:] / self.match_weight[p:, None]])
        square *= self.scales.weights[2] * self.scales.ell[:, None] ** 2
        factor = rest + part * kappa
        linear = np.array([square[each].sum(axis=0) for each in self.dimensions])
        for player, _, weight in self._levels:
            linear[player] += weight
        products = np.ones((1 + len(self._slopes), len(self.dimensions), points.n_points))
        products[0] = [factor[each].prod(axis=0) for each in self.dimensions]
        for product, (_, other, k, _) in zip(products[1:], self._slopes, strict=True):
            product[other] *= points.own_terms()[k]
        return products, linear


@dataclass(frozen=True)
class _Background:
    """Means of the factors over the values that the rows of a background have.

    - `mean` of shape (n_families, n_players, n_points), `both` of shape (n_families, n_players):
      over one side of the kernel, and over both
    - `linear` of shape (n_players, n_points), `linear_both` of shape (n_players,): of linear terms
    """

    mean: FloatArray
    both: FloatArray
    linear: FloatArray
    linear_both: FloatArray

    @classmethod
    def of(cls, players: Players, points: Points, share: FloatArray) -> _Background:
        """Average over some points, whose shares are not zero."""
        shape = (len(players.dimensions), points.n_points)
        require(
            8 * len(players.families) * shape[0] * shape[1],
            f"the factors of {shape[0]} columns at {shape[1]} points",
            alternative="raise {memory_limit} or fit fewer rows or columns",
        )
        mean, linear = np.zeros((len(players.families), *shape)), np.zeros(shape)
        among = np.flatnonzero(share)
        left, mass = points.take(among), share[among]
        for rows in row_slices(len(among), _rows_at_once(*shape)):
            far, products, line = players.parts(left, points, rows)
            linear += (mass[rows] @ line.reshape(len(line), -1)).reshape(shape)
            for each, into in zip(players.families, mean, strict=True):
                factors = _factors(each, far, products).reshape(len(far), -1)
                into += (mass[rows] @ factors).reshape(shape)
        return cls(mean, mean @ share, linear, linear @ share)


def _factors(family: _Family, far: FloatArray, products: FloatArray) -> FloatArray:
    if family.rate is None:
        return np.asarray(products[1 + family.slope])
    out, spare = np.empty((2, far.size))
    exp_of_multiples(far.reshape(-1), -family.rate, out, spare)
    return out.reshape(far.shape)


def _rows_at_once(n_players: int, n_points: int) -> int:
    return max(1, _CELLS // (n_players * n_points))


class Latent(NamedTuple):
    """Shapley values of standardised predictions.

    - `values` of shape (n, n_players, n_outputs)
    - `base` of shape (n_outputs,): the mean prediction
    - `variances` of shape (n, n_players): of the posterior, those of all outputs alike
    """

    values: FloatArray
    base: FloatArray
    variances: FloatArray


def background_of(
    expansion: Expansion, rows: Rows, n_rows: int
) -> tuple[Points | None, FloatArray]:
    """Return the points of training rows beyond those of the expansion, and the shares of all.

    `n_rows`: of more, so many are drawn by their weights.
    """
    integer(2).check("n_background", n_rows)
    share = rows.mass / rows.mass.sum()
    if len(rows) > n_rows:
        drawn = np.random.RandomState(0).choice(len(rows), n_rows, p=share)
        share = np.bincount(drawn, minlength=len(rows)) / n_rows
    among = np.flatnonzero(share)
    points = expansion.points_of(rows.numeric, rows.codes)
    if all(map(np.array_equal, points[:5], expansion.points[:5])):
        return None, share
    return points.take(among), np.append(np.zeros(expansion.points.n_points), share[among])


def shapley_values(
    expansion: Expansion,
    dimensions: Sequence[NDArray[np.intp]],
    rows: Points,
    background: Points | None,
    share: FloatArray,
) -> Latent:
    """Return what each column adds to the posterior mean of rows.

    `dimensions`: those of each column; `background`: points beyond those of the expansion, whose
    values columns have where they are not known; `share`: of the points of the expansion and then
    of these in the background; they add up to 1.
    """
    centres, dual = expansion.points, expansion.dual
    points = centres if background is None else centres.and_others(background)
    n, p, m = rows.n_points, len(dimensions), centres.n_points
    values, base = np.empty((n, p, dual.shape[1])), np.zeros(dual.shape[1])
    variances = np.empty((n, p))
    parts = []
    least = _NOTHING * sum(float(np.sum(each.weights)) for each in expansion.scales)
    for scales in expansion.scales:
        players = Players(dimensions, scales, expansion.views, least)
        mean = _Background.of(players, points, share)
        parts.append((players, mean))
        base += mean.linear[:, :m].sum(axis=0) @ dual
        for each, factors in zip(players.families, mean.mean, strict=True):
            base += each.weight * (factors[:, :m].prod(axis=0) @ dual)
    for block in row_slices(n, max(1, _MOST_CELLS // (p * points.n_points))):
        functional, prior = _functionals(parts, rows, block, points, m, share)
        values[block] = functional @ dual
        lost = expansion.explained(functional.reshape(-1, m)).reshape(-1, p)
        variances[block] = np.maximum(prior - lost, 0.0)
    group = expansion.views.group
    if expansion.levels is not None and group is not None:
        mean_level = share @ expansion.level(points)
        base += mean_level
        for player in (k for k, each in enumerate(dimensions) if group.place in each):
            values[:, player] += expansion.level(rows) - mean_level
            variances[:, player] += expansion.level_variance(rows)
    whole = np.empty((n, dual.shape[1]))
    for block in blocks(n, m):
        K = cross_kernel(rows, centres, expansion.scales, expansion.views.match_weight, block)
        whole[block] = K @ dual - base
    whole += expansion.level(rows)
    # what the sum of Gaussians leaves, in the ninth digit
    size = np.abs(values)
    size += np.finfo(np.float64).tiny
    values += (whole - values.sum(axis=1))[:, None] * size / size.sum(axis=1, keepdims=True)
    return Latent(values, base, variances)


def _functionals(
    parts: Sequence[tuple[Players, _Background]],
    rows: Points,
    block: slice,
    points: Points,
    n_known: int,
    share: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return Shapley values of the kernel functions of points, and the values' prior variances.

    Of shape (n, n_players, n_known) and (n, n_players).
    """
    p, own_rows = len(parts[0][0].dimensions), rows.take(np.arange(*block.indices(rows.n_points)))
    n = own_rows.n_points
    out, prior, average = np.zeros((n, p, n_known)), np.zeros((p, n)), np.empty((n, p))
    rules = rules_for(p)
    for players, background in parts:
        far, products, linear = players.parts(rows, points, block)
        own_products, own_linear = players.own(own_rows)
        out += linear[:, :, :n_known] - background.linear[:, :n_known]
        prior += own_linear - 2.0 * (linear @ share).T + background.linear_both[:, None]
        for each, mean, both in zip(
            players.families, background.mean, background.both, strict=True
        ):
            known_mean = np.ascontiguousarray(mean[:, :n_known])
            for some in row_slices(n, _rows_at_once(p, points.n_points)):
                factors = _factors(each, far[some], products[:, some])
                average[some] = factors @ share
                known = np.ascontiguousarray(factors[:, :, :n_known])
                games.add_games(known, known_mean, each.weight, *rules, players.least, out[some])
            own_product = own_products[1 + each.slope]
            diagonal = own_product if each.rate is None else np.ones_like(own_product)
            exact = rules.nodes[-1], rules.masses[-1]
            games.add_variances(diagonal, average.T.copy(), both, each.weight, *exact, prior)
    return out, prior.T


def mixture() -> tuple[FloatArray, FloatArray]:
    """Return rates and weights with exp(−d) = Σ weight · exp(−rate · d²).

    e^{−d} = π^{−½} ∫ t^{−½} exp(−t − d²/4t) dt (the inverse Gaussian subordinator), by the
    trapezoidal rule in τ, t = e^v, v = −2L + 2√(L² + π²τ): steps of π²/(L + v/2) leave errors of
    about e^{−L} wherever they are, as e^{v/2} falls off. What the rule leaves to 1 is the weight of
    equal values.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.explaining.shapley import mixture
    >>> rates, weights = mixture()
    >>> len(rates), bool(abs(weights @ np.exp(-rates * 2.0**2) - np.exp(-2.0)) < 1e-8)
    (50, True)
    """
    digits = _NATURAL_DIGITS
    first = np.ceil((digits * _TOP + 0.25 * _TOP**2) / np.pi**2)
    root = np.sqrt(digits**2 + np.pi**2 * np.arange(first, -(digits**2) / np.pi**2, -1.0))
    t = np.exp(2.0 * (root - digits))
    weights = np.sqrt(t / np.pi) * np.exp(-t) * np.pi**2 / root
    return np.append(0.25 / t, _SHARPEST), np.append(weights, 1.0 - weights.sum())


class Quadrature(NamedTuple):
    """Rules on [0, 1] with even numbers of nodes; the last integrates products of all but one.

    - `sizes` of shape (n_rules,): how many nodes each has
    - `nodes`, `masses` of shape (n_rules, n_nodes): the masses beyond its own are 0
    """

    sizes: NDArray[np.int64]
    nodes: FloatArray
    masses: FloatArray


def rules_for(n_players: int) -> Quadrature:
    """Return Gauss and Legendre's rules; the last is exact for degree n_players − 1.

    Of very many players, t^n is a polynomial of degree √(23 n) to ten digits.
    """
    exact = max(1, min((n_players + 1) // 2, int(np.ceil(2.4 * np.sqrt(n_players))) + 1))
    orders = [*(each for each in _FEW_NODES if each < exact), exact]
    sizes = np.array([each + each % 2 for each in orders])
    nodes, masses = np.zeros((2, len(orders), sizes[-1]))
    for row, each in enumerate(orders):
        x, w = np.polynomial.legendre.leggauss(each)
        nodes[row, :each], masses[row, :each] = 0.5 * (x + 1.0), 0.5 * w
    return Quadrature(sizes, nodes, masses)
