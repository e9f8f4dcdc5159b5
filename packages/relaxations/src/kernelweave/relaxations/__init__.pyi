from .bounds import Bound, lower_bound
from .branch_and_bound import GlobalOptimum, solve_global
from .certify import certify
from .model import misdp
from .search import SupportSearch

__all__ = [
    "Bound",
    "GlobalOptimum",
    "SupportSearch",
    "__version__",
    "certify",
    "lower_bound",
    "misdp",
    "solve_global",
]
__version__: str
