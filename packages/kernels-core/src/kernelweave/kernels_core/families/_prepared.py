"""Tessellated families bound to training samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import memory
from ..arrays import RealArray
from ..checks import check_vector
from ..config import row_bounds, run_blocks
from ..grams.unstored import Operator
from . import _affine, _affine_sum, _general, _moments
from ._affine_sum import AffineSum, DecisionValues
from ._arguments import BoundSamples, matrix, rows
from ._box import Float, power_products
from ._general import Box
from ._moments import blocked_product, pair_sums

_GIB_HINT = "use fewer samples, dtype float32, or raise the memory limit"

# Entries of the intermediate products that are held at a time: 32 MiB.
_ENTRIES = 2**22


def factors_of(P: Float) -> Float | None:
    """Return rows vᵣ with ``P = Σ vᵣvᵣᵀ``, or None where P is not positive semidefinite.

    Eigenvalues below ``n_P`` units of rounding of the largest are left out.
    """
    values, vectors = np.linalg.eigh(0.5 * (P + P.T))
    floor = len(P) * np.finfo(np.float64).eps * max(abs(values[0]), abs(values[-1]))
    if values[0] < -floor:
        return None
    keep = values > floor
    return np.ascontiguousarray((vectors[:, keep] * np.sqrt(values[keep])).T)


def factors_are_cheaper(box: Box, rank: int) -> bool:
    """Return whether ``rank`` rank-one Grams cost fewer flops than one general Gram."""
    if _affine.is_affine(box.tables):
        return True
    n = box.tables.n_features
    general = len(box.tables.moments) + 2 * len(box.tables.gram_terms.moment)
    return _general.is_quadratic(box.tables) and rank * (2 * n * n + 14 * n) <= general


def fill_rectangle(
    box: Box, X: Float, Y: Float, P: Float, factors: Float | None, out: Float
) -> None:
    """Write ``⟨P, G(xₖ, yₗ)⟩``, by rank-one factors of P if it has some and they are cheaper."""
    if factors is None or not factors_are_cheaper(box, len(factors)):
        _general.gram_general(box, X, Y, P, out)
    elif _affine.is_affine(box.tables):
        _affine_sum.gram_rectangular(box, X, Y, factors, out)
    else:
        _general.gram_quadratic(box, X, Y, factors, out)


class GeneralOperator(Operator):
    """The Gram matrix of one P over the samples, of any degree.

    `X` of shape (m, n); `P` of shape (n_P, n_P).
    """

    def __init__(self, box: Box, X: Float, P: Float) -> None:
        self._box, self._X, self._P = box, X, P
        self._factors = factors_of(P)
        self.n_samples = len(X)

    def block(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp] | slice, out: RealArray
    ) -> None:
        """Write the entries of some rows and columns, in the dtype of ``out``."""
        wide = np.empty(out.shape)
        X, Y = self._X[rows], np.ascontiguousarray(self._X[columns])
        fill_rectangle(self._box, X, Y, self._P, self._factors, wide)
        out[:] = wide

    def diagonal(self) -> Float:
        """Return the diagonal, shape (m,), float64."""
        return _general.diagonal(self._box, self._X, self._P)


class _SampleSums(NamedTuple):
    """The sums over samples l of which `_derivatives` is made, for some rows k.

    - `inner` of shape (rows, n_terms): Σₗ wₗ x_l^δ T_g(max(xₖ, xₗ), b)
    - `above` of shape (n_g, rows): T_g(xₖ, b)
    - `ends` of shape (n_x, n_g): Σₗ wₗ x_l^δ T_g(xₗ, b)
    - `mass` of shape (n_x,): Σₗ wₗ x_l^δ
    """

    inner: Float
    above: Float
    ends: Float
    mass: Float


def _sample_sums(box: Box, X: Float, w: Float, n_rows: int) -> _SampleSums:
    """Return the sums over all samples for the first ``n_rows`` of them."""
    tables, terms = box.tables, box.tables.gram_terms
    F = power_products(X, tables.x_powers)
    inner = np.empty((n_rows, len(terms.moment)))

    def work(start: int, stop: int) -> None:
        weights = np.broadcast_to(w, (stop - start, len(w)))
        inner[start:stop] = pair_sums(box, X, F, slice(start, stop), weights, terms)

    steps = float(n_rows) * len(X) * (len(tables.moments) + 2 * len(terms.moment))
    run_blocks(work, row_bounds(n_rows, lower=False), steps)
    ends = blocked_product((w[:, None] * F).T, box.above(X).T)
    return _SampleSums(inner, box.above(X[:n_rows]), ends, w @ F)


def _derivatives(box: Box, F: Float, sums: _SampleSums, rows: slice, U: Float) -> Float:
    """Return ``(Φₖ + Φₖᵀ) U`` of a run of rows, shape (rows, 2q, r).

    The sums of entry (i, j) depend on i only through its power γᵢ of z, so they are computed once
    for each of the n_z powers, namely for the monomials without x (`pure`).
    """
    tables, q, r = box.tables, box.tables.q, U.shape[1]
    i, z = tables.x_index, tables.z_index
    pure = np.flatnonzero(i == 0)
    pure = pure[np.argsort(z[pure])]
    g, term = tables.entry_moment[pure], tables.gram_terms.term[pure]
    power_of_x = F[:, i][:, :, None]
    by_power = np.zeros((F.shape[1], len(pure), 2 * r))
    rho, psi = U[:q] - U[q:], U[q:]
    by_power[i, z] = np.hstack([rho, psi])
    mixed = (F @ by_power.reshape(len(by_power), -1)).reshape(len(F), len(pure), 2 * r)
    mixed_rho, mixed_psi = mixed[:, :, :r], mixed[:, :, r:]

    inner = sums.inner[rows][:, term]
    above = sums.above[:, rows].T[:, g] * sums.mass[i]
    ends, whole = sums.ends[i, g], box.whole()[g] * sums.mass[i]
    first = power_of_x * (inner @ rho + above @ psi)[:, z]
    second = power_of_x * (ends @ rho + whole @ psi)[z]
    first += inner.transpose(0, 2, 1) @ mixed_rho + ends.T @ mixed_psi
    second += above.transpose(0, 2, 1) @ mixed_rho + whole.T @ mixed_psi
    return np.concatenate([first, second - first], axis=1)


def sample_products(
    box: Box, X: Float, w: Float, U: Float, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return ``(Φₖ + Φₖᵀ) U``, ``Φₖ = Σₗ wₗ G(xₖ, xₗ)``, for k in ``rows``: (len(rows), n_P, r).

    It is the derivative of ``(K(UUᵀ) w)ₖ`` in U, which in the basis [Z·I; Z] of the moments is
    ρ = U₁ − U₂ on the first half and ψ = U₂ on the second.

    Cost: about 3n² flops a pair of a row and a weighted sample at degree 1, and 8q n_z r a row for
    n_z powers of z.
    """
    rest = np.setdiff1d(np.flatnonzero(w), rows)
    order = np.concatenate([rows, rest])
    X, w = np.ascontiguousarray(X[order]), np.ascontiguousarray(w[order])
    sums = _sample_sums(box, X, w, len(rows))
    F = power_products(X[: len(rows)], box.tables.x_powers)
    out = np.empty((len(rows), 2 * box.tables.q, U.shape[1]))
    step = max(1, _ENTRIES // (box.tables.q * len(box.tables.z_powers)))
    for start in range(0, len(rows), step):
        run = slice(start, start + step)
        out[run] = _derivatives(box, F[run], sums, run, U)
    return out


class PreparedTessellated(BoundSamples):
    """A tessellated family of any degree bound to training samples; `dtype` is of its Grams."""

    def __init__(self, box: Box, X: Float, dtype: np.dtype[np.floating]) -> None:
        super().__init__(2 * box.tables.q, len(X), dtype)
        self._box, self._X = box, X

    @property
    def scale(self) -> float:
        """Volume of the box."""
        return float(np.prod(self._box.upper - self._box.lower))

    def gram_rank_one(self, v: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = vᵀ G(xₖ, xₗ) v``.

        At degree 0 or 1, or with ``z_degree=0``, it costs m²/2·(8n + 12) flops, and nothing of the
        size of a Gram matrix beside the result.
        """
        v = check_vector("v", v, self.n_P)
        out = self._output(out)
        if _general.is_quadratic(self._box.tables):
            self._add_factors(v[None, :], out)
        else:
            self._fill(_general.gram_general, np.outer(v, v), out)
        return out

    def gram(self, P: ArrayLike, out: RealArray | None = None) -> RealArray:
        """Return ``Kₖₗ = ⟨P, G(xₖ, xₗ)⟩``, by rank-one Grams where the rank of P is low."""
        P = matrix(P, self.n_P)
        factors = factors_of(P)
        out = self._output(out)
        if factors is not None and factors_are_cheaper(self._box, len(factors)):
            self._add_factors(factors, out)
        else:
            self._fill(_general.gram_general, P, out)
        return out

    def _add_factors(self, factors: Float, out: RealArray) -> None:
        self._fill(_general.gram_quadratic, factors, out)

    def _fill(self, write: Callable[..., None], what: Float, out: RealArray) -> None:
        """Write a Gram matrix in double precision, rounded where ``out`` has less."""
        wide = np.asarray(out)
        if out.dtype != np.float64:
            memory.require(2 * out.nbytes, "float64 rows of a float32 Gram", alternative=_GIB_HINT)
            wide = np.empty(out.shape)
        write(self._box, self._X, None, what, wide)
        if wide is not out:
            out[:] = wide

    def unstored(self, P: ArrayLike) -> Operator:
        """Return the Gram matrix of one P as an object that computes entries and products."""
        return GeneralOperator(self._box, self._X, matrix(P, self.n_P))

    def moment(self, W: ArrayLike) -> NDArray[np.float64]:
        """Return ``D = Σₜ Σₖₗ Wₜₖ Wₜₗ G(xₖ, xₗ)``; samples of weight 0 cost nothing.

        W is (m,) or (t, m), one row per subproblem: for a classifier ``yₖαₖ``.
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
        """
        return _moments.moment_error(self._box, self._X, rows(W, self.n_samples))

    def sample_products(
        self, w: ArrayLike, U: ArrayLike, samples: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the derivative of ``(K(UUᵀ) w)ₖ`` in U, ``Σₗ wₗ (G(xₖ, xₗ) + G(xₗ, xₖ)) U``.

        Raises ValueError if one of ``samples``, which says which k, has the weight 0.
        """
        w, factor = check_vector("w", w, self.n_samples), np.asarray(U, dtype=np.float64)
        chosen = np.asarray(samples, dtype=np.intp)
        if not w[chosen].all():
            raise ValueError("samples must have weights other than 0")
        return sample_products(self._box, self._X, w, factor, chosen)


class PreparedAffine(PreparedTessellated):
    """Degree 0, degree 1 or ``z_degree=0``, see ``_affine``."""

    def __init__(self, box: Box, X: Float, dtype: np.dtype[np.floating]) -> None:
        super().__init__(box, X, dtype)
        sides = (box.upper - X).T
        self._units, self._power = _moments.binary_units(sides)

    def _add_factors(self, factors: Float, out: RealArray) -> None:
        self._sum(factors).fill(out)

    def _sum(self, factors: Float) -> AffineSum:
        return AffineSum(self._box, self._X, factors, self._units, self._power)

    def unstored(self, P: ArrayLike) -> Operator:
        """Return the Gram matrix of one P as an object that computes entries and products."""
        P = matrix(P, self.n_P)
        factors = factors_of(P)
        return GeneralOperator(self._box, self._X, P) if factors is None else self._sum(factors)

    def decision_values(self, factors: ArrayLike, W: ArrayLike) -> DecisionValues:
        """Return ``Kwₜ`` for P = Σ vvᵀ up to a constant per task, with a proven error bound.

        The bound is tighter than any from a stored Gram matrix, whose entries all contain the
        volume of the box: here the volume multiplies only sums that have cancelled. Costs
        m s n (4f + 5) flops for s samples of nonzero weight, and stores no Gram matrix.

        Raises ValueError if the weights of a task do not sum to exactly 0.
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
        return _affine_sum.decision_values(self._box, self._X, chosen, weights)
