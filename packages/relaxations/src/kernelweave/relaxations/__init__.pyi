from .bounds import Bound, lower_bound
from .branch_and_bound import GlobalOptimum, solve_global
from .certify import certify
from .model import misdp
from .search import SupportSearch
from .settings import BranchAndBound, SemidefiniteProgram

__all__ = [
    "Bound",
    "BranchAndBound",
    "GlobalOptimum",
    "SemidefiniteProgram",
    "SupportSearch",
    "__version__",
    "certify",
    "lower_bound",
    "misdp",
    "solve_global",
]
__version__: str
