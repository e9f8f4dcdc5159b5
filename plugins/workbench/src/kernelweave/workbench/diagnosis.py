"""What `kernelweave doctor` knows: versions, threads and the cache of compiled code."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import re
from pathlib import Path

import platformdirs
from kernelweave.kernels_core.config import effective_threads

# settings of threads, by the start of their name
_SETTINGS = ("OMP_", "OPENBLAS_", "MKL_", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")


def versions() -> dict[str, str]:
    """Return versions by name: Python, every KernelWeave package, then all that they can use."""
    found = _installed()
    ours = sorted(name for name in found if name.startswith("kernelweave-"))
    needs = {line for name in ours for line in found[name].requires or ()}
    others = {_normalised(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in needs} - set(ours)
    return {
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        **{name: found[name].version for name in ours},
        **{
            name: found[name].version if name in found else "not installed"
            for name in sorted(others)
        },
    }


def _installed() -> dict[str, importlib.metadata.Distribution]:
    """Return what is installed, by name: of several versions the first, which Python imports."""
    found: dict[str, importlib.metadata.Distribution] = {}
    for each in importlib.metadata.distributions():
        # An installation that broke off has no name. The backport `importlib_metadata`, which
        # takes the place of Python's own once anything imports it, says so by an error.
        with contextlib.suppress(FileNotFoundError):
            if name := each.metadata["Name"]:
                found.setdefault(_normalised(name), each)
    return found


def _normalised(name: str) -> str:
    """Return the one spelling of a name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def threads() -> dict[str, object]:
    """Return cores, the threads that kernels use, and the settings."""
    import numpy  # noqa: F401
    import threadpoolctl

    pools = threadpoolctl.threadpool_info()
    return {
        "cores": os.cpu_count(),
        "used by kernels": effective_threads(),
        "pools": [f"{pool['internal_api']} {pool['num_threads']}" for pool in pools],
        "settings": {name: os.environ[name] for name in os.environ if name.startswith(_SETTINGS)},
    }


def numba_cache() -> dict[str, object]:
    """Return the folder that keeps compiled code, and whether it can be written.

    numba takes ``NUMBA_CACHE_DIR`` where it is set, else the folder of the sources, else one of
    the user's.
    """
    why, folder = "NUMBA_CACHE_DIR", Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    if not os.environ.get("NUMBA_CACHE_DIR"):
        why, folder = "next to the sources", _beside_the_sources()
        if not _is_writable(folder):
            why = "in your cache folder, because the sources are read-only"
            folder = Path(platformdirs.user_cache_dir("numba", appauthor=False))
    return {"folder": str(folder), "writable": _is_writable(folder), "why": why}


def is_compiled() -> bool:
    """Whether an earlier fit on this machine left its compiled code."""
    folder = Path(str(numba_cache()["folder"]))
    pattern = "*.nbi" if folder == _beside_the_sources() else "evidence_*/*.nbi"
    return any(folder.glob(pattern))


def _beside_the_sources() -> Path:
    spec = importlib.util.find_spec("kernelweave.evidence")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "__pycache__"


def _is_writable(folder: Path) -> bool:
    """Whether files can be written in a folder, or the folder made."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    return existing.is_dir() and os.access(existing, os.W_OK)
