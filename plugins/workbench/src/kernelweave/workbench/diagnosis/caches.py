"""Where compiled kernels are kept between runs."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import platformdirs


def numba_cache() -> dict[str, object]:
    """Return the folder that keeps compiled code, and whether it can be written.

    numba takes ``NUMBA_CACHE_DIR`` where it is set, else the folder of the sources, else one of
    the user's.
    """
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return {"folder": folder, "writable": _writable(Path(folder)), "why": "NUMBA_CACHE_DIR"}
    spec = importlib.util.find_spec("kernelweave.qp_smo")
    if spec is not None and spec.origin is not None:
        beside = Path(spec.origin).parent / "__pycache__"
        if _writable(beside):
            return {"folder": str(beside), "writable": True, "why": "beside the sources"}
    own = Path(platformdirs.user_cache_dir("numba", appauthor=False))
    why = "of the user, since the sources are read-only"
    return {"folder": str(own), "writable": _writable(own), "why": why}


def is_compiled() -> bool:
    """Whether an earlier fit on this machine left its compiled code."""
    spec = importlib.util.find_spec("kernelweave.evidence")
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return any(Path(folder).glob("evidence_*/*.nbi"))
    beside = Path(spec.origin).parent / "__pycache__" if spec and spec.origin else None
    if beside is not None and any(beside.glob("*.nbi")):
        return True
    return any(Path(str(numba_cache()["folder"])).glob("evidence_*/*.nbi"))


def _writable(folder: Path) -> bool:
    """Whether files can be written in a folder, or the folder made."""
    for existing in (folder, *folder.parents):
        if existing.exists():
            return existing.is_dir() and os.access(existing, os.W_OK)
    return False
