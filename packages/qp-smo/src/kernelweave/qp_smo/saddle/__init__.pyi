from .cuts import CutPool, lower_bound_from
from .grams import GramStack, Stack, as_stack
from .low_rank import LowRankStack, fit_family, stack_of
from .master import MasterSolution, solve_cut_master
from .nested import NestedPenalty, NestedSupport
from .oracle import SaddleEvaluation, SaddleOracle, SolveCounts, objective_upper
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
    "GramStack",
    "KSupport",
    "KernelWeights",
    "LowRankStack",
    "MasterSolution",
    "NestedPenalty",
    "NestedSupport",
    "NoPenalty",
    "RidgePenalty",
    "SaddleEvaluation",
    "SaddleOracle",
    "SaddleSearch",
    "SolveCounts",
    "Stack",
    "WeightPenalty",
    "as_learner",
    "as_stack",
    "check_weights",
    "fit_family",
    "lower_bound_from",
    "objective_upper",
    "run_search",
    "solve_cut_master",
    "solve_kernel_weights",
    "stack_of",
]
