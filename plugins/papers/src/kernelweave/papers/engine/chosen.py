"""From names to plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelweave.workbench.errors import CommandError, did_you_mean, one_line

from ..plan import Drawing, MissingDataError, Plan, Request, Sheet, Table

ALL = "all"
_NO_PLAN = Plan((), lambda _: ())


@dataclass(frozen=True)
class Chosen:
    """A table that was asked for; where data are missing it says which, and its plan is empty."""

    spec: Table
    plan: Plan
    missing: str = ""


def choose(names: Sequence[str], request: Request, known: Mapping[str, Table]) -> list[Chosen]:
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


def _planned(spec: Table, request: Request, *, forgiving: bool) -> Chosen:
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


def narrowed(chosen: Sequence[Chosen], dataset: str) -> list[Chosen]:
    """Return the tables that have a data set, with its cells and rows alone.

    The first part of a cell's key and the first column of a sheet name the data set; upper and
    lower case are the same. A set that no table has is refused with those that they have.
    """
    known: dict[str, None] = {}
    found = []
    for each in chosen:
        sets = [cell.key.split("/")[0] for cell in each.plan.cells]
        known |= dict.fromkeys(sets)
        pairs = zip(each.plan.cells, sets, strict=True)
        cells = [cell for cell, name in pairs if name.casefold() == dataset.casefold()]
        if cells:
            found.append(replace(each, plan=Plan(cells, _rows_of(each.plan, dataset))))
    if not found:
        raise CommandError(
            f"no table that was asked for has the data set {dataset!r}; "
            f"{did_you_mean(dataset, known, what='data sets')}"
        )
    return found


def _rows_of(plan: Plan, dataset: str) -> Callable[[Mapping[str, Any]], Sequence[Sheet | Drawing]]:
    """Return the plan's presentation, its sheets cut to the rows of one data set."""

    def present(results: Mapping[str, Any]) -> list[Sheet | Drawing]:
        shown: list[Sheet | Drawing] = []
        for item in plan.present(results):
            if isinstance(item, Drawing):
                continue
            rows = [row for row in item.rows if str(row[0]).casefold() == dataset.casefold()]
            if rows:
                shown.append(replace(item, rows=rows))
        return shown

    return present
