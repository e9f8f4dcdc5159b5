"""Penalties on kernel weights in the simplex, with values rounded up and conjugates rounded down.

Every penalty here is ``λ min{Σβⱼ²/zⱼ : Σz ≤ k over the free j, 0 ≤ z ≤ 1}`` with ``zⱼ = 1`` for
the required kernels and ``βⱼ = 0`` for the excluded ones; no penalty has ``λ = 0``, the ridge
has ``k = q``, the squared k-support norm has ``k = k₀``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.checks import COUNT, LARGEST, number
from kernelweave.kernels_core.rounding import UNIT
from numpy.typing import NDArray

# What λ may be.
RIDGE = number(least=0.0, most=LARGEST)


@dataclass(frozen=True)
class WeightPenalty:
    """``λ min{Σβⱼ²/zⱼ}`` on the simplex, restricted to a face of it.

    `capacity`: k, how much ``Σz`` the free kernels may share; `required`, `excluded` (q,): ``zⱼ =
    1`` and ``βⱼ = 0``; disjoint.
    """

    lam: float
    capacity: int
    required: NDArray[np.bool_]
    excluded: NDArray[np.bool_]

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Return which weights may be positive, shape (q,)."""
        if self.capacity == 0:
            return self.required
        return ~self.excluded

    @property
    def free(self) -> NDArray[np.bool_]:
        """Return which kernels share the capacity, shape (q,)."""
        return self.allowed & ~self.required

    @property
    def is_tight(self) -> bool:
        """Whether every allowed kernel can have ``z = 1``: the penalty is the plain ridge."""
        return int(self.free.sum()) <= self.capacity

    @property
    def n_supports(self) -> int:
        """Return how many supports of the largest size there are."""
        n_free = int(self.free.sum())
        return comb(n_free, min(self.capacity, n_free))

    def is_met(self, support: NDArray[np.bool_]) -> bool:
        """Whether a support, shape (q,), is within the capacity."""
        return int(support.sum()) <= self.capacity

    def largest(self, rank: FloatArray) -> NDArray[np.bool_]:
        """Return the support of the largest ranks, shape (q,), those of lowest index if equal."""
        kept = np.zeros(rank.size, dtype=bool)
        kept[np.argsort(-rank, kind="stable")[: self.capacity]] = True
        return kept

    def restricted(self, required: NDArray[np.bool_], excluded: NDArray[np.bool_]) -> WeightPenalty:
        """Return the penalty of a branch: more required and more excluded kernels."""
        taken = int((required & ~self.required).sum())
        return replace(
            self, required=required, excluded=excluded, capacity=max(self.capacity - taken, 0)
        )

    def over(self, kernels: NDArray[np.intp]) -> WeightPenalty:
        """Return the penalty of some kernels alone, the others having no weight."""
        return replace(self, required=self.required[kernels], excluded=self.excluded[kernels])

    def on_support(self, support: NDArray[np.bool_]) -> WeightPenalty:
        """Return the ridge on one support, shape (q,)."""
        return replace(self, required=support, excluded=~support, capacity=0)

    def shares(self, weights: FloatArray) -> FloatArray:
        """Return a feasible z, shape (q,), that minimises ``Σβ²/z``; 0 where β is 0."""
        z = np.where(weights > 0.0, 1.0, 0.0)
        at = np.flatnonzero(self.free & (weights > 0.0))
        z[at] = full_shares(weights[at], self.capacity)
        return z

    def value(self, weights: FloatArray) -> float:
        """Return an upper bound of the penalty, tight to rounding, at β of shape (q,)."""
        quadratic = 0.0
        if self.lam > 0.0:
            used = weights > 0.0
            quadratic = float((weights[used] ** 2 / self.shares(weights)[used]).sum())
        charge = self.lam * quadratic
        return charge + 2.0 * (weights.size + 8) * UNIT * charge

    def best_response(self, c: FloatArray) -> tuple[FloatArray, float]:
        """Minimise ``penalty(β) − cᵀβ`` over the simplex; return β and a proven lower bound.

        The k largest of c among the free kernels and all the required ones share
        ``β = (c − τ)₊/2λ`` with ``Σβ = 1``, and for any τ the minimum is at least
        ``−τ − Σ(c − τ)₊²/4λ``.

        The minimum falls as c grows, which is rounded up.
        """
        chosen = self._most_wanted(c)
        if self.lam == 0.0:
            return best_corner(c, chosen)
        weights = np.zeros_like(c)
        w = np.sort(c[chosen])[::-1]
        excess = np.maximum(w[0] - w, 0.0)
        # Σ (c − τ)₊ = 2λ over the r largest, in shifted terms so that nothing cancels
        sums = np.cumsum(excess)
        counts = np.arange(1, w.size + 1)
        r = int(np.flatnonzero(counts * excess < 2.0 * self.lam + sums)[-1])
        depth = float((2.0 * self.lam + sums[r]) / counts[r])
        parts = np.maximum(depth - (w[0] - c[chosen]), 0.0)
        weights[chosen] = parts / parts.sum()
        tau = w[0] - depth
        over = np.maximum(c[chosen] - tau, 0.0)
        squares = float((over**2).sum()) / (4.0 * self.lam)
        spread = float((over * (np.abs(c[chosen]) + abs(tau))).sum()) / self.lam
        margin = 2.0 * UNIT * ((w.size + 8) * squares + spread + abs(tau))
        return weights, -tau - squares - margin

    def _most_wanted(self, c: FloatArray) -> NDArray[np.intp]:
        required = np.flatnonzero(self.required)
        free = np.flatnonzero(self.free)
        if free.size > self.capacity:
            free = free[np.argsort(-c[free], kind="stable")[: self.capacity]]
        return np.concatenate([required, free])


@dataclass(frozen=True)
class KSupport:
    """``λ min{Σβⱼ²/zⱼ : Σz ≤ k₀, 0 ≤ z ≤ 1}``: λ times the squared k-support norm.

    The tightest convex penalty below ``λ‖β‖²`` restricted to at most k₀ nonzero weights; without
    k₀ it is ``λ‖β‖²`` itself, and at λ = 0 plain multiple kernel learning over the simplex.

    Parameters
    ----------
    lam : float
    k0 : int, optional

    Notes
    -----
    Argyriou, Foygel, Srebro, *Sparse prediction with the k-support norm*, NIPS 2012. With it the
    saddle value is that of the full semidefinite relaxation of sparse multiple kernel learning
    (Bertsimas, Iglesias, Johnson 2025, equation 14).

    Examples
    --------
    >>> KSupport(lam=1.0, k0=1).on(2).value(np.array([0.5, 0.5])) >= 1.0
    True
    """

    lam: float = 1.0
    k0: int | None = None

    def on(self, n_kernels: int) -> WeightPenalty:
        """Return the penalty of q weights."""
        lam, capacity = float(RIDGE.check("lam", self.lam)), n_kernels
        if self.k0 is not None:
            capacity = min(int(COUNT.check("k0", self.k0)), n_kernels)
        none = np.zeros(n_kernels, dtype=bool)
        return WeightPenalty(lam, capacity, none, none.copy())


def best_corner(v: FloatArray, kernels: Index) -> tuple[FloatArray, float]:
    """Return all weight on the largest ``v`` of some kernels, and its bound: the end at λ = 0."""
    weights = np.zeros_like(v)
    best = kernels[np.argmax(v[kernels])]
    weights[best] = 1.0
    return weights, -float(v[best])


def full_shares(weights: FloatArray, capacity: int) -> FloatArray:
    """Return ``0 ≤ z ≤ 1`` with ``Σz ≤ capacity`` that minimises ``Σβ²/z``, for positive β."""
    z = np.ones(weights.size)
    if weights.size <= capacity:
        return z
    order = np.argsort(-weights, kind="stable")
    tail = np.cumsum(weights[order][::-1])[::-1]
    for full in range(capacity):
        if weights[order[full]] * (capacity - full) <= tail[full]:
            break
    z[order[full:]] = weights[order[full:]] * ((capacity - full) / tail[full])
    return np.minimum(z, 1.0)
