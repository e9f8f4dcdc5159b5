"""Every algorithm proves an interval around one optimum: do they overlap, and if not, who lies?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..driver import solve
from ..exceptions import KernelWeaveWarning, UnsupportedProblemError
from ..formula.problem import Problem
from ..registry import AlgorithmSpec, algorithms
from ..result import Result
from .nearby import better_point
from .problems import PLAIN
from .referee import PointEvaluation, evaluate

# Relative: what two orders of summation may differ by, and no more, since bounds are proved.
SLACK = 1e-9
# An algorithm that has not ended by then has a longer interval, which is as valid.
_MAX_ITER = 100
_known: dict[tuple[str, str, str, tuple[str, str, str]], Interval | str | None] = {}


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
    parameters : object
        Where it says that the upper bound is reached.
    """

    algorithm: str
    lower_bound: float
    upper_bound: float
    parameters: Any = field(default=None, repr=False, compare=False)


def interval_of(spec: AlgorithmSpec, problem: Problem, **params: Any) -> Interval:
    """Return the interval of a solve that goes on until nothing moves, 100 iterations at most.

    `spec`: whose; `problem`: that it accepts; `**params`: passed to the algorithm. With ``tol=0``
    it is as short as the algorithm gets it.
    """
    found = quiet_solve(spec, problem, {"tol": 0.0, "max_iter": _MAX_ITER, **params})
    return Interval(spec.name, found.lower_bound, found.upper_bound, found.parameters)


def quiet_solve(spec: AlgorithmSpec, problem: Problem, options: dict[str, Any]) -> Result:
    """Solve without warnings, with the seed 0 where none is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, spec, **{"random_state": 0, **options})


def other_intervals(spec: AlgorithmSpec, problem: Problem, label: str) -> Iterator[Interval]:
    """Yield the intervals of the other installed algorithms that accept a small problem.

    `spec`: whose is left out; `problem`: with registered parts; `label`: of its variant. Intervals
    are remembered by algorithm, triple and label. One that fails is told of in a
    `KernelWeaveWarning`. Those that take few samples only are dear, and serve the plain problem.
    """
    for name, other in sorted(algorithms().items()):
        dear = other.max_samples is not None and label != PLAIN.label
        if name == spec.name or dear or not other.accepts(problem):
            continue
        key = (name, other.target, label, problem.triple)
        if key not in _known:
            _known[key] = _interval_or_reason(other, problem)
        found = _known[key]
        if isinstance(found, str):
            warnings.warn(
                f"{name} is left out of the comparison on {problem.triple}, {label}: {found}",
                KernelWeaveWarning,
                stacklevel=3,
            )
        elif found is not None:
            yield found


def _interval_or_reason(spec: AlgorithmSpec, problem: Problem) -> Interval | str | None:
    """Return an interval, why there is none, or nothing where the problem is refused in words."""
    try:
        return interval_of(spec, problem)
    except Exception as error:  # noqa: BLE001 (a stranger's algorithm may raise anything)
        if is_refusal(error):
            return None
        return f"it raised {type(error).__name__}: {error}"


def is_refusal(error: Exception) -> bool:
    """Return whether an error says that an algorithm does not take a problem, or such weights."""
    unsupported = isinstance(error, UnsupportedProblemError)
    return unsupported or (isinstance(error, ValueError) and "sample_weight" in str(error))


def overlap(a: Bounded, b: Bounded) -> bool:
    """Return whether two intervals of one optimum overlap, up to rounding."""
    slack = SLACK * max(abs(a.upper_bound), abs(b.upper_bound))
    low, high = max(a.lower_bound, b.lower_bound), min(a.upper_bound, b.upper_bound)
    return bool(low <= high + slack)


def check_overlap(where: str, a: Bounded, b: Bounded) -> None:
    """Raise unless two intervals of one optimum overlap.

    `where`: what the message begins with; `a`, `b`: intervals, results or solutions.
    """
    assert overlap(a, b), (
        f"{where}: intervals [{a.lower_bound}, {a.upper_bound}] and "
        f"[{b.lower_bound}, {b.upper_bound}] of one optimum do not overlap"
    )


def refutation(problem: Problem, interval: Interval) -> str:
    """Return what refutes an interval at its own parameters, in words; empty where nothing does.

    `problem`: whose optimum it is to hold; `interval`: with the parameters.
    """
    at = evaluate(problem, interval.parameters)
    return refuted_by(interval, at) or refuted_nearby(problem, interval, at)


def refuted_by(claim: Interval, at: PointEvaluation) -> str:
    """Return what an evaluation at the claim's own parameters refutes, in words, or nothing."""
    lower, upper = claim.lower_bound, claim.upper_bound
    slack = SLACK * max(abs(upper), abs(lower), abs(at.upper))
    if at.outside:
        return f"its parameters are not in the set: {at.outside}"
    if at.lower > upper + slack:
        return (
            f"its claimed upper bound {upper} is refuted by the learner's dual value at the "
            f"parameters that it returned, {at.lower}"
        )
    if at.upper < lower - slack:
        return (
            f"its claimed lower bound {lower} is refuted by the learner's primal value at the "
            f"parameters that it returned, {at.upper}"
        )
    if at.bound > upper + slack:
        return (
            f"its claimed upper bound {upper} is refuted by the lower bound of the learner's dual "
            f"point at the parameters that it returned, {at.bound}"
        )
    return ""


def refuted_nearby(problem: Problem, claim: Interval, at: PointEvaluation) -> str:
    """Return which point of the set has a value below a claimed lower bound, or nothing."""
    least, said = better_point(problem, claim.parameters, at)
    if least < claim.lower_bound - SLACK * abs(claim.lower_bound):
        return (
            f"its claimed lower bound {claim.lower_bound} is refuted by another point of the set "
            f"({said}), where the learner's primal value is {least}"
        )
    return ""


def judge(problem: Problem, a: Interval, b: Interval) -> tuple[str, str]:
    """Return what refutes the first of two intervals that do not overlap, and the second.

    A primal value below a lower bound refutes it, wherever it was found: each is held against the
    evaluation of the other's parameters too.
    """
    at = {each.algorithm: evaluate(problem, each.parameters) for each in (a, b)}
    said = []
    for own, other in ((a, b), (b, a)):
        reason = refuted_by(own, at[own.algorithm])
        foreign = at[other.algorithm]
        below = foreign.upper < own.lower_bound - SLACK * abs(own.lower_bound)
        above = foreign.bound > own.upper_bound + SLACK * abs(own.upper_bound)
        if not reason and below and not foreign.outside:
            reason = (
                f"its claimed lower bound {own.lower_bound} is refuted by the learner's primal "
                f"value at the parameters of {other.algorithm}, {foreign.upper}"
            )
        elif not reason and above:
            reason = (
                f"its claimed upper bound {own.upper_bound} is refuted by the lower bound of the "
                f"learner's dual point at the parameters of {other.algorithm}, {foreign.bound}"
            )
        said.append(reason)
    return said[0], said[1]


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
        Naming two algorithms that contradict each other, and what refutes which.
    """
    accepting = [spec for spec in algorithms().values() if spec.accepts(problem)]
    intervals = [interval_of(spec, problem) for spec in accepting]
    for i, a in enumerate(intervals):
        for b in intervals[:i]:
            if not overlap(a, b):
                reasons = zip((a, b), judge(problem, a, b), strict=True)
                told = "; ".join(f"{each.algorithm}: {why}" for each, why in reasons if why)
                check_overlap(
                    f"{a.algorithm} and {b.algorithm} on {problem.triple} ({told or 'undecided'})",
                    a,
                    b,
                )
    return intervals
