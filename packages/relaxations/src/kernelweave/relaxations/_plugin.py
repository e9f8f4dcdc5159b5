"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, hookimpl

_TRIPLES = tuple(("dictionary", learner, "sparse-simplex") for learner in ("svc", "svr"))


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
            scaling={"m": 2.3, "q": 1.5},
        )
    )
