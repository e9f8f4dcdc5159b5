from .bounds import Bound, lower_bound
from .branch_and_bound import GlobalOptimum, solve_global
from .certify import certify, prove
from .proof import prove_sparse
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
    "prove",
    "prove_sparse",
    "solve_global",
]
__version__: str
