"""What the training rows of a table say about its columns."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.tables.columns import Dates, Numbers, RawTable, Words
from kernelweave.tables.dates import DateParts
from kernelweave.tables.errors import ColumnWarning
from kernelweave.tables.plans import FEWEST_ROWS, ColumnPlan, is_identifier, plan_column
from kernelweave.tables.written import WrittenNumbers

from .encoded import Dimension, NumberBlock, repeated
from .levels import RARE, Levels, partition

if TYPE_CHECKING:
    from skrub import StringEncoder

# as many as skrub's own default: more cost each pass over the pairs
_MOST_COMPONENTS = 30
_IDENTIFIER = (
    "looks like a row ID",
    "to use it, set its kind to 'number'",
)
# of the rows must have a word that is not rare, or the column tells them apart and little else
_RECURRING = 0.1
_WORDS = (
    "nearly every value is different, as in IDs or free text",
    "to use what its rows have in common, such as a keyword, make that a column",
)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column that becomes the strongest components of its texts.

    They are those of TF-IDF weights of parts of words, three and four letters long (latent semantic
    analysis, by skrub's `StringEncoder`). A missing text is at the origin, as one that has nothing
    in common with those of training.
    """

    position: int
    name: str
    encoder: StringEncoder
    n_components: int

    @classmethod
    def fit(cls, position: int, name: str, words: Words) -> TextColumn:
        """Learn the components from training rows, equal texts counted once."""
        import pandas as pd
        from skrub import StringEncoder

        # sorted, so that the order of rows changes nothing
        texts = pd.Series(sorted(words.labels), dtype="str")
        encoder = StringEncoder(min(_MOST_COMPONENTS, len(texts)), random_state=0)
        with warnings.catch_warnings():
            # few short texts: their TF-IDF weights themselves are the numbers
            warnings.filterwarnings("ignore", "The matrix shape is")
            n_components = encoder.fit_transform(texts).shape[1]
        return cls(position, name, encoder, n_components)

    def transform(self, words: Words) -> FloatArray:
        """Return the components of rows, shape (n_rows, n_components)."""
        import pandas as pd

        out = np.zeros((len(words.labels) + 1, self.n_components))
        if words.labels:
            texts = pd.Series(words.labels, dtype="str")
            out[:-1] = self.encoder.transform(texts).to_numpy()
        return np.asarray(out[words.codes])

    @property
    def said(self) -> str:
        """What to say of it."""
        return f"Texts: the {self.n_components} strongest components of what they share."

    def dimensions(self) -> list[Dimension]:
        """Return what its components are."""
        names = [f"{self.name} text {k}" for k in range(1, self.n_components + 1)]
        return [Dimension(name, self.name, "text") for name in names]


class Findings:
    """Sentences on columns, gathered in any order and told in the table's."""

    def __init__(self) -> None:
        self._said: dict[str, list[str]] = {}
        self._left_out: set[str] = set()

    def say(self, column: str, sentence: str) -> None:
        """Add a sentence on a column."""
        self._said.setdefault(column, []).append(sentence)

    def leave_out(self, column: str, sentence: str, advice: str = "") -> None:
        """Say that a column is not used, why, and what to do if it should be."""
        self._left_out.add(column)
        self.say(column, f"Ignored: {sentence}{f' ({advice})' if advice else ''}.")

    def told(self, plans: list[ColumnPlan]) -> list[ColumnPlan]:
        """Return plans with all that was said of their columns."""
        return [
            plan._replace(
                kind="ignore" if plan.column in self._left_out else plan.kind,
                remark=" ".join(self._said.get(plan.column, ())),
            )
            for plan in plans
        ]


class NumberColumn(NamedTuple):
    """A column that becomes numbers: one, or the parts of its dates."""

    position: int
    name: str
    reading: WrittenNumbers | DateParts | None = None

    @property
    def parts(self) -> DateParts | None:
        """How its dates are read, ``None`` for numbers."""
        return self.reading if isinstance(self.reading, DateParts) else None

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

    `plans`: of all columns; `numbers`: with what its training rows are; `words`: position, name and
    training rows; `texts`: fitted on these.
    """

    def __init__(self, table: RawTable, findings: Findings, kinds: Mapping[str, str]) -> None:
        self.plans: list[ColumnPlan] = []
        self.numbers: list[tuple[NumberColumn, Numbers | Dates | Words]] = []
        self.words: list[tuple[int, str, Words]] = []
        self.texts: list[TextColumn] = []
        seen: dict[tuple[tuple[str, ...], bytes], str] = {}
        for position, (name, raw) in enumerate(zip(table.names, table.columns, strict=True)):
            wanted = kinds.get(name)
            if raw.gaps.all() and wanted != "ignore":
                self.plans.append(ColumnPlan(name, "ignore", "no values"))
                findings.leave_out(name, "no values")
                continue
            plan, read = plan_column(name, raw, kind=wanted, comma=table.comma)
            self.plans.append(plan)
            if wanted is None and table.named and is_identifier(name, read):
                _leave_out(name, _IDENTIFIER, findings)
                continue
            if plan.remark:
                findings.say(name, plan.remark)
            if plan.kind in ("number", "date"):
                self.numbers.append((NumberColumn(position, name, plan.reading), read))
            elif isinstance(read, Words) and plan.kind == "text":
                first = seen.setdefault((read.labels, read.codes.tobytes()), name)
                if len(read.labels) == 1 and not read.gaps.any():
                    findings.leave_out(name, f"constant ({read.labels[0]!r})")
                elif first != name:
                    findings.leave_out(name, f"duplicate of {first!r}")
                else:
                    self.texts.append(TextColumn.fit(position, name, read))
                    findings.say(name, self.texts[-1].said)
            elif isinstance(read, Words) and plan.used:
                self.words.append((position, name, read))


def fit_numbers(
    columns: list[NumberColumn], values: FloatArray, weight: FloatArray | None, findings: Findings
) -> tuple[NumberBlock, list[Dimension]]:
    """Learn medians, gaps, constants and repetitions, and say them.

    - `columns`: in the order of ``values``
    - `values` of shape (n_rows, n_values): what the columns give
    - `weight` of shape (n_rows,): 2 counts a row twice
    - `findings`: where to say it

    Returns `block`: what was learned; `dimensions`: what each column of its result is.
    """
    groups = [column.dimensions() for column in columns]
    dimensions = [each for group in groups for each in group]
    owners = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    block = NumberBlock.fit(values, owners, weight)
    indicated = [dimensions[j].source for j in block.indicators]
    with_gaps = set(indicated)
    used: dict[str, list[str]] = {column.name: [] for column in columns}
    for j in block.kept:
        used[dimensions[j].source].append(dimensions[j].name)
    ends = np.cumsum([len(group) for group in groups]) - 1
    for column, end in zip(columns, ends, strict=True):
        name, own = column.name, column.name in with_gaps
        if column.parts is not None:
            findings.say(name, _told_parts(column, column.parts, used[name]))
        if block.gaps[end]:
            findings.say(name, _told_gaps(values[:, end], column, block.medians[end], own))
        if not used[name]:
            why = _why_unused(values, int(end), block, dimensions)
            if own:
                findings.say(name, f"Only missing values are used: {why}.")
            else:
                findings.leave_out(name, why)
    gaps = [Dimension(f"{name} missing", name, "gap") for name in indicated]
    return block, [*(dimensions[j] for j in block.kept), *gaps]


def fit_levels(
    words: list[tuple[int, str, Words]],
    weight: FloatArray | None,
    findings: Findings,
    *,
    max_levels: int,
    min_frequency: float,
    asked: Collection[str] = (),
) -> list[LevelColumn]:
    """Learn the levels of columns of words, and say what is left out.

    `asked`: columns that are to be categories, however many of their words come once.
    """
    kept: list[LevelColumn] = []
    seen: dict[bytes, str] = {}
    for position, name, column in words:
        fit = partial(Levels.fit, column, max_levels=max_levels, weight=weight)
        levels = fit(min_frequency=min_frequency)
        by_chance = len(column) < FEWEST_ROWS and RARE not in levels.labels
        if levels.recurring <= _RECURRING and not by_chance and name not in asked:
            levels = fit(min_frequency=np.inf)
        if levels.labels == (RARE,):
            _leave_out(name, _WORDS, findings)
            continue
        if len(levels.labels) == 1:
            findings.leave_out(name, f"constant ({levels.labels[0]!r})")
            continue
        first = seen.setdefault(partition(levels.transform(column)), name)
        if first != name:
            findings.leave_out(name, f"same groups of rows as {first!r}")
            continue
        findings.say(name, _told(levels, len(column), int(column.gaps.sum())))
        kept.append(LevelColumn(position, name, levels))
    return kept


def _leave_out(name: str, told: tuple[str, str], findings: Findings) -> None:
    """Leave out a column, and warn: its owner may have meant more by it."""
    why, advice = told
    findings.leave_out(name, why, advice)
    warnings.warn(f"column {name!r} is ignored: {why} ({advice})", ColumnWarning, stacklevel=3)


def _told_parts(column: NumberColumn, parts: DateParts, used: list[str]) -> str:
    read_as = f" with the format {parts.format}" if parts.format else ""
    names = ", ".join(name[len(column.name) + 1 :] for name in used)
    return f"Parsed{read_as} into {names}." if names else f"Parsed{read_as}."


def _told_gaps(values: FloatArray, column: NumberColumn, median: float, own: bool) -> str:
    filled = "the median" if column.parts else f"the median {median:.6g}"
    shown = "an indicator" if own else "the indicator of another column"
    n_gaps = int(np.isnan(values).sum())
    return f"{n_gaps} of {len(values)} values missing: replaced by {filled}, with {shown}."


def _why_unused(
    values: FloatArray, column: int, block: NumberBlock, dimensions: list[Dimension]
) -> str:
    """Return why a column of numbers, or the last part of a date, is not used."""
    least = np.nanmin(values[:, column])
    if least < np.nanmax(values[:, column]):
        return f"duplicate of {dimensions[repeated(values, column, block.kept)].source!r}"
    if dimensions[column].kind == "date part":
        return "constant"
    return f"constant ({least:.6g})"


def _told(levels: Levels, n_rows: int, n_gaps: int) -> str:
    parts = [f"{len(levels.labels)} categories."]
    if levels.n_rare and levels.recurring == 0.0:
        parts = ["Nearly every value is different: only whether there is one is used."]
    elif levels.n_rare:
        parts.append(f"{levels.n_rare} rare values are merged into one.")
    if n_gaps:
        parts.append(f"{n_gaps} of {n_rows} values missing: a category of their own.")
    return " ".join(parts)
