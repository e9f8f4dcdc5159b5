from .projection import project_simplex, project_spectahedron
from .rank_one import FrankWolfeSolution, SparseSDPSolution, frank_wolfe, sparse_sdp

__all__ = [
    "FrankWolfeSolution",
    "SparseSDPSolution",
    "frank_wolfe",
    "project_simplex",
    "project_spectahedron",
    "sparse_sdp",
]
