"""Import one installed member and resolve every public name: what a fresh install allows.

Run as ``python smoke.py kernelweave.qp_smo`` in an environment with that member alone.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from pathlib import Path

SCIKIT_LEARN_ABSENT = "scikit-learn"


def smoke(import_name: str) -> list[str]:
    """Return what is wrong with the installed package, one line each."""
    package = importlib.import_module(import_name)
    problems = []
    names = list(getattr(package, "__all__", ()))
    for name in names:
        try:
            getattr(package, name)
        except ImportError as error:
            # the one soft dependency: a generic estimator may name it and refuse
            if SCIKIT_LEARN_ABSENT not in str(error):
                problems.append(f"{import_name}.{name}: {error}")
        except AttributeError as error:
            problems.append(f"{import_name}.{name} is in __all__ and cannot be reached: {error}")
    for entry in importlib.metadata.entry_points(group="kernelweave"):
        try:
            entry.load()
        except ImportError as error:
            problems.append(f"entry point {entry.name} = {entry.value}: {error}")
    if not (Path(str(package.__file__)).parent / "py.typed").is_file():
        problems.append(f"{import_name} is installed without py.typed")
    print(f"{import_name}: {len(names)} public names")
    return problems


if __name__ == "__main__":
    found = smoke(sys.argv[1])
    print(*found, sep="\n")
    sys.exit(bool(found))
