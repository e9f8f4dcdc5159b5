"""Ours: what the proof of an optimum costs, by views, by how many of them are kept, and by C."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from ..measuring import settled
from ..plan import Cell, Plan, Request, Results, Sheet, Value
from .views import N_TRUE, WIDTH, made


class Case(NamedTuple):
    """How many views there are and may be kept, C and λ."""

    n_views: int
    k0: int
    C: float
    lam: float


# seconds of each, measured on one core
CASES = {
    Case(40, 3, 1.0, 1.0): 0.5,
    Case(40, 5, 1.0, 1.0): 1.5,
    Case(100, 2, 1.0, 1.0): 1.0,
    Case(100, 3, 1.0, 1.0): 2.0,
    Case(200, 2, 1.0, 1.0): 3.0,
    Case(40, 3, 10.0, 1.0): 3.0,
    Case(40, 3, 10.0, 0.1): 5.0,
    Case(40, 5, 10.0, 1.0): 35.0,
    Case(500, 3, 1.0, 1.0): 6.0,
    Case(2000, 3, 1.0, 1.0): 65.0,
}
_N_ROWS, _QUICK_ROWS, _TOL = 300, 100, 1e-4
_NOTES = (
    f"Views of {WIDTH} columns, {N_TRUE} of which matter, drawn as in smkl-views with seed 0; one "
    f"Gaussian kernel a view, γ = 1/3; to a relative gap of {_TOL:g}. relaxation: how far its "
    "bound is below the optimum; solves: of the learner.",
    "CPU seconds of one thread for the search, its relaxation included, with all code loaded; the "
    "Gram matrices are given.",
)


def measure(n_rows: int, n_views: int, k0: int, C: float, lam: float) -> dict[str, object]:
    """Prove one optimum."""
    from kernelweave.kernels_core import RBF, KernelDictionary
    from kernelweave.kernels_core.grams import GramStack
    from kernelweave.relaxations import solve_global

    data = made(n_rows, n_views, 0)
    kernels = KernelDictionary([RBF(1.0 / WIDTH)], columns=data.columns)
    stack = GramStack(kernels.fit_grams(data.X).grams, check=False)
    y = np.where(data.y, 1.0, -1.0)
    best, seconds = settled(lambda: solve_global(stack, y, C=C, lam=lam, k0=k0, tol=_TOL))
    return {
        "relaxation (%)": 100.0 * float(1.0 - best.relaxation_bound / best.upper_bound),
        "solves": best.n_svm_solves,
        "gap": best.gap,
        "CPU seconds": seconds,
    }


def table(request: Request) -> Plan:
    """Plan the proofs; a quick run has fewer rows."""
    n_rows = _QUICK_ROWS if request.quick else min(_N_ROWS, request.sample_limit or _N_ROWS)
    cells = [
        Cell(
            key=_key(case),
            compute=measure,
            arguments={"n_rows": n_rows, **case._asdict()},
            seconds=seconds * (n_rows / _N_ROWS) ** 2,
            is_reduced=n_rows < _N_ROWS,
        )
        for case, seconds in CASES.items()
    ]
    return Plan(cells, lambda results: _present(n_rows, results))


def _key(case: Case) -> str:
    return f"{case.n_views}/{case.k0}/{case.C:g}/{case.lam:g}"


def _present(n_rows: int, results: Results) -> list[Sheet]:
    fields = ("relaxation (%)", "solves", "gap", "CPU seconds")
    rows: list[list[Value]] = []
    for case in CASES:
        found = results.get(_key(case), {})
        few = comb(case.n_views, case.k0)
        rows.append([*case, few, *(found.get(field) for field in fields)])
    columns = ("views", "k₀", "C", "λ", "supports", *fields)
    return [Sheet(f"Proved optima of {n_rows} rows", columns, rows, _NOTES)]
