"""Tessellated families bound to training samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..grams.unstored import UnstoredGram
from . import _affine_values, _general, _moments, _sample_products
from ._affine_sum import AffineSum
from ._affine_values import DecisionValues
from ._arguments import matrix, rows, vector
from ._box import Float
from ._general import Box
from ._samples_base import BoundSamples
from ._unstored import GeneralGram, factors_are_cheaper, factors_of

_GIB_HINT = "use fewer samples, dtype float32, or raise the memory limit"


class PreparedTessellated(BoundSamples):
    """A tessellated family of any degree bound to training samples.

    - `n_P`: side of ``P``
    - `n_samples`: number of training samples m
    - `dtype`: precision of the Gram matrices; moments are always computed in float64
    - `scale`: volume of the box. The values returned are not divided by it
    """

    def __init__(self, box: Box, X: Float, dtype: np.dtype[np.floating]) -> None:
        super().__init__(2 * box.tables.q, len(X), dtype, X.nbytes)
        self._box, self._X = box, X

    @property
    def scale(self) -> float:
        """Volume of the box."""
        return float(np.prod(self._box.upper - self._box.lower))

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = vᵀ G(xₖ, xₗ) v``.

        `v` of shape (n_P,); `out` of shape (m, m): written to and returned; a new array costs page
        faults on top of the arithmetic. Returns shape (m, m).
        """
        v = vector(v, self.n_P, "v")
        out = self._output(out)
        wide = self._wide(out)
        if _general.is_quadratic(self._box.tables):
            _general.gram_quadratic(self._box, self._X, None, v[None, :], wide)
        else:
            _general.gram_general(self._box, self._X, None, np.outer(v, v), wide)
        return self._narrow(wide, out)

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = ⟨P, G(xₖ, xₗ)⟩``, by rank-one Grams where the rank of P is low.

        `P` of shape (n_P, n_P); `out` of shape (m, m): written to and returned. Returns shape (m,
        m).
        """
        P = matrix(P, self.n_P)
        factors = factors_of(P)
        out = self._output(out)
        if factors is not None and factors_are_cheaper(self._box, len(factors)):
            self._add_factors(factors, out)
        else:
            wide = self._wide(out)
            _general.gram_general(self._box, self._X, None, P, wide)
            self._narrow(wide, out)
        return out

    def _add_factors(self, factors: Float, out: RealArray) -> None:
        wide = self._wide(out)
        _general.gram_quadratic(self._box, self._X, None, factors, wide)
        self._narrow(wide, out)

    @staticmethod
    def _wide(out: RealArray) -> Float:
        """Return a float64 array to work in: ``out`` itself where it is one."""
        if out.dtype == np.float64:
            return np.asarray(out, dtype=np.float64)
        memory.require(2 * out.nbytes, "float64 rows of a float32 Gram", alternative=_GIB_HINT)
        return np.empty(out.shape)

    @staticmethod
    def _narrow(wide: Float, out: RealArray) -> RealArray:
        if wide is not out:
            out[:] = wide
        return out

    def unstored(self, P: ArrayLike) -> UnstoredGram:
        """Return the Gram matrix of one P as an object that computes entries and products.

        `P` of shape (n_P, n_P).
        """
        return GeneralGram(self._box, self._X, matrix(P, self.n_P))

    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``D = Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``; samples of weight 0 cost nothing.

        `W` of shape (m,) or (t, m): signed weights, for a classifier ``yₖαₖ``; one row per
        subproblem. Returns shape (n_P, n_P).
        """
        return _moments.moment(self._box, self._X, rows(W, self.n_samples))

    def moment_error(self, W: ArrayLike) -> float:
        """Return a proven bound on ``‖moment(W) − D(W)‖₂``, D the exact moment matrix.

        An entry of a block of D (see the file of the moments) is a sum of products of inputs. A
        result that meets at most k relative roundings on the way of any term, in sums and in
        products, differs from the exact one by at most ``γₖ Σ|terms|``, ``γₖ = ku/(1 − ku)``,
        u = 2⁻⁵³, whatever the order of the additions and whether or not a product and a sum
        are fused (Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4).
        Three facts keep the bound small. Sums over pairs are cut in runs, so k is about
        2n + 110 + m/64. The terms of the block over pairs are bounded by
        ``|wₖwₗ| V(xₖ, xₗ) φᵢ(xₖ)φⱼ(xₗ)``, ``φ = |x|^δ max(|x|, |b|)^γ``, with the true volumes and
        not that of the box. In the two other blocks, which do carry the volume of the box, the
        sums ``Σ wₖ xₖ^δ`` enter by their computed values plus their own error, so weights that
        cancel cost nothing. The spectral norm of the error is at most the smaller of the
        Frobenius norm and the largest row sum of the entrywise bound. Underflow is not
        accounted for.

        `W` of shape (m,) or (t, m).
        """
        return _moments.moment_error(self._box, self._X, rows(W, self.n_samples))

    def sample_products(
        self, w: ArrayLike, U: ArrayLike, samples: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the derivative of ``(K(UUᵀ) w)ₖ`` in U, ``Σₗ wₗ (G(xₖ, xₗ) + G(xₗ, xₖ)) U``.

        `w` of shape (m,); `U` of shape (n_P, r); `samples` of shape (s,): which k; each must have a
        weight other than 0. Returns shape (s, n_P, r). Raises ValueError if one of ``samples`` has
        weight 0.
        """
        w, factor = vector(w, self.n_samples, "w"), np.asarray(U, dtype=np.float64)
        chosen = np.asarray(samples, dtype=np.intp)
        if not w[chosen].all():
            raise ValueError("samples must have weights other than 0")
        return _sample_products.sample_products(self._box, self._X, w, factor, chosen)


class PreparedAffine(PreparedTessellated):
    """Degree 0, degree 1 or ``z_degree=0``, see ``_affine``."""

    def __init__(self, box: Box, X: Float, dtype: np.dtype[np.floating]) -> None:
        super().__init__(box, X, dtype)
        sides = (box.upper - X).T
        self._units, self._power = _moments.binary_units(sides)

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = vᵀ G(xₖ, xₗ) v``.

        m²/2·(8n + 12) flops, and nothing of the size of a Gram matrix beside the result.

        `v` of shape (n_P,); `out` of shape (m, m): written to and returned; a new array costs page
        faults on top of the arithmetic. Returns shape (m, m).
        """
        v = vector(v, self.n_P, "v")
        out = self._output(out)
        self._sum(v[None, :]).fill(out)
        return out

    def _add_factors(self, factors: Float, out: RealArray) -> None:
        self._sum(factors).fill(out)

    def _sum(self, factors: Float) -> AffineSum:
        return AffineSum(self._box, self._X, factors, self._units, self._power)

    def unstored(self, P: ArrayLike) -> UnstoredGram:
        """Return the Gram matrix of one P as an object that computes entries and products.

        `P` of shape (n_P, n_P).
        """
        P = matrix(P, self.n_P)
        factors = factors_of(P)
        return GeneralGram(self._box, self._X, P) if factors is None else self._sum(factors)

    def decision_values(self, factors: ArrayLike, W: ArrayLike) -> DecisionValues:
        """Return ``Kwₜ`` for P = Σ vvᵀ up to a constant per task, with a proven error bound.

        A tighter bound than any stored Gram matrix allows: the volume of the box, which every
        entry of that carries, meets only sums that have cancelled. m s n (4f + 5) flops for s
        samples with weights; nothing of the size of a Gram matrix is stored.

        `factors` of shape (f, n_P): rows v; `W` of shape (m,) or (t, m): the weights of each task
        sum to exactly 0. Returns `values`, `error` of shape (t, m). Raises ValueError if the
        weights of a task do not sum to 0.
        """
        weights = rows(W, self.n_samples)
        for t, w in enumerate(weights):
            if math.fsum(w) != 0.0:
                raise ValueError(
                    f"the weights of a task must sum to exactly 0, those of task {t} sum to "
                    f"{math.fsum(w):.3g}"
                )
        chosen = np.atleast_2d(np.asarray(factors, dtype=np.float64))
        if chosen.shape[1] != self.n_P:
            raise ValueError(f"factors must have {self.n_P} columns, got {chosen.shape[1]}")
        return _affine_values.decision_values(self._box, self._X, chosen, weights)
