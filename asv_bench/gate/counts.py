"""Deterministic counts of every registered algorithm on the small problems it accepts."""

from __future__ import annotations

import math
import tracemalloc
import warnings
from collections.abc import Iterable
from typing import Any

from kernelweave.kernels_core import AlgorithmSpec, Problem, algorithms, solve
from kernelweave.kernels_core.testing import small_problems

N_SAMPLES = 80
TOL = 1e-2
MAX_ITER = 200


def name_of(spec: AlgorithmSpec, problem: Problem) -> str:
    """Return a name that another commit gives to the same problem."""
    return "/".join((spec.name, *problem.triple))


def counts(spec: AlgorithmSpec, problem: Problem) -> dict[str, float]:
    """Return iterations, the algorithm's own counts, and the peak memory in Gram matrices.

    The first of two runs compiles and fills the caches. A gap that stays open counts as infinite
    iterations: losing convergence is a regression too.
    """
    options: dict[str, Any] = {"tol": TOL, "max_iter": MAX_ITER, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(problem, spec, **options)
        tracemalloc.start()
        try:
            result = solve(problem, spec, **options)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    found = {"iterations": float(result.n_iter) if result.gap <= TOL else math.inf}
    for name, values in result.history.counts.items():
        found[name] = float(values[-1])
    found["grams"] = peak / (8.0 * problem.n_samples**2)
    return found


def all_counts(specs: Iterable[AlgorithmSpec] | None = None) -> dict[str, dict[str, float]]:
    """Return the counts of every algorithm and problem by name."""
    chosen = algorithms().values() if specs is None else specs
    return {
        name_of(spec, problem): counts(spec, problem)
        for spec in chosen
        for problem in small_problems(spec, N_SAMPLES)
    }
