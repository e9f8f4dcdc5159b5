"""What this package registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_FAMILY, _LEARNER = ("fit_grams", "degree=1"), ("solve", "lam")
_JOINT = Needs(family=_FAMILY, learner=_LEARNER, constraint=("regulariser",))
_FROBENIUS = Needs(family=_FAMILY, learner=_LEARNER, constraint=("rho",))
# name and class, powers of the time in samples and outputs, needs, paper, summary
_SEARCHES = (
    (
        *("vv-spg", "spg:SpectralGradientSearch", 2.2, 0.8, _JOINT),
        "Sindhwani, Minh and Lozano 2013, problem (9); Birgin, Martínez and Raydan 2000",
        "spectral projected gradient over kernel weights and output kernel",
    ),
    (
        *("vv-block-descent", "alternating:BlockDescentSearch", 2.2, 1.5, _JOINT),
        "Sindhwani, Minh and Lozano 2013, section 3.1, corrected",
        "conjugate gradients for C, closed form for the weights, Hazan's steps for L",
    ),
    (
        *("vv-dinuzzo", "alternating:OutputKernelSearch", 2.4, 1.7, _FROBENIUS),
        "Dinuzzo, Ong, Gehler and Pillonetto 2011",
        "output kernel learning with a squared Frobenius norm, exact solves",
    ),
)
_SETS = {
    "separable-kernels": ("SeparableKernels", "weights with a regulariser, L ⪰ 0 with tr L ≤ τ"),
    "frobenius-output-kernels": (
        "FrobeniusOutputKernels",
        "fixed weights, L ⪰ 0 with ρ‖L‖² in the objective",
    ),
}


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, target, m, n_outputs, needs, paper, summary in _SEARCHES:
        register(
            AlgorithmSpec(
                name=name,
                target=f"kernelweave.vv_rkhs.{target}",
                needs=needs,
                tasks=("regression",),
                paper=paper,
                summary=summary,
                scaling={"m": m, "q": 1.0, "n_outputs": n_outputs},
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
    for name, (target, summary) in _SETS.items():
        target = f"kernelweave.vv_rkhs.constraint:{target}"
        register(ComponentSpec(name=name, target=target, summary=summary))
