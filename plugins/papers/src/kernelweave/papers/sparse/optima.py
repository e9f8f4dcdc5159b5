"""Future work of the paper: bounds and proved optima on its sets, and what they cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..measuring import settled
from ..plan import Plan, Request, Results, Sheet, Value
from .sets import SETS, cell, read, theirs

_NOTES = (
    "The authors' C, λ, k₀, split and standardisation, without their two indefinite sigmoids. "
    "Relaxation to a relative gap of 1e-5, optimum to 1e-4, both ends proved.",
    "best published: the least of the paper's three variants of Algorithm 1, which may use the "
    "sigmoids.",
)
_ON_SECONDS = (
    "Processor seconds of one thread, with all code loaded. seconds: of the relaxation; with "
    "proof: of a search to 1e-4 by itself, which leaves its relaxation as soon as branches say "
    "more, and so may end sooner.",
    "fits: seconds of the relaxation over those of scikit-learn's SVC (precomputed, tol 1e-3) on "
    "the combined Gram matrix at its weights, the median of five, in the same process.",
    "svm, combining, forms, master: per cent of the relaxation's time.",
)
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

    machine = SVC(kernel="precomputed", C=C, tol=1e-3)
    return float(np.median([settled(lambda: machine.fit(K, y))[1] for _ in range(5)]))


def table(request: Request) -> Plan:
    """Section 6: bounds, proved optima, learner solves and seconds."""
    return Plan([cell(request, name, "optima", measure, 2.0) for name in SETS], _present)


def _present(results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    seconds: list[list[Value]] = []
    for name in SETS:
        printed = (theirs(6)[column].get(name) for column in ("random", "from 3×3", "from full"))
        best = min(value for value in printed if isinstance(value, float))
        found = {**results.get(f"{name}/optima", {}), "best published": best}
        rows.append([name, *(found.get(column) for column in _COLUMNS)])
        seconds.append([name, *(found.get(column) for column in _SECONDS)])
    return [
        Sheet("Bounds and proved optima on ten sets", ("data", *_COLUMNS), rows, _NOTES),
        Sheet("What they cost", ("data", *_SECONDS), seconds, _ON_SECONDS),
    ]
