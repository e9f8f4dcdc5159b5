"""One column of a user's table as it was read: numbers, words or dates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Codes: TypeAlias = NDArray[np.int64]
# one or two words among so many different numbers or dates each are typing errors or gaps
MOST_ODD = 2
WORDS_AN_ODD = 10


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers, NaN where there is a gap; ``whole`` where the table's own type was an integer."""

    values: FloatArray
    whole: bool = False
    seen: str = "numbers"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return np.isnan(self.values)

    def take(self, rows: NDArray[np.intp]) -> Numbers:
        """Return some of the rows."""
        return replace(self, values=self.values[rows])


@dataclass(frozen=True, eq=False)
class Words:
    """Codes of labels, −1 where there is a gap."""

    codes: Codes
    labels: tuple[str, ...]
    seen: str = "words"

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return self.codes < 0

    def take(self, rows: NDArray[np.intp]) -> Words:
        """Return some of the rows, with the labels that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        has_gap = bool(len(used)) and used[0] < 0
        labels = tuple(self.labels[code] for code in used[int(has_gap) :])
        return replace(self, codes=codes.astype(np.int64) - has_gap, labels=labels)


@dataclass(frozen=True, eq=False)
class Dates:
    """Moments in a pandas series of dtype datetime64, NaT where there is a gap."""

    values: pd.Series[pd.Timestamp]
    seen: str = "dates"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return np.asarray(self.values.isna(), dtype=np.bool_)

    def take(self, rows: NDArray[np.intp]) -> Dates:
        """Return some of the rows."""
        return replace(self, values=self.values.iloc[rows].reset_index(drop=True))


Raw: TypeAlias = Numbers | Words | Dates


@dataclass(frozen=True, eq=False)
class RawTable:
    """A user's table, column by column.

    `names`: ``x0``, ``x1``, … where the table has no names; `columns`: all of the same length;
    `named`: whether the names are the user's.
    """

    names: tuple[str, ...]
    columns: tuple[Raw, ...]
    named: bool

    def __len__(self) -> int:
        return len(self.columns[0])

    def take(self, rows: NDArray[np.intp]) -> RawTable:
        """Return some of the rows."""
        return replace(self, columns=tuple(column.take(rows) for column in self.columns))


def label(value: object) -> str:
    """Return how a level is called: 3 and 3.0 are the same."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
