"""Only public names of the packages are used, and everything is registered and lazy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import kernelweave.baselines
import pytest
from kernelweave.kernels_core import algorithms, components

FOLDER = Path(kernelweave.baselines.__file__).parent
FOREIGN = "kernelweave."
OWN = "kernelweave.baselines"
NAMES = ("average", "easy", "cka", "pwmk", "simple", "elastic-net")


def private_imports(source: str) -> list[str]:
    """Return imports of other members with a private part in their path or name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            foreign = name.startswith(FOREIGN) and not name.startswith(OWN)
            if foreign and any(part.startswith("_") for part in name.split(".")):
                found.append(name)
    return found


def test_no_private_module_is_imported() -> None:
    files = sorted(FOLDER.glob("**/*.py"))
    assert files
    assert [name for path in files for name in private_imports(path.read_text())] == []


@pytest.mark.parametrize(
    "line",
    [
        "from kernelweave.kernels_core._plugin import x",
        "import kernelweave.qp_smo._njit_smo",
        "from kernelweave.kernels_core.grams import _fill",
    ],
)
def test_planted_private_import_is_caught(line: str) -> None:
    assert private_imports(line)
    assert not private_imports("from kernelweave.kernels_core.grams import as_grams")


def test_everything_is_registered() -> None:
    names = {f"mkl-{name}" for name in NAMES}
    assert names <= set(algorithms())
    for name in names:
        spec = algorithms()[name]
        assert spec.load() is not None
        assert spec.paper
    sets = {"average-weights", "easymkl-weights", "alignment-weights", "proportional-weights"}
    assert {"simplex", "elastic-net-weights", *sets} <= set(components("constraints"))


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, kernelweave.baselines, kernelweave.baselines._plugin; "
        "print([m for m in ('numba', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
