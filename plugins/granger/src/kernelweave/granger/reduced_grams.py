"""Gram matrices in few coordinates: smooth kernels of one history have few functions to offer.

Problems that see K only through (K_η + λl)⁻¹ and products with y are the same in orthonormal
coordinates of all columns of K and y. Four Gaussians of one number need some twenty, however many
samples there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray

from .leading import leading
from .shared_grams import SharedGrams, combined, images

_WORTH = 0.7  # of the samples: with more coordinates matrices as they are cost no more
_JITTER = 1e-12  # of squared lengths, in a Cholesky factor of what may be dependent


@dataclass(frozen=True, eq=False)
class ReducedGrams(SharedGrams):
    """What `MovedGrams` holds, in coordinates of each problem.

    - `grams` of shape (n_rest, n_shared, n_shared): kernels that do not move, in the coordinates
      that all problems share and that come first
    - `rest`, `still`, `mixed`: which kernels do not move, do, and change otherwise
    - `own` of shape (n_still, n_own, n_own): M with Kⱼ = W M Wᵀ
    - `columns` of shape (n_problems, n_coordinates, n_own): W of each problem
    - `features`: for each changing kernel Z of each problem, Kⱼ = Z Zᵀ
    """

    rest: Index
    still: Index
    mixed: Index
    own: RealArray
    columns: RealArray
    features: list[RealArray]

    @property
    def n_kernels(self) -> int:
        """m."""
        return len(self.rest) + len(self.still) + len(self.mixed)

    @property
    def n_samples(self) -> int:
        """Coordinates, which stand for samples."""
        return int(self.columns.shape[1])

    def combine(self, weights: Matrix, problems: Index) -> RealArray:
        """Return Σ ηⱼ Kⱼ for the weights of each problem, shape (n_problems, r, r)."""
        W, n = self.columns[problems], self.grams.shape[1]
        K: RealArray = np.matmul(np.matmul(W, combined(self.own, weights[:, self.still])), _t(W))
        K[:, :n, :n] += combined(self.grams, weights[:, self.rest])
        for j, Z in zip(self.mixed, self.features, strict=True):
            each = Z[problems] * np.sqrt(weights[:, j]).astype(K.dtype)[:, None, None]
            K += np.matmul(each, _t(each))
        return K

    def images(self, C: RealArray, problems: Index) -> RealArray:
        """Return Kⱼ c for the c of each problem, shape (n_problems, n_kernels, r)."""
        W, n = self.columns[problems], self.grams.shape[1]
        found = np.zeros((len(C), self.n_kernels, self.n_samples), dtype=C.dtype)
        found[:, self.rest, :n] = images(self.grams, np.ascontiguousarray(C[:, :n]))
        inside = np.matmul(_t(W), C[:, :, None])[:, :, 0]
        found[:, self.still] = np.matmul(images(self.own, inside), _t(W))
        for j, Z in zip(self.mixed, self.features, strict=True):
            each = Z[problems]
            found[:, j] = np.matmul(each, np.matmul(_t(each), C[:, :, None]))[:, :, 0]
        return found


@dataclass(frozen=True, eq=False)
class Reduction:
    """Kernels of a target in few coordinates, as long as nothing moves.

    - `rest`, `still`, `mixed`: which kernels do not move, do, and change otherwise
    - `basis` of shape (n_samples, n_shared), `grams` of shape (n_rest, n_shared, n_shared): of what
      does not move, see `leading`
    - `moving` of shape (n_samples, n_own), `own` of shape (n_still, n_own, n_own): of what does
    """

    rest: Index
    still: Index
    mixed: Index
    basis: Matrix
    grams: RealArray
    moving: Matrix
    own: RealArray

    def of_draws(
        self, back: Index, features: list[list[Matrix]], Y: Matrix, dtype: np.dtype[np.floating]
    ) -> tuple[ReducedGrams, Matrix]:
        """Return Gram matrices and targets of draws.

        - `back` of shape (n_draws, n_samples): sample of the matrices at each place
        - `features`: for each draw Z of each kernel that changes otherwise
        - `Y` of shape (n_draws, n_samples): targets
        - `dtype`: of the matrices
        """
        columns = [
            np.column_stack([self.moving[order], *Z, y])
            for order, Z, y in zip(back, features, Y, strict=True)
        ]
        B = np.stack(columns)
        inside = np.matmul(self.basis.T, B)
        outside = np.matmul(_t(B), B)
        place = np.arange(B.shape[2])
        outside[:, place, place] *= 1.0 + _JITTER
        outside -= np.matmul(_t(inside), inside)
        # B = U P + E T, whatever orthonormal E
        placed = np.concatenate([inside, _t(np.linalg.cholesky(outside))], axis=1)
        ends = np.cumsum([self.moving.shape[1], *(Z.shape[1] for Z in features[0])])
        own, *rest = np.split(placed, ends, axis=2)
        grams = ReducedGrams(
            self.grams.astype(dtype),
            *(self.rest, self.still, self.mixed, self.own.astype(dtype)),
            np.ascontiguousarray(own, dtype=dtype),
            [np.ascontiguousarray(Z, dtype=dtype) for Z in rest[:-1]],
        )
        return grams, np.ascontiguousarray(rest[-1][:, :, 0])


def reduction(
    grams: RealArray, still: Index, mixed: Index, n_features: int, error: float
) -> Reduction | None:
    """Return kernels in coordinates that lose at most an error of each matrix, if these are few.

    - `grams` of shape (n_kernels, n_samples, n_samples): positive semidefinite
    - `still`, `mixed`: kernels that move, and that change otherwise
    - `n_features`: columns of those that change otherwise
    - `error`: see `leading`
    """
    rest = np.setdiff1d(np.arange(len(grams)), np.concatenate([still, mixed]))
    most = int(_WORTH * grams.shape[1]) - n_features - 1
    moving = leading(grams, still, error, most)
    if moving is None:
        return None
    shared = leading(grams, rest, error, most - moving[0].shape[1])
    return None if shared is None else Reduction(rest, still, mixed, *shared, *moving)


def _t(matrices: RealArray) -> RealArray:
    """Return the transpose of each."""
    return matrices.transpose(0, 2, 1)
