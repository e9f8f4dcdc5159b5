"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_FAMILY, _LEARNER = ("fit_grams", "degree=1"), ("solve", "lam")
_JOINT = Needs(family=_FAMILY, learner=_LEARNER, constraint=("regulariser",))
_FROBENIUS = Needs(family=_FAMILY, learner=_LEARNER, constraint=("rho",))
_TASKS = ("regression",)


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    register(
        AlgorithmSpec(
            name="vv-spg",
            target="kernelweave.vv_rkhs.spg:SpectralGradientSearch",
            needs=_JOINT,
            tasks=_TASKS,
            paper="Sindhwani, Minh and Lozano 2013, problem (9); Birgin, Martínez and Raydan 2000",
            summary="spectral projected gradient over kernel weights and output kernel",
            scaling={"m": 2.2, "q": 1.0, "n_outputs": 0.6},
        )
    )
    register(
        AlgorithmSpec(
            name="vv-block-descent",
            target="kernelweave.vv_rkhs.block_descent:BlockDescentSearch",
            needs=_JOINT,
            tasks=_TASKS,
            paper="Sindhwani, Minh and Lozano 2013, section 3.1, corrected",
            summary="conjugate gradients for C, closed form for the weights, Hazan's steps for L",
            scaling={"m": 2.2, "q": 1.0, "n_outputs": 1.2},
        )
    )
    register(
        AlgorithmSpec(
            name="vv-dinuzzo",
            target="kernelweave.vv_rkhs.dinuzzo:OutputKernelSearch",
            needs=_FROBENIUS,
            tasks=_TASKS,
            paper="Dinuzzo, Ong, Gehler and Pillonetto 2011",
            summary="output kernel learning with a squared Frobenius norm, exact solves",
            scaling={"m": 2.4, "q": 1.0, "n_outputs": 1.6},
        )
    )


@hookimpl
def kernelweave_register_learners(register: Callable[[ComponentSpec], None]) -> None:
    register(
        ComponentSpec(
            name="vector-least-squares",
            target="kernelweave.vv_rkhs.learner:VectorLeastSquares",
            summary="(1/l) Σ ‖f(xᵢ) − yᵢ‖² + λ‖f‖²",
        )
    )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    register(
        ComponentSpec(
            name="separable-kernels",
            target="kernelweave.vv_rkhs.constraint:SeparableKernels",
            summary="weights with a regulariser, L ⪰ 0 with tr L ≤ τ",
        )
    )
    register(
        ComponentSpec(
            name="frobenius-output-kernels",
            target="kernelweave.vv_rkhs.constraint:FrobeniusOutputKernels",
            summary="fixed weights, L ⪰ 0 with ρ‖L‖² in the objective",
        )
    )
