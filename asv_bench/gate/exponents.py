"""Does an algorithm's cost grow in the number of samples as it declares?"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import AlgorithmSpec, Problem, solve
from kernelweave.kernels_core.testing import small_problems

SIZES = (200, 400, 800)
MARGIN = 0.3
N_ITER = 2
REPEATS = 3


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


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the exponent of the least-squares line in logarithms.

    Examples
    --------
    >>> round(slope([1, 2, 4], [3, 12, 48]), 9)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def sizes_for(spec: AlgorithmSpec) -> tuple[int, ...]:
    """Return the numbers of samples to measure at: `SIZES`, or less where fewer are taken."""
    if spec.max_samples is None or spec.max_samples >= max(SIZES):
        return SIZES
    return tuple(spec.max_samples // part for part in (4, 3, 2))


def growth(spec: AlgorithmSpec, sizes: Sequence[int] | None = None) -> Growth:
    """Fit the exponent of some iterations on the first problem that the algorithm accepts.

    Small samples hide the highest power behind what does not grow, so that the fitted exponent is
    a lower estimate: only one above the declared is held against an algorithm.
    """
    chosen = sizes_for(spec) if sizes is None else sizes
    costs = [seconds(spec, next(iter(small_problems(spec, m)))) for m in chosen]
    return Growth(spec.name, slope(chosen, costs), float(spec.scaling["m"]))
