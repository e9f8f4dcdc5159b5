"""What the training rows of a table say about its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.exceptions import Message, warn
from kernelweave.tables.columns import Raw, RawTable, Words
from kernelweave.tables.dates import DateParts
from kernelweave.tables.errors import ColumnWarning
from kernelweave.tables.plans import FEWEST_ROWS, ColumnPlan, is_identifier, plan_column
from kernelweave.tables.written import WrittenNumbers

from .categories import RARE, Categories
from .encoded import Dimension, NumberBlock, repeated

if TYPE_CHECKING:
    from numpy.typing import NDArray

# each component adds to the cost of every pass over pairs of rows
_MOST_COMPONENTS = 30
# Parts of words are told apart by a hash: what a text becomes depends on no other text.
_HASHES = 2**13
# components of smaller singular values, as a share of the first, are rounding
_NO_COMPONENT = 1e-6
# entries of a component that are as close, as a share, are equal but for rounding
_TIED = 1e-6
_IDENTIFIER = (
    "looks like a row ID",
    Message("to use it, {as_number}", as_number="set its kind to 'number'"),
)
# a category that is not rare must cover this share of the rows, or the column only identifies them
_RECURRING = 0.1
_WORDS = (
    "nearly every value is different, as in IDs or free text",
    "to use what its rows have in common, such as a keyword, make that a column",
)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column that becomes the strongest components of its texts: latent semantic analysis.

    They are those of how often parts of words occur, three and four letters long, in texts of
    length 1. A missing text is at the origin, like one that shares nothing with those of training.

    - `known_hashes` of shape (n_known,): the hashes that texts of training have
    - `bases` of shape (1 + n_folds, n_components, n_known): the components of all texts, then those
      of each fold's training texts, zero where these have fewer
    """

    position: int
    name: str
    known_hashes: Index
    bases: NDArray[np.float32]

    @classmethod
    def fit(cls, position: int, name: str, words: Words) -> TextColumn:
        """Learn the components from training rows, equal texts counted once."""
        basis, hashes = _components(words, _MOST_COMPONENTS)
        return cls(position, name, hashes, basis[None])

    def with_folds(self, words: Words, parts: Sequence[Index]) -> TextColumn:
        """Return the column with the components of parts of the training rows too."""
        bases = np.zeros((1 + len(parts), *self.bases.shape[1:]), dtype=np.float32)
        bases[0] = self.bases[0]
        for out, part in zip(bases[1:], parts, strict=True):
            some = words.take(part)
            if some.labels:
                basis, hashes = _components(some, len(out))
                out[: len(basis), np.searchsorted(self.known_hashes, hashes)] = basis
        return replace(self, bases=bases)

    def transform(self, words: Words, *, folds: bool = False) -> FloatArray:
        """Return the components of rows, (n_rows, 1, n_components), of folds (n_rows, 1 + n_folds,
        n_components).
        """
        bases = self.bases if folds else self.bases[:1]
        out = np.zeros((len(words.labels) + 1, *bases.shape[:2]))
        if words.labels:
            flat = bases.reshape(-1, len(self.known_hashes))
            values = _parts_of_words(words.labels)[:, self.known_hashes] @ flat.T
            out[:-1] = values.reshape(-1, *bases.shape[:2])
        return np.asarray(out[words.codes])

    @property
    def n_components(self) -> int:
        """Number of its dimensions."""
        return int(self.bases.shape[1])

    def dimensions(self) -> list[Dimension]:
        """Return what its components are."""
        names = [f"{self.name} text {k}" for k in range(1, self.n_components + 1)]
        return [Dimension(name, self.name, "text") for name in names]


def _parts_of_words(texts: Collection[str]) -> Any:
    """Return how often texts have each part of words, with norm 1; sparse, (n, n_hashes)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=_HASHES)
    return vectorizer.transform(texts)


def _components(words: Words, most: int) -> tuple[NDArray[np.float32], Index]:
    """Return the strongest right singular vectors of texts, and the hashes that they are of."""
    from sklearn.decomposition import TruncatedSVD

    # sorted, so that the order of rows changes nothing
    weights = _parts_of_words(sorted(words.labels))
    hashes = np.unique(weights.indices).astype(np.intp)
    weights = weights[:, hashes]
    if min(weights.shape) == 1:
        return weights[:1].toarray().astype(np.float32), hashes
    n_components = min(most, min(weights.shape) - 1)
    svd = TruncatedSVD(n_components, algorithm="arpack", random_state=0).fit(weights)
    strong = svd.singular_values_ > _NO_COMPONENT * svd.singular_values_[0]
    basis = svd.components_[strong]
    # letters of one word have entries of one size: the first is to be positive, not any by rounding
    largest = np.abs(basis) > (1.0 - _TIED) * np.abs(basis).max(axis=1, keepdims=True)
    signs = np.sign(np.take_along_axis(basis, largest.argmax(axis=1)[:, None], axis=1))
    return (signs * basis).astype(np.float32), hashes


Plans: TypeAlias = dict[str, ColumnPlan]


def remark(plans: Plans, name: str, sentence: str) -> None:
    """Add a sentence to the plan of a column; each stays the `Message` that it may be."""
    before = plans[name].remark
    both = Message("{before} {sentence}", before=before, sentence=sentence) if before else sentence
    plans[name] = plans[name]._replace(remark=both)


def leave_out(plans: Plans, name: str, sentence: str, advice: str = "") -> None:
    """Ignore a column: `sentence` is the reason, `advice` how the user can have it used."""
    how = Message(" ({advice})", advice=advice) if advice else ""
    remark(plans, name, Message("Ignored: {why}{how}.", why=sentence, how=how))
    plans[name] = plans[name]._replace(kind="ignore")


class NumberColumn(NamedTuple):
    """A column that becomes numbers: one and its sides, or the parts of its dates."""

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
            sides = self.reading.sides if isinstance(self.reading, WrittenNumbers) else ()
            of_sides = [Dimension(f"{self.name} {side}", self.name, "side") for side in sides]
            return [*of_sides, Dimension(self.name, self.name, "number")]
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


class Sorted(NamedTuple):
    """The columns of a training table by their kind.

    - `plans`: of every column, ignored ones included
    - `numbers`: columns of numbers and dates, each with its training values
    - `words`: columns of categories, as position, name and training values
    - `texts`: columns of free text, already fitted
    """

    plans: Plans
    numbers: list[tuple[NumberColumn, Raw]]
    words: list[tuple[int, str, Words]]
    texts: list[TextColumn]


def sort_columns(table: RawTable, kinds: Mapping[str, str]) -> Sorted:
    """Return the columns of a training table by their kind; `kinds`: what the user says of them."""
    columns = plans, numbers, words, texts = Sorted({}, [], [], [])
    seen: dict[tuple[tuple[str, ...], bytes], str] = {}
    for position, (name, raw) in enumerate(zip(table.names, table.columns, strict=True)):
        wanted = kinds.get(name)
        if raw.missing.all() and wanted != "ignore":
            plans[name] = ColumnPlan(name, "ignore", "no values")
            leave_out(plans, name, "no values")
            continue
        plan, read = plan_column(name, raw, kind=wanted, comma=table.comma)
        plans[name] = plan
        if wanted is None and table.named and is_identifier(name, read):
            if len(table.names) > 1:
                _leave_out(name, _IDENTIFIER, plans)
                continue
            # without it there is nothing to learn from: a series may be told by its number
            text = "looks like a row ID, and is used as the only column"
            warn(f"column {name!r} {text}", ColumnWarning)
            remark(plans, name, f"{text[0].upper()}{text[1:]}.")
        if plan.kind in ("number", "date"):
            numbers.append((NumberColumn(position, name, plan.reading), read))
        elif isinstance(read, Words) and plan.kind == "text":
            first = seen.setdefault((read.labels, read.codes.tobytes()), name)
            if len(read.labels) == 1 and not read.missing.any():
                leave_out(plans, name, f"constant ({read.labels[0]!r})")
            elif first != name:
                leave_out(plans, name, f"duplicate of {first!r}")
            else:
                texts.append(TextColumn.fit(position, name, read))
                n = texts[-1].n_components
                remark(plans, name, f"Texts: the {n} strongest components of what they share.")
        elif isinstance(read, Words) and plan.used:
            words.append((position, name, read))
    return columns


def fit_numbers(
    columns: list[NumberColumn], values: FloatArray, weight: FloatArray | None, plans: Plans
) -> tuple[NumberBlock, list[Dimension]]:
    """Fit the imputation of numbers, and drop constant and duplicate columns.

    - `columns`: in the order of ``values``
    - `values` of shape (n_rows, n_values): what the columns give
    - `weight` of shape (n_rows,): 2 counts a row twice
    - `plans`: get a sentence for each column that is imputed or dropped

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
        name, has_indicator = column.name, column.name in with_missing
        if column.parts is not None:
            remark(plans, name, _date_remark(column, column.parts, used[name]))
        if block.has_missing[end]:
            median = block.medians[end]
            remark(plans, name, _missing_remark(values[:, end], column, median, has_indicator))
        if not used[name]:
            why = _why_unused(values, int(end), block, dimensions)
            if has_indicator:
                remark(plans, name, f"Only missing values are used: {why}.")
            else:
                leave_out(plans, name, why)
    indicators = [Dimension(f"{name} missing", name, "missing") for name in indicated]
    return block, [*(dimensions[j] for j in block.kept), *indicators]


def fit_categories(
    words: list[tuple[int, str, Words]],
    weight: FloatArray | None,
    plans: Plans,
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
            _leave_out(name, _WORDS, plans)
            continue
        if len(categories.labels) == 1:
            leave_out(plans, name, f"constant ({categories.labels[0]!r})")
            continue
        # the same for columns that part the rows in the same way
        rows = pd.factorize(categories.transform(column))[0]
        first = seen.setdefault(rows.tobytes(), name)
        if first != name:
            leave_out(plans, name, f"same groups of rows as {first!r}")
            continue
        remark(plans, name, _category_remark(categories, len(column), int(column.missing.sum())))
        kept.append(CategoryColumn(position, name, categories))
    return kept


def _leave_out(name: str, reason: tuple[str, str], plans: Plans) -> None:
    """Ignore a column and warn, as the user may want it used after all."""
    why, advice = reason
    leave_out(plans, name, why, advice)
    text = "column {name!r} is ignored: {why} ({advice})"
    text = Message(text, name=name, why=why, advice=advice)
    warn(text, ColumnWarning)


def _date_remark(column: NumberColumn, parts: DateParts, used: list[str]) -> str:
    read_as = f" with the format {parts.format}" if parts.format else ""
    names = ", ".join(name[len(column.name) + 1 :] for name in used)
    return f"Parsed{read_as} into {names}." if names else f"Parsed{read_as}."


def _missing_remark(
    values: FloatArray, column: NumberColumn, median: float, has_indicator: bool
) -> str:
    filled = "the median" if column.parts else f"the median {median:.6g}"
    shown = "an indicator" if has_indicator else "the indicator of another column"
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
