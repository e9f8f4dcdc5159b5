"""The first fit in an environment, which compiles everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRST_FIT = """
import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.spectahedron import TessellatedKernelClassifier
from numba.core import event

class Slow(event.Listener):
    now = 0.0
    def monotonic(self):
        return self.now
    def on_start(self, event):
        self.now += 1000.0
    def on_end(self, event):
        pass

clock.time = slow = Slow()
X = np.random.default_rng(0).random((60, 2))
y = (X[:, 0] - 0.5) * (X[:, 1] - 0.5) > 0
# after the watch of the library, whose place is before the deadline starts
import kernelweave.kernels_core.compiled
event.register("numba:compile", slow)
fit = TessellatedKernelClassifier(max_time=1.0).fit(X, y)
assert slow.now > 10_000.0, slow.now
print(fit.result_.status.name)
"""


@pytest.mark.slow
def test_compiling_is_not_part_of_max_time(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FIRST_FIT],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.stdout.strip() == "CONVERGED", done.stderr
