"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_NEEDS = Needs(family=("prepare",), learner=("solve", "name=svc|name=svr"), constraint=("min_eig",))
_PREFERS = ("tessellated", "svc", "svr")


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    register(
        AlgorithmSpec(
            name="tkl-low-rank",
            target="kernelweave.spectahedron.low_rank:LowRankSearch",
            needs=_NEEDS,
            prefers=_PREFERS,
            tasks=("classification", "regression"),
            summary="low-rank factors, saddle-free Newton steps, columns added on demand",
            scaling={"m": 2.0, "n_P": 3.4},
        )
    )
    register(
        AlgorithmSpec(
            name="tkl-interior-point",
            target="kernelweave.spectahedron.interior:InteriorPointSearch",
            needs=_NEEDS,
            prefers=_PREFERS,
            tasks=("classification", "regression"),
            summary="one interior point over dual variables and P: for hard problems, m ≤ 3000",
            scaling={"m": 1.8, "n_P": 1.9},
        )
    )
    register(
        AlgorithmSpec(
            name="tkl-frank-wolfe",
            target="kernelweave.spectahedron.frank_wolfe_search:FrankWolfeSearch",
            needs=_NEEDS,
            prefers=_PREFERS,
            tasks=("classification", "regression"),
            paper="Talitckii, Colbert and Peet 2024, Algorithm 2, corrected",
            summary="rank-one atoms with an exact line search",
            scaling={"m": 1.8, "n_P": 3.0},
        )
    )
    register(
        AlgorithmSpec(
            name="tkl-apd",
            target="kernelweave.spectahedron.apd:PrimalDualSearch",
            needs=_NEEDS,
            prefers=_PREFERS,
            tasks=("classification", "regression"),
            paper="Talitckii, Colbert and Peet 2024, Algorithm 4, corrected",
            summary="accelerated primal-dual steps, their lengths by a line search",
            scaling={"m": 2.1, "n_P": 3.0},
        )
    )
    register(
        AlgorithmSpec(
            name="tkl-hybrid",
            target="kernelweave.spectahedron.hybrid:HybridSearch",
            needs=_NEEDS,
            prefers=_PREFERS,
            tasks=("classification", "regression"),
            paper="Talitckii, Colbert and Peet 2024, Algorithm 6",
            summary="Frank-Wolfe while its steps are long, then accelerated primal-dual steps",
            scaling={"m": 2.2, "n_P": 3.0},
        )
    )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    register(
        ComponentSpec(
            name="spectahedron",
            target="kernelweave.spectahedron.constraint:Spectahedron",
            summary="{P ⪰ ηI, tr P = n_P}",
        )
    )
