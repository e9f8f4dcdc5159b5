"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_NEEDS = Needs(family=("fit_grams|fit_factors", "degree=1"), constraint=("k0", "lam"))


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    register(
        AlgorithmSpec(
            name="smkl-best-response",
            target="kernelweave.mkl_sparse.algorithm:BestResponseSearch",
            needs=_NEEDS,
            prefers=("svc", "svr"),
            tasks=("classification", "regression"),
            paper="Bertsimas, Iglesias and Johnson 2025, Algorithm 1",
            summary="alternating best response from several starts, with a proven lower bound",
            scaling={"m": 1.7, "q": 1.0},
        )
    )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    register(
        ComponentSpec(
            name="sparse-simplex",
            target="kernelweave.mkl_sparse.constraint:SparseSimplex",
            summary="{β ≥ 0, Σβ = 1, ‖β‖₀ ≤ k₀} with λ‖β‖²",
        )
    )
