"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, TableSpec, hookimpl

_TRIPLES = tuple(("dictionary", learner, "sparse-simplex") for learner in ("svc", "svr"))

_MATRICES = tuple(
    (family, learner, "spectahedron")
    for family in ("tessellated", "polynomial")
    for learner in ("svc", "svr")
)

_TABLES = {
    2: ("accuracy", "test accuracy of Algorithm 1, of proved optima and of tuned optima"),
    3: ("sparsity", "kernels used by Algorithm 1, by proved optima and by tuned optima"),
    4: ("times", "seconds of a fit by Algorithm 1 and of a proved optimum"),
    5: ("warm_starts", "test accuracy of Algorithm 1 by its start"),
    6: ("objectives", "lower bounds, and objectives of Algorithm 1 and of the proved optimum"),
    7: ("gaps", "per cent between lower bounds and the objectives above them"),
    8: ("fifty_accuracy", "test accuracy with fifty kernels"),
    9: ("fifty_sparsity", "kernels used, of fifty"),
    10: ("fifty_times", "seconds of a fit with fifty kernels"),
}


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    register(
        AlgorithmSpec(
            name="smkl-global",
            target="kernelweave.relaxations.algorithm:GlobalSearch",
            accepts=_TRIPLES,
            tasks=("classification", "regression"),
            paper="Bertsimas, Iglesias and Johnson 2025, problem (4)",
            summary="certified global optimum: cutting planes, then branch and bound on supports",
            scaling={"m": 2.2, "q": 1.5},
        )
    )
    register(
        AlgorithmSpec(
            name="tkl-sdp",
            target="kernelweave.relaxations.semidefinite:SemidefiniteProgram",
            accepts=_MATRICES,
            tasks=("classification", "regression"),
            paper="Lanckriet, Cristianini, Bartlett, El Ghaoui and Jordan 2004, generalised",
            summary="one semidefinite program, at most 100 samples: a reproduction, slow",
            scaling={"m": 3.8, "n_P": 2.0},
            max_samples=100,
        )
    )


@hookimpl
def kernelweave_register_tables(register: Callable[[TableSpec], None]) -> None:
    for number, (target, summary) in _TABLES.items():
        register(
            TableSpec(
                name=f"smkl-{number}",
                target=f"kernelweave.relaxations.tables:{target}",
                paper=f"Bertsimas, Iglesias and Johnson 2025, Table {number}",
                summary=summary,
            )
        )
    register(
        TableSpec(
            name="smkl-optima",
            target="kernelweave.relaxations.tables:optima",
            paper="Bertsimas, Iglesias and Johnson 2025, section 6, which leaves it to the future",
            summary="bounds, proved optima, learner solves and seconds on the ten sets",
        )
    )
