from .learners import SVC, SVR
from .problem import DualSolution
from .proof import Proof, UnprovedError
from .saddle.cuts import CutPool
from .saddle.penalties import KSupport
from .saddle.solver import KernelWeights, solve_kernel_weights
from .squared_losses import Ridge, SquaredHingeSVC
from .svm import solve_svc, solve_svr

__all__ = [
    "SVC",
    "SVR",
    "CutPool",
    "DualSolution",
    "KSupport",
    "KernelWeights",
    "Proof",
    "Ridge",
    "SquaredHingeSVC",
    "UnprovedError",
    "solve_kernel_weights",
    "solve_svc",
    "solve_svr",
]
