"""How well a graph of weights finds the edges of a known one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.checks import check_array


@dataclass(frozen=True)
class GraphScores:
    """Areas over the ordered pairs of different nodes.

    Attributes
    ----------
    auroc : float
        Area under the receiver operating characteristic; ½ for guesses.
    aupr : float
        Average precision; the share of edges among pairs for guesses.
    n_edges, n_pairs : int
        True edges, and pairs.
    """

    auroc: float
    aupr: float
    n_edges: int
    n_pairs: int


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
        raise ValueError(f"weights and truth must be square and alike, got {W.shape} and {A.shape}")
    pairs = ~np.eye(len(W), dtype=bool)
    edges = A[pairs]
    if edges.all() or not edges.any():
        raise ValueError(f"truth has {int(edges.sum())} edges among {len(edges)} pairs: need both")
    return GraphScores(
        float(roc_auc_score(edges, W[pairs])),
        float(average_precision_score(edges, W[pairs])),
        int(edges.sum()),
        len(edges),
    )
