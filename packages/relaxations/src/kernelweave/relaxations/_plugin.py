"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, Needs, hookimpl

_SPARSE = Needs(family=("fit_grams|fit_factors", "degree=1"), constraint=("relaxed",))
_MATRICES = Needs(
    family=("prepare",), learner=("solve", "name=svc|name=svr"), constraint=("min_eig",)
)


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    register(
        AlgorithmSpec(
            name="smkl-global",
            target="kernelweave.relaxations.branch_and_bound:global_search",
            needs=_SPARSE,
            prefers=("svc", "svr"),
            tasks=("classification", "regression"),
            paper="Bertsimas, Iglesias and Johnson 2025, problem (4)",
            summary="certified global optimum: cutting planes, then branch and bound on supports",
            scaling={"m": 2.1, "q": 1},
        )
    )
    register(
        AlgorithmSpec(
            name="tkl-sdp",
            target="kernelweave.relaxations.semidefinite:SemidefiniteSearch",
            needs=_MATRICES,
            prefers=("tessellated", "svc", "svr"),
            tasks=("classification", "regression"),
            paper="Lanckriet, Cristianini, Bartlett, El Ghaoui and Jordan 2004, generalised",
            summary="one semidefinite program, at most 100 samples: a reproduction, slow",
            scaling={"m": 3.8, "n_P": 2.4},
            max_samples=100,
        )
    )
