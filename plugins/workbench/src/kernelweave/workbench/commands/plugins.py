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
    console.emit_json([asdict(record) for record in records]) if json else _print(records)


def _print(records: list[PluginRecord]) -> None:
    from rich.text import Text

    rows = [
        (
            each.name,
            Text.assemble(
                (each.status, STYLES.get(each.status, "bold red")),
                (f", {each.distribution} {each.version}\n", "dim"),
                each.cause or _provides(each),
            ),
        )
        for each in records
    ]
    counts = Counter(record.status for record in records)
    title = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none"
    console.print_section(console.out(), f"Plugins: {title}", rows)


def _provides(record: PluginRecord) -> str:
    counted = {kind: len(names) for kind, names in record.provides.items()}
    singular = {"families": "family"}
    return ", ".join(
        f"{count} {kind if count > 1 else singular.get(kind, kind[:-1])}"
        for kind, count in counted.items()
    )
