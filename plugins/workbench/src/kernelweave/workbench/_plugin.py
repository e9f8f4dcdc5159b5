"""What the workbench registers: commands."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import CommandSpec, hookimpl

from .commands import BUILTIN


@hookimpl
def kernelweave_register_commands(register: Callable[[CommandSpec], None]) -> None:
    """Register the commands, so that a plugin's command of the same name is refused."""
    for spec in BUILTIN:
        register(spec)
