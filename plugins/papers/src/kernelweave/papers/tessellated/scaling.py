"""T, Figure 2 and T', Figure 3: seconds of an iteration and of a fit as exponents in m and n_P."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core import algorithms
from kernelweave.workbench.displays.colours import SERIES

from .. import data as samples
from ..plan import Cell, Drawing, Plan, Request, Sheet, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZES = (500, 1000, 2000, 4000)
_QUICK_SIZES = (125, 250, 500)
_FEATURES = (2, 4, 6, 8)
# exponents of m and n_P: Frank-Wolfe and the accelerated primal-dual method
_PRINTED = {
    ("tkl-frank-wolfe", "classification"): (2.6, 1.8),
    ("tkl-frank-wolfe", "regression"): (2.4, 1.9),
    ("tkl-apd", "classification"): (2.7, 1.6),
    ("tkl-apd", "regression"): (2.4, 1.2),
}
_PRINTED_FIT = {"classification": (2.28, 0.57), "regression": (2.34, 2.40)}


def measure(
    path: str, algorithm: str, task: str, n_samples: int, n_features: int, max_iter: int
) -> dict[str, float]:
    """Fit the first features of a part of the data and return seconds of an iteration and all."""
    from kernelweave.spectahedron import TessellatedKernelClassifier, TessellatedKernelRegressor

    X, y = samples.load(path)
    rows = np.random.RandomState(0).permutation(len(X))[:n_samples]
    X, y = X[rows][:, :n_features], samples.as_unit_range(y)[rows]
    settings: dict[str, Any] = {
        "algorithm": algorithm,
        "C": 0.1,
        "tol": 1e-2,
        "z_degree": 0,
        "max_iter": max_iter,
    }
    if task == "classification":
        machine: Any = TessellatedKernelClassifier(**settings)
        y = np.where(y >= np.median(y), 1.0, -1.0)
    else:
        machine = TessellatedKernelRegressor(epsilon=0.02, **settings)
    machine.fit(X[:60], y[:60])
    start = time.perf_counter()
    machine.fit(X, y)
    seconds = time.perf_counter() - start
    n_iter = int(machine.n_iter_)
    # the first record holds what is done once: features of the samples, the first Gram matrix
    spent = np.diff(np.array(machine.result_.history.seconds, dtype=float))
    each = float(np.median(spent)) if len(spent) else seconds
    return {"seconds": seconds, "iteration": each, "n_iter": n_iter, "n_P": len(machine.P_)}


def _plan(file: str, names: Sequence[str], max_iter: int, request: Request, key: str) -> Plan:
    path = str(request.data_file(file))
    n_columns = samples.load(path)[0].shape[1]
    features = [p for p in _FEATURES if p <= n_columns]
    sizes = _QUICK_SIZES if request.quick else _SIZES
    cells = [
        Cell(
            key=f"{task}/{name}/{m}/{p}",
            compute=measure,
            arguments={
                "path": path,
                "algorithm": name,
                "task": task,
                "n_samples": m,
                "n_features": p,
                "max_iter": max_iter,
            },
            seconds=0.5 + 6.0 * (m / 1000) ** 2,
            is_reduced=request.quick,
        )
        for task in ("classification", "regression")
        for name in names
        for m in sizes
        for p in features
    ]
    return Plan(cells, lambda results: _present(results, key, names))


def figure_2(request: Request) -> Plan:
    """T, Figure 2: an iteration on California housing, median split and targets in [0, 1]."""
    known = algorithms(task="classification")
    names = [name for name in ("tkl-frank-wolfe", "tkl-apd", "tkl-low-rank") if name in known]
    return _plan("california_housing.csv.gz", names, 5, request, "iteration")


def icml_figure_3(request: Request) -> Plan:
    """T', Figure 3: a whole fit on CCPP to a gap of 1e-2."""
    return _plan("ccpp.csv", ["tkl-frank-wolfe", "tkl-low-rank"], 300, request, "seconds")


def exponents(m: Any, n_P: Any, seconds: Any) -> tuple[float, float]:
    """Return a and b of the least-squares fit ``seconds ≈ c·mᵃ·n_Pᵇ``.

    Parameters
    ----------
    m, n_P, seconds : array-like of shape (n,)

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> a, b = exponents([1, 2, 1, 2], [1, 1, 2, 2], [3, 12, 6, 24])
    >>> round(a, 6), round(b, 6)
    (2.0, 1.0)
    """
    logs = [np.log(np.asarray(each, dtype=float)) for each in (m, n_P, seconds)]
    design = np.column_stack([np.ones_like(logs[0]), logs[0], logs[1]])
    solution = np.linalg.lstsq(design, logs[2], rcond=None)[0]
    return float(solution[1]), float(solution[2])


def _series(results: Mapping[str, Any], start: str, key: str) -> Any:
    """Return the rows (m, n_P, seconds) of an algorithm and task."""
    rows = [
        (int(name.split("/")[2]), value["n_P"], value[key])
        for name, value in results.items()
        if name.startswith(start)
    ]
    return np.array(sorted(rows), dtype=float).reshape(-1, 3)


def _present(results: Mapping[str, Any], key: str, names: Sequence[str]) -> list[Sheet | Drawing]:
    rows: list[list[Value]] = []
    for name in names:
        for task in ("classification", "regression"):
            found = _series(results, f"{task}/{name}/", key)
            if len(found) < 4:
                continue
            ours = exponents(*found.T)
            printed = _PRINTED.get((name, task)) if key == "iteration" else _PRINTED_FIT[task]
            if key == "seconds" and name != "tkl-frank-wolfe":
                printed = None
            rows.append([name, task, *ours, *(printed or (None, None)), float(found[:, 2].max())])

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        for ax, task in zip(axes, ("classification", "regression"), strict=True):
            for number, name in enumerate(names):
                found = _series(results, f"{task}/{name}/", key)
                for n_P in np.unique(found[:, 1]):
                    part = found[found[:, 1] == n_P]
                    label = name if n_P == found[:, 1].min() else None
                    ax.loglog(part[:, 0], part[:, 2], **SERIES[number], label=label)
            ax.set_title(task)
            sizes = sorted({int(key.split("/")[2]) for key in results})
            ax.set_xticks(sizes, sizes)
            ax.xaxis.set_minor_formatter("")
            ax.set_xlabel("samples")
            ax.grid(alpha=0.2)
        axes[0].set_ylabel("seconds")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)

    what = "an iteration" if key == "iteration" else "a fit"
    columns = ("algorithm", "task", "m", "n_P", "m (paper)", "n_P (paper)", "longest (s)")
    notes = ["Exponents of the least-squares fit in logarithms; z_degree = 0, as in the paper."]
    return [
        Drawing(f"Seconds of {what}", f"Seconds of {what}, a line for each n_P.", draw),
        Sheet(f"Exponents of {what}", columns, rows, notes),
    ]
