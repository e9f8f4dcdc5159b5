"""Ours: what a proved optimum over many made views costs."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from ..data import notes, printed
from ..measuring import settled
from ..plan import Plan, Request, Results, Sheet, Value, cell
from .views import N_TRUE, WIDTH, made


class Case(NamedTuple):
    """How many views there are and may be kept, C and λ."""

    n_views: int
    k0: int
    C: float
    lam: float

    @property
    def key(self) -> str:
        """Its cell."""
        return "/".join(f"{each:g}" for each in self)


# seconds of each, measured on one core
CASES = {
    Case(*(row[field] for field in Case._fields)): row["seconds"]
    for row in printed("sparse", "cases.csv")
}
_N_ROWS, _QUICK_ROWS, _TOL = 300, 100, 1e-4
_NOTES = notes("sparse.proofs", width=WIDTH, n_true=N_TRUE, tol=_TOL)


def prove(n_rows: int, n_views: int, k0: int, C: float, lam: float) -> dict[str, object]:
    """Prove the optimum of a case."""
    from kernelweave.kernels_core import RBF, KernelDictionary
    from kernelweave.kernels_core.grams import GramStack
    from kernelweave.qp_smo import KSupport, solve_kernel_weights
    from kernelweave.relaxations import solve_global

    data = made(n_rows, n_views, 0)
    kernels = KernelDictionary([RBF(1.0 / WIDTH)], columns=data.columns)
    stack = GramStack(kernels.fit_grams(data.X).grams, check=False)
    y = np.where(data.y, 1.0, -1.0)
    best, seconds = settled(lambda: solve_global(stack, y, C=C, lam=lam, k0=k0, tol=_TOL))
    relaxed = best.relaxation_bound
    if not best.n_svm_solves_relaxation:
        # an enumeration did without it
        form = KSupport(lam, k0)
        relaxed = solve_kernel_weights(stack, y, C=C, penalty=form, tol=_TOL).lower_bound
    return {
        "relaxation (%)": 100.0 * float(1.0 - relaxed / best.upper_bound),
        "solves": best.n_svm_solves,
        "gap": best.gap,
        "CPU seconds": seconds,
    }


def table(request: Request) -> Plan:
    """Plan the proofs, by views, by how many of them are kept, and by C."""
    n_rows = _QUICK_ROWS if request.quick else min(_N_ROWS, request.sample_limit or _N_ROWS)
    share, reduced = (n_rows / _N_ROWS) ** 2, n_rows < _N_ROWS
    # fewer rows do not tell two thousand views apart: the proof takes many times longer
    cases = [case for case in CASES if not reduced or case.n_views < 1000]
    cells = [cell(case.key, CASES[case] * share, reduced, prove, n_rows, *case) for case in cases]

    def present(results: Results) -> list[Sheet]:
        fields = ("relaxation (%)", "solves", "gap", "CPU seconds")
        rows: list[list[Value]] = []
        for case in cases:
            record = results.get(case.key, {})
            few = comb(case.n_views, case.k0)
            rows.append([*case, few, *(record.get(field) for field in fields)])
        columns = ("views", "k₀", "C", "λ", "supports", *fields)
        return [Sheet(f"Proved optima of {n_rows} rows", columns, rows, _NOTES)]

    return Plan(cells, present)
