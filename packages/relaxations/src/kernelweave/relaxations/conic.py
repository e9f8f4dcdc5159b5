"""Conic programs through cvxpy, which is imported when the first is stated, and their solvers.

If a solver lacks a licence, stops at a limit or calls its own answer inaccurate, the next one is
tried, and how each ended is recorded. No bound relies on what they report: our own code proves all
bounds from the multipliers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.clock import Stopwatch, expired, seconds_left
from kernelweave.kernels_core.exceptions import warn
from kernelweave.kernels_core.interrupts import defer_interrupt, run_interruptibly
from kernelweave.qp_smo.problem import BoxProblem

if TYPE_CHECKING:
    from cvxpy import Constraint, Expression, Problem, Variable


CHAIN = ("CLARABEL", "SCS")
# if a proved bound is as near to what a solver reports, no other solver is asked
CLOSE = 1e-3
# cvxpy's words for an answer from which a bound can be proved
USABLE = ("optimal", "optimal_inaccurate", "user_limit")


def cvxpy() -> Any:
    """Import cvxpy.

    Raises ImportError if it is not installed; the message says how to go on.
    """
    try:
        import cvxpy as cp
    except ModuleNotFoundError as error:
        raise ImportError(
            "this relaxation needs cvxpy: pip install cvxpy clarabel, or use relaxation='saddle', "
            "which has the value of 'full-sdp' and needs neither"
        ) from error
    return cp


@cache
def mosek_licence() -> str:
    """Return "" where MOSEK has a licence, else what it says; asked for once a process."""
    try:
        import mosek
    except ImportError as error:
        return str(error)
    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        return str(error).strip()
    return ""


@dataclass(frozen=True)
class Attempt:
    """How one solver ended on a program.

    `status`: cvxpy's word, or why the solver did not start; `value`: of the program as the solver
    reports it, NaN where it left none; no proof; `is_named`: whether the user named the solver.
    """

    solver: str
    status: str
    value: float = math.nan
    seconds: float = 0.0
    is_named: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether the program's variables and multipliers hold numbers."""
        return self.status in USABLE and math.isfinite(self.value)

    def __str__(self) -> str:
        return f"{self.solver}: {self.status}"


def attempts(problem: Problem, solver: str | None) -> Iterator[Attempt]:
    """Solve a cvxpy problem by one solver after the other until one reports an optimum.

    After each attempt the problem holds the numbers of that solver, from which the caller can prove
    a bound, even if the solver stopped early; a caller whose bound is close enough stops iterating.

    `solver`: the first to try, before `CHAIN`; by default that is MOSEK for a matrix inequality,
    where it has a licence. Yields: the last one is optimal, unless all failed
    or the time of the running solve is over. Raises ValueError if the named solver is not
    installed; the message lists those that are.
    """
    installed = cvxpy().installed_solvers()
    first = [] if solver is None else [solver.upper()]
    if first and first[0] not in installed:
        raise ValueError(f"solver={solver!r} is not installed: choose one of {installed}")
    if not first and "MOSEK" in installed and _is_semidefinite(problem) and not mosek_licence():
        first = ["MOSEK"]
    for name in dict.fromkeys([*first, *CHAIN]):
        if name not in installed:
            continue
        is_named = solver is not None and name == first[0]
        if name == "MOSEK" and mosek_licence():
            yield Attempt(name, f"no licence ({mosek_licence()})", is_named=is_named)
            continue
        attempt = replace(_attempt(problem, name), is_named=is_named)
        yield attempt
        if attempt.status == "optimal" or expired():
            return


def _is_semidefinite(problem: Problem) -> bool:
    """Return whether a matrix must be positive semidefinite: there MOSEK is the faster solver."""
    psd = cvxpy().constraints.PSD
    return any(isinstance(each, psd) for each in problem.constraints) or any(
        each.attributes["PSD"] for each in problem.variables()
    )


def _attempt(problem: Problem, name: str) -> Attempt:
    cp = cvxpy()
    watch = Stopwatch()
    options = _options(name, seconds_left())
    with warnings.catch_warnings(), defer_interrupt():
        # the value is no proof in any case: the bound is computed from the multipliers
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        try:
            # the only backend for arrays of matrices; cvxpy would choose it with a warning
            value = run_interruptibly(
                problem.solve, solver=getattr(cp, name, name), canon_backend="SCIPY", **options
            )
        except cp.SolverError as error:
            return Attempt(name, str(error).partition(". ")[0], seconds=watch.seconds)
    objective = math.nan if value is None else float(value)
    return Attempt(name, str(problem.status), objective, watch.seconds)


def _options(name: str, seconds: float) -> dict[str, object]:
    """Return a solver's own settings; ``seconds`` may be infinite."""
    seconds = max(seconds, 1e-3)
    if name == "CLARABEL":
        # supernodal factors: a fifth of the time of its default on one large matrix inequality
        options = {"direct_solve_method": "faer", "accept_unknown": True}
        return options | ({"time_limit": seconds} if math.isfinite(seconds) else {})
    if name == "SCS":
        return {"time_limit_secs": seconds} if math.isfinite(seconds) else {}
    if name == "MOSEK" and math.isfinite(seconds):
        return {"mosek_params": {"MSK_DPAR_OPTIMIZER_MAX_TIME": seconds}}
    return {}


def report(tried: Sequence[Attempt], *, is_close: bool, otherwise: str = "") -> None:
    """Warn if solvers failed and the proved bound is loose; raise if there is no answer at all.

    `is_close`: whether the proved bound is close, so that a failure does not matter; `otherwise`:
    for the warning, what is used if no solver has an answer; empty if there is nothing.
    """
    story = "; ".join(str(attempt) for attempt in tried)
    usable = any(attempt.is_usable for attempt in tried)
    if not usable and not otherwise:
        raise RuntimeError(
            f"no conic solver found a solution ({story}): use relaxation='saddle', which needs "
            "none, or scale the Gram matrices"
        )
    if tried[0].status != "optimal" and (tried[0].is_named or not is_close):
        warn(
            f"the conic solvers ended so: {story}; "
            + ("the bounds are proved from what they left" if usable else otherwise)
        )


# takes θ and f of one task, and returns the constraints θ ≥ fᵀ K⁻¹ f between them
Tie: TypeAlias = "Callable[[Variable, Variable], list[Constraint]]"


@dataclass
class Epigraph:
    """The primal problem ``Σₜ (Σ losses + ½θₜ)``, where θₜ ≥ fₜᵀ K⁻¹ fₜ stands for the norm of f.

    The relaxations differ in how they write that inequality, which is their `Tie`.

    - `constraints`: all of them, those of the ties included
    - `above`, `below`: ``σ⁺ ≥ p − f − b − ε`` and ``σ⁻ ≥ f + b − p − ε``, whose multipliers make u
    - `coupling`: the constraints of the tie, per task
    """

    cost: Expression | float = 0.0
    constraints: list[Constraint] = field(default_factory=list)
    above: list[Constraint] = field(default_factory=list)
    below: list[Constraint] = field(default_factory=list)
    coupling: list[list[Constraint]] = field(default_factory=list)

    def dual_points(self) -> list[FloatArray]:
        """Return u of each task, nearly feasible, shape (n,) each."""
        return [
            np.asarray(up.dual_value) - np.asarray(down.dual_value)
            for up, down in zip(self.above, self.below, strict=True)
        ]


def epigraph(boxes: Iterable[BoxProblem], couple: Tie) -> Epigraph:
    """State the losses of every task, with a free intercept each.

    `boxes`: p, lower, upper and ε of each task's dual; `couple`: ``couple(theta, f)`` returns the
    constraints of one task.
    """
    cp = cvxpy()
    whole = Epigraph()
    for box in boxes:
        n = len(box.p)
        theta, intercept, f = cp.Variable(), cp.Variable(), cp.Variable(n)
        up, down = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
        above = up >= box.p - f - intercept - box.epsilon
        below = down >= f + intercept - box.p - box.epsilon
        tie = couple(theta, f)
        whole.constraints += [above, below, *tie]
        whole.cost = whole.cost + box.upper @ up - box.lower @ down + 0.5 * theta
        whole.above.append(above)
        whole.below.append(below)
        whole.coupling.append(tie)
    return whole


def schur(theta: Expression, f: Expression, K: Expression | FloatArray) -> Constraint:
    """Return ``[θ fᵀ; f K] ⪰ 0``, which says θ ≥ fᵀ K⁺ f and f in the range of K.

    `theta`, `f`, `K` of shape (), (n,) and (n, n).
    """
    cp = cvxpy()
    n = f.shape[0]
    column = cp.reshape(f, (n, 1), order="F")
    corner = cp.reshape(theta, (1, 1), order="F")
    return cp.bmat([[corner, column.T], [column, K]]) >> 0
