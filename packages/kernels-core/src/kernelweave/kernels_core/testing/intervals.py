"""Every algorithm proves an interval around one optimum: do the intervals of a problem overlap?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..driver import solve
from ..formula.problem import Problem
from ..registry import AlgorithmSpec, algorithms, get_algorithm

# As in `algorithm.py`.
_SLACK = 1e-9
# An algorithm that has not ended by then has a longer interval, which is as valid.
_MAX_ITER = 100
_known: dict[tuple[str, tuple[str, str, str], int], Interval] = {}


class Bounded(Protocol):
    """An interval that holds the optimum."""

    @property
    def lower_bound(self) -> float:
        """Return the lower end."""

    @property
    def upper_bound(self) -> float:
        """Return the upper end."""


@dataclass(frozen=True)
class Interval:
    """What one algorithm proves of one problem.

    Attributes
    ----------
    algorithm : str
        Its name.
    lower_bound, upper_bound : float
        The optimum lies between them.
    """

    algorithm: str
    lower_bound: float
    upper_bound: float


def interval_of(spec: AlgorithmSpec, problem: Problem, **params: Any) -> Interval:
    """Return the interval of a solve that goes on until nothing moves, 100 iterations at most.

    `spec`: whose; `problem`: that it accepts; `**params`: passed to the algorithm. With ``tol=0``
    it is as short as the algorithm gets it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = solve(problem, spec, tol=0.0, max_iter=_MAX_ITER, random_state=0, **params)
    return Interval(spec.name, found.lower_bound, found.upper_bound)


def other_intervals(spec: AlgorithmSpec, problem: Problem) -> Iterator[Interval]:
    """Yield the intervals of the other installed algorithms that accept a small problem.

    `spec`: whose is left out; `problem`: one of `small_problems`; its intervals are remembered by
    its triple. One for each algorithm.
    """
    for name in sorted(set(algorithms()) - {spec.name}):
        other = get_algorithm(name)
        if other.accepts(problem):
            key = (name, problem.triple, problem.n_samples)
            if key not in _known:
                _known[key] = interval_of(other, problem)
            yield _known[key]


def check_overlap(where: str, a: Bounded, b: Bounded) -> None:
    """Raise unless two intervals of one optimum overlap.

    `where`: what the message begins with; `a`, `b`: intervals, results or solutions.
    """
    slack = _SLACK * max(abs(a.upper_bound), abs(b.upper_bound))
    low, high = max(a.lower_bound, b.lower_bound), min(a.upper_bound, b.upper_bound)
    assert low <= high + slack, (
        f"{where}: intervals [{a.lower_bound}, {a.upper_bound}] and "
        f"[{b.lower_bound}, {b.upper_bound}] of one optimum do not overlap"
    )


def check_intervals_overlap(problem: Problem) -> list[Interval]:
    """Check that the intervals of all installed algorithms that accept a problem overlap.

    Parameters
    ----------
    problem : Problem
        Any; each algorithm makes at most 100 iterations.

    Returns
    -------
    list of Interval
        By name of the algorithm.

    Raises
    ------
    AssertionError
        Naming two algorithms that contradict each other.
    """
    accepting = [spec for spec in algorithms().values() if spec.accepts(problem)]
    intervals = [interval_of(spec, problem) for spec in accepting]
    for i, a in enumerate(intervals):
        for b in intervals[:i]:
            check_overlap(f"{a.algorithm} and {b.algorithm} on {problem.triple}", a, b)
    return intervals
