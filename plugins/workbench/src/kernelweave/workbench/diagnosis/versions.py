"""Which versions are installed, read from their metadata without importing them."""

from __future__ import annotations

import importlib.metadata
import platform

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
    found = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    own = {
        str(dist.metadata["Name"]): dist.version
        for dist in importlib.metadata.distributions()
        if str(dist.metadata["Name"]).startswith("kernelweave-")
    }
    found.update(sorted(own.items()))
    for name in THIRD_PARTY:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
