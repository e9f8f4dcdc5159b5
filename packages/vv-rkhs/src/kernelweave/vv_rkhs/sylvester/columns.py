"""K C L + r C = Y by conjugate gradients on each column after diagonalising L."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import Matrix, RealArray, Vector
from kernelweave.kernels_core.clock import expired
from scipy.linalg import eigh

from .nystrom import Preconditioner
from .solution import SylvesterSolution, check_system, finish

_PASS = 1e-4  # what one pass in single precision is asked for
_PATIENCE = 30  # its iterations that do not halve the squared residual, and rounding has won


def solve_sylvester_columns(
    K: Any,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    C0: Matrix | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    preconditioner: Preconditioner | None = None,
    product0: Matrix | None = None,
    single: bool = False,
    check: bool = True,
) -> SylvesterSolution:
    """Solve K C L + r C = Y column by column in the eigenbasis of L.

    With L = S diag(ρ) Sᵀ the columns of C S solve (ρⱼ K + r I) c = (Y S)ⱼ: n systems, each with
    its own condition number 1 + ρⱼ σ₁ / r. They run together, one product with K per iteration,
    and a column leaves when it has converged. Cost: 9n³ once, then 2l² flops per column and
    iteration: well-conditioned columns no longer pay for the worst one.

    `K` has ``@``; a `preconditioner` is of this K or an earlier one, `product0` is K C0 where that
    is known. With ``single`` the iterations run on a copy of K in single precision, at half the
    cost, as long as that lowers the residual, which is taken in double precision and of K as given.
    ``converged`` tells whether the relative residual ``tol`` was reached.
    """
    L, Y = check_system(K, L, Y, ridge, check=check, tol=tol, C0=C0, product0=product0)
    rho, S = eigh(L, check_finite=False)
    rho = np.maximum(rho, 0.0)
    target = tol * float(np.linalg.norm(Y))
    rotated = Y @ S
    C = _known(rotated, rho, ridge) if C0 is None else np.asarray(C0, dtype=np.float64) @ S
    product = product0 @ S if C0 is not None and product0 is not None else None
    n_iter = n_columns = 0
    rough = K.astype(np.float32) if single else K
    if product is None and C.any():
        product = rough @ C.astype(rough.dtype if single else np.float64, copy=False)
        n_columns = len(rho)
    R = rotated - ridge * C
    if product is not None:
        R -= product * rho
    while True:
        before = float(np.linalg.norm(R))
        unit = before if single and before > 0.0 else 1.0
        goal = max(target, _PASS * before) if single else target
        run = _Columns(rough, rho, R / unit, ridge, goal / unit, preconditioner)
        while not run.is_done and n_iter + run.n_iter < max_iter and not expired():
            run.iterate()
        C = C + unit * run.result()
        n_iter, n_columns = n_iter + run.n_iter, n_columns + run.n_columns
        found = finish(
            K,
            L,
            Y,
            ridge,
            C @ S.T,
            target=1.01 * target,
            method="columns",
            n_iter=n_iter,
            n_columns=n_columns,
        )
        if found.converged or not single or n_iter >= max_iter or expired():
            return found
        n_columns += len(rho)
        if found.residual_norm > 0.1 * before:
            rough, single = K, False
        R = rotated - (found.product @ S) * rho - ridge * C


def _known(Y: Matrix, rho: Vector, ridge: float) -> Matrix:
    """Return the solution of the columns where L is 0 to rounding, zero for the others."""
    C: Matrix = np.where(rho * 1e8 > rho.max(initial=0.0), 0.0, Y / ridge)
    return C


class _Columns:
    """The columns still running: compact copies of their iterate, residual and direction.

    Everything is in the precision of K; the iterate starts at zero.
    """

    def __init__(
        self,
        K: Any,
        rho: Vector,
        Y: Matrix,
        ridge: float,
        target: float,
        preconditioner: Preconditioner | None,
    ) -> None:
        self.K, self.ridge, self.target = K, ridge, target
        dtype = np.float32 if getattr(K, "dtype", None) == np.float32 else np.float64
        self.preconditioner = preconditioner
        self.n_iter, self.n_columns, self.stuck = 0, 0, False
        self.active = np.arange(Y.shape[1])
        self.each = target / np.sqrt(max(1, Y.shape[1]))
        self.left = 0.0  # squared residual of the columns that have left
        self.rho: RealArray = rho.astype(dtype, copy=False)
        self.R: RealArray = Y.astype(dtype, copy=False)
        self.C, self.P, self.done = (np.zeros_like(self.R) for _ in range(3))
        self.old: RealArray = np.ones(Y.shape[1], dtype=dtype)
        self.patience = _PATIENCE if dtype == np.float32 else np.inf
        self.best, self.idle = np.inf, 0
        self._drop()

    @property
    def is_done(self) -> bool:
        """Whether the residual of all columns is within the target, or cannot be lowered."""
        within = self.left + self.running <= self.target**2
        return self.stuck or len(self.active) == 0 or within

    def _drop(self) -> None:
        """Store the columns that have converged and keep the others."""
        squares = np.einsum("ij,ij->j", self.R, self.R)
        running = squares > self.each**2
        self.running = float(squares[running].sum())
        if running.all():
            return
        self.left += float(squares[~running].sum())
        self.done[:, self.active[~running]] = self.C[:, ~running]
        self.active, self.rho, self.old = (
            each[running] for each in (self.active, self.rho, self.old)
        )
        self.C, self.R, self.P = (
            np.ascontiguousarray(each[:, running]) for each in (self.C, self.R, self.P)
        )

    def _preconditioned(self) -> RealArray:
        if self.preconditioner is None:
            return self.R
        return self.preconditioner.apply(self.R, self.rho, self.ridge)

    def iterate(self) -> None:
        """One iteration of every running column."""
        Z = self._preconditioned()
        new = np.einsum("ij,ij->j", self.R, Z)
        self.P *= new / self.old
        self.P += Z
        Q = (self.K @ self.P) * self.rho
        Q += self.ridge * self.P
        curvature = np.einsum("ij,ij->j", self.P, Q)
        least = 0.5 * self.ridge * np.einsum("ij,ij->j", self.P, self.P)
        if not (curvature > least).all():
            self.stuck = True  # at least r‖P‖² for a semidefinite K, up to rounding
            return
        step = new / curvature
        self.C += step * self.P
        self.R -= step * Q
        self.old = new
        self.n_iter += 1
        self.n_columns += len(self.active)
        self._drop()
        squared = self.left + self.running
        self.idle = 0 if squared < 0.5 * self.best else self.idle + 1
        if self.idle == 0:
            self.best = squared
        self.stuck = self.idle >= self.patience

    def result(self) -> RealArray:
        """Return all columns, converged or not."""
        done = self.done
        done[:, self.active] = self.C
        return done
