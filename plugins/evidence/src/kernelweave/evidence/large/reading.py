"""Batches as a fit reads them: once to know them, then as numbers and codes of levels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from kernelweave.kernels_core import KernelWeaveWarning
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels, RealArray
from kernelweave.tables import CellError
from numpy.typing import NDArray

from ..censored.ends import refuse_in_parts
from ..classes import class_targets
from ..columns import ColumnEncoder
from ..columns.encoded import places_of
from ..rows import Rows
from ..targets import check_labels, finite_numbers, refuse_negative
from .batches import Batch, Batches
from .source import BlockSource


def batches_alone(batches: Batches, *others: object) -> BlockSource:
    """Return batches as a source; they bring their own targets and weights."""
    if any(each is not None for each in others):
        raise ValueError(
            "y and sample_weight must be None where X is Batches, which names its columns of "
            "targets and weights"
        )
    return BlockSource(lambda: batches)


@dataclass
class NumberTargets:
    """Targets of a regression.

    `low`, `high` of shape (n_outputs,): their range; `flat`: whether the user gave one dimension;
    `mass`, `n_rows`: of the rows that count.
    """

    low: FloatArray
    high: FloatArray
    flat: bool
    mass: float
    n_rows: int

    @classmethod
    def of(cls, y: Labels, mass: FloatArray, first: int) -> NumberTargets:
        """Check the targets of a batch whose first row is the table's ``first``."""
        refuse_in_parts(y, first)
        values = cls.values(y, first)[:, mass > 0.0]
        low, high = values.min(axis=1, initial=np.inf), values.max(axis=1, initial=-np.inf)
        return cls(low, high, y.ndim == 1, float(mass.sum()), values.shape[1])

    @staticmethod
    def values(y: Labels, first: int) -> FloatArray:
        """Return finite numbers, shape (n_outputs, n)."""
        columns = y[None] if y.ndim == 1 else y.T
        return np.array([finite_numbers(each, first=first) for each in columns])

    def factors(self, y: Labels) -> FloatArray:
        """Return what makes one of the mean weight."""
        return np.full(len(y), self.n_rows / self.mass)

    def add(self, other: NumberTargets) -> None:
        """Add what later rows tell."""
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.flat = other.flat
        self.mass, self.n_rows = self.mass + other.mass, self.n_rows + other.n_rows

    def check(self) -> None:
        """Raise where an output is constant."""
        same = np.flatnonzero(~(self.low < self.high))
        if len(same):
            where = "y" if self.flat else f"output {same[0]} of y"
            value = self.low[same[0]]
            raise ValueError(f"{where} is {value:.6g} in every row: there is nothing to learn")


@dataclass
class ClassTargets:
    """Targets of a classification.

    `masses`: the weight of the rows of each label; `n_rows`: that count; `ranks` of shape
    (n_classes,): the places of the labels, sorted, where they have an order.
    """

    masses: dict[Any, float]
    n_rows: int
    ranks: Index | None = None

    @classmethod
    def of(cls, y: Labels, mass: FloatArray, first: int) -> ClassTargets:
        """Check the labels of a batch whose first row is the table's ``first``."""
        if y.ndim != 1:
            raise ValueError(f"y must have shape (n_rows,), got batches of {y.ndim} dimensions")
        check_labels(y, first)
        labels, codes = np.unique(y, return_inverse=True)
        masses = np.bincount(codes, weights=mass).tolist()
        return cls(dict(zip(labels.tolist(), masses, strict=True)), int((mass > 0).sum()))

    def add(self, other: ClassTargets) -> None:
        """Add what later rows tell."""
        self.n_rows += other.n_rows
        for label, mass in other.masses.items():
            self.masses[label] = self.masses.get(label, 0.0) + mass

    def check(self, weigh: Callable[[RealArray, FloatArray], FloatArray]) -> None:
        """Sort the labels and weigh them by their masses; raise where there is one class only."""
        present = [label for label, mass in self.masses.items() if mass > 0.0]
        kinds = sorted({type(each).__name__ for each in present})
        if "str" in kinds and len(kinds) > 1:
            raise ValueError(
                f"y mixes labels of the types {' and '.join(kinds)}: give all classes one type"
            )
        if len(present) < 2:
            raise ValueError(
                f"y has one class only, {present[0]!r}: at least two classes are needed, each "
                "with a positive weight"
            )
        self.labels = np.array(sorted(present))
        masses = np.array([self.masses[label] for label in self.labels.tolist()])
        factors = weigh(self.labels, masses)
        self._factors = factors * (self.n_rows / (factors @ masses))

    def codes(self, y: Labels) -> NDArray[np.intp]:
        """Return which class each row has."""
        values = np.asarray(y, dtype=self.labels.dtype)
        return np.minimum(np.searchsorted(self.labels, values), len(self.labels) - 1)

    def values(self, y: Labels, first: int) -> FloatArray:
        """Return targets: one row for two classes, else one per class."""
        return class_targets(self.codes(y), len(self.labels), self.ranks)

    def factors(self, y: Labels) -> FloatArray:
        """Return the factor of each row's class."""
        return np.asarray(self._factors[self.codes(y)])


Targets: TypeAlias = NumberTargets | ClassTargets


def checked_batch(
    batch: Batch, targets: Callable[..., Targets], first: int
) -> tuple[Batch, Targets]:
    """Return a batch with its weights checked, and what its targets tell.

    `targets`: what reads these; `first`: where its first row stands in the whole table.
    """
    if batch.y is None:
        raise ValueError("fit needs targets: give Batches the name of a target column")
    weight = _weight(batch, first)
    mass = np.ones(len(batch)) if weight is None else weight
    return Batch(batch.X, batch.y, weight), targets(batch.y, mass, first)


@dataclass(frozen=True)
class Reader:
    """How a batch becomes rows.

    - `encoder`: fitted. New categories and missing values become what they are in a small table
    - `targets`: have looked at all batches
    - `groups`, `order`: names of columns that say which rows are held out together, or after which;
      empty without
    """

    encoder: ColumnEncoder
    targets: Targets
    groups: str = ""
    order: str = ""

    def __call__(self, batch: Batch, first: int, *, again: bool = False) -> Rows:
        """Return numbers, codes, targets and weights, rows of weight 0 left out.

        `first`: where the batch's first row stands; `again`: whether warnings were given before.
        """
        try:
            with warnings.catch_warnings():
                if again:
                    warnings.simplefilter("ignore", KernelWeaveWarning)
                numeric, codes = self.encoder.transform(batch.X, first=first)
        except CellError:
            raise
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            last = first + len(batch) - 1
            raise kind(f"in the rows {first} to {last}: {error}") from error
        values, weight = targets_of(batch, self.targets, first)
        groups = _hashed(batch.X[self.groups], first) if self.groups else None
        times = self._times(batch.X[self.order], numeric, first) if self.order else None
        names = places_of(self.encoder.dimensions_, self.groups) if self.groups else ()
        rows = Rows(numeric, codes, values, weight, groups=groups, times=times, names=names)
        return rows if weight is None else rows.take(np.flatnonzero(weight > 0.0))

    def _times(self, column: pd.Series, numeric: FloatArray, first: int) -> FloatArray:
        """Return numbers that grow with time."""
        missing = column.isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"order is missing in row {first + int(missing.argmax())}: say when it was, or "
                "leave the row out"
            )
        if column.dtype.kind in "iufb":
            return column.to_numpy(dtype=np.float64)
        for j, each in enumerate(self.encoder.dimensions_):
            whole = each.kind == "number" or each.name.endswith("days since 1970")
            if each.source == self.order and whole:
                return numeric[:, j]
        raise ValueError(f"order must hold numbers or dates, got {column.iloc[0]!r} in row {first}")


def _hashed(column: pd.Series, first: int) -> Index:
    """Return a number for each group, the same in all batches; a missing one is its own group."""
    missing = column.isna().to_numpy()
    numbers = column.dtype.kind in "iufb"
    values = column.to_numpy(dtype=np.float64) if numbers else column.astype(str).to_numpy(object)
    out = pd.util.hash_array(values)
    alone = pd.util.hash_array(
        np.array([f"missing {first + k}" for k in np.flatnonzero(missing)], object)
    )
    out[missing] = alone
    return out.view(np.int64).astype(np.intp)


def targets_of(
    batch: Batch, targets: Targets, first: int = 0
) -> tuple[FloatArray, FloatArray | None]:
    """Return the targets of a batch, shape (n_outputs, n), and its weights.

    `targets`: have seen all batches; `first`: position of the first row in the whole table.
    """
    weight, factors = _weight(batch, first), targets.factors(batch.y)
    if weight is not None or (factors != 1.0).any():
        weight = factors if weight is None else weight * factors
    return targets.values(batch.y, first), weight


def _weight(batch: Batch, first: int) -> FloatArray | None:
    if batch.weight is None:
        return None
    weight = finite_numbers(np.asarray(batch.weight), "sample_weight", first)
    refuse_negative(weight, first)
    return weight
