"""T, Figure 2, taken apart: seconds of Gram, moment matrix, learner and iteration.

California housing, classes split at the median price, the first k features, monomials of x alone.
Measured where a fit stands after its first iterations, on one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from kernelweave.kernels_core import Problem, TessellatedFamily, config_context
from kernelweave.qp_smo import SVC
from kernelweave.spectahedron import Spectahedron

from ..data import as_unit_range, drawn, load
from ..measuring import exponents, timed
from ..plan import Cell, Plan, Request, Results, Sheet, Value
from .scaling import FEATURES, QUICK_SIZES, SIZES

_FILE = "california_housing.csv.gz"
_TOL, _C, _DELTA = 1e-3, 0.1, 0.5
_WARM_UP, _REPEATS = 3, 3
_PARTS = ("Gram", "D", "SMO", "iteration")
# the paper gives one pair for an iteration; the bars for the parts are ours
_PRINTED = {"iteration": (2.6, 1.8)}
_BARS = {"Gram": (2.2, 0.8), "D": (2.2, 1.6), "iteration": (2.6, 1.8)}


def problem_of(path: str, n_samples: int, n_features: int) -> Problem:
    """Return the classification problem over the first features of a seeded part of the data."""
    X, y = drawn(*load(path), n_samples)
    X = as_unit_range(X[:, :n_features])
    corner = np.full(n_features, _DELTA)
    family = TessellatedFamily(1, lower=-corner, upper=1.0 + corner, z_degree=0)
    return Problem(family, SVC(C=_C), Spectahedron(), X, np.where(y >= np.median(y), 1.0, -1.0))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the least processor seconds of three calls."""
    return min(timed(work, time.process_time)[1] for _ in range(_REPEATS))


def measure(path: str, n_samples: int, n_features: int) -> dict[str, float]:
    """Return what `parts_of` measures on a part of the data."""
    return parts_of(problem_of(path, n_samples, n_features))


def parts_of(problem: Problem) -> dict[str, float]:
    """Return the processor seconds of every part and of an iteration of Frank-Wolfe, and n_P."""
    from kernelweave.spectahedron.frank_wolfe_search import FrankWolfeSearch

    with config_context(n_threads=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = FrankWolfeSearch(problem, np.random.RandomState(0))
        spent = [timed(search.step, time.process_time)[1] for _ in range(2 * _WARM_UP)]
        oracle, K = search.oracle, search.K
        v = search.direction.vector[:, None]
        u = np.asarray(search.inner.dual_coef)
        learner = oracle.learner
        return {
            "n_P": float(oracle.n_P),
            "Gram": seconds_of(lambda: oracle.factor_gram(v, out=search.atom)),
            "D": seconds_of(lambda: oracle.moment(u)),
            "SMO": seconds_of(lambda: learner.solve(K, oracle.targets, tol=_TOL, check=False)),
            "iteration": float(np.median(spent[_WARM_UP:])),
        }


def table(request: Request) -> Plan:
    """T, Figure 2, its parts apart."""
    path = request.data_file(_FILE)
    cells = [
        Cell(
            key=f"{m}/{p}",
            compute=measure,
            arguments={"path": path, "n_samples": m, "n_features": p},
            seconds=1.0 + 1.5 * (m / 1000) ** 2,
            is_reduced=request.quick,
        )
        for m in (QUICK_SIZES if request.quick else SIZES)
        for p in FEATURES
    ]
    return Plan(cells, _present)


def _present(results: Results) -> list[Sheet]:
    keyed = {tuple(map(int, key.split("/"))): value for key, value in results.items()}
    found = [(size, keyed[size, p]) for size, p in sorted(keyed)]
    m = [size for size, _ in found]
    n_P = [value["n_P"] for _, value in found]
    rows: list[list[Value]] = []
    for part in _PARTS if len(found) >= 4 else ():
        ours = exponents(m, n_P, [value[part] for _, value in found])
        printed, bars = _PRINTED.get(part, (None, None)), _BARS.get(part, ("none", "none"))
        rows.append([part, *ours, *printed, *bars, max(value[part] for _, value in found)])
    each: list[list[Value]] = [
        [size, int(value["n_P"]), *(1e3 * value[part] for part in _PARTS)] for size, value in found
    ]
    columns = ("part", "m", "n_P", "m (paper)", "n_P (paper)", "m at most", "n_P at most")
    notes = [
        "Exponents of the least-squares fit in logarithms. Processor seconds, one thread. Gram: "
        "one rank-one Gram matrix without stored volumes; D: the moment matrix; SMO: a cold solve "
        "to 1e-3; iteration: one of Frank-Wolfe, line search and bounds included."
    ]
    return [
        Sheet("Exponents", (*columns, "longest (s)"), rows, notes, is_aggregate=True),
        Sheet("Milliseconds", ("m", "n_P", *_PARTS), each, []),
    ]
