"""The Newton system of the joint interior point, reduced to the dual variables.

With Aₖ = ½ c (Φₖ + Φₖᵀ), Φₖ = Σₗ uₗ G(xₖ, xₗ), a change du moves ½ c D(u) by Σₖ duₖ Aₖ, and a
change dS moves (K u)ₖ by ⟨dS, Aₖ⟩. In the Nesterov-Todd scaling G (Gᵀ Z G = G⁻¹ S G⁻ᵀ = diag d)
eliminating S, Z and λ leaves

    (K + A′ A′ᵀ) du + e + b = gain − K u − …,      A′ₖ = svec(Gᵀ Aₖ G) less its part along Gᵀ G,

one positive semidefinite matrix of the size of a Gram matrix, and the bounds add a diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.interrupts import aside
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, svd

from .variables import Moves, Parts, Variables

Flags = npt.NDArray[np.bool_]


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
        packed: FloatArray = X[..., i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
        return packed

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
        self.cholesky = aside(cho_factor, H, lower=True, overwrite_a=True, check_finite=False)
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
        du, b, S = self._solve(side, y, (1.0 - np.trace(at.S)) / self.norm)
        v = self.inverse * (side - parts.signs * (self._shift(side) - du) / self.sum)
        z, w = (low - at.z * v) / at.v, (high + at.w * v) / at.t
        multiplier = self._multiplier(y, du, (1.0 - np.trace(at.S)) / self.norm)
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

    def _multiplier(self, y: FloatArray, du: FloatArray, short: float) -> float:
        return float(self.along @ y + self.parallel @ du - short) / self.norm
