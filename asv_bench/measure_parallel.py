"""Seconds of a grid of sixty fits on one and on two Dask workers, one thread each, by turns.

``python asv_bench/measure_parallel.py``; needs ``distributed``. On a machine that is busy the two
compete with what else runs: the load is printed beside the figures.
"""

from __future__ import annotations

import os
import sys
import time

import joblib
import numpy as np
from distributed import Client, LocalCluster
from kernelweave.kernels_core import PrecomputedGrams
from kernelweave.mkl_sparse import SparseMKLClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

N_SAMPLES = 600
N_KERNELS = 8
GRID = {"C": [0.1, 0.3, 1.0, 3.0, 10.0], "lam": [0.1, 1.0, 3.0, 10.0]}
ROUNDS = 3


def problem() -> tuple[PrecomputedGrams, np.ndarray]:
    """Return eight Gaussian Gram matrices and labels that none of them separates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, 6))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(N_SAMPLES) > 0.0, 1, -1)
    grams = [rbf_kernel(X, gamma=2.0**power) for power in range(-6, N_KERNELS - 6)]
    return PrecomputedGrams(np.stack(grams)), y


def search(X: PrecomputedGrams, y: np.ndarray) -> GridSearchCV:
    """Run twenty settings on three folds."""
    model = SparseMKLClassifier("precomputed", k0=2, random_state=0)
    return GridSearchCV(model, GRID, cv=3, refit=False).fit(X, y)


def main() -> None:
    """Print seconds, their ratio, and whether the scores are the same."""
    X, y = problem()
    seconds: dict[int, list[float]] = {1: [], 2: []}
    scores = []
    for round_ in range(ROUNDS + 1):
        for n_workers in seconds:
            options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
            with (
                LocalCluster(**options) as cluster,
                Client(cluster),
                joblib.parallel_config("dask"),
            ):
                joblib.Parallel()(joblib.delayed(search)(X[:60, :60], y[:60]) for _ in range(4))
                start = time.perf_counter()
                scores.append(search(X, y).cv_results_["mean_test_score"])
                if round_:
                    seconds[n_workers].append(time.perf_counter() - start)
    best = {n: min(found) for n, found in seconds.items()}
    same = all(np.array_equal(scores[0], each) for each in scores)
    sys.stdout.write(
        f"one worker {best[1]:.2f} s, two {best[2]:.2f} s: {best[1] / best[2]:.2f} times as fast; "
        f"same scores: {same}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )


if __name__ == "__main__":
    main()
