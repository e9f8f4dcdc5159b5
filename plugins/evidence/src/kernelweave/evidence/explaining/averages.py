"""Means of the kernel over rows in which one column is set to each of some values.

What the other columns add to distances and products is then the same at every value, and is worked
out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, row_slices
from numpy.typing import NDArray

from .._njit_exp import add_laplacian_sums
from ..cross import RestOfPairs, pairs_of_dimension
from ..mixture import Expansion
from ..monotone.sums import SetColumn
from ..rows import Rows
from ..terms import FLAT, N_TERMS

if TYPE_CHECKING:
    from ..views import Points

# pairs of rows and points that are worked on at a time
_PAIRS = 2**20
# of the kernel at one row: a term of less weight is not worked out, as in `CrossKernel`
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True)
class SetMeans:
    """Means over `rows` whose `column`, apart from all others, is set to each value of `grid`."""

    expansion: Expansion
    rows: Rows
    column: SetColumn
    grid: NDArray[np.generic]

    @cached_property
    def _points(self) -> Points:
        """The rows as they are."""
        return self.expansion.points_of(self.rows.numeric, self.rows.codes)

    @cached_property
    def _nodes(self) -> Points:
        """A row at each value."""
        numeric = np.repeat(self.rows.numeric[:1], len(self.grid), axis=0)
        codes = np.repeat(self.rows.codes[:1], len(self.grid), axis=0)
        self.column.fill(numeric, codes, np.asarray(self.grid))
        return self.expansion.points_of(numeric, codes)

    def to(self, points: Points) -> FloatArray:
        """Return the mean of the kernel between the rows that are set and points, (n_grid, n)."""
        match_weight, moving = self.expansion.views.match_weight, self.column.moving
        out = np.zeros((len(self.grid), points.n_points))
        size, share = max(1, _PAIRS // points.n_points), 1.0 / len(self.rows)
        for scales in self.expansion.scales:
            gaussian, laplacian, linear, tessellated, wide = scales.weights[:N_TERMS]
            part, rest, _ = scales.shape(match_weight)
            far, factor = np.zeros_like(out), np.ones_like(out)
            for i in moving:
                kappa, apart, product = pairs_of_dimension(
                    self._nodes, points, slice(None), i, match_weight
                )
                far += scales.ell[i] ** 2 * apart
                out += linear * scales.ell[i] ** 2 * product
                factor *= rest[i] + part[i] * kappa
            others = RestOfPairs(points, scales, match_weight, moving)
            sums = np.zeros((4, points.n_points))
            for some in row_slices(len(self.rows), size):
                subset = self._points.take(some)
                d2, product, line = others(subset)
                sums[0] += np.exp(-0.5 * d2).sum(axis=0)
                sums[1] += np.exp(-d2 / FLAT).sum(axis=0)
                sums[2] += product.sum(axis=0)
                sums[3] += linear * line.sum(axis=0)
                for term in np.flatnonzero(scales.of_groups).tolist():
                    shared = subset.group_term(points, term=term)
                    sums[3] += scales.weights[N_TERMS + term] * shared.sum(axis=0)
                if laplacian > _NEGLIGIBLE * scales.weights[:N_TERMS].sum():
                    add_laplacian_sums(d2, far, share * laplacian, out)
            means = share * sums
            out += gaussian * np.exp(-0.5 * far) * means[0] + wide * np.exp(-far / FLAT) * means[1]
            out += tessellated * factor * means[2] + means[3]
        return out

    def together(self) -> FloatArray:
        """Return the mean of the kernel between all rows where both have the value, (n_grid,)."""
        match_weight = self.expansion.views.match_weight
        points, moving = self._points, self.column.moving
        total = np.zeros(len(self.grid))
        for scales in self.expansion.scales:
            d2, product, line = RestOfPairs(points, scales, match_weight, moving)(points)
            gaussian, laplacian, linear, tessellated, wide = scales.weights[:N_TERMS]
            total += gaussian * np.mean(np.exp(-0.5 * d2)) + wide * np.mean(np.exp(-d2 / FLAT))
            total += laplacian * np.mean(np.exp(-np.sqrt(d2))) + linear * line.mean()
            part, rest, _ = scales.shape(match_weight)
            factor = np.full(len(self.grid), tessellated * product.mean())
            for i in moving:
                kappa, _, own = pairs_of_dimension(
                    self._nodes, self._nodes, slice(None), i, match_weight
                )
                factor *= rest[i] + part[i] * np.diag(kappa)
                total += linear * scales.ell[i] ** 2 * np.diag(own)
            total += factor
            for term in np.flatnonzero(scales.of_groups).tolist():
                shared = points.group_term(points, term=term)
                total += scales.weights[N_TERMS + term] * shared.mean()
        return total
