"""Series with a known graph, and how well another graph finds its edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    check_array,
    integer,
    number,
    one_of,
)


def lorenz96(
    n_nodes: int = 8,
    n_times: int = 200,
    *,
    forcing: float = 10.0,
    dt: float = 0.05,
    noise: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Return a series of the Lorenz-96 system and its true graph.

    dxᵢ/dt = (xᵢ₊₁ − xᵢ₋₂) xᵢ₋₁ − xᵢ + F, indices modulo n: node i is driven by itself and by
    i − 2, i − 1 and i + 1. Integrated by the classical Runge-Kutta method, in more steps than rows
    where F is large, 1000 rows discarded.

    Parameters
    ----------
    n_nodes : int, default=8
        n, at least 4.
    n_times : int, default=200
        Rows.
    forcing : float, default=10.0
        F; chaotic from about 8.
    dt : float, default=0.05
        Distance of two rows in time.
    noise : float, default=0.0
        Standard deviation of the observation noise.
    random_state : int or RandomState, optional
        Of the start and the noise.

    Returns
    -------
    X : ndarray of shape (n_times, n_nodes)
        The series.
    truth : ndarray of bool of shape (n_nodes, n_nodes)
        ``truth[i, j]`` says that j drives i.

    Examples
    --------
    >>> from kernelweave.granger import lorenz96
    >>> X, truth = lorenz96(5, 50, random_state=0)
    >>> X.shape, int(truth[0].sum())
    ((50, 5), 4)
    """
    from sklearn.utils import check_random_state

    integer(4).check("n_nodes", n_nodes)
    COUNT.check("n_times", n_times)
    number().check("forcing", forcing)
    POSITIVE.check("dt", dt)
    NONNEGATIVE.check("noise", noise)
    rng = check_random_state(random_state)
    x = forcing + 0.01 * rng.standard_normal(n_nodes)
    rows = np.empty((n_times, n_nodes))
    n_steps = max(1, math.ceil(2.0 * dt * abs(forcing) - 1e-9))  # explodes in larger ones
    for t in range(-1000, n_times):
        for _ in range(n_steps):
            x = _runge_kutta(x, forcing, dt / n_steps)
        if t >= 0:
            rows[t] = x
    node = np.arange(n_nodes)
    truth = np.zeros((n_nodes, n_nodes), dtype=bool)
    for shift in (-2, -1, 0, 1):
        truth[node, (node + shift) % n_nodes] = True
    return rows + noise * rng.standard_normal(rows.shape), truth


def _runge_kutta(x: Matrix, forcing: float, dt: float) -> Matrix:
    def slope(z: Matrix) -> Matrix:
        return (np.roll(z, -1) - np.roll(z, 2)) * np.roll(z, 1) - z + forcing

    a = slope(x)
    b = slope(x + 0.5 * dt * a)
    c = slope(x + 0.5 * dt * b)
    d = slope(x + dt * c)
    return x + dt / 6.0 * (a + 2.0 * b + 2.0 * c + d)


_LINKS: dict[str, Callable[[Matrix], Matrix]] = {
    "linear": lambda x: 0.5 * x,
    "saturating": lambda x: np.tanh(2.0 * x),
    "even": lambda x: 1.5 * x * x / (1.0 + x * x),
}
_SETTLE = 200  # rows left out, until the start is forgotten


def random_network(
    n_nodes: int = 5,
    n_times: int = 200,
    *,
    kind: str = "mixed",
    degree: float = 1.0,
    memory: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Return series of a random system and its true graph.

    xᵢ(t) = a xᵢ(t − 1) + Σ ±g(xⱼ(t − 1)) + noise of variance 1, the sum over what drives i: each
    other node with the same chance.

    Parameters
    ----------
    n_nodes : int, default=5
        Nodes, at least 2.
    n_times : int, default=200
        Rows.
    kind : {"mixed", "linear", "saturating", "even"}, default="mixed"
        What g is: x/2, tanh 2x, 1.5 x²/(1 + x²), which has no linear part, or one of them for
        each edge.
    degree : float, default=1.0
        Expected number of drivers per node; 0 for no edges.
    memory : float, default=0.5
        a, in [0, 1).
    random_state : int or RandomState, optional
        Of graph and noise.

    Returns
    -------
    X : ndarray of shape (n_times, n_nodes)
        The series.
    truth : ndarray of bool of shape (n_nodes, n_nodes)
        ``truth[i, j]`` says that j drives i; every node drives itself.

    Examples
    --------
    >>> from kernelweave.granger import random_network
    >>> X, truth = random_network(4, 100, degree=0.0, random_state=0)
    >>> X.shape, int(truth.sum())
    ((100, 4), 4)
    """
    from sklearn.utils import check_random_state

    integer(2).check("n_nodes", n_nodes)
    COUNT.check("n_times", n_times)
    one_of("mixed", *_LINKS).check("kind", kind)
    number(least=0.0, most=n_nodes - 1.0).check("degree", degree)
    number(least=0.0, below=1.0).check("memory", memory)
    rng = check_random_state(random_state)
    edges = rng.uniform(size=(n_nodes, n_nodes)) < degree / (n_nodes - 1)
    np.fill_diagonal(edges, False)
    drawn = rng.choice(list(_LINKS), size=edges.shape)
    kinds = drawn if kind == "mixed" else np.full(edges.shape, kind)
    parts = {
        name: edges * (kinds == name) * rng.choice([-1.0, 1.0], edges.shape) for name in _LINKS
    }
    top = np.abs(np.linalg.eigvals(memory * np.eye(n_nodes) + 0.5 * parts["linear"])).max()
    parts["linear"] *= min(1.0, 0.95 * (1.0 - memory) / max(top - memory, 1e-300))
    rows, x = np.empty((n_times, n_nodes)), np.zeros(n_nodes)
    for t in range(-_SETTLE, n_times):
        driven = sum(parts[name] @ link(x) for name, link in _LINKS.items())
        x = memory * x + driven + rng.standard_normal(n_nodes)
        if t >= 0:
            rows[t] = x
    return rows, edges | np.eye(n_nodes, dtype=bool)


@dataclass(frozen=True)
class GraphScores:
    """How well a graph is recovered: areas under curves over ordered pairs of different nodes.

    Attributes
    ----------
    auroc : float
        Area under the ROC curve; ½ for random scores.
    aupr : float
        Average precision; for random scores the share of edges among pairs.
    """

    auroc: float
    aupr: float


def score_graph(weights: npt.ArrayLike, truth: npt.ArrayLike) -> GraphScores:
    """Return how well weights rank true edges before other pairs, self loops left out.

    Parameters
    ----------
    weights : array-like of shape (n, n)
        ``weights[i, j]``: how strongly j drives i.
    truth : array-like of bool of shape (n, n)
        Whether it does.

    Returns
    -------
    GraphScores
        Areas under both curves.

    Raises
    ------
    ValueError
        If shapes differ, a number is not finite, or every pair, or none, is an edge.

    Examples
    --------
    >>> from kernelweave.granger import score_graph
    >>> score_graph([[0, 2.0], [1.0, 0]], [[0, 1], [0, 0]]).auroc
    1.0
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    W = check_array("weights", weights, 2, square=True)
    A = check_array("truth", truth, 2, square=True).astype(bool)
    if W.shape != A.shape:
        raise ValueError(f"weights and truth must have the same shape, got {W.shape} and {A.shape}")
    pairs = ~np.eye(len(W), dtype=bool)
    edges = A[pairs]
    if edges.all() or not edges.any():
        raise ValueError(f"truth has {int(edges.sum())} edges among {len(edges)} pairs: need both")
    return GraphScores(
        float(roc_auc_score(edges, W[pairs])), float(average_precision_score(edges, W[pairs]))
    )
