"""The one outer loop: stopping, bounds, history, progress, warnings and interruption."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from . import interrupts
from .checks import ON_INTERRUPT, SEED, check_limits, integer
from .clock import Stopwatch, expired, time_limit
from .config import blas_threads
from .exceptions import UnsupportedProblemError, convergence_warning
from .formula.problem import Problem
from .progress import Callback, Progress, notify
from .registry.specs import AlgorithmSpec
from .result import History, Result, SolveInterrupted, Status, check_bounds, relative_gap
from .settings import Settings, prepared, spec_of


class Search(Protocol):
    """A solve in progress: what an algorithm's target makes of a problem.

    The target is called as ``target(problem, random_state, **settings)`` and finds the first
    iterate; each `step` finds the next. ``lower`` and ``upper`` are *proved* bounds on the optimum
    of the problem, the upper one at the present iterate, and ``parameters`` are its kernel
    parameters, in arrays that later steps leave alone. Optional attributes: ``solution`` (the
    learner's solution at ``parameters``, or, where that costs work, a function of nothing that
    makes it, which is called once, at the end, for the best iterate), ``counts`` (a mapping of
    cumulative counts), ``scale`` (what a constant prediction costs: where the absolute gap is below
    ``tol / 1000`` of it, the solve ends as negligible), ``outcome`` (a `Status` to stop with, or
    ``None`` to go on) and ``remark`` (why it stalled). A class with an attribute ``settings``, a
    `Settings`, or a function whose argument ``settings`` is one by default, is called as
    ``target(problem, random_state, settings=...)``.
    """

    @property
    def lower(self) -> float:
        """The proved lower bound."""

    @property
    def upper(self) -> float:
        """The proved upper bound at the present iterate."""

    @property
    def parameters(self) -> object:
        """The kernel parameters of the present iterate."""

    def step(self) -> None:
        """Go on to the next iterate."""


def check_accepts(spec: AlgorithmSpec, problem: Problem) -> None:
    """Refuse a problem that the algorithm does not solve, before any work."""
    if spec.max_samples is not None and problem.n_samples > spec.max_samples:
        raise UnsupportedProblemError(
            f"{spec.name} takes at most {spec.max_samples} samples, got {problem.n_samples}: "
            "choose another algorithm or fit fewer"
        )
    refusal = spec.needs.refusal(problem)
    if refusal is not None:
        raise UnsupportedProblemError(
            f"{spec.name} {refusal}: choose another algorithm or change the problem"
        )


@dataclass
class _Run:
    """What `solve` records while it runs: the bounds so far and the best iterate.

    `solution`: the learner's solution at the best iterate, or a function that returns it; `remark`:
    why the search stalled; `premise`: an assumption of the family on which the bounds rest.
    """

    search: Search
    name: str
    tol: float
    watch: Stopwatch
    lower: float = -math.inf
    upper: float = math.inf
    n_iter: int = 0
    parameters: object = None
    solution: object = None
    history: History = field(default_factory=History)
    remark: str = ""
    premise: str = ""

    def observe(self) -> None:
        """Update the bounds from the present iterate, and keep its parameters if it is the best.

        Raises ContradictoryBoundsError if the lower bound is above the upper one.
        """
        search, upper = self.search, float(self.search.upper)
        self.lower = max(self.lower, float(search.lower))
        if upper < self.upper or self.parameters is None:
            self.parameters, self.solution = search.parameters, getattr(search, "solution", None)
            self.upper = min(upper, self.upper)
        check_bounds(self.name, self.lower, self.upper)
        self.history.append(
            lower=self.lower,
            upper=self.upper,
            value=upper,
            seconds=self.watch.seconds,
            counts=getattr(search, "counts", {}),
        )

    def outcome(self) -> Status | None:
        """Return why the solve ends here, if it does."""
        if relative_gap(self.lower, self.upper) <= self.tol:
            return Status.CONVERGED
        scale = getattr(self.search, "scale", None)
        if scale is not None and self.upper - self.lower <= 1e-3 * self.tol * scale:
            return Status.NEGLIGIBLE
        status: Status | None = getattr(self.search, "outcome", None)
        if status is Status.STALLED:
            self.remark = getattr(self.search, "remark", "")
        return status

    def progress(self) -> Progress:
        gap = relative_gap(self.lower, self.upper)
        return Progress(
            self.name, self.n_iter, self.lower, self.upper, gap, self.tol, self.watch.seconds
        )

    def result(self, status: Status) -> Result:
        solution = self.solution() if callable(self.solution) else self.solution
        return Result(
            value=self.upper,
            lower_bound=self.lower,
            upper_bound=self.upper,
            gap=relative_gap(self.lower, self.upper),
            status=status,
            n_iter=self.n_iter,
            history=self.history,
            parameters=self.parameters,
            solution=solution,
            algorithm=self.name,
            seconds=self.watch.seconds,
            remark=self.remark,
            premise=self.premise,
        )


def solve(
    problem: Problem,
    algorithm: str | Settings | AlgorithmSpec,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_time: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    on_interrupt: str = "raise",
    **params: object,
) -> Result:
    """Solve ``problem`` to a relative certified gap of ``tol``.

    Stops when ``(upper − lower) / max(|upper|, |lower|) ≤ tol``, where both bounds are proofs, or
    when the absolute gap is negligible compared with the cost of a constant prediction (with a
    warning: the relative gap is then not proved), or at a limit.
    The parameters returned are those of the best upper bound.

    Parameters
    ----------
    problem : Problem
        Family, learner, constraint and data.
    algorithm : str, Settings or AlgorithmSpec
        A registered name, an algorithm's settings such as ``LowRank(rank=8)``, or a spec that
        need not be registered.
    tol : float, default=1e-3
        Relative certified gap to reach.
    max_iter : int, default=1000
        Outer iterations at most.
    max_time : float, optional
        Seconds at most; inner solves see the same deadline.
    random_state : int or RandomState, optional
        The only source of randomness.
    callback : callable, optional
        Called with a `Progress` after each iteration; returning ``True`` stops.
    verbose : int, default=0
        Positive: print one line per iteration.
    on_interrupt : {"raise", "return"}, default="raise"
        On Ctrl-C, raise `SolveInterrupted` (a KeyboardInterrupt that holds the result), or
        return the best iterate.
    **params
        Settings of the algorithm; an unknown one is refused with the nearest name.

    Returns
    -------
    Result
        Parameters, bounds, gap, status and history.

    Raises
    ------
    ValueError
        If a setting makes no sense.
    UnsupportedProblemError
        If the algorithm does not accept the problem.
    ContradictoryBoundsError
        If a lower bound lies above an upper one by more than rounding: the algorithm is at fault.
    SolveInterrupted
        On Ctrl-C, after the first iterate.

    Warns
    -----
    ConvergenceWarning
        If it ended before the relative gap was at most ``tol``, also at a stationary point, unless
        the problem has no lower bound at all.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import Problem, TessellatedFamily, solve
    >>> from kernelweave.qp_smo import SVC
    >>> from kernelweave.spectahedron import Spectahedron
    >>> X = np.random.default_rng(0).random((40, 1))
    >>> y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    >>> family = TessellatedFamily(degree=0, lower=[-0.1], upper=[1.1])
    >>> solve(Problem(family, SVC(C=1.0), Spectahedron(), X, y), "tkl-low-rank").gap <= 1e-3
    True
    """
    check_limits(tol, max_iter, max_time)
    ON_INTERRUPT.check("on_interrupt", on_interrupt)
    integer().check("verbose", verbose)
    spec = spec_of(algorithm)
    check_accepts(spec, problem)
    start = prepared(algorithm, params)

    def report(progress: Progress) -> bool:
        return notify(progress, callback, verbose)

    run: _Run | None = None
    watch = Stopwatch()
    with time_limit(max_time):
        try:
            with interrupts.defer_interrupt(), blas_threads(problem.n_samples):
                search = start(problem, _random(random_state))
                premise = getattr(problem.family, "premise", "")
                run = _Run(search, spec.name, float(tol), watch, premise=premise)
                status = _loop(run, max_iter, report)
        except KeyboardInterrupt as stop:
            if run is None or run.parameters is None:
                raise
            result = run.result(Status.INTERRUPTED)
            if on_interrupt == "raise":
                raise SolveInterrupted(result) from stop
            return result
    result = run.result(status)
    # a family may say more of its premise once there is a solution
    premise_at = getattr(problem.family, "premise_at", None)
    if premise_at is not None:
        result = replace(result, premise=premise_at(problem, result))
    if result.falls_short:
        warnings.warn(result.message, convergence_warning(), stacklevel=2)
    return result


def _loop(run: _Run, max_iter: int, report: Callable[[Progress], bool]) -> Status:
    """Iterate until the solve ends, and return why it ended."""
    while True:
        run.observe()
        interrupts.check()
        progress = run.progress()
        if report(progress):
            return Status.STOPPED
        interrupts.check()
        outcome = run.outcome()
        if outcome is not None:
            return outcome
        if expired():
            return Status.MAX_TIME
        if run.n_iter >= max_iter:
            return Status.MAX_ITER
        run.search.step()
        run.n_iter += 1


def _random(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    SEED.or_none().check("random_state", random_state)
    if random_state is None:
        return np.random.RandomState(np.random.MT19937())
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(int(random_state))
