"""T, Figure 4: steps of the inner solver against the rank of P."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.workbench.displays.axes import LOWER, UPPER

from ..data import as_unit_range, drawn, load, notes
from ..measuring import CLASSES, interval, mean
from ..plan import Drawing, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TRIALS = 20
_RANKS = (1, 2, 4, 8, 16)
_TOL = 0.1
_SETS = {"regression": "california_housing.csv.gz", "classification": "shill_bidding.csv.gz"}


def measure(path: str, task: str, n_samples: int, rank: int, trials: int) -> dict[str, list[int]]:
    """Return the steps of the SVM dual at random matrices P of a rank, one a trial."""
    from kernelweave.kernels_core import TessellatedFamily
    from kernelweave.qp_smo import solve_svc, solve_svr

    X, y = drawn(*load(path), n_samples)
    X, p = as_unit_range(X), X.shape[1]
    family = TessellatedFamily(1, lower=np.full(p, -0.5), upper=np.full(p, 1.5), z_degree=0)
    steps = []
    for trial in range(trials):
        U = np.random.RandomState(trial).normal(size=(family.n_P, rank))
        P = U @ U.T
        K = family.gram(X, P * (family.n_P / np.trace(P)))
        if task == CLASSES:
            solution = solve_svc(K, y, C=0.1, tol=_TOL, backend="smo")
        else:
            target, tol = as_unit_range(y), _TOL / 10
            solution = solve_svr(K, target, C=0.1, epsilon=0.02, tol=tol, backend="smo")
        steps.append(solution.n_iter)
    return {"steps": steps}


def figure(request: Request) -> Plan:
    """T, Figure 4: California housing and Shill bidding, 20 random P of each rank."""
    quick = request.quick
    n_samples, trials, each = (300, 4, 0.1) if quick else (2000, _TRIALS, 1.0)
    cells = [
        cell(
            *(f"{task}/{rank}", trials * each, quick, measure),
            *(request.data_file(file), task, n_samples, rank, trials),
        )
        for task, file in _SETS.items()
        for rank in _RANKS
    ]
    return Plan(cells, _present)


def _half(steps: Iterable[float]) -> float | None:
    """Return half of the 95 % interval of the mean, as the paper draws it."""
    low, middle, _ = interval(steps)
    return None if low is None or middle is None else middle - low


def _present(results: Results) -> list[Sheet | Drawing]:
    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2)
        for ax, task in zip(axes, _SETS, strict=True):
            ranks = [rank for rank in _RANKS if f"{task}/{rank}" in results]
            by_rank = [np.array(results[f"{task}/{rank}"]["steps"]) for rank in ranks]
            means = np.array([steps.mean() for steps in by_rank])
            ax.errorbar(ranks, means, list(map(_half, by_rank)), fmt="o", color=UPPER, markersize=4)
            if len(ranks) > 1:
                slope, start = np.polyfit(ranks, means, 1)
                ax.plot(ranks, start + slope * np.array(ranks), color=LOWER)
            ax.set(title=task, xlabel="rank of P")
            ax.grid(alpha=0.2)
        axes[0].set_ylabel("steps of the SVM dual")

    rows: list[list[Value]] = [
        [task, rank, mean(steps), _half(steps)]
        for task in _SETS
        for rank in _RANKS
        if (steps := results.get(f"{task}/{rank}", {}).get("steps"))
    ]
    description = "Mean steps over random matrices P of each rank, with 95 % intervals."
    return [
        Drawing("Steps against rank", description, draw),
        Sheet(
            "Steps", ("task", "rank of P", "steps", "±"), rows, notes("tessellated.ranks", tol=_TOL)
        ),
    ]
