"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, hookimpl

_HOME = "kernelweave.ridge_mkl"
_PAPER = "Li, Venturi and Xu, Learning the Kernel for Classification and Regression"
_BOTH = ("regression", "classification")
_REGRESSION = ("regression",)


def _triples(families: str, learners: str, sets: str) -> tuple[tuple[str, str, str], ...]:
    """Return the triples of parts named by letters: d/p families, r/h learners, b/o sets."""
    names = {
        "d": "dictionary",
        "p": "dictionary-power",
        "r": "ridge",
        "h": "squared-hinge-svc",
        "b": "lq-ball",
        "o": "orthant",
    }
    return tuple(
        (names[family], names[learner], names[part])
        for family in families
        for learner in learners
        for part in sets
    )


# measured at 200 to 1600 samples, where Gram matrices in m² weigh beside solves in m³
_LINEAR = {"m": 2.3, "p": 1.0}
_SECOND = {"m": 2.2, "p": 2.0}
_QUADRATIC = {"m": 2.4, "p": 1.0}
_ALGORITHMS = {
    "krr-pgd": (
        "linear_pgd:LinearPGD", _triples("d", "r", "b"), _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 2, corrected", "projected gradient on an ℓq ball",
    ),
    "krr-rpgd": (
        "linear_pgd:RegularizedLinearPGD", _triples("d", "r", "o"), _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 1 on (7), corrected", "projected gradient with β‖μ‖²",
    ),
    "krr-iia": (
        "iia:IIA", _triples("d", "r", "b"), _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 3, corrected", "interpolated fixed point on an ℓq ball, q > 1",
    ),
    "krr-riia": (
        "iia:RegularizedIIA", _triples("d", "r", "o"), _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 4, corrected", "interpolated fixed point with β‖μ‖²",
    ),
    "krr-pgd2": (
        "quadratic_pgd:QuadraticPGD", _triples("p", "r", "b"), _REGRESSION, _QUADRATIC,
        f"{_PAPER}, Algorithm 5, corrected", "projected gradient for products of kernels",
    ),
    "krr-rpgd2": (
        "quadratic_pgd:RegularizedQuadraticPGD", _triples("p", "r", "o"), _REGRESSION, _QUADRATIC,
        f"{_PAPER}, Algorithm 6, corrected", "the same with β‖μ‖²",
    ),
    "krr-gmkl": (
        "generalized_mkl:GeneralizedMKL", _triples("dp", "r", "bo"), _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 1, corrected", "projected gradient, any set and degree",
    ),
    "svm-gmkl": (
        "generalized_mkl:GeneralizedMKL", _triples("dp", "h", "bo"), ("classification",), _LINEAR,
        f"{_PAPER}, Algorithm 7, corrected", "the same for the squared-hinge classifier",
    ),
    "krr-trust-region": (
        "trust_region:TrustRegion", _triples("dp", "rh", "b"), _BOTH, _SECOND,
        f"{_PAPER}, Algorithm 8, corrected", "Riemannian trust region on the sphere, q = 2",
    ),
    "krr-mm": (
        "majorize_minimize:MajorizeMinimize", _triples("d", "rh", "bo"), _BOTH, _LINEAR,
        "Kloft et al., lp-norm multiple kernel learning, JMLR 2011",
        "monotone multiplicative updates",
    ),
    "krr-newton": (
        "projected_newton:ProjectedNewton", _triples("d", "rh", "bo"), _BOTH, _SECOND,
        "Bertsekas, Projected Newton methods, SIAM J. Control Optim. 1982",
        "quadratic models of −1/F minimised over the set",
    ),
    "krr-spg": (
        "spectral_gradient:SpectralProjectedGradient", _triples("dp", "rh", "bo"), _BOTH, _LINEAR,
        "Birgin, Martinez and Raydan, SIAM J. Optim. 2000",
        "Barzilai-Borwein steps, any set and degree",
    ),
    "krr-auto": (
        "auto:Automatic", _triples("dp", "rh", "bo"), _BOTH, _SECOND,
        "a measured choice among the others", "Newton, trust region or spectral gradient",
    ),
}  # fmt: skip


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, (target, accepts, tasks, scaling, paper, summary) in _ALGORITHMS.items():
        register(
            AlgorithmSpec(
                name=name,
                target=f"{_HOME}.{target}",
                accepts=accepts,
                tasks=tasks,
                paper=paper,
                summary=summary,
                scaling=scaling,
            )
        )


def _components(
    register: Callable[[ComponentSpec], None], parts: dict[str, tuple[str, str]]
) -> None:
    for name, (target, summary) in parts.items():
        register(ComponentSpec(name=name, target=f"{_HOME}.{target}", summary=summary))


@hookimpl
def kernelweave_register_families(register: Callable[[ComponentSpec], None]) -> None:
    summary = "(Σ μₖ Kₖ)^∘d, products of kernels"
    _components(register, {"dictionary-power": ("families:PowerDictionary", summary)})


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    _components(
        register,
        {
            "lq-ball": ("sets:LqBall", "{μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}"),
            "orthant": ("sets:Orthant", "{μ ≥ 0} with the penalty β‖μ‖²"),
        },
    )
