"""Figures 3 to 5: gene groups of the fruit fly over its life cycle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.granger import GrangerGraph
from kernelweave.kernels_core import RBF, Linear
from kernelweave.workbench.displays.colours import HEAT

from ..plan import Cell, Drawing, Plan, Request, Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "granger/drosophila_lifecycle.csv.gz"
N_GROUPS, PER_GROUP = 10, 6
_QUICK_GROUPS = 5
_NOTES = (
    "66 points in time, lag 7, λ = 0.001, as in the paper; 13 bandwidths per group, or one linear "
    "kernel; ω the squared ℓ1 norm. Errors are those of held-out stretches of time, five folds, in "
    "standard deviations of each gene. A stretch is a stage of life that the rest "
    "does not hold, so that most errors are above 1 (dashed), that of the mean over all of life.",
    "The paper's 35 functional groups of 2397 genes are not public. Here: the 400 genes of the "
    "largest variance, joined by Ward's method on their standardised profiles into 10 groups, of "
    "each the 6 genes nearest to its mean. No true graph exists.",
    "A quick run takes the first five groups, five bandwidths and lag 2.",
)


def load(path: str, n_groups: int = N_GROUPS) -> tuple[npt.NDArray[np.float64], list[str]]:
    """Return standardised series of six genes a group and the group of each.

    Parameters
    ----------
    path : str
        The compressed CSV file.
    n_groups : int
        The first so many of ten groups.

    Returns
    -------
    X : ndarray of shape (66, 6·n_groups)
        Series.
    groups : list of str
        A label per gene.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    table = np.genfromtxt(path, delimiter=",", skip_header=1)
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
) -> dict[str, Any]:
    """Fit one of the four models.

    Parameters
    ----------
    path : str
        As in `load`.
    linear : bool
        A linear kernel per group instead of thirteen Gaussians.
    learn_output : bool
        Whether the genes of a group share a learned output kernel.
    lags : int
        Length of a history.
    quick : bool
        Whether to take five groups and five bandwidths.

    Returns
    -------
    dict
        Lists ``rmse, graph, groups, output``.
    """
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
        "groups": model.group_names_,
        "output": model.output_kernels_[0].tolist(),
    }


MODELS = {
    "linear": (True, False),
    "linear, with L": (True, True),
    "nonlinear": (False, False),
    "nonlinear, with L": (False, True),
}


def _cells(request: Request, names: list[str]) -> list[Cell]:
    path = str(request.data_file(FILE))
    lags = 2 if request.quick else 7
    return [
        Cell(
            key=name,
            compute=measure,
            arguments={
                "path": path,
                "linear": MODELS[name][0],
                "learn_output": MODELS[name][1],
                "lags": lags,
                **({"quick": True} if request.quick else {}),
            },
            seconds=15.0 if request.quick else 120.0,
            is_reduced=request.quick,
        )
        for name in names
    ]


def _number(ax: Any, n: int) -> None:
    """Count rows and columns from one."""
    ax.set_xticks(range(n), range(1, n + 1))
    ax.set_yticks(range(n), range(1, n + 1))


def error_figure(request: Request) -> Plan:
    """Return the plan of Figure 3: held-out errors of four models.

    Parameters
    ----------
    request : Request
        ``quick`` takes two lags, five groups and five bandwidths.

    Returns
    -------
    Plan
        A cell per model.
    """

    def present(found: Mapping[str, Any]) -> list[Sheet | Drawing]:
        rows: list[list[Any]] = [
            [name, round(float(np.mean(each["rmse"])), 3), round(float(np.median(each["rmse"])), 3)]
            for name, each in found.items()
        ]

        def draw(figure: Figure) -> None:
            ax = figure.subplots()
            ax.boxplot([each["rmse"] for each in found.values()])
            ax.set_xticks(range(1, len(found) + 1), list(found))
            ax.axhline(1.0, color="0.5", linewidth=0.8, linestyle="--")
            ax.set_ylabel("held-out error in standard deviations")

        title = "Figure 3: held-out root mean squared error per gene"
        return [
            Sheet(title, ["model", "mean", "median"], rows, _NOTES),
            Drawing(title, "A box per model over all genes.", draw),
        ]

    return Plan(_cells(request, list(MODELS)), present)


def graph_figure(request: Request) -> Plan:
    """Return the plan of Figure 4: the graphs of both kinds of model.

    Parameters
    ----------
    request : Request
        ``quick`` takes two lags, five groups and five bandwidths.

    Returns
    -------
    Plan
        A cell per model.
    """
    names = ["linear, with L", "nonlinear, with L"]

    def present(found: Mapping[str, Any]) -> list[Sheet | Drawing]:
        def draw(figure: Figure) -> None:
            axes = np.atleast_1d(figure.subplots(1, max(1, len(found)), sharey=True))
            for ax, (name, each) in zip(axes, found.items(), strict=False):
                graph = np.array(each["graph"])
                image = ax.imshow(graph, cmap=HEAT, vmin=0.0)
                ax.set(title=name, xlabel="group that drives")
                _number(ax, len(graph))
                figure.colorbar(image, ax=ax, shrink=0.7, label="weight")
            axes[0].set_ylabel("group that is driven")

        description = "Weight of each group's history in the model of each group."
        return [Drawing("Figure 4: causal graphs", description, draw, _NOTES)]

    return Plan(_cells(request, names), present)


def output_figure(request: Request) -> Plan:
    """Return the plan of Figure 5: the output kernel of one group.

    Parameters
    ----------
    request : Request
        ``quick`` takes two lags, five groups and five bandwidths.

    Returns
    -------
    Plan
        One cell.
    """

    def present(found: Mapping[str, Any]) -> list[Sheet | Drawing]:
        def draw(figure: Figure) -> None:
            for each in found.values():
                L = np.array(each["output"])
                limit = float(np.abs(L).max()) or 1.0
                ax = figure.subplots()
                image = ax.imshow(L, cmap="PuOr", vmin=-limit, vmax=limit)
                ax.set(xlabel="gene", ylabel="gene")
                _number(ax, len(L))
                figure.colorbar(image, label="entry of L")

        description = "How the six genes of the first group go together."
        return [Drawing("Figure 5: interactions in a group", description, draw, _NOTES)]

    return Plan(_cells(request, ["nonlinear, with L"]), present)
