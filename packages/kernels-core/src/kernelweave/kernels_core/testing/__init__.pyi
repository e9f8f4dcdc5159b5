from .algorithm import check_algorithm
from .estimator import check_estimator
from .intervals import Interval, check_intervals_overlap
from .kernel import check_kernel
from .learner import check_learner
from .problems import make_classification, make_regression, small_problems

__all__ = [
    "Interval",
    "check_algorithm",
    "check_estimator",
    "check_intervals_overlap",
    "check_kernel",
    "check_learner",
    "make_classification",
    "make_regression",
    "small_problems",
]
