"""What a first fit compiles, from an empty cache: CPU seconds of each function.

    python asv_bench/measure_compile.py [solve_svc] [sparse] [tessellated] [evidence]

Each fit runs in two processes: the first compiles, the second reads what the first has kept. Python
has compiled numba's own modules before, in a process of which nothing is told.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from numba.core import event

FITS = ("solve_svc", "sparse", "tessellated", "evidence")


class Compiled(event.Listener):  # type: ignore[misc]
    """CPU seconds of each compiled function, those of the functions it calls apart."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[list[float]] = []

    def on_start(self, event: event.Event) -> None:
        """Begin a function."""
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: event.Event) -> None:
        """Count a function, and what it took as the callee of another."""
        start, inner = self._open.pop()
        total = time.process_time() - start
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__.removeprefix('kernelweave.')}.{function.__name__}"
        name = name if function.__module__.startswith("kernelweave.") else "parts of numba's own"
        self.seconds[name] = self.seconds.get(name, 0.0) + total - inner
        if self._open:
            self._open[-1][1] += total


def fit(name: str) -> Callable[[], object]:
    """Return the first fit, its imports done."""
    X = np.random.default_rng(0).random((200, 5))
    y = np.where((X[:, 0] - 0.5) * (X[:, 1] - 0.5) > 0.0, 1.0, -1.0)
    if name == "solve_svc":
        from kernelweave.qp_smo import solve_svc

        K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
        return lambda: solve_svc(K, y, C=1.0)
    if name == "sparse":
        from kernelweave.mkl_sparse import SparseMKLClassifier

        return lambda: SparseMKLClassifier().fit(X, y)
    if name == "evidence":
        from kernelweave.evidence import EvidenceKernelClassifier

        return lambda: EvidenceKernelClassifier().fit(X, y)
    from kernelweave.spectahedron import TessellatedKernelClassifier

    return lambda: TessellatedKernelClassifier().fit(X, y)


def measure(name: str) -> None:
    """Print what the first fit of this process takes, and its functions."""
    compiled, work = Compiled(), fit(name)
    with event.install_listener("numba:compile", compiled):
        start = time.process_time()
        work()
        seconds = time.process_time() - start
    start = time.process_time()
    work()
    again = time.process_time() - start
    lines = [
        f"{name}: {seconds:.2f} CPU s, {sum(compiled.seconds.values()):.2f} of them compile; "
        f"{again:.2f} the next time"
    ]
    for function, part in sorted(compiled.seconds.items(), key=lambda item: -item[1]):
        lines.append(f"  {part:6.2f}  {function}")
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> None:
    """Measure the fits named, each in a process with an empty cache and in one with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("fits", nargs="*", metavar="FIT", help=f"of {', '.join(FITS)}")
    parser.add_argument("--here", action="store_true", help="measure in this process, once")
    asked = parser.parse_args()
    if unknown := set(asked.fits).difference(FITS):
        parser.error(f"no fit is called {min(unknown)}: there are {', '.join(FITS)}")
    if asked.here:
        measure(asked.fits[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        shared = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/modules"}
        shared.pop("PYTHONDONTWRITEBYTECODE", None)
        for name in ("", *(asked.fits or FITS)):
            for _ in range(2 if name else 1):
                subprocess.run(
                    [sys.executable, __file__, "--here", name or "solve_svc"],
                    env={**shared, "NUMBA_CACHE_DIR": f"{folder}/code of {name}"},
                    stdout=None if name else subprocess.DEVNULL,
                    check=True,
                )


if __name__ == "__main__":
    main()
