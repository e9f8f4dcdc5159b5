"""From a box problem to a certified point: the loop around the solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from kernelweave.kernels_core import interrupts, memory
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import one_of
from kernelweave.kernels_core.formula.learner import SolveStatus

from . import point as passes
from .bounds import FeasiblePoint, make_feasible
from .interior_point import interior_point, required_bytes
from .libsvm_backend import libsvm
from .point import starting_point
from .problem import BoxProblem, Budget
from .smo import newton_steps, smo

# How often an exactly feasible point that still violates the tolerance is improved: each time costs
# a new gradient, and if so many do not help, rounding errors prevent more.
_MAX_ROUNDS = 8
# Samples of an interior point that "auto" tries: at 4000 each of its Cholesky factors takes 2e10
# flops and 128 MB, and more grow with the cube.
_MAX_INTERIOR = 4000
# Steps of SMO after an interior point, in units of n: its point is near, so a run that needs more
# is not converging.
_POLISH_STEPS = 40
# LIBSVM stops by a gradient that it updates, which differs a little from one computed anew.
_LIBSVM_SLACK = 1.01
# Maximum number of free variables (those strictly inside the box) for Newton steps, whose factor
# costs the cube of it. With more, a step may cost more than the pairs it replaces; with a smaller
# limit, pairs converge slowly where one step would be enough.
_MAX_FREE = 400
# Where pairs have crawled for long, so many multiply-adds of a larger factor for each entry of K
# that they have read: they take less than half as long. And those of one call at most, as no
# deadline is heeded meanwhile.
_PER_ENTRY, _MOST_LARGE = 2.0, 2e9
# Steps of SMO in one phase, in units of n: the first phase finds which variables are free, a later
# one only repairs what a Newton step changed.
_FIRST_STEPS = 6
_LATER_STEPS = 2
# and so many more, because fewer cost less than the call that makes them
_LEAST_STEPS = 500
# The last attempt of "auto", in units of the first.
_LAST_ATTEMPT = 10
# The first phase ends at this tolerance, which is enough to tell the free variables: Newton steps
# go on from there faster than pairs.
_FIRST_TOL = 1e-3
# Multiply-adds of the Newton steps between two phases: as much as the 6n² of the first phase, and
# for many samples no longer than a fraction of a second, since no deadline is heeded meanwhile.
_MOST_WORK = 5e7
Backend = Literal["auto", "smo", "interior-point", "libsvm"]


@dataclass
class Outcome:
    """An exactly feasible point and how it was found.

    `rows`: what the solver read or computed, in rows of K, the unit of cost; `log`: a line for each
    solver that ran.
    """

    feasible: FeasiblePoint
    status: SolveStatus
    n_iter: int
    rows: float
    backend: str
    log: tuple[str, ...] = ()

    @property
    def violation(self) -> float:
        """Return the maximal violating pair at the point."""
        return self.feasible.violation


@dataclass
class _Progress:
    """The running point of `solve_by_smo`, whether it started at the optimum, and its cost.

    `before`: rows of K that other solves have read; `factors`: multiply-adds of Newton steps.
    """

    u: FloatArray
    f: FloatArray
    n_iter: int = 0
    rows: float = 0.0
    steps_newton: int = 0
    status: SolveStatus = SolveStatus.CONVERGED
    optimal: bool = False
    before: float = 0.0
    factors: float = 0.0


def _start(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> _Progress:
    """Return the progress at 0, or at a repaired start after a cheap Newton step."""
    n, p = problem.n_samples, problem
    if start is None:
        return _Progress(np.zeros(n), np.zeros(n), before=budget.rows)
    u = starting_point(start, p.lower, p.upper)
    f, _, n_rows, _ = passes.product(p.K, u, bounded=False)
    at, tol = _Progress(u, f, before=budget.rows), budget.tol
    left = passes.violation(p.p, at.f, at.u, p.lower, p.upper, p.epsilon)
    if left > tol:
        # from a good start one Newton step replaces many pairs; cheap: m³ ≤ 1.5 n² operations, or
        # twice as much as pairs have earned, as it seldom meets a bound
        _newton(problem, at, 1.0, round((1.5 * n * n) ** (1 / 3)), 2.0 * _PER_ENTRY)
        left = passes.violation(p.p, at.f, at.u, p.lower, p.upper, p.epsilon)
    at.optimal = left <= tol
    at.rows += n_rows
    return at


def _smo_phase(
    problem: BoxProblem, at: _Progress, budget: Budget, tol: float, n_steps: int
) -> None:
    """Run SMO for at most ``n_steps`` steps; the status is MAX_ITER when they did not suffice."""
    limit = min(n_steps, budget.max_iter - at.n_iter)
    run = smo(problem, at.u, at.f, Budget(max(tol, budget.tol), limit))
    at.u, at.f, at.status = run.u, run.f, run.status
    at.n_iter += run.n_iter
    at.rows += run.rows


def _newton(
    problem: BoxProblem,
    at: _Progress,
    work: float,
    max_free: int = _MAX_FREE,
    per_entry: float = _PER_ENTRY,
) -> None:
    """Take Newton steps on the free variables, as far as ``work`` multiply-adds go.

    Where pairs have read many entries of K, so many more for each of these.
    """
    n = problem.n_samples
    earned = min(per_entry * n * (at.before + at.rows) - at.factors, _MOST_LARGE)
    most = max(min(_MAX_FREE, max_free), int(np.cbrt(6.0 * max(earned, 0.0))))
    steps, m, spent = newton_steps(problem, at.u, at.f, max(work, earned), most)
    at.steps_newton += steps
    at.n_iter += steps
    at.rows += m + m * m / n
    at.factors += spent


def _why(at: _Progress, violation: float, budget: Budget) -> SolveStatus:
    """Return why a solve ended at a point of this violation."""
    if violation <= budget.tol:
        return SolveStatus.CONVERGED
    if at.n_iter >= budget.max_iter:
        return SolveStatus.MAX_ITER
    return SolveStatus.MAX_TIME if budget.expired else SolveStatus.STALLED


def solve_by_smo(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> Outcome:
    """Run SMO, helped by Newton steps, until the violation at the exact point is within tol.

    Pairs identify the free variables; where they then crawl (rank-deficient Grams, large C, tight
    tolerances), Newton steps on the free variables and short runs of pairs alternate. The
    violation that decides is that of the exactly feasible point, from a fresh gradient.
    """
    n = problem.n_samples
    at = _start(problem, start, budget)
    work = min(float(_FIRST_STEPS * n * n), _MOST_WORK)
    if not at.optimal:
        _smo_phase(problem, at, budget, _FIRST_TOL, _FIRST_STEPS * n + _LEAST_STEPS)
    rounds = 0
    while True:
        over = at.n_iter >= budget.max_iter or budget.expired
        if at.status is SolveStatus.MAX_ITER and not over:
            _newton(problem, at, work)
            _smo_phase(problem, at, budget, budget.tol, _LATER_STEPS * n + _LEAST_STEPS)
            continue
        feasible = make_feasible(problem, at.u)
        at.rows += feasible.values.n_rows
        rounds += 1
        if feasible.violation <= budget.tol or over or rounds > _MAX_ROUNDS:
            break
        at.u = starting_point(feasible.point.u, problem.lower, problem.upper)
        at.f = feasible.values.f
        _newton(problem, at, work)
        _smo_phase(problem, at, budget, budget.tol, _LATER_STEPS * n + _LEAST_STEPS)
    status = _why(at, feasible.violation, budget)
    log = (f"smo: {at.n_iter} steps, {at.steps_newton} of them Newton, {status.value}",)
    return Outcome(feasible, status, at.n_iter, at.rows, "smo", log)


def solve_by_interior_point(problem: BoxProblem, budget: Budget) -> Outcome:
    """Run the interior point, then let SMO make its point exactly feasible and finish it."""
    run = interior_point(problem, budget)
    limit = min(_POLISH_STEPS * problem.n_samples, budget.max_iter)
    finish = solve_by_smo(problem, run.u, Budget(budget.tol, limit))
    report = f"interior-point: {run.n_iter} iterations, violation {run.violation:.2g}"
    if finish.status is SolveStatus.MAX_ITER:
        finish.status = SolveStatus.STALLED
    finish.log = (report, *finish.log)
    finish.backend = "interior-point"
    finish.n_iter += run.n_iter
    finish.rows += (run.n_iter + 1) * problem.n_samples
    return finish


def solve_by_libsvm(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> Outcome:
    """Run LIBSVM and check its answer with our own gradient; nothing is polished."""
    u = starting_point(libsvm(problem, start, budget), problem.lower, problem.upper)
    feasible = make_feasible(problem, u)
    close = feasible.violation <= _LIBSVM_SLACK * budget.tol
    status = SolveStatus.CONVERGED if close else SolveStatus.STALLED
    report = f"libsvm: violation {feasible.violation:.2g}, {status.value}"
    return Outcome(feasible, status, 0, feasible.values.n_rows, "libsvm", (report,))


def _smo_budget(n_samples: int) -> int:
    """Return the SMO steps that cost about as much as the interior point."""
    return int(0.3 * n_samples**2 + 50 * n_samples + 20_000)


def _solve_auto(problem: BoxProblem, start: FloatArray | None, budget: Budget) -> Outcome:
    """Run SMO for a while; where it is slow, the interior point; the smallest violation wins."""
    limit = min(_smo_budget(problem.n_samples), budget.max_iter)
    first = solve_by_smo(problem, start, replace(budget, max_iter=limit))
    if first.status is not SolveStatus.MAX_ITER or limit == budget.max_iter:
        return first
    outcomes = [first]
    n, what = problem.n_samples, f"the interior point's matrices of {problem.n_samples} samples"
    if n <= _MAX_INTERIOR and memory.permits(required_bytes(n), what):  # or warns
        outcomes.append(solve_by_interior_point(problem, budget))
    best = min(outcomes, key=lambda outcome: outcome.violation)
    if best.status is not SolveStatus.CONVERGED:
        steps = min(budget.max_iter - first.n_iter, _LAST_ATTEMPT * limit)
        left = Budget(budget.tol, steps)
        outcomes.append(solve_by_smo(problem, best.feasible.point.u, left))
        best = min(outcomes, key=lambda outcome: outcome.violation)
        best.status = outcomes[-1].status
    best.log = tuple(line for outcome in outcomes for line in outcome.log)
    best.rows = sum(outcome.rows for outcome in outcomes)
    return best


def solve_box(
    problem: BoxProblem, start: FloatArray | None, budget: Budget, backend: Backend
) -> Outcome:
    """Solve by the named backend.

    Raises ValueError if there is no backend of that name.
    """
    one_of(*get_args(Backend)).check("backend", backend)
    with interrupts.defer_interrupt():
        if backend == "smo":
            return solve_by_smo(problem, start, budget)
        if backend == "interior-point":
            return solve_by_interior_point(problem, budget)
        if backend == "libsvm":
            return solve_by_libsvm(problem, start, budget)
        return _solve_auto(problem, start, budget)
