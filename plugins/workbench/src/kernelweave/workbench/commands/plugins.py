"""``kernelweave plugins``."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from kernelweave.kernels_core import PluginRecord
from kernelweave.kernels_core.registry import plugins

from .. import console

STYLES = {"loaded": "green", "blocked": "yellow"}


def plugins_command(*, json: bool = False) -> None:
    """Show which plugins are loaded, and why others are not.

    Parameters
    ----------
    json : bool
        Print JSON.
    """
    records = plugins()
    if json:
        console.emit_json([asdict(record) for record in records])
        return
    _print(records)


def _print(records: list[PluginRecord]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("plugin", style="cyan", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("provides, or why it is not loaded", overflow="fold")
    for record in records:
        state = Text(record.status, style=STYLES.get(record.status, "bold red"))
        origin = f"{record.distribution} {record.version}".strip()
        name = Text.assemble(record.name, "\n", (origin, "dim"))
        table.add_row(name, state, Text(record.cause or _provides(record)))
    screen = console.out()
    screen.print(table)
    counts = Counter(record.status for record in records)
    screen.print(", ".join(f"{count} {status}" for status, count in counts.items()) or "none")


def _provides(record: PluginRecord) -> str:
    counted = {kind: len(names) for kind, names in record.provides.items()}
    singular = {"families": "family"}
    return ", ".join(
        f"{count} {kind if count > 1 else singular.get(kind, kind[:-1])}"
        for kind, count in counted.items()
    )
