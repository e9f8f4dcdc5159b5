"""How many instructions a fit executes: a constant factor that no count of steps sees.

Each fit runs once before it is counted, so that code is compiled, imported and cached; then
callgrind counts one run. The hash seed, the number of threads and the processor that code is
compiled for are fixed, so that two runs of one commit differ by well under a per cent.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

# what valgrind emulates; code compiled for a wider processor would stop there
PROCESSOR = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx2,+fma",
    "OPENBLAS_CORETYPE": "Haswell",
}
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
FIXED = {**PROCESSOR, **ONE_THREAD, "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
ABSENT = "instructions are not counted: valgrind is not installed (apt-get install valgrind)"


def is_available() -> bool:
    """Return whether valgrind and what controls it are on the machine."""
    return all(shutil.which(name) for name in ("valgrind", "callgrind_control"))


def count(targets: Iterable[str]) -> dict[str, float]:
    """Return the instructions of each target, a ``"module:function"`` as in `gate.fits`.

    Each has two processes of its own: one compiles what it needs, one is counted. One that raises
    is left out, and said so.
    """
    found = {}
    for target in targets:
        counted = _instructions(target)
        if counted is None:
            sys.stderr.write(f"{target} does not run here, and is not counted\n")
        else:
            found[target] = counted
    return found


def all_counts() -> dict[str, dict[str, float]]:
    """Return the instructions of the twelve fits, by names that another commit gives them too."""
    from .fits import FITS

    names = {f"gate.fits:{each.__name__}": name for name, each in FITS.items()}
    found = count(names)
    return {f"instructions/{names[each]}": {"instructions": n} for each, n in found.items()}


def _instructions(target: str) -> float | None:
    environment = {**os.environ, **FIXED}
    child = [sys.executable, "-m", "gate.instructions", target]
    if subprocess.run(child, env=environment).returncode != 0:
        return None
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counted"
        tool = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
        command = [*tool, f"--callgrind-out-file={out}", *child, "counted"]
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            return None
        total = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
    return float(total.group(1)) if total else None


def _switch(to: str) -> None:
    """Start or stop the counting of this process."""
    command = ["callgrind_control", "--instr=" + to, str(os.getpid())]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _run(target: str, counted: bool) -> None:
    module, _, name = target.partition(":")
    warnings.simplefilter("ignore")
    run = getattr(importlib.import_module(module), name)()
    run()
    if counted:
        _switch("on")
        run()
        _switch("off")


if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2:] == ["counted"])
