"""What some tables need: the results that are kept, and the cells that are left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..plan import Cell
from .chosen import Chosen
from .kept import CellOutcome, KeptCells
from .running import compute_all


class Run:
    """The cells of the chosen tables; those that compute the same thing are computed once.

    `outcomes`: by the file that keeps them.
    """

    def __init__(self, chosen: Sequence[Chosen], kept: KeptCells, *, fresh: bool) -> None:
        self.chosen = chosen
        self.kept = kept
        self._cells = {kept.path(cell): cell for each in chosen for cell in each.plan.cells}
        found = {} if fresh else {path: kept.get(cell) for path, cell in self._cells.items()}
        self.outcomes = {path: each for path, each in found.items() if each is not None}

    @property
    def is_complete(self) -> bool:
        """Whether every cell has an outcome."""
        return len(self.outcomes) == len(self._cells)

    def left(self) -> list[Cell]:
        """Return the cells without an outcome."""
        return [cell for path, cell in self._cells.items() if path not in self.outcomes]

    def outcomes_of(self, table: Chosen) -> dict[str, CellOutcome]:
        """Return the outcomes of one table by the key of the cell."""
        files = {cell.key: self.kept.path(cell) for cell in table.plan.cells}
        return {key: self.outcomes[path] for key, path in files.items() if path in self.outcomes}

    def compute(self, n_jobs: int, max_time: float | None) -> Iterator[Cell]:
        """Compute the cells that are left, and yield each that is done."""
        for cell, outcome in compute_all(self.left(), self.kept, n_jobs, max_time):
            self.outcomes[self.kept.path(cell)] = outcome
            yield cell
