"""From names to plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from kernelweave.tables.errors import did_you_mean, one_line
from kernelweave.workbench.errors import CommandError

from ..plan import Drawing, MissingDataError, PaperTable, Plan, Request, Sheet

ALL = "all"
_NO_PLAN = Plan((), lambda _: ())


@dataclass(frozen=True)
class Chosen:
    """A table that was asked for; where data are missing it says which, and its plan is empty."""

    spec: PaperTable
    plan: Plan
    missing: str = ""


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
    except MissingDataError as error:
        if not forgiving:
            raise CommandError(f"{spec.name}: {error}") from error
        return Chosen(spec, _NO_PLAN, str(error))
    except Exception as error:
        if not forgiving:
            raise
        what = f"it cannot be planned: {type(error).__name__}: {one_line(error)}"
        return Chosen(spec, _NO_PLAN, what)


def narrowed(
    chosen: Sequence[Chosen], datasets: Sequence[str], methods: Sequence[str] = ()
) -> list[Chosen]:
    """Return the tables that have these data sets and methods, with their cells and rows alone.

    The first part of a cell's key and the first column of a sheet name the data set, the second
    part of the key the method; upper and lower case are the same, and none asks for all. A sheet
    that names no set is one over the sets: it stays where it has all its figures. A name that no
    table has is refused with those that they have.
    """
    found = list(chosen)
    sets = {cell.key.split("/")[0].casefold() for each in chosen for cell in each.plan.cells}
    for part, (what, names) in enumerate({"data set": datasets, "method": methods}.items()):
        if names:
            found = _with_part(found, part, what, names)
    if not datasets:
        return found
    return [
        replace(each, plan=Plan(each.plan.cells, _rows_of(each.plan, datasets, sets)))
        for each in found
    ]


def _with_part(
    chosen: Sequence[Chosen], part: int, what: str, names: Sequence[str]
) -> list[Chosen]:
    """Return the tables with the cells whose key has one of these names at that place."""
    wanted = {name.casefold() for name in names}
    known: dict[str, None] = {}
    found = []
    for each in chosen:
        parts = [[*cell.key.split("/"), ""][part] for cell in each.plan.cells]
        known |= dict.fromkeys(parts)
        pairs = zip(each.plan.cells, parts, strict=True)
        cells = [cell for cell, name in pairs if name.casefold() in wanted]
        if cells:
            found.append(replace(each, plan=replace(each.plan, cells=cells)))
    lost = [name for name in names if name.casefold() not in {each.casefold() for each in known}]
    if lost or not found:
        raise CommandError(
            f"no table that was asked for has the {what} {(lost or names)[0]!r}; "
            f"{did_you_mean((lost or names)[0], known, what=f'{what}s')}"
        )
    return found


def _rows_of(
    plan: Plan, datasets: Sequence[str], sets: Set[str]
) -> Callable[[Mapping[str, object]], Sequence[Sheet | Drawing]]:
    """Return the plan's presentation, its sheets cut to the rows of some of its data sets."""
    wanted = {name.casefold() for name in datasets}

    def present(results: Mapping[str, object]) -> list[Sheet | Drawing]:
        shown: list[Sheet | Drawing] = []
        for item in plan.present(results):
            if isinstance(item, Drawing):
                continue
            names = [str(row[0]).casefold() for row in item.rows]
            rows = [row for row, name in zip(item.rows, names, strict=True) if name in wanted]
            if rows:
                shown.append(replace(item, rows=rows))
            elif not sets & set(names) and not item.empty():
                shown.append(item)
        return shown

    return present
