"""The weights that are best for given norms, for any regulariser."""

from __future__ import annotations

import numpy.typing as npt
from kernelweave.kernels_core.arrays import Vector
from kernelweave.kernels_core.checks import check_array

from .base import Penalty
from .squared_lp import SquaredLpNorm


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
    norms = check_array("alpha", alpha, 1)
    if (norms < 0).any():
        raise ValueError(f"alpha must be a vector of finite numbers >= 0, got {alpha!r}")
    chosen = SquaredLpNorm(p) if penalty is None else penalty
    return chosen.update(norms)
