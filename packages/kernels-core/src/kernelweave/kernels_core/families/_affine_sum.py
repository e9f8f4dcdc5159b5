"""Gram matrices of a positive semidefinite P with affine integrands, stored or not.

``⟨P, G(x, y)⟩ = Σ_f v_fᵀ G(x, y) v_f`` for ``P = Σ v_f v_fᵀ``; see the file of the affine kernels
for one factor. All are summed in one pass over the pairs, which needs no stored volumes.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import RealArray
from ..config import row_bounds, run_blocks
from ..grams.unstored import Operator
from ..rounding import UNIT
from . import _affine
from ._box import Float, power_products
from ._general import Box
from ._moments import RUN, binary_units, blocked_product

# The tile of the compiled pass, which is imported only where it runs: here they count its
# roundings.
_WIDTH = 128
_BAND = 32
# 2²⁷ + 1, with which Veltkamp splits the 53 bits of a float64 into two halves.
_SPLIT = 134217729.0
# Pairs of samples that are worked on at a time: their minima stay in the cache.
_PAIRS = 8192


class _Terms(NamedTuple):
    """The arguments of the compiled passes for one set of samples on both sides, see `sum_rows`."""

    sides: RealArray
    n: int
    weights: RealArray
    slopes: RealArray
    ends: RealArray
    left: RealArray
    right: RealArray

    def cast(self, dtype: np.dtype[np.floating]) -> _Terms:
        sides, n, *rest = self
        return _Terms(
            sides.astype(dtype, copy=False), n, *(x.astype(dtype, copy=False) for x in rest)
        )

    def of(self, samples: NDArray[np.intp] | slice) -> _Terms:
        """Return the terms of some of the samples."""
        part = [np.ascontiguousarray(x[:, samples]) for x in (self.sides, *self[4:])]
        return _Terms(part[0], self.n, self.weights, self.slopes, *part[1:])


def _terms(box: Box, X: Float, factors: Float, units: Float, power: int) -> _Terms:
    """Return the arguments of the compiled passes for the rows v_f of factors; O(m n f)."""
    (m, n), f = X.shape, len(factors)
    n4, even = 4 * ceil(n / 4), f + f % 2
    root = float(np.ldexp(1.0, power // 2))
    has_z = box.tables.z_degree > 0
    sides, slopes = np.zeros((n4, m)), np.zeros((even, n4 if has_z else 0))
    sides[:n] = (box.upper - X).T * units[:, None]
    ends, size = np.zeros((even, m)), 4 * ceil((2 * f + 2) / 4)
    left, right = np.zeros((size, m)), np.zeros((size, m))
    left[2 * f + 1] = right[2 * f] = 1.0
    for i, v in enumerate(factors):
        c = _affine.coefficients(box.tables, v)
        slopes[i, : len(c.rho_z)] = c.rho_z * root / units[: len(c.rho_z)]
        end, e, a, k = _affine.outer_parts(box, c, X)
        balance = _affine.balance(e, a)
        ends[i] = root * end
        left[i] = right[f + i] = balance * e
        left[f + i] = right[i] = a / balance
        left[2 * f] += k
    right[2 * f + 1] = left[2 * f]
    weights = np.sum(slopes * slopes, axis=0) / 12.0
    return _Terms(sides, n, weights, 0.5 * slopes, ends, left, right)


def _steps(terms: _Terms, pairs: float) -> float:
    return pairs * (2.0 * terms.n + len(terms.slopes) * (terms.n + 2.0))


def _rectangle(left: _Terms, right: _Terms, out: RealArray) -> None:
    from ._njit_affine_sum import sum_rows

    def work(start: int, stop: int) -> None:
        sum_rows(
            left.sides, right.sides, left.n, left.weights, left.slopes, left.ends, right.ends,
            left.left, right.right, out, start, stop, False,
        )  # fmt: skip

    run_blocks(work, row_bounds(len(out), lower=False), _steps(left, float(out.size)))


def gram_rectangular(box: Box, X: Float, Y: Float, factors: Float, out: Float) -> None:
    """Write ``Σ_f vᵀ G(xₖ, yₗ) v`` over the rows v of factors (f, n_P)."""
    units, power = binary_units((box.upper - box.lower)[:, None])
    both = _terms(box, np.vstack([X, Y]), factors, units, power)
    _rectangle(both.of(slice(len(X))), both.of(slice(len(X), None)), out)


class AffineSum(Operator):
    """The Gram matrix of one P over the samples, computed where it is asked for.

    `X` of shape (m, n); `factors` of shape (f, n_P): rows v_f with ``P = Σ v_f v_fᵀ``; `units`,
    `power`: binary units of the sides and the exponent of their product, as `binary_units` gives.
    """

    def __init__(self, box: Box, X: Float, factors: Float, units: Float, power: int) -> None:
        self._all = _terms(box, X, factors, units, power)
        self._n_factors = len(factors)
        self.n_samples = len(X)
        self._middle = int(np.argmin(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))

    def fill(self, out: RealArray) -> None:
        """Write the whole matrix, exactly symmetric, in the dtype of ``out``."""
        self._fill(self._all, out)

    def fill_centred(self, out: RealArray) -> None:
        """Write ``k(x, y) − k(x, z) − k(z, y) + k(z, z)``, z the sample nearest to the mean.

        Positive semidefinite, and the same quadratic form on vectors that sum to 0; without the
        constants, which carry the volume of the box, the entries are small and so is their
        rounding.
        """
        t, z, f = self._all, self._middle, self._n_factors
        column = np.empty((self.n_samples, 1))
        self.block(np.arange(self.n_samples), np.array([z]), column)
        inner = column[:, 0] - t.left.T @ t.right[:, z]
        left, right = t.left.copy(), t.right.copy()
        left[: 2 * f] -= left[: 2 * f, z, None]
        left[2 * f] = 0.5 * inner[z] - inner
        right[:f], right[f : 2 * f], right[2 * f + 1] = left[f : 2 * f], left[:f], left[2 * f]
        self._fill(t._replace(left=left, right=right), out)

    @staticmethod
    def _fill(terms: _Terms, out: RealArray) -> None:
        from ._njit_affine_sum import sum_rows

        s, n, w, H, B, L, R = terms.cast(out.dtype)

        def work(start: int, stop: int) -> None:
            sum_rows(s, s, n, w, H, B, B, L, R, out, start, stop, True)

        run_blocks(work, row_bounds(len(out), lower=True), _steps(terms, 0.5 * out.size))

    def block(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp] | slice, out: RealArray
    ) -> None:
        """Write the entries of some rows and columns, in the dtype of ``out``."""
        left = self._all.of(rows).cast(out.dtype)
        _rectangle(left, self._all.of(columns).cast(out.dtype), out)

    def product(self, W: Float) -> Float:
        """Return ``K W``, shape (t, m), float64; columns of W (t, m) that are zero cost nothing."""
        from ._njit_affine_sum import sum_products

        used = np.any(W != 0.0, axis=0)
        order = np.concatenate([np.flatnonzero(used), np.flatnonzero(~used)])
        n_used, m = int(used.sum()), self.n_samples
        terms, weights = self._all.of(order), np.ascontiguousarray(W[:, order[:n_used]])

        def work(start: int, stop: int) -> Float:
            out = np.zeros((len(W), m))
            s, n, w, H, B, L, R = terms
            sum_products(s, n, w, H, B, L, R, weights, n_used, start, stop, out)
            return out

        total = np.zeros((len(W), m))
        if n_used:
            bounds = row_bounds(n_used, lower=True)
            bounds += [(a + n_used, b + n_used) for a, b in row_bounds(m - n_used, lower=False)]
            steps = _steps(terms, n_used * (m - 0.5 * n_used))
            for part in run_blocks(work, bounds, steps):
                total += part
        product = np.empty_like(total)
        product[:, order] = total
        return product

    def diagonal(self) -> Float:
        """Return the diagonal, shape (m,), float64."""
        s, n, w, H, B, L, R = self._all
        volume = np.prod(s[:n], axis=0)
        inner = np.zeros(self.n_samples) if H.size == 0 else w @ (s * s)
        line = B if H.size == 0 else B - H @ s
        return np.asarray(volume * (inner + np.sum(line * line, axis=0)) + np.sum(L * R, axis=0))

    @property
    def n_additions(self) -> float:
        """Return how many additions a term of `product` meets at most.

        128 of a run, the runs of a row, 32 of a band, the bands, and the blocks.
        """
        return _WIDTH + _BAND + self.n_samples / _WIDTH + self.n_samples / _BAND + 40.0


class DecisionValues(NamedTuple):
    """Values up to a constant per task, and bounds of their errors, (t, m) each."""

    values: Float
    error: Float


def gamma(count: float) -> float:
    """Return ``ku/(1 − ku)`` for k roundings, rounded up."""
    return 1.001 * count * UNIT / (1.0 - count * UNIT)


class _Parts(NamedTuple):
    """B, α and Φ·ψ of every factor and sample with sizes that bound them: (f, m) each."""

    ends: Float
    reach: Float
    alpha: Float
    alpha_size: Float
    other: Float
    other_size: Float


def _parts(box: Box, X: Float, F: Float, chosen: list[_affine.Coefficients]) -> _Parts:
    sides = box.upper - X
    volume = np.prod(sides, axis=1)
    mean = 0.5 * (X + box.upper)
    reach = np.maximum(np.abs(X), np.abs(box.upper))
    rows: list[tuple[Float, ...]] = []
    for c in chosen:
        rho, size = F @ c.rho_x, np.abs(F) @ np.abs(c.rho_x)
        z = slice(len(c.rho_z))
        at_mean, at_end = mean[:, z] @ c.rho_z, box.upper[z] @ c.rho_z
        largest = reach[:, z] @ np.abs(c.rho_z)
        rows.append(
            (
                rho + at_end,
                size + np.abs(box.upper[z]) @ np.abs(c.rho_z),
                volume * (rho + at_mean),
                volume * (size + largest),
                F @ c.psi_x,
                np.abs(F) @ np.abs(c.psi_x),
            )
        )
    return _Parts(*(np.stack(part) for part in zip(*rows, strict=True)))


def _pairs(
    box: Box, X: Float, chosen: list[_affine.Coefficients], parts: _Parts, W: Float
) -> tuple[Float, Float]:
    """Return the sums over pairs and the sums of their sizes, (t, m) each."""
    used = np.flatnonzero(np.any(W != 0.0, axis=0))
    sides = np.ascontiguousarray((box.upper - X).T)
    slopes = np.zeros((len(chosen), len(sides)))
    for slope, c in zip(slopes, chosen, strict=True):
        slope[: len(c.rho_z)] = 0.5 * c.rho_z
    squares = np.sum(slopes * slopes, axis=0) / 3.0
    weights = np.ascontiguousarray(W[:, used].T)
    values, sizes = np.zeros(W.shape), np.zeros(W.shape)
    step = max(1, _PAIRS // max(len(used), 1))

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, step):
            rows = slice(first, min(first + step, stop))
            V, term, large = _pair_terms(sides, slopes, squares, parts, rows, used)
            values[:, rows] = blocked_product(V * term, weights).T
            sizes[:, rows] = blocked_product(V * large, np.abs(weights)).T

    steps = float(len(X)) * len(used) * X.shape[1] * (4.0 * len(chosen) + 5.0)
    run_blocks(work, row_bounds(len(X), lower=False), steps)
    return values, sizes


def _pair_terms(
    sides: Float, slopes: Float, squares: Float, parts: _Parts, rows: slice, own: NDArray[np.intp]
) -> tuple[Float, Float, Float]:
    """Return V, ``Σ_f (Bₖ − h)(Bₗ − h) + s`` and what bounds its size, (rows, s) each.

    sides (n, m) are b − x, slopes (f, n) half the slopes, squares (n,) their sums of squares over
    three. About n(4f + 5) flops a pair, most of them in a product of matrices.
    """
    D = np.minimum(sides[:, rows, None], sides[:, None, own])
    flat, shape = D.reshape(len(D), -1), (len(slopes), *D.shape[1:])
    h, g = (slopes @ flat).reshape(shape), (np.abs(slopes) @ flat).reshape(shape)
    V = np.prod(D, axis=0)
    s = (squares @ np.square(flat, out=flat)).reshape(V.shape)
    term = s + np.sum((parts.ends[:, rows, None] - h) * (parts.ends[:, None, own] - h), axis=0)
    large = s + np.sum((parts.reach[:, rows, None] + g) * (parts.reach[:, None, own] + g), axis=0)
    return V, term, large


def _split(a: Float) -> tuple[Float, Float]:
    """Return two halves of 26 bits each whose sum is a, exactly."""
    big = _SPLIT * a
    high = big - (big - a)
    return high, a - high


def compensated_product(A: Float, B: Float) -> Float:
    """Return ``A Bᵀ`` as if in twice the precision, (t, n) for A (t, m) and B (n, m).

    Exact products (Dekker 1971), added two by two with the rounding of each sum kept (Ogita, Rump
    and Oishi 2005): an entry is within a unit of its value, and ``γ²`` of the sum of sizes for
    m + 4 roundings. About 30m flops an entry.
    """
    a, b = A[:, None, :], B[None, :, :]
    (ah, al), (bh, bl) = _split(a), _split(b)
    p = a * b
    rest = np.sum(al * bl - (((p - ah * bh) - al * bh) - ah * bl), axis=-1)
    while p.shape[-1] > 1:
        half = p.shape[-1] // 2
        first, second = p[..., :half], p[..., half : 2 * half]
        z = first + second
        q = z - first
        rest += np.sum((first - (z - q)) + (second - q), axis=-1)
        p = np.concatenate([z, p[..., 2 * half :]], axis=-1)
    return np.asarray(p[..., 0] + rest)


def decision_values(box: Box, X: Float, factors: Float, W: Float) -> DecisionValues:
    """Return ``Σₗ Wₜₗ k(xₖ, xₗ)`` for P = Σ vvᵀ over the rows v of factors, with error bounds.

    For weights that sum to exactly 0, ``Σₗ wₗ k(x, xₗ)`` needs neither what is constant in x (an
    intercept takes it up) nor what is constant in xₗ. What is left of the formula in the file of
    the affine kernels, for a factor v with ``E = Σ wₗ Φ(xₗ)·ψ`` and ``A = Σ wₗ αₗ``, is

        Σₗ wₗ V {(B − h)(Bₗ − h) + s}  +  α(x) E  +  (Φ(x)·ψ)(A + vol E),

    vol the volume of the box. A Gram matrix carries vol in every entry, so that rounding it costs
    ``vol ‖w‖₁``; here it meets only sums that have already cancelled.

    Each error bound counts relative roundings as in Higham, Accuracy and Stability of Numerical
    Algorithms, chapter 3: a term that meets k of them is off by γₖ of its size at most. Sums
    over samples that multiply the volume of the box are compensated, so that they cost a unit of
    their value and not of their terms. Underflow is not accounted for. The weights of a task sum
    to exactly 0.
    """
    (m, n), f = X.shape, len(factors)
    chosen = [_affine.coefficients(box.tables, v) for v in factors]
    F = power_products(X, box.tables.x_powers)
    n_x, power = F.shape[1], box.tables.degree * (box.tables.degree > 1)
    parts = _parts(box, X, F, chosen)
    values, size = _pairs(box, X, chosen, parts, W)
    pair_count = 3 * n + 2 * (2 * n + n_x + power + 6) + f + 12 + RUN + np.ceil(m / RUN)
    error = gamma(pair_count) * size

    s = compensated_product(W, np.ascontiguousarray(F.T))
    loose = np.abs(W) @ np.abs(F)
    s_error = gamma(2) * np.abs(s) + (gamma(m + 4) ** 2 + gamma(power)) * loose
    psi = np.stack([c.psi_x for c in chosen])
    E, E_size = s @ psi.T, np.abs(s) @ np.abs(psi).T
    E_error = gamma(n_x + 3) * E_size + s_error @ np.abs(psi).T
    A = blocked_product(W, parts.alpha.T)
    alpha_unit = gamma(4 * n + n_x + power + 10)
    A_error = (
        (alpha_unit + gamma(RUN + np.ceil(m / RUN) + 2)) * 1.01 * np.abs(W) @ (parts.alpha_size.T)
    )
    volume = float(np.prod(box.upper - box.lower))
    G = A + volume * E
    G_error = A_error + volume * (E_error * (1.0 + gamma(2 * n + 4)) + gamma(2 * n + 4) * np.abs(E))
    G_error += gamma(3) * (np.abs(A) + volume * np.abs(E))

    first, second = E @ parts.alpha, G @ parts.other
    error += (np.abs(E) * alpha_unit * 1.01 + E_error * 1.01) @ parts.alpha_size
    error += (np.abs(G) * gamma(n_x + power + 4) * 1.01 + G_error * 1.01) @ parts.other_size
    sums = np.abs(E) @ np.abs(parts.alpha) + np.abs(G) @ np.abs(parts.other) + np.abs(values)
    values += first + second
    error += gamma(2 * f + 4) * sums
    return DecisionValues(values, 1.001 * error)
