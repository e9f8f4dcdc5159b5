"""Chooses the C solver by size, outputs and conditioning."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import POSITIVE, check_array, one_of
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.grams.psd import find_indefinite
from scipy.linalg import LinAlgError

from .cg import solve_sylvester_cg
from .cholesky import solve_sylvester_cholesky
from .columns import solve_sylvester_columns
from .cost import SpectrumEstimate, goes_single, weighted_work
from .eigen import EigenFactors, solve_sylvester_eigen
from .low_rank import FactoredGram, solve_sylvester_low_rank
from .nystrom import NystromFactors, Preconditioner
from .solution import SylvesterSolution, check_system

METHODS = ("auto", "eigen", "cholesky", "cg", "columns", "nystrom", "stale", "low-rank")


def choose_method(
    spectrum: SpectrumEstimate,
    rho: npt.NDArray[np.float64],
    ridge: float,
    *,
    tol: float = 1e-8,
    stale: bool = False,
    sketched: bool = False,
) -> str:
    """Return which C solver is expected to need the least work.

    Counted in flops, weighed by constants of their kind, the same on every machine: an
    eigendecomposition of K; a Cholesky factorisation per distinct eigenvalue of L; conjugate
    gradients on the columns of C, with iterations from a bound on the condition number
    (`SpectrumEstimate.iterations`); the same from a sketch of K, which takes care of the largest
    eigenvalues, or from an old eigendecomposition, three times the work per iteration and about a
    dozen of them.

    `rho` are the eigenvalues of L, ascending; `stale` says that an earlier eigendecomposition is at
    hand, `sketched` that a sketch of this K is.
    """
    values = check_array("rho", rho, 1)
    POSITIVE.check("ridge", ridge)
    POSITIVE.check("tol", tol)
    work = weighted_work(
        spectrum, np.maximum(values, 0.0), ridge, tol=tol, stale=stale, sketched=sketched
    )
    return min(work, key=lambda name: work[name])


def solve_sylvester(
    K: Matrix | FactoredGram,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    method: str = "auto",
    C0: Matrix | None = None,
    tol: float = 1e-8,
    factors: EigenFactors | None = None,
    sketch: NystromFactors | None = None,
    product0: Matrix | None = None,
    spectrum: SpectrumEstimate | None = None,
    check: bool = True,
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
        ``"eigen"``, ``"cholesky"``, ``"columns"``, ``"nystrom"`` (columns with a sketch of K as the
        preconditioner), ``"stale"`` (with ``factors``), ``"low-rank"`` (a `FactoredGram` only), or
        ``"auto"``, the one that is expected to need the least work. ``"cg"``, on C as a whole, is
        V's, and never chosen.
    C0 : ndarray of shape (n_samples, n_outputs), optional
        Warm start of an iterative method.
    tol : float, default=1e-8
        Relative residual of an iterative method.
    factors : EigenFactors, optional
        Of an earlier K and L.
    sketch : NystromFactors, optional
        Of this K or one near it; made where it is needed.
    product0 : ndarray of shape (n_samples, n_outputs), optional
        K C0, where it is known.
    spectrum : SpectrumEstimate, optional
        Of this K, where it is known.
    check : bool, default=True
        Whether to check that K is finite and symmetric, in one pass.

    Returns
    -------
    SylvesterSolution
        An iterative method that does not converge is followed by a direct one, and so is a
        Cholesky factorisation that was chosen here and that rounding defeats; of Woodbury's
        identity and columns the better where rounding defeats the former.

    Raises
    ------
    ValueError
        If shapes disagree, r is not positive, a number is not finite or ``method`` is unknown.
    scipy.linalg.LinAlgError
        If K has a negative eigenvalue that defeats a Cholesky factorisation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import solve_sylvester
    >>> solve_sylvester(np.eye(2), np.eye(1), np.array([[2.0], [4.0]]), 1.0).C
    array([[1.],
           [2.]])
    """
    one_of(*METHODS).check("method", method)
    L, Y = check_system(K, L, Y, ridge, check=check, tol=tol, C0=C0, product0=product0)
    if isinstance(K, FactoredGram):
        return _solve_factored(K, L, Y, ridge, method, C0, tol)
    if method == "low-rank":
        raise ValueError("method='low-rank' needs K as a FactoredGram, got a matrix")
    if method == "stale" and factors is None:
        raise ValueError("method='stale' needs the factors of an earlier K")
    chosen = method == "auto"
    if chosen:
        rho = np.asarray(np.linalg.eigvalsh(L), dtype=np.float64)
        spectrum = SpectrumEstimate.of(K) if spectrum is None else spectrum
        method = choose_method(
            spectrum, rho, ridge, tol=tol, stale=factors is not None, sketched=sketch is not None
        )
    if method in ("cg", "columns", "nystrom", "stale"):
        known: Preconditioner | None = factors if method == "stale" else None
        if method == "nystrom":
            known = NystromFactors.of(K) if sketch is None else sketch
        solution = _iterate(K, L, Y, ridge, method, C0, tol, known, product0)
        if solution.converged or expired():
            return solution
        method = "eigen"
    if method == "cholesky":
        try:
            return solve_sylvester_cholesky(K, L, Y, ridge, check=False)
        except LinAlgError:
            if not chosen or (check and find_indefinite(K) is not None):
                raise
            # r is less than what rounding did to the smallest eigenvalues
    return solve_sylvester_eigen(K, L, Y, ridge, check=False)


def _iterate(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    method: str,
    C0: Matrix | None,
    tol: float,
    known: Preconditioner | None,
    product0: Matrix | None,
) -> SylvesterSolution:
    if method == "cg":
        return solve_sylvester_cg(K, L, Y, ridge, C0=C0, tol=tol, check=False)
    scales = float(np.trace(K)) / len(K), float(np.trace(L)) / len(L), ridge
    limit = 40 if method == "stale" else len(K)
    solution = solve_sylvester_columns(
        K,
        L,
        Y,
        ridge,
        C0=C0,
        tol=tol,
        max_iter=limit,
        preconditioner=known,
        product0=product0,
        single=method == "nystrom" and goes_single(len(K), *scales),
        check=False,
    )
    sketch = known if method == "nystrom" else None
    return dataclasses.replace(solution, method=method, sketch=sketch)


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
        return solve_sylvester_cg(K, L, Y, ridge, C0=C0, tol=tol, check=False)
    if method == "columns" or (method == "auto" and K.Z.shape[1] > K.Z.shape[0]):
        return solve_sylvester_columns(K, L, Y, ridge, C0=C0, tol=tol, check=False)
    if method in ("auto", "low-rank"):
        direct = solve_sylvester_low_rank(K.Z, L, Y, ridge, check=False)
        if method == "low-rank" or direct.residual_norm <= tol * float(np.linalg.norm(Y)):
            return direct
        columns = solve_sylvester_columns(K, L, Y, ridge, C0=C0, tol=tol, check=False)
        return min(direct, columns, key=lambda each: each.residual_norm)
    raise ValueError(f"method must be 'auto', 'low-rank', 'cg' or 'columns' here, got {method!r}")
