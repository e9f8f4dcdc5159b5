"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_NEEDS = Needs(family=("prepare",), learner=("solve", "name=svc|name=svr"), constraint=("min_eig",))
_PAPER = "Talitckii, Colbert and Peet 2024, Algorithm "
# name and class, paper, summary, powers of the time in m and n_P
_SEARCHES = (
    (
        *("tkl-low-rank", "low_rank:LowRankSearch", ""),
        *("low-rank factors, saddle-free Newton steps, columns added on demand", 2.0, 1.5),
    ),
    (
        *("tkl-interior-point", "interior_point:InteriorPointSearch", ""),
        *("one interior point over dual variables and P: for hard problems, m ≤ 3000", 1.8, 2.0),
    ),
    (
        *("tkl-frank-wolfe", "first_order:FrankWolfeSearch", _PAPER + "2, corrected"),
        *("rank-one atoms with an exact line search", 1.8, 1.1),
    ),
    (
        *("tkl-apd", "first_order:PrimalDualSearch", _PAPER + "4, corrected"),
        *("accelerated primal-dual steps, their lengths by a line search", 1.9, 1.7),
    ),
    (
        *("tkl-hybrid", "first_order:HybridSearch", _PAPER + "6"),
        "Frank-Wolfe while its steps are long, then accelerated primal-dual steps",
        *(1.9, 1.2),
    ),
)


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, target, paper, summary, m, n_P in _SEARCHES:
        register(
            AlgorithmSpec(
                name=name,
                target=f"kernelweave.spectahedron.{target}",
                needs=_NEEDS,
                prefers=("tessellated", "svc", "svr"),
                tasks=("classification", "regression"),
                paper=paper,
                summary=summary,
                scaling={"m": m, "n_P": n_P},
            )
        )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    register(
        ComponentSpec(
            name="spectahedron",
            target="kernelweave.spectahedron.settings:Spectahedron",
            summary="{P ⪰ ηI, tr P = n_P}",
        )
    )
