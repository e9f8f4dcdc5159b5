"""How much of a fit of many rows is done, by the work that each of its stages takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

# Work is counted in products of numbers in the sums over rows, n · m² for m landmarks. What comes
# before the sums, and what comes after them beside a pass over all rows, takes these multiples of
# the cube of the rows of the metric (2.3 and 0.9, and 0.7 and 0.6 s of 7.1 for 20,000 rows), and
# judging how new rows differ half of a pass over all.
_BEFORE, _AFTER, _JUDGING = 28.0, 12.0, 0.5

# called with what is summed over, the rows done, all of them, and the share of the fit
Tell = Callable[[str, int, int, float], None]


@dataclass
class Stages:
    """The stages of a fit: the metric, sums over drawn rows and over all, and what judges it.

    After each pass over rows it is assumed that no larger number of landmarks follows: where one
    does, the bar waits.

    `tell`: see `Tell`; `metric_rows`: that the metric is learned from; `n_rows`: of the table;
    `n_drawn`: that numbers of landmarks are compared on.

    Examples
    --------
    >>> from kernelweave.evidence.large.stages import Stages
    >>> shares = []
    >>> stages = Stages(lambda *said: shares.append(round(said[-1], 2)), 100, 2000, 2000)
    >>> stages.summed(500, 1000, 2000)
    >>> stages.summed(500, 2000, 2000)
    >>> shares
    [0.22, 0.41]
    """

    tell: Tell
    metric_rows: int
    n_rows: int
    n_drawn: int
    _done: float = field(init=False)
    _pass: tuple[int, int] = field(default=(0, 0), init=False)
    _rows: int = field(default=0, init=False)
    _n_passes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._done = _BEFORE * self.metric_rows**3

    def summed(self, size: int, rows: int, n_rows: int) -> None:
        """Tell that so many rows of a pass have been summed; `size`: its landmarks."""
        if (size, n_rows) != self._pass or rows < self._rows:
            self._done += self._pass[1] * self._pass[0] ** 2
            self._pass, self._n_passes = (size, n_rows), self._n_passes + 1
        self._rows = rows
        products = size**2
        ahead = _AFTER * self.metric_rows**3 + _JUDGING * self.n_rows * products
        if n_rows < self.n_rows:
            ahead += self.n_rows * products
        if self._n_passes == 1:
            # the path is compared with its best member
            ahead += self.n_drawn * products
        share = (self._done + rows * products) / (self._done + n_rows * products + ahead)
        self.tell(f"{size} landmarks", rows, n_rows, share)
