"""K C L + r C = Y by conjugate gradients: by columns, from a sketch of K, or on C as a whole.

Columns are those of C in the eigenbasis of L; C as a whole is V's algorithm A.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray, Vector
from kernelweave.kernels_core.checks import COUNT
from kernelweave.kernels_core.clock import expired
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from .direct import SylvesterSolution, check_system, finish

_PASS = 1e-4  # what one pass in single precision is asked for
_PATIENCE = 30  # its iterations that do not halve the squared residual, and rounding has won
# columns of K over its rows: the factors then cost about a tenth of a Cholesky factorisation, and
# an iteration a quarter more than without them
_SHARE = 8
_MOST = 1000
# of the trace: what may keep the factorisation of nearly singular samples from failing, the larger
# ones where K was rounded to single precision or is not semidefinite
_SHIFTS = 1e-10, 1e-7, 1e-4


def sketch_rank(n_samples: int) -> int:
    """Return how many columns of K are sampled: an eighth, at most a thousand."""
    return max(1, min(n_samples // _SHARE, _MOST))


@dataclass(frozen=True, eq=False)
class NystromFactors:
    """K ≈ U diag(σ) Uᵀ from a few of its columns, Uᵀ U = I.

    The largest eigenvalues of a kernel matrix, on which conjugate gradients spend their
    iterations, are those that few columns show; the rest is taken to be the smallest σ (Frangella,
    Tropp and Udell 2023, section 2.3). A poor sketch costs iterations, never accuracy.

    Attributes
    ----------
    U : ndarray of shape (n_samples, rank), float64
        Orthonormal columns.
    sigma : ndarray of shape (rank,), float64
        Approximate eigenvalues, ascending, none above the true ones by more than rounding.
    """

    U: Matrix
    sigma: Vector

    @classmethod
    def of(cls, K: RealArray, rank: int | None = None) -> NystromFactors:
        """Return factors from sampled columns (3 l · rank² flops, 24 l · rank bytes).

        Columns are drawn in proportion to the diagonal, always the same for the same diagonal.

        Parameters
        ----------
        K : ndarray of shape (n_samples, n_samples)
            Symmetric positive semidefinite.
        rank : int, optional
            Columns; an eighth of all by default, at most a thousand.

        Returns
        -------
        NystromFactors
            Their rank is less where the columns are dependent.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelweave.vv_rkhs import NystromFactors
        >>> Z = np.random.default_rng(0).standard_normal((50, 3))
        >>> factors = NystromFactors.of(Z @ Z.T, rank=10)
        >>> bool(abs((factors.U * factors.sigma) @ factors.U.T - Z @ Z.T).max() < 1e-6)
        True
        """
        if rank is not None:
            COUNT.check("rank", rank)
        l = K.shape[0]
        chosen = _sampled(np.diagonal(K), sketch_rank(l) if rank is None else min(rank, l))
        if len(chosen) == 0:
            return cls(np.zeros((l, 1)), np.zeros(1))
        columns = np.asarray(K[chosen], dtype=np.float64)  # rows, K being symmetric
        factor = _shifted_factor(columns[:, chosen])
        if factor is None:
            return cls(np.zeros((l, 1)), np.zeros(1))
        root = solve_triangular(factor, columns, lower=True, overwrite_b=True, check_finite=False)
        sigma, V = eigh(root @ root.T, check_finite=False)
        kept = sigma > 1e-12 * sigma[-1]
        U = root.T @ (V[:, kept] / np.sqrt(sigma[kept]))
        return cls(U, sigma[kept])

    @functools.cached_property
    def _single(self) -> tuple[RealArray, RealArray]:
        return self.U.astype(np.float32), self.sigma.astype(np.float32)

    def apply(self, R: RealArray, rho: RealArray, ridge: float) -> RealArray:
        """Return (ρⱼ U diag(σ) Uᵀ + ρⱼ σ₁ (I − UUᵀ) + r I)⁻¹ rⱼ (4 l · rank flops per column)."""
        U, sigma = self._single if R.dtype == np.float32 else (self.U, self.sigma)
        rest = rho * sigma[0] + ridge
        inner = U.T @ R
        inner *= 1.0 / (sigma[:, None] * rho + ridge) - 1.0 / rest
        Z: RealArray = U @ inner
        Z += R / rest
        return Z


def _shifted_factor(inner: Matrix) -> Matrix | None:
    """Return a Cholesky factor of a matrix plus the least shift of its diagonal that allows one."""
    trace = float(np.trace(inner))
    for shift in _SHIFTS:
        shifted = inner.copy()
        shifted.flat[:: len(inner) + 1] += shift * trace
        with contextlib.suppress(LinAlgError):
            return cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    return None


def _sampled(diagonal: RealArray, count: int) -> npt.NDArray[np.intp]:
    """Return different positions, drawn in proportion to a diagonal without its zeros."""
    mass = np.maximum(np.asarray(diagonal, dtype=np.float64), 0.0)
    positive = np.flatnonzero(mass > 0)
    count = min(count, len(positive))
    if count == 0:
        return positive
    p = mass[positive] / mass[positive].sum()
    drawn = np.random.default_rng(0).choice(positive, count, replace=False, p=p)
    return np.asarray(np.sort(drawn), dtype=np.intp)


def solve_sylvester_columns(
    K: Any,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    C0: Matrix | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    sketch: NystromFactors | None = None,
    product0: Matrix | None = None,
    single: bool = False,
    check: bool = True,
) -> SylvesterSolution:
    """Solve K C L + r C = Y column by column in the eigenbasis of L.

    With L = S diag(ρ) Sᵀ the columns of C S solve (ρⱼ K + r I) c = (Y S)ⱼ: n systems, each with
    its own condition number 1 + ρⱼ σ₁ / r. They run together, one product with K per iteration,
    and a column leaves when it has converged. Cost: 9n³ once, then 2l² flops per column and
    iteration: well-conditioned columns no longer pay for the worst one.

    `K` has ``@``; a `sketch`, the preconditioner, is of this K or one near it, `product0` is K C0
    where that is known. With ``single`` the iterations run on a copy of K in single precision, at
    half the cost, as long as that lowers the residual, which is taken in double precision and of K
    as given. ``converged`` tells whether the relative residual ``tol`` was reached.
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
        run = _Columns(rough, rho, R / unit, ridge, goal / unit, sketch)
        while not run.is_done and n_iter + run.n_iter < max_iter and not expired():
            run.iterate()
        C = C + unit * run.result()
        n_iter, n_columns = n_iter + run.n_iter, n_columns + run.n_columns
        solution = finish(
            K, L, Y, ridge, C @ S.T, target=1.01 * target, method="columns", n_iter=n_iter,
            n_columns=n_columns,
        )  # fmt: skip
        if solution.converged or not single or n_iter >= max_iter or expired():
            return solution
        n_columns += len(rho)
        if solution.residual_norm > 0.1 * before:
            rough, single = K, False
        R = rotated - (solution.product @ S) * rho - ridge * C


def _known(Y: Matrix, rho: Vector, ridge: float) -> Matrix:
    """Return the solution of the columns where L is 0 to rounding, zero for the others."""
    return np.where(rho * 1e8 > rho.max(initial=0.0), 0.0, Y / ridge)


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
        sketch: NystromFactors | None,
    ) -> None:
        self.K, self.ridge, self.target = K, ridge, target
        dtype = np.float32 if getattr(K, "dtype", None) == np.float32 else np.float64
        self.sketch = sketch
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

    def iterate(self) -> None:
        """One iteration of every running column."""
        Z = self.R if self.sketch is None else self.sketch.apply(self.R, self.rho, self.ridge)
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


def conjugate_gradients(
    apply: Callable[[Matrix], Matrix],
    X: Matrix,
    R: Matrix,
    ridge: float,
    target: float,
    max_iter: int,
    scale: Matrix | None = None,
) -> int:
    """Improve X until the norm of its residual is at most ``target``; return the iterations.

    `apply`: a map of at least r times the identity, r = ``ridge``; `X`, `R`: where it starts and
    the residual there, both changed in place; `scale`: a diagonal near that of the map.
    """
    P, old, n_iter = np.zeros_like(X), 1.0, 0
    while float(np.linalg.norm(R)) > target and n_iter < max_iter and not expired():
        Z = R if scale is None else R / scale
        new = float(np.vdot(R, Z))
        P *= new / old
        P += Z
        Q = apply(P)
        curvature = float(np.vdot(P, Q))
        if not curvature > 0.5 * ridge * float(np.vdot(P, P)):
            break  # at least r‖P‖² for a semidefinite K, up to rounding
        step = new / curvature
        X += step * P
        R -= step * Q
        old, n_iter = new, n_iter + 1
    return n_iter


def solve_sylvester_cg(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    C0: Matrix | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    check: bool = True,
) -> SylvesterSolution:
    """Solve K C L + r C = Y by conjugate gradients on C ↦ K C L + r C.

    The nl × nl matrix is never formed; an iteration costs 2l²n + 2ln² flops. The condition
    number is at most 1 + σ₁ τ / r for tr L ≤ τ and σ₁ the largest eigenvalue of K (V,
    Proposition 2, which holds for p = 1).

    `K` has ``@``. ``converged`` tells whether the relative residual ``tol`` was reached.
    """
    L, Y = check_system(K, L, Y, ridge, check=check, tol=tol, C0=C0)
    target = tol * float(np.linalg.norm(Y))

    def apply(P: Matrix) -> Matrix:
        image: Matrix = (K @ P) @ L
        image += ridge * P
        return image

    C = np.zeros_like(Y) if C0 is None else np.array(C0, dtype=np.float64)
    R = Y.copy() if C0 is None else Y - (K @ C) @ L - ridge * C
    n_iter = conjugate_gradients(apply, C, R, ridge, target, max_iter)
    n_columns = (n_iter + (C0 is not None)) * Y.shape[1]
    # the updated residual drifts from the true one by rounding, hence the slack of 1 %
    return finish(
        K, L, Y, ridge, C, target=1.01 * target, method="cg", n_iter=n_iter, n_columns=n_columns
    )
