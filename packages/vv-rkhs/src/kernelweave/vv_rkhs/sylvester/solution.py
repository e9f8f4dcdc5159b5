"""What every C solver returns, and the checks that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from kernelweave.kernels_core.arrays import Matrix
from kernelweave.kernels_core.checks import (
    POSITIVE,
    check_array,
    check_vector,
)
from kernelweave.kernels_core.grams import as_grams
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from .eigen import EigenFactors


class Gram(Protocol):
    """K, or what multiplies as it does."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_samples, n_samples)."""

    def __matmul__(self, C: Matrix, /) -> Matrix:
        """Return K C."""


@dataclass(frozen=True)
class SylvesterSolution:
    """C with K C L + r C ≈ Y, and what it cost.

    Attributes
    ----------
    C : ndarray of shape (n_samples, n_outputs)
        The solution.
    residual_norm : float
        Frobenius norm of Y − K C L − r C, computed afresh from C.
    converged : bool
        Whether the residual is within what was asked (always, for a direct method that is not
        limited by rounding).
    n_iter : int
        Iterations; 0 for a direct method.
    n_columns : int
        Products of K with one column: the unit in which iterative methods compare.
    method : str
        Which solver made it.
    product : ndarray of shape (n_samples, n_outputs)
        K C.
    fit : ndarray of shape (n_samples, n_outputs)
        K C L.
    factors : object or None
        The `EigenFactors`, where the method made them: a preconditioner for later solves.
    sketch : object or None
        The `NystromFactors`, where the method used them.
    """

    C: Matrix
    residual_norm: float
    converged: bool
    n_iter: int
    n_columns: int
    method: str
    product: Matrix
    fit: Matrix
    factors: EigenFactors | None = None
    sketch: Any = None


def check_system(
    K: Gram,
    L: ArrayLike,
    Y: ArrayLike,
    ridge: float,
    *,
    check: bool = True,
    tol: float = 1e-8,
    **starts: Matrix | None,
) -> tuple[Matrix, Matrix]:
    """Return L and Y as float64 matrices after checking that the four parts fit.

    With ``check`` also that K, an array or the factor of one, L and Y are finite numbers, that K
    and L are symmetric, that ``tol`` is positive and that ``starts``, such as C0, fit Y.
    """
    if check:
        if isinstance(K, np.ndarray):
            as_grams(K[None] if K.ndim == 2 else K, "K", square=True)
        elif hasattr(K, "Z"):
            check_vector("K.Z", np.ravel(K.Z), np.size(K.Z))
        as_grams([L], "L", square=True)
        check_vector("Y", np.ravel(Y), np.size(Y))
    L, Y = np.asarray(L, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    if Y.ndim != 2:
        raise ValueError(f"Y must have shape (n_samples, n_outputs), got {Y.shape}")
    if K.shape != (Y.shape[0], Y.shape[0]):
        raise ValueError(f"K must have shape {(Y.shape[0],) * 2} as Y has rows, got {K.shape}")
    if L.shape != (Y.shape[1], Y.shape[1]):
        raise ValueError(f"L must have shape {(Y.shape[1],) * 2} as Y has columns, got {L.shape}")
    POSITIVE.check("ridge", ridge)
    if check:
        POSITIVE.check("tol", tol)
        for name, start in starts.items():
            if start is not None and check_array(name, start, 2).shape != Y.shape:
                raise ValueError(f"{name} must have shape {Y.shape} as Y, got {np.shape(start)}")
    return L, Y


def finish(
    K: Gram,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    C: Matrix,
    *,
    target: float,
    method: str,
    n_iter: int = 0,
    n_columns: int = 0,
    factors: EigenFactors | None = None,
) -> SylvesterSolution:
    """Return the solution with its residual computed from C itself (2l²n + 2ln² flops)."""
    product = K @ C
    fit = product @ L
    residual = Y - fit - ridge * C
    norm = float(np.linalg.norm(residual))
    spent = n_columns + Y.shape[1]
    return SylvesterSolution(C, norm, norm <= target, n_iter, spent, method, product, fit, factors)
