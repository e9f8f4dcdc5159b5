"""The algorithms on four small sets.

T, Figure 1, and T', Figure 2: the relative gap after each iteration. T, Table 1: CPU seconds of a
fit.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.workbench.displays.axes import SERIES

from ..data import drawn, load, notes, printed
from ..measuring import mean, spread, timed
from ..plan import PAPER, Drawing, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SDP = "tkl-sdp"
_TIMED = ("tkl-frank-wolfe", "tkl-low-rank", _SDP)
_TRIALS, _MOST_SDP, _QUICK_SDP = 30, 100, 15
_ON_SECONDS = notes(
    "tessellated.convergence seconds", sdp=_SDP, most_sdp=_MOST_SDP, quick_sdp=_QUICK_SDP
)
_ALGORITHMS = ("tkl-frank-wolfe", "tkl-apd", "tkl-hybrid", "tkl-low-rank")
_LEVELS = (1e-2, 1e-4, 1e-6)
_LAST = "solves to 1e-06"
_SETS = {2021: ("Liver", "Cancer", "Heart", "Pima"), 2024: ("Cancer", "Pima")}
_ITERATIONS = 1000
_NOTES = notes("tessellated.convergence", iterations=_ITERATIONS)


@cache
def _times() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of Table 1 by set: file, its rows, and seconds over 30 trials."""
    rows = printed("tessellated", "times.csv")
    return {name: [row for row in rows if row["data"] == name] for name in _SETS[2021]}


def measure(path: str, algorithm: str, n_train: int, max_iter: int) -> dict[str, Any]:
    """Fit to a gap of 1e-6 or ``max_iter`` and return the gaps of iterations, and CPU seconds."""
    from kernelweave.spectahedron import TessellatedKernelClassifier

    model = TessellatedKernelClassifier(
        algorithm=algorithm, C=0.1, units="absolute", tol=1e-6, max_iter=max_iter
    )
    _, seconds = timed(partial(model.fit, *drawn(*load(path), n_train)))
    history = model.result_.history
    return {
        "gap": [float(gap) for gap in history.gap],
        "seconds": seconds,
        "solves": list(history.counts["n_solves"]),
    }


def figure(request: Request, year: int) -> Plan:
    """Plan the figure of either paper: Frank-Wolfe, accelerated primal-dual, hybrid, and ours."""
    quick = request.quick
    limits = (request.most_samples, 60) if quick else (10**6, _ITERATIONS)
    cells = [
        cell(
            *(f"{data}/{name}", 4.0 if quick else 100.0, quick, measure),
            *(request.data_file(_times()[data][0]["file"]), name, *limits),
        )
        for data in _SETS[year]
        for name in _ALGORITHMS
    ]
    return Plan(cells, lambda results: _present(_SETS[year], results))


def _present(data: tuple[str, ...], results: Results) -> list[Sheet | Drawing]:
    rows: list[list[Value]] = []
    for key, trace in results.items():
        reached = [_first_below(trace["gap"], level) for level in _LEVELS]
        at = reached[-1]
        solves = trace["solves"][at] if isinstance(at, int) else at
        rows.append([*key.split("/"), *reached, solves, trace["gap"][-1], trace["seconds"]])
    levels = [f"to {level:g}" for level in _LEVELS]
    heads = ("data", "algorithm", *levels, _LAST, "last gap", "CPU seconds")
    description = "Relative certified gap after each iteration."
    return [
        Drawing("Gap against iteration", description, partial(_draw, data, results)),
        Sheet("Iterations", heads, rows, _NOTES),
    ]


def _draw(data: tuple[str, ...], results: Results, figure: Figure) -> None:
    figure.set_size_inches(2.0 + 1.8 * len(data), 3.6)
    axes = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
    for ax, each in zip(axes, data, strict=True):
        for style, name in zip(SERIES, _ALGORITHMS, strict=False):
            trace = results.get(f"{each}/{name}")
            if trace is not None:
                gap = np.maximum(np.array(trace["gap"], dtype=float), 1e-16)
                ax.loglog(1 + np.arange(len(gap)), gap, **style, markevery=0.1, label=name)
        ax.set(title=each, xlabel="iteration")
        ax.xaxis.set_minor_formatter("")
        ax.grid(alpha=0.2)
    axes[0].set_ylabel("relative gap")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _first_below(gap: list[float], level: float) -> Value:
    below = np.flatnonzero(np.array(gap, dtype=float) <= level)
    return int(below[0]) if len(below) else "not reached"


def measure_seconds(path: str, algorithm: str, n_train: int, trials: int) -> dict[str, list[float]]:
    """Fit random training parts to a gap of 1e-2 and return CPU seconds, gaps, iterations."""
    from kernelweave.spectahedron import TessellatedKernelClassifier

    X, y = load(path)
    model = TessellatedKernelClassifier(
        algorithm=algorithm, C=0.1, units="absolute", tol=1e-2, max_iter=500
    )
    # the semidefinite program would take longer over these rows than over its own
    each = min(10, n_train // 4)
    few = np.concatenate([np.flatnonzero(y == label)[:each] for label in np.unique(y)])
    model.fit(X[few], y[few])  # compiles
    record: dict[str, list[float]] = {"seconds": [], "gap": [], "n_iter": []}
    for trial in range(trials):
        part = drawn(X, y, n_train, trial + 1)
        _, seconds = timed(partial(model.fit, *part))
        record["seconds"].append(seconds)
        record["gap"].append(float(model.result_.gap))
        record["n_iter"].append(int(model.n_iter_))
    return record


def table(request: Request) -> Plan:
    """T, Table 1: four data sets, 30 random training parts of four fifths."""
    trials, most_sdp = (2, _QUICK_SDP) if request.quick else (_TRIALS, _MOST_SDP)
    cells = []
    for name, (about, *_) in _times().items():
        path, whole = request.data_file(about["file"]), about["n_rows"] * 4 // 5
        for algorithm in _TIMED:
            n_train = min(whole, request.most_samples) if request.quick else whole
            seconds, times = 1.0 + 0.4 * trials, trials
            if algorithm == _SDP:
                # it grows with the fourth power of the samples
                n_train, times = min(whole, most_sdp), 1
                seconds = 6.0 + 150.0 * (n_train / 100.0) ** 3.8
            reduced = request.quick or n_train < whole
            given = (path, algorithm, n_train, times)
            cells.append(cell(f"{name}/{algorithm}", seconds, reduced, measure_seconds, *given))
    return Plan(cells, _present_seconds)


def _present_seconds(results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    for name, printed_rows in _times().items():
        theirs = {row["algorithm"]: (row["seconds"], row["spread"]) for row in printed_rows}
        for algorithm in _TIMED:
            record = results.get(f"{name}/{algorithm}", {"seconds": [], "gap": [], "n_iter": []})
            seconds = record["seconds"]
            half = "one fit" if len(seconds) == 1 else spread(seconds)
            ours = [mean(seconds), half, mean(record["n_iter"]), max(record["gap"], default=None)]
            rows.append([name, algorithm, *ours, *theirs.get(algorithm, (None, None))])
    columns = ("data", "algorithm", "CPU seconds", "±", "iterations", "largest gap")
    heads = (*columns, f"seconds {PAPER}", f"± {PAPER}")
    return [Sheet("CPU seconds of a fit", heads, rows, _ON_SECONDS)]
