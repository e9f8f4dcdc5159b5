"""Minimise over {L ⪰ 0, tr L ≤ τ} by rank-one steps, on plain arrays: Hazan's algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Matrix
from ..checks import COUNT, NONNEGATIVE, POSITIVE, check_array
from ..clock import expired
from .projection import top_eigenpair


@dataclass(frozen=True)
class SparseSDPSolution:
    """The last iterate of `sparse_sdp`: at most ``n_iter`` rank-one terms added to the start.

    `gap` is ⟨∇g(L), L − S⟩ for the best S found: an upper bound of g(L) − min g where g is convex,
    up to the accuracy of the eigensolver; `converged`: whether it is within ``tol``.
    """

    L: Matrix
    gap: float
    converged: bool
    n_iter: int


def sparse_sdp(
    gradient: Callable[[Matrix], Matrix],
    start: npt.ArrayLike,
    trace: float,
    *,
    line_search: Callable[[Matrix, Matrix], float] | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> SparseSDPSolution:
    """Minimise a smooth convex g over {L ⪰ 0, tr L ≤ τ} by rank-one steps.

    L ← L + s (τ v vᵀ − L), v the unit eigenvector of the smallest eigenvalue of ∇g(L), and v = 0
    where that eigenvalue is positive: without this case the method cannot shrink the trace.
    Hazan 2008; Jaggi 2011. A step costs one gradient and one extreme eigenpair.

    Parameters
    ----------
    gradient : callable
        L ↦ ∇g(L), symmetric, shape (n, n).
    start : array-like of shape (n, n)
        Where to start: symmetric positive semidefinite of trace at most τ.
    trace : float
        τ > 0.
    line_search : callable, optional
        (L, D) ↦ the s that minimises g(L + sD); it is clipped to [0, 1]. Without it the open-loop
        step min(1, 2/k), k = 1, 2, …, which need not descend.
    tol : float, default=1e-6
        Gap to stop at.
    max_iter : int, default=1000
        Steps at most.

    Returns
    -------
    SparseSDPSolution
        The matrix and its gap.

    Raises
    ------
    ValueError
        If the start is not a square matrix in the set, or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.psd_cone import sparse_sdp
    >>> target = np.diag([2.0, 0.0])
    >>> found = sparse_sdp(lambda L: L - target, np.eye(2), 2.0,
    ...                    line_search=lambda L, D: -np.vdot(L - target, D) / np.vdot(D, D))
    >>> np.round(found.L, 6) + 0.0
    array([[2., 0.],
           [0., 0.]])
    """
    POSITIVE.check("trace", trace)
    NONNEGATIVE.check("tol", tol)
    COUNT.check("max_iter", max_iter)
    L = _positive(start)
    if L.trace() > trace * (1.0 + 1e-9):
        raise ValueError(
            f"start must be positive semidefinite of trace <= {trace:g}, got trace {L.trace():.6g}"
        )
    vector: Matrix | None = None
    gap = np.inf
    for k in range(max_iter + 1):
        G = gradient(L)
        value, vector = top_eigenpair(-G, vector)
        atom = trace * np.outer(vector, vector) if value > 0.0 else np.zeros_like(L)
        direction = atom - L
        gap = -float(np.vdot(G, direction))
        if gap <= tol or k == max_iter or expired():
            return SparseSDPSolution(L, max(gap, 0.0), gap <= tol, k)
        step = min(1.0, 2.0 / (k + 1)) if line_search is None else line_search(L, direction)
        L = L + float(np.clip(step, 0.0, 1.0)) * direction
    raise AssertionError("unreachable: the last pass returns")


def _positive(start: npt.ArrayLike) -> Matrix:
    """Return a start as a symmetric matrix, refusing one that is not positive semidefinite."""
    P = check_array("start", start, 2, square=True)
    P = 0.5 * (P + P.T)
    smallest = float(np.linalg.eigvalsh(P)[0])
    if smallest < -1e-9 * max(abs(float(P.trace())), np.finfo(np.float64).tiny):
        raise ValueError(
            f"start must be positive semidefinite, got a smallest eigenvalue of {smallest:.3g}"
        )
    return P
