"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Callable

from kernelweave.kernels_core import AlgorithmSpec, ComponentSpec, Needs, hookimpl

_HOME = "kernelweave.baselines"
# name: target, tasks, what the set must have, scaling, paper, summary
_BOTH = ("classification", "regression")
# the sets whose algorithms need no Gram matrix
_OF_FACTORS = (
    "total=1.0",
    "name=average-weights",
    "name=easymkl-weights",
    "name=elastic-net-weights",
)
_ALGORITHMS = {
    "mkl-average": (
        "rule:rule_weights", _BOTH, "name=average-weights", {"m": 2.0, "q": 1.0},
        "Bertsimas, Iglesias and Johnson 2025, section 2.2", "equal weights",
    ),
    "mkl-easy": (
        "rule:rule_weights", ("classification",), "name=easymkl-weights", {"m": 2.2, "q": 1.0},
        "Aiolli and Donini, EasyMKL, Neurocomputing 2015", "weights from the margin of the sum",
    ),
    "mkl-cka": (
        "rule:rule_weights", _BOTH, "name=alignment-weights", {"m": 2.1, "q": 1.1},
        "Cortes, Mohri and Rostamizadeh, JMLR 2012", "weights of largest centred alignment",
    ),
    "mkl-pwmk": (
        "rule:rule_weights", ("classification",), "name=proportional-weights", {"m": 1.9, "q": 1.0},
        "Tanabe, Ho, Nguyen and Kawasaki, RIVF 2008", "weights proportional to accuracies",
    ),
    "mkl-simple": (
        "simplemkl:SimpleMKL", _BOTH, "total=1.0", {"m": 1.9, "q": 1.0},
        "Rakotomamonjy, Bach, Canu and Grandvalet, SimpleMKL, JMLR 2008",
        "the optimal weights of the simplex, by cuts",
    ),
    "mkl-elastic-net": (
        "elastic_net:ElasticNetMKL", _BOTH, "name=elastic-net-weights", {"m": 1.9, "q": 0.6},
        "Mourão-Miranda and others, Elastic-net MKL, arXiv 2512.11547",
        "the optimal weights of the elastic net, by cuts",
    ),
}  # fmt: skip
_SETS = {
    "average-weights": ("proportional:AverageWeights", "the point βⱼ = 1/q"),
    "easymkl-weights": ("easymkl:EasyMKLWeights", "the point of EasyMKL"),
    "alignment-weights": ("alignment:AlignmentWeights", "the point of largest centred alignment"),
    "proportional-weights": ("proportional:ProportionalWeights", "the point β ∝ accuracy"),
    "simplex": ("simplemkl:Simplex", "{β ≥ 0, Σβ = 1}"),
    "elastic-net-weights": (
        "elastic_net:ElasticNetWeights",
        "{βⱼ ≤ dⱼ/(ρ + (1 − ρ)dⱼ), Σd = 1}",
    ),
}


def _needs(tasks: tuple[str, ...], constraint: str) -> Needs:
    """Return what an algorithm over weights needs; a rule for labels needs a classifier."""
    learner = ("solve",) if tasks == _BOTH else ("solve", f"task={tasks[0]}")
    matrices = "fit_grams|fit_factors" if constraint in _OF_FACTORS else "fit_grams"
    return Needs(family=(matrices, "degree=1"), learner=learner, constraint=(constraint,))


@hookimpl
def kernelweave_register_algorithms(register: Callable[[AlgorithmSpec], None]) -> None:
    for name, (target, tasks, constraint, scaling, paper, summary) in _ALGORITHMS.items():
        register(
            AlgorithmSpec(
                name=name,
                target=f"{_HOME}.{target}",
                needs=_needs(tasks, constraint),
                prefers=("svc", "svr", "simplex"),
                tasks=tasks,
                paper=paper,
                summary=summary,
                scaling=scaling,
            )
        )


@hookimpl
def kernelweave_register_constraints(register: Callable[[ComponentSpec], None]) -> None:
    for name, (target, summary) in _SETS.items():
        register(ComponentSpec(name=name, target=f"{_HOME}.{target}", summary=summary))
