"""Columns of numbers: gaps, constants, repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class NumberBlock:
    """What all columns of numbers need to know of the training rows.

    - `medians` of shape (n_columns,): what fills a gap
    - `gaps` of shape (n_columns,): which columns had gaps
    - `kept`: columns that are used: neither constant nor a repetition
    - `indicators`: columns whose gaps become a dimension
    - `gap_of` of shape (n_kept,): which column of the result tells where each kept column has gaps,
      −1 where it had none
    - `low`, `high` of shape (n_kept,): range of the kept columns
    """

    medians: FloatArray
    gaps: Flags
    kept: NDArray[np.intp]
    indicators: NDArray[np.intp]
    gap_of: NDArray[np.intp]
    low: FloatArray
    high: FloatArray

    @classmethod
    def fit(
        cls, values: FloatArray, owners: NDArray[np.intp], weight: FloatArray | None
    ) -> NumberBlock:
        """Learn from training rows.

        `values` of shape (n_rows, n_columns): NaN where there is a gap; no column of gaps only;
        `owners` of shape (n_columns,): columns of one owner, such as the parts of a date, share
        their gaps; `weight` of shape (n_rows,): positive; 2 counts a row twice.
        """
        missing = np.isnan(values)
        gaps: Flags = np.asarray(missing.any(axis=0))
        medians = _medians(values, missing, gaps, weight)
        with np.errstate(invalid="ignore"):
            low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        varied = low < high
        kept = first_ones(values, np.flatnonzero(varied))
        first = np.unique(owners, return_index=True)[1]
        indicators = first_ones(missing.view(np.uint8), first[gaps[first]])
        places = {missing[:, j].tobytes(): len(kept) + i for i, j in enumerate(indicators)}
        gap_of = np.array([places.get(missing[:, j].tobytes(), -1) for j in kept], dtype=np.intp)
        return cls(medians, gaps, kept, indicators, gap_of, low[kept], high[kept])

    def transform(self, values: FloatArray) -> FloatArray:
        """Return kept columns with their gaps filled, then indicators, C-contiguous."""
        missing = np.isnan(values)
        out = np.empty((len(values), len(self.kept) + len(self.indicators)))
        out[:, : len(self.kept)] = np.where(missing, self.medians, values)[:, self.kept]
        out[:, len(self.kept) :] = missing[:, self.indicators]
        return out

    def surprises(self, values: FloatArray) -> NDArray[np.intp]:
        """Return which columns of the result have gaps now and had none in training."""
        now = np.isnan(values[:, self.kept]).any(axis=0)
        return np.flatnonzero(now & ~self.gaps[self.kept])


def first_ones(values: NDArray[np.generic], columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return those of the columns that repeat no earlier one of them."""
    seen: dict[bytes, int] = {}
    return np.array(
        [j for j in columns if seen.setdefault(_fingerprint(values[:, j]), j) == j], dtype=np.intp
    )


def repeated(values: NDArray[np.generic], column: int, among: NDArray[np.intp]) -> int:
    """Return which of ``among`` has the same values as ``column``."""
    wanted = _fingerprint(values[:, column])
    return next(int(j) for j in among if _fingerprint(values[:, j]) == wanted)


def _fingerprint(column: NDArray[np.generic]) -> bytes:
    """Return the bytes of a column; −0 is 0, every NaN the same."""
    if column.dtype.kind == "f":
        column = np.where(np.isnan(column), np.nan, column + 0.0)  # type: ignore[operator]
    return column.tobytes()


def _medians(
    values: FloatArray, missing: Flags, gaps: Flags, weight: FloatArray | None
) -> FloatArray:
    if weight is None:
        medians: FloatArray = np.median(values, axis=0)
        medians[gaps] = np.nanmedian(values[:, gaps], axis=0)
        return medians
    return np.array(
        [
            weighted_median(values[~missing[:, j], j], weight[~missing[:, j]])
            for j in range(values.shape[1])
        ]
    )


def weighted_median(values: FloatArray, weight: FloatArray) -> float:
    """Return the median where a weight of 2 counts a value twice.

    `values`, `weight` of shape (n,): finite values, positive weights.
    """
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    half = 0.5 * mass[-1]
    # where half the mass lies exactly on a border, the mean of both sides
    low = int(np.searchsorted(mass, half * (1.0 - 1e-12)))
    high = int(np.searchsorted(mass, half * (1.0 + 1e-12)))
    return float(0.5 * values[order[low]] + 0.5 * values[order[high]])
