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
from ..grams.unstored import UnstoredGram
from ..threads import row_bounds, run_blocks
from . import _affine
from ._box import Float
from ._general import Box
from ._moments import binary_units

# The tile of the compiled pass, which is imported only where it runs: here they count its
# roundings.
_WIDTH = 128
_BAND = 32


class _Terms(NamedTuple):
    """The arguments of the compiled passes for one set of samples on both sides.

    - `sides` of shape (n4, m)
    - `weights` of shape (n4,)
    - `slopes` of shape (f, n4)
    - `ends` of shape (f, m)
    - `left`, `right` of shape (t, m)
    """

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


class AffineSum(UnstoredGram):
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
        own, m = int(used.sum()), self.n_samples
        terms, weights = self._all.of(order), np.ascontiguousarray(W[:, order[:own]])

        def work(start: int, stop: int) -> Float:
            out = np.zeros((len(W), m))
            s, n, w, H, B, L, R = terms
            sum_products(s, n, w, H, B, L, R, weights, own, start, stop, out)
            return out

        total = np.zeros((len(W), m))
        if own:
            bounds = row_bounds(own, lower=True)
            bounds += [(a + own, b + own) for a, b in row_bounds(m - own, lower=False)]
            steps = _steps(terms, own * (m - 0.5 * own))
            for part in run_blocks(work, bounds, steps):
                total += part
        found = np.empty_like(total)
        found[:, order] = total
        return found

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
