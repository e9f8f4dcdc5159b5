"""``kernelweave forget``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelweave.kernels_core import clock

from .. import console
from ..errors import CommandError
from .living import goal_of, save_changed, stamp_of, tell
from .options import Encoding, Force, Json, MemoryLimit, NoHeader, Sheet


def forget_command(
    model: Path,
    data: str | None = None,
    /,
    *,
    where: list[str] | None = None,
    rows: str | None = None,
    out: Path | None = None,
    memory_limit: MemoryLimit = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    no_header: NoHeader = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Let a saved model forget rows.

    The file is then, byte for byte, the one of a model that never had these rows and has the same
    kernel: that of `kernelweave fit REST --kernel MODEL`. What the kernel itself has seen of them
    stays, and is printed; fitting the rest again removes it.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote, of the evidence kernel. It is replaced when the
        new one is whole; copies of the old one are yours to delete.
    data : str
        Table of the rows to forget, with all columns of the fit. For models that do not keep their
        rows, which --where and --rows need.
    where : str
        COLUMN=VALUE: forget the rows with this value, such as patient=17; may be repeated. Values
        of one column are alternatives, and several columns must all hold.
    rows : str
        Rows to forget, such as 12,57-60: counted from 1 in the order in which the model was given
        them, without rows that had no target. The rows after them move up.
    out : Path
        File to save the model to. Default: MODEL.
    """
    watch = clock.Stopwatch()
    conditions, places = read_conditions(where or []), None if rows is None else read_places(rows)
    if (data is not None) + (where is not None) + (rows is not None) != 1:
        raise CommandError(
            "say which rows to forget, in one way: --where COLUMN=VALUE, --rows 12,57-60, or a "
            "table of them"
        )
    goal = goal_of(model, out, data, force=force)
    from kernelweave.tables import read_table

    table = None
    if data is not None:
        table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
    from ..living import forgotten, require_living
    from ..models import load_model

    stamp, before = stamp_of(model), load_model(model)
    require_living(before, model, "forget")
    console.name_target(before.header.target)
    n_before = before.header.n_samples
    if places is not None and places[-1] >= n_before:
        raise CommandError(f"--rows {rows}: the model has {n_before} rows")
    after, gone = forgotten(
        before, rows=places, where=conditions, table=table,
        on_note=lambda said: console.print_message("note", said),
    )  # fmt: skip
    save_changed(after, goal, model, stamp)
    more: dict[str, object] = {"n_before": n_before, "n_forgotten": len(gone), "file": str(goal)}
    kept = getattr(after.machine.certificate_, "forgotten", None)
    more["kept_by_kernel"] = "" if kept is None else str(kept)
    more["seconds"] = watch.seconds
    text = f"{after.header.n_samples}: {n_before} without {len(gone)} that are forgotten"
    lines = {"rows": text} | ({} if kept is None else {"the kernel": str(kept)})
    tell(after, before, more, lines, json=json)


def read_conditions(given: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each column of conditions such as patient=17.

    Examples
    --------
    >>> read_conditions(["patient=17", "patient=18", "ward=A=B"])
    {'patient': ['17', '18'], 'ward': ['A=B']}
    """
    conditions: dict[str, list[str]] = {}
    for each in given:
        column, equals, value = each.partition("=")
        if not (column and equals):
            raise CommandError(f"--where must be COLUMN=VALUE, such as patient=17, got {each!r}")
        conditions.setdefault(column, []).append(value)
    return conditions


def read_places(given: str) -> list[int]:
    """Return the places, from 0 and ascending, of rows such as 12,57-60, counted from 1.

    Examples
    --------
    >>> read_places("12,57-60, 12")
    [11, 56, 57, 58, 59]
    """
    places: set[int] = set()
    for part in given.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        ends = (first, last if dash else first)
        if not all(each.isdecimal() for each in ends) or not 1 <= int(ends[0]) <= int(ends[1]):
            raise CommandError(
                "--rows must be numbers of rows from 1 and ranges of them, such as 12,57-60, "
                f"got {given!r}"
            )
        places.update(range(int(ends[0]) - 1, int(ends[1])))
    return sorted(places)
