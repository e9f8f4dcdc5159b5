"""Minimise over positive matrices by rank-one steps, on plain arrays.

`frank_wolfe` over {P ⪰ 0, tr P = τ} with a lower bound, Hazan's `sparse_sdp` over {tr L ≤ τ}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ..arrays import Matrix
from ..checks import COUNT, NONNEGATIVE, POSITIVE, check_array
from ..clock import expired
from ..result import check_bounds, relative_gap
from .projection import largest_eigenvalue_bound, top_eigenpair

# a root is one where the slope is this share of the first, or after so many trials
_SLOPE_TOL = 1e-2
_MAX_TRIALS = 12


@dataclass(frozen=True)
class FrankWolfeSolution:
    """The last iterate of `frank_wolfe`.

    Attributes
    ----------
    P : ndarray of shape (n, n)
        The matrix.
    value, lower_bound : float
        f there, and a lower bound of min f, as exact as f and its gradient are.
    gap : float
        Relative gap between them.
    converged : bool
        Whether the gap is within ``tol``.
    n_iter : int
        Steps made.
    """

    P: Matrix
    value: float
    lower_bound: float
    gap: float
    converged: bool
    n_iter: int


def frank_wolfe(
    f: Callable[[Matrix], tuple[float, Matrix]],
    start: npt.ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> FrankWolfeSolution:
    """Minimise a smooth convex f over {P ⪰ 0, tr P = τ} by rank-one steps.

    P ← P + s (τ v vᵀ − P), v the unit eigenvector of the smallest eigenvalue of ∇f(P), s by a
    line search on the slope. A step costs one extreme eigenpair, a Cholesky factorisation that
    proves the bound, and one gradient or a few.

    Parameters
    ----------
    f : callable
        P ↦ (f(P), ∇f(P)), the gradient symmetric of shape (n, n).
    start : array-like of shape (n, n)
        Where to start: symmetric positive semidefinite; its trace is τ.
    tol : float, default=1e-6
        Relative gap to stop at.
    max_iter : int, default=1000
        Steps at most.

    Returns
    -------
    FrankWolfeSolution
        The matrix, f there and a lower bound.

    Raises
    ------
    ValueError
        If the start is not a positive semidefinite matrix of positive trace, or f returns
        something else than a number and a matrix of its shape.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core.psd_cone import frank_wolfe
    >>> target = np.diag([3.0, -1.0])
    >>> def f(P):
    ...     return 0.5 * np.sum((P - target) ** 2), P - target
    >>> found = frank_wolfe(f, np.eye(2))
    >>> np.round(found.P, 6) + 0.0, round(found.lower_bound, 6)
    (array([[2., 0.],
           [0., 0.]]), 1.0)
    """
    NONNEGATIVE.check("tol", tol)
    COUNT.check("max_iter", max_iter)
    P = _positive(start)
    trace = POSITIVE.check("the trace of start", float(P.trace()))
    lower, step, vector = -np.inf, 1.0, None
    for k in range(max_iter + 1):
        value, G = _evaluated(f, P)
        top, vector = top_eigenpair(-G, vector)
        highest = largest_eigenvalue_bound(-G, 0.0, top)
        lower = max(lower, value - (float(np.vdot(G, P)) + trace * highest))
        direction = trace * np.outer(vector, vector) - P
        slope = float(np.vdot(G, direction))
        check_bounds("Frank-Wolfe, of a function that must be convex", lower, value)
        gap = relative_gap(lower, value)
        if gap <= tol or k == max_iter or slope >= 0.0 or expired():
            return FrankWolfeSolution(P, value, lower, gap, gap <= tol, k)
        step = find_root(
            partial(_slope, f, P, direction), slope, guess=min(1.0, 1.5 * max(step, 1e-6))
        )
        P = P + step * direction
    raise AssertionError("unreachable: the last pass returns")


def _slope(
    f: Callable[[Matrix], tuple[float, Matrix]], P: Matrix, direction: Matrix, step: float
) -> float:
    """Return the slope of f along a direction, after a step."""
    return float(np.vdot(_evaluated(f, P + step * direction)[1], direction))


def _evaluated(f: Callable[[Matrix], tuple[float, Matrix]], P: Matrix) -> tuple[float, Matrix]:
    value, gradient = f(P)
    G = np.asarray(gradient, dtype=np.float64)
    if G.shape != P.shape or not np.isfinite(G).all() or not np.isfinite(value):
        raise ValueError(
            f"f must return a finite number and a finite matrix of shape {P.shape}, got {value!r} "
            f"and a gradient of shape {G.shape}"
        )
    return float(value), 0.5 * (G + G.T)


def find_root(slope: Callable[[float], float], first: float, guess: float) -> float:
    """Return a step in (0, 1] where an increasing ``slope`` vanishes, 1 if it stays negative.

    Illinois variant of the false position, after expanding from ``guess``; it stops when the
    slope is a hundredth of the first one. ``slope`` is called at the returned step.
    """
    low, f_low, high, f_high = 0.0, first, 1.0, np.nan
    step, side = guess, 0
    for _ in range(_MAX_TRIALS):
        value = slope(step)
        done = abs(value) <= _SLOPE_TOL * abs(first) or (step >= 1.0 and value <= 0.0)
        if done or expired():
            return step
        if value > 0.0:
            high, f_high = step, value
            f_low *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            low, f_low = step, value
            f_high *= 0.5 if side < 0 else 1.0
            side = -1
        if np.isnan(f_high):
            step = min(1.0, 4.0 * step)
        else:
            fraction = float(np.clip(f_low / (f_low - f_high), 0.02, 0.98))
            step = low + fraction * (high - low)
    return step


@dataclass(frozen=True)
class SparseSDPSolution:
    """The last iterate of `sparse_sdp`.

    Attributes
    ----------
    L : ndarray of shape (n, n)
        The matrix: at most ``n_iter`` rank-one terms were added to the start.
    gap : float
        ⟨∇g(L), L − S⟩ for the best S found: an upper bound of g(L) − min g where g is convex,
        up to the accuracy of the eigensolver.
    converged : bool
        Whether the gap is within ``tol``.
    n_iter : int
        Steps made.
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
