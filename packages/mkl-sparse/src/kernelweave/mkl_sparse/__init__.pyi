from .best_response import BestResponseRun, Ending
from .constraint import SparseSimplex
from .cross_validation import PathScores, cross_validate_path
from .estimators import SparseMKLClassifier, SparseMKLRegressor
from .paths import PathPoint, SparseMKLPath, sparse_mkl_path
from .projection import project_sparse_simplex
from .settings import BestResponse

__all__ = [
    "BestResponse",
    "BestResponseRun",
    "Ending",
    "PathPoint",
    "PathScores",
    "SparseMKLClassifier",
    "SparseMKLPath",
    "SparseMKLRegressor",
    "SparseSimplex",
    "__version__",
    "cross_validate_path",
    "project_sparse_simplex",
    "sparse_mkl_path",
]
__version__: str
