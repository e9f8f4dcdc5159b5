"""``kernelweave fit --kernel MODEL``: a table learned with a kernel that is there, or its sums."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelweave.kernels_core import clock

from .. import console
from ..errors import CommandError
from ..files import check_output
from .living import tell

if TYPE_CHECKING:
    from kernelweave.tables import Table

    from ..models import Model

# what the kernel leaves to say: the table, what is written, and how it is printed
_LEFT = frozenset(
    (
        *("data", "target", "kernel", "share", "out", "compare", "memory_limit", "encoding"),
        *("sheet", "no_header", "force", "json"),
    )
)


def check_options(command: Callable[..., object], given: Mapping[str, Any]) -> None:
    """Raise CommandError for an option of a command that a kernel leaves nothing to say.

    `given`: the options by name, with what was not given at its default.
    """
    parameters = inspect.signature(command).parameters
    for name, value in given.items():
        if name not in _LEFT and value != parameters[name].default:
            option = f"--{name.replace('_', '-')}"
            raise CommandError(
                f"{option} says how a kernel is learned, and --kernel names one that is: leave out "
                f"{option}"
            )


def fit_with_kernel(
    data: str,
    kernel: Path | None,
    target: str | None,
    out: Path | None,
    share: str | None,
    written: Mapping[str, Any],
    *,
    header: bool,
    force: bool,
    json: bool,
) -> None:
    """Learn a table with the kernel of a saved model, or write sums of its rows.

    `written`, `header`: how the table is written, as of `read_table`; the other arguments are the
    options of ``kernelweave fit``.
    """
    watch = clock.Stopwatch()
    if kernel is None:
        raise CommandError(f"--share {share} needs --kernel MODEL, whose landmarks it sums over")
    if share is not None and out is None:
        raise CommandError(f"--share {share} needs --out FILE, the file of sums")
    if out is not None:
        check_output(out, data, kernel, force=force)
    from kernelweave.tables import read_table

    table = read_table(data, header=header, **written)
    from ..living import refitted, require_living
    from ..models import load_model, save_model

    model = load_model(kernel)
    require_living(model, kernel, "fit --kernel")
    if target is not None and target != model.header.target:
        raise CommandError(
            f"--target {target!r}: the kernel of {kernel} was learned for {model.header.target!r}"
        )
    console.name_target(model.header.target)
    if share is not None and out is not None:
        _share(model, table, out, json=json)
        return
    after = refitted(model, table, _note)
    if out is not None:
        save_model(after, out, force=True)
    more = {"file": None if out is None else str(out), "seconds": watch.seconds}
    rows = {"rows": f"{after.header.n_samples} of {table.source}"}
    tell(after, None, more, rows, json=json)


def _note(sentence: str) -> None:
    console.print_message("note", sentence)


def _share(model: Model, table: Table, out: Path, *, json: bool) -> None:
    """Write the sums of a table's rows, and say what they are."""
    from ..living import read_given

    rows = read_given(model, table, _note, n_before=0)
    groups = {name: each for name, each in rows.division.items() if name == "groups"}
    sums = model.machine.sums(*rows.arguments, **groups)
    sums.save(out)
    facts = {"sums": str(out), "n_rows": sums.n_rows, "n_landmarks": sums.n_landmarks}
    if json:
        console.emit_json(facts)
        return
    console.out().print(
        f"Sums of {sums.n_rows} rows over {sums.n_landmarks} landmarks, saved to {out}: no row is "
        f"in them. To add them to others: kernelweave merge MODEL {out} --out FILE",
        soft_wrap=True,
    )
