"""From names to plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelweave.workbench.errors import CommandError, did_you_mean, one_line

from ..plan import (
    Cell,
    Drawing,
    MissingDataError,
    Plan,
    Request,
    Sheet,
    Table,
)

ALL = "all"


@dataclass(frozen=True)
class Chosen:
    """A reproduction that was asked for.

    Parameters
    ----------
    spec : Table
    plan : Plan
        Empty where data are missing.
    missing : str
        Which data, or nothing.
    """

    spec: Table
    plan: Plan
    missing: str = ""

    @property
    def seconds(self) -> float:
        """The estimated time on one core."""
        return sum(cell.seconds for cell in self.plan.cells)


def choose(names: Sequence[str], request: Request, known: Mapping[str, Table]) -> list[Chosen]:
    """Return the plans of these names, in the order given; ``all`` is every one.

    Parameters
    ----------
    names : sequence of str
    request : Request
    known : mapping of str to Table
        What there is.

    Returns
    -------
    list of Chosen
        With ``all``, a reproduction whose data are missing is kept and says so.

    Raises
    ------
    CommandError
        If a name is unknown, or the data of a reproduction asked for by name are missing.
    """
    if not names:
        raise CommandError(f"name a table, or say {ALL}: {', '.join(known)}")
    asks_all = ALL in names
    chosen: dict[str, Chosen] = {}
    for name in known if asks_all else names:
        if name not in known:
            raise CommandError(f"no table {name!r}; {did_you_mean(name, known, what='tables')}")
        chosen[name] = _planned(known[name], request, forgiving=asks_all)
    return list(chosen.values())


def _planned(spec: Table, request: Request, *, forgiving: bool) -> Chosen:
    try:
        plan: Plan = spec.load()(request)
    except MissingDataError as error:
        if not forgiving:
            raise CommandError(f"{spec.name}: {error}") from error
        return Chosen(spec, Plan((), lambda _: ()), str(error))
    except Exception as error:
        if not forgiving:
            raise
        what = f"it cannot be planned: {type(error).__name__}: {one_line(error)}"
        return Chosen(spec, Plan((), lambda _: ()), what)
    keys = [cell.key for cell in plan.cells]
    if len(set(keys)) < len(keys):
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise CommandError(f"the table {spec.name!r} is broken: two cells are {twice[0]!r}")
    cells = tuple(replace(cell, arguments=dict(cell.arguments)) for cell in plan.cells)
    return Chosen(spec, replace(plan, cells=cells))


def narrowed(chosen: Sequence[Chosen], dataset: str) -> list[Chosen]:
    """Return the reproductions with the cells and rows of one data set alone.

    The first part of a cell's key and the first column of a sheet name the data set.

    Parameters
    ----------
    chosen : sequence of Chosen
    dataset : str
        Upper and lower case are the same.

    Returns
    -------
    list of Chosen
        Those that have the data set.

    Raises
    ------
    CommandError
        If none has it; the message lists what they have.
    """
    known: dict[str, None] = {}
    found = []
    for each in chosen:
        names = [cell.key.split("/")[0] for cell in each.plan.cells]
        known |= dict.fromkeys(names)
        wanted = [name.casefold() == dataset.casefold() for name in names]
        if any(wanted):
            cells = [
                cell for cell, is_wanted in zip(each.plan.cells, wanted, strict=True) if is_wanted
            ]
            present = _rows_of(each.plan, dataset)
            found.append(replace(each, plan=replace(each.plan, cells=cells, present=present)))
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


def cells_of(chosen: Sequence[Chosen]) -> list[tuple[str, Cell]]:
    """Return the cells of all reproductions with the names of theirs."""
    return [(each.spec.name, cell) for each in chosen for cell in each.plan.cells]
