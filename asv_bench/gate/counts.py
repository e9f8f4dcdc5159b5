"""Deterministic counts of every registered algorithm on the small problems it accepts."""

from __future__ import annotations

import math
import tracemalloc
import warnings
from collections.abc import Iterable
from typing import Any

from kernelweave.kernels_core import AlgorithmSpec, Problem, Status, algorithms, solve
from kernelweave.kernels_core.registry import accepted_triples
from kernelweave.kernels_core.testing.problems import ProblemVariant, small_problems, variant_of

N_SAMPLES = 80
TOL = 1e-2
MAX_ITER = 200
# outputs that share a kernel are learned together, which one output does not show
JOINT = ProblemVariant("three outputs", n_samples=N_SAMPLES, n_tasks=3)


def name_of(spec: AlgorithmSpec, problem: Problem) -> str:
    """Return a name that another commit gives to the same problem."""
    return "/".join((spec.name, *problem.triple))


def counts(spec: AlgorithmSpec, problem: Problem) -> dict[str, float]:
    """Return iterations, the algorithm's counts, the value and the peak memory in Gram matrices.

    The first of two runs compiles and fills the caches. A solve that ends at a limit counts as
    infinite iterations: losing convergence is a regression too. Where the problem is not convex it
    ends at rest, and the value tells how good a point that is.
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
    ended = result.gap <= TOL or result.status is Status.STATIONARY
    found = {"iterations": float(result.n_iter) if ended else math.inf}
    found["value"] = result.upper_bound
    for name, values in result.history.counts.items():
        found[name] = float(values[-1])
    found["grams"] = peak / (8.0 * problem.n_samples**2)
    return found


def all_counts(specs: Iterable[AlgorithmSpec] | None = None) -> dict[str, dict[str, float]]:
    """Return the counts of every algorithm and problem by name."""
    chosen = algorithms().values() if specs is None else specs
    return {
        name: counts(spec, problem)
        for spec in chosen
        for name, problem in problems_of(spec).items()
    }


def problems_of(spec: AlgorithmSpec) -> dict[str, Problem]:
    """Return the problems that an algorithm is counted on by name, joint ones where it has them.

    Those of an algorithm of few samples have a quarter of the most that it takes.
    """
    size = N_SAMPLES if spec.max_samples is None else min(N_SAMPLES, spec.max_samples // 4)
    found = {name_of(spec, problem): problem for problem in small_problems(spec, size)}
    if "n_outputs" in spec.scaling:
        for triple in accepted_triples(spec):
            problem = variant_of(triple, JOINT)
            if problem is not None:
                found[f"{name_of(spec, problem)}/{JOINT.label}"] = problem
    return found
