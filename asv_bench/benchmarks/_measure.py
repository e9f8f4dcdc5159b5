"""What several benchmarks need: exponents, ratios within one process, and fixed data.

Every figure runs in a process of its own. What is slow to import is imported where it is used,
and what several figures share is computed once, by ``setup_cache``: reporting a count then costs
the start of a Python process and no more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np


def seconds(run: Callable[[], object], repeats: int = 7) -> float:
    """Return the smallest time of some runs, after one that compiles and warms the caches."""
    run()
    best = math.inf
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the slope of log cost against log size by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def checkered(n_samples: int, n_features: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return points in the unit cube and the signs of a product of two coordinates, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    noise = 0.02 * rng.standard_normal(n_samples)
    y = np.sign((X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 0.1 * (X[:, -1] - 0.5) + noise)
    return X, y
