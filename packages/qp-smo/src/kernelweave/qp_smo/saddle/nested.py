"""The penalty of few views and few kernels within each: a k-support norm of k-support norms."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import COUNT
from kernelweave.kernels_core.rounding import UNIT
from numpy.typing import NDArray

from .penalties import RIDGE, WeightPenalty, best_corner, full_shares

# Halvings of the interval of τ, after which it is a few roundings wide.
_HALVINGS = 60


@dataclass(frozen=True)
class NestedPenalty(WeightPenalty):
    """``λ min{Σβⱼ²/zⱼ}`` over the hull of the supports of few views with few kernels each.

    That hull is ``{0 ≤ zⱼ ≤ w_v, Σ_{j in v} zⱼ ≤ k w_v, Σ w ≤ g, w ≤ 1}``: a point of it is the
    mean of supports for which views are drawn with the means w, and then, in each view drawn, k
    kernels with the means ``zⱼ/w_v``. ``capacity`` is k here, of every view, and required kernels
    take their part of it; ``view`` has the view of each kernel, and ``n_views`` is g. It is the
    g-support norm of the k-support norms of the views.
    """

    view: NDArray[np.intp]
    n_views: int

    @classmethod
    def of(cls, lam: float, k0: int, views: Sequence[Hashable], n_views: int) -> NestedPenalty:
        """Return the penalty of as many weights as ``views`` has names, without a branch."""
        places = {name: place for place, name in enumerate(dict.fromkeys(views))}
        none = np.zeros(len(views), dtype=bool)
        return cls(
            lam=float(RIDGE.check("lam", lam)),
            capacity=int(COUNT.check("k0", k0)),
            required=none,
            excluded=none.copy(),
            view=np.array([places[name] for name in views], dtype=np.intp),
            n_views=int(COUNT.check("n_views", n_views)),
        )

    @property
    def required_views(self) -> NDArray[np.bool_]:
        """Return which views have a required kernel, shape (number of views,)."""
        return self._count(self.required) > 0

    @property
    def left(self) -> NDArray[np.intp]:
        """Return how many kernels more each view may have, shape (number of views,)."""
        return np.maximum(self.capacity - self._count(self.required), 0)

    @property
    def n_views_left(self) -> int:
        """Return how many views more there may be."""
        return max(self.n_views - int(self.required_views.sum()), 0)

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Return which weights may be positive, shape (q,)."""
        may = (self.left > 0) & (self.required_views | (self.n_views_left > 0))
        return self.required | (~self.excluded & may[self.view])

    @property
    def is_tight(self) -> bool:
        """Whether every allowed kernel can have ``z = 1``: the penalty is the plain ridge."""
        counts = self._count(self.allowed)
        return int((counts > 0).sum()) <= self.n_views and int(counts.max()) <= self.capacity

    @property
    def n_supports(self) -> int:
        """Return how many supports of the largest size there are."""
        free, left = self._count(self.free), self.left
        ways = [comb(int(n), min(int(k), int(n))) for n, k in zip(free, left, strict=True)]
        required = self.required_views
        # of how many views each sum is: the elementary symmetric polynomials, one by one
        sums = [1] + [0] * self.n_views_left
        for each in (w for w, r, n in zip(ways, required, free, strict=True) if n and not r):
            for size in range(len(sums) - 1, 0, -1):
                sums[size] += each * sums[size - 1]
        most = max(size for size, total in enumerate(sums) if total)
        total = sums[most]
        for each in (w for w, r in zip(ways, required, strict=True) if r):
            total *= each
        return total

    def restricted(self, required: NDArray[np.bool_], excluded: NDArray[np.bool_]) -> NestedPenalty:
        """Return the penalty of a branch: more required and more excluded kernels."""
        return replace(self, required=required, excluded=excluded)

    def over(self, kernels: NDArray[np.intp]) -> NestedPenalty:
        """Return the penalty of some kernels alone, the others having no weight."""
        return replace(
            self,
            required=self.required[kernels],
            excluded=self.excluded[kernels],
            view=self.view[kernels],
        )

    def on_support(self, support: NDArray[np.bool_]) -> WeightPenalty:
        """Return the ridge on one support, shape (q,)."""
        return WeightPenalty(self.lam, 0, support, ~support)

    def is_met(self, support: NDArray[np.bool_]) -> bool:
        """Whether a support, shape (q,), has few enough views and kernels in each."""
        counts = self._count(support)
        return int((counts > 0).sum()) <= self.n_views and int(counts.max()) <= self.capacity

    def largest(self, rank: FloatArray) -> NDArray[np.bool_]:
        """Return the support of the largest ranks, shape (q,): in each view, then of the views."""
        kept = np.zeros(rank.size, dtype=bool)
        for members in self._members(np.ones(rank.size, dtype=bool)):
            kept[members[np.argsort(-rank[members], kind="stable")[: self.capacity]]] = True
        scores = self._sum(np.where(kept, rank, 0.0) ** 2)
        best = np.argsort(-scores, kind="stable")[: self.n_views]
        kept &= np.isin(self.view, best)
        return kept

    def shares(self, weights: FloatArray) -> FloatArray:
        """Return a feasible z, shape (q,), that minimises ``Σβ²/z``; 0 where β is 0.

        Within a view that has w = 1 it is that of the k-support norm, and of the views the squares
        of these norms are to a g-support norm what ``β²`` is to it: ``Σ s_v/w_v``.
        """
        z = np.where(weights > 0.0, 1.0, 0.0)
        used = self.free & (weights > 0.0)
        left = self.left
        squares = np.zeros(left.size)
        for members in self._members(used):
            v = self.view[members[0]]
            z[members] = full_shares(weights[members], int(left[v]))
            squares[v] = (weights[members] ** 2 / z[members]).sum()
        moving = np.flatnonzero((squares > 0.0) & ~self.required_views)
        w = np.ones(left.size)
        w[moving] = full_shares(np.sqrt(squares[moving]), self.n_views_left)
        z[used] *= w[self.view[used]]
        return z

    def best_response(self, c: FloatArray) -> tuple[FloatArray, float]:
        """Minimise ``penalty(β) − cᵀβ`` over the simplex; return β and a proven lower bound.

        For any τ the minimum is at least ``−τ − Σ(c − τ)₊²/4λ``, over the kernels that make this
        sum the largest: the k largest c of each view, and the g views with the largest sums. It is
        concave in τ. β answers the best τ and is sparse, so that it is the minimiser but where
        views tie.
        """
        kernels = self._candidates(c)
        if self.lam == 0.0:
            return best_corner(c, kernels)
        weights = np.zeros_like(c)
        top = float(c[kernels].max())
        views = _Views(self, kernels, top - c[kernels])
        low, high = 0.0, 2.0 * self.lam
        depth, rounding = high, 4.0 * UNIT * kernels.size * self.lam
        for _ in range(_HALVINGS):
            parts = views.response(depth)
            used = parts > 0.0
            left = 2.0 * self.lam - float(parts.sum())
            if abs(left) <= rounding:
                high = depth
                break
            if left > 0.0:
                low = depth
            else:
                high = depth
            # where the same kernels answer, the sum is linear in τ
            step = depth + left / max(int(used.sum()), 1)
            depth = step if low < step < high else 0.5 * (low + high)
            if high - low <= 4.0 * UNIT * high:
                break
        parts = views.response(high)
        weights[kernels] = parts / parts.sum()
        tau = top - high
        over = np.where(parts > 0.0, np.maximum(c[kernels] - tau, 0.0), 0.0)
        squares = float((over**2).sum()) / (4.0 * self.lam)
        spread = float((over * (np.abs(c[kernels]) + abs(tau))).sum()) / self.lam
        margin = 2.0 * UNIT * ((kernels.size + 16) * squares + 2.0 * spread + abs(tau))
        return weights, -tau - squares - margin

    def _candidates(self, c: FloatArray) -> NDArray[np.intp]:
        """Return the kernels that any τ may choose: the required, and the largest of each view."""
        left = self.left
        chosen = [np.flatnonzero(self.required)]
        free = np.flatnonzero(self.free)
        order = free[np.lexsort((-c[free], self.view[free]))]
        first = np.searchsorted(self.view[order], self.view[order])
        chosen.append(order[np.arange(order.size) - first < left[self.view[order]]])
        return np.concatenate(chosen)

    def _members(self, mask: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
        """Yield the kernels of each view that has one in a mask."""
        at = np.flatnonzero(mask)
        order = at[np.argsort(self.view[at], kind="stable")]
        ends = np.flatnonzero(np.diff(self.view[order])) + 1
        return iter(np.split(order, ends) if order.size else [])

    def _count(self, mask: NDArray[np.bool_]) -> NDArray[np.intp]:
        return self._sum(mask.astype(np.float64)).astype(np.intp)

    def _sum(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.view, weights=values, minlength=1), dtype=np.float64)


class _Views:
    """``(v − τ)₊`` of the kernels in the views that are best at one τ, for many τ.

    `kernels`: those that any τ may choose; `below` of the same shape: the largest v less theirs.
    """

    def __init__(
        self, penalty: NestedPenalty, kernels: NDArray[np.intp], below: FloatArray
    ) -> None:
        self._view = penalty.view[kernels]
        self._below = below
        self._required = penalty.required_views
        self._n = penalty.n_views_left

    def response(self, depth: float) -> FloatArray:
        """Return them where τ lies ``depth`` below the largest v, 0 in the other views."""
        parts = np.maximum(depth - self._below, 0.0)
        scores = np.bincount(self._view, weights=parts * parts, minlength=self._required.size)
        taken = self._required.copy()
        others = np.flatnonzero(~taken & (scores > 0.0))
        if others.size > self._n:
            others = others[np.argsort(-scores[others], kind="stable")[: self._n]]
        taken[others] = True
        return np.where(taken[self._view], parts, 0.0)
