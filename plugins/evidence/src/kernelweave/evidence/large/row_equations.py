"""All rows as landmarks: one factor, and conjugate gradients for the ridges near it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index, RealArray
from scipy.linalg import blas, lapack

from ..rows import Rows
from ..terms import Stopped
from .features import Landmarks
from .posterior import PosteriorOfRows, factor_of, row_pairs

# a factor serves ridges so many times larger or smaller
_NEAR = 4.0
# residuals, in units of the targets, at which conjugate gradients end
_SMALL = 1e-8
_STEPS = 100
# corrections of the residuals of rows left out at most, and the share of β that counts as none
_REFINEMENTS, _NOTHING = 12, 1e-8


class RowEquations:
    """(K + ρW⁻¹)β = Y of rows that are the landmarks themselves, or of the first of them.

    A factor of one ridge makes conjugate gradients short for others near it. They also mend what
    single precision took from the factor: β is right to double precision.

    `values` of shape (n_outputs, n_rows): standardised targets.
    """

    def __init__(self, landmarks: Landmarks, rows: Rows, values: FloatArray) -> None:
        self.landmarks, self.rows = landmarks, rows
        self.right = values.T.copy()
        self._share = 1.0 / rows.mass
        # ridge, rows and factor
        self._factored: tuple[float, int, RealArray] | None = None

    @cached_property
    def pairs(self) -> FloatArray:
        """K, its upper triangle."""
        return row_pairs(self.landmarks, self.rows)

    def predict_others(self, ridge: float, n_used: int) -> FloatArray | None:
        """Return what the first rows predict of the others, shape (n_rows − n_used, n_outputs).

        ``None`` where rounding leaves no factor or no solution. Raises Stopped where time is up.
        """
        before, n_before = self._factored[:2] if self._factored is not None else (np.inf, 0)
        near = n_before == n_used and 1.0 / _NEAR < ridge / before < _NEAR
        if not near and not self._factor(ridge, n_used):
            return None
        dual = self._refined(ridge, self.right[:n_used])
        return None if dual is None else self._times(dual)[n_used:]

    def whole(self, ridge: float) -> tuple[FloatArray, PosteriorOfRows] | None:
        """Return β of all rows and the posterior; ``None`` where rounding leaves none.

        Raises Stopped where time is up.
        """
        if not self._factor(ridge, len(self.rows)):
            return None
        dual = self._refined(ridge, self.right)
        if dual is None or self._factored is None:
            return None
        factor = self._factored[2]
        return dual, PosteriorOfRows(self.landmarks, self.rows, ridge, self.pairs, factor)

    def left_out(
        self, ridge: float, dual: FloatArray, which: Index
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what all other rows predict of some, after `whole`.

        With S = K + ρW⁻¹ the residuals are (S⁻¹_gg)⁻¹β_g, and the variance of the function that of
        (S⁻¹_gg)⁻¹ less the noise (the inverse of a partitioned matrix).

        Returns predictions, shape (n_which, n_outputs); variances, shape (n_which,); and β of the
        other rows, 0 for these.
        """
        assert self._factored is not None
        factor, first = self._factored[2], int(which.min())
        # of a solution that begins with zeros only the rest is worked out
        tail = np.asfortranarray(factor[first:, first:])
        units = np.zeros((len(tail), len(which)), dtype=factor.dtype, order="F")
        units[which - first, np.arange(len(which))] = 1.0
        trsm = blas.strsm if factor.dtype == np.float32 else blas.dtrsm
        half = trsm(1.0, tail, units, trans_a=1, overwrite_b=1)
        inner = (half.T @ half).astype(np.float64)
        root, _ = lapack.dpotrf(inner, lower=1, clean=1)
        rest, _ = lapack.dpotrs(root, dual[which], lower=1)
        inverse, _ = lapack.dpotri(root, lower=1)
        variance = np.maximum(inverse.diagonal() - ridge * self._share[which], 0.0)
        others = self._without(ridge, dual, which, rest)
        for _ in range(_REFINEMENTS):
            # a factor in single precision leaves some of β on the rows that are left out
            left = others[which]
            if np.abs(left).max() <= _NOTHING * np.abs(dual).max():
                break
            rest = rest + lapack.dpotrs(root, left, lower=1)[0]
            others = self._without(ridge, dual, which, rest)
        others[which] = 0.0
        return self.right[which] - rest, variance, others

    def _without(
        self, ridge: float, dual: FloatArray, which: Index, residuals: FloatArray
    ) -> FloatArray:
        """Return β of targets that are less by residuals in some rows."""
        assert self._factored is not None
        right = np.zeros_like(dual)
        right[which] = residuals
        moved = self._refined(ridge, right)
        return dual - (solved(self._factored[2], right) if moved is None else moved)

    def _factor(self, ridge: float, n_used: int) -> bool:
        """Factor the equations of the first rows; return whether there is a factor."""
        # the memory of the one before is free for the next
        self._factored = None
        try:
            factor = factor_of(self.pairs[:n_used, :n_used], ridge * self._share[:n_used])
        except np.linalg.LinAlgError:
            return False
        self._factored = ridge, n_used, factor
        return True

    def _times(self, columns: FloatArray) -> FloatArray:
        """Return K times columns, zeros beyond their end, for all rows."""
        padded = np.zeros((len(self.rows), columns.shape[1]))
        padded[: len(columns)] = columns
        products = [blas.dsymv(1.0, self.pairs, each, lower=0) for each in padded.T]
        return np.column_stack(products)

    def _refined(self, ridge: float, right: FloatArray) -> FloatArray | None:
        """Return the solution by conjugate gradients, all outputs at once."""
        assert self._factored is not None
        factor, n = self._factored[2], len(right)
        noise = (ridge * self._share[:n])[:, None]
        rest, dual = right.copy(), np.zeros_like(right)
        least = _SMALL * np.sqrt(n)
        step = z = solved(factor, rest)
        size = np.einsum("it,it->t", rest, z)
        for _ in range(_STEPS):
            if clock.expired():
                raise Stopped
            product = self._times(step)[:n] + noise * step
            length = size / np.maximum(np.einsum("it,it->t", step, product), 1e-300)
            dual += length * step
            rest -= length * product
            if np.sqrt(np.max(np.einsum("it,it->t", rest, rest))) <= least:
                return dual
            z = solved(factor, rest)
            size, before = np.einsum("it,it->t", rest, z), size
            step = z + size / np.maximum(before, 1e-300) * step
        return None


def solved(factor: RealArray, right: FloatArray) -> FloatArray:
    """Return (UᵀU)⁻¹ times columns, in the factor's precision."""
    # for a few columns ten times faster than LAPACK's potrs
    trsv = blas.strsv if factor.dtype == np.float32 else blas.dtrsv
    columns = [trsv(factor, trsv(factor, each, trans=1)) for each in right.T]
    return np.column_stack(columns).astype(np.float64)
