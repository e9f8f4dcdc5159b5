"""Rademacher complexity of the functions that a dictionary with an ℓp norm can represent."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.checks import LARGEST, number
from kernelweave.kernels_core.grams import as_grams
from kernelweave.kernels_core.psd_cone import lq_norm

# η₀ of V, Theorem 3.1.
_ETA_0 = 23.0 / 22.0
_NORM = number(least=1.0)
_SIZE = number(least=0.0, most=LARGEST)


def rademacher_bound(kernels: npt.ArrayLike, p: float, lam: float, tau: float) -> float:
    """Return a bound on the empirical Rademacher complexity of {f : ‖f‖_ℓp ≤ λ}.

    With uⱼ = √(τ tr Kⱼ), the smallest of λ‖u‖₁/l and (λ/l) √(η₀ r) ‖u‖_r over the integers
    2 ≤ r ≤ q, 1/p + 1/q = 1, η₀ = 23/22: V, Theorem 3.1 (A), (B) and (C). (B) is stated for
    integer q; any integer r below q serves, since ‖f‖_ℓp only falls as p grows. The bound is for
    one L of trace at most τ, not for the best L after the signs are drawn.

    Parameters
    ----------
    kernels : array-like of shape (n_kernels, n_samples, n_samples)
        Gram matrices.
    p : float
        Exponent of the norm, >= 1.
    lam : float
        Radius λ of the class: of the norm, not the regularisation parameter.
    tau : float
        Trace of L, or a bound on it.

    Returns
    -------
    float
        No smaller than E sup over f of (1/l) Σ σᵢᵀ f(xᵢ), σ of random signs.

    Raises
    ------
    ValueError
        If p < 1, λ or τ is negative, or a matrix is not finite and symmetric.
    NotPSDError
        If a matrix has a negative eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.vv_rkhs import rademacher_bound
    >>> rademacher_bound(np.eye(4)[None], p=1.0, lam=1.0, tau=1.0)
    0.5
    """
    _NORM.check("p", p)
    _SIZE.check("lam", lam)
    _SIZE.check("tau", tau)
    grams = as_grams(kernels, "kernels", square=True, psd=True)
    n_samples = grams.shape[1]
    traces = np.array([float(np.trace(K, dtype=np.float64)) for K in grams])
    u = np.sqrt(tau * np.maximum(traces, 0.0))
    best = float(u.sum())
    q = math.inf if p == 1.0 else p / (p - 1.0)
    # beyond 2 ln m the root of r grows faster than the norm falls
    last = int(min(q + 1e-9, max(2.0, math.ceil(2.0 * math.log(len(u)) + 1.0))))
    for r in range(2, last + 1):
        best = min(best, math.sqrt(_ETA_0 * r) * lq_norm(u, float(r)))
    return float(lam * best / n_samples)
