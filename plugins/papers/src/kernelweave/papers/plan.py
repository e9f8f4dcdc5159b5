"""How the reproduction of a published table or figure is described.

The target of a `PaperTable` is a function from a `Request` to a `Plan`. Whoever runs the plan (the
``kernelweave tables`` command does) estimates its time, computes its cells in any order and in any
process, keeps each result as JSON, and hands all of them to ``present``.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from kernelweave.kernels_core import ComponentSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure
Value = str | float | int | bool | None
# what the cells of a plan gave, by key; JSON can hold it
Results: TypeAlias = "Mapping[str, Any]"
PAPER = "(paper)"
# what marks samples that are not in a file of the data folder
FROM_SKLEARN, NO_DATA = "scikit-learn: ", "no data: "
# files whose samples scikit-learn ships, and its loaders
SHIPPED = {
    "iris.csv": "load_iris",
    "wine.csv": "load_wine",
    "breastcancer_wdbc.csv": "load_breast_cancer",
}
HOW_TO_SET = "set KERNELWEAVE_DATA to the folder that holds the papers' data sets, or pass --data"


class MissingDataError(FileNotFoundError):
    """A reproduction needs a data file that is not on this machine."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for.

    Parameters
    ----------
    quick : bool
        Every row and method, but one split and at most `most_samples` samples, marked as reduced.
    folder : Path or None
        Where the papers' data sets lie: one CSV file a set.
    most_samples : int
        The samples of a quick run.
    subsample : int, optional
        Samples at most, quick or not; cells that have more are marked as reduced.
    repeats : int, optional
        Random splits of each data set, where a reproduction has several.
    """

    quick: bool = False
    folder: Path | None = None
    most_samples: int = 500
    subsample: int | None = None
    repeats: int | None = None

    @property
    def sample_limit(self) -> int | None:
        """Return the samples at most that were asked for, or None."""
        if self.quick:
            return min(self.most_samples, self.subsample or self.most_samples)
        return self.subsample

    def data_file(self, name: str) -> str:
        """Return where the samples of a file are, for the argument of a cell.

        That is its path in the data folder; where it is not there, the mark of the same samples in
        scikit-learn, or that of a missing file: `Cell.missing_files` names it, and who reads it is
        refused.

        Examples
        --------
        >>> Request().data_file("wine.csv"), Request().data_file("sonar.csv")
        ('scikit-learn: wine.csv', 'no data: sonar.csv')
        """
        path = None if self.folder is None else self.folder / name
        if path is not None and path.is_file():
            return str(path)
        return f"{FROM_SKLEARN if name in SHIPPED else NO_DATA}{name}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One piece of work whose result is kept.

    - `key`: unique in its plan, such as ``"wine/SimpleMKL"``
    - `compute`: a function of a module (not a lambda: it may run in another process), called with
      ``arguments``; returns what JSON can hold
    - `arguments`: what JSON can hold; a result is kept for the same ones of the same version only
    - `seconds`: an estimate of its time on one core
    - `is_reduced`: whether the cell does less than the paper did, as ``quick`` asks
    """

    key: str
    compute: Callable[..., object]
    arguments: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 1.0
    is_reduced: bool = False

    def missing_files(self) -> list[str]:
        """Return the data files that the cell reads and that are not there."""
        return list(dict.fromkeys(_missing_in(list(self.arguments.values()))))


def cell(
    key: str,
    seconds: float,
    is_reduced: bool,
    compute: Callable[..., object],
    *args: Any,
    **more: Any,
) -> Cell:
    """Return a `Cell` that calls ``compute(*args, **more)``."""
    given = signature(compute).bind(*args, **more).arguments
    return Cell(key=key, compute=compute, arguments=given, seconds=seconds, is_reduced=is_reduced)


def _missing_in(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _missing_in(item)
    elif isinstance(value, str) and value.startswith(NO_DATA):
        yield value.removeprefix(NO_DATA)


@dataclass(frozen=True)
class Sheet:
    """A table to show.

    - `columns`: the heads; one that ends in ``(paper)`` holds what the paper prints
    - `rows`: text, numbers, or None: in a paper's column for what it leaves empty, in a column of
      ours for what was not computed. What cannot have a figure says in a word why
    - `notes`: sentences below the table: what differs from the paper and why
    - `is_aggregate`: whether it is over all cells of its table: a run without some of them does not
      show it
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()
    is_aggregate: bool = False

    def without_empty_columns(self) -> Sheet:
        """Return the sheet without the columns in which no row that was run has a value.

        Examples
        --------
        >>> rows = [("wine", 0.5, None), ("iris", "not run", "not run")]
        >>> Sheet("t", ("data", "error", "±"), rows).without_empty_columns().columns
        ('data', 'error')
        """
        kept = [
            i
            for i in range(len(self.columns))
            if not self.rows or any(i < len(row) and _is_told(row[i]) for row in self.rows)
        ]
        rows = tuple(tuple(row[i] for i in kept if i < len(row)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)

    def empty(self) -> list[str]:
        """Return where a figure of ours is missing or not finite, as ``"row, column"``.

        A sheet without a row is one such place.

        Examples
        --------
        >>> Sheet("t", ("data", "ours", "theirs (paper)"), [("wine", None, None)]).empty()
        ['wine, ours']
        """
        if not self.rows:
            return ["every row"]
        places = []
        for row in self.rows:
            for i, head in enumerate(self.columns):
                value = row[i] if i < len(row) else None
                lost = value is None or value == ""
                lost = lost or (isinstance(value, float) and not math.isfinite(value))
                if lost and not head.endswith(PAPER):
                    places.append(f"{row[0]}, {head}")
        return places


def _is_told(value: Value) -> bool:
    """Return whether a cell says more than that its row was not run."""
    return value is not None and not str(value).startswith("not run")


@dataclass(frozen=True)
class Drawing:
    """A picture to show.

    `description`: what a reader who does not see it must know; `draw`: draws into an empty figure.
    """

    title: str
    description: str
    draw: Callable[[Figure], None]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Plan:
    """The work of a reproduction and how to show it.

    `cells`: in the order of their importance, each with a key of its own, else a ValueError;
    `present`: from the results by key, in which a cell that failed is absent.
    """

    cells: Sequence[Cell]
    present: Callable[[Results], Sequence[Sheet | Drawing]]

    def __post_init__(self) -> None:
        keys = [cell.key for cell in self.cells]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"the keys of cells must differ, got {twice[0]!r} more than once")


@dataclass(frozen=True, kw_only=True)
class PaperTable(ComponentSpec):
    """A reproduction of a published table or figure.

    Its target is imported when the table is planned: a function from a `Request` and the settings,
    which say which of its tables it is, to a `Plan`. `paper`: which paper and which of its tables.
    """

    paper: str
    settings: Mapping[str, object] = field(default_factory=dict)

    def plan(self, request: Request) -> Plan:
        """Return the plan; nothing is computed yet, and a cell without its data file says so."""
        planned: Plan = self.load()(request, **self.settings)
        return planned


def tables() -> dict[str, PaperTable]:
    """Return every table and figure by name, as ``catalogue.csv`` lists them.

    Returns
    -------
    dict of str to PaperTable
        Nothing of a paper is imported before a table is planned.

    Examples
    --------
    >>> from kernelweave.papers import tables
    >>> tables()["vv-1"].paper
    'Sindhwani, Minh and Lozano 2013, Table 1'
    """
    catalogue = {}
    with (files(__package__) / "catalogue.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            pairs = (each.partition("=")[::2] for each in row.pop("settings").split("|") if each)
            settings = {name: int(text) if text.isdigit() else text for name, text in pairs}
            row["target"] = f"kernelweave.papers.{row['target']}"
            catalogue[row["name"]] = PaperTable(**row, settings=settings)
    return catalogue
