"""What `doctor` looks at: versions, threads and memory, the cache of compiled code, MOSEK."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

import platformdirs
from kernelweave.kernels_core.config import effective_threads

THIRD_PARTY = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "pandas",
    "matplotlib",
    "skops",
    "pyarrow",
    "cvxpy",
    "clarabel",
    "libsvm-official",
    "mosek",
)


def versions() -> dict[str, str]:
    """Return versions by name: Python, every KernelWeave package, then what they build on."""
    by_name = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    packages = {
        str(dist.metadata["Name"]): dist.version
        for dist in importlib.metadata.distributions()
        if str(dist.metadata["Name"]).startswith("kernelweave-")
    }
    by_name.update(sorted(packages.items()))
    for name in THIRD_PARTY:
        try:
            by_name[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            by_name[name] = "not installed"
    return by_name


VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMBA_THREADING_LAYER",
    "OMP_WAIT_POLICY",
)


def threads() -> dict[str, object]:
    """Return cores, the threads that kernels use, and the settings."""
    import numpy  # noqa: F401
    import threadpoolctl

    pools = [
        f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpoolctl.threadpool_info()
    ]
    return {
        "cores": os.cpu_count(),
        "used by kernels": effective_threads(),
        "pools": pools,
        "settings": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def numba_cache() -> dict[str, object]:
    """Return the folder that keeps compiled code, and whether it can be written.

    numba takes ``NUMBA_CACHE_DIR`` where it is set, else the folder of the sources, else one of
    the user's.
    """
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return {"folder": folder, "writable": _writable(Path(folder)), "why": "NUMBA_CACHE_DIR"}
    sources = _cache_of("kernelweave.qp_smo")
    if sources is not None and _writable(sources):
        return {"folder": str(sources), "writable": True, "why": "next to the sources"}
    user_folder = Path(platformdirs.user_cache_dir("numba", appauthor=False))
    why = "in your cache folder, because the sources are read-only"
    return {"folder": str(user_folder), "writable": _writable(user_folder), "why": why}


def is_compiled() -> bool:
    """Whether an earlier fit on this machine left its compiled code."""
    sources = None if os.environ.get("NUMBA_CACHE_DIR") else _cache_of("kernelweave.evidence")
    if sources is not None and any(sources.glob("*.nbi")):
        return True
    return any(Path(str(numba_cache()["folder"])).glob("evidence_*/*.nbi"))


def _cache_of(package: str) -> Path | None:
    """Return the folder of compiled code next to the sources of an installed package."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent / "__pycache__" if spec and spec.origin else None


def _writable(folder: Path) -> bool:
    """Whether files can be written in a folder, or the folder made."""
    for existing in (folder, *folder.parents):
        if existing.exists():
            return existing.is_dir() and os.access(existing, os.W_OK)
    return False


_PROBE = """
import mosek
with mosek.Env() as env:
    env.checkoutlicense(mosek.feature.pton)
"""
# Seconds for a licence server, beyond which `doctor` would look hung.
_PATIENCE = 20.0


def mosek_licence() -> str:
    """Return the state of MOSEK's licence, asked for in a process of its own.

    A licence server may be slow and a wheel may be broken; neither reaches this process.
    """
    if importlib.util.find_spec("mosek") is None:
        return "absent (not needed: Clarabel is the default)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"installed, but its licence server did not answer in {_PATIENCE:.0f} s"
    if done.returncode == 0:
        return "licensed"
    last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    if "icense" in last:
        return f"installed without a licence, so Clarabel is used ({last})"
    return f"installed, but it does not load ({last})"
