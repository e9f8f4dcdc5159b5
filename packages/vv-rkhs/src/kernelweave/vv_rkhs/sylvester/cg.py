"""K C L + r C = Y by conjugate gradients on the whole matrix C (V, algorithm A)."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.clock import expired

from .eigen import EigenFactors
from .solution import Gram, SylvesterSolution, check_system, finish


def solve_sylvester_cg(
    K: Gram,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    C0: Matrix | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    preconditioner: EigenFactors | None = None,
    check: bool = True,
) -> SylvesterSolution:
    """Solve K C L + r C = Y by conjugate gradients on C ↦ K C L + r C.

    The nl × nl matrix is never formed; an iteration costs 2l²n + 2ln² flops. The condition
    number is at most 1 + σ₁ τ / r for tr L ≤ τ and σ₁ the largest eigenvalue of K (V,
    Proposition 2, which holds for p = 1).

    `K` has ``@``; a `preconditioner` is of an earlier K and L: the closer they are, the fewer
    iterations. ``converged`` tells whether the relative residual ``tol`` was reached.
    """
    L, Y = check_system(K, L, Y, ridge, check=check, tol=tol, C0=C0)
    target = tol * float(np.linalg.norm(Y))
    C = np.zeros_like(Y) if C0 is None else np.array(C0, dtype=np.float64)
    R = Y.copy() if C0 is None else Y - (K @ C) @ L - ridge * C
    P = np.zeros_like(Y)
    old, n_iter = 1.0, 0
    while float(np.linalg.norm(R)) > target and n_iter < max_iter and not expired():
        Z = R if preconditioner is None else preconditioner.solve(R, ridge)
        new = float(np.vdot(R, Z))
        P *= new / old
        P += Z
        Q = (K @ P) @ L
        Q += ridge * P
        curvature = float(np.vdot(P, Q))
        if not curvature > 0.5 * ridge * float(np.vdot(P, P)):
            break  # at least r‖P‖² for a semidefinite K, up to rounding
        step = new / curvature
        C += step * P
        R -= step * Q
        old = new
        n_iter += 1
    n_columns = (n_iter + (C0 is not None)) * Y.shape[1]
    # the updated residual drifts from the true one by rounding, hence the slack of 1 %
    return finish(
        K, L, Y, ridge, C, target=1.01 * target, method="cg", n_iter=n_iter, n_columns=n_columns
    )
