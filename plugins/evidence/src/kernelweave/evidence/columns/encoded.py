"""What a table becomes: numbers without gaps, codes of levels, and what each dimension is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .numbers import weighted_median

# a number, the indicator of its gaps, what fills them
Fills: TypeAlias = tuple[tuple[int, int, float], ...]
DimensionKind = Literal["number", "gap", "level", "date part", "text"]


class Encoded(NamedTuple):
    """Rows of a table as numbers and as codes of levels.

    Attributes
    ----------
    numeric : ndarray of shape (n_rows, n_numeric)
        Numbers, date parts and indicators of gaps, without gaps of their own; C-contiguous.
    codes : ndarray of shape (n_rows, n_levels_columns)
        Which level of its column each row has, from 0; a level that training had not seen has the
        number of levels as its code.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.evidence import Encoded
    >>> rows = Encoded(np.zeros((3, 2)), np.zeros((3, 1), dtype=np.int64))
    >>> rows.numeric.shape, rows.codes.shape
    ((3, 2), (3, 1))
    """

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coding:
    """How a part of some encoded rows codes others, which it has not seen.

    - `gap_of` of shape (n_numeric,): which number tells where each number has a gap, −1 where none
      does
    - `sizes`, `rare`, `gaps`: of each column of codes the number of levels, the code of rare words
      and that of gaps
    - `least`: how many rows a word must be in, or as a float which share of them, to be no rare one
    """

    gap_of: NDArray[np.intp]
    sizes: tuple[int, ...]
    rare: tuple[int, ...]
    gaps: tuple[int, ...]
    least: float

    def fills(self, numeric: NDArray[np.float64], share: NDArray[np.float64]) -> Fills:
        """Return the medians of training rows that fill gaps: number, its indicator, median."""
        found = []
        for j, indicator in enumerate(self.gap_of):
            known = numeric[:, indicator] == 0.0
            if indicator >= 0 and known.any():
                found.append((j, int(indicator), weighted_median(numeric[known, j], share[known])))
        return tuple(found)

    def pools(
        self, codes: NDArray[np.int64], share: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], ...]:
        """Return for each column what each code becomes: rare and unseen ones are one."""
        known = zip(codes.T, self.sizes, self.rare, self.gaps, strict=True)
        return tuple(self._pool(column, share, *each) for column, *each in known)

    def _pool(
        self, column: NDArray[np.int64], share: NDArray[np.float64], size: int, rare: int, gap: int
    ) -> NDArray[np.int64]:
        mass = np.bincount(column, weights=share, minlength=size + 1)
        if not isinstance(self.least, float):
            # of weighted rows, whichever counts more
            rows = np.bincount(column, minlength=size + 1)
            mass = np.maximum(rows, mass / mass.sum() * len(column))
        words = np.setdiff1d(np.arange(size), [rare, gap])
        few = words[(mass[words] > 0.0) & (mass[words] < self.least)]
        absent = words[mass[words] == 0.0]
        out = np.arange(size + 1)
        # as in training, a single rare word stays what it is
        if mass[rare] > 0.0 or len(few) > 1:
            out[few] = out[absent] = out[size] = rare
        else:
            out[absent] = size
        return out


@dataclass(frozen=True, eq=False)
class Dimension:
    """One dimension of an encoded table, and the column of the user's table it comes from.

    Parameters
    ----------
    name : str
        Name of the dimension: that of its column, with the part of a date or "missing" behind it.
    source : str
        Name of the column in the user's table.
    kind : {"number", "gap", "level", "date part", "text"}
        What the dimension holds: "gap" is 1 where the column has none and 0 elsewhere, "text" a
        component of a column of texts.
    levels : tuple of str, default=()
        Labels of the levels, in the order of their codes; empty for numbers.
    frequencies : ndarray of shape (n_levels,), default=empty
        Share of the training rows that has each level; empty for numbers.

    Examples
    --------
    >>> from kernelweave.evidence import Dimension
    >>> Dimension("height", "height", "number").levels
    ()
    """

    name: str
    source: str
    kind: DimensionKind
    levels: tuple[str, ...] = ()
    frequencies: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
