"""Problems that several test files share."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core import RBF, KernelDictionary, Problem
from kernelweave.kernels_core.estimators import PrecomputedStack
from kernelweave.ridge_mkl.families import FittedFamily


def stack_problem(
    grams: Any, y: Any, learner: Any, constraint: Any, *, degree: int = 1, weight: Any = None
) -> Problem:
    grams, y = np.asarray(grams, dtype=float), np.asarray(y, dtype=float)
    family = FittedFamily(PrecomputedStack(grams), degree)
    return Problem(family, learner, constraint, np.arange(y.shape[-1])[:, None] * 1.0, y, weight)


def random_grams(n: int = 14, p: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    kernels = [RBF(0.3 * 2.0**k) for k in range(p - 1)]
    grams = np.array([*(k(X) for k in kernels), X @ X.T])
    return grams, rng.standard_normal(n)


def large_problem(kind: str, *, m: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """30 unit-diagonal kernels: three widths on each of ten columns, or thirty widths on all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 10))
    if kind == "columns":
        kernels = [RBF(2.0**e).on([c]) for c in range(10) for e in (-2, 0, 2)]
    else:
        kernels = [RBF(float(g)) for g in 2.0 ** np.linspace(-6, 4, 30)]
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(m)
    return KernelDictionary(kernels).fit_grams(X).grams, y - y.mean()
