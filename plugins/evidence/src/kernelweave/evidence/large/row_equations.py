"""All rows as landmarks: one factor, and conjugate gradients for the ridges near it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from scipy.linalg import blas

from ..rows import Rows
from ..steps import Stopped
from .features import Landmarks
from .posterior import PosteriorOfRows, factor_of, row_pairs

# a factor serves ridges so many times larger or smaller
_NEAR = 4.0
# residuals, in units of the targets, at which conjugate gradients end
_SMALL = 1e-8
_STEPS = 100


class RowEquations:
    """(K + ρW⁻¹)β = Y of rows that are the landmarks themselves.

    A factor of one ridge makes conjugate gradients short for others near it. They also mend what
    single precision took from the factor: β is right to double precision.

    `values` of shape (n_outputs, n_rows): standardised targets.
    """

    def __init__(self, landmarks: Landmarks, rows: Rows, values: FloatArray) -> None:
        self.landmarks, self.rows = landmarks, rows
        self.right = values.T.copy()
        self._share = 1.0 / rows.mass
        self._factored: tuple[float, RealArray] | None = None

    @cached_property
    def pairs(self) -> FloatArray:
        """K, its upper triangle."""
        return row_pairs(self.landmarks, self.rows)

    def solve(self, ridge: float) -> tuple[FloatArray, PosteriorOfRows] | None:
        """Return β and the posterior; ``None`` where rounding leaves no factor or no solution.

        Raises Stopped where time is up.
        """
        if self._factored is None or not 1.0 / _NEAR < ridge / self._factored[0] < _NEAR:
            # the memory of the one before is free for the next
            self._factored = None
            try:
                self._factored = ridge, factor_of(self.pairs, ridge * self._share)
            except np.linalg.LinAlgError:
                return None
        factored_at, factor = self._factored
        dual = self._refined(ridge, factor)
        if dual is None:
            return None
        own = factor if factored_at == ridge else None
        return dual, PosteriorOfRows(self.landmarks, self.rows, ridge, self.pairs, own)

    def _times(self, columns: FloatArray) -> FloatArray:
        """Return K times columns."""
        products = [blas.dsymv(1.0, self.pairs, each, lower=0) for each in columns.T]
        return np.column_stack(products)

    def _refined(self, ridge: float, factor: RealArray) -> FloatArray | None:
        """Return the solution by conjugate gradients, all outputs at once."""
        noise = (ridge * self._share)[:, None]
        rest, dual = self.right.copy(), np.zeros_like(self.right)
        least = _SMALL * np.sqrt(len(rest))
        step = z = _solved(factor, rest)
        size = np.einsum("it,it->t", rest, z)
        for _ in range(_STEPS):
            if clock.expired():
                raise Stopped
            bent = self._times(step) + noise * step
            length = size / np.maximum(np.einsum("it,it->t", step, bent), 1e-300)
            dual += length * step
            rest -= length * bent
            if np.sqrt(np.max(np.einsum("it,it->t", rest, rest))) <= least:
                return dual
            z = _solved(factor, rest)
            size, before = np.einsum("it,it->t", rest, z), size
            step = z + size / np.maximum(before, 1e-300) * step
        return None


def _solved(factor: RealArray, right: FloatArray) -> FloatArray:
    """Return (UᵀU)⁻¹ times columns, in the factor's precision."""
    # for a few columns ten times faster than LAPACK's potrs
    trsv = blas.strsv if factor.dtype == np.float32 else blas.dtrsv
    columns = [trsv(factor, trsv(factor, each, trans=1)) for each in right.T]
    return np.column_stack(columns).astype(np.float64)
