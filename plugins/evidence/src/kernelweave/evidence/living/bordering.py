"""Means of a regression with more rows: the Cholesky factor, bordered."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ..cross import cross_kernel, gram_of
from ..mixture import Mixture, left_out_width
from ..rows import Rows
from ..terms import JITTER
from .canonical import renewed
from .state import LivingState, RowsToJoin


@dataclass(frozen=True)
class QuickMean:
    """What predicts means of a regression whose other findings are still to be worked out.

    `mixture`: its points in the order in which they came; `rows`: these.
    """

    mixture: Mixture
    rows: Rows

    def mean(self, numeric: FloatArray, codes: NDArray[np.int64]) -> FloatArray:
        """Return the posterior mean, shape (n, n_outputs)."""
        return self.mixture.predict(self.mixture.views.points(numeric, codes))

    def with_rows(self, new: RowsToJoin, state: LivingState) -> QuickMean | None:
        """Return the same with more rows; ``None`` where one of them is the copy of another.

        Copies count as one row of more weight, so that the factor of the others changes.
        """
        kept = np.flatnonzero(new.given.mass > 0.0)
        if not len(kept):
            return self
        given, like = new.given.take(kept), self.rows
        group = renewed(like.group, new.encoder)
        like = replace(like, groups=None, times=None, group=group)
        more = replace(
            like, numeric=given.numeric, codes=given.codes, targets=given.targets,
            weight=given.mass / state.unit[0] / state.unit[1],
        )  # fmt: skip
        rows = like.and_others(more)
        equal = Rows(rows.numbers, rows.codes, rows.targets)
        if equal.recurring or equal.has_equal_copies:
            return None
        mixture = replace(self.mixture, views=replace(self.mixture.views, group=group))
        vars(mixture)["factor"] = self.mixture.factor
        return QuickMean(bordered(mixture, more, rows), rows)


def bordered(mixture: Mixture, more: Rows, rows: Rows) -> Mixture:
    """Return a mixture with more rows behind those that it has.

    `more`: these; `rows`: all of them, in this order.
    """
    views, scales, old = mixture.views, mixture.scales, mixture.points
    points = views.points(more.numeric, more.codes)
    diagonal = mixture.noise * (1.0 / more.mass) + JITTER
    cross = cross_kernel(points, old, scales, views.match_weight)
    corner = gram_of(points, scales, views.match_weight)
    corner[np.diag_indices_from(corner)] += diagonal
    factor = with_border(mixture.factor, cross, corner)
    target = mixture.target.of_others(rows)
    both = old.and_others(points)
    none = np.zeros(len(rows))
    out = replace(
        mixture, points=both, diagonal=np.append(mixture.diagonal, diagonal), outlier_variance=none,
        dual=cho_solve((factor, True), target.values.T, check_finite=False), target=target,
        width=left_out_width(factor, rows.mass, none) if target.warps else 0.0,
    )  # fmt: skip
    vars(out)["factor"] = factor
    return out


def with_border(factor: FloatArray, cross: FloatArray, corner: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a matrix from that of its first block.

    `factor` of shape (n, n), `cross` of shape (m, n): the new rows by the old, `corner` of shape
    (m, m).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence.living.bordering import with_border
    >>> S = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> with_border(np.array([[2.0]]), S[1:, :1], S[1:, 1:]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    n = len(factor)
    border = solve_triangular(factor, cross.T, lower=True, check_finite=False).T
    out = np.zeros((n + len(corner), n + len(corner)), order="F")
    out[:n, :n] = factor
    out[n:, :n] = border
    rest = corner - border @ border.T
    out[n:, n:] = cholesky(rest, lower=True, overwrite_a=True, check_finite=False)
    return out
