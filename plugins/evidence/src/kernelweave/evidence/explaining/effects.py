"""Partial dependence: the mean prediction as a function of one column or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, RandomState, row_slices
from kernelweave.kernels_core.checks import integer
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from ..columns import Dimension
from ..mixture import Expansion
from ..monotone.sums import KernelSum, OnGrid
from ..rows import Rows
from .averages import SetMeans

# maps standardised predictions (n, n_outputs) to the shown quantity (n,), such as a probability
Respond = Callable[[FloatArray], FloatArray]
_GRID, _PAIR_GRID, _COARSE_GRID = 25, 12, 5
_MAX_CATEGORIES = 12
# the strongest pairs are searched among so many dimensions, on so many rows
_CANDIDATES, _SEARCH_ROWS = 8, 50
_DEVIATIONS = 2.0
# predictions that are worked out at a time
_CELLS = 2**22


class ColumnEffect(NamedTuple):
    """The effect of one column on the mean prediction.

    Attributes
    ----------
    column : str
        Name of the column, or of one dimension of it, such as the month of a date.
    grid : ndarray of shape (n_grid,)
        Values of the column; the categories themselves if it has categories.
    effect : ndarray of shape (n_grid,)
        Mean prediction if all rows had that value, minus the mean prediction.
    low, high : ndarray of shape (n_grid,)
        The effect minus and plus two standard deviations of the posterior.
    is_category : bool
        Whether the column has categories.
    """

    column: str
    grid: NDArray[Any]
    effect: FloatArray
    low: FloatArray
    high: FloatArray
    is_category: bool


class PairEffect(NamedTuple):
    """The interaction of two columns: their joint effect minus that of each.

    Attributes
    ----------
    columns : tuple of two str
    grids : tuple of two ndarrays
        Values of each.
    effect : ndarray of shape (n_first, n_second)
        Mean prediction if all rows had both values, minus both effects and the mean.
    are_categories : tuple of two bool
        Whether each has categories.
    """

    columns: tuple[str, str]
    grids: tuple[NDArray[Any], NDArray[Any]]
    effect: FloatArray
    are_categories: tuple[bool, bool]


@dataclass(frozen=True)
class EffectFinder:
    """Mean predictions over some training rows in which one or two columns are set to a value.

    - `rows`: the rows that are averaged over
    - `dimensions`: descriptions of the columns of ``rows``, numbers first
    - `respond`: maps standardised predictions to the shown quantity
    - `output`: the output whose posterior variance gives the band
    - `monotone`: from a dimension and its grid to mean responses there, where predictions are
      rearranged along it; ``None`` where they are not
    """

    expansion: Expansion
    rows: Rows
    dimensions: Sequence[Dimension]
    respond: Respond
    output: int
    monotone: Callable[[int, FloatArray, Rows], FloatArray | None] | None = None
    # mean predictions on the grid of a dimension, which all its pairs need
    _known: dict[tuple[int, int], FloatArray] = field(default_factory=dict, init=False, repr=False)

    def strengths(self) -> FloatArray:
        """Return the total effect of each dimension on the prediction, by Jansen's estimator.

        That is half the mean squared change of a prediction if the dimension gets the value of
        another row.
        """
        base = self._response(self.rows)
        strengths = np.zeros(len(self.dimensions))
        for j in range(len(self.dimensions)):
            values = np.roll(self._values(j), len(self.rows) // 2)
            strengths[j] = 0.5 * np.mean((self._response(self._with((j, values))) - base) ** 2)
        return strengths

    def column(self, j: int) -> ColumnEffect:
        """Return the effect of a dimension, with its band."""
        grid, centre = self._grid(j, _GRID), self._centre
        background = self.expansion.points_of(self.rows.numeric, self.rows.codes)
        mean_background = self.expansion.kernel(background).mean(axis=0)
        is_all = all(map(np.array_equal, background[:5], self.expansion.points[:5]))
        within = self.expansion.kernel(background, background).mean()
        if self._are_apart([j]):
            # what the other columns add is the same at every value
            means = SetMeans(self.expansion, self.rows, _Column(self, j), grid)
            to_points = means.to(self.expansion.points)
            functionals = to_points - mean_background
            across = (to_points if is_all else means.to(background)).mean(axis=1)
            prior = means.together() - 2.0 * across + within
            sums = self._on_grid((j, grid))(self.rows.numeric, self.rows.codes)
            latent = list(np.moveaxis(sums, 1, 0))
        else:
            functionals, prior, latent = self._one_by_one(j, grid, within, is_all)
            functionals -= mean_background
        effect = [np.mean(self.respond(each)) - centre for each in latent]
        variance = prior - self.expansion.explained(functionals)
        # with shares, the shown quantity depends on all outputs, so all move by their own width
        single = min(self.output, self.expansion.dual.shape[1] - 1)
        moved = slice(None) if self.expansion.target.shares is not None else [single]
        widths = np.zeros((len(grid), self.expansion.dual.shape[1]))
        inflation = self.expansion.inflation[moved]
        widths[:, moved] = np.sqrt(np.maximum(variance, 0.0)[:, None] * inflation)
        ends = [
            [np.mean(self.respond(z + k * _DEVIATIONS * width)) - centre for k in (-1, 1)]
            for z, width in zip(latent, widths, strict=True)
        ]
        low, high = np.sort(np.array(ends), axis=1).T
        told = None if self.monotone is None else self.monotone(j, grid, self.rows)
        # the band is that of the fit, around the rearranged mean
        shift = np.zeros(len(grid)) if told is None else told - self._centre - np.array(effect)
        return ColumnEffect(
            self.dimensions[j].name, self._shown(j, grid), np.array(effect) + shift, low + shift,
            high + shift,
            self._is_category(j),
        )  # fmt: skip

    def _one_by_one(
        self, j: int, grid: NDArray[Any], within: float, is_all: bool
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Return kernel means to all points, prior variances and sums of rows at each value."""
        background = self.expansion.points_of(self.rows.numeric, self.rows.codes)
        means, prior, latent = [], [], []
        for value in grid:
            rows = self._with((j, value))
            points = self.expansion.points_of(rows.numeric, rows.codes)
            K = self.expansion.kernel(points)
            means.append(K.mean(axis=0))
            across = (K if is_all else self.expansion.kernel(points, background)).mean()
            prior.append(self.expansion.kernel(points, points).mean() - 2.0 * across + within)
            if self.expansion.views.group is not None and self.expansion.views.group.place == j:
                prior[-1] += self.expansion.level_variance(points).mean()
            latent.append(K @ self.expansion.dual + self.expansion.level(points))
        return np.array(means), np.array(prior), latent

    def pair(self, i: int, j: int, n_grid: int = _PAIR_GRID) -> PairEffect:
        """Return the interaction of two dimensions: their joint effect minus that of each."""
        first, second = self._grid(i, n_grid), self._grid(j, n_grid)
        both = self._means((i, first), (j, second))
        effect = both - self._alone(i, n_grid)[:, None] - self._alone(j, n_grid) + self._centre
        return PairEffect(
            (self.dimensions[i].name, self.dimensions[j].name),
            (self._shown(i, first), self._shown(j, second)),
            effect,
            (self._is_category(i), self._is_category(j)),
        )

    def strongest_pairs(self, n_pairs: int, among: Sequence[int]) -> list[tuple[int, int]]:
        """Return the pairs of dimensions whose joint effect is largest, the largest first."""
        few = EffectFinder(
            self.expansion, self.rows.take(np.arange(len(self.rows))[:_SEARCH_ROWS]),
            self.dimensions, self.respond, self.output,
        )  # fmt: skip
        pairs = [
            pair
            for pair in combinations(among[:_CANDIDATES], 2)
            if self.dimensions[pair[0]].source != self.dimensions[pair[1]].source
        ]
        sizes = [float(np.std(few.pair(*pair, _COARSE_GRID).effect)) for pair in pairs]
        return [pairs[k] for k in np.argsort(sizes)[::-1][:n_pairs]]

    @cached_property
    def _centre(self) -> float:
        """Return the mean prediction."""
        return self._mean()

    def _alone(self, j: int, n_grid: int) -> FloatArray:
        """Return the mean prediction at each value of a dimension, from the cache if known."""
        if (j, n_grid) not in self._known:
            self._known[j, n_grid] = self._means((j, self._grid(j, n_grid)))
        return self._known[j, n_grid]

    def _response(self, rows: Rows) -> FloatArray:
        points = self.expansion.points_of(rows.numeric, rows.codes)
        latent = self.expansion.kernel(points) @ self.expansion.dual
        return self.respond(latent + self.expansion.level(points))

    def _mean(self, *settings: tuple[int, float]) -> float:
        return float(np.mean(self._response(self._with(*settings))))

    def _means(self, *grids: tuple[int, NDArray[Any]]) -> FloatArray:
        """Return the mean response with dimensions set to all combinations of values."""
        shape = [len(grid) for _, grid in grids]
        if not self._are_apart([j for j, _ in grids]):
            settings = product(*([(j, value) for value in grid] for j, grid in grids))
            return np.array([self._mean(*each) for each in settings]).reshape(shape)
        rows, n_outputs, total = self.rows, self.expansion.dual.shape[1], np.zeros(shape)
        on_grid = self._on_grid(*grids)
        for some in row_slices(len(rows), max(1, _CELLS // (total.size * n_outputs))):
            latent = on_grid(rows.numeric[some], rows.codes[some])
            shown = self.respond(latent.reshape(-1, n_outputs))
            total += shown.reshape(latent.shape[:-1]).sum(axis=0)
        return total / len(rows)

    def _on_grid(self, *grids: tuple[int, NDArray[Any]]) -> OnGrid:
        """Return what gives sums of rows with dimensions set to all combinations of values."""
        expansion, rows = self.expansion, self.rows
        level = None if expansion.levels is None else expansion.level
        sums = KernelSum(
            expansion.views, expansion.points, expansion.scales, expansion.dual, np.asarray, level
        )
        axes = [_Axis(_Column(self, j), grid, np.arange(len(grid))) for j, grid in grids]
        return OnGrid(sums, axes, rows.numeric[:1], rows.codes[:1], single=False)

    def _are_apart(self, dimensions: Sequence[int]) -> bool:
        """Return whether values of dimensions change nothing of rows but these.

        A number that is missing may be filled, and names of groups have terms of their own.
        """
        views, chosen = self.expansion.views, [self.dimensions[j] for j in dimensions]
        if views.columns or any(each.kind not in ("number", "category") for each in chosen):
            return False
        tied = {each.column.place for each in views.group_terms}
        tied |= {each.slope for each in views.group_terms}
        sources = {each.source for each in chosen}
        return tied.isdisjoint(dimensions) and len(sources) == len(chosen)

    def _is_category(self, j: int) -> bool:
        return bool(j >= self.rows.n_numbers)

    def _values(self, j: int) -> NDArray[Any]:
        n_numbers = self.rows.n_numbers
        return (
            self.rows.codes[:, j - n_numbers] if self._is_category(j) else self.rows.numeric[:, j]
        )

    def _with(self, *settings: tuple[int, FloatArray | float]) -> Rows:
        """Return the rows with some dimensions set; a number that is set is known."""
        numeric, codes = self.rows.numeric.copy(), self.rows.codes.copy()
        n_numbers = self.rows.n_numbers
        for j, value in settings:
            if j >= n_numbers:
                codes[:, j - n_numbers] = value
                continue
            numeric[:, j] = value
            if self.dimensions[j].kind == "number" and np.ndim(value) == 0:
                numeric[:, self._indicators_of(j)] = 0.0
        return replace(self.rows, numeric=numeric, codes=codes)

    def _indicators_of(self, j: int) -> list[int]:
        source = self.dimensions[j].source
        return [
            i
            for i, each in enumerate(self.dimensions)
            if each.kind in ("missing", "side") and each.source == source
        ]

    def _grid(self, j: int, most: int) -> NDArray[Any]:
        """Return the most frequent categories of a dimension, or evenly spaced quantiles."""
        if self._is_category(j):
            shares = self.dimensions[j].frequencies
            return np.sort(np.argsort(-shares, kind="stable")[: min(most, _MAX_CATEGORIES)])
        values = np.unique(self._values(j))
        if len(values) <= most:
            return values
        return np.unique(np.quantile(self._values(j), np.linspace(0.0, 1.0, most)))

    def _shown(self, j: int, grid: NDArray[Any]) -> NDArray[Any]:
        labels = self.dimensions[j].categories
        return np.array([labels[int(code)] for code in grid]) if labels else grid


@dataclass(frozen=True)
class _Column:
    """A dimension that is set, with what tells that a number is missing."""

    finder: EffectFinder
    place: int

    @property
    def moving(self) -> list[int]:
        """The dimensions that its values change."""
        finder, j = self.finder, self.place
        return [j] if finder._is_category(j) else [j, *finder._indicators_of(j)]

    def fill(self, numeric: FloatArray, codes: NDArray[np.int64], values: FloatArray) -> None:
        """Give rows values of the dimension, as `EffectFinder._with` does."""
        if self.finder._is_category(self.place):
            codes[:, self.place - numeric.shape[1]] = values
            return
        numeric[:, self.moving] = 0.0
        numeric[:, self.place] = values


class _Axis(NamedTuple):
    column: _Column
    nodes: FloatArray
    known: Index


def some_rows(rows: Rows, n_rows: int, random_state: RandomState) -> Rows:
    """Return rows drawn by their weights, or all rows if they are few and have equal weights.

    `n_rows`: at least 2. Raises ValueError if ``n_rows`` is below 2.
    """
    integer(2).check("n_rows", n_rows)
    if rows.weight is None and len(rows) <= n_rows:
        return rows
    state = check_random_state(random_state)
    share = rows.mass / rows.mass.sum()
    size = min(n_rows, len(rows))
    return rows.take(state.choice(len(rows), size, replace=rows.weight is not None, p=share))
