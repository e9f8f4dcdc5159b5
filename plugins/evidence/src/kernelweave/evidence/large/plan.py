"""How a table of any length is fitted: how many rows and landmarks for what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from ..path import Plan
from ..rows import Rows

Blocks = Callable[[], Iterator[Rows]]
BLOCK = 16_384


@dataclass(frozen=True)
class LargePlan:
    """How a table of any length is fitted.

    - `path`: of the scales
    - `metric_rows`: rows that the scales are learned on
    - `sample_rows`: rows drawn at random: the metric's, the landmarks and those held out are among
      them, and the number of landmarks is chosen on them. The other rows are summed over once
    - `first_rows`: of these, how many choose λ
    - `held_out`: rows held out at most; they are a tenth where that is less
    - `first`, `most`: landmarks to begin with and at most; in between their number doubles
    - `work`: landmarks are also no more than ``(work / n_rows)`` to the power ½, which sums over a
      million rows pass with 2000, and no more than a quarter of the rows
    - `dtype`: of the features
    """

    path: Plan = field(default_factory=Plan)
    metric_rows: int = 1000
    sample_rows: int = 50_000
    first_rows: int = 20_000
    held_out: int = 4000
    first: int = 500
    most: int = 4000
    work: float = 5e12
    dtype: DTypeLike = np.float32

    def sizes(self, n_rows: int, n_candidates: int) -> list[int]:
        """Return the numbers of landmarks to try."""
        limit = min(self.most, n_candidates, n_rows // 4, int(np.sqrt(self.work / n_rows)))
        sizes = [min(self.first, n_candidates)]
        while 2 * sizes[-1] <= limit:
            sizes.append(2 * sizes[-1])
        return sizes
