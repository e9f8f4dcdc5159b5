"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, hookimpl

_TRIPLES = tuple(("dictionary", learner, "sparse-simplex") for learner in ("svc", "svr"))

_MATRICES = tuple(
    (family, learner, "spectahedron")
    for family in ("tessellated", "polynomial")
    for learner in ("svc", "svr")
)


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
