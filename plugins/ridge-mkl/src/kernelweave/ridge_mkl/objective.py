"""F(μ) = yᵀ(K_μ^{∘d} + λI)⁻¹y + β‖μ‖² with its gradient and Hessian, on plain arrays.

The algorithms use the same formulas through `oracle.Oracle`, which adds bounds, several tasks,
weights and an intercept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, STRENGTH, check_vector
from kernelweave.kernels_core.exceptions import NotPSDError
from kernelweave.kernels_core.kernels import as_grams
from scipy.linalg import LinAlgError, cho_factor, cho_solve


def _system(grams: npt.NDArray[Any], y: FloatArray, mu: FloatArray, lam: float, degree: int) -> Any:
    """Return L = Σ μₖKₖ, the factor of L^{∘d} + λI and α."""
    L = np.tensordot(mu, grams, axes=1)
    A = L**degree + lam * np.eye(len(L))
    try:
        factor = cho_factor(A, lower=True)
    except LinAlgError:
        raise NotPSDError(
            f"(Σ μₖKₖ)^∘{degree} + λI has a negative eigenvalue at λ = {lam:g}: the Gram matrices "
            "must be positive semidefinite and mu at least 0"
        ) from None
    return L, factor, cho_solve(factor, y)


def _arguments(
    grams: Any, y: Any, mu: Any, lam: float, degree: int, beta: float
) -> tuple[npt.NDArray[Any], FloatArray, FloatArray]:
    """Return the arrays, after checking all arguments; ValueError names the wrong one."""
    K = as_grams(grams, "grams", square=True)
    STRENGTH.check("lam", lam)
    COUNT.check("degree", degree)
    NONNEGATIVE.check("beta", beta)
    return K, check_vector("y", y, K.shape[1]), check_vector("mu", mu, len(K))


def ridge_objective(
    grams: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: npt.ArrayLike,
    *,
    lam: float,
    degree: int = 1,
    beta: float = 0.0,
) -> float:
    """Return yᵀ((Σ μₖKₖ)^{∘d} + λI)⁻¹y + β‖μ‖².

    Parameters
    ----------
    grams : array-like of shape (p, n, n)
        Positive semidefinite Gram matrices.
    y : array-like of shape (n,)
        Targets.
    mu : array-like of shape (p,)
        Kernel weights.
    lam : float
        λ > 0.
    degree : int, default=1
        d, a Hadamard power.
    beta : float, default=0.0
        β.

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        If an argument is out of range, or a matrix is not finite and symmetric.
    NotPSDError
        If the matrix to invert is not positive definite.

    References
    ----------
    Ridge-MKL paper, equations (4), (7) and section 2.2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.ridge_mkl import ridge_objective
    >>> ridge_objective(np.eye(2)[None], [1.0, 1.0], [3.0], lam=1.0)
    0.5
    """
    K, y, mu = _arguments(grams, y, mu, lam, degree, beta)
    _, _, alpha = _system(K, y, mu, lam, degree)
    return float(y @ alpha + beta * mu @ mu)


def ridge_gradient(
    grams: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: npt.ArrayLike,
    *,
    lam: float,
    degree: int = 1,
    beta: float = 0.0,
) -> FloatArray:
    """Return ∂ₖF = −d αᵀ(L^{∘(d−1)} ∘ Kₖ)α + 2βμₖ, L = Σ μₖKₖ.

    The paper's Algorithms 5 and 6 solve for α without the power; with it, the formula holds.

    Parameters
    ----------
    grams, y, mu, lam, degree, beta
        As in `ridge_objective`.

    Returns
    -------
    ndarray of shape (p,)
        The gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.ridge_mkl import ridge_gradient
    >>> ridge_gradient(np.eye(2)[None], [1.0, 1.0], [3.0], lam=1.0)
    array([-0.125])
    """
    K, y, mu = _arguments(grams, y, mu, lam, degree, beta)
    L, _, alpha = _system(K, y, mu, lam, degree)
    return gradient_at(K, alpha[None], L, degree) + 2.0 * beta * mu


def ridge_hessian(
    grams: npt.ArrayLike,
    y: npt.ArrayLike,
    mu: npt.ArrayLike,
    *,
    lam: float,
    degree: int = 1,
    beta: float = 0.0,
) -> FloatArray:
    """Return ∂ⱼₖF = 2d² αᵀUⱼA⁻¹Uₖα − d(d−1) αᵀ(L^{∘(d−2)} ∘ Kⱼ ∘ Kₖ)α + 2βδⱼₖ.

    Uₖ = L^{∘(d−1)} ∘ Kₖ, A = L^{∘d} + λI. The paper's Hessian after (7) lacks the factor 2.

    Parameters
    ----------
    grams, y, mu, lam, degree, beta
        As in `ridge_objective`.

    Returns
    -------
    ndarray of shape (p, p)
        The Hessian.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.ridge_mkl import ridge_hessian
    >>> ridge_hessian(np.eye(2)[None], [1.0, 1.0], [3.0], lam=1.0)
    array([[0.0625]])
    """
    K, y, mu = _arguments(grams, y, mu, lam, degree, beta)
    L, factor, alpha = _system(K, y, mu, lam, degree)
    G = products(K, alpha[None], L, degree)[:, 0]
    H = 2.0 * degree**2 * G @ cho_solve(factor, G.T) + 2.0 * beta * np.eye(len(mu))
    return H - second_products(K, alpha[None], L, degree)


def products(grams: npt.NDArray[Any], u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return (L^{∘(d−1)} ∘ Kₖ)uₜ, shape (p, T, n), for u of shape (T, n).

    - `grams` of shape (p, n, n): Kₖ
    - `u` of shape (T, n): rows to multiply
    - `L` of shape (n, n): Σ μₖKₖ; not read at degree 1
    - `degree`: d
    """
    power = None if degree == 1 else L ** (degree - 1)
    out = np.empty((len(grams), *u.shape))
    for k, K in enumerate(grams):
        out[k] = u @ (K if power is None else power * K)
    return out


def gradient_at(grams: npt.NDArray[Any], u: FloatArray, L: FloatArray, degree: int) -> FloatArray:
    """Return −d Σₜ uₜᵀ(L^{∘(d−1)} ∘ Kₖ)uₜ, shape (p,); arguments as in `products`."""
    weights = u.T @ u
    if degree > 1:
        weights *= L ** (degree - 1)
    return np.array([-degree * float(np.vdot(weights, K)) for K in grams])


def second_products(
    grams: npt.NDArray[Any], u: FloatArray, L: FloatArray, degree: int
) -> FloatArray:
    """Return d(d−1) Σₜ uₜᵀ(L^{∘(d−2)} ∘ Kⱼ ∘ Kₖ)uₜ, shape (p, p); arguments as in `products`.

    Cost: 2p²n² flops above degree 1, none at degree 1.
    """
    p = len(grams)
    if degree == 1:
        return np.zeros((p, p))
    weights = u.T @ u
    if degree > 2:
        weights *= L ** (degree - 2)
    out = np.empty((p, p))
    for j in range(p):
        weighted = weights * grams[j]
        for k in range(j + 1):
            out[j, k] = out[k, j] = float(np.vdot(weighted, grams[k]))
    return degree * (degree - 1) * out
