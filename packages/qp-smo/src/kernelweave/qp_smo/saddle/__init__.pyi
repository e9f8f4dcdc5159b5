from .cuts import (
    CutPool,
    SaddleEvaluation,
    SaddleOracle,
    SolveCounts,
    least_over,
    lower_bound_from,
    mixed_cut,
    objective_upper,
)
from .master import MasterSolution, solve_cut_master
from .nested import NestedPenalty
from .penalties import KSupport, WeightPenalty
from .solver import (
    KernelWeights,
    SaddleSearch,
    as_learner,
    on_simplex,
    run_search,
    solve_kernel_weights,
)

__all__ = [
    "CutPool",
    "KSupport",
    "KernelWeights",
    "MasterSolution",
    "NestedPenalty",
    "SaddleEvaluation",
    "SaddleOracle",
    "SaddleSearch",
    "SolveCounts",
    "WeightPenalty",
    "as_learner",
    "least_over",
    "lower_bound_from",
    "mixed_cut",
    "objective_upper",
    "on_simplex",
    "run_search",
    "solve_cut_master",
    "solve_kernel_weights",
]
