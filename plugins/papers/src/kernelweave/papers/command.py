"""``kernelweave tables``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from kernelweave.tables.data_folder import data_folder
from kernelweave.workbench import console
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.progress import count_bar

if TYPE_CHECKING:
    from .engine.running import Run

_Flag = Parameter(negative=())


def tables_command(
    *names: str,
    quick: Annotated[bool, _Flag] = False,
    dataset: list[str] | None = None,
    method: list[str] | None = None,
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
    """Recompute tables and figures of papers and compare them with the printed ones.

    Each result is stored when it is computed, and a run that was stopped continues from there.
    Without a name, the tables are listed with the time that they take.

    Parameters
    ----------
    names : str
        Names of tables, or all.
    quick : bool
        Use one split and at most 500 samples, for a quick look.
    dataset : list of str
        Only this data set, by the name that the tables print; may be repeated.
    method : list of str
        Only this method, by the name that the tables print; may be repeated.
    subsample : int
        Maximum number of samples of a data set; the page marks what is reduced.
    repeats : int
        Number of random splits or outer folds. Default: that of the paper.
    data : Path
        Folder with the papers' data sets. Default: the variable KERNELWEAVE_DATA.
    out : Path
        Folder for tables.md, its pictures and the stored results.
    jobs : int
        Number of processes. Default: one, or one for each core with --quick.
    max_time : float
        Time limit in seconds, after which nothing new is started.
    fresh : bool
        Compute stored results again.
    estimate : bool
        Print how long it would take, and stop.
    json : bool
        Print what was written as JSON.
    """
    from . import plan
    from .data import where_from
    from .engine.chosen import ALL, choose, files_missing, narrowed, with_data
    from .engine.running import KeptCells, Run

    counts = (("jobs", jobs, 1), ("subsample", subsample, 50), ("repeats", repeats, 1))
    for name, value, bound in (*counts, ("max-time", max_time, 0)):
        if value is not None and not value >= bound:
            raise CommandError(f"--{name} must be at least {bound}, got {value}")
    folder = data or data_folder()
    if folder is not None and not folder.is_dir():
        raise CommandError(f"the data folder {folder} does not exist")
    request = plan.Request(quick=quick, folder=folder, subsample=subsample, repeats=repeats)
    chosen = choose(names or (ALL,), request, plan.tables())
    if dataset or method:
        chosen = narrowed(chosen, dataset or (), method or ())
    missing = files_missing(chosen)
    work = Run(with_data(chosen, folder), KeptCells(out / "cells"), fresh=fresh)
    if jobs is None:
        jobs = (os.cpu_count() or 1) if quick else 1
    if estimate or not names:
        _print_estimate(work, jobs, as_json=json)
        return
    if missing:
        console.print_message("note", f"not everything has data: {where_from(missing, folder)}")
    _compute(work, jobs, max_time)
    spent = sum(each.seconds for each in work.outcomes.values())
    restricted = subsample or repeats or dataset or method
    kind = "quick" if quick else "restricted" if restricted else "full"
    summary = f"A {kind} run: {len(work.outcomes)} cells, {_minutes(spent)} of work."
    _finish(work, out, summary, as_json=json)


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _print_estimate(work: Run, jobs: int, *, as_json: bool) -> None:
    from .plan import HOW_TO_SET

    rows, lines = [], []
    for each in work.chosen:
        name, cells, kept = each.spec.name, each.plan.cells, work.outcomes_of(each)
        seconds = sum(cell.seconds for cell in cells if cell.key not in kept) / jobs
        counts = {"cells": len(cells), "kept": len(kept), "seconds": seconds}
        counts["without_data"] = each.n_missing
        missing = {"missing": each.missing or None}
        rows.append({"name": name, "summary": each.spec.summary, **counts, **missing})
        about = f"{len(cells)} cells, {len(kept)} kept, about {_minutes(seconds)}"
        why = each.missing.removesuffix(f" and no data folder is set: {HOW_TO_SET}")
        if cells and each.n_missing:
            why = f"{about}, {each.n_missing} without data"
        lines.append((name, f"{each.spec.summary}\n{why or about}"))
    if as_json:
        console.emit_json(rows)
    else:
        console.print_section(console.out(), "tables", lines)
        if any(each.missing.endswith(HOW_TO_SET) for each in work.chosen):
            console.print_message("note", f"no data folder is set: {HOW_TO_SET}")


def _compute(work: Run, jobs: int, max_time: float | None) -> None:
    left = work.left()
    seconds = sum(cell.seconds for cell in left) / jobs
    counts = f"{len(left)} cells to compute, {len(work.outcomes)} kept"
    console.print_message("note", f"{counts}: about {_minutes(seconds)}")
    start = time.monotonic()
    with count_bar("cells", len(left)) as advance:
        try:
            for cell in work.compute(jobs, max_time):
                advance(cell.key)
        except KeyboardInterrupt:
            console.print_message(
                "note", "what is computed is kept: the same command goes on from here"
            )
            raise
    if not work.is_complete:
        console.print_message(
            "warning",
            f"stopped after {time.monotonic() - start:.0f} s as --max-time asks; the same "
            "command goes on with the cells that are left",
        )


def _finish(work: Run, out: Path, summary: str, *, as_json: bool) -> None:
    from .engine.sections import NOTHING, section, write

    outcomes = {each.spec.name: work.outcomes_of(each) for each in work.chosen}
    sections = [section(each, outcomes[each.spec.name]) for each in work.chosen]
    page = write(out, sections, f"{summary} {NOTHING} stands where the paper prints nothing.")
    failed = [
        f"{table}: {key}"
        for table, by_key in outcomes.items()
        for key, outcome in by_key.items()
        if outcome.error
    ]
    empty = [f"{each.name}: {where}" for each in sections for where in each.empty]
    verdicts = {each.name: each.verdicts for each in sections if each.verdicts}
    if as_json:
        record = {"page": str(page), "failed": failed, "empty": empty}
        console.emit_json({**record, "verdicts": verdicts})
    else:
        for name, lines in verdicts.items():
            for line in lines:
                console.out().print(f"{name}: {line}", soft_wrap=True, markup=False)
        console.out().print(f"{page}", soft_wrap=True)
    if failed:
        raise CommandError(f"{len(failed)} cells failed, among them {failed[0]}: the page says why")
    if empty and work.is_complete:
        raise CommandError(f"{len(empty)} figures are missing, among them {empty[0]}")
