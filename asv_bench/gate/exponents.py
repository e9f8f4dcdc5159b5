"""Does an algorithm's cost grow in the number of samples as it declares, no more and no less?"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import AlgorithmSpec, solve
from kernelweave.kernels_core.testing import small_problems

SIZES = (20, 200, 400, 800, 1600)
MARGIN = 0.3
N_ITER = 2
REPEATS = 7
# an exponent is trusted where the growing part is this share of the largest cost
LEAST_SHARE = 0.2
STEEPEST = 8.0


@dataclass(frozen=True)
class Growth:
    """A fitted exponent in m beside the declared one."""

    name: str
    fitted: float
    declared: float

    @property
    def is_too_steep(self) -> bool:
        """Whether the cost grows faster than declared, by more than the margin."""
        return self.fitted > self.declared + MARGIN

    @property
    def is_too_flat(self) -> bool:
        """Whether the cost grows slower than declared, by more than the margin."""
        return self.fitted < self.declared - MARGIN

    @property
    def verdict(self) -> str:
        """What to say of it."""
        if self.is_too_steep:
            return "too steep"
        return "too flat" if self.is_too_flat else "as declared"

    def __str__(self) -> str:
        return f"{self.name}: m^{self.fitted:.2f}, declared m^{self.declared:g}"


def seconds(spec: AlgorithmSpec, sizes: Sequence[int]) -> list[float]:
    """Return the least processor time of a few iterations at each number of samples.

    One run of each size compiles and is not counted; then the sizes take turns, so that a busy
    machine does not slow one of them alone.
    """
    problems = [next(iter(small_problems(spec, m))) for m in sizes]
    best = [math.inf] * len(problems)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for repeat in range(REPEATS + 1):
            for i, problem in enumerate(problems):
                start = time.process_time()
                solve(problem, spec, tol=0.0, max_iter=N_ITER, random_state=0)
                if repeat:
                    best[i] = min(best[i], time.process_time() - start)
    return best


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return p of the ``a + b·mᵖ`` that the costs follow; the first size is a very small one.

    What does not grow, a, would flatten the slope of a line in logarithms. It leaves with the cost
    of the first size s: p is that of the closest ``log b + log (mᵖ − sᵖ)`` to the logarithms of
    what the other sizes cost more. Costs of which less than a fifth grows have the exponent 0.

    Examples
    --------
    >>> round(exponent([1, 4, 8, 16], [5 + m**2 for m in (1, 4, 8, 16)]), 2)
    2.0
    >>> exponent([1, 4, 8, 16], [3.0, 3.01, 3.0, 3.02])
    0.0
    """
    from scipy.optimize import minimize_scalar

    m = np.asarray(sizes, dtype=float) / max(sizes)
    grown = np.asarray(costs[1:], dtype=float) - costs[0]
    if grown[-1] < LEAST_SHARE * costs[-1]:
        return 0.0
    grown = np.maximum(grown, np.finfo(float).tiny)

    def distance(p: float) -> float:
        return float(np.var(np.log(grown) - np.log(m[1:] ** p - m[0] ** p)))

    return float(minimize_scalar(distance, bounds=(0.05, STEEPEST), method="bounded").x)


def sizes_for(spec: AlgorithmSpec) -> tuple[int, ...]:
    """Return the numbers of samples to measure at: `SIZES`, or less where fewer are taken."""
    if spec.max_samples is None or spec.max_samples >= max(SIZES):
        return SIZES
    return tuple(spec.max_samples // part for part in (10, 5, 4, 3, 2))


def growth(spec: AlgorithmSpec, sizes: Sequence[int] | None = None) -> Growth:
    """Fit the exponent of some iterations on the first problem that the algorithm accepts."""
    chosen = sizes_for(spec) if sizes is None else sizes
    return Growth(spec.name, exponent(chosen, seconds(spec, chosen)), float(spec.scaling["m"]))
