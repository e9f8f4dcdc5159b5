"""K C L + r C = Y by conjugate gradients on each column after diagonalising L."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.clock import remaining
from scipy.linalg import eigh

from .eigen import EigenFactors
from .solution import Matrix, SylvesterSolution, check_system, finish

Vector = npt.NDArray[np.float64]


def solve_sylvester_columns(
    K: Any,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    C0: Matrix | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    preconditioner: EigenFactors | None = None,
) -> SylvesterSolution:
    """Solve K C L + r C = Y column by column in the eigenbasis of L.

    With L = S diag(ρ) Sᵀ the columns of C S solve (ρⱼ K + r I) c = (Y S)ⱼ: n systems, each with
    its own condition number 1 + ρⱼ σ₁ / r. They run together, one product with K per iteration,
    and a column leaves when it has converged. Cost: 9n³ once, then 2l² flops per column and
    iteration: well-conditioned columns no longer pay for the worst one.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples) or FactoredGram
        Symmetric positive semidefinite; anything with ``K @ C``.
    L : ndarray of shape (n_outputs, n_outputs), float64
        Likewise.
    Y : ndarray of shape (n_samples, n_outputs), float64
        Right-hand side.
    ridge : float
        r > 0.
    C0 : ndarray of shape (n_samples, n_outputs), optional
        Warm start; zero by default.
    tol : float, default=1e-8
        Relative residual ‖Y − KCL − rC‖ / ‖Y‖ to reach.
    max_iter : int, default=1000
        Iterations at most.
    preconditioner : EigenFactors, optional
        Of an earlier K; its L does not matter.

    Returns
    -------
    SylvesterSolution
        ``converged`` tells whether ``tol`` was reached.

    Raises
    ------
    ValueError
        If shapes disagree or r is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import solve_sylvester_columns
    >>> solve_sylvester_columns(np.eye(2), np.eye(1), np.array([[2.0], [4.0]]), 1.0).C
    array([[1.],
           [2.]])
    """
    L, Y = check_system(K, L, Y, ridge)
    rho, S = eigh(L, check_finite=False)
    rho = np.maximum(rho, 0.0)
    target = tol * float(np.linalg.norm(Y))
    start = Y @ S / ridge if C0 is None else np.asarray(C0, dtype=np.float64) @ S
    if C0 is None:
        start[:, rho * 1e8 > rho.max()] = 0.0
    run = _Columns(K, rho, Y @ S, ridge, start, target / np.sqrt(Y.shape[1]), preconditioner)
    while len(run.active) and run.n_iter < max_iter and remaining() > 0.0:
        run.iterate()
    return finish(
        K,
        L,
        Y,
        ridge,
        run.result() @ S.T,
        target=1.01 * target,
        method="columns",
        n_iter=run.n_iter,
        n_columns=run.n_columns,
    )


class _Columns:
    """The columns still running: compact copies of their iterate, residual and direction."""

    def __init__(
        self,
        K: Any,
        rho: Vector,
        Y: Matrix,
        ridge: float,
        C: Matrix,
        target: float,
        preconditioner: EigenFactors | None,
    ) -> None:
        self.K, self.ridge, self.target = K, ridge, target
        self.preconditioner = preconditioner
        self.done = C
        self.n_iter, self.n_columns = 0, Y.shape[1]
        self.active = np.arange(Y.shape[1])
        self.rho, self.C = rho, C.copy()
        self.R = Y - (K @ C) * rho - ridge * C
        self.P = np.zeros_like(Y)
        self.old = np.ones(Y.shape[1])
        self._drop()

    def _drop(self) -> None:
        """Store the columns that have converged and keep the others."""
        running = np.linalg.norm(self.R, axis=0) > self.target
        if running.all():
            return
        self.done[:, self.active[~running]] = self.C[:, ~running]
        self.active, self.rho, self.old = (
            each[running] for each in (self.active, self.rho, self.old)
        )
        self.C, self.R, self.P = (
            np.ascontiguousarray(each[:, running]) for each in (self.C, self.R, self.P)
        )

    def _preconditioned(self) -> Matrix:
        if self.preconditioner is None:
            plain: Matrix = self.R
            return plain
        T, sigma = self.preconditioner.T, self.preconditioner.sigma
        Z: Matrix = T @ ((T.T @ self.R) / (sigma[:, None] * self.rho + self.ridge))
        return Z

    def iterate(self) -> None:
        """One iteration of every running column."""
        Z = self._preconditioned()
        new = np.einsum("ij,ij->j", self.R, Z)
        self.P *= new / self.old
        self.P += Z
        Q = (self.K @ self.P) * self.rho
        Q += self.ridge * self.P
        step = new / np.einsum("ij,ij->j", self.P, Q)
        self.C += step * self.P
        self.R -= step * Q
        self.old = new
        self.n_iter += 1
        self.n_columns += len(self.active)
        self._drop()

    def result(self) -> Matrix:
        """Return all columns, converged or not."""
        done: Matrix = self.done
        done[:, self.active] = self.C
        return done
