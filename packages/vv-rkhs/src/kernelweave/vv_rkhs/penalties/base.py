"""What a regulariser must offer, and the update of the weights for any of them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arguments import check_array

Vector = npt.NDArray[np.float64]


@runtime_checkable
class Penalty(Protocol):
    """A regulariser Ω with Ω(f) = min over η ≥ 0 of Σ ‖fⱼ‖²/ηⱼ + ω(η), ω convex (V, (7)).

    ``start``, ``value``, ``update`` and ``conjugate`` are all that block descent and the
    certificates need; ``prox`` is needed by the spectral projected gradient method.
    """

    def start(self, n_kernels: int) -> Vector:
        """Return positive weights in the domain of ω that favour no kernel, shape (m,)."""

    def value(self, weights: Vector) -> float:
        """Return ω(η), infinite outside its domain."""

    def update(self, alpha: Vector) -> Vector:
        """Return the η that minimises Σ αⱼ²/ηⱼ + ω(η), for αⱼ = ‖fⱼ‖ ≥ 0."""

    def conjugate(self, w: Vector) -> float:
        """Return ω*(w) = max over η ≥ 0 of ηᵀw − ω(η), for w ≥ 0."""

    def prox(self, weights: Vector, step: float) -> Vector:
        """Return the η that minimises ½‖η − weights‖² + step · ω(η)."""


def smooth(alpha: Vector) -> Vector:
    """Return √(α² + ε) with ε = 1e-14 max α².

    A weight of exactly 0 would stay 0 for ever: αⱼ = ηⱼ √wⱼ.
    """
    squares = alpha**2
    result: Vector = np.sqrt(squares + 1e-14 * squares.max(initial=0.0))
    return result


def update_weights(
    alpha: npt.ArrayLike, *, p: float = 1.0, penalty: Penalty | None = None
) -> Vector:
    """Return the weights η that minimise Σ αⱼ²/ηⱼ + ω(η).

    For the squared ℓp norm ηⱼ = αⱼ^{2−p} / (Σᵢ αᵢᵖ)^{(2−p)/p}; V's (10) has the same exponent and
    a normalisation that is right at p = 1 only.

    Parameters
    ----------
    alpha : array-like of shape (n_kernels,)
        Norms αⱼ = ‖fⱼ‖ = ηⱼ √tr(Cᵀ Kⱼ C L) at the previous weights, >= 0.
    p : float, default=1.0
        Exponent of the squared ℓp norm, in [1, 2]; ignored where ``penalty`` is given.
    penalty : Penalty, optional
        Any other regulariser.

    Returns
    -------
    ndarray of shape (n_kernels,)
        The weights.

    Raises
    ------
    ValueError
        If α is negative or not finite, or p is outside [1, 2].

    Examples
    --------
    >>> from kernelweave.vv_rkhs import update_weights
    >>> update_weights([1.0, 3.0], p=1.0)
    array([0.25, 0.75])
    """
    from .squared_lp import SquaredLpNorm

    norms = check_array("alpha", alpha, 1)
    if (norms < 0).any():
        raise ValueError(f"alpha must be a vector of finite numbers >= 0, got {alpha!r}")
    chosen = SquaredLpNorm(p) if penalty is None else penalty
    return chosen.update(norms)
