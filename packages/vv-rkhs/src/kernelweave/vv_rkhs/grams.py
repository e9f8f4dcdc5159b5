"""The Gram matrices of a dictionary as the solvers use them: weighted sums and inner products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RealArray, Vector
from scipy.linalg.blas import daxpy

from .sylvester.low_rank import FactoredGram

# Bytes in float64 of the rows of a matrix that are worked on at a time: about what a core's cache
# holds.
_BLOCK_BYTES = 1 << 21
# Rows of a strip, of which only what is left of the diagonal is read: shorter strips read less
# twice, longer ones give BLAS more to do.
_STRIP = 128


class Grams(Protocol):
    """K₁ … K_m of one set of samples, each scaled to S½ Kⱼ S½ for sample weights S."""

    @property
    def n_kernels(self) -> int:
        """m."""

    @property
    def n_samples(self) -> int:
        """l."""

    @property
    def norms(self) -> Vector:
        """At least the Frobenius norm of each matrix, shape (m,)."""

    def combine(self, weights: Vector) -> Any:
        """Return Σ ηⱼ Kⱼ, a matrix or a `FactoredGram`."""

    def inner(self, C: Matrix, L: Matrix) -> Vector:
        """Return wⱼ = ⟨Kⱼ, C L Cᵀ⟩, shape (m,)."""


class DenseGrams:
    """Dense Gram matrices, float64 or float32; sums and inner products are float64 always.

    `grams` of shape (n_kernels, n_samples, n_samples): never copied. float32 halves the memory;
    values and bounds are then those of the rounded matrices; `root_weight` of shape (n_samples,):
    roots of the sample weights.
    """

    def __init__(self, grams: RealArray, root_weight: Vector | None = None) -> None:
        self.grams = grams
        self.root_weight = root_weight
        self._norms: Vector | None = None

    @property
    def n_kernels(self) -> int:
        """m."""
        return int(self.grams.shape[0])

    @property
    def n_samples(self) -> int:
        """l."""
        return int(self.grams.shape[1])

    @property
    def norms(self) -> Vector:
        """Frobenius norm of each scaled matrix, shape (m,), not below it by rounding."""
        if self._norms is None:
            s = np.ones(self.n_samples) if self.root_weight is None else self.root_weight**2
            squares = np.zeros(self.n_kernels)
            for rows, before in _strips(self.n_samples):
                for j, K in enumerate(self.grams):
                    left, square = _parts(K, rows, before)
                    squares[j] += 2.0 * float(s[rows] @ (left**2 @ s[before]))
                    squares[j] += float(s[rows] @ (square**2 @ s[rows]))
            self._norms = np.sqrt(squares) * (1.0 + 1e-9)
        return self._norms

    def _blocks(self, K: RealArray) -> Iterator[tuple[slice, Matrix]]:
        step = max(1, _BLOCK_BYTES // (8 * K.shape[1]))
        for start in range(0, K.shape[0], step):
            rows = slice(start, start + step)
            yield rows, K[rows].astype(np.float64, copy=False)

    def combine(self, weights: Vector) -> Matrix:
        """Return Σ ηⱼ S½ Kⱼ S½ (2 l² flops per weight that is not 0)."""
        n = self.n_samples
        used = np.flatnonzero(weights)
        out: Matrix
        plain = self.grams.dtype == np.float64 and self.grams.flags.c_contiguous
        if plain and 2 * len(used) > self.n_kernels:
            out = (weights @ self.grams.reshape(self.n_kernels, -1)).reshape(n, n)
        else:
            out = np.zeros((n, n))
            for j in used:
                if plain:
                    daxpy(self.grams[j].reshape(-1), out.reshape(-1), a=float(weights[j]))
                    continue
                for rows, block in self._blocks(self.grams[j]):
                    out[rows] += weights[j] * block
        if self.root_weight is not None:
            out *= self.root_weight[:, None]
            out *= self.root_weight
        return out

    def inner(self, C: Matrix, L: Matrix) -> Vector:
        """Return wⱼ = ⟨S½ Kⱼ S½, C L Cᵀ⟩ (2 l² flops per kernel, and l²n once).

        Rows are summed first: the rounding error then grows with l, not with l². In float32 each
        strip of a matrix is read once, as the lower triangle does for both.
        """
        scaled = C if self.root_weight is None else C * self.root_weight[:, None]
        plain = self.grams.dtype == np.float64 and self.grams.flags.c_contiguous
        if plain and scaled.shape[1] == 1:
            # one output: all matrices are read once, in one product
            c = scaled[:, 0]
            images = (self.grams.reshape(-1, len(c)) @ c).reshape(self.n_kernels, -1)
            found: Vector = L[0, 0] * (images @ c)
            return found
        right = scaled @ L
        w = np.zeros(self.n_kernels)
        for rows, before in _strips(self.n_samples):
            if self.grams.dtype == np.float64:
                M = right[rows] @ scaled.T
                w += np.matmul(self.grams[:, rows].transpose(1, 0, 2), M[:, :, None]).sum(0)[:, 0]
                continue
            M = right[rows] @ scaled[: rows.stop].T
            for j, K in enumerate(self.grams):
                left, square = _parts(K, rows, before)
                w[j] += 2.0 * np.einsum("ij,ij->i", left, M[:, before]).sum()
                w[j] += np.einsum("ij,ij->i", square, M[:, rows]).sum()
        return w


def _strips(n_samples: int) -> list[tuple[slice, slice]]:
    """Return slices of rows, each with that of all rows before them."""
    starts = range(0, n_samples, _STRIP)
    return [(slice(a, min(a + _STRIP, n_samples)), slice(0, a)) for a in starts]


def _parts(K: RealArray, rows: slice, before: slice) -> tuple[Matrix, Matrix]:
    """Return what some rows have left of the diagonal block, and that block, in float64."""
    return (
        K[rows, before].astype(np.float64, copy=False),
        K[rows, rows].astype(np.float64, copy=False),
    )


class FactoredGrams:
    """Gram matrices Kⱼ = Zⱼ Zⱼᵀ that are never formed.

    `factors` of shape (n_samples, d_j): Zⱼ: features of linear kernels, random Fourier features, or
    low-rank factors; `root_weight` of shape (n_samples,): roots of the sample weights.
    """

    def __init__(self, factors: Sequence[npt.ArrayLike], root_weight: Vector | None = None) -> None:
        self.factors = [np.asarray(Z, dtype=np.float64) for Z in factors]
        shapes = [Z.shape for Z in self.factors]
        if not shapes or any(len(s) != 2 or s[0] != shapes[0][0] for s in shapes):
            raise ValueError(f"factors must be matrices with equal numbers of rows, got {shapes}")
        if root_weight is not None:
            self.factors = [Z * root_weight[:, None] for Z in self.factors]

    @property
    def n_kernels(self) -> int:
        """m."""
        return len(self.factors)

    @property
    def n_samples(self) -> int:
        """l."""
        return int(self.factors[0].shape[0])

    @property
    def n_columns(self) -> int:
        """Columns of all factors."""
        return sum(Z.shape[1] for Z in self.factors)

    @property
    def norms(self) -> Vector:
        """‖Zⱼ‖² ≥ ‖Kⱼ‖, shape (m,)."""
        return np.array([float(np.vdot(Z, Z)) for Z in self.factors]) * (1.0 + 1e-9)

    def combine(self, weights: Vector) -> FactoredGram:
        """Return Z with Z Zᵀ = Σ ηⱼ Kⱼ: the factors of nonzero weight side by side."""
        parts = [np.sqrt(w) * Z for w, Z in zip(weights, self.factors, strict=True) if w > 0]
        return FactoredGram(np.hstack(parts) if parts else np.zeros((self.n_samples, 1)))

    def inner(self, C: Matrix, L: Matrix) -> Vector:
        """Return wⱼ = tr((Zⱼᵀ C) L (Zⱼᵀ C)ᵀ) (2 l dⱼ n flops per kernel)."""
        projected = [Z.T @ C for Z in self.factors]
        return np.array([float(np.vdot(U @ L, U)) for U in projected])
