"""The one outer loop: stopping, bounds, history, progress, warnings and interruption."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from . import interrupts
from .checks import ON_INTERRUPT, check_limits, integer
from .clock import Stopwatch, expired, time_limit
from .config import blas_threads
from .exceptions import UnsupportedProblemError, convergence_warning
from .formula.problem import Problem
from .progress import Callback, Progress, notify
from .registry.specs import AlgorithmSpec
from .result import History, Result, SolveInterrupted, Status, relative_gap
from .settings import Settings, prepared, spec_of


class Algorithm(Protocol):
    """What an algorithm's target is: a class with these methods.

    ``gap`` returns *proved* bounds on the optimum of the problem: the upper one belongs to the
    current iterate. Optional methods: ``scale(state)`` (what a constant prediction costs: where
    the absolute gap is below ``tol / 1000`` of it, the solve ends as negligible),
    ``solution(state)`` (the learner's solution at ``best(state)``), ``counts(state)`` (a mapping
    of cumulative counts), ``outcome(state)`` (a `Status` to stop with, or ``None`` to go on).
    With an attribute ``keeps_states = True`` a state never changes once it is made, and
    ``solution`` is asked once, at the end, for the best one.
    One with an attribute ``settings``, a `Settings`, finds there what was asked, and its ``init``
    takes no parameters.
    """

    def init(self, problem: Problem, random_state: np.random.RandomState, **params: object) -> Any:
        """Return the first state."""

    def step(self, state: object) -> Any:
        """Return the next state."""

    def gap(self, state: object) -> tuple[float, float]:
        """Return (lower, upper) bounds on the optimum."""

    def best(self, state: object) -> Any:
        """Return the kernel parameters of the current iterate."""


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
    """The driver's own record of a solve in progress."""

    algorithm: Any
    name: str
    tol: float
    watch: Stopwatch = field(default_factory=Stopwatch)
    lower: float = -math.inf
    upper: float = math.inf
    n_iter: int = 0
    parameters: Any = None
    found: Any = None
    history: History = field(default_factory=History)
    remark: str = ""

    def observe(self, state: object) -> None:
        """Take in the bounds of a state; keep its parameters if it is the best so far."""
        lower, upper = (float(bound) for bound in self.algorithm.gap(state))
        self.lower = max(self.lower, lower)
        if upper < self.upper or self.parameters is None:
            self.parameters = self.algorithm.best(state)
            make = getattr(self.algorithm, "solution", None)
            if make is not None and getattr(self.algorithm, "keeps_states", False):
                self.found = partial(make, state)
            else:
                self.found = None if make is None else make(state)
            self.upper = min(upper, self.upper)
        counts: Callable[[Any], Mapping[str, int]] | None
        counts = getattr(self.algorithm, "counts", None)
        self.history.append(
            lower=self.lower,
            upper=self.upper,
            value=upper,
            seconds=self.watch.seconds,
            counts={} if counts is None else counts(state),
        )

    def outcome(self, state: object) -> Status | None:
        """Return why the solve ends here, if it does."""
        if relative_gap(self.lower, self.upper) <= self.tol:
            return Status.CONVERGED
        scale = getattr(self.algorithm, "scale", None)
        if scale is not None and self.upper - self.lower <= 1e-3 * self.tol * scale(state):
            return Status.NEGLIGIBLE
        own = getattr(self.algorithm, "outcome", None)
        status: Status | None = None if own is None else own(state)
        if status is Status.STALLED and hasattr(self.algorithm, "remark"):
            self.remark = self.algorithm.remark(state)
        return status

    def progress(self) -> Progress:
        gap = relative_gap(self.lower, self.upper)
        return Progress(
            self.name, self.n_iter, self.lower, self.upper, gap, self.tol, self.watch.seconds
        )

    def result(self, status: Status) -> Result:
        solution = self.found() if isinstance(self.found, partial) else self.found
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
    when the absolute gap is negligible beside what a constant prediction costs (with a warning:
    the relative gap is then not proved), or at a limit.
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
    SolveInterrupted
        On Ctrl-C, after the first iterate.

    Warns
    -----
    ConvergenceWarning
        If it ended before the relative gap closed, whatever the reason: at rest too, unless the
        problem has no lower bound at all.
    """
    check_limits(tol, max_iter, max_time)
    ON_INTERRUPT.check("on_interrupt", on_interrupt)
    integer().check("verbose", verbose)
    spec = spec_of(algorithm)
    check_accepts(spec, problem)
    search, params = prepared(algorithm, params)
    run = _Run(search, spec.name, float(tol))

    def tell(progress: Progress) -> bool:
        return notify(progress, callback, verbose)

    with time_limit(max_time):
        try:
            with interrupts.kept(), blas_threads(problem.n_samples):
                # no name here: it would keep the first state's arrays to the end
                status = _loop(
                    run, search.init(problem, _random(random_state), **params), max_iter, tell
                )
        except KeyboardInterrupt as stop:
            if run.parameters is None:
                raise
            result = run.result(Status.INTERRUPTED)
            if on_interrupt == "raise":
                raise SolveInterrupted(result) from stop
            return result
    result = run.result(status)
    if result.falls_short:
        warnings.warn(result.message, convergence_warning(), stacklevel=2)
    return result


def _loop(run: _Run, state: Any, max_iter: int, tell: Callable[[Progress], bool]) -> Status:
    """Iterate from the first state until something says stop, and say what."""
    while True:
        run.observe(state)
        interrupts.check()
        progress = run.progress()
        if tell(progress):
            return Status.STOPPED
        interrupts.check()
        outcome = run.outcome(state)
        if outcome is not None:
            return outcome
        if expired():
            return Status.MAX_TIME
        if run.n_iter >= max_iter:
            return Status.MAX_ITER
        state = run.algorithm.step(state)
        run.n_iter += 1


def _random(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    if random_state is None:
        return np.random.RandomState(np.random.MT19937())
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, numbers.Integral):
        return np.random.RandomState(int(random_state))
    raise ValueError(
        f"random_state must be None, an integer or a numpy RandomState, got {random_state!r}"
    )
