from .cuts import CutPool, lower_bound_from
from .master import MasterSolution, solve_cut_master
from .nested import NestedPenalty, NestedSupport
from .oracle import SaddleEvaluation, SaddleOracle, SolveCounts, objective_upper
from .penalties import KSupport, NoPenalty, RidgePenalty, WeightPenalty
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
    "NestedSupport",
    "NoPenalty",
    "RidgePenalty",
    "SaddleEvaluation",
    "SaddleOracle",
    "SaddleSearch",
    "SolveCounts",
    "WeightPenalty",
    "as_learner",
    "lower_bound_from",
    "objective_upper",
    "on_simplex",
    "run_search",
    "solve_cut_master",
    "solve_kernel_weights",
]
