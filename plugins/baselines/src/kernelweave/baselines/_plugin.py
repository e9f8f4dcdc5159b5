"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, hookimpl

_HOME = "kernelweave.baselines"
_SIMPLE = "Rakotomamonjy, Bach, Canu and Grandvalet, SimpleMKL, JMLR 2008"
# name: target, learners, set of weights, scaling, paper, summary
_ALGORITHMS = {
    "mkl-average": (
        "rule:RuleWeights", ("svc", "svr"), "average-weights", {"m": 2.2, "q": 1.0},
        "Bertsimas, Iglesias and Johnson 2025, section 2.2", "equal weights",
    ),
    "mkl-easy": (
        "rule:RuleWeights", ("svc",), "easymkl-weights", {"m": 2.2, "q": 1.0},
        "Aiolli and Donini, EasyMKL, Neurocomputing 2015", "weights from the margin of the sum",
    ),
    "mkl-cka": (
        "rule:RuleWeights", ("svc", "svr"), "alignment-weights", {"m": 2.1, "q": 2.0},
        "Cortes, Mohri and Rostamizadeh, JMLR 2012", "weights of largest centred alignment",
    ),
    "mkl-pwmk": (
        "rule:RuleWeights", ("svc",), "proportional-weights", {"m": 2.0, "q": 1.0},
        "Tanabe, Ho, Nguyen and Kawasaki, RIVF 2008", "weights proportional to accuracies",
    ),
    "mkl-simple": (
        "simplemkl:SimpleMKL", ("svc", "svr"), "simplex", {"m": 2.2, "q": 1.0},
        _SIMPLE, "the optimal weights of the simplex, by cuts",
    ),
    "mkl-simple-gradient": (
        "reduced_gradient:ReducedGradient", ("svc", "svr"), "simplex", {"m": 2.4, "q": 1.0},
        f"{_SIMPLE}, Algorithm 1", "the same, by a reduced gradient",
    ),
}  # fmt: skip
_SETS = {
    "average-weights": ("average:AverageWeights", "the point βⱼ = 1/q"),
    "easymkl-weights": ("easymkl:EasyMKLWeights", "the point of EasyMKL"),
    "alignment-weights": ("alignment:AlignmentWeights", "the point of largest centred alignment"),
    "proportional-weights": ("proportional:ProportionalWeights", "the point β ∝ accuracy"),
    "simplex": ("simplemkl:Simplex", "{β ≥ 0, Σβ = 1}"),
}
_TASKS = {"svc": "classification", "svr": "regression"}


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, (target, learners, weights, scaling, paper, summary) in _ALGORITHMS.items():
        register(
            AlgorithmSpec(
                name=name,
                target=f"{_HOME}.{target}",
                accepts=tuple(("dictionary", learner, weights) for learner in learners),
                tasks=tuple(_TASKS[learner] for learner in learners),
                paper=paper,
                summary=summary,
                scaling=scaling,
            )
        )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    for name, (target, summary) in _SETS.items():
        register(ComponentSpec(name=name, target=f"{_HOME}.{target}", summary=summary))
