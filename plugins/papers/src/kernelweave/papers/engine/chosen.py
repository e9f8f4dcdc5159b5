"""From names to plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernelweave.tables.errors import did_you_mean, one_line
from kernelweave.workbench.errors import CommandError

from ..data import where_from
from ..plan import PAPER, Cell, Drawing, PaperTable, Plan, Request, Results, Sheet, Value

ALL = "all"
_NO_PLAN = Plan((), lambda _: ())


@dataclass(frozen=True)
class Chosen:
    """A table that was asked for.

    `missing`: why cells are not in its plan, such as data files that are not there; `n_missing`:
    how many such cells. `is_part`: whether only some of its data sets or methods were asked for.
    """

    spec: PaperTable
    plan: Plan
    missing: str = ""
    n_missing: int = 0
    is_part: bool = False


def choose(names: Sequence[str], request: Request, known: Mapping[str, PaperTable]) -> list[Chosen]:
    """Return the plans of these names, in the order given; ``all`` is every one.

    An unknown name is refused. With ``all``, a table that cannot be planned says so; one that was
    asked for by name is refused.
    """
    asks_all = ALL in names
    chosen: dict[str, Chosen] = {}
    for name in known if asks_all else names:
        if name not in known:
            raise CommandError(f"no table {name!r}; {did_you_mean(name, known, what='tables')}")
        chosen[name] = _planned(known[name], request, forgiving=asks_all)
    return list(chosen.values())


def _planned(spec: PaperTable, request: Request, *, forgiving: bool) -> Chosen:
    try:
        return Chosen(spec, spec.plan(request))
    except Exception as error:
        if not forgiving:
            raise
        what = f"it cannot be planned: {type(error).__name__}: {one_line(error)}"
        return Chosen(spec, _NO_PLAN, what)


def with_data(chosen: Sequence[Chosen], folder: Path | None) -> list[Chosen]:
    """Return the tables with the cells whose data are there; what else there is says "no data".

    Refused where no table has a cell that can be computed.
    """
    tables = []
    for each in chosen:
        there = [cell for cell in each.plan.cells if not cell.missing_files()]
        lost = [cell for cell in each.plan.cells if cell.missing_files()]
        if lost:
            missing = where_from(files_missing([each]), folder)
            plan = Plan(there, partial(_lacking, each.plan.present, _names(there), _names(lost)))
            each = replace(each, plan=plan, missing=missing, n_missing=len(lost))
        tables.append(each)
    if tables and all(each.missing and not each.plan.cells for each in tables):
        raise CommandError(f"{tables[0].spec.name}: {tables[0].missing}")
    return tables


def files_missing(chosen: Sequence[Chosen]) -> list[str]:
    """Return the data files that cells of these tables read and that are not there."""
    names = (name for each in chosen for cell in each.plan.cells for name in cell.missing_files())
    return list(dict.fromkeys(names))


def _names(cells: Sequence[Cell]) -> set[str]:
    """Return the parts of the keys of cells: data sets, methods, splits."""
    return {name for cell in cells for name in cell.key.split("/")}


def _lacking(
    present: Callable[[Results], Sequence[Sheet | Drawing]],
    there: Set[str],
    lost: Set[str],
    results: Results,
) -> list[Sheet | Drawing]:
    """Return what a plan shows, with "no data" for figures of rows without a data file."""
    return [
        item if isinstance(item, Drawing) else _filled(item, there, lost - there)
        for item in present(results)
    ]


def _filled(sheet: Sheet, there: Set[str], lost: Set[str]) -> Sheet:
    ours = [i for i, head in enumerate(sheet.columns) if not head.endswith(PAPER)]
    if any(isinstance(row[i], int | float) for row in sheet.rows for i in ours if i < len(row)):
        sheet = sheet.without_empty_columns()
    rows: list[Sequence[Value]] = []
    for row in sheet.rows:
        names = {value for value in row[:2] if isinstance(value, str)}
        if names & lost or not names & there:
            row = [
                "no data" if value is None and not head.endswith(PAPER) else value
                for head, value in zip(sheet.columns, row, strict=False)
            ]
        rows.append(row)
    return replace(sheet, rows=rows)


def narrowed(
    chosen: Sequence[Chosen], datasets: Sequence[str], methods: Sequence[str] = ()
) -> list[Chosen]:
    """Return the tables that have these data sets and methods, with their cells and rows alone.

    The first part of a cell's key and the first column of a sheet name the data set, the second
    part of the key the method; upper and lower case are the same, and none asks for all. What is
    over all of them is not shown. A name that no table has is refused with those that they have.
    """
    tables = list(chosen)
    for part, (what, names) in enumerate({"data set": datasets, "method": methods}.items()):
        if names:
            tables = _with_part(tables, part, what, names)
    return [
        replace(each, plan=Plan(each.plan.cells, partial(_part_of, each.plan)), is_part=True)
        for each in tables
    ]


def _with_part(
    chosen: Sequence[Chosen], part: int, what: str, names: Sequence[str]
) -> list[Chosen]:
    """Return the tables with the cells whose key has one of these names at that place."""
    wanted = {name.casefold() for name in names}
    known: dict[str, None] = {}
    tables = []
    for each in chosen:
        keys = [[*cell.key.split("/"), ""] for cell in each.plan.cells]
        # a table of one data set has its methods first and then draws, by their numbers
        parts = [key[0] if key[1].isdecimal() else key[part] for key in keys]
        known |= dict.fromkeys(parts)
        pairs = zip(each.plan.cells, parts, strict=True)
        cells = [cell for cell, name in pairs if name.casefold() in wanted]
        if cells:
            tables.append(replace(each, plan=replace(each.plan, cells=cells)))
    lost = [name for name in names if name.casefold() not in {each.casefold() for each in known}]
    if lost or not tables:
        raise CommandError(
            f"no table that was asked for has the {what} {(lost or names)[0]!r}; "
            f"{did_you_mean((lost or names)[0], known, what=f'{what}s')}"
        )
    return tables


def _part_of(plan: Plan, results: Mapping[str, object]) -> list[Sheet]:
    """Return the sheets of some data sets and methods, cut to the rows that have a figure."""
    keys = {cell.key.split("/")[0].casefold() for cell in plan.cells}
    shown = []
    for item in plan.present(results):
        if isinstance(item, Drawing) or item.is_aggregate:
            continue
        ours = [i for i, head in enumerate(item.columns) if not head.endswith(PAPER)]
        rows = [
            row
            for row in item.rows
            if any(isinstance(row[i], int | float) for i in ours if i < len(row))
        ]
        named = [row for row in rows if str(row[0]).casefold() in keys]
        if rows:
            shown.append(replace(item, rows=named or rows))
    return shown
