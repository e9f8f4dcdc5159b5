"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_HOME = "kernelweave.ridge_mkl"
_PAPER = "Li, Venturi and Xu, Learning the Kernel for Classification and Regression"
_TASKS = ("regression", "classification")
_SUM, _PRODUCT = "degree=1", "name=dictionary-power"
_EXACT = "solve_with_error"


def _needs(
    *constraint: str, learner: str = "solve", degree: str | None = None, task: str | None = None
) -> Needs:
    """Return what a descent over kernel weights needs; where no degree is given, any will do."""
    family = ("fit_grams",) if degree is None else ("fit_grams", degree)
    wanted = ("solve",) if learner == "solve" else ("solve", learner, "noise")
    learners = wanted if task is None else (*wanted, f"task={task}")
    sets = ("project", "penalty_gradient", "curvature")
    return Needs(family=family, learner=learners, constraint=(*sets, *constraint))


# measured at 200 to 1600 samples, where Gram matrices in m² weigh beside solves in m³
_LINEAR = {"m": 2.2, "q": 1.0}
_HINGE = {"m": 2.4, "q": 1.0}
_ALGORITHMS = {
    "krr-pgd": (
        "projected_gradient:GeneralizedMKLSearch",
        _needs("centers", degree=_SUM, task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 2, corrected", "projected gradient on an ℓq ball",
    ),
    "krr-rpgd": (
        "projected_gradient:GeneralizedMKLSearch",
        _needs("beta", degree=_SUM, task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 1 on (7), corrected", "projected gradient with β‖μ‖²",
    ),
    "krr-iia": (
        "fixed_point:IIASearch",
        _needs("centers", "maximizer", learner=_EXACT, degree=_SUM, task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 3, corrected", "interpolated fixed point on an ℓq ball, q > 1",
    ),
    "krr-riia": (
        "fixed_point:IIASearch",
        _needs("beta", "maximizer", learner=_EXACT, degree=_SUM, task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 4, corrected", "interpolated fixed point with β‖μ‖²",
    ),
    "krr-pgd2": (
        "projected_gradient:GeneralizedMKLSearch",
        _needs("centers", degree=_PRODUCT, task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 5, corrected", "projected gradient for products of kernels",
    ),
    "krr-rpgd2": (
        "projected_gradient:GeneralizedMKLSearch",
        _needs("beta", degree=_PRODUCT, task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 6, corrected", "projected gradient for products, with β‖μ‖²",
    ),
    "krr-gmkl": (
        "projected_gradient:GeneralizedMKLSearch",
        _needs(task="regression"), _LINEAR,
        f"{_PAPER}, Algorithm 1, corrected", "projected gradient, any set and degree",
    ),
    "svm-gmkl": (
        "projected_gradient:GeneralizedMKLForLabelsSearch",
        _needs(task="classification"), _HINGE,
        f"{_PAPER}, Algorithm 7, corrected", "projected gradient for the squared-hinge classifier",
    ),
    "krr-trust-region": (
        "trust_region:TrustRegionSearch",
        _needs("centers", learner=_EXACT), _LINEAR,
        f"{_PAPER}, Algorithm 8, corrected", "Riemannian trust region on the sphere, q = 2",
    ),
    "krr-mm": (
        "fixed_point:MajorizeMinimizeSearch",
        _needs("centers|beta", degree=_SUM), _LINEAR,
        "Kloft et al., lp-norm multiple kernel learning, JMLR 2011",
        "monotone multiplicative updates",
    ),
    "krr-newton": (
        "projected_newton:ProjectedNewtonSearch",
        _needs("centers|beta", learner=_EXACT, degree=_SUM), _LINEAR,
        "Bertsekas, Projected Newton methods, SIAM J. Control Optim. 1982",
        "quadratic models of −1/F minimised over the set",
    ),
    "krr-spg": (
        "projected_gradient:SpectralProjectedGradientSearch",
        _needs(), _LINEAR,
        "Birgin, Martinez and Raydan, SIAM J. Optim. 2000",
        "Barzilai-Borwein steps, any set and degree",
    ),
    "krr-auto": (
        "auto:automatic",
        _needs("centers|beta", learner=_EXACT), _LINEAR,
        "a measured choice among the others", "Newton, trust region or spectral gradient",
    ),
}  # fmt: skip


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, (target, needs, scaling, paper, summary) in _ALGORITHMS.items():
        register(
            AlgorithmSpec(
                name=name,
                target=f"{_HOME}.{target}",
                needs=needs,
                prefers=("ridge", "squared-hinge-svc", "lq-ball"),
                # a method for one kind of targets says so among what it needs
                tasks=tuple(t for t in _TASKS if f"task={t}" in needs.learner) or _TASKS,
                paper=paper,
                summary=summary,
                scaling=scaling,
            )
        )


@hookimpl
def kernelweave_register_families(register: Callable[[ComponentSpec], None]) -> None:
    summary = "(Σ μₖ Kₖ)^∘d, products of kernels"
    target = f"{_HOME}.families:PowerDictionary"
    register(ComponentSpec(name="dictionary-power", target=target, summary=summary))


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    for name, target, summary in (
        ("lq-ball", "LqBall", "{μ ≥ 0, ‖μ − μ₀‖_q ≤ Λ}"),
        ("orthant", "Orthant", "{μ ≥ 0} with the penalty β‖μ‖²"),
    ):
        register(ComponentSpec(name=name, target=f"{_HOME}.sets:{target}", summary=summary))
