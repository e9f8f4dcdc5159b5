from .best_response import BestResponseRun, Ending, project_sparse_simplex
from .constraint import SparseSimplex
from .estimators import SparseMKLClassifier, SparseMKLRegressor
from .paths import PathPoint, SparseMKLPath, sparse_mkl_path
from .settings import BestResponse

__all__ = [
    "BestResponse",
    "BestResponseRun",
    "Ending",
    "PathPoint",
    "SparseMKLClassifier",
    "SparseMKLPath",
    "SparseMKLRegressor",
    "SparseSimplex",
    "__version__",
    "project_sparse_simplex",
    "sparse_mkl_path",
]
__version__: str
