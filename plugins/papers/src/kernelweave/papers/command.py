"""``kernelweave tables``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from kernelweave.workbench import console
from kernelweave.workbench.data_folder import data_folder
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.progress import count_bar

if TYPE_CHECKING:
    from .engine.chosen import Chosen
    from .engine.kept import Outcome

_Flag = Parameter(negative=())


def tables_command(
    *names: str,
    quick: Annotated[bool, _Flag] = False,
    dataset: str | None = None,
    subsample: int | None = None,
    repeats: int | None = None,
    data: Path | None = None,
    out: Path = Path("kernelweave-tables"),
    jobs: int | None = None,
    max_time: float | None = None,
    fresh: Annotated[bool, _Flag] = False,
    estimate: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> None:
    """Recompute tables and figures of papers, ours beside theirs.

    Results are kept as they come: a run that was stopped goes on where it was. Without a name,
    the tables are listed with the time they take.

    Parameters
    ----------
    names : str
        Tables by name, or all.
    quick : bool
        One split and at most 500 samples: does it run, and roughly what comes out?
    dataset : str
        One data set of the tables, by the name that they print.
    subsample : int
        Samples of a data set at most; a cell that has more says that it is reduced.
    repeats : int
        Random splits of a data set. Default: as many as the paper's.
    data : Path
        The folder with the papers' data sets; KERNELWEAVE_DATA without it.
    out : Path
        The folder for tables.md, tables.html, the pictures and the kept results.
    jobs : int
        Cells at a time, each in a process of its own. Default: in a quick run one for each core,
        else one.
    max_time : float
        Seconds after which no further cell is started.
    fresh : bool
        Compute again what is kept.
    estimate : bool
        Print the estimate and stop.
    json : bool
        Print what was written as JSON.
    """
    from .catalogue import tables
    from .engine.chosen import ALL, choose, narrowed
    from .engine.kept import KeptCells
    from .plan import Request

    for name, value, least in (
        ("jobs", jobs, 1),
        ("subsample", subsample, 50),
        ("repeats", repeats, 1),
    ):
        if value is not None and value < least:
            raise CommandError(f"--{name} must be at least {least}, got {value}")
    folder = data or data_folder()
    if folder is not None and not folder.is_dir():
        raise CommandError(f"the data folder {folder} does not exist")
    request = Request(quick=quick, folder=folder, subsample=subsample, repeats=repeats)
    chosen = choose(names or (ALL,), request, tables())
    if dataset is not None:
        chosen = narrowed(chosen, dataset)
    kept = KeptCells(out / "cells")
    outcomes = {} if fresh else _found(chosen, kept)
    if jobs is None:
        jobs = (os.cpu_count() or 1) if quick else 1
    if estimate or not names:
        _print_estimate(chosen, outcomes, jobs, as_json=json)
        return
    _say_estimate(chosen, kept, outcomes, jobs)
    _compute(chosen, kept, outcomes, jobs, max_time)
    distinct = _distinct(chosen, kept, outcomes)
    mode = "A quick run" if quick else "A full run"
    work = f"{len(distinct)} cells, {_minutes(sum(each.seconds for each in distinct))} of work"
    _finish(chosen, outcomes, out, f"{mode}: {work}.", as_json=json)


_Outcomes = dict[tuple[str, str], "Outcome"]


def _found(chosen: Sequence[Chosen], kept: Any) -> _Outcomes:
    """Return the results that are kept already."""
    from .engine.chosen import cells_of

    found = {(table, cell.key): kept.get(table, cell) for table, cell in cells_of(chosen)}
    return {key: outcome for key, outcome in found.items() if outcome is not None}


def _left(each: Chosen, outcomes: _Outcomes) -> list[Any]:
    return [cell for cell in each.plan.cells if (each.spec.name, cell.key) not in outcomes]


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _print_estimate(
    chosen: Sequence[Chosen], outcomes: _Outcomes, jobs: int, *, as_json: bool
) -> None:
    rows = [
        {
            "name": each.spec.name,
            "summary": each.spec.summary,
            "cells": len(each.plan.cells),
            "kept": len(each.plan.cells) - len(_left(each, outcomes)),
            "seconds": sum(cell.seconds for cell in _left(each, outcomes)) / jobs,
            "missing": each.missing or None,
        }
        for each in chosen
    ]
    if as_json:
        console.emit_json(rows)
        return
    console.print_section(
        console.out(),
        "tables",
        [
            (
                row["name"],
                f"{row['summary']}\n"
                + (
                    f"{row['cells']} cells, {row['kept']} kept, about {_minutes(row['seconds'])}"
                    if row["missing"] is None
                    else row["missing"]
                ),
            )
            for row in rows
        ],
    )


def _shared(
    chosen: Sequence[Chosen], kept: Any, outcomes: _Outcomes
) -> dict[Path, list[tuple[str, Any]]]:
    """Return the cells that are left, those that compute the same thing together."""
    groups: dict[Path, list[tuple[str, Any]]] = {}
    for each in chosen:
        for cell in _left(each, outcomes):
            groups.setdefault(kept.path(each.spec.name, cell), []).append((each.spec.name, cell))
    return groups


def _distinct(chosen: Sequence[Chosen], kept: Any, outcomes: _Outcomes) -> list[Outcome]:
    """Return what was computed, once where several tables show it."""
    from .engine.chosen import cells_of

    found = {
        kept.path(table, cell): outcomes[table, cell.key]
        for table, cell in cells_of(chosen)
        if (table, cell.key) in outcomes
    }
    return list(found.values())


def _say_estimate(chosen: Sequence[Chosen], kept: Any, outcomes: _Outcomes, jobs: int) -> None:
    left = [group[0][1] for group in _shared(chosen, kept, outcomes).values()]
    seconds = sum(cell.seconds for cell in left) / jobs
    console.say(
        "note",
        f"{len(left)} cells to compute, {len(_distinct(chosen, kept, outcomes))} kept: "
        f"about {_minutes(seconds)}",
    )


def _compute(
    chosen: Sequence[Chosen],
    kept: Any,
    outcomes: _Outcomes,
    jobs: int,
    max_time: float | None,
) -> None:
    import time

    from .engine.running import compute_all

    shared = _shared(chosen, kept, outcomes)
    todo = [group[0] for group in shared.values()]
    start = time.monotonic()
    with count_bar("cells", len(todo)) as advance:
        try:
            for table, cell, outcome in compute_all(todo, kept, jobs, max_time):
                for other, same in shared[kept.path(table, cell)]:
                    outcomes[other, same.key] = outcome
                advance(f"{table}: {cell.key}")
        except KeyboardInterrupt:
            console.say("note", "what is computed is kept: the same command goes on from here")
            raise
    if len(outcomes) < sum(len(each.plan.cells) for each in chosen):
        console.say(
            "warning",
            f"stopped after {time.monotonic() - start:.0f} s as --max-time asks; the same "
            "command goes on with the cells that are left",
        )


def _finish(
    chosen: Sequence[Chosen], outcomes: _Outcomes, out: Path, summary: str, *, as_json: bool
) -> None:
    from .engine.document import write
    from .engine.sections import NOTHING, section

    by_table: dict[str, dict[str, Outcome]] = {each.spec.name: {} for each in chosen}
    for (table, key), outcome in outcomes.items():
        by_table[table][key] = outcome
    sections = [section(each, by_table[each.spec.name]) for each in chosen]
    dash = f"{NOTHING} stands where the paper prints nothing."
    pages = write(out, sections, f"{summary} {dash}")
    failed = [f"{table}: {key}" for (table, key), value in outcomes.items() if value.error]
    empty = [f"{each.name}: {where}" for each in sections for where in each.empty]
    if as_json:
        found = {"pages": [str(page) for page in pages], "failed": failed, "empty": empty}
        console.emit_json(found)
    else:
        for each in pages:
            console.out().print(f"{each}", soft_wrap=True)
    if failed:
        raise CommandError(f"{len(failed)} cells failed, among them {failed[0]}: the pages say why")
    if empty and len(outcomes) == sum(len(each.plan.cells) for each in chosen):
        raise CommandError(f"{len(empty)} figures are missing, among them {empty[0]}")
