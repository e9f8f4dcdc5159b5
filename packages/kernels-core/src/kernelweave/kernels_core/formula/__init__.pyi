from .learner import Learner, Solution, SolveStatus, collect
from .problem import Problem
from .set import WeightSet, lower_bound

__all__ = [
    "Learner",
    "Problem",
    "Solution",
    "SolveStatus",
    "WeightSet",
    "collect",
    "lower_bound",
]
