"""One Gram matrix in memory: finite, symmetric and positive semidefinite up to rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import FloatArray, RealArray
from ..exceptions import NotPSDError
from ..interrupts import run_interruptibly
from ..rounding import UNIT, gamma
from ._fill import asymmetry, largest, row_blocks

REMEDY = (
    "choose other parameters, leave the kernel out, as KernelDictionary(..., psd='drop') does, or "
    "set its negative eigenvalues to zero, as KernelDictionary(..., psd='clip') does"
)

_NEARLY = 1e-10  # of the largest eigenvalue: what centring and scaling leave below zero

KernelArray = NDArray[np.float64] | NDArray[np.float32]
# Relative to the largest entry: what rounding leaves of a symmetric matrix, in float32 too. More is
# a matrix that nobody meant.
_ASYMMETRY_LIMIT = 1e-6
# Relative to √(Kᵢᵢ Kⱼⱼ): what another order of the same sums leaves between Kᵢⱼ and Kⱼᵢ.
NEARLY_SYMMETRIC = 2.0**-46
# two of these have a finite product
LARGEST_REACH = 1e150


@dataclass(frozen=True)
class Spectrum:
    """The ends of a symmetric matrix' spectrum.

    `tolerance`: how negative ``lambda_min`` may be through rounding alone.
    """

    lambda_min: float
    lambda_max: float
    tolerance: float

    @property
    def is_psd(self) -> bool:
        """Whether no eigenvalue is more negative than rounding explains."""
        return self.lambda_min >= -self.tolerance


def rounding_tolerance(n: int, scale: float, dtype: DTypeLike) -> float:
    """Return 10·n·ε·scale: what rounding the entries of an n×n matrix does to eigenvalues.

    Entries of size at most ``scale`` with relative error ε perturb the matrix by at most n·ε·scale
    in the 2-norm, hence each eigenvalue by no more (Weyl); 10 covers the few roundings per entry.
    """
    return float(10.0 * n * np.finfo(dtype).eps * scale)


def spectrum(K: RealArray) -> Spectrum:
    """Return the spectrum's ends of a symmetric K, by a full eigenvalue computation in float64.

    Cost: about 4n³/3 operations and one float64 copy.
    """
    values = run_interruptibly(np.linalg.eigvalsh, K.astype(np.float64, copy=False))
    return spectrum_of_values(values, K.dtype)


def spectrum_of_values(values: RealArray, dtype: DTypeLike) -> Spectrum:
    """Return the spectrum's ends from ascending eigenvalues of a matrix held in ``dtype``."""
    if values.size == 0:
        return Spectrum(0.0, 0.0, 0.0)
    scale = float(np.abs(values[[0, -1]]).max())
    tolerance = rounding_tolerance(len(values), scale, dtype)
    return Spectrum(float(values[0]), float(values[-1]), tolerance)


def find_indefinite(K: RealArray) -> Spectrum | None:
    """Return the spectrum of a symmetric K that is not positive semidefinite, else ``None``.

    A Cholesky factorisation of K + tol·I (n³/3 operations) settles the common case; only where
    it fails are the eigenvalues computed.
    """
    diagonal = K.diagonal().astype(np.float64)
    # at most the largest entry, so never laxer than the test by eigenvalues
    scale = float(np.abs(diagonal).max(initial=0.0))
    raised = diagonal + rounding_tolerance(len(K), scale, K.dtype)
    if _factorises(K, raised):
        return None
    K_spectrum = spectrum(K)
    return None if K_spectrum.is_psd else K_spectrum


def negative_part(K: RealArray) -> FloatArray:
    """Return δ of shape (n,), proved: K + diag(δ) is positive semidefinite; 0 where K is.

    A Cholesky factor that comes to its end is that of a matrix within ``γ/(1 − γ) √(Kᵢᵢ Kⱼⱼ)`` of
    the one given, entry by entry, γ of n + 1 roundings. A matrix that is definite by more than that
    is proved so with one factor; one that rounding made indefinite, such as ``X @ X.T``, is proved
    with a second one to be no further below than that; only others need their eigenvalues. Where
    not even these decide, δ is the largest sum of a row.

    `K` of shape (n, n): symmetric and finite. Cost: n³/3 operations a factor, and a float64 copy.

    Source: Higham, Accuracy and Stability of Numerical Algorithms (SIAM 2002), Theorem 10.3; Rump,
    Verification of positive definiteness (BIT 2006).
    """
    A = K.astype(np.float64)
    n, diagonal = len(A), np.diagonal(A).copy()
    one = gamma(n + 1)
    # what a factor of n rows proves no better than, in units of the diagonal
    reach = 1.01 * n * one / (1.0 - one) + 4.0 * UNIT
    if _factorises(A, diagonal * (1.0 - 1.01 * reach)):
        return np.zeros(n)
    raised = diagonal * (1.0 + reach)
    if _factorises(A, raised):
        return np.maximum(0.0, (2.1 + reach) * reach * diagonal)
    least = float(run_interruptibly(np.linalg.eigvalsh, A)[0])
    shift = 1.01 * max(0.0, -least) + reach * _top(diagonal)
    for _ in range(3):
        if _factorises(A, diagonal + shift):
            return np.full(n, 1.01 * (shift + reach * (_top(diagonal) + shift)))
        shift *= 2.0
    return np.full(n, 1.01 * float(np.abs(A).sum(axis=1).max()))


def _top(diagonal: FloatArray) -> float:
    return float(np.abs(diagonal).max())


def _factorises(A: RealArray, diagonal: FloatArray) -> bool:
    """Whether A with another diagonal has a Cholesky factor; zero rows are left out."""
    from scipy.linalg.lapack import dpotrf

    used = np.flatnonzero((diagonal != 0.0) | A.any(axis=1))
    whole = len(used) == len(A)
    B = (A if whole else A[np.ix_(used, used)]).astype(np.float64, order="C", copy=whole)
    if not len(used):
        return True
    B.flat[:: len(B) + 1] = diagonal[used]
    # in place, by LAPACK: two copies and the zeros of the other triangle cost as much as the factor
    return bool(run_interruptibly(dpotrf, B.T, lower=0, overwrite_a=1, clean=0)[1] == 0)


def describe(name: str, spectrum: Spectrum) -> str:
    """Return the clause that names an indefinite kernel and its eigenvalues."""
    return (
        f"{name} is not positive semidefinite on these samples "
        f"(smallest eigenvalue {spectrum.lambda_min:.6g}, largest {spectrum.lambda_max:.6g})"
    )


def require_psd(K: RealArray, name: str) -> None:
    """Raise NotPSDError where a symmetric K has a negative eigenvalue beyond rounding."""
    K_spectrum = find_indefinite(K)
    if K_spectrum is not None:
        raise NotPSDError(f"{describe(name, K_spectrum)}: {REMEDY}")


def refuse_indefinite(grams: RealArray, name: str) -> None:
    """Raise where a Gram matrix, or one of several, that a user computed is indefinite.

    An eigenvalue down to −1e-10 of the largest is the rounding of a matrix that was centred and
    scaled, and passes. ``name`` is for the message. Cost: n³/3 operations each.
    """
    stack = {name: grams} if grams.ndim == 2 else {f"{name}[{j}]": K for j, K in enumerate(grams)}
    for label, K in stack.items():
        K_spectrum = find_indefinite(K)
        if K_spectrum is not None and K_spectrum.lambda_min < -_NEARLY * K_spectrum.lambda_max:
            raise NotPSDError(
                f"{describe(label, K_spectrum)}: leave it out, or set its negative eigenvalues "
                "to zero"
            )


def as_gram(K: ArrayLike) -> KernelArray:
    """Return K as a read-only C-contiguous view in float64 or float32; copy only if it must be.

    A Fortran-ordered K is transposed instead of copied: it is symmetric.
    """
    array: RealArray = np.asarray(K)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"K must be a square matrix (n, n), got shape {array.shape}")
    if array.shape[0] == 0:
        raise ValueError("K has no samples (shape (0, 0)); at least 2 are needed")
    if array.dtype not in (np.float64, np.float32):
        if array.dtype.kind not in "biuf":
            raise ValueError(f"K must hold real numbers, got dtype {array.dtype}")
        array = array.astype(np.float64)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        array = array.T
    view: KernelArray = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def reach_of(K: KernelArray) -> FloatArray:
    """Return r of shape (n,): ``|Kᵢⱼ| ≤ rᵢrⱼ`` where K is positive semidefinite up to rounding."""
    diagonal = np.diagonal(K).astype(np.float64)
    with np.errstate(invalid="ignore"):
        slack = rounding_tolerance(len(K), float(np.abs(diagonal).max()), K.dtype)
        return np.sqrt(np.maximum(diagonal + slack, 0.0))


def check_gram(K: KernelArray) -> float:
    """Return a bound of ``|Kᵢⱼ − Kⱼᵢ|`` after checking that K is finite and symmetric: n² loads.

    It is 0 where K is symmetric to the last bit. Where rounding alone sets both halves apart, up to
    2⁻⁴⁶ of ``√(Kᵢᵢ Kⱼⱼ)``, as in ``rbf_kernel`` of scikit-learn, it is that share of the largest
    Kᵢᵢ; where more does, the largest difference, for which numpy passes over K again. Of the signs
    of the eigenvalues only what two rows show is checked: ``Kᵢⱼ² ≤ KᵢᵢKⱼⱼ``, up to rounding.

    Raises ValueError if an entry is NaN or infinite (the message gives its place), or if the
    asymmetry is more than 1e-6 times the largest entry; NotPSDError if two rows and columns show a
    negative eigenvalue.
    """
    from ._njit_grams import soundness

    reach = reach_of(K)
    top = float(reach.max())
    if top < LARGEST_REACH:
        is_sound, is_symmetric = soundness(K, reach, NEARLY_SYMMETRIC)
        if is_sound:
            return 0.0 if is_symmetric else NEARLY_SYMMETRIC * top * top * (1.0 + 4.0 * UNIT)
    size = largest(K)
    if not np.isfinite(size):
        row, column = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(
            f"K must be finite, got {K[row, column]} at position ({row}, {column}): check the "
            "features for missing values or overflow"
        )
    with np.errstate(over="ignore"):
        skew, blocks = asymmetry(K), row_blocks(*K.shape)
        within = all((np.abs(K[at]) <= np.outer(reach[at], reach)).all() for at in blocks)
    if skew > _ASYMMETRY_LIMIT * size:
        raise ValueError(
            f"K must be symmetric, got max |K - K.T| = {skew:.3g} with entries up to "
            f"{size:.3g}: pass (K + K.T) / 2 if that is what you mean"
        )
    if not within:
        excess = np.abs(K) - np.outer(reach, reach)
        row, column = np.unravel_index(int(np.argmax(excess)), K.shape)
        raise NotPSDError(
            f"K is not positive semidefinite: its rows {row} and {column} have the entries "
            f"{K[row, row]:.6g}, {K[row, column]:.6g} and {K[column, column]:.6g}, which need "
            "K[i, j]**2 <= K[i, i] * K[j, j]: set its negative eigenvalues to zero"
        )
    return skew
