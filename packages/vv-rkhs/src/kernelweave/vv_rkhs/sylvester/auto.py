"""Chooses the C solver by size, outputs and conditioning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.clock import remaining

from .cg import solve_sylvester_cg
from .cholesky import distinct_eigenvalues, solve_sylvester_cholesky
from .columns import solve_sylvester_columns
from .eigen import EigenFactors, solve_sylvester_eigen
from .low_rank import FactoredGram, solve_sylvester_low_rank
from .solution import Matrix, SylvesterSolution, check_system

METHODS = ("auto", "eigen", "cholesky", "cg", "columns", "stale", "low-rank")

# seconds per flop relative to a large matrix product: rough guesses, to be calibrated
_EIGEN_FLOPS = 22.0
_CHOLESKY_FLOPS = 0.7
_COLUMN_RATE = 1.6
_STALE_ITERATIONS = 12


def choose_method(
    n_samples: int,
    rho: npt.NDArray[np.float64],
    sigma_max: float,
    ridge: float,
    *,
    tol: float = 1e-8,
    stale: bool = False,
) -> str:
    """Return which C solver is expected to be the fastest.

    Estimates flops at assumed rates: eigendecomposition about 22 l³; Cholesky 0.7 l³ per
    distinct eigenvalue of L; columns 2l² per column and iteration, with
    ½ √κⱼ log(2/tol) iterations for κⱼ = 1 + ρⱼ σ₁ / r; the same from an old eigendecomposition
    with three times the work per iteration and about a dozen iterations.

    Parameters
    ----------
    n_samples : int
        l.
    rho : ndarray of shape (n_outputs,)
        Eigenvalues of L, ascending.
    sigma_max : float
        Largest eigenvalue of K, or a bound on it.
    ridge : float
        r.
    tol : float, default=1e-8
        Relative residual that an iterative method must reach.
    stale : bool, default=False
        Whether an earlier eigendecomposition is at hand.

    Returns
    -------
    str
        ``"eigen"``, ``"cholesky"``, ``"columns"`` or ``"stale"``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import choose_method
    >>> choose_method(1500, np.ones(100), 1500.0, 1e-5 * 1500)
    'cholesky'
    >>> choose_method(1500, np.linspace(0.5, 1.0, 100), 1500.0, 1e-5 * 1500)
    'eigen'
    """
    rho = np.maximum(rho, 0.0)
    iterations = 0.5 * np.sqrt(1.0 + rho * sigma_max / ridge) * math.log(2.0 / tol)
    iterations = np.minimum(iterations, 2.0 * n_samples)
    per_column = 2.0 * _COLUMN_RATE * float(n_samples) ** 2
    distinct = len(np.unique(distinct_eigenvalues(rho)))
    cost = {
        "eigen": _EIGEN_FLOPS * float(n_samples) ** 3 + 2.0 * per_column * len(rho),
        "cholesky": distinct * _CHOLESKY_FLOPS * float(n_samples) ** 3 + per_column * len(rho),
        "columns": per_column * float(iterations.sum()),
    }
    if stale:
        cost["stale"] = 3.0 * per_column * float(np.minimum(iterations, _STALE_ITERATIONS).sum())
    return min(cost, key=lambda name: cost[name])


def solve_sylvester(
    K: Any,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    method: str = "auto",
    C0: Matrix | None = None,
    tol: float = 1e-8,
    factors: EigenFactors | None = None,
) -> SylvesterSolution:
    """Solve K C L + r C = Y by the solver that fits.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples) or FactoredGram
        Symmetric positive semidefinite.
    L : ndarray of shape (n_outputs, n_outputs), float64
        Likewise.
    Y : ndarray of shape (n_samples, n_outputs), float64
        Right-hand side.
    ridge : float
        r > 0; λl for vector-valued least squares.
    method : str, default="auto"
        ``"eigen"``, ``"cholesky"``, ``"cg"``, ``"columns"``, ``"stale"`` (columns with
        ``factors`` as the preconditioner), ``"low-rank"`` (a `FactoredGram` only), or
        ``"auto"``, the choice of `choose_method`.
    C0 : ndarray of shape (n_samples, n_outputs), optional
        Warm start of an iterative method.
    tol : float, default=1e-8
        Relative residual of an iterative method.
    factors : EigenFactors, optional
        Of an earlier K and L.

    Returns
    -------
    SylvesterSolution
        An iterative method that does not converge is followed by a direct one.

    Raises
    ------
    ValueError
        If shapes disagree, r is not positive or ``method`` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import solve_sylvester
    >>> solve_sylvester(np.eye(2), np.eye(1), np.array([[2.0], [4.0]]), 1.0).C
    array([[1.],
           [2.]])
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    L, Y = check_system(K, L, Y, ridge)
    if method == "cg":
        return solve_sylvester_cg(K, L, Y, ridge, C0=C0, tol=tol)
    if isinstance(K, FactoredGram):
        return _solve_factored(K, L, Y, ridge, method, C0, tol)
    if method == "low-rank":
        raise ValueError("method='low-rank' needs K as a FactoredGram, got a matrix")
    if method == "stale" and factors is None:
        raise ValueError("method='stale' needs the factors of an earlier K")
    if method == "auto":
        rho = np.asarray(np.linalg.eigvalsh(L), dtype=np.float64)
        sigma = _norm_estimate(K)
        method = choose_method(len(K), rho, sigma, ridge, tol=tol, stale=factors is not None)
    if method in ("columns", "stale"):
        old = factors if method == "stale" else None
        limit = 40 if method == "stale" else len(K)
        solution = solve_sylvester_columns(
            K, L, Y, ridge, C0=C0, tol=tol, max_iter=limit, preconditioner=old
        )
        if solution.converged or remaining() <= 0.0:
            return solution
        method = "eigen"
    if method == "cholesky":
        return solve_sylvester_cholesky(K, L, Y, ridge)
    return solve_sylvester_eigen(K, L, Y, ridge)


def _solve_factored(
    K: FactoredGram,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    method: str,
    C0: Matrix | None,
    tol: float,
) -> SylvesterSolution:
    if method == "columns" or (method == "auto" and K.Z.shape[1] > K.Z.shape[0]):
        return solve_sylvester_columns(K, L, Y, ridge, C0=C0, tol=tol)
    if method in ("auto", "low-rank"):
        return solve_sylvester_low_rank(K.Z, L, Y, ridge)
    raise ValueError(f"method must be 'auto', 'low-rank' or 'columns' here, got {method!r}")


def _norm_estimate(K: Matrix) -> float:
    """Return an estimate of the largest eigenvalue: five steps of the power method."""
    v = np.ones(len(K)) / math.sqrt(len(K))
    norm = 0.0
    for _ in range(5):
        v = K @ v
        norm = float(np.linalg.norm(v))
        if norm == 0.0:
            return 0.0
        v /= norm
    return norm
