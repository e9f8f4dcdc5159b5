from .projection import project_simplex, project_spectahedron
from .rank_one import SparseSDPSolution, sparse_sdp

__all__ = [
    "SparseSDPSolution",
    "project_simplex",
    "project_spectahedron",
    "sparse_sdp",
]
