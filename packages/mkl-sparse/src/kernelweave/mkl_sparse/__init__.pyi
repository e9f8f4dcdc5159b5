from .best_response import BestResponseRun, Ending
from .constraint import SparseSimplex
from .estimators import SparseMKLClassifier, SparseMKLRegressor
from .projection import project_sparse_simplex

__all__ = [
    "BestResponseRun",
    "Ending",
    "SparseMKLClassifier",
    "SparseMKLRegressor",
    "SparseSimplex",
    "__version__",
    "project_sparse_simplex",
]
__version__: str
