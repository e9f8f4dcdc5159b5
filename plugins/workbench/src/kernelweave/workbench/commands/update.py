"""``kernelweave update``."""

from __future__ import annotations

from pathlib import Path

from kernelweave.kernels_core import clock

from .. import console
from .living import goal_of, save_changed, stamp_of, tell
from .options import Encoding, Force, Json, MemoryLimit, NoHeader, Sheet


def update_command(
    model: Path,
    data: str,
    /,
    *,
    out: Path | None = None,
    memory_limit: MemoryLimit = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    no_header: NoHeader = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Let a saved model learn new rows, with the kernel that it has.

    The model is the one of all its rows with this kernel. Scores, intervals and kinds of new rows
    follow; a warning says when learning the kernel again is worth it. If anything is refused, the
    file stays as it is.

    Parameters
    ----------
    model : Path
        A file that `kernelweave fit --out` wrote, of the evidence kernel. It is replaced when the
        new one is whole.
    data : str
        Table of the new rows, as for `kernelweave fit`, with the columns of the fit: the target,
        and those of --weights, --groups, --order and --event if the fit had them.
    out : Path
        File to save the model to. Default: MODEL.
    """
    watch = clock.Stopwatch()
    goal = goal_of(model, out, data, force=force)
    from kernelweave.tables import read_table

    table = read_table(data, header=not no_header, encoding=encoding, sheet=sheet)
    from ..living import require_living, updated
    from ..models import load_model

    stamp, before = stamp_of(model), load_model(model)
    require_living(before, model, "update")
    console.name_target(before.header.target)
    after, n_new = updated(before, table, lambda said: console.print_message("note", said))
    save_changed(after, goal, model, stamp)
    n_before = before.header.n_samples
    more: dict[str, object] = {"n_before": n_before, "n_new": n_new, "file": str(goal)}
    more["seconds"] = watch.seconds
    rows = f"{after.header.n_samples}: {n_before} and {n_new} new ones of {data}"
    tell(after, before, more, {"rows": rows}, json=json)
