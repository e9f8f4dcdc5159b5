"""Does a kernel keep what it promises? The check lives beside the kernels."""

from __future__ import annotations

from ..kernels.conformance import check_kernel

__all__ = ["check_kernel"]
