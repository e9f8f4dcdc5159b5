"""The variables of the joint interior point, and their Newton system, reduced to the dual ones.

With Aₖ = ½ c (Φₖ + Φₖᵀ), Φₖ = Σₗ uₗ G(xₖ, xₗ), a change du moves ½ c D(u) by Σₖ duₖ Aₖ, and a
change dS moves (K u)ₖ by ⟨dS, Aₖ⟩. In the Nesterov-Todd scaling G (Gᵀ Z G = G⁻¹ S G⁻ᵀ = diag d)
eliminating S, Z and λ leaves

    (K + A′ A′ᵀ) du + e + b = gain − K u − …,      A′ₖ = svec(Gᵀ Aₖ G) less its part along Gᵀ G,

one positive semidefinite matrix of the size of a Gram matrix, and the bounds add a diagonal.

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
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.interrupts import run_interruptibly
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigvalsh, svd

Flags = npt.NDArray[np.bool_]

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
        v, t, z, w = (np.maximum(x + step * move, _TINY) for x, move in self._bounded(moves))
        b, multiplier = self.b + step * moves.b, self.multiplier + step * moves.multiplier
        return Variables(v, t, z, w, b, 0.5 * (S + S.T), 0.5 * (Z + Z.T), multiplier)

    def _bounded(self, moves: Moves) -> list[tuple[FloatArray, FloatArray]]:
        """Return v, t, z and w, each with its move."""
        return [(self.v, moves.v), (self.t, -moves.v), (self.z, moves.z), (self.w, moves.w)]

    def longest_step(self, moves: Moves, roots: FloatArray) -> float:
        """Return how far the moves can be followed; S and Z are both diag(roots) when scaled."""
        longest = np.inf
        for x, move in self._bounded(moves):
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


@dataclass(frozen=True)
class Symmetric:
    """Coordinates of symmetric matrices of order p in which inner products are plain."""

    order: int

    @property
    def _upper(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        return np.triu_indices(self.order)

    def pack(self, X: FloatArray) -> FloatArray:
        """Return the coordinates, shape (…, p(p+1)/2)."""
        i, j = self._upper
        return X[..., i, j] * np.where(i == j, 1.0, np.sqrt(2.0))

    def unpack(self, x: FloatArray) -> FloatArray:
        """Return the matrix of coordinates x."""
        i, j = self._upper
        X = np.zeros((self.order, self.order))
        X[i, j] = x * np.where(i == j, 1.0, np.sqrt(0.5))
        X[j, i] = X[i, j]
        return X


class NewtonSystem:
    """The linear system at one point, factored: about N² p²/2 + 4 N p³ + N³/3 flops.

    N is tasks times samples, p the order of S.

    - `parts`, `at`: the problem's bounds and the point
    - `K` of shape (n_samples, n_samples): scaled Gram matrix at the point
    - `A` of shape (N, p, p): the Aₖ
    - `M` of shape (p, p): ½ c D(u)

    Raises LinAlgError where rounding leaves a matrix without a Cholesky factor: the end of the
    road.
    """

    def __init__(
        self, parts: Parts, at: Variables, K: RealArray, A: FloatArray, M: FloatArray
    ) -> None:
        self.parts, self.at, self.A = parts, at, A
        p = len(at.S)
        self.packed = Symmetric(p)
        self.u = parts.signed(at.v)
        f = (self.u @ K).ravel()
        self.residual = parts.gain - parts.signs * (f + np.repeat(at.b, len(K))) + at.z - at.w
        self.excess = at.Z - at.multiplier * np.eye(p) + M
        self._scale()
        self._factor(K)

    def _scale(self) -> None:
        """Find G and d, and turn the Aₖ into A′ and their part along Gᵀ G."""
        at = self.at
        L, R = cholesky(at.S, lower=True), cholesky(at.Z, lower=True)
        _, self.roots, right = svd(R.T @ L)
        if not self.roots[-1] > 0.0:
            raise LinAlgError("the scaling is singular")
        self.G = (L @ right.T) / np.sqrt(self.roots)
        along = self.packed.pack(self.G.T @ self.G)
        self.norm = float(np.linalg.norm(along))
        self.along = along / self.norm
        step = max(1, 2**22 // self.A[0].size)
        self.rows = np.empty((len(self.A), len(along)))
        for first in range(0, len(self.A), step):
            block = slice(first, first + step)
            self.rows[block] = self.packed.pack(self.G.T @ (self.A[block] @ self.G))
        self.parallel = self.rows @ self.along
        self.rows -= np.outer(self.parallel, self.along)

    def _factor(self, K: RealArray) -> None:
        """Factor I + √Δ H √Δ, Δ the inverse of the diagonal that the bounds add."""
        at, n = self.at, len(K)
        self.inverse = 1.0 / (at.z / at.v + at.w / at.t)
        self.sum = self.inverse.sum(axis=0)
        self.root = np.sqrt(self.sum)
        H = self.rows @ self.rows.T
        for first in range(0, len(H), n):
            H[first : first + n, first : first + n] += K
        H *= self.root
        H *= self.root[:, None]
        H.flat[:: len(H) + 1] += 1.0
        self.cholesky = run_interruptibly(
            cho_factor, H, lower=True, overwrite_a=True, check_finite=False
        )
        self.ends = np.zeros((len(H), self.parts.n_tasks))
        for task in range(self.parts.n_tasks):
            rows = slice(task * n, (task + 1) * n)
            self.ends[rows, task] = self.root[rows]
        self.border = cho_solve(self.cholesky, self.ends, check_finite=False)

    def moves(
        self,
        target: float,
        affine: Moves | None,
        second: Callable[[Moves], tuple[FloatArray, FloatArray]],
    ) -> Moves:
        """Return the step to the complementarity ``target``.

        With an affine step given, ``second`` returns what it leaves of the two nonlinear
        equations, (dK du, ½ c D(du)), and all second-order terms are corrected for.
        """
        at, parts = self.at, self.parts
        goal = target * np.eye(len(self.roots)) - np.diag(self.roots**2)
        low, high = target - at.v * at.z, target - at.t * at.w
        residual, excess = self.residual, self.excess
        if affine is not None:
            low, high = low - affine.v * affine.z, high + affine.v * affine.w
            S, Z = affine.scaled
            goal = goal - 0.5 * (S @ Z + Z @ S)
            change, remainder = second(affine)
            residual, excess = residual - parts.signs * change, excess + remainder
        side = residual + low / at.v - high / at.t
        pack = self.packed.pack
        y = pack(2.0 * goal / (self.roots[:, None] + self.roots))
        y += pack(self.G.T @ excess @ self.G)
        short = (1.0 - np.trace(at.S)) / self.norm
        du, b, S = self._solve(side, y, short)
        v = self.inverse * (side - parts.signs * (self._shift(side) - du) / self.sum)
        z, w = (low - at.z * v) / at.v, (high + at.w * v) / at.t
        multiplier = float(self.along @ y + self.parallel @ du - short) / self.norm
        Z = multiplier * np.eye(len(self.roots)) - np.tensordot(du, self.A, axes=1) - excess
        scaled = self.packed.unpack(S)
        pair = (scaled, self.G.T @ Z @ self.G)
        return Moves(v, z, w, b, self.G @ scaled @ self.G.T, Z, multiplier, pair)

    def _shift(self, side: FloatArray) -> FloatArray:
        shift: FloatArray = (self.parts.signs * self.inverse * side).sum(axis=0)
        return shift

    def _solve(
        self, side: FloatArray, y: FloatArray, short: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return du, db and the scaled dS."""
        e = self.rows @ y + self.parallel * short
        right = self._shift(side) / self.root - self.root * e
        x = cho_solve(self.cholesky, right, check_finite=False)
        b = np.linalg.solve(self.ends.T @ self.border, self.ends.T @ x + self.u.sum(axis=1))
        du = self.root * (x - self.border @ b)
        across = y - self.along * (self.along @ y)
        S = across + self.rows.T @ du + self.along * short
        return du, b, S
