from .cuts import CutPool
from .grams import GramStack
from .master import MasterSolution, lower_bound_from, solve_cut_master
from .oracle import Evaluation, SaddleOracle, SolveCounts, objective_upper
from .penalties import Elastic, KSupport, NoPenalty, RidgePenalty, WeightPenalty
from .solver import (
    KernelWeights,
    SaddleSearch,
    as_learner,
    check_weights,
    run_search,
    solve_kernel_weights,
)

__all__ = [
    "CutPool",
    "Elastic",
    "Evaluation",
    "GramStack",
    "KSupport",
    "KernelWeights",
    "MasterSolution",
    "NoPenalty",
    "RidgePenalty",
    "SaddleOracle",
    "SaddleSearch",
    "SolveCounts",
    "WeightPenalty",
    "as_learner",
    "check_weights",
    "lower_bound_from",
    "objective_upper",
    "run_search",
    "solve_cut_master",
    "solve_kernel_weights",
]
