"""Does an algorithm keep the promises of the registry?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..config import config_context
from ..driver import solve
from ..formula.problem import Problem
from ..progress import Progress
from ..registry import AlgorithmSpec, get_algorithm
from ..result import Result, SolveInterrupted, Status
from .intervals import check_overlap, interval_of, other_intervals
from .problems import permuted, small_problems

# Relative: what two orders of summation may differ by, and no more, since bounds are proved.
_SLACK = 1e-9


def check_algorithm(
    algorithm: str | AlgorithmSpec, *, tol: float = 1e-2, max_iter: int = 300, **params: object
) -> None:
    """Check one algorithm on small problems for every triple that it accepts.

    Bounds bracket the value of the learner at the returned parameters, plus what the constraint's
    ``penalty`` charges for them where it has one; they are monotone along the history; the gap is
    closed, unless the status says that the problem is not convex. All intervals of one problem
    hold its optimum, so they overlap: that of a solve as far as it goes, those of every other
    installed algorithm that accepts the problem, that of the samples in another order, that of
    one thread. A lower bound that is too high, or an algorithm that stays where it starts, fails
    there. The same seed gives the same result; an interrupted solve hands over its best iterate;
    growth is declared.

    Parameters
    ----------
    algorithm : str or AlgorithmSpec
        A registered name or a spec.
    tol : float, default=1e-2
        Relative gap that it must reach.
    max_iter : int, default=300
        In at most so many iterations.
    **params
        Passed to the algorithm.

    Raises
    ------
    AssertionError
        Naming the algorithm, the problem and what failed.
    """
    spec = get_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    assert spec.scaling, f"{spec.name}: declare 'scaling', e.g. {{'m': 2.3}}"
    assert spec.summary, f"{spec.name}: give a one-line 'summary'"
    problems = list(small_problems(spec))
    assert problems, f"{spec.name}: accepts no problem made of installed parts"
    for problem in problems:
        options = {"tol": tol, "max_iter": max_iter, "random_state": 0, **params}
        result = _solve(spec, problem, options)
        where = f"{spec.name} on {problem.triple}"
        reached = result.gap <= tol or result.status is Status.STATIONARY
        assert reached, f"{where}: {result.message}; asked for {tol:g}"
        _check_bounds(where, problem, result)
        _check_intervals(where, spec, problem, params, result)
        _check_repeats(where, spec, problem, options, result)
        _check_interruption(where, spec, problem, options)


def _solve(spec: AlgorithmSpec, problem: Problem, options: dict[str, Any]) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(problem, spec, **options)


def _check_bounds(where: str, problem: Problem, result: Result) -> None:
    slack = _SLACK * max(abs(result.upper_bound), abs(result.lower_bound))
    assert np.isfinite([result.lower_bound, result.upper_bound]).all(), (
        f"{where}: bounds must be finite, got [{result.lower_bound}, {result.upper_bound}]"
    )
    assert result.lower_bound <= result.upper_bound + slack, (
        f"{where}: lower bound {result.lower_bound} above upper bound {result.upper_bound}"
    )
    assert result.value == result.upper_bound, f"{where}: value must be the upper bound"
    lower, upper = np.array(result.history.lower), np.array(result.history.upper)
    assert (np.diff(lower) >= 0).all(), f"{where}: lower bounds in history must not fall"
    assert (np.diff(upper) <= 0).all(), f"{where}: upper bounds in history must not rise"
    K = problem.family.gram(problem.X, result.parameters)
    own = problem.learner.solve(K, problem.targets, sample_weight=problem.sample_weight, tol=1e-6)
    # a set may charge for the parameters, e.g. the orthant with β‖μ‖²
    penalty = getattr(problem.constraint, "penalty", None)
    charge = 0.0 if penalty is None else float(penalty(result.parameters))
    assert own.upper_bound + charge >= result.lower_bound - slack, (
        f"{where}: the learner reaches {own.upper_bound} at the returned parameters, below the "
        f"claimed lower bound {result.lower_bound}"
    )
    assert own.lower_bound + charge <= result.upper_bound + slack, (
        f"{where}: the learner needs {own.lower_bound} at the returned parameters, above the "
        f"claimed upper bound {result.upper_bound}"
    )


def _check_intervals(
    where: str, spec: AlgorithmSpec, problem: Problem, params: dict[str, object], first: Result
) -> None:
    """Go on as far as the bounds go, then compare with what other algorithms prove."""
    further = interval_of(spec, problem, **params)
    check_overlap(f"{where}, solved further", first, further)
    for interval in other_intervals(spec, problem):
        check_overlap(f"{where}, beside {interval.algorithm}", further, interval)


def _check_repeats(
    where: str, spec: AlgorithmSpec, problem: Problem, options: dict[str, object], first: Result
) -> None:
    again = _solve(spec, problem, options)
    assert again.upper_bound == first.upper_bound, (
        f"{where}: the same seed gave {first.upper_bound} and {again.upper_bound}"
    )
    assert np.array_equal(again.parameters, first.parameters), (
        f"{where}: the same seed gave different parameters"
    )
    check_overlap(f"{where}, permuted", first, _solve(spec, permuted(problem), options))
    with config_context(n_threads=1):
        one = _solve(spec, problem, options)
    check_overlap(f"{where}, one thread", first, one)


def _check_interruption(
    where: str, spec: AlgorithmSpec, problem: Problem, options: dict[str, object]
) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    stopped = None
    try:
        _solve(spec, problem, {**options, "callback": interrupt})
    except SolveInterrupted as stop:
        stopped = stop.result
    assert stopped is not None, f"{where}: an interrupted solve must raise SolveInterrupted"
    assert stopped.parameters is not None, f"{where}: interrupted without an iterate"
    assert np.isfinite(stopped.upper_bound), f"{where}: interrupted without a bound"
