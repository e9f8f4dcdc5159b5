from .best_response import BestResponseRun as BestResponseRun
from .best_response import Ending as Ending
from .best_response import project_sparse_simplex as project_sparse_simplex
from .constraint import SparseSimplex as SparseSimplex
from .estimators import SparseMKLClassifier as SparseMKLClassifier
from .estimators import SparseMKLRegressor as SparseMKLRegressor
from .paths import PathPoint as PathPoint
from .paths import SparseMKLPath as SparseMKLPath
from .paths import sparse_mkl_path as sparse_mkl_path
from .settings import BestResponse as BestResponse

__version__: str
