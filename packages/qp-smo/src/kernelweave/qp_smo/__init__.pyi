from .learners import SVC, SVR, LearnerSolution
from .saddle.cuts import CutPool
from .saddle.grams import GramStack
from .saddle.penalties import Elastic, KSupport, NoPenalty, Ridge
from .saddle.solver import KernelWeights, solve_kernel_weights
from .solution import DualSolution, SolveStatus
from .squared_hinge import solve_squared_hinge_svc
from .svm import solve_svc, solve_svr
from .unstored import UnstoredKernel

__all__ = [
    "SVC",
    "SVR",
    "CutPool",
    "DualSolution",
    "Elastic",
    "GramStack",
    "KSupport",
    "KernelWeights",
    "LearnerSolution",
    "NoPenalty",
    "Ridge",
    "SolveStatus",
    "UnstoredKernel",
    "solve_kernel_weights",
    "solve_squared_hinge_svc",
    "solve_svc",
    "solve_svr",
]
