"""T, Figure 1 and T', Figure 2: the relative gap after each iteration of each algorithm."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.workbench.displays.colours import SERIES

from ..data import drawn, load
from ..plan import Cell, Drawing, Plan, Request, Results, Sheet, Value
from .sets import TIMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALGORITHMS = ("tkl-frank-wolfe", "tkl-apd", "tkl-hybrid", "tkl-low-rank")
_LEVELS = (1e-2, 1e-4, 1e-6)
_LAST = "solves to 1e-06"
_SETS = {2021: ("Liver", "Cancer", "Heart", "Pima"), 2024: ("Cancer", "Pima")}
_ITERATIONS = 1000
_NOTES = (
    "The gaps are certified at both ends; C = 0.1, δ = .5, degree 1: the papers give no C. At most "
    f"{_ITERATIONS} iterations, as printed, or a gap of 1e-6. Solves: of the learner, those of "
    "line searches, of proximal programs and certificates included.",
)


def measure(path: str, algorithm: str, n_train: int, max_iter: int) -> dict[str, list[float]]:
    """Fit to a gap of 1e-6 or ``max_iter`` and return the gap after each iteration."""
    from kernelweave.spectahedron import TessellatedKernelClassifier

    machine = TessellatedKernelClassifier(
        algorithm=algorithm, C=0.1, units="absolute", tol=1e-6, max_iter=max_iter
    )
    history = machine.fit(*drawn(*load(path), n_train)).result_.history
    return {
        "gap": [float(gap) for gap in history.gap],
        "seconds": list(history.seconds),
        "solves": list(history.counts["n_solves"]),
    }


def figure(request: Request, year: int) -> Plan:
    """Plan the figure of either paper: Frank-Wolfe, accelerated primal-dual, hybrid, and ours."""
    cells = [
        Cell(
            key=f"{data}/{name}",
            compute=measure,
            arguments={
                "path": request.data_file(TIMES[data][0]),
                "algorithm": name,
                "n_train": request.most_samples if request.quick else 10**6,
                "max_iter": 60 if request.quick else _ITERATIONS,
            },
            seconds=(4.0 if request.quick else 100.0),
            is_reduced=request.quick,
        )
        for data in _SETS[year]
        for name in _ALGORITHMS
    ]
    return Plan(cells, lambda results: _present(_SETS[year], results))


def _present(data: tuple[str, ...], results: Results) -> list[Sheet | Drawing]:
    rows: list[list[Value]] = []
    for key, found in results.items():
        reached = [_first_below(found["gap"], level) for level in _LEVELS]
        at = reached[-1]
        solves = found["solves"][at] if isinstance(at, int) else at
        rows.append([*key.split("/"), *reached, solves, found["gap"][-1], found["seconds"][-1]])
    levels = [f"to {level:g}" for level in _LEVELS]
    heads = ("data", "algorithm", *levels, _LAST, "last gap", "seconds")
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
            found = results.get(f"{each}/{name}")
            if found is not None:
                gap = np.maximum(np.array(found["gap"], dtype=float), 1e-16)
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
