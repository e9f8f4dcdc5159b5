"""T, Figure 1 and T', Figure 2: the relative gap after each iteration of each algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core import algorithms
from kernelweave.workbench.displays.colours import SERIES

from .. import data as samples
from ..plan import Cell, Drawing, Plan, Request, Sheet, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALGORITHMS = ("tkl-frank-wolfe", "tkl-apd", "tkl-hybrid", "tkl-low-rank")
_LEVELS = (1e-2, 1e-4, 1e-6)
_JMLR = {"Heart": "heart_statlog.csv", "Pima": "pima.csv"}
_ICML = {
    "Liver": "liver_bupa.csv",
    "Cancer": "breastcancer_wisconsin_original.csv",
    "Heart": "heart_statlog.csv",
    "Pima": "pima.csv",
}


def measure(path: str, algorithm: str, n_train: int, max_iter: int) -> dict[str, list[float]]:
    """Fit to a gap of 1e-6 or ``max_iter`` and return the gap after each iteration."""
    from kernelweave.spectahedron import TessellatedKernelClassifier

    X, y = samples.load(path)
    rows = np.random.RandomState(0).permutation(len(X))[:n_train]
    machine = TessellatedKernelClassifier(algorithm=algorithm, C=0.1, tol=1e-6, max_iter=max_iter)
    history = machine.fit(X[rows], y[rows]).result_.history
    return {"gap": [float(gap) for gap in history.gap], "seconds": list(history.seconds)}


def _plan(files: dict[str, str], request: Request) -> Plan:
    known = algorithms(task="classification")
    names = [name for name in _ALGORITHMS if name in known]
    n_train = request.most_samples if request.quick else 10**6
    max_iter = 60 if request.quick else 400
    cells = [
        Cell(
            key=f"{data}/{name}",
            compute=measure,
            arguments={
                "path": str(request.data_file(file)),
                "algorithm": name,
                "n_train": n_train,
                "max_iter": max_iter,
            },
            seconds=(4.0 if request.quick else 40.0),
            is_reduced=request.quick,
        )
        for data, file in files.items()
        for name in names
    ]
    return Plan(cells, lambda results: _present(list(files), names, results))


def figure_1(request: Request) -> Plan:
    """T, Figure 1: Frank-Wolfe, accelerated primal-dual, hybrid, and ours."""
    return _plan(_JMLR, request)


def icml_figure_2(request: Request) -> Plan:
    """T', Figure 2: the same on four sets."""
    return _plan(_ICML, request)


def _present(
    data: list[str], names: list[str], results: Mapping[str, Any]
) -> list[Sheet | Drawing]:
    def draw(figure: Figure) -> None:
        figure.set_size_inches(2.0 + 1.8 * len(data), 3.6)
        axes = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
        for ax, each in zip(axes, data, strict=True):
            for number, name in enumerate(names):
                found = results.get(f"{each}/{name}")
                if found is not None:
                    gap = np.maximum(np.array(found["gap"], dtype=float), 1e-16)
                    style = {**SERIES[number], "markevery": 0.1, "label": name}
                    ax.loglog(1 + np.arange(len(gap)), gap, **style)
            ax.set_title(each)
            ax.set_xlabel("iteration")
            ax.xaxis.set_minor_formatter("")
            ax.grid(alpha=0.2)
        axes[0].set_ylabel("relative gap")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)

    rows: list[list[Value]] = []
    for each in data:
        for name in names:
            found = results.get(f"{each}/{name}")
            if found is not None:
                reached = [_first_below(found["gap"], level) for level in _LEVELS]
                rows.append([each, name, *reached, found["gap"][-1], found["seconds"][-1]])
    heads = [f"to {level:g}" for level in _LEVELS]
    notes = ["The gaps are certified at both ends; C = 0.1, δ = .5, degree 1."]
    return [
        Drawing("Gap against iteration", "Relative certified gap after each iteration.", draw),
        Sheet("Iterations", ("data", "algorithm", *heads, "last gap", "seconds"), rows, notes),
    ]


def _first_below(gap: list[float], level: float) -> Value:
    below = np.flatnonzero(np.array(gap, dtype=float) <= level)
    return int(below[0]) if len(below) else "not reached"
