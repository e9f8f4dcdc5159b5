"""Does an algorithm keep the promises of the registry?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..config import config_context
from ..exceptions import UnsupportedProblemError, warn
from ..formula.problem import Problem
from ..progress import Progress
from ..registry import AlgorithmSpec, accepted_triples, get_algorithm
from ..result import Result, SolveInterrupted, Status, relative_gap
from .intervals import (
    SLACK,
    Interval,
    check_overlap,
    interval_of,
    is_refusal,
    other_intervals,
    overlap,
    refutation_at_parameters,
    refutation_below,
    refute_pair,
    solve_without_warnings,
)
from .nearby import better_point
from .problems import (
    PLAIN,
    VARIANTS,
    ProblemVariant,
    covering,
    permuted,
    size_for,
    small_problems,
    variant_of,
)
from .referee import PointEvaluation, evaluate

# The relative improvement that a perturbation may find at a point reported as stationary: the
# requested tolerance, but at most this.
_AT_REST = 1e-2
# If the evaluation leaves a smaller relative gap, other algorithms are not compared.
_CLOSE = 1e-4


@dataclass(frozen=True)
class _Case:
    """One problem of a check: whose, which, and how messages begin."""

    spec: AlgorithmSpec
    problem: Problem
    label: str
    params: dict[str, Any]

    @property
    def where(self) -> str:
        return f"{self.spec.name} on {self.problem.triple}, {self.label}"

    def solve(self, problem: Problem | None = None, **options: Any) -> Result:
        """Solve it, or the same in another order; an error is the algorithm's failure."""
        chosen = self.problem if problem is None else problem
        try:
            return solve_without_warnings(self.spec, chosen, {**self.params, **options})
        except Exception as error:
            if is_refusal(error):
                raise
            raise AssertionError(f"{self.where}: {type(error).__name__}: {error}") from error


def check_algorithm(
    algorithm: str | AlgorithmSpec,
    *,
    tol: float = 1e-2,
    max_iter: int = 300,
    n_samples: Sequence[int] = (80, 250),
    **params: object,
) -> None:
    """Check one algorithm on small problems for every triple that it accepts.

    The learner is solved again at the parameters that it returned. They must be in the set; the
    bounds bracket the value there, the set's penalty included; no other point that the kit tries
    has a value below the lower bound. Bounds are monotone along the history, and the gap is closed,
    unless the status says that the problem is not convex: then it must not be convex, and neither a
    perturbation nor another algorithm may find anything better. All intervals of one problem hold
    its optimum, so they overlap: that of a solve as far as it goes, those of every other installed
    algorithm, that of the samples in another order, that of one thread. Where another algorithm's
    does not, an evaluation decides which of the two is refuted, not their number. The same seed
    gives the same result; an interrupted solve returns its best iterate.

    So that nothing hides in the size of a problem, the bounds are also checked with sample weights
    of 0, 0.01, 1, 2 and 5, three tasks, fifteen kernels, C a hundred times smaller and larger, and
    80 and 250 samples: on triples that hold each part once. That an algorithm declares ``scaling``
    is checked, the numbers are not: ``nox -s bench-gate`` measures them.

    It costs 1 to 20 CPU seconds; 250 samples are the dearest. An algorithm that takes few samples
    is checked on a quarter of the most that it takes.

    Parameters
    ----------
    algorithm : str or AlgorithmSpec
        A registered name or a spec.
    tol : float, default=1e-2
        Relative gap that it must reach.
    max_iter : int, default=300
        In at most so many iterations.
    n_samples : sequence of int, default=(80, 250)
        Larger problems; those above the algorithm's ``max_samples`` are left out.
    **params
        Passed to the algorithm.

    Raises
    ------
    AssertionError
        Naming the algorithm, the problem, what failed and what refutes it.

    Warns
    -----
    KernelWeaveWarning
        If another installed algorithm is refuted, with what refutes it, or fails.
    """
    spec = get_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    assert spec.scaling, f"{spec.name}: declare 'scaling', e.g. {{'m': 2.3}}"
    assert spec.summary, f"{spec.name}: give a one-line 'summary'"
    size = size_for(spec)
    problems = list(small_problems(spec, size))
    assert problems, f"{spec.name}: accepts no problem made of installed parts"
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
    for problem in problems:
        case = _Case(spec, problem, PLAIN.label, params)
        result = case.solve(**options)
        _check_claims(case, result, tol)
        reached = result.gap <= tol or result.status is Status.STATIONARY
        assert reached, f"{case.where}: {result.message}; asked for {tol:g}"
        _check_repeats(case, options, result)
        _check_interruption(case, options)
    variants = [replace(each, n_samples=size) for each in VARIANTS]
    variants += [ProblemVariant(f"{m} samples", n_samples=m) for m in n_samples]
    for variant, triple in itertools.product(variants, covering(accepted_triples(spec))):
        _check_variant(spec, triple, variant, tol, {**params, "max_iter": max_iter})


def _check_variant(
    spec: AlgorithmSpec,
    triple: tuple[str, str, str],
    variant: ProblemVariant,
    tol: float,
    options: dict[str, Any],
) -> None:
    """Check the bounds on a variant of a triple; one that it refuses before any work is passed."""
    limit = np.inf if spec.max_samples is None else spec.max_samples
    problem = variant_of(triple, variant)
    if problem is None or variant.n_samples > limit or not spec.accepts(problem):
        return
    case = _Case(spec, problem, variant.label, options)
    try:
        result = case.solve(tol=tol)
    except (UnsupportedProblemError, ValueError):
        # a refusal in words; another error is an AssertionError by now
        if 0.0 in variant.weights or variant.n_tasks > 1:
            return
        raise
    _check_claims(case, result, tol)


def _check_claims(case: _Case, result: Result, tol: float) -> None:
    """Check one result, then what the algorithm proves when it goes on as far as it can."""
    _check_history(case.where, result)
    interval = Interval(case.spec.name, result.lower_bound, result.upper_bound, result.parameters)
    at = evaluate(case.problem, result.parameters)
    _check_at_parameters(case, interval, at)
    further = _further(case)
    ahead = evaluate(case.problem, further.parameters)
    _check_at_parameters(case, further, ahead)
    # around the better of its two points, where values are least
    best, seen = min(((further, ahead), (interval, at)), key=lambda pair: pair[1].upper)
    least, near = better_point(case.problem, best.parameters, seen)
    for claim in (interval, further):
        reason = refutation_below(claim, least, near)
        assert not reason, f"{case.where}: {reason}"
    check_overlap(f"{case.where}, solved further", interval, further)
    rests = result.status is Status.STATIONARY and result.gap > tol
    alone = case.label != PLAIN.label and relative_gap(ahead.bound, ahead.upper) <= _CLOSE
    many = case.problem.n_samples > PLAIN.n_samples
    others = _check_others(case, further) if rests or not (alone or many) else []
    if rests:
        _check_at_rest(case, interval, at, others, tol)


def _further(case: _Case) -> Interval:
    settings = {name: value for name, value in case.params.items() if name != "max_iter"}
    try:
        return interval_of(case.spec, case.problem, **settings)
    except Exception as error:
        raise AssertionError(f"{case.where}: {type(error).__name__}: {error}") from error


def _check_history(where: str, result: Result) -> None:
    slack = SLACK * max(abs(result.upper_bound), abs(result.lower_bound))
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


def _check_at_parameters(case: _Case, claim: Interval, at: PointEvaluation) -> None:
    reason = refutation_at_parameters(claim, at)
    assert not reason, f"{case.where}: {reason}"


def _check_others(case: _Case, claim: Interval) -> list[Interval]:
    """Return the intervals of the others that nothing refutes; a contradiction is decided."""
    kept = []
    for other in other_intervals(case.spec, case.problem, case.label):
        if overlap(claim, other):
            kept.append(other)
            continue
        mine, theirs = refute_pair(case.problem, claim, other)
        assert not mine, f"{case.where}, beside {other.algorithm}: {mine}"
        where = f"{other.algorithm} on {case.problem.triple}, {case.label}"
        how = theirs or (
            f"it contradicts {case.spec.name}, [{other.lower_bound}, {other.upper_bound}] beside "
            f"[{claim.lower_bound}, {claim.upper_bound}], and no evaluation decides between them"
        )
        warn(f"{where}: {how}")
    return kept


def _check_at_rest(
    case: _Case, claim: Interval, at: PointEvaluation, others: list[Interval], tol: float
) -> None:
    """Accept that nothing is better, and that the problem is not convex, where it is so."""
    upper, where = claim.upper_bound, f"{case.where}: says that no step leads to anything better"
    # which weights are positive is a combinatorial choice there: no small step changes it
    chosen = hasattr(case.problem.constraint, "k0")
    least, label = better_point(case.problem, claim.parameters, at, same_support=chosen)
    assert least >= upper - min(tol, _AT_REST) * abs(upper), (
        f"{where} than {upper}, which is refuted by another point of the set ({label}), where the "
        f"learner's primal value is {least}"
    )
    assert relative_gap(at.bound, upper) > tol, (
        f"{where}, with a lower bound of {claim.lower_bound}, which is refuted by the learner's "
        f"dual point at the parameters that it returned: it proves {at.bound}"
    )
    for other in () if chosen else others:
        assert relative_gap(other.lower_bound, other.upper_bound) > tol, (
            f"{where}, with a lower bound of {claim.lower_bound}, which is refuted by "
            f"{other.algorithm}: it proves [{other.lower_bound}, {other.upper_bound}]"
        )
        least = evaluate(case.problem, other.parameters).upper
        assert least >= upper - tol * abs(upper), (
            f"{where} than {upper}, which is refuted by the parameters of {other.algorithm}, where "
            f"the learner's primal value is {least}"
        )


def _check_repeats(case: _Case, options: dict[str, Any], first: Result) -> None:
    again = case.solve(**options)
    assert again.upper_bound == first.upper_bound, (
        f"{case.where}: the same seed gave {first.upper_bound} and {again.upper_bound}"
    )
    assert np.array_equal(again.parameters, first.parameters), (
        f"{case.where}: the same seed gave different parameters"
    )
    shuffled = case.solve(permuted(case.problem), **options)
    check_overlap(f"{case.where}, permuted", first, shuffled)
    with config_context(n_threads=1):
        check_overlap(f"{case.where}, one thread", first, case.solve(**options))


def _check_interruption(case: _Case, options: dict[str, Any]) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    stopped = None
    try:
        case.solve(**options, callback=interrupt)
    except SolveInterrupted as stop:
        stopped = stop.result
    assert stopped is not None, f"{case.where}: an interrupted solve must raise SolveInterrupted"
    assert stopped.parameters is not None, f"{case.where}: interrupted without an iterate"
    assert np.isfinite(stopped.upper_bound), f"{case.where}: interrupted without a bound"
