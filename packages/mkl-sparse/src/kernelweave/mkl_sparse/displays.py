"""Pictures of sparse weights, drawn on axes that the caller made.

Nothing here imports matplotlib: an ``ax`` comes from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from kernelweave.kernels_core import History

from .paths import SparseMKLPath

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#8C8C8C"


def plot_weights(model: Any, ax: Any) -> None:
    """Draw the weight of every kernel as a bar; kernels that are not used keep their line.

    Parameters
    ----------
    model : SparseMKLClassifier or SparseMKLRegressor
        Fitted, with one set of weights.
    ax : matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.mkl_sparse import SparseMKLClassifier, plot_weights
    >>> X, y = load_iris(return_X_y=True)
    >>> plot_weights(SparseMKLClassifier(k0=2).fit(X, y), Figure().subplots())
    """
    weights = np.asarray(model.weights_)
    at = np.arange(weights.size)
    ax.barh(at, weights, color=np.where(weights > 0, _BLUE, _GREY), height=0.7)
    ax.set_yticks(at, model.kernel_names_)
    ax.invert_yaxis()
    ax.set_xlim(0.0, max(1.0, float(weights.max())))
    ax.set_xlabel("weight")
    for j in np.flatnonzero(weights):
        ax.annotate(
            f"{weights[j]:.3f}",
            (weights[j], j),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    ax.spines[["top", "right"]].set_visible(False)


def plot_gap_by_solves(history: History, ax: Any, *, label: str | None = None) -> None:
    """Draw the relative gap against the number of learner solves.

    Parameters
    ----------
    history : History
        Of a result with the count ``n_svm_solves``.
    ax : matplotlib Axes
    label : str, optional
        For a legend.
    """
    gap = np.maximum(np.asarray(history.gap, dtype=np.float64), 1e-16)
    solves = np.asarray(history.counts["n_svm_solves"])
    shown = np.isfinite(gap)
    ax.step(solves[shown], gap[shown], where="post", label=label)
    ax.set_yscale("log")
    ax.set_xlabel("learner solves")
    ax.set_ylabel("relative gap")
    ax.grid(alpha=0.2)
    ax.spines[["top", "right"]].set_visible(False)


def plot_supports(path: SparseMKLPath, ax: Any, *, names: Sequence[str] | None = None) -> None:
    """Draw which kernels are used along a path in λ, darker where the weight is larger.

    Parameters
    ----------
    path : SparseMKLPath
        At one C and one k₀: ``path.at(C=…, k0=…)``.
    ax : matplotlib Axes
    names : sequence of str, optional
        A name per kernel.

    Raises
    ------
    ValueError
        If the path holds several C or k₀.
    """
    if len({(point.C, point.k0) for point in path.points}) != 1:
        raise ValueError("path must have one C and one k0: use path.at(C=..., k0=...)")
    points = sorted(path.points, key=lambda point: point.lam)
    weights = np.stack([point.weights for point in points]).T
    shown = np.ma.masked_where(weights == 0.0, weights)
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    ax.set_xticks(np.arange(len(points)), [f"{point.lam:g}" for point in points])
    kernels = [f"K{j}" for j in range(len(weights))] if names is None else list(names)
    ax.set_yticks(np.arange(len(kernels)), kernels)
    ax.set_xlabel("λ")
    for i, point in enumerate(points):
        for j in point.support:
            dark = point.weights[j] > 0.6
            ax.annotate(
                f"{point.weights[j]:.2f}",
                (i, j),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else "black",
            )
