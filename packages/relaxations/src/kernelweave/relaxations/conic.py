"""Conic solvers through cvxpy, which is imported when the first program is stated."""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any


def cvxpy() -> Any:
    """Import cvxpy.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to go on.
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


def solve_conic(problem: Any, solver: str | None) -> tuple[float, float]:
    """Solve a cvxpy problem by the named solver; return the value and the seconds.

    Raises
    ------
    ValueError
        If the solver is not installed; the message lists those that are.
    RuntimeError
        If it finds no solution, or is MOSEK and has no licence.
    """
    cp = cvxpy()
    name = "CLARABEL" if solver is None else solver.upper()
    installed = cp.installed_solvers()
    if name not in installed:
        raise ValueError(f"solver={solver!r} is not installed: choose one of {installed}")
    if name == "MOSEK" and mosek_licence():
        raise RuntimeError(
            f"MOSEK has no licence ({mosek_licence()}): leave solver=None for CLARABEL"
        )
    started = time.perf_counter()
    with warnings.catch_warnings():
        # the value is no proof in any case: the bound is computed from the multipliers
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        # the only backend for arrays of matrices; cvxpy would choose it with a warning
        # supernodal factors: a fifth of the time of its default on one large matrix inequality
        options = {"direct_solve_method": "faer"} if name == "CLARABEL" else {}
        value = problem.solve(solver=getattr(cp, name, name), canon_backend="SCIPY", **options)
    seconds = time.perf_counter() - started
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise RuntimeError(f"{name} stopped with status {problem.status!r}: try another")
    return float(value), seconds
