from .best_response import BestResponseRun, Ending
from .constraint import SparseSimplex
from .cross_validation import PathScores, cross_validate_path
from .displays import plot_gap_by_solves, plot_supports, plot_weights
from .estimators import SparseMKLClassifier, SparseMKLRegressor
from .paths import PathPoint, SparseMKLPath, sparse_mkl_path
from .projection import project_sparse_simplex

__all__ = [
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
    "plot_gap_by_solves",
    "plot_supports",
    "plot_weights",
    "project_sparse_simplex",
    "sparse_mkl_path",
]
__version__: str
