"""Figures 3 to 5: gene groups of the fruit fly over its life cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.granger import GrangerGraph
from kernelweave.kernels_core import RBF, Linear
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.workbench.displays.axes import DIVERGING, HEAT

from ..data import notes, values
from ..plan import Drawing, Plan, Request, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "granger/drosophila_lifecycle.csv.gz"
N_GROUPS, PER_GROUP = 10, 6
_QUICK_GROUPS = 5
_NOTES = notes("granger.genes")


# a linear kernel for each group instead of Gaussians; whether its genes share an output kernel
MODELS = {
    "linear": (True, False),
    "linear, with L": (True, True),
    "nonlinear": (False, False),
    "nonlinear, with L": (False, True),
}


def load(path: str, n_groups: int = N_GROUPS) -> tuple[FloatArray, list[str]]:
    """Return standardised series of six genes in each of the first groups, and the gene's group."""
    from scipy.cluster.hierarchy import fcluster, linkage

    table = values(path)
    table = table[:, np.argsort(table.var(axis=0))[::-1][:400]]
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    label = fcluster(linkage(table.T, "ward"), N_GROUPS, "maxclust")
    kept, groups = [], []
    for group in range(1, n_groups + 1):
        genes = np.flatnonzero(label == group)
        distance = ((table[:, genes] - table[:, genes].mean(axis=1, keepdims=True)) ** 2).sum(0)
        chosen = genes[np.argsort(distance)[:PER_GROUP]]
        kept += chosen.tolist()
        groups += [f"group {group}"] * len(chosen)
    return table[:, kept], groups


def measure(
    path: str, linear: bool, learn_output: bool, lags: int, quick: bool = False
) -> dict[str, object]:
    """Fit one of the four models: its errors, its graph, and the output kernel of one group."""
    X, groups = load(path, _QUICK_GROUPS if quick else N_GROUPS)
    width = lags * PER_GROUP
    powers = range(-7, 6, 3 if quick else 1)
    gaussians = [RBF(gamma=2.0**power / width) for power in powers]
    model = GrangerGraph(
        lags,
        groups,
        [Linear()] if linear else gaussians,
        penalty="lp",
        learn_output=learn_output,
        lam=1e-3,
        tol=5e-2,
        max_iter=300,
    ).fit(X)
    assert model.rmse_ is not None
    return {
        "rmse": model.rmse_.tolist(),
        "graph": model.graph_.tolist(),
        "output": model.output_kernels_[0].tolist(),
    }


def figure(request: Request, number: int) -> Plan:
    """Plan Figure 3, held-out errors, 4, the graphs, or 5, an output kernel: a cell per model."""
    present, names = _FIGURES[number]
    path = request.data_file(FILE)
    quick = {"quick": True} if request.quick else {}
    lags, seconds = (2, 15.0) if request.quick else (7, 120.0)
    cells = [
        cell(name, seconds, request.quick, measure, path, *MODELS[name], lags, **quick)
        for name in names
    ]
    return Plan(cells, present)


_ByModel = Mapping[str, Any]


def _errors(by_model: _ByModel) -> list[Sheet | Drawing]:
    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.boxplot([each["rmse"] for each in by_model.values()])
        ax.set_xticks(range(1, len(by_model) + 1), list(by_model))
        ax.axhline(1.0, color="0.5", linewidth=0.8, linestyle="--")
        ax.set_ylabel("held-out error in standard deviations")

    title = "Figure 3: held-out root mean squared error per gene"
    rows: list[list[Value]] = [
        [name, *(round(float(of(each["rmse"])), 3) for of in (np.mean, np.median))]
        for name, each in by_model.items()
    ]
    return [
        Sheet(title, ["model", "mean", "median"], rows, _NOTES),
        Drawing(title, "A box per model over all genes.", draw),
    ]


def _graphs(by_model: _ByModel) -> list[Sheet | Drawing]:
    def draw(figure: Figure) -> None:
        axes = np.atleast_1d(figure.subplots(1, max(1, len(by_model)), sharey=True))
        for ax, (name, each) in zip(axes, by_model.items(), strict=False):
            image = _matrix(ax, np.array(each["graph"]), cmap=HEAT, vmin=0.0)
            ax.set(title=name, xlabel="group that drives")
            figure.colorbar(image, ax=ax, shrink=0.7, label="weight")
        axes[0].set_ylabel("group that is driven")

    description = "Weight of each group's history in the model of each group."
    return [Drawing("Figure 4: causal graphs", description, draw, _NOTES)]


def _interactions(by_model: _ByModel) -> list[Sheet | Drawing]:
    def draw(figure: Figure) -> None:
        for each in by_model.values():
            L = np.array(each["output"])
            limit = float(np.abs(L).max()) or 1.0
            ax = figure.subplots()
            image = _matrix(ax, L, cmap=DIVERGING, vmin=-limit, vmax=limit)
            ax.set(xlabel="gene", ylabel="gene")
            figure.colorbar(image, label="entry of L")

    description = "How the six genes of the first group go together."
    return [Drawing("Figure 5: interactions in a group", description, draw, _NOTES)]


def _matrix(ax: Any, matrix: FloatArray, **style: Any) -> Any:
    """Draw a matrix, its rows and columns counted from one."""
    n = len(matrix)
    ax.set_xticks(range(n), range(1, n + 1))
    ax.set_yticks(range(n), range(1, n + 1))
    return ax.imshow(matrix, **style)


_FIGURES: dict[int, tuple[Callable[[_ByModel], list[Sheet | Drawing]], tuple[str, ...]]] = {
    3: (_errors, tuple(MODELS)),
    4: (_graphs, ("linear, with L", "nonlinear, with L")),
    5: (_interactions, ("nonlinear, with L",)),
}
