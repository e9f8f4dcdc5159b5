"""Peak memory and time of fits of 5000 samples, 117 kernels and 100 outputs.

Each fit runs in a process of its own, whose peak resident memory is that of the fit, the imports
and the data together. ``python asv_bench/measure_large_fit.py grid-joint stack-input`` measures
two of the cases, no name all three; a memory limit of 12 GiB is set for each.

=============  ==============================================================  ==================
case           Gram matrices                                                   what is learned
=============  ==============================================================  ==================
grid-input     computed where they are used (`GaussianGrid`)                   weights
grid-joint     computed where they are used                                    weights and L
stack-input    a stack in single precision, 10.9 GiB                           weights
=============  ==============================================================  ==================
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

CASES = ("grid-input", "grid-joint", "stack-input")
GIB = 2.0**30


def series(n_samples: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nine columns, and outputs that share eight smooth functions of four of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 9))
    shared = [np.sin((1 + k % 3) * X[:, k % 4] + k) for k in range(8)]
    Y = np.stack(shared, axis=1) @ rng.standard_normal((8, n_outputs))
    return X, Y + 0.3 * rng.standard_normal(Y.shape)


def measure(case: str, n_samples: int, n_outputs: int, steps: int) -> dict[str, object]:
    """Fit one case in this process."""
    from kernelweave.kernels_core import config_context
    from kernelweave.vv_rkhs import GaussianGrid, MatrixValuedKernelRegressor

    X, Y = series(n_samples, n_outputs)
    grid = GaussianGrid(2.0**-6, 13)
    stacked = case == "stack-input"
    model = MatrixValuedKernelRegressor(
        grid.fit_grams(X[:1]).kernels if stacked else grid,
        learn_output=case == "grid-joint",
        dtype="float32" if stacked else "float64",
        lam=0.1,
        tol=1e-2,
        max_iter=steps,
        memory_limit=12 * GIB,
        verbose=1,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    with config_context(n_threads=1):
        result = model.fit(X, Y).result_
    return {
        "case": case,
        "samples": n_samples,
        "kernels": len(model.weights_),
        "outputs": n_outputs,
        "steps": result.n_iter,
        "status": result.status.label,
        "first value": result.history.value[0],
        "last value": result.history.value[-1],
        "gap": result.gap,
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
        "seconds": time.perf_counter() - wall,
        "processor seconds": time.process_time() - cpu,
    }


def main() -> None:
    """Measure the cases named, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--outputs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    cases = given.cases or list(CASES)
    if not set(cases) <= set(CASES):
        parser.error(f"cases are {', '.join(CASES)}")
    size = ["--samples", str(given.samples), "--outputs", str(given.outputs)]
    for case in cases:
        if given.here:
            found = measure(case, given.samples, given.outputs, given.steps)
            sys.stdout.write(json.dumps(found) + "\n")
            continue
        command = [sys.executable, __file__, case, "--here", "--steps", str(given.steps), *size]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
