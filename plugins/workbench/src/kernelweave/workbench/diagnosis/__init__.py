"""What `doctor` looks at, a subject each."""

from __future__ import annotations

from .caches import numba_cache
from .mosek import mosek_licence
from .resources import memory, threads
from .versions import versions

__all__ = ["memory", "mosek_licence", "numba_cache", "threads", "versions"]
