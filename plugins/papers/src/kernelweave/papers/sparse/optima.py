"""Bounds and proved optima, and what they cost: on the paper's sets, and of many made views."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..data import notes, printed
from ..measuring import settled
from ..plan import Plan, Request, Results, Sheet, Value, cell
from .sets import SETS, read, set_cell, theirs
from .views import N_TRUE, WIDTH, made

_NOTES = notes("sparse.optima")
_ON_SECONDS = notes("sparse.optima seconds")
# where the relaxation's time went, as it counts it, and how the table calls that
_PARTS = {"svm": "svm", "combine": "combining", "forms": "forms", "master": "master"}
_COLUMNS = (
    *("relaxation", "its gap", "solves", "optimum", "gap", "more solves", "best published"),
    "kernels at the optimum",
)
_SECONDS = ("seconds", "fits", *_PARTS.values(), "with proof")


def measure(
    path: str, columns: list[int] | None, limit: int | None, C: float, lam: float, k0: int
) -> dict[str, object]:
    """Solve the relaxation and the sparse problem of one set, and time them."""
    from kernelweave.kernels_core import default_kernels
    from kernelweave.kernels_core.grams import GramStack
    from kernelweave.qp_smo import KSupport, solve_kernel_weights
    from kernelweave.relaxations import solve_global

    parts = read(path, columns, limit)
    fitted = default_kernels().fit_grams(parts.X)
    stack = GramStack(fitted.grams, check=False)
    relaxed, seconds = settled(
        lambda: solve_kernel_weights(stack, parts.y, C=C, penalty=KSupport(lam, k0), tol=1e-5)
    )
    best, with_proof = settled(lambda: solve_global(stack, parts.y, C=C, lam=lam, k0=k0, tol=1e-4))
    return {
        "relaxation": relaxed.lower_bound,
        "its gap": relaxed.gap,
        "solves": relaxed.n_svm_solves,
        "optimum": best.upper_bound,
        "gap": best.gap,
        "more solves": best.n_svm_solves - best.n_svm_solves_relaxation,
        "seconds": seconds,
        "with proof": with_proof,
        "fits": seconds / _seconds_of_a_fit(stack.combine(relaxed.weights), parts.y, C),
        **{
            shown: 100.0 * relaxed.counts.seconds[part] / relaxed.seconds
            for part, shown in _PARTS.items()
        },
        "kernels at the optimum": ", ".join(fitted.names[j] for j in best.support),
    }


def _seconds_of_a_fit(K: ArrayLike, y: ArrayLike, C: float) -> float:
    from sklearn.svm import SVC

    model = SVC(kernel="precomputed", C=C, tol=1e-3)
    return float(np.median([settled(lambda: model.fit(K, y))[1] for _ in range(5)]))


def table(request: Request) -> Plan:
    """Section 6: bounds, proved optima, learner solves and seconds."""
    return Plan([set_cell(request, name, "optima", measure, 2.0) for name in SETS], _present)


def _present(results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    seconds: list[list[Value]] = []
    for name in SETS:
        values = (theirs(6)[column].get(name) for column in ("random", "from 3×3", "from full"))
        best = min(value for value in values if isinstance(value, float))
        found = {**results.get(f"{name}/optima", {}), "best published": best}
        rows.append([name, *(found.get(column) for column in _COLUMNS)])
        seconds.append([name, *(found.get(column) for column in _SECONDS)])
    return [
        Sheet("Bounds and proved optima on ten sets", ("data", *_COLUMNS), rows, _NOTES),
        Sheet("What they cost", ("data", *_SECONDS), seconds, _ON_SECONDS),
    ]


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
_ON_VIEWS = notes("sparse.optima views", width=WIDTH, n_true=N_TRUE, tol=_TOL)


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


def proofs(request: Request) -> Plan:
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
            found = results.get(case.key, {})
            few = comb(case.n_views, case.k0)
            rows.append([*case, few, *(found.get(field) for field in fields)])
        columns = ("views", "k₀", "C", "λ", "supports", *fields)
        return [Sheet(f"Proved optima of {n_rows} rows", columns, rows, _ON_VIEWS)]

    return Plan(cells, present)
