"""Gram matrices of a tessellated family of any degree, and of its rank-one kernels at degree 2."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import RealArray
from ..config import row_bounds, run_blocks
from ..grams._fill import mirror
from ._box import (
    Float,
    TessellatedTables,
    box_moments,
    indicator_blocks,
    power_products,
    sum_terms,
    term_coefficients,
)

# Rows whose monomials and moments are held at a time: they need n_g numbers each, which for all
# samples could be more than the Gram matrix.
_CHUNK = 512


class Box(NamedTuple):
    """Tables and corners of a tessellated family, as the internal functions pass them."""

    tables: TessellatedTables
    lower: Float
    upper: Float

    def whole(self) -> Float:
        """Return ``T_g(a, b)``, shape (n_g,)."""
        return box_moments(self.tables, self.lower[None, :], self.upper[None, :])[:, 0]

    def above(self, X: Float) -> Float:
        """Return ``T_g(x, b)`` for every row of X, shape (n_g, m)."""
        return box_moments(self.tables, X, np.broadcast_to(self.upper, X.shape))


def workspace(tables: TessellatedTables) -> tuple[Float, Float, Float]:
    """Return the work arrays of one thread in the compiled general loops."""
    n, run = tables.n_features, 64
    means = np.empty((n, 2 * tables.z_degree + 1, run))
    return np.empty((n + 2, run)), means, np.empty((len(tables.moments), run))


class _BlockCoefficients(NamedTuple):
    """The blocks of P from `indicator_blocks` as coefficients of terms, each (n_x, n_terms)."""

    inner: Float
    cross: Float
    whole: Float


def _block_coefficients(box: Box, P: Float) -> _BlockCoefficients:
    return _BlockCoefficients(
        *(term_coefficients(box.tables, part) for part in indicator_blocks(P))
    )


def _edge(box: Box, blocks: _BlockCoefficients, X: Float, F: Float) -> Float:
    """Return Λ with ``⟨cross and whole parts⟩ = Λ(x)·Φ(y) + Φ(x)·Λ(y)``, shape (m, n_x)."""
    terms = box.tables.gram_terms
    values = (F @ blocks.cross) * box.above(X)[terms.moment].T
    values += (F @ blocks.whole) * (0.5 * box.whole()[terms.moment])
    return sum_terms(values, terms.power, F.shape[1])


def _edges(box: Box, blocks: _BlockCoefficients, X: Float) -> tuple[Float, Float]:
    F = power_products(X, box.tables.x_powers)
    parts = [
        _edge(box, blocks, X[c : c + _CHUNK], F[c : c + _CHUNK]) for c in range(0, len(X), _CHUNK)
    ]
    return F, np.concatenate(parts)


def gram_general(box: Box, X: Float, Y: Float | None, P: Float, out: RealArray) -> None:
    """Write ``⟨P, G(xₖ, yₗ)⟩`` into out; Y None means X, and a symmetric result.

    Cost: n_g + 2·n_terms flops a pair, n_terms about 3n²/2 at degree 1.
    """
    from ._njit_general import gram_rows

    tables, terms, lower = box.tables, box.tables.gram_terms, Y is None
    blocks = _block_coefficients(box, P)
    F, edge = _edges(box, blocks, X)
    Fy, edge_y = (F, edge) if Y is None else _edges(box, blocks, Y)
    left, right = np.hstack([edge, F]), np.hstack([Fy, edge_y])
    YT, FT = np.ascontiguousarray((X if Y is None else Y).T), np.ascontiguousarray(Fy.T)

    def work(start: int, stop: int) -> None:
        for c in range(start, stop, _CHUNK):
            end = min(c + _CHUNK, stop)
            out[c:end] = left[c:end] @ right.T
            gram_rows(
                X, YT, box.upper, tables.recursion, F[c:end] @ blocks.inner,
                terms.moment, terms.power, FT, out, c, end, lower, *workspace(tables),
            )  # fmt: skip

    steps = float(len(X)) * YT.shape[1] * len(terms.moment)
    run_blocks(work, row_bounds(len(X), lower=lower), steps)
    if lower:
        mirror(out)


def diagonal(box: Box, X: Float, P: Float) -> Float:
    """Return ``⟨P, G(xₖ, xₖ)⟩``, shape (m,)."""
    terms = box.tables.gram_terms
    blocks = _block_coefficients(box, P)
    parts = []
    for c in range(0, len(X), _CHUNK):
        rows = X[c : c + _CHUNK]
        F = power_products(rows, box.tables.x_powers)
        values = (F @ (blocks.inner + 2.0 * blocks.cross)) * box.above(rows)[terms.moment].T
        values += (F @ blocks.whole) * box.whole()[terms.moment]
        parts.append(np.sum(values * F[:, terms.power], axis=1))
    return np.concatenate(parts)


def is_quadratic(tables: TessellatedTables) -> bool:
    """Tell whether a rank-one integrand is quadratic in z with a fixed second-degree part."""
    return tables.z_degree <= 1 or tables.degree == 2


class _Polynomials(NamedTuple):
    """``vᵀN(z, x) = ψₓ(z) + I(z ≥ x) ρₓ(z)``: coefficients by z-monomial, each (f, m, n_z)."""

    rho: Float
    psi: Float
    edge: Float


def _polynomials(box: Box, factors: Float, X: Float) -> _Polynomials:
    tables, q = box.tables, box.tables.q
    coefficients = np.zeros((2, len(factors), len(tables.x_powers), len(tables.z_powers)))
    coefficients[0][:, tables.x_index, tables.z_index] = factors[:, :q] - factors[:, q:]
    coefficients[1][:, tables.x_index, tables.z_index] = factors[:, q:]
    F, pairs, whole = power_products(X, tables.x_powers), tables.pair_moment, box.whole()
    rho, psi = F @ coefficients[0], F @ coefficients[1]
    edge = psi @ (0.5 * whole[pairs])
    for c in range(0, len(X), _CHUNK):
        rows = slice(c, c + _CHUNK)
        above = np.ascontiguousarray(box.above(X[rows]).T)
        for a in range(pairs.shape[0]):
            edge[:, rows] += rho[:, rows, a, None] * above[:, pairs[a]]
    return _Polynomials(rho, psi, edge)


def _second_degree(box: Box, factors: Float) -> NDArray[np.float64]:
    """Return Q (f, n4, n4) of ``ρ(z) = … + zᵀQz``, n4 = 4⌈n/4⌉."""
    tables, n = box.tables, box.tables.n_features
    size = 4 * ceil(n / 4)
    Q = np.zeros((len(factors), size, size))
    gamma = tables.monomials[:, n:]
    for i in np.flatnonzero(gamma.sum(axis=1) == 2):
        first, last = np.flatnonzero(gamma[i])[[0, -1]]
        value = 0.5 * (factors[:, i] - factors[:, tables.q + i])
        Q[:, first, last] += value
        Q[:, last, first] += value
    return Q


class _Quadratic(NamedTuple):
    """Factors at samples: base (f, m) and slope (f, n4, m) of ρ, psi and edge (m, f n_z)."""

    base: Float
    slope: Float
    psi: Float
    edge: Float


def _quadratic(box: Box, factors: Float, X: Float) -> _Quadratic:
    n, m, f = box.tables.n_features, len(X), len(factors)
    rho, psi, edge = _polynomials(box, factors, X)
    slope = np.zeros((f, 4 * ceil(n / 4), m))
    linear = rho[:, :, 1 : n + 1].transpose(0, 2, 1)
    slope[:, : linear.shape[1]] = linear
    base = np.ascontiguousarray(rho[:, :, 0])
    return _Quadratic(base, slope, *(x.transpose(1, 0, 2).reshape(m, -1) for x in (psi, edge)))


def gram_quadratic(box: Box, X: Float, Y: Float | None, factors: Float, out: RealArray) -> None:
    """Write ``Σ_f vᵀ G(xₖ, yₗ) v`` over the rows v of factors (f, n_P), where `is_quadratic` holds.

    Cost: 2n² + f(2n² + 14n) flops a pair, and 4f n_z in a product of matrices.
    """
    from ._njit_quadratic_gram import quadratic_rows

    lower = Y is None
    px = _quadratic(box, factors, X)
    py = px if Y is None else _quadratic(box, factors, Y)
    left, right = np.hstack([px.edge, px.psi]), np.hstack([py.psi, py.edge])
    YT = np.ascontiguousarray((X if Y is None else Y).T)
    Q = _second_degree(box, factors)
    S = np.sum(2.0 * Q * Q, axis=0)
    S.flat[:: len(S) + 1] -= 1.2 * np.einsum("fii,fii->i", Q, Q)

    def work(start: int, stop: int) -> None:
        out[start:stop] = left[start:stop] @ right.T
        quadratic_rows(
            X, YT, box.upper, px.base, py.base, px.slope, py.slope, Q, S, out, start, stop, lower
        )

    n = box.tables.n_features
    steps = float(len(X)) * YT.shape[1] * len(factors) * (n * n + 7 * n)
    run_blocks(work, row_bounds(len(X), lower=lower), steps)
    if lower:
        mirror(out)
