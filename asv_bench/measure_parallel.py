"""A grid of sixty fits on one and on two workers of a Dask cluster, one thread each, by turns.

``python asv_bench/measure_parallel.py``; needs ``distributed``. Both workers are warm: each has
run a small grid, so that compiled code is loaded. Seconds on the clock depend on what else the
machine does; the processor time of the workers says what two free cores would gain.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass

import dask
import joblib
import numpy as np
from distributed import Client, LocalCluster
from kernelweave.kernels_core import PrecomputedGrams
from kernelweave.mkl_sparse import SparseMKLClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

N_SAMPLES = 1200
N_KERNELS = 8
GRID = {"C": [0.1, 0.3, 1.0, 3.0, 10.0], "lam": [0.1, 1.0, 3.0, 10.0]}
# see docs/parallel.md: with Dask's own value each array of a fit is fetched anew from the system
TRIM = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"


@dataclass(frozen=True)
class Run:
    """What one grid took."""

    seconds: float
    processor: list[float]
    scores: np.ndarray


def problem(n_samples: int = N_SAMPLES) -> tuple[PrecomputedGrams, np.ndarray]:
    """Return eight Gaussian Gram matrices and labels that none of them separates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, 6))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n_samples) > 0.0, 1, -1)
    grams = [rbf_kernel(X, gamma=2.0**power) for power in range(-6, N_KERNELS - 6)]
    return PrecomputedGrams(np.stack(grams)), y


def search(X: PrecomputedGrams, y: np.ndarray) -> GridSearchCV:
    """Run twenty settings, of twenty starts each, on three folds."""
    model = SparseMKLClassifier(
        "precomputed", k0=2, algorithm="smkl-best-response", n_init=20, random_state=0
    )
    return GridSearchCV(model, GRID, cv=3, refit=False).fit(X, y)


def measured(client: Client, workers: list[str], X: PrecomputedGrams, y: np.ndarray) -> Run:
    """Run the grid on some workers of a cluster."""
    before = client.run(time.process_time, workers=workers)
    start = time.perf_counter()
    with joblib.parallel_config("dask", workers=workers):
        found = search(X, y)
    seconds = time.perf_counter() - start
    after = client.run(time.process_time, workers=workers)
    processor = [after[each] - before[each] for each in workers]
    return Run(seconds, processor, found.cv_results_["mean_test_score"])


def main() -> None:
    """Print seconds, processor time, their ratios, and whether the scores are those of no Dask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trim", action="store_true", help="keep Dask's MALLOC_TRIM_THRESHOLD_")
    given = parser.parse_args()
    X, y = problem()
    if not given.trim:
        dask.config.set({TRIM: None})
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.run(search, *problem(60))
        workers = list(client.scheduler_info()["workers"])
        rounds = [
            (measured(client, workers[:1], X, y), measured(client, workers, X, y))
            for _ in range(given.rounds)
        ]
    start = time.process_time()
    alone = search(X, y).cv_results_["mean_test_score"]
    alone_seconds = time.process_time() - start
    same = all(np.array_equal(alone, run.scores) for pair in rounds for run in pair)
    for one, two in rounds:
        sys.stdout.write(
            f"clock {one.seconds:.1f} s and {two.seconds:.1f} s, {one.seconds / two.seconds:.2f} "
            f"times; processor {sum(one.processor):.1f} s and "
            f"{' + '.join(f'{each:.1f}' for each in two.processor)} s, "
            f"{sum(one.processor) / max(two.processor):.2f} times\n"
        )
    sys.stdout.write(
        f"without Dask {alone_seconds:.1f} s of the processor; same scores: {same}; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )


if __name__ == "__main__":
    main()
