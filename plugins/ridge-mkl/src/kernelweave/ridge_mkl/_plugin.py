"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_HOME = "kernelweave.ridge_mkl"
_PAPER = "Li, Venturi and Xu, Learning the Kernel for Classification and Regression"
_BOTH = ("regression", "classification")
_REGRESSION = ("regression",)
_CLASSIFICATION = ("classification",)
_SUM, _PRODUCT = "degree=1", "name=dictionary-power"


def _needs(
    *constraint: str, learner: str = "solve", degree: str | None = None, task: str | None = None
) -> Needs:
    """Return what a descent over kernel weights needs; where no degree is given, any will do."""
    family = ("fit_grams",) if degree is None else ("fit_grams", degree)
    wanted = ("solve",) if learner == "solve" else ("solve", learner, "noise")
    learners = wanted if task is None else (*wanted, f"task={task}")
    sets = ("project", "penalty_gradient", "curvature")
    return Needs(family=family, learner=learners, constraint=(*sets, *constraint))


_SUM_ON_BALL = _needs("centers", degree=_SUM, task="regression")
_SUM_CHARGED = _needs("beta", degree=_SUM, task="regression")
_EXACT_ON_BALL = _needs(
    "centers", "maximizer", learner="solve_with_error", degree=_SUM, task="regression"
)
_EXACT_CHARGED = _needs(
    "beta", "maximizer", learner="solve_with_error", degree=_SUM, task="regression"
)
_PRODUCT_ON_BALL = _needs("centers", degree=_PRODUCT, task="regression")
_PRODUCT_CHARGED = _needs("beta", degree=_PRODUCT, task="regression")
_NUMBERS = _needs(task="regression")
_LABELS = _needs(task="classification")
_ANYTHING = _needs()
_CURVED_ON_BALL = _needs("centers", learner="solve_with_error")
_SUM_ON_EITHER = _needs("centers|beta", degree=_SUM)
_CURVED_SUM = _needs("centers|beta", learner="solve_with_error", degree=_SUM)
_CURVED = _needs("centers|beta", learner="solve_with_error")

# measured at 200 to 1600 samples, where Gram matrices in m² weigh beside solves in m³
_LINEAR = {"m": 2.2, "q": 1.0}
_HINGE = {"m": 2.4, "q": 1.0}
_ALGORITHMS = {
    "krr-pgd": (
        "projected_gradient:LinearPGDSearch", _SUM_ON_BALL, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 2, corrected", "projected gradient on an ℓq ball",
    ),
    "krr-rpgd": (
        "projected_gradient:RegularizedLinearPGDSearch", _SUM_CHARGED, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 1 on (7), corrected", "projected gradient with β‖μ‖²",
    ),
    "krr-iia": (
        "fixed_point:IIASearch", _EXACT_ON_BALL, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 3, corrected", "interpolated fixed point on an ℓq ball, q > 1",
    ),
    "krr-riia": (
        "fixed_point:RegularizedIIASearch", _EXACT_CHARGED, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 4, corrected", "interpolated fixed point with β‖μ‖²",
    ),
    "krr-pgd2": (
        "projected_gradient:QuadraticPGDSearch", _PRODUCT_ON_BALL, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 5, corrected", "projected gradient for products of kernels",
    ),
    "krr-rpgd2": (
        "projected_gradient:RegularizedQuadraticPGDSearch", _PRODUCT_CHARGED, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 6, corrected", "the same with β‖μ‖²",
    ),
    "krr-gmkl": (
        "projected_gradient:GeneralizedMKLSearch", _NUMBERS, _REGRESSION, _LINEAR,
        f"{_PAPER}, Algorithm 1, corrected", "projected gradient, any set and degree",
    ),
    "svm-gmkl": (
        "projected_gradient:GeneralizedMKLForLabelsSearch", _LABELS, _CLASSIFICATION, _HINGE,
        f"{_PAPER}, Algorithm 7, corrected", "the same for the squared-hinge classifier",
    ),
    "krr-trust-region": (
        "trust_region:TrustRegionSearch", _CURVED_ON_BALL, _BOTH, _LINEAR,
        f"{_PAPER}, Algorithm 8, corrected", "Riemannian trust region on the sphere, q = 2",
    ),
    "krr-mm": (
        "fixed_point:MajorizeMinimizeSearch", _SUM_ON_EITHER, _BOTH, _LINEAR,
        "Kloft et al., lp-norm multiple kernel learning, JMLR 2011",
        "monotone multiplicative updates",
    ),
    "krr-newton": (
        "projected_newton:ProjectedNewtonSearch", _CURVED_SUM, _BOTH, _LINEAR,
        "Bertsekas, Projected Newton methods, SIAM J. Control Optim. 1982",
        "quadratic models of −1/F minimised over the set",
    ),
    "krr-spg": (
        "projected_gradient:SpectralProjectedGradientSearch", _ANYTHING, _BOTH, _LINEAR,
        "Birgin, Martinez and Raydan, SIAM J. Optim. 2000",
        "Barzilai-Borwein steps, any set and degree",
    ),
    "krr-auto": (
        "auto:automatic", _CURVED, _BOTH, _LINEAR,
        "a measured choice among the others", "Newton, trust region or spectral gradient",
    ),
}  # fmt: skip


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, (target, needs, tasks, scaling, paper, summary) in _ALGORITHMS.items():
        register(
            AlgorithmSpec(
                name=name,
                target=f"{_HOME}.{target}",
                needs=needs,
                prefers=("ridge", "squared-hinge-svc", "lq-ball"),
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
