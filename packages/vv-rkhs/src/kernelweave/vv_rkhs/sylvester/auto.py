"""Chooses the C solver by size, outputs and conditioning."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.clock import remaining

from .cg import solve_sylvester_cg
from .cholesky import solve_sylvester_cholesky
from .columns import solve_sylvester_columns
from .cost import Spectrum, estimated_seconds
from .eigen import EigenFactors, solve_sylvester_eigen
from .low_rank import FactoredGram, solve_sylvester_low_rank
from .solution import Matrix, SylvesterSolution, check_system

METHODS = ("auto", "eigen", "cholesky", "cg", "columns", "stale", "low-rank")


def choose_method(
    spectrum: Spectrum,
    rho: npt.NDArray[np.float64],
    ridge: float,
    *,
    tol: float = 1e-8,
    stale: bool = False,
) -> str:
    """Return which C solver is expected to be the fastest.

    Each method's time is estimated from its flops at measured rates: an eigendecomposition of K;
    a Cholesky factorisation per distinct eigenvalue of L; conjugate gradients on C or on its
    columns, with iterations from a bound on the condition number (`Spectrum.iterations`); the
    latter from an old eigendecomposition, three times the work per iteration and about a dozen of
    them.

    Parameters
    ----------
    spectrum : Spectrum
        What is known of the eigenvalues of K.
    rho : ndarray of shape (n_outputs,)
        Eigenvalues of L, ascending.
    ridge : float
        r.
    tol : float, default=1e-8
        Relative residual that an iterative method must reach.
    stale : bool, default=False
        Whether an earlier eigendecomposition is at hand.

    Returns
    -------
    str
        ``"eigen"``, ``"cholesky"``, ``"cg"``, ``"columns"`` or ``"stale"``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import Spectrum, choose_method
    >>> spectrum = Spectrum(n_samples=1500, largest=1500.0, mean=1.0, spread=40.0)
    >>> choose_method(spectrum, np.ones(100), 1e-5 * 1500)
    'cholesky'
    >>> choose_method(spectrum, np.linspace(0.5, 1.0, 100), 1e-5 * 1500)
    'eigen'
    >>> choose_method(spectrum, np.linspace(0.5, 1.0, 100), 1e-1 * 1500)
    'columns'
    """
    seconds = estimated_seconds(spectrum, np.maximum(rho, 0.0), ridge, tol=tol, stale=stale)
    return min(seconds, key=lambda name: seconds[name])


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
    if isinstance(K, FactoredGram):
        return _solve_factored(K, L, Y, ridge, method, C0, tol)
    if method == "low-rank":
        raise ValueError("method='low-rank' needs K as a FactoredGram, got a matrix")
    if method == "stale" and factors is None:
        raise ValueError("method='stale' needs the factors of an earlier K")
    if method == "auto":
        rho = np.asarray(np.linalg.eigvalsh(L), dtype=np.float64)
        spectrum = Spectrum.of(K)
        method = choose_method(spectrum, rho, ridge, tol=tol, stale=factors is not None)
    if method in ("cg", "columns", "stale"):
        solution = _iterate(K, L, Y, ridge, method, C0, tol, factors)
        if solution.converged or remaining() <= 0.0:
            return solution
        method = "eigen"
    if method == "cholesky":
        return solve_sylvester_cholesky(K, L, Y, ridge)
    return solve_sylvester_eigen(K, L, Y, ridge)


def _iterate(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    method: str,
    C0: Matrix | None,
    tol: float,
    factors: EigenFactors | None,
) -> SylvesterSolution:
    if method == "cg":
        return solve_sylvester_cg(K, L, Y, ridge, C0=C0, tol=tol)
    old = factors if method == "stale" else None
    limit = 40 if method == "stale" else len(K)
    return solve_sylvester_columns(
        K, L, Y, ridge, C0=C0, tol=tol, max_iter=limit, preconditioner=old
    )


def _solve_factored(
    K: FactoredGram,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    method: str,
    C0: Matrix | None,
    tol: float,
) -> SylvesterSolution:
    if method == "cg":
        return solve_sylvester_cg(K, L, Y, ridge, C0=C0, tol=tol)
    if method == "columns" or (method == "auto" and K.Z.shape[1] > K.Z.shape[0]):
        return solve_sylvester_columns(K, L, Y, ridge, C0=C0, tol=tol)
    if method in ("auto", "low-rank"):
        return solve_sylvester_low_rank(K.Z, L, Y, ridge)
    raise ValueError(f"method must be 'auto', 'low-rank', 'cg' or 'columns' here, got {method!r}")
