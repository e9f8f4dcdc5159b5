"""How a table of any length is fitted: how many rows and landmarks for what."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from ..path import PathPlan


@dataclass(frozen=True)
class LargePlan:
    """How a table of any length is fitted.

    - `path`: of the scales
    - `metric_rows`: rows that the scales are learned on
    - `sample_rows`: rows drawn at random: the metric's, the landmarks and those held out are among
      them, and the number of landmarks is chosen on them. The other rows are summed over once
    - `first_rows`: of these, how many choose λ
    - `n_folds`: parts held out: the first chooses, the others judge what was chosen
    - `held_out`, `judging`: rows of the first part and of each other at most; a tenth of all rows
      where that is less, but a sixth as far as that is no more than `fold_rows`
    - `first`, `most`: landmarks to begin with and at most; in between their number doubles
    - `most_itself`: whether `most` comes last where it is no doubling
    - `work`: landmarks are also no more than ``(work / n_rows)`` to the power ½, which sums over a
      million rows pass with 2000
    - `dtype`: of the features
    """

    path: PathPlan = field(default_factory=PathPlan)
    metric_rows: int = 1000
    sample_rows: int = 50_000
    first_rows: int = 20_000
    n_folds: int = 3
    held_out: int = 4000
    judging: int = 2000
    fold_rows: int = 1000
    first: int = 500
    most: int = 4000
    most_itself: bool = False
    work: float = 5e12
    dtype: DTypeLike = np.float32

    @classmethod
    def of(cls, path: PathPlan, n_landmarks: int | str = "auto", n_folds: int = 3) -> LargePlan:
        """Return the plan with at most some landmarks, or as many as the rows ask for."""
        if isinstance(n_landmarks, str):
            return cls(path, n_folds=n_folds)
        return cls(
            path, most=n_landmarks, most_itself=True, work=np.inf, n_folds=n_folds,
        )  # fmt: skip

    def fold_sizes(self, n_rows: int, n_drawn: int) -> list[int]:
        """Return how many of the drawn rows each fold gets; the metric has its rows first."""
        free = max(n_drawn - self.metric_rows, n_drawn // 2) // self.n_folds
        size = max(1, min(free, max(min(n_rows // 6, self.fold_rows), n_rows // 10)))
        others = min(size, self.judging)
        return [min(size, self.held_out), *[others] * (self.n_folds - 1)]

    def block_share(self, n_rows: int) -> float:
        """Return the share of all rows that one block of the latest has; all fit in memory."""
        size = max(min(n_rows // 6, self.fold_rows), n_rows // 10)
        most = min(n_rows // 2, self.sample_rows) // self.n_folds
        return max(1, min(size, most)) / n_rows

    def sizes(self, n_rows: int, n_candidates: int) -> list[int]:
        """Return the numbers of landmarks to try."""
        limit = int(min(self.most, n_candidates, np.sqrt(self.work / n_rows)))
        sizes = [min(self.first, self.most, n_candidates)]
        while 2 * sizes[-1] <= limit:
            sizes.append(2 * sizes[-1])
        if self.most_itself and sizes[-1] < limit:
            sizes.append(limit)
        return sizes
