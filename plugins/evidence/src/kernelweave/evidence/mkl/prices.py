"""Weights that cost money: the set over which a majorised evidence is a convex problem."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import Rule
from kernelweave.kernels_core.parameters import Value, parameter
from kernelweave.kernels_core.rounding import gamma


def _is_price(value: object) -> bool:
    prices = np.asarray(value, dtype=np.float64)
    return prices.ndim < 2 and bool(np.isfinite(prices).all() and (prices >= 0.0).all())


class PricedOrthant(Value):
    """{w ≥ 0} with the penalty ½ Σ pⱼwⱼ, a weighted trace.

    With pⱼ = tr(S₀⁻¹Kⱼ) it is the tangent of ½ log det S at S₀, which lies above it everywhere:
    a step of the evidence becomes ridge kernel learning over this set.

    Examples
    --------
    >>> from kernelweave.evidence import PricedOrthant
    >>> PricedOrthant(prices=(2.0, 4.0)).penalty([1.0, 0.5])
    2.0
    """

    name: ClassVar[str] = "priced-orthant"
    prices: npt.ArrayLike = parameter(
        "pⱼ ≥ 0, one number for all kernels or one for each.",
        default=1.0,
        kind="float or tuple of float",
        rule=Rule("a finite number >= 0 or one per kernel", _is_price),
    )

    def of(self, n_kernels: int) -> FloatArray:
        """Return the prices as an array.

        Parameters
        ----------
        n_kernels : int
            q.

        Returns
        -------
        ndarray of shape (q,)
            One price per kernel.

        Raises
        ------
        ValueError
            If there are as many prices as other kernels have.
        """
        prices = np.asarray(self.prices, dtype=np.float64)
        if prices.ndim == 1 and len(prices) != n_kernels:
            raise ValueError(
                f"prices must be one number or one per kernel ({n_kernels}), got {len(prices)}"
            )
        return np.broadcast_to(prices, n_kernels).copy()

    def start(self, n_kernels: int) -> FloatArray:
        """Return weights that cost as much as each other, shape (q,), for q = ``n_kernels``."""
        prices = self.of(n_kernels)
        return np.asarray(1.0 / np.where(prices > 0.0, prices, 1.0) / n_kernels)

    def penalty(self, weights: npt.ArrayLike) -> float:
        """Return ½ Σ pⱼwⱼ, for w of shape (q,)."""
        w = np.asarray(weights, dtype=np.float64)
        return 0.5 * float(self.of(len(w)) @ w)

    def worst(self, forms: FloatArray) -> float:
        """Return max formsᵀw − ½pᵀw: 0 where no form passes half its price, else infinity."""
        return 0.0 if bool((forms <= 0.5 * self.of(len(forms))).all()) else math.inf

    def longest(self, forms: FloatArray) -> float:
        """Return how long a multiple of u keeps uᵀKⱼu ≤ pⱼ, for forms rounded up, shape (q,)."""
        prices = self.of(len(forms))
        some = forms > 0.0
        if not some.any():
            return math.inf
        return float(np.sqrt(np.min(prices[some] / forms[some]))) * (1.0 - gamma(8))
