"""Tessellated families of groups of columns bound to training samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import RealArray
from ._arguments import matrix, rows, vector
from ._box import Float
from ._samples_base import BoundSamples
from ._sub_boxes import BoxedSamples, Moments, SubBoxes, SubBoxGram


class PreparedSubBoxes(BoundSamples):
    """Groups of columns in the place of all, and monomials of x alone; see ``_sub_boxes``.

    `scale`: 1: every mean over groups is a share of 1.
    """

    scale = 1.0

    def __init__(self, boxes: SubBoxes, X: Float, dtype: np.dtype[np.floating]) -> None:
        super().__init__(2 * boxes.tables.q, len(X), dtype, X.nbytes)
        self._boxes, self._at = boxes, BoxedSamples.of(boxes, X)
        self._moments = Moments(boxes, self._at)

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = vᵀ G(xₖ, xₗ) v``, shape (m, m), for v of shape (n_P,)."""
        v = vector(v, self.n_P, "v")
        return self.gram(np.outer(v, v), out)

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = ⟨P, G(xₖ, xₗ)⟩``, shape (m, m), for a symmetric P."""
        out = self._output(out)
        self.unstored(P).fill(out)
        return out

    def unstored(self, P: ArrayLike) -> SubBoxGram:
        """Return the Gram matrix of one P as an object that computes entries and products."""
        return SubBoxGram(self._boxes, self._at, matrix(P, self.n_P))

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
        return self._moments.by_sample(vector(w, self.n_samples, "w"), factor, chosen)
