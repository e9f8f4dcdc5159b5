"""Does an algorithm's cost grow as it declares, no more and no less?

Measured in each size that it declares: m samples, q kernels, n_P the side of P, n_outputs.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from kernelweave.kernels_core import RBF, AlgorithmSpec, KernelDictionary, Problem, solve
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.testing import small_problems

# the first is so small that its cost is what does not grow
SIZES: dict[str, tuple[int, ...]] = {
    "m": (20, 200, 400, 800, 1600),
    # few supports of 16 kernels are enumerated, which is another algorithm
    "q": (2, 32, 64, 96, 128),
    # of features: a tessellated kernel of degree 1 in d of them has n_P = 2(2d + 1), so that what
    # each of them costs is part of the growth
    "n_P": (1, 8, 16, 32, 48),
    # below 64 what does not grow is most of the cost
    "n_outputs": (1, 16, 32, 64, 128),
}
# of features, for algorithms of few samples, which grow fast
FEW_FEATURES = (1, 2, 4, 6, 8, 12)
# of samples, where something else grows
N_SAMPLES = {"q": 150, "n_P": 400, "n_outputs": 150}
MARGIN = 0.3
N_ITER = 2
REPEATS = 7
# long solves are steady: no further round after so many seconds of them
LONGEST = 20.0
# measurements of an exponent that is not as declared
ATTEMPTS = 3
# an exponent is trusted where the growing part is this share of the largest cost
LEAST_SHARE = 0.2
STEEPEST = 8.0


@dataclass(frozen=True)
class Growth:
    """A fitted exponent beside the declared one, in the size of that name."""

    name: str
    fitted: float
    declared: float
    size: str = "m"

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
        size = self.size
        return f"{self.name}: {size}^{self.fitted:.2f}, declared {size}^{self.declared:g}"


def sized(spec: AlgorithmSpec, size: str, value: int) -> tuple[float, Problem]:
    """Return the first problem that the algorithm accepts with one size changed, and that size.

    `size` in `SIZES`; `value`: as it stands there, of features for n_P.
    """
    if size == "m":
        return float(value), next(iter(small_problems(spec, value)))
    if size not in SIZES:
        raise ValueError(f"scaling must be declared in {', '.join(SIZES)}, got {size!r}")
    wanted = N_SAMPLES[size]
    # few, as what samples cost does not grow with anything else: of 50, it was most of the cost
    m = wanted if spec.max_samples is None else min(wanted, spec.max_samples // 4)
    problem = next(iter(small_problems(spec, m)))
    rng = np.random.default_rng(0)
    if size == "q":
        kernels = [RBF(gamma=g) for g in np.geomspace(0.1, 30.0, value)]
        family = problem.family
        if hasattr(family, "dictionary"):
            changed = replace(family, dictionary=KernelDictionary(kernels))
        else:
            changed = KernelDictionary(kernels)
        return float(value), replace(problem, family=changed)
    if size == "n_P":
        X = np.hstack([problem.X[:, :1], rng.random((problem.n_samples, value - 1))])
        family = type(problem.family).from_data(X)
        # all dual variables at their bound: how hard a learner's problem is changes with columns,
        # as do the entries of K, eight orders from 1 column to 24
        C = 0.1 / float(family.gram(X, np.eye(family.n_P)).max())
        learner = replace(problem.learner, C=C)
        return float(family.n_P), replace(problem, family=family, X=X, learner=learner)
    y = rng.standard_normal((value, problem.n_samples))
    if problem.learner.task == "classification":
        y = np.where(y > 0.0, 1.0, -1.0)
    return float(value), replace(problem, y=y)


def seconds(spec: AlgorithmSpec, problems: Sequence[Problem]) -> list[float]:
    """Return the least processor time of a few iterations on each problem.

    One run of each compiles and is not counted; then the problems take turns, so that a busy
    machine does not slow one of them alone. They are run up and down in size: after the largest,
    which empties the caches, the smallest was a millisecond of six slower, and steeper the growth.
    """
    best = [math.inf] * len(problems)
    options: dict[str, Any] = {"tol": 0.0, "max_iter": N_ITER, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        for repeat in range(REPEATS + 1):
            if repeat > 1 and time.process_time() - begun > LONGEST:
                break
            for i in range(len(problems))[:: -1 if repeat % 2 else 1]:
                start = time.process_time()
                solve(problems[i], spec, **options)
                if repeat:
                    best[i] = min(best[i], time.process_time() - start)
    return best


def exponent(sizes: Sequence[float], costs: Sequence[float] | FloatArray) -> float:
    """Return p of the ``a + b·mᵖ`` that the costs follow; the first size is a very small one.

    What does not grow, a, would flatten the slope of a line in logarithms. It leaves with the cost
    of the first size s: p is that of the closest ``log b + log (mᵖ − sᵖ)`` to the logarithms of
    what the other sizes cost more, each weighted by the share that this is of its cost, as little
    of much may be noise. Costs of which less than a fifth grows have the exponent 0.

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
    more = grown > 0.0
    share = grown[more] / np.asarray(costs[1:], dtype=float)[more]

    def distance(p: float) -> float:
        away = np.log(grown[more]) - np.log(m[1:][more] ** p - m[0] ** p)
        middle = np.average(away, weights=share)
        return float(np.average((away - middle) ** 2, weights=share))

    return float(minimize_scalar(distance, bounds=(0.05, STEEPEST), method="bounded").x)


def sizes_for(spec: AlgorithmSpec, size: str = "m") -> tuple[int, ...]:
    """Return what to measure at: `SIZES`, of samples fewer where fewer are taken."""
    if size == "n_P" and spec.max_samples is not None:
        return FEW_FEATURES
    if size != "m" or spec.max_samples is None or spec.max_samples >= max(SIZES["m"]):
        return SIZES[size]
    return tuple(spec.max_samples // part for part in (10, 5, 4, 3, 2))


def growth(spec: AlgorithmSpec, size: str = "m", values: Sequence[int] | None = None) -> Growth:
    """Fit the exponent of some iterations on the first problem that the algorithm accepts.

    Other work on the machine only adds seconds, for minutes perhaps: where the exponent is not as
    declared, the least seconds of further measurements count.
    """
    chosen = sizes_for(spec, size) if values is None else values
    made = [sized(spec, size, value) for value in chosen]
    at, problems = [value for value, _ in made], [problem for _, problem in made]
    costs = np.full(len(made), np.inf)
    for _ in range(ATTEMPTS):
        costs = np.minimum(costs, seconds(spec, problems))
        found = Growth(spec.name, exponent(at, costs), float(spec.scaling[size]), size)
        if not found.is_too_steep and not found.is_too_flat:
            break
    return found


def growths(spec: AlgorithmSpec) -> Iterator[Growth]:
    """Yield the growth in every size that an algorithm declares."""
    for size in spec.scaling:
        yield growth(spec, size)
