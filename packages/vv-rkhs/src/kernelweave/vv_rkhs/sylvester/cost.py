"""What each C solver is expected to cost: flops, weighed by constants of their kind.

No clock is read: the same on every machine.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import RealArray, Vector

from .cholesky import distinct_eigenvalues
from .nystrom import sketch_rank

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
_STALE_ITERATIONS = 12.0


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
    spectrum: SpectrumEstimate,
    rho: Vector,
    ridge: float,
    *,
    tol: float,
    stale: bool,
    sketched: bool = False,
) -> dict[str, float]:
    """Return the expected work of each method: its flops, weighed by their kind.

    - `spectrum`: of K
    - `rho` of shape (n_outputs,): eigenvalues of L, ascending
    - `ridge`: r
    - `tol`: relative residual that an iterative method must reach
    - `stale`: whether an earlier eigendecomposition is at hand
    - `sketched`: whether a sketch of this K is

    ``"eigen"``, ``"cholesky"``, ``"columns"``, ``"nystrom"`` and perhaps ``"stale"``. Conjugate
    gradients on C as a whole are not among them: all systems together need 0.1 % more without.
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
    if goes_single(spectrum.n_samples):
        per_column *= _SINGLE
    work["nystrom"] = (
        float(each.max(initial=0.0)) * (stream * per_column + _CALLS["nystrom"])
        + output
        + float(each.sum()) * (1.0 + 2.0 * rank / l) * per_column
        + (0.0 if sketched else (_SKETCH[0] * rank**2 + _SKETCH[1]) * l + _SKETCH[2])
    )
    if stale:
        per_column = _COLUMN * l**2
        fewer = np.minimum(spectrum.iterations(rho, ridge, tol), _STALE_ITERATIONS)
        passes = float(fewer.max(initial=0.0)) * (stream * per_column + _CALLS["columns"])
        work["stale"] = 3.0 * (passes + float(fewer.sum()) * per_column)
    return work


def goes_single(n_samples: int, *scales: float) -> bool:
    """Tell whether single precision is worth the copy of K, and far from over- and underflow."""
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
