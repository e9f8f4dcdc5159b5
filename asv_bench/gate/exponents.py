"""Does an algorithm's cost grow in the number of samples as it declares, no more and no less?"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import AlgorithmSpec, Problem, solve
from kernelweave.kernels_core.testing import small_problems

SIZES = (200, 400, 800, 1600)
MARGIN = 0.3
N_ITER = 2
REPEATS = 3
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


def seconds(spec: AlgorithmSpec, problem: Problem) -> float:
    """Return the least processor time of a few iterations, after a run that compiles."""
    best = math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for repeat in range(REPEATS + 1):
            start = time.process_time()
            solve(problem, spec, tol=0.0, max_iter=N_ITER, random_state=0)
            if repeat:
                best = min(best, time.process_time() - start)
    return best


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return p of the closest ``a + b·mᵖ``, a and b not negative.

    What does not grow, a, would flatten the slope of a line in logarithms. Distances are relative
    to the costs. Costs of which less than a fifth grows have the exponent 0.

    Examples
    --------
    >>> round(exponent([1, 2, 4, 8], [5 + m**2 for m in (1, 2, 4, 8)]), 2)
    2.0
    >>> exponent([1, 2, 4, 8], [3.0, 3.01, 3.0, 3.02])
    0.0
    """
    from scipy.optimize import minimize_scalar, nnls

    m = np.asarray(sizes, dtype=float) / max(sizes)
    t = np.asarray(costs, dtype=float)

    def fit(p: float) -> tuple[np.ndarray, float]:
        design = np.column_stack([np.ones_like(m), m**p]) / t[:, None]
        parts, distance = nnls(design, np.ones_like(t))
        return parts, float(distance)

    grid = np.arange(0.1, STEEPEST, 0.1)
    start = float(grid[np.argmin([fit(p)[1] for p in grid])])
    bounds = (max(0.05, start - 0.1), start + 0.1)
    p = float(minimize_scalar(lambda each: fit(each)[1], bounds=bounds, method="bounded").x)
    constant, growing = fit(p)[0]
    return p if growing >= LEAST_SHARE * (constant + growing) else 0.0


def sizes_for(spec: AlgorithmSpec) -> tuple[int, ...]:
    """Return the numbers of samples to measure at: `SIZES`, or less where fewer are taken."""
    if spec.max_samples is None or spec.max_samples >= max(SIZES):
        return SIZES
    return tuple(spec.max_samples // part for part in (5, 4, 3, 2))


def growth(spec: AlgorithmSpec, sizes: Sequence[int] | None = None) -> Growth:
    """Fit the exponent of some iterations on the first problem that the algorithm accepts."""
    chosen = sizes_for(spec) if sizes is None else sizes
    costs = [seconds(spec, next(iter(small_problems(spec, m)))) for m in chosen]
    return Growth(spec.name, exponent(chosen, costs), float(spec.scaling["m"]))
