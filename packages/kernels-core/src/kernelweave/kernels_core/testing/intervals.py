"""Check that the proved intervals of several algorithms for one optimum overlap.

Where two do not, evaluate the problem at the parameters of both to find out which claim is false.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..driver import solve
from ..exceptions import UnsupportedProblemError, warn
from ..formula.learner import Solution
from ..formula.problem import Problem
from ..registry import AlgorithmSpec, algorithms
from ..result import Result
from .problems import PLAIN
from .referee import PointEvaluation, evaluate

# Relative slack for the rounding of two orders of summation; proved bounds need no other.
SLACK = 1e-9
# An algorithm that has not converged by then has a wider interval, which is valid all the same.
_MAX_ITER = 100
_interval_cache: dict[tuple[object, ...], Interval | str | None] = {}


@dataclass(frozen=True)
class Interval:
    """The bounds that one algorithm proved for one problem.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm.
    lower_bound, upper_bound : float
        The optimum lies between them.
    parameters : object
        The point at which the upper bound is claimed to hold.
    """

    algorithm: str
    lower_bound: float
    upper_bound: float
    parameters: Any = field(default=None, repr=False, compare=False)


# with two bounds of an optimum
Bounded: TypeAlias = Interval | Result | Solution


def interval_of(spec: AlgorithmSpec, problem: Problem, **params: Any) -> Interval:
    """Return the interval of a solve with ``tol=0``, the shortest in at most 100 iterations."""
    result = solve_without_warnings(spec, problem, {"tol": 0.0, "max_iter": _MAX_ITER, **params})
    return Interval(spec.name, result.lower_bound, result.upper_bound, result.parameters)


def solve_without_warnings(
    spec: AlgorithmSpec, problem: Problem, options: dict[str, Any]
) -> Result:
    """Solve without warnings, with ``random_state=0`` by default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, spec, **{"random_state": 0, **options})


def other_intervals(spec: AlgorithmSpec, problem: Problem, label: str) -> Iterator[Interval]:
    """Yield the intervals of the other installed algorithms that accept a small problem.

    Intervals are cached by algorithm, triple, samples and label of the variant. A
    `KernelWeaveWarning` names an algorithm that fails. Algorithms limited to few samples are
    expensive, and run on the plain problem only.
    """
    for name, other in sorted(algorithms().items()):
        is_expensive = other.max_samples is not None and label != PLAIN.label
        if name == spec.name or is_expensive or not other.accepts(problem):
            continue
        key = (name, other.target, label, problem.triple, problem.n_samples)
        if key not in _interval_cache:
            _interval_cache[key] = _interval_or_reason(other, problem)
        interval = _interval_cache[key]
        if isinstance(interval, str):
            warn(f"{name} is left out of the comparison on {problem.triple}, {label}: {interval}")
        elif interval is not None:
            yield interval


def _interval_or_reason(spec: AlgorithmSpec, problem: Problem) -> Interval | str | None:
    """Return an interval, the error that prevented it, or None if the problem is refused."""
    try:
        return interval_of(spec, problem)
    except Exception as error:  # noqa: BLE001 (a third party's algorithm may raise anything)
        if is_refusal(error):
            return None
        return f"it raised {type(error).__name__}: {error}"


def is_refusal(error: Exception) -> bool:
    """Return whether an error says that a problem, or its sample weights, are not supported."""
    unsupported = isinstance(error, UnsupportedProblemError)
    return unsupported or (isinstance(error, ValueError) and "sample_weight" in str(error))


def overlap(a: Bounded, b: Bounded) -> bool:
    """Return whether two intervals of one optimum overlap, up to rounding."""
    slack = SLACK * max(abs(a.upper_bound), abs(b.upper_bound))
    low, high = max(a.lower_bound, b.lower_bound), min(a.upper_bound, b.upper_bound)
    return bool(low <= high + slack)


def check_overlap(where: str, a: Bounded, b: Bounded) -> None:
    """Raise unless two intervals of one optimum overlap."""
    assert overlap(a, b), (
        f"{where}: intervals [{a.lower_bound}, {a.upper_bound}] and "
        f"[{b.lower_bound}, {b.upper_bound}] of one optimum do not overlap"
    )


def refutation_at_parameters(claim: Interval, at: PointEvaluation) -> str:
    """Return how an evaluation at the claim's own parameters refutes it, or ""."""
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


def refutation_below(claim: Interval, least: float, where: str) -> str:
    """Return which other point of the set has a value below the claimed lower bound, or ""."""
    if least < claim.lower_bound - SLACK * abs(claim.lower_bound):
        return (
            f"its claimed lower bound {claim.lower_bound} is refuted by another point of the set "
            f"({where}), where the learner's primal value is {least}"
        )
    return ""


def refute_pair(problem: Problem, a: Interval, b: Interval) -> tuple[str, str]:
    """Return what refutes each of two intervals that do not overlap, "" for one that stands.

    A primal value below a lower bound refutes it wherever it was found, so each interval is also
    compared with the evaluation at the other's parameters.
    """
    at = {each.algorithm: evaluate(problem, each.parameters) for each in (a, b)}
    reasons = []
    for claim, other in ((a, b), (b, a)):
        reason = refutation_at_parameters(claim, at[claim.algorithm])
        elsewhere = at[other.algorithm]
        below = elsewhere.upper < claim.lower_bound - SLACK * abs(claim.lower_bound)
        above = elsewhere.bound > claim.upper_bound + SLACK * abs(claim.upper_bound)
        if not reason and below and not elsewhere.outside:
            reason = (
                f"its claimed lower bound {claim.lower_bound} is refuted by the learner's primal "
                f"value at the parameters of {other.algorithm}, {elsewhere.upper}"
            )
        elif not reason and above:
            reason = (
                f"its claimed upper bound {claim.upper_bound} is refuted by the lower bound of the "
                f"learner's dual point at the parameters of {other.algorithm}, {elsewhere.bound}"
            )
        reasons.append(reason)
    return reasons[0], reasons[1]


def check_intervals_overlap(problem: Problem) -> list[Interval]:
    """Check that the intervals of all installed algorithms that accept a problem overlap.

    Parameters
    ----------
    problem : Problem
        The problem; each algorithm makes at most 100 iterations on it.

    Returns
    -------
    list of Interval
        One for each algorithm, by name.

    Raises
    ------
    AssertionError
        If two intervals do not overlap; names both algorithms and what refutes which.
    """
    accepting = [spec for spec in algorithms().values() if spec.accepts(problem)]
    intervals = [interval_of(spec, problem) for spec in accepting]
    for i, a in enumerate(intervals):
        for b in intervals[:i]:
            if not overlap(a, b):
                reasons = zip((a, b), refute_pair(problem, a, b), strict=True)
                refuted = "; ".join(f"{each.algorithm}: {why}" for each, why in reasons if why)
                verdict = f"({refuted or 'undecided'})"
                check_overlap(
                    f"{a.algorithm} and {b.algorithm} on {problem.triple} {verdict}", a, b
                )
    return intervals
