"""What the training rows of a table say about its columns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import KernelWeaveWarning
from numpy.typing import NDArray

from .choices import is_identifier, settle
from .dates import DateParts
from .encoded import Dimension
from .levels import RARE, Levels, partition
from .numbers import NumberBlock, repeated
from .raw import Dates, FloatArray, Numbers, Table, Words
from .report import Findings


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column that becomes numbers: one, or the parts of its dates."""

    position: int
    name: str
    parts: DateParts | None

    def dimensions(self) -> list[Dimension]:
        """Return what its numbers are."""
        if self.parts is None:
            return [Dimension(self.name, self.name, "number")]
        return [Dimension(f"{self.name} {p}", self.name, "date part") for p in self.parts.names]


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """A column that becomes codes of levels."""

    position: int
    name: str
    levels: Levels

    def dimension(self) -> Dimension:
        """Return what its codes are."""
        return Dimension(self.name, self.name, "level", self.levels.labels, self.levels.frequencies)


class Sorting:
    """Sorts the columns of a training table into numbers, dates, words and what is left out.

    Attributes
    ----------
    seen : dict of str to str
        What each column holds.
    numbers : list of (NumberColumn, Numbers, Dates or Words)
        With what its training rows are.
    words : list of (int, str, Words)
        Position, name and training rows.
    """

    def __init__(self, table: Table, findings: Findings) -> None:
        self.seen: dict[str, str] = {}
        self.numbers: list[tuple[NumberColumn, Numbers | Dates | Words]] = []
        self.words: list[tuple[int, str, Words]] = []
        for position, (name, raw) in enumerate(zip(table.names, table.columns, strict=True)):
            self.seen[name] = raw.seen
            if raw.gaps.all():
                self.seen[name] = "no values"
                findings.leave_out(name, "No row has a value.")
                continue
            settled, parts, sentence = settle(name, raw)
            self.seen[name] = "dates" if parts is not None else settled.seen
            if table.named and is_identifier(name, settled):
                _leave_out_identifier(name, findings)
                continue
            if sentence:
                findings.say(name, sentence)
            if parts is not None or isinstance(settled, Numbers):
                self.numbers.append((NumberColumn(position, name, parts), settled))
            elif isinstance(settled, Words):
                self.words.append((position, name, settled))


def fit_numbers(
    columns: list[NumberColumn], values: FloatArray, weight: FloatArray | None, findings: Findings
) -> tuple[NumberBlock, list[Dimension]]:
    """Learn medians, gaps, constants and repetitions, and say them.

    Parameters
    ----------
    columns : list of NumberColumn
        In the order of ``values``.
    values : ndarray of shape (n_rows, n_values)
        What the columns give.
    weight : ndarray of shape (n_rows,) or None
        2 counts a row twice.
    findings : Findings
        Where to say it.

    Returns
    -------
    block : NumberBlock
        What was learned.
    dimensions : list of Dimension
        What each column of its result is.
    """
    dimensions = [each for column in columns for each in column.dimensions()]
    owner = {column.name: i for i, column in enumerate(columns)}
    owners = np.array([owner[each.source] for each in dimensions], dtype=np.intp)
    block = NumberBlock.fit(values, owners, weight)
    for i, column in enumerate(columns):
        _say_numbers(column, np.flatnonzero(owners == i), values, block, dimensions, findings)
    kept = [dimensions[j] for j in block.kept]
    for j in block.indicators:
        source = dimensions[j].source
        kept.append(Dimension(f"{source} missing", source, "gap"))
    return block, kept


def fit_levels(
    words: list[tuple[int, str, Words]],
    weight: FloatArray | None,
    findings: Findings,
    *,
    max_levels: int,
    min_frequency: float,
) -> list[LevelColumn]:
    """Learn the levels of columns of words, and say what is left out."""
    kept: list[LevelColumn] = []
    seen: dict[bytes, str] = {}
    for position, name, column in words:
        levels = Levels.fit(
            column, max_levels=max_levels, min_frequency=min_frequency, weight=weight
        )
        if levels.labels == (RARE,):
            _leave_out_identifier(name, findings)
            continue
        if len(levels.labels) == 1:
            findings.leave_out(name, f"It is {levels.labels[0]!r} in every row.")
            continue
        first = seen.setdefault(partition(levels.transform(column)), name)
        if first != name:
            findings.leave_out(name, f"It parts the rows as {first!r} does.")
            continue
        findings.say(name, _told(levels, len(column), int(column.gaps.sum()), min_frequency))
        kept.append(LevelColumn(position, name, levels))
    return kept


def _leave_out_identifier(name: str, findings: Findings) -> None:
    sentence = "It only tells the rows apart, as an identifier does."
    findings.leave_out(name, sentence)
    warnings.warn(
        f"column {name!r} is left out: it only tells the rows apart, as an identifier does; if it "
        "means more, pass it as floating point numbers, or cut its words to what they share",
        KernelWeaveWarning,
        stacklevel=2,
    )


def _say_numbers(
    column: NumberColumn,
    own: NDArray[np.intp],
    values: FloatArray,
    block: NumberBlock,
    dimensions: list[Dimension],
    findings: Findings,
) -> None:
    """Say of a column of numbers what is worth knowing."""
    name, kept = column.name, np.intersect1d(own, block.kept)
    if column.parts is not None:
        read_as = f" by the format {column.parts.format}" if column.parts.format else ""
        used = ", ".join(dimensions[j].name[len(name) + 1 :] for j in kept)
        findings.say(name, f"Read as dates{read_as}; used: {used or 'none, they never change'}.")
    gaps = int(np.isnan(values[:, own[0]]).sum())
    if gaps:
        rest = "the median" if column.parts else f"the median {block.medians[own[0]]:.6g}"
        shown = "an indicator" if own[0] in block.indicators else "the indicator of another column"
        findings.say(name, f"{gaps} of {len(values)} rows have a gap: {rest} and {shown}.")
    if len(kept):
        return
    if np.nanmin(values[:, own[0]]) == np.nanmax(values[:, own[0]]):
        sentence = f"It is {np.nanmin(values[:, own[0]]):.6g} wherever it has a value."
    else:
        sentence = f"It repeats {dimensions[repeated(values, own[0], block.kept)].source!r}."
    if own[0] in block.indicators:
        findings.say(name, f"{sentence} Only its gaps are used.")
    else:
        findings.leave_out(name, sentence)


def _told(levels: Levels, n_rows: int, n_gaps: int, min_frequency: float) -> str:
    parts = [f"{len(levels.labels)} levels."]
    if levels.n_rare:
        parts.append(f"{levels.n_rare} rare words share one of them.")
    if n_gaps:
        parts.append(f"{n_gaps} of {n_rows} rows have a gap, which is a level.")
    return " ".join(parts)
