"""Future work of the paper: bounds and proved optima on its sets, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..plan import Cell, Plan, Request, Sheet, Value
from .published import PRINTED
from .samples import arguments_of, read, size_of

_NOTES = (
    "The authors' C, λ, k₀, split and standardisation, without their two indefinite sigmoids. "
    "Relaxation to a relative gap of 1e-5, optimum to 1e-4, both ends proved.",
    "fits: processor seconds of the relaxation over those of scikit-learn's SVC (precomputed, tol "
    "1e-3) on the combined Gram matrix at its weights, the median of five, in the same process.",
    "svm, combining, forms, master: where the seconds of the relaxation went.",
    "best published: the least of the paper's three variants of Algorithm 1, which may use the "
    "sigmoids.",
)
_PARTS = ("svm", "combine", "forms", "master")


def measure(
    path: str, columns: list[int] | None, limit: int | None, C: float, lam: float, k0: int
) -> dict[str, Any]:
    """Solve the relaxation and the sparse problem of one set, and time them.

    Parameters
    ----------
    path, columns, limit
        See `samples.read`.
    C, lam, k0
        The authors' settings.

    Returns
    -------
    dict
        Bounds, gaps, learner solves, seconds and their split, the support.
    """
    from kernelweave.kernels_core import default_kernels
    from kernelweave.qp_smo import GramStack, KSupport, solve_kernel_weights
    from kernelweave.relaxations import solve_global

    parts = read(path, columns, limit)
    fitted = default_kernels().fit_grams(parts.X)
    stack = GramStack(fitted.grams, check=False)
    small = GramStack([np.eye(4)])
    solve_kernel_weights(small, [1.0, -1.0, 1.0, -1.0], C=1.0, penalty=KSupport(1.0, 1))
    start = time.process_time()
    relaxed = solve_kernel_weights(stack, parts.y, C=C, penalty=KSupport(lam, k0), tol=1e-5)
    effort = time.process_time() - start
    best = solve_global(stack, parts.y, C=C, lam=lam, k0=k0, tol=1e-4)
    return {
        "relaxation": relaxed.lower_bound,
        "relaxation_gap": relaxed.gap,
        "relaxation_solves": relaxed.n_svm_solves,
        "optimum": best.upper_bound,
        "gap": best.gap,
        "more_solves": best.n_svm_solves - best.n_svm_solves_relaxation,
        "seconds": relaxed.seconds,
        "proof_seconds": best.seconds,
        "fits": effort / _seconds_of_a_fit(stack.combine(relaxed.weights), parts.y, C),
        "split": [relaxed.counts.seconds[part] for part in _PARTS],
        "support": ", ".join(fitted.names[j] for j in best.support),
    }


def _seconds_of_a_fit(K: Any, y: Any, C: float) -> float:
    from sklearn.svm import SVC

    times = []
    for _ in range(5):
        start = time.process_time()
        SVC(kernel="precomputed", C=C, tol=1e-3).fit(K, y)
        times.append(time.process_time() - start)
    return float(np.median(times))


def optima(request: Request) -> Plan:
    """Plan the table of bounds, proved optima, learner solves and seconds.

    Parameters
    ----------
    request : Request

    Returns
    -------
    Plan
    """
    cells = [
        Cell(
            key=f"{name}/optima",
            compute=measure,
            arguments=arguments_of(request, name),
            seconds=max(0.5, 2.0 * (size_of(request, row) / 1000.0) ** 2),
            is_reduced=request.sample_limit is not None,
        )
        for name, row in PRINTED.items()
    ]
    return Plan(cells, lambda results: [_sheet(results)])


_FIELDS = ("relaxation", "relaxation_gap", "relaxation_solves", "optimum", "gap", "more_solves")


def _sheet(results: Mapping[str, Any]) -> Sheet:
    rows: list[list[Value]] = []
    for name, row in PRINTED.items():
        found = results.get(f"{name}/optima", {})
        published = min(value for value in row.objectives if value is not None)
        rows.append(
            [
                name,
                *(found.get(field) for field in _FIELDS),
                published,
                found.get("seconds"),
                found.get("fits"),
                *found.get("split", [None] * len(_PARTS)),
                found.get("proof_seconds"),
                found.get("support"),
            ]
        )
    columns = (
        *("data", "relaxation", "its gap", "solves", "optimum", "gap", "more solves"),
        *("best published", "seconds", "fits", "svm", "combining", "forms", "master"),
        *("with proof", "kernels at the optimum"),
    )
    return Sheet("Bounds and proved optima on ten sets", columns, rows, _NOTES)
