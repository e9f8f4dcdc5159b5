"""Chooses the C solver by size, outputs and conditioning: by flops, weighed by their kind."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray, Vector
from kernelweave.kernels_core.checks import POSITIVE, check_array, one_of
from kernelweave.kernels_core.clock import expired
from kernelweave.kernels_core.grams.psd import find_indefinite
from scipy.linalg import LinAlgError

from .direct import (
    SylvesterSolution,
    check_system,
    distinct_eigenvalues,
    solve_sylvester_cholesky,
    solve_sylvester_eigen,
)
from .iterative import NystromFactors, sketch_rank, solve_sylvester_cg, solve_sylvester_columns

METHODS = ("auto", "eigen", "cholesky", "cg", "columns", "nystrom")
# weights of the flops of each kind: seconds on one core of a machine of 20 Gflop/s, measured once
# at l = 200 to 3000; only their ratios matter
_EIGEN = 1.45e-10, 4.5e-8  # per l³ and per l²
_CHOLESKY = 0.9e-11, 3e-9  # likewise
_COLUMN = 0.75e-10  # per l² and column: a product with K, and its share of the vectors
# columns that reading K costs, by its bytes: in the second cache, in the third, in memory
_STREAM = (1e6, 1.0), (12e6, 5.0), (math.inf, 16.0)
# per iteration or factor
_CALLS = {"columns": 4e-5, "cholesky": 5e-5, "nystrom": 1e-4}
_SKETCH = 1.4e-10, 2e-6, 5e-4  # per l · rank², per l, and once
_SINGLE = 0.5  # of the time, in single precision
_EARLY, _EARLY_SKETCHED = 0.5, 0.45  # measured iterations over the bound below


@dataclass(frozen=True)
class SpectrumEstimate:
    """What is known of the eigenvalues σ of K without computing them.

    Attributes
    ----------
    n_samples : int
        l.
    largest : float
        An estimate of the largest, or a bound on it.
    mean : float
        tr K / l.
    spread : float
        Standard deviation of the eigenvalues, √(‖K‖²/l − (tr K/l)²).
    """

    n_samples: int
    largest: float
    mean: float
    spread: float

    @classmethod
    def of(cls, K: RealArray) -> SpectrumEstimate:
        """Return trace, norm and two steps of the power method (6 l² flops, three passes)."""
        l = K.shape[0]
        v = K @ np.full(l, 1.0 / math.sqrt(l))
        norm = float(np.linalg.norm(v))
        largest = float(np.linalg.norm(K @ v)) / norm if norm > 0 else 0.0
        mean = float(np.trace(K)) / l
        square = float(np.vdot(K, K)) / l
        return cls(l, max(largest, mean), mean, math.sqrt(max(0.0, square - mean**2)))

    def iterations(self, rho: Vector, ridge: float, tol: float, *, known: int = 0) -> Vector:
        """Return the expected conjugate-gradient iterations on ρK + rI, one per ρ.

        The error falls by 2((√κ − 1)/(√κ + 1))ⁱ. As the k + 1-th eigenvalue is at most
        tr K/(k + 1), k iterations deal with the k largest and κ ≤ 1 + ρ tr K/((k + 1) r) with the
        rest, for every k; the smallest eigenvalue is taken to lie three spreads below the mean.
        A preconditioner that has ``known`` of the largest eigenvalues right leaves the rest to the
        iterations.
        """
        low = max(0.0, self.mean - 3.0 * self.spread)
        rho = np.maximum(rho, 0.0)[:, None]
        k = _deflations(self.n_samples)
        largest = self.largest if known == 0 else math.inf
        top = rho * np.minimum(largest, self.n_samples * self.mean / (known + k + 1.0))
        bottom = np.minimum(rho * low, top)
        steps = k + 0.5 * np.sqrt((ridge + top) / (ridge + bottom)) * math.log(2.0 / tol)
        early = _EARLY if known == 0 else _EARLY_SKETCHED
        best: Vector = 1.0 + early * np.minimum(steps.min(axis=1), 2.0 * self.n_samples)
        return best


def weighted_work(
    spectrum: SpectrumEstimate, rho: Vector, ridge: float, *, tol: float, sketched: bool = False
) -> dict[str, float]:
    """Return the expected work of each method: its flops, weighed by their kind.

    Conjugate gradients on C as a whole are not among them: all systems together need 0.1 % more
    without. `rho` are the eigenvalues of L, ascending; `sketched` says that a sketch of this K is
    at hand.
    """
    l, n = float(spectrum.n_samples), len(rho)
    per_column = _COLUMN * l**2
    stream = next(columns for limit, columns in _STREAM if 8.0 * l**2 < limit)
    each = spectrum.iterations(rho, ridge, tol)
    longest = float(each.max(initial=0.0))
    distinct = len(set(distinct_eigenvalues(rho).tolist()))
    output = _cubic(_EIGEN, n)
    work = {
        "eigen": _cubic(_EIGEN, l) + output + 2.0 * n * per_column,
        "cholesky": distinct * (_cubic(_CHOLESKY, l) + _CALLS["cholesky"])
        + output
        + n * per_column,
        "columns": longest * (stream * per_column + _CALLS["columns"])
        + output
        + float(each.sum()) * per_column,
    }
    rank = sketch_rank(spectrum.n_samples)
    each = spectrum.iterations(rho, ridge, tol, known=rank)
    if use_float32(spectrum.n_samples):
        per_column *= _SINGLE
    work["nystrom"] = (
        float(each.max(initial=0.0)) * (stream * per_column + _CALLS["nystrom"])
        + output
        + float(each.sum()) * (1.0 + 2.0 * rank / l) * per_column
        + (0.0 if sketched else (_SKETCH[0] * rank**2 + _SKETCH[1]) * l + _SKETCH[2])
    )
    return work


def use_float32(n_samples: int, *scales: float) -> bool:
    """Return whether float32 is faster despite the copy of K, and safe from over- and underflow."""
    return n_samples >= 1000 and all(1e-12 < each < 1e12 for each in scales)


def column_work(n_samples: int) -> float:
    """Return the weighted work of one product of K with a column, beside others."""
    return _COLUMN * float(n_samples) ** 2


@functools.lru_cache(maxsize=32)
def _deflations(n_samples: int) -> Vector:
    """Return numbers of eigenvalues to deal with one by one, from 0 to about l."""
    return np.unique(np.geomspace(1, max(2, n_samples), 24).astype(int)) - 1.0


def _cubic(rates: tuple[float, float], size: float) -> float:
    return rates[0] * size**3 + rates[1] * size**2


def choose_method(
    spectrum: SpectrumEstimate,
    rho: npt.NDArray[np.float64],
    ridge: float,
    *,
    tol: float = 1e-8,
    sketched: bool = False,
) -> str:
    """Return which C solver is expected to need the least work.

    Counted in flops, weighed by constants of their kind, the same on every machine: an
    eigendecomposition of K; a Cholesky factorisation per distinct eigenvalue of L; conjugate
    gradients on the columns of C, with iterations from a bound on the condition number
    (`SpectrumEstimate.iterations`); the same from a sketch of K, which takes care of the largest
    eigenvalues.
    """
    values = check_array("rho", rho, 1)
    POSITIVE.check("ridge", ridge)
    POSITIVE.check("tol", tol)
    work = weighted_work(spectrum, np.maximum(values, 0.0), ridge, tol=tol, sketched=sketched)
    return min(work, key=lambda name: work[name])


def solve_sylvester(
    K: Matrix,
    L: Matrix,
    Y: Matrix,
    ridge: float,
    *,
    method: str = "auto",
    C0: Matrix | None = None,
    tol: float = 1e-8,
    sketch: NystromFactors | None = None,
    product0: Matrix | None = None,
    spectrum: SpectrumEstimate | None = None,
    check: bool = True,
) -> SylvesterSolution:
    """Solve K C L + r C = Y by the solver that fits.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Symmetric positive semidefinite.
    L : ndarray of shape (n_outputs, n_outputs), float64
        Likewise.
    Y : ndarray of shape (n_samples, n_outputs), float64
        Right-hand side.
    ridge : float
        r > 0; λl for vector-valued least squares.
    method : str, default="auto"
        ``"eigen"``, ``"cholesky"``, ``"columns"``, ``"nystrom"`` (columns with a sketch of K as the
        preconditioner), or ``"auto"``, the one that is expected to need the least work. ``"cg"``,
        on C as a whole, is V's, and never chosen.
    C0 : ndarray of shape (n_samples, n_outputs), optional
        Warm start of an iterative method.
    tol : float, default=1e-8
        Relative residual of an iterative method.
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
        Cholesky factorisation that was chosen here and that rounding defeats.

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
    chosen = method == "auto"
    if chosen:
        rho = np.asarray(np.linalg.eigvalsh(L), dtype=np.float64)
        spectrum = SpectrumEstimate.of(K) if spectrum is None else spectrum
        method = choose_method(spectrum, rho, ridge, tol=tol, sketched=sketch is not None)
    if method in ("cg", "columns", "nystrom"):
        if method == "cg":
            solution = solve_sylvester_cg(K, L, Y, ridge, C0=C0, tol=tol, check=False)
        else:
            known = None
            if method == "nystrom":
                known = NystromFactors.of(K) if sketch is None else sketch
            scales = float(np.trace(K)) / len(K), float(np.trace(L)) / len(L), ridge
            solution = solve_sylvester_columns(
                K, L, Y, ridge, C0=C0, tol=tol, max_iter=len(K), sketch=known, product0=product0,
                single=method == "nystrom" and use_float32(len(K), *scales), check=False,
            )  # fmt: skip
            solution = dataclasses.replace(solution, method=method, sketch=known)
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
