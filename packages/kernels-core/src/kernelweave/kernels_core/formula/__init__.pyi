from .learner import Learner, Solution, SolveStatus, collect
from .needs import Needs
from .problem import Problem
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
