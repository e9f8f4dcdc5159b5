"""The sound case that every fault spoils; its size is what faults count on."""

from __future__ import annotations

from typing import Any

import numpy as np
from expectations import Case

N = 20


def sound(task: str) -> Case:
    """Return a sound case: N points in the plane on a grid of eighths, overlapping classes.

    Eighths are exact in float32, so that a change of the type changes nothing else.
    """
    rng = np.random.default_rng(7)
    X = np.round(8 * rng.uniform(-1, 1, (N, 2))) / 8
    value = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(N)
    if task == "classification":
        y: Any = np.where(value > np.median(value), 1, -1)
    else:
        y = np.round(64 * value) / 64
    return Case(task, X, y, X[:6] + 0.0625)
