"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import CommandSpec, hookimpl


@hookimpl
def kernelweave_register_commands(register: Callable[[CommandSpec], None]) -> None:
    register(
        CommandSpec(
            name="granger",
            target="kernelweave.granger.command:granger_command",
            summary="Learn which series of a table drive which others.",
            parameters={
                "n_draws": "draws",
                "n_jobs": "jobs",
                "random_state": "seed",
                "replicates": "replicate",
                "never_targets": "never_target",
                "forbidden": "forbid",
            },
        )
    )
