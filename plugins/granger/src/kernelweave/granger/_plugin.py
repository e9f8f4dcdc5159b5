"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import CommandSpec, TableSpec, hookimpl


@hookimpl
def kernelweave_register_commands(register: Callable[[CommandSpec], None]) -> None:
    register(
        CommandSpec(
            name="granger",
            target="kernelweave.granger.command:granger_command",
            summary="Learn which series of a table drive which others.",
        )
    )


@hookimpl
def kernelweave_register_tables(register: Callable[[TableSpec], None]) -> None:
    paper = "Sindhwani, Minh and Lozano 2013"
    for name, target, where, summary in (
        ("vv-figure-3", "error_figure", f"{paper}, Figure 3", "held-out error, fruit-fly genes"),
        ("vv-figure-4", "graph_figure", f"{paper}, Figure 4", "causal graphs of gene groups"),
        ("vv-figure-5", "output_figure", f"{paper}, Figure 5", "interactions in a gene group"),
        (
            "vv-known-graphs",
            "known_graphs_table",
            "Marbach et al. 2010 (DREAM3) and Lorenz 1996, for their data alone",
            "DREAM3 and Lorenz-96 against the lasso",
        ),
    ):
        register(
            TableSpec(
                name=name,
                target=f"kernelweave.granger.reproductions:{target}",
                paper=where,
                summary=summary,
            )
        )
