"""Import one installed member, resolve every public name, and run the examples of its README.

Run as ``python smoke.py kernelweave.qp_smo README.md`` in an environment with that member alone;
so nothing is imported here but the standard library.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
from pathlib import Path

SCIKIT_LEARN_ABSENT = "scikit-learn"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(text: str) -> list[str]:
    """Return the Python blocks of a page."""
    return BLOCK.findall(text)


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
    _, name, readme = sys.argv
    found = smoke(name)
    print(*found, sep="\n")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for code in examples(Path(readme).read_text(encoding="utf-8")):
        exec(compile(code, readme, "exec"), namespace)
    sys.exit(bool(found))
