"""``kernelweave doctor``."""

from __future__ import annotations

from typing import Any

from kernelweave.kernels_core import memory
from kernelweave.kernels_core.registry import plugins

from .. import console

_GIB = 2.0**30


def doctor_command(*, json: bool = False) -> None:
    """Show versions, threads, memory, caches and problems.

    Parameters
    ----------
    json : bool
        Print JSON.
    """
    results = examine()
    console.emit_json(results) if json else _print(results)


def examine() -> dict[str, object]:
    """Return everything that `doctor` reports, with the problems as sentences."""
    from .. import diagnosis

    cache = diagnosis.numba_cache()
    problems = [
        f"plugin {row.name} ({row.distribution}) is {row.status}: {row.cause}"
        for row in plugins()
        if row.status not in ("loaded", "blocked")
    ]
    if not cache["writable"]:
        problems.append(
            f"compiled code cannot be cached in {cache['folder']}, so every run compiles it again: "
            f"set NUMBA_CACHE_DIR to a writable folder"
        )
    return {
        "versions": diagnosis.versions(),
        "threads": diagnosis.threads(),
        # of the machine, and the limit that a solve respects
        "memory": {"machine": memory.machine_bytes(), "limit": memory.limit_bytes()},
        "compiled code": cache,
        "plugins": {row.name: row.status for row in plugins()},
        "problems": problems,
    }


def _print(state: dict[str, Any]) -> None:
    from rich.text import Text

    threads, cache = state["threads"], state["compiled code"]
    rows = {
        "cores": f"{threads['cores']}; kernels use {threads['used by kernels']}",
        "thread pools": ", ".join(threads["pools"]) or "none",
        "settings": ", ".join(f"{k}={v}" for k, v in threads["settings"].items()) or "none",
        "memory": f"{state['memory']['machine'] / _GIB:.1f} GiB; a fit may use "
        f"{state['memory']['limit'] / _GIB:.1f} GiB",
        "compiled code": f"{cache['folder']} ({cache['why']}, "
        f"{'writable' if cache['writable'] else 'NOT writable'})",
    }
    screen = console.out()
    console.print_section(screen, "Versions", state["versions"].items())
    console.print_section(screen, "System", rows.items())
    for problem in state["problems"]:
        screen.print(Text.assemble(("problem", "bold red"), f": {problem}"))
    if not state["problems"]:
        screen.print("No problems found.")
