from .learner import Learner, Solution, SolveStatus, collect
from .problem import Needs, Problem
from .set import WeightSet, lower_bound

__all__ = [
    "Learner",
    "Needs",
    "Problem",
    "Solution",
    "SolveStatus",
    "WeightSet",
    "collect",
    "lower_bound",
]
