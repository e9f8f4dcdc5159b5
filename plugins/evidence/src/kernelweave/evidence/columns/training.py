"""What the training rows of a table say about its columns."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import Message
from kernelweave.tables.columns import Dates, Numbers, RawTable, Words
from kernelweave.tables.dates import DateParts
from kernelweave.tables.errors import ColumnWarning
from kernelweave.tables.plans import FEWEST_ROWS, ColumnPlan, is_identifier, plan_column
from kernelweave.tables.written import WrittenNumbers

from .categories import RARE, Categories, partition
from .encoded import Dimension, NumberBlock, repeated

if TYPE_CHECKING:
    from skrub import StringEncoder

# skrub's default; each component adds to the cost of every pass over pairs of rows
_MOST_COMPONENTS = 30
_IDENTIFIER = (
    "looks like a row ID",
    Message("to use it, {as_number}", as_number="set its kind to 'number'"),
)
# With fewer texts for a component, new ones are further from those of training than these are from
# each other. Folds share the components, so that their scores do not show it.
_FEW_TEXTS = 10
_FEW = (
    "So few different texts that the validation score may be too high: compare it with that of a "
    "fit without this column."
)
# a category that is not rare must cover this share of the rows, or the column only identifies them
_RECURRING = 0.1
_WORDS = (
    "nearly every value is different, as in IDs or free text",
    "to use what its rows have in common, such as a keyword, make that a column",
)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column that becomes the strongest components of its texts.

    They are those of TF-IDF weights of parts of words, three and four letters long (latent semantic
    analysis, by skrub's `StringEncoder`). A missing text is at the origin, like a text that shares
    nothing with those of training.
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
            # with few short texts, skrub returns the TF-IDF weights instead of components
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
    def remark(self) -> str:
        """A sentence for the summary."""
        return f"Texts: the {self.n_components} strongest components of what they share."

    def dimensions(self) -> list[Dimension]:
        """Return what its components are."""
        names = [f"{self.name} text {k}" for k in range(1, self.n_components + 1)]
        return [Dimension(name, self.name, "text") for name in names]


class ColumnRemarks:
    """What the summary says of each column, and which columns are ignored."""

    def __init__(self) -> None:
        self._remarks: dict[str, list[str]] = {}
        self._left_out: set[str] = set()

    def add(self, column: str, sentence: str) -> None:
        """Add a sentence to the remark of a column."""
        self._remarks.setdefault(column, []).append(sentence)

    def leave_out(self, column: str, sentence: str, advice: str = "") -> None:
        """Ignore a column: `sentence` is the reason, `advice` how the user can have it used."""
        self._left_out.add(column)
        how = Message(" ({advice})", advice=advice) if advice else ""
        self.add(column, Message("Ignored: {why}{how}.", why=sentence, how=how))

    def with_remarks(self, plans: list[ColumnPlan]) -> list[ColumnPlan]:
        """Return the plans, in the order of the table, with the remarks of their columns."""
        return [
            plan._replace(
                kind="ignore" if plan.column in self._left_out else plan.kind,
                remark=_joined(self._remarks.get(plan.column, [])),
            )
            for plan in plans
        ]


def _joined(sentences: list[str]) -> str:
    """Return sentences as one text; a single one stays as it is, a `Message` perhaps."""
    return sentences[0] if len(sentences) == 1 else " ".join(sentences)


class NumberColumn(NamedTuple):
    """A column that becomes numbers: one, or the parts of its dates."""

    position: int
    name: str
    reading: WrittenNumbers | DateParts | None = None

    @property
    def parts(self) -> DateParts | None:
        """The parser of its dates, ``None`` for numbers."""
        return self.reading if isinstance(self.reading, DateParts) else None

    def dimensions(self) -> list[Dimension]:
        """Return what its numbers are."""
        if self.parts is None:
            return [Dimension(self.name, self.name, "number")]
        return [Dimension(f"{self.name} {p}", self.name, "date part") for p in self.parts.names]


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """A column that becomes codes of categories."""

    position: int
    name: str
    categories: Categories

    def dimension(self) -> Dimension:
        """Return what its codes are."""
        return Dimension(
            self.name, self.name, "category", self.categories.labels, self.categories.frequencies
        )


class ColumnKinds:
    """The columns of a training table by their kind: numbers and dates, categories, free text.

    - `plans`: the kind of every column, ignored ones included
    - `numbers`: columns of numbers and dates, each with its training values
    - `words`: columns of categories, as position, name and training values
    - `texts`: columns of free text, already fitted
    """

    def __init__(self, table: RawTable, remarks: ColumnRemarks, kinds: Mapping[str, str]) -> None:
        self.plans: list[ColumnPlan] = []
        self.numbers: list[tuple[NumberColumn, Numbers | Dates | Words]] = []
        self.words: list[tuple[int, str, Words]] = []
        self.texts: list[TextColumn] = []
        seen: dict[tuple[tuple[str, ...], bytes], str] = {}
        for position, (name, raw) in enumerate(zip(table.names, table.columns, strict=True)):
            wanted = kinds.get(name)
            if raw.missing.all() and wanted != "ignore":
                self.plans.append(ColumnPlan(name, "ignore", "no values"))
                remarks.leave_out(name, "no values")
                continue
            plan, read = plan_column(name, raw, kind=wanted, comma=table.comma)
            self.plans.append(plan)
            if wanted is None and table.named and is_identifier(name, read):
                _leave_out(name, _IDENTIFIER, remarks)
                continue
            if plan.remark:
                remarks.add(name, plan.remark)
            if plan.kind in ("number", "date"):
                self.numbers.append((NumberColumn(position, name, plan.reading), read))
            elif isinstance(read, Words) and plan.kind == "text":
                first = seen.setdefault((read.labels, read.codes.tobytes()), name)
                if len(read.labels) == 1 and not read.missing.any():
                    remarks.leave_out(name, f"constant ({read.labels[0]!r})")
                elif first != name:
                    remarks.leave_out(name, f"duplicate of {first!r}")
                else:
                    self.texts.append(TextColumn.fit(position, name, read))
                    remarks.add(name, self.texts[-1].remark)
                    if len(read.labels) < _FEW_TEXTS * self.texts[-1].n_components:
                        remarks.add(name, _FEW)
            elif isinstance(read, Words) and plan.used:
                self.words.append((position, name, read))


def fit_numbers(
    columns: list[NumberColumn],
    values: FloatArray,
    weight: FloatArray | None,
    remarks: ColumnRemarks,
) -> tuple[NumberBlock, list[Dimension]]:
    """Fit the imputation of numbers, and drop constant and duplicate columns.

    - `columns`: in the order of ``values``
    - `values` of shape (n_rows, n_values): what the columns give
    - `weight` of shape (n_rows,): 2 counts a row twice
    - `remarks`: gets a sentence for each column that is imputed or dropped

    Returns `block`: what was learned; `dimensions`: what each column of its result is.
    """
    groups = [column.dimensions() for column in columns]
    dimensions = [each for group in groups for each in group]
    owners = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    block = NumberBlock.fit(values, owners, weight)
    indicated = [dimensions[j].source for j in block.indicators]
    with_missing = set(indicated)
    used: dict[str, list[str]] = {column.name: [] for column in columns}
    for j in block.kept:
        used[dimensions[j].source].append(dimensions[j].name)
    ends = np.cumsum([len(group) for group in groups]) - 1
    for column, end in zip(columns, ends, strict=True):
        name, own = column.name, column.name in with_missing
        if column.parts is not None:
            remarks.add(name, _date_remark(column, column.parts, used[name]))
        if block.has_missing[end]:
            remarks.add(name, _missing_remark(values[:, end], column, block.medians[end], own))
        if not used[name]:
            why = _why_unused(values, int(end), block, dimensions)
            if own:
                remarks.add(name, f"Only missing values are used: {why}.")
            else:
                remarks.leave_out(name, why)
    indicators = [Dimension(f"{name} missing", name, "missing") for name in indicated]
    return block, [*(dimensions[j] for j in block.kept), *indicators]


def fit_categories(
    words: list[tuple[int, str, Words]],
    weight: FloatArray | None,
    remarks: ColumnRemarks,
    *,
    max_categories: int,
    min_frequency: float,
    asked: Collection[str] = (),
) -> list[CategoryColumn]:
    """Fit the categories of each column, and drop constant and duplicate columns.

    `asked`: columns that the user made categories; they stay even if most values are unique.
    """
    kept: list[CategoryColumn] = []
    seen: dict[bytes, str] = {}
    for position, name, column in words:
        fit = partial(Categories.fit, column, max_categories=max_categories, weight=weight)
        categories = fit(min_frequency=min_frequency)
        by_chance = len(column) < FEWEST_ROWS and RARE not in categories.labels
        if categories.recurring <= _RECURRING and not by_chance and name not in asked:
            categories = fit(min_frequency=np.inf)
        if categories.labels == (RARE,):
            _leave_out(name, _WORDS, remarks)
            continue
        if len(categories.labels) == 1:
            remarks.leave_out(name, f"constant ({categories.labels[0]!r})")
            continue
        first = seen.setdefault(partition(categories.transform(column)), name)
        if first != name:
            remarks.leave_out(name, f"same groups of rows as {first!r}")
            continue
        remarks.add(name, _category_remark(categories, len(column), int(column.missing.sum())))
        kept.append(CategoryColumn(position, name, categories))
    return kept


def _leave_out(name: str, reason: tuple[str, str], remarks: ColumnRemarks) -> None:
    """Ignore a column and warn, as the user may want it used after all."""
    why, advice = reason
    remarks.leave_out(name, why, advice)
    said = "column {name!r} is ignored: {why} ({advice})"
    said = Message(said, name=name, why=why, advice=advice)
    warnings.warn(said, ColumnWarning, stacklevel=3)


def _date_remark(column: NumberColumn, parts: DateParts, used: list[str]) -> str:
    read_as = f" with the format {parts.format}" if parts.format else ""
    names = ", ".join(name[len(column.name) + 1 :] for name in used)
    return f"Parsed{read_as} into {names}." if names else f"Parsed{read_as}."


def _missing_remark(values: FloatArray, column: NumberColumn, median: float, own: bool) -> str:
    filled = "the median" if column.parts else f"the median {median:.6g}"
    shown = "an indicator" if own else "the indicator of another column"
    n_missing = int(np.isnan(values).sum())
    return f"{n_missing} of {len(values)} values missing: replaced by {filled}, with {shown}."


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


def _category_remark(categories: Categories, n_rows: int, n_missing: int) -> str:
    parts = [f"{len(categories.labels)} categories."]
    if categories.n_rare and categories.recurring == 0.0:
        parts = ["Nearly every value is different: only whether there is one is used."]
    elif categories.n_rare:
        parts.append(f"{categories.n_rare} rare values are merged into one.")
    if n_missing:
        parts.append(f"{n_missing} of {n_rows} values missing: a category of their own.")
    return " ".join(parts)
