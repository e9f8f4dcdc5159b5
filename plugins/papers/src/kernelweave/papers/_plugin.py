"""What this plugin registers: the command that runs the tables."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import CommandSpec, hookimpl


@hookimpl
def kernelweave_register_commands(register: Callable[[CommandSpec], None]) -> None:
    register(
        CommandSpec(
            name="tables",
            target="kernelweave.papers.command:tables_command",
            summary="Recompute tables and figures of papers, and compare with the printed ones.",
        )
    )
