"""The variables of the joint interior point, their start, their moves and the step length.

The saddle in scaled units, with c = (1 − η) n_P and P = c S + η I,

    min over S ⪰ 0, tr S = 1   max over u   κ(u) − ½ Σₜ uₜᵀ K(P) uₜ,

has u = Σ signs·v with 0 ≤ v ≤ cap (one part for classes, two for numbers), t = cap − v, and
multipliers z of v ≥ 0, w of v ≤ cap, b of Σu = 0, λ of tr S = 1 and Z ⪰ 0 of S ⪰ 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from scipy.linalg import eigvalsh

# What keeps variables strictly positive where rounding ends a step at 0; its reciprocal is finite.
_TINY = 1e-290
# The middle of an interval is the start for numbers up to this many times what the kernel can use:
# at C = 1e300 the middle overflowed.
_FARTHEST = 1e12


@dataclass(frozen=True)
class Parts:
    """How the signed u of each task is made of bounded variables v.

    `signs`, `gain`, `cap` of shape (parts, tasks · samples): u = Σ signs·v, κ = Σ gain·v, 0 ≤ v ≤
    cap; `n_tasks`: number of tasks; their samples follow one another.
    """

    signs: FloatArray
    gain: FloatArray
    cap: FloatArray
    n_tasks: int

    @classmethod
    def of(cls, learner: Any, targets: RealArray, weight: RealArray | None) -> Parts:
        """Return the parts of a learner in scaled units; samples of weight 0 must be left out."""
        y = np.asarray(targets, dtype=np.float64).ravel()
        ones = np.ones(targets.shape[1]) if weight is None else np.asarray(weight)
        cap = np.tile(learner.C * ones, len(targets))
        if learner.name == "svc":
            return cls(y[None], np.ones((1, y.size)), cap[None], len(targets))
        signs = np.stack([np.ones(y.size), -np.ones(y.size)])
        gain = signs * y - learner.epsilon
        return cls(signs, gain, np.stack([cap, cap]), len(targets))

    def signed(self, v: FloatArray) -> FloatArray:
        """Return u of shape (tasks, samples)."""
        u: FloatArray = (self.signs * v).sum(axis=0).reshape(self.n_tasks, -1)
        return u


@dataclass
class Moves:
    """A direction in all variables; t moves by −v."""

    v: FloatArray
    z: FloatArray
    w: FloatArray
    b: FloatArray
    S: FloatArray
    Z: FloatArray
    multiplier: float
    scaled: tuple[FloatArray, FloatArray]


@dataclass
class Variables:
    """A point with every inequality strict; equalities hold up to residuals."""

    v: FloatArray
    t: FloatArray
    z: FloatArray
    w: FloatArray
    b: FloatArray
    S: FloatArray
    Z: FloatArray
    multiplier: float

    @property
    def count(self) -> int:
        """Number of complementary pairs."""
        return 2 * self.v.size + len(self.S)

    def total(self, moves: Moves | None = None, step: float = 0.0) -> float:
        """Return Σ vz + Σ tw + ⟨S, Z⟩, after a step along the moves."""
        v, t, z, w, S, Z = self.v, self.t, self.z, self.w, self.S, self.Z
        if moves is not None:
            v, t, S = v + step * moves.v, t - step * moves.v, S + step * moves.S
            z, w, Z = z + step * moves.z, w + step * moves.w, Z + step * moves.Z
        return float((v * z).sum() + (t * w).sum() + np.sum(S * Z))

    def advance(self, moves: Moves, step: float) -> Variables:
        """Return the point after a step."""
        S, Z = self.S + step * moves.S, self.Z + step * moves.Z
        return Variables(
            np.maximum(self.v + step * moves.v, _TINY),
            np.maximum(self.t - step * moves.v, _TINY),
            np.maximum(self.z + step * moves.z, _TINY),
            np.maximum(self.w + step * moves.w, _TINY),
            self.b + step * moves.b,
            0.5 * (S + S.T),
            0.5 * (Z + Z.T),
            self.multiplier + step * moves.multiplier,
        )

    def longest_step(self, moves: Moves, roots: FloatArray) -> float:
        """Return how far the moves can be followed; S and Z are both diag(roots) when scaled."""
        longest = np.inf
        for x, move in (
            (self.v, moves.v),
            (self.t, -moves.v),
            (self.z, moves.z),
            (self.w, moves.w),
        ):
            falling = move < 0.0
            if falling.any():
                longest = min(longest, float(np.min(x[falling] / -move[falling])))
        shape = np.sqrt(roots[:, None] * roots)
        for move in moves.scaled:
            least = float(eigvalsh(move / shape, check_finite=False)[0])
            if least < 0.0:
                longest = min(longest, -1.0 / least)
        return longest


def start(
    parts: Parts, K: RealArray, half_moment: Callable[[FloatArray], FloatArray], order: int
) -> Variables:
    """Return the first point: S = I/p and equal products v z = t w.

    For classes v is small, so that K u is. For numbers v is the middle of its interval, where u
    vanishes whatever C is: from a small v the steps to a large C stay short, and where K is rank
    deficient the path is never found. Far beyond what u can use the middle is not followed.

    `K` of shape (n_samples, n_samples): scaled Gram matrix of S = I/p; `half_moment`: u ↦ ½ c D(u),
    of order p; `order`: p.
    """
    reach = max(1.0, float(np.abs(parts.gain).max()))
    diagonal = max(float(np.diagonal(K).mean()), _TINY)
    most = reach / diagonal if len(parts.cap) == 1 else _FARTHEST * reach / diagonal
    v = np.minimum(0.5 * parts.cap, most)
    M = half_moment(parts.signed(v))
    z = np.full_like(v, reach)
    t = parts.cap - v
    w = z * (v / t)
    mean = float((v * z).mean())
    multiplier = max(1.5 * float(eigvalsh(M)[-1]), order * mean)
    Z = -M
    Z.flat[:: order + 1] += multiplier
    S = np.eye(order) / order
    return Variables(v, t, z, w, np.zeros(parts.n_tasks), S, Z, multiplier)
