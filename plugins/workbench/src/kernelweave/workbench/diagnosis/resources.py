"""Threads and memory."""

from __future__ import annotations

import importlib.util
import os
import sys

from kernelweave.kernels_core import memory as budget
from kernelweave.kernels_core.config import effective_threads

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMBA_THREADING_LAYER",
    "OMP_WAIT_POLICY",
)
_LAYERS = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}


def threads() -> dict[str, object]:
    """Return cores, the threads that kernels use, the layers of numba, and the settings.

    The layers are found without compiling anything; numba takes the first that loads.
    """
    import numpy  # noqa: F401
    import threadpoolctl

    pools = [
        f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpoolctl.threadpool_info()
    ]
    return {
        "cores": os.cpu_count(),
        "used by kernels": effective_threads(),
        "pools": pools,
        "numba layers": _numba_layers(),
        "settings": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _numba_layers() -> list[str]:
    if importlib.util.find_spec("numba") is None:
        return []
    found = []
    for layer, module in _LAYERS.items():
        try:
            importlib.import_module(f"numba.np.ufunc.{module}")
        except ImportError:
            continue
        found.append(layer)
    return found


def memory() -> dict[str, object]:
    """Return the memory of the machine and the limit that a solve respects, in bytes."""
    return {
        "machine": budget.machine_bytes(),
        "limit": budget.limit_bytes(),
        "address bits": 64 if sys.maxsize > 2**32 else 32,
    }
