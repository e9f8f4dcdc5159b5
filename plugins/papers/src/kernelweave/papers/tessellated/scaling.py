"""How the time of an iteration and of a fit grows with the samples m and the side n_P of P.

Figure 2 of Talitckii, Colbert and Peet 2024 (T) is of an iteration, Figure 3 of Colbert and Peet
2021 (T') of a fit: `figure`. `parts` takes the first apart into Gram matrix, moment matrix, learner
and iteration: California housing, classes split at the median price, the first k features,
monomials of x alone, measured after the first iterations of a fit, on one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import Problem, TessellatedFamily, config_context, watch
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.qp_smo import SVC
from kernelweave.spectahedron import Spectahedron
from kernelweave.workbench.displays.axes import SERIES

from ..data import as_unit_range, drawn, load, notes
from ..measuring import CLASSES, TASKS, exponents, timed, within
from ..plan import Drawing, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

SIZES, QUICK_SIZES = (500, 1000, 2000, 4000), (125, 250, 500)
FEATURES = (2, 4, 6, 8)
_NOTES = ("Exponents of the least-squares fit in logarithms; z_degree = 0, as in the paper.",)
_FILE = "california_housing.csv.gz"
_TOL, _C, _DELTA = 1e-3, 0.1, 0.5
_WARM_UP, _REPEATS = 3, 3
_PARTS = ("Gram", "D", "SMO", "iteration")
# exponents of m and n_P: the paper prints one pair, and ours are to be at most _BARS
_PRINTED = {"iteration": (2.6, 1.8)}
_BARS = {"Gram": (2.2, 0.8), "D": (2.2, 1.6), "iteration": (2.6, 1.8)}


class _Subject(NamedTuple):
    """What a figure times, of which algorithms, and the paper's exponents of m and n_P."""

    what: str
    key: str
    file: str
    algorithms: tuple[str, ...]
    features: tuple[int, ...]
    max_iter: int
    printed: Mapping[tuple[str, str], tuple[float, float]]


_FIGURES = {
    2024: _Subject(
        *("an iteration", "iteration", _FILE),
        algorithms=("tkl-frank-wolfe", "tkl-apd", "tkl-low-rank"),
        features=FEATURES,
        max_iter=5,
        printed={
            ("tkl-frank-wolfe", "classification"): (2.6, 1.8),
            ("tkl-frank-wolfe", "regression"): (2.4, 1.9),
            ("tkl-apd", "classification"): (2.7, 1.6),
            ("tkl-apd", "regression"): (2.4, 1.2),
        },
    ),
    2021: _Subject(
        *("a fit", "seconds", "ccpp.csv"),
        algorithms=("tkl-frank-wolfe", "tkl-low-rank"),
        features=FEATURES[:2],
        max_iter=300,
        printed={
            ("tkl-frank-wolfe", "classification"): (2.28, 0.57),
            ("tkl-frank-wolfe", "regression"): (2.34, 2.40),
        },
    ),
}


def measure(
    path: str, algorithm: str, task: str, n_samples: int, n_features: int, max_iter: int
) -> dict[str, float]:
    """Fit the first features of a part of the data; CPU seconds of an iteration and of all."""
    from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor

    X, y = load(path)
    X, y = drawn(X[:, :n_features], as_unit_range(y), n_samples)
    settings: dict[str, Any] = {"algorithm": algorithm, "C": _C, "tol": 1e-2, "z_degree": 0}
    settings["max_iter"] = max_iter
    if task == CLASSES:
        model: BaseEstimator = TessellatedKernelClassifier(**settings, units="absolute")
        y = np.where(y >= np.median(y), 1.0, -1.0)
    else:
        model = TessellatedKernelRegressor(epsilon=0.02, **settings, units="absolute")
    model.fit(X[:60], y[:60])  # loads compiled code
    ends: list[float] = []
    with watch(lambda _: ends.append(time.process_time())):
        _, seconds = timed(lambda: model.fit(X, y))
    # before the first end is what is done once: features of the samples, the first Gram matrix
    spent = np.diff(ends)
    each = float(np.median(spent)) if len(spent) else seconds
    n_iter = int(model.n_iter_)
    return {"seconds": seconds, "iteration": each, "n_iter": n_iter, "n_P": len(model.P_)}


def figure(request: Request, year: int) -> Plan:
    """Plan the figure of either paper: an iteration on California housing, a fit on CCPP."""
    subject, quick = _FIGURES[year], request.quick
    path = request.data_file(subject.file)
    cells = [
        cell(
            *(f"{task}/{name}/{m}/{p}", 0.5 + 6.0 * (m / 1000) ** 2, quick, measure),
            *(path, name, task, m, p, subject.max_iter),
        )
        for task in TASKS
        for name in subject.algorithms
        for m in (QUICK_SIZES if quick else SIZES)
        for p in subject.features
    ]
    return Plan(cells, lambda results: _present(results, subject))


def _series(results: Results, task: str, name: str, key: str) -> FloatArray:
    """Return the rows (m, n_P, CPU seconds) of an algorithm and task."""
    rows = [
        (int(rest.split("/")[0]), value["n_P"], value[key])
        for rest, value in within(results, task, name).items()
    ]
    return np.array(sorted(rows), dtype=float).reshape(-1, 3)


def _present(results: Mapping[str, object], subject: _Subject) -> list[Sheet | Drawing]:
    rows: list[list[Value]] = []
    for name in subject.algorithms:
        for task in TASKS:
            timings = _series(results, task, name, subject.key)
            if len(timings) >= 4:
                printed = subject.printed.get((name, task), (None, None))
                longest = float(timings[:, 2].max())
                rows.append([name, task, *exponents(*timings.T), *printed, longest])
    title, columns = f"CPU seconds of {subject.what}", ("algorithm", "task", "m", "n_P")
    heads = (*columns, "m (paper)", "n_P (paper)", "longest (s)")
    return [
        Drawing(title, f"{title}, a line for each n_P.", partial(_draw, results, subject)),
        Sheet(f"Exponents of {subject.what}", heads, rows, _NOTES, is_aggregate=True),
    ]


def _draw(results: Mapping[str, object], subject: _Subject, figure: Figure) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    sizes = sorted({int(key.split("/")[2]) for key in results})
    for ax, task in zip(axes, TASKS, strict=True):
        for style, name in zip(SERIES, subject.algorithms, strict=False):
            timings = _series(results, task, name, subject.key)
            for n_P in np.unique(timings[:, 1]):
                part = timings[timings[:, 1] == n_P]
                label = name if n_P == timings[:, 1].min() else None
                ax.loglog(part[:, 0], part[:, 2], **style, label=label)
        ax.set_xticks(sizes, sizes)
        ax.xaxis.set_minor_formatter("")
        ax.set(title=task, xlabel="samples")
        ax.grid(alpha=0.2)
    axes[0].set_ylabel("CPU seconds")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)


def problem_of(path: str, n_samples: int, n_features: int) -> Problem:
    """Return the classification problem over the first features of a seeded part of the data."""
    X, y = drawn(*load(path), n_samples)
    X = as_unit_range(X[:, :n_features])
    corner = np.full(n_features, _DELTA)
    family = TessellatedFamily(1, lower=-corner, upper=1.0 + corner, z_degree=0)
    return Problem(family, SVC(C=_C), Spectahedron(), X, np.where(y >= np.median(y), 1.0, -1.0))


def seconds_of(work: Callable[[], object]) -> float:
    """Return the least processor seconds of three calls."""
    return min(timed(work)[1] for _ in range(_REPEATS))


def measure_parts(path: str, n_samples: int, n_features: int) -> dict[str, float]:
    """Return what `parts_of` measures on a part of the data."""
    return parts_of(problem_of(path, n_samples, n_features))


def parts_of(problem: Problem) -> dict[str, float]:
    """Return the processor seconds of every part and of an iteration of Frank-Wolfe, and n_P."""
    from kernelweave.spectahedron.first_order import FrankWolfeSearch

    with config_context(n_threads=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = FrankWolfeSearch(problem, np.random.RandomState(0))
        spent = [timed(search.step)[1] for _ in range(2 * _WARM_UP)]
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


def parts(request: Request) -> Plan:
    """T, Figure 2, its parts apart."""
    path = request.data_file(_FILE)
    cells = [
        cell(f"{m}/{p}", 1.0 + 1.5 * (m / 1000) ** 2, request.quick, measure_parts, path, m, p)
        for m in (QUICK_SIZES if request.quick else SIZES)
        for p in FEATURES
    ]
    return Plan(cells, _present_parts)


def _present_parts(results: Results) -> list[Sheet]:
    keyed = {tuple(map(int, key.split("/"))): value for key, value in results.items()}
    runs = [(size, keyed[size, p]) for size, p in sorted(keyed)]
    m = [size for size, _ in runs]
    n_P = [value["n_P"] for _, value in runs]
    rows: list[list[Value]] = []
    for part in _PARTS if len(runs) >= 4 else ():
        ours = exponents(m, n_P, [value[part] for _, value in runs])
        printed, bars = _PRINTED.get(part, (None, None)), _BARS.get(part, ("none", "none"))
        rows.append([part, *ours, *printed, *bars, max(value[part] for _, value in runs)])
    each: list[list[Value]] = [
        [size, int(value["n_P"]), *(1e3 * value[part] for part in _PARTS)] for size, value in runs
    ]
    columns = ("part", "m", "n_P", "m (paper)", "n_P (paper)", "m at most", "n_P at most")
    return [
        Sheet(
            "Exponents",
            (*columns, "longest (s)"),
            rows,
            notes("tessellated.scaling parts"),
            is_aggregate=True,
        ),
        Sheet("Milliseconds", ("m", "n_P", *_PARTS), each, []),
    ]
