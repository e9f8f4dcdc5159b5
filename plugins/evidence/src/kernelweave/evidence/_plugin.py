"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    register(
        AlgorithmSpec(
            name="evidence-step",
            target="kernelweave.evidence.mkl.step:EvidenceStepSearch",
            needs=Needs(
                family=("fit_grams", "degree=1"),
                learner=("solve", "solve_with_error", "noise"),
                constraint=("prices", "longest"),
            ),
            prefers=("dictionary", "ridge", "priced-orthant"),
            tasks=("regression", "classification"),
            paper="majorised marginal likelihood; Wipf and Nagarajan, NIPS 2007",
            summary="ridge kernel learning under a weighted trace, by projected Newton steps",
            scaling={"m": 2.1, "q": 1.0},
        )
    )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    register(
        ComponentSpec(
            name="priced-orthant",
            target="kernelweave.evidence.mkl.step:PricedOrthant",
            summary="{w ≥ 0} with the penalty ½ Σ pⱼwⱼ",
        )
    )
