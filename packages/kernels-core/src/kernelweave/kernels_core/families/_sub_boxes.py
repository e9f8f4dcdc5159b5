"""Tessellated kernels whose z lies on the disjoint union of the sub-boxes of groups of columns.

The monomials are those of x alone, Φ(x). In the basis [Φ·I; Φ] a kernel needs three means over
the groups: V(x, y), the share of the sub-boxes above both points, v(x) that above one, and 1:

    k(x, y) = V(x, y) Φ(x)ᵀAΦ(y) + v(x) Φ(x)ᵀBΦ(y) + v(y) Φ(x)ᵀBᵀΦ(y) + Φ(x)ᵀCΦ(y),

[A, B; Bᵀ, C] being P there. V alone costs a pass over the columns of a pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import RealArray
from ..checks import check_vector
from ..config import row_bounds, run_blocks
from ..grams.unstored import Operator
from ..rounding import gamma
from ._arguments import BoundSamples, matrix, rows
from ._box import Float, TessellatedTables, indicator_blocks, power_products
from ._groups import Program, evaluate
from ._moments import RUN, blocked_product

# Rows whose volumes with all others are held at a time: enough for products of matrices, and a
# small part of the Gram matrix.
_ROWS = 256
# Volumes that are held at a time where they are weighted by sample: 32 MiB.
_ENTRIES = 2**22


class SubBoxes(NamedTuple):
    """Tables and corners of a family, and the program of the mean over its groups."""

    tables: TessellatedTables
    lower: Float
    upper: Float
    run: Program

    def sides(self, X: Float) -> Float:
        """Return the shares of the columns' ranges above X, shape (n, m)."""
        return np.ascontiguousarray(((self.upper - X) / (self.upper - self.lower)).T)

    def monomials(self, X: Float) -> Float:
        """Return Φ(X), shape (m, n_x)."""
        return power_products(X, self.tables.x_powers)

    def volumes(self, left: Float, right: Float) -> Float:
        """Return V for the sides of two sets of points, shape (rows, columns)."""
        from ._njit_volumes import mean_volumes

        out = np.empty((left.shape[1], right.shape[1]))
        steps, factors, n_registers, _ = self.run
        mean_volumes(
            np.ascontiguousarray(left), np.ascontiguousarray(right), steps, factors,
            n_registers, out,
        )  # fmt: skip
        return out

    def block(self, x: Float, y: Float) -> Float:
        """Return ``G(x, y)``, shape (2q, 2q), entries that vanish exactly zero.

        The program runs on the four integrals over z above both points, above x only, above y
        only and above neither: nothing is subtracted.
        """
        width, low, high = self.upper - self.lower, np.minimum(x, y), np.maximum(x, y)
        both, below = (self.upper - high) / width, (low - self.lower) / width
        only_x, only_y = (y - low) / width, (x - low) / width
        r = np.zeros((self.run.n_registers, 4))
        r[0, 0] = 1.0
        for (target, source, j), (a, b) in zip(self.run.steps, self.run.factors, strict=True):
            g, t, s, h = r[source]
            below_x, below_y = below[j] + only_y[j], below[j] + only_x[j]
            wider = (
                g * both[j],
                t * (both[j] + only_x[j]) + g * only_x[j],
                s * (both[j] + only_y[j]) + g * only_y[j],
                h + t * below_x + s * below_y + g * below[j],
            )
            r[target] = a * r[target] + b * np.array(wider)
        fx, fy = self.monomials(np.stack([x, y]))
        return np.kron(r[-1].reshape(2, 2), np.outer(fx, fy))


class BoxedSamples(NamedTuple):
    """Samples with their monomials Φ (m, n_x), sides (n, m) and v (m,)."""

    F: Float
    sides: Float
    above: Float

    @classmethod
    def of(cls, boxes: SubBoxes, X: Float) -> BoxedSamples:
        sides = boxes.sides(X)
        return cls(boxes.monomials(X), sides, evaluate(boxes.run, sides))


class _Forms(NamedTuple):
    """What a P asks of one side: Φ, ΦA and ``v·ΦB + ½ΦC``, (m, n_x) each, and the sides."""

    F: Float
    inner: Float
    edge: Float
    sides: Float

    @classmethod
    def of(cls, at: BoxedSamples, P: Float) -> _Forms:
        F, sides, above = at
        A, B, C = indicator_blocks(P)
        return cls(F, F @ A, above[:, None] * (F @ B) + F @ (0.5 * C), sides)

    def rectangle(
        self, boxes: SubBoxes, rows: NDArray[np.intp] | slice, other: _Forms,
        columns: NDArray[np.intp] | slice,
    ) -> Float:  # fmt: skip
        """Return entries between some of these samples and some of others."""
        F = other.F[columns]
        entries = boxes.volumes(self.sides[:, rows], other.sides[:, columns])
        entries *= self.inner[rows] @ F.T
        entries += self.edge[rows] @ F.T
        entries += self.F[rows] @ other.edge[columns].T
        return entries


def gram_rectangular(boxes: SubBoxes, X: Float, Y: Float, P: Float) -> Float:
    """Return ``⟨P, G(xₖ, yₗ)⟩``, shape (n_x, n_y)."""
    left, right = (_Forms.of(BoxedSamples.of(boxes, points), P) for points in (X, Y))
    out = np.empty((len(X), len(Y)))

    def work(start: int, stop: int) -> None:
        for c in range(start, stop, _ROWS):
            rows = slice(c, min(c + _ROWS, stop))
            out[rows] = left.rectangle(boxes, rows, right, slice(None))

    run_blocks(work, row_bounds(len(X), lower=False), float(out.size) * len(boxes.run.steps))
    return out


def diagonal(at: BoxedSamples, P: Float) -> Float:
    """Return ``⟨P, G(xₖ, xₖ)⟩``, shape (m,)."""
    forms = _Forms.of(at, P)
    return np.asarray(np.sum((at.above[:, None] * forms.inner + 2.0 * forms.edge) * at.F, axis=1))


class SubBoxOperator(Operator):
    """The Gram matrix of one P over the samples, of any sign.

    `P` of shape (n_P, n_P).
    """

    def __init__(self, boxes: SubBoxes, at: BoxedSamples, P: Float) -> None:
        self._boxes, self._forms = boxes, _Forms.of(at, P)
        self._diagonal = diagonal(at, P)
        self.n_samples = len(at.F)

    def block(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp] | slice, out: RealArray
    ) -> None:
        """Write the entries of some rows and columns, in the dtype of ``out``."""
        out[:] = self._forms.rectangle(self._boxes, rows, self._forms, columns)

    def diagonal(self) -> Float:
        """Return the diagonal, shape (m,), float64."""
        return self._diagonal

    def fill(self, out: RealArray) -> None:
        """Write the whole matrix, exactly symmetric, in the dtype of ``out``."""
        self._fill(np.zeros(self.n_samples), out)

    def fill_centred(self, out: RealArray) -> None:
        """Write ``k(x, y) − k(x, z) − k(z, y) + k(z, z)``, z the sample nearest to the mean."""
        sides = self._forms.sides
        z = int(np.argmin(np.sum((sides - sides.mean(axis=1)[:, None]) ** 2, axis=0)))
        column = np.empty((self.n_samples, 1))
        self.block(np.arange(self.n_samples), np.array([z]), column)
        self._fill(column[:, 0] - 0.5 * column[z, 0], out)

    def _fill(self, shift: Float, out: RealArray) -> None:
        """Write ``k(x, y) − shift(x) − shift(y)``."""
        forms = self._forms

        def work(start: int, stop: int) -> None:
            for c in range(start, stop, _ROWS):
                end = min(c + _ROWS, stop)
                part = forms.rectangle(self._boxes, slice(c, end), forms, slice(0, end))
                part -= shift[c:end, None]
                part -= shift[:end]
                corner = np.tril(part[:, c:])
                out[c:end, :c], out[:c, c:end] = part[:, :c], part[:, :c].T
                out[c:end, c:end] = corner + np.tril(corner, -1).T

        steps = 0.5 * out.size * (3.0 * len(self._boxes.run.steps) + 6.0 * forms.F.shape[1])
        run_blocks(work, row_bounds(self.n_samples, lower=True), steps)


class Moments:
    """The moment matrix over samples, its rounding error and its derivative by sample."""

    def __init__(self, boxes: SubBoxes, at: BoxedSamples) -> None:
        self._boxes, self._bound = boxes, at

    def _active(self, W: Float) -> tuple[BoxedSamples, Float]:
        """Return the samples that have weights, and their weights."""
        used = np.flatnonzero(np.any(W != 0.0, axis=0))
        F, sides, above = self._bound
        part = BoxedSamples(F[used], np.ascontiguousarray(sides[:, used]), above[used])
        return part, np.ascontiguousarray(W[:, used])

    def _inner(self, at: BoxedSamples, W: Float) -> Float:
        """Return ``Σₖₗ Σₜ Wₜₖ Wₜₗ V(xₖ, xₗ) Φ(xₖ) Φ(xₗ)ᵀ``, shape (n_x, n_x)."""
        F, sides, _ = at

        def work(start: int, stop: int) -> Float:
            total = np.zeros((F.shape[1],) * 2)
            for c in range(start, stop, _ROWS):
                end = min(c + _ROWS, stop)
                V = self._boxes.volumes(sides[:, c:end], sides[:, :end])
                V *= W[:, c:end].T @ W[:, :end]
                V[:, c:] *= 0.5
                total += F[c:end].T @ blocked_product(V, F[:end])
            return total

        steps = 0.5 * float(len(F)) ** 2 * (3.0 * len(self._boxes.run.steps) + 2.0 * F.shape[1])
        parts = run_blocks(work, row_bounds(len(F), lower=True), steps)
        half: Float = np.sum(parts, axis=0)
        return half + half.T

    def moment(self, W: Float) -> Float:
        """Return ``D = Σₜ D(Wₜ)``, shape (n_P, n_P)."""
        q = self._boxes.tables.q
        at, W = self._active(W)
        if len(at.F) == 0:
            return np.zeros((2 * q, 2 * q))
        s, ends = blocked_product(W, at.F), blocked_product(W * at.above, at.F)
        inner, cross = self._inner(at, W), ends.T @ s
        side = cross - inner
        corner = s.T @ s - (cross + cross.T) + inner
        return np.block([[inner, side], [side.T, corner]])

    def error(self, W: Float) -> float:
        """Bound ``‖moment − D‖₂``; see the docstring of the public method for the argument.

        ``V(x, y)² ≤ v(x) v(y)`` makes the sizes of the block over pairs a product of single sums.
        """
        at, W = self._active(W)
        if len(at.F) == 0:
            return 0.0
        (m, _), t, d = at.F.shape, len(W), self._boxes.tables.degree
        run, sums = self._boxes.run.roundings, RUN + np.ceil(m / RUN)
        blocks = _ROWS + m / _ROWS + 40.0
        F, weights = np.abs(at.F), np.abs(W)
        single = (weights * np.sqrt(at.above)) @ F
        inner = gamma(run + t + 2 * d + sums + blocks + 8) * (single.T @ single)
        s, ends = blocked_product(W, at.F), blocked_product(W * at.above, at.F)
        s_off = gamma(sums + d + 2) * (weights @ F)
        ends_off = gamma(sums + run + d + 4) * ((weights * at.above) @ F)
        cross = _product_error(ends, ends_off, s, s_off, t)
        whole = _product_error(s, s_off, s, s_off, t)
        side = inner + cross
        bound = np.block([[inner, side], [side.T, whole + cross + cross.T + inner]])
        norm = min(float(np.linalg.norm(bound)), float(bound.sum(axis=1).max()))
        return norm * (1.0 + 1e-6)

    def by_sample(self, w: Float, U: Float, rows: NDArray[np.intp]) -> Float:
        """Return ``(Φₖ + Φₖᵀ) U``, ``Φₖ = Σₗ wₗ G(xₖ, xₗ)``, for k in rows: (s, n_P, r)."""
        at, (weights,) = self._active(w[None, :])
        s, ends = weights @ at.F, (weights * at.above) @ at.F
        step = max(1, _ENTRIES // max(1, len(weights)))
        parts = []
        for start in range(0, len(rows), step):
            chosen = rows[start : start + step]
            V = self._boxes.volumes(self._bound.sides[:, chosen], at.sides)
            parts.append(self._contract(chosen, (V * weights) @ at.F, s, ends, U))
        return np.concatenate(parts) if parts else np.empty((0, *U.shape))

    def _contract(
        self, rows: NDArray[np.intp], pairs: Float, s: Float, ends: Float, U: Float
    ) -> Float:
        """Return the sums by sample of `by_sample`, pairs being ``Σₗ wₗ V(xₖ, xₗ) Φ(xₗ)``."""
        q = self._boxes.tables.q
        F, v = self._bound.F[rows], self._bound.above[rows, None]
        rho, psi = U[:q] - U[q:], U[q:]
        first = F[:, :, None] * (pairs @ rho + v * (s @ psi))[:, None, :]
        first += pairs[:, :, None] * (F @ rho)[:, None, :]
        first += ends[None, :, None] * (F @ psi)[:, None, :]
        second = F[:, :, None] * (ends @ rho + s @ psi)
        second += s[None, :, None] * (v * (F @ rho) + F @ psi)[:, None, :]
        return np.concatenate([first, second - first], axis=1)


def _product_error(a: Float, a_off: Float, b: Float, b_off: Float, t: int) -> Float:
    """Bound the error of ``Σₜ aₜ bₜᵀ`` for factors that are off by a_off and b_off."""
    size_a, size_b = np.abs(a), np.abs(b)
    off = size_a.T @ b_off + a_off.T @ size_b + a_off.T @ b_off
    return np.asarray(off + gamma(t + 6.0) * (size_a.T @ size_b))


class PreparedSubBoxes(BoundSamples):
    """Groups of columns in the place of all, and monomials of x alone; see ``_sub_boxes``.

    `scale`: 1: every mean over groups is a share of 1.
    """

    scale = 1.0

    def __init__(self, boxes: SubBoxes, X: Float, dtype: np.dtype[np.floating]) -> None:
        super().__init__(2 * boxes.tables.q, len(X), dtype)
        self._boxes, self._at = boxes, BoxedSamples.of(boxes, X)
        self._moments = Moments(boxes, self._at)

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = ⟨P, G(xₖ, xₗ)⟩``, shape (m, m), for a symmetric P."""
        out = self._output(out)
        self.unstored(P).fill(out)
        return out

    def unstored(self, P: ArrayLike) -> SubBoxOperator:
        """Return the Gram matrix of one P as an object that computes entries and products."""
        return SubBoxOperator(self._boxes, self._at, matrix(P, self.n_P))

    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``D = Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``, for W of shape (m,) or (t, m)."""
        return self._moments.moment(rows(W, self.n_samples))

    def moment_error(self, W: ArrayLike) -> float:
        """Return a proven bound on ``‖moment(W) − D(W)‖₂``, D the exact moment matrix.

        The argument is that of the full product: a result that meets at most k relative
        roundings on the way of any term is off by at most ``γₖ Σ|terms|``, in whatever order they
        are summed; sums of weights that cancel enter by their values and their own errors.
        """
        return self._moments.error(rows(W, self.n_samples))

    def sample_products(
        self, w: ArrayLike, U: ArrayLike, samples: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the derivative of ``(K(UUᵀ) w)ₖ`` in U, shape (len(samples), n_P, r)."""
        chosen = np.asarray(samples, dtype=np.intp)
        factor = np.asarray(U, dtype=np.float64)
        return self._moments.by_sample(check_vector("w", w, self.n_samples), factor, chosen)
