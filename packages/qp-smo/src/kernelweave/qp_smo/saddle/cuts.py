"""Cuts of the saddle function: every feasible dual point bounds it from below, for all weights."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.rounding import UNIT
from numpy.typing import NDArray

from .penalties import WeightPenalty


class CutPool:
    """Cuts ``G(β) ≥ κᵢ − ½ dᵢᵀβ``, each from an exactly feasible dual point.

    With ``dᵢⱼ = Σₜ uₜᵀKⱼuₜ`` rounded up and κ rounded down a cut holds for all ``β ≥ 0``, whatever
    the tolerance of the solve it came from: pools are shared between penalties, between the
    branches of a search, and along a path in λ and k₀. At another C the duals must be scaled, see
    `rescaled`.

    Parameters
    ----------
    n_kernels : int

    Attributes
    ----------
    dual_coef : list of ndarray of shape (t, n)
        The dual points, for warm starts and other values of C.

    Examples
    --------
    >>> pool = CutPool(2)
    >>> pool.add(1.0, np.array([1.0, 4.0]), np.zeros((1, 3)))
    >>> float(pool.model(np.array([1.0, 0.0])))
    0.5
    """

    def __init__(self, n_kernels: int) -> None:
        self.n_kernels = n_kernels
        self.dual_coef: list[FloatArray] = []
        self._kappa = np.empty(32)
        self._half = np.empty((32, n_kernels))
        self._partial: dict[int, NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self.dual_coef)

    @property
    def kappa(self) -> FloatArray:
        """Return κ of each cut, shape (m,)."""
        return self._kappa[: len(self)]

    @property
    def half_forms(self) -> FloatArray:
        """Return ``½d`` of each cut, shape (m, q)."""
        return self._half[: len(self)]

    def add(
        self,
        kappa: float,
        forms: FloatArray,
        dual_coef: FloatArray,
        known: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add a cut.

        `kappa`: rounded down; `forms` of shape (q,): d, rounded up; `dual_coef` of shape (t, n);
        `known` of shape (q,): where ``forms`` is d itself, and not a bound that is far above it.
        """
        m = len(self)
        if known is not None and not known.all():
            self._partial[m] = known
        if m == self._kappa.size:
            self._kappa = np.concatenate([self._kappa, np.empty(m)])
            self._half = np.concatenate([self._half, np.empty((m, self.n_kernels))])
        self._kappa[m] = kappa
        self._half[m] = 0.5 * forms
        self.dual_coef.append(dual_coef)

    @property
    def unknown(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return which cuts are known of a part of the kernels, and which kernels they lack."""
        missing = np.zeros(self.n_kernels, dtype=bool)
        for known in self._partial.values():
            missing |= ~known
        return np.array(list(self._partial), dtype=np.intp), np.flatnonzero(missing)

    def complete(
        self, cuts: NDArray[np.intp], kernels: NDArray[np.intp], forms: FloatArray
    ) -> None:
        """Write the forms of cuts, shape (cuts, kernels), rounded up, at all kernels they lack."""
        at = np.ix_(cuts, kernels)
        self._half[at] = np.minimum(self._half[at], 0.5 * forms)
        for i in cuts:
            del self._partial[i]

    def values(self, weights: FloatArray) -> FloatArray:
        """Return ``κᵢ − ½dᵢᵀβ`` of each cut, shape (m,), in plain floating point."""
        values: FloatArray = self.kappa - self.half_forms @ weights
        return values

    def model(self, weights: FloatArray) -> float:
        """Return the largest cut at β of shape (q,), in plain floating point; -inf if none."""
        return float(self.values(weights).max()) if len(self) else -np.inf

    def nearest(self, weights: FloatArray) -> FloatArray | None:
        """Return the dual point of the largest cut at β: a warm start, shape (t, n)."""
        return self.dual_coef[int(np.argmax(self.values(weights)))] if len(self) else None

    def relevant(self, weights: FloatArray, limit: int) -> NDArray[np.intp]:
        """Return the positions of at most ``limit`` cuts: the largest ones at β."""
        if len(self) <= limit:
            return np.arange(len(self))
        return np.argpartition(-self.values(weights), limit)[:limit]

    def rescaled(self, factor: float) -> CutPool:
        """Return the pool of the problem whose C is ``factor`` times as large.

        κ is homogeneous, so that ``s·u`` is feasible for ``s·C`` with ``sκ`` and ``s²d``. Each is
        rounded outwards; ``s·u`` itself is a warm start and need not be exactly feasible.
        """
        pool = CutPool(self.n_kernels)
        pool._partial = dict(self._partial)
        for kappa, half, u in zip(self.kappa, self.half_forms, self.dual_coef, strict=True):
            lowered = kappa * factor - 4.0 * UNIT * abs(kappa * factor)
            forms = 2.0 * half * (factor * factor)
            pool.add(float(lowered), forms + 8.0 * UNIT * np.abs(forms), u * factor)
        return pool


def lower_bound_from(
    kappa: FloatArray, half_forms: FloatArray, multipliers: FloatArray, penalty: WeightPenalty
) -> float:
    """Return ``κᵀμ + min over β of penalty(β) − (½Dᵀμ)ᵀβ``, rounded down, with ``μ/Σμ`` for μ.

    Any nonnegative multipliers give a lower bound of the saddle value.

    Parameters
    ----------
    kappa : ndarray of shape (m,)
    half_forms : ndarray of shape (m, q)
    multipliers : ndarray of shape (m,)
        At least 0, not all 0.
    penalty : WeightPenalty
    """
    used = np.flatnonzero(multipliers > 0.0)
    mu = multipliers[used] / multipliers[used].sum()
    # μ/Σμ as computed is off by at most (m + 2) roundings in every component
    rounding = 2.0 * (2 * used.size + 6) * UNIT
    top = float(mu @ kappa[used]) - rounding * float(mu @ np.abs(kappa[used]))
    c = mu @ half_forms[used] + rounding * (mu @ np.abs(half_forms[used]))
    low = penalty.best_response(c)[1]
    return top + low - 4.0 * UNIT * (abs(top) + abs(low))
