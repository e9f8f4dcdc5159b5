"""Integrals of monomials over boxes, in float64, and the index tables of tessellated families.

Throughout, ``T_g(l, u) = Πⱼ ∫_{lⱼ}^{uⱼ} z^{gⱼ} dz`` for an exponent vector g; the kernels need it
over [x, b], over [max(x, y), b] and over the whole box [a, b] (2024 paper, Corollary 12, with the
corrections of its lower-left block and exponents).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, pairwise
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import memory

Float = NDArray[np.float64]

IntArray = NDArray[np.int64]


def exponents(n_variables: int, degree: int) -> IntArray:
    """Return all exponents of total degree ≤ ``degree``, sorted by degree.

    Within a degree they stand in the order of `itertools.combinations_with_replacement`. Returns
    shape (C(n_variables + degree, degree), n_variables).
    """
    chosen = [
        combination
        for k in range(degree + 1)
        for combination in combinations_with_replacement(range(n_variables), k)
    ]
    table = np.zeros((len(chosen), n_variables), dtype=np.int64)
    for i, combination in enumerate(chosen):
        for j in combination:
            table[i, j] += 1
    return table


def power_products(X: NDArray[np.float64], table: IntArray) -> NDArray[np.float64]:
    """Return ``Φₖᵢ = Πⱼ Xₖⱼ^{table[i, j]}``, shape (m, len(table)).

    Every entry costs ``degree - 1`` products, so its relative rounding error is at most
    ``degree - 1`` units.
    """
    out = np.ones((X.shape[0], len(table)))
    for i, row in enumerate(table):
        factors = np.repeat(np.arange(len(row)), row)
        for count, j in enumerate(factors):
            out[:, i] = X[:, j] if count == 0 else out[:, i] * X[:, j]
    return out


def count_tessellated(n_features: int, degree: int, z_degree: int) -> int:
    """Return q, the number of monomials ``x^δ z^γ``, ``|δ| + |γ| ≤ degree``, ``|γ| ≤ z_degree``."""
    n = n_features
    return sum(comb(n + k - 1, k) * comb(n + degree - k, degree - k) for k in range(z_degree + 1))


class Terms(NamedTuple):
    """Distinct products ``x_l^δ' · T_g`` in a sum over pairs, and the one of each entry of P.

    They are sorted by δ'. moment (n_terms,): index of g; power (n_terms,): index of δ'; row_power
    (q, q): the index of δ that multiplies the term in entry (i, j); term (q, q): that term.
    """

    moment: IntArray
    power: IntArray
    row_power: IntArray
    term: IntArray

    @property
    def groups(self) -> list[tuple[int, slice]]:
        """Runs of powers δ' that occur with the same moments: their number, and the run.

        Powers are sorted by degree, and one of degree k occurs with the first moments up to some
        degree, so the number of moments tells which they are.
        """
        counts = np.bincount(self.power)
        edges = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
        return [(int(counts[a]), slice(a, b)) for a, b in pairwise(edges)]


class TessellatedTables:
    """Index tables of the monomials ``Zᵢ(z, x) = x^{δᵢ} z^{γᵢ}`` in n features.

    monomials (q, 2n): exponents of x, then of z; x_powers (n_x, n), z_powers (n_z, n) and moments
    (n_g, n): the distinct δ, γ and γ + γ'; x_index, z_index (q,): of each monomial.
    """

    def __init__(self, n_features: int, degree: int, z_degree: int) -> None:
        both = exponents(2 * n_features, degree)
        keep = both[:, n_features:].sum(axis=1) <= z_degree
        self.n_features, self.degree, self.z_degree = n_features, degree, z_degree
        self.monomials = both[keep]
        self.x_powers = exponents(n_features, degree)
        self.z_powers = exponents(n_features, z_degree)
        self.moments = exponents(n_features, 2 * z_degree)
        self.x_index = self._find(self.x_powers, self.monomials[:, :n_features])
        self.z_index = self._find(self.z_powers, self.monomials[:, n_features:])

    @staticmethod
    def _find(table: IntArray, rows: IntArray) -> IntArray:
        """Return the position in ``table`` of each of ``rows``.

        Rows are compared by a random linear hash, which is faster than comparing them; a collision
        is detected.
        """
        weights = np.random.default_rng(0).integers(1, 2**40, size=table.shape[1])
        keys = table @ weights
        order = np.argsort(keys)
        positions = order[np.searchsorted(keys[order], rows @ weights)]
        if not np.array_equal(table[positions], rows):
            raise AssertionError("exponent lookup collided")
        return positions.astype(np.int64)

    @property
    def q(self) -> int:
        """Number of monomials; ``n_P = 2q``."""
        return len(self.monomials)

    @cached_property
    def pair_moment(self) -> IntArray:
        """Index of ``γₐ + γ_b`` in `moments`, int64 (n_z, n_z)."""
        n_z, n = self.z_powers.shape
        sums = self.z_powers[:, None, :] + self.z_powers[None, :, :]
        return self._find(self.moments, sums.reshape(-1, n)).reshape(n_z, n_z)

    @cached_property
    def entry_moment(self) -> IntArray:
        """Index of ``γᵢ + γⱼ`` in `moments`, int64 (q, q)."""
        return self.pair_moment[np.ix_(self.z_index, self.z_index)]

    @cached_property
    def recursion(self) -> tuple[IntArray, IntArray, IntArray]:
        """For every g: the g without its last variable, that variable, and its exponent."""
        count = len(self.moments)
        variable = np.zeros(count, dtype=np.int64)
        exponent = np.zeros(count, dtype=np.int64)
        parents = self.moments.copy()
        for i in range(1, count):
            j = int(np.flatnonzero(self.moments[i])[-1])
            variable[i], exponent[i] = j, self.moments[i, j]
            parents[i, j] = 0
        return self._find(self.moments, parents), variable, exponent

    def _terms(self, row: IntArray, column: IntArray) -> Terms:
        n_g = len(self.moments)
        code = self.x_index[column] * n_g + self.entry_moment
        distinct, term = np.unique(code, return_inverse=True)
        return Terms(distinct % n_g, distinct // n_g, self.x_index[row], term.reshape(code.shape))

    @cached_property
    def gram_terms(self) -> Terms:
        """Terms for a sum over (i, j) at a fixed pair of samples: all (γᵢ + γⱼ, δⱼ)."""
        i, j = np.indices((self.q, self.q))
        return self._terms(i, j)

    @cached_property
    def moment_terms(self) -> Terms:
        """Terms for a symmetric sum over samples, where (j, i) may stand for (i, j).

        Of both the one with the smaller |δⱼ| is taken, which makes fewer distinct terms.
        """
        i, j = np.indices((self.q, self.q))
        size = self.x_powers[self.x_index].sum(axis=1) * (self.q + 1) + np.arange(self.q)
        swap = size[j] > size[i]
        return self._terms(np.where(swap, j, i), np.where(swap, i, j))


@lru_cache(maxsize=16)
def tessellated_tables(n_features: int, degree: int, z_degree: int) -> TessellatedTables:
    """Return the tables of a family; they are shared and never written to."""
    _require_tables(n_features, degree, z_degree)
    return TessellatedTables(n_features, degree, z_degree)


def _require_tables(n_features: int, degree: int, z_degree: int) -> None:
    """Raise MemoryBudgetError if the tables would not fit."""

    def nbytes(n: int) -> int:
        return 8 * (2 * n * comb(2 * n + degree, degree) + n * comb(n + 2 * z_degree, 2 * z_degree))

    most = bisect_right(range(n_features), memory.limit_bytes(), key=nbytes) - 1
    memory.require(
        nbytes(n_features),
        f"the tables of a tessellated kernel of degree {degree} in {n_features} features",
        alternative=f"choose {most} features or fewer, or learn weights of kernels, whose matrices "
        "have one size for any number of features (SparseMKLClassifier, SparseMKLRegressor)",
    )


def interval_means(low: Float, high: Float, top: int) -> Float:
    """Return ``E[zᵉ]``, z uniform on [low, high], e = 0 … top, shape (top + 1, *low.shape)."""
    sums = np.ones((top + 1, *low.shape))
    power = np.ones_like(high)
    for e in range(1, top + 1):
        power = power * high
        sums[e] = sums[e - 1] * low + power
    return np.asarray(sums / np.arange(1.0, top + 2.0).reshape(-1, *[1] * low.ndim))


def box_moments(tables: TessellatedTables, low: Float, high: Float) -> Float:
    """Return ``T_g(low, high)`` for every g of the tables."""
    means = interval_means(low, high, 2 * tables.z_degree)
    return _product_moments(tables, np.prod(high - low, axis=1), means)


def moment_bounds(tables: TessellatedTables, low: Float, high: Float) -> Float:
    """Return bounds on ``|T_g(l, high)|`` for low ≤ l ≤ high, shape (n_g, m).

    The bound is the volume times ``max(|low|, |high|)^g``; it holds for every intermediate result
    of an evaluation of T_g as well.
    """
    largest = np.maximum(np.abs(low), np.abs(high))
    sizes = np.stack([largest**e for e in range(2 * tables.z_degree + 1)])
    return _product_moments(tables, np.prod(high - low, axis=1), sizes)


def _product_moments(tables: TessellatedTables, volume: Float, factors: Float) -> Float:
    parent, variable, exponent = tables.recursion
    T = np.empty((len(tables.moments), len(volume)))
    T[0] = volume
    for g in range(1, len(T)):
        np.multiply(T[parent[g]], factors[exponent[g], :, variable[g]], out=T[g])
    return T


def _interval_parts(x: Float, y: Float, a: Float, b: Float, top: int) -> tuple[Float, ...]:
    """Return the integrals of zᵉ, e = 0 … top, over the parts into which x and y cut [a, b].

    Returns six arrays of shape (top + 1, n), over z above both, above x only, above y only, below
    both, above x, and above y. The integral over an empty part is exactly zero.
    """
    low, high = np.minimum(x, y), np.maximum(x, y)
    between = (high - low) * interval_means(low, high, top)
    both = (b - high) * interval_means(high, b, top)
    only_x, only_y = between * (x < y), between * (y < x)
    below = (low - a) * interval_means(a, low, top)
    above_x = (b - x) * interval_means(x, b, top)
    above_y = (b - y) * interval_means(y, b, top)
    return both, only_x, only_y, below, above_x, above_y


def block(tables: TessellatedTables, x: Float, y: Float, a: Float, b: Float) -> Float:
    """Return ``G(x, y)``, shape (2q, 2q), by a recursion over features without cancellation.

    Of the features so far, g is the integral over the z above both points, t over those above x but
    not y, s over those above y but not x, and h over those above neither. One more feature turns
    them into sums of products with its interval integrals. Nothing is subtracted, so an integral
    over an empty set is exactly zero.
    """
    parts = _interval_parts(x, y, a, b, 2 * tables.z_degree)
    g = np.ones((tables.q, tables.q))
    t, s, h = np.zeros_like(g), np.zeros_like(g), np.zeros_like(g)
    for j in range(tables.n_features):
        gamma = tables.monomials[:, tables.n_features + j]
        exponent = gamma[:, None] + gamma[None, :]
        both, only_x, only_y, below, above_x, above_y = (part[exponent, j] for part in parts)
        below_x, below_y = below + only_y, below + only_x
        whole = above_x + below_x
        h = h * whole + t * below_x + s * below_y + g * below
        t = t * above_x + g * only_x
        s = s * above_y + g * only_y
        g = g * both
    fx = np.prod(x ** tables.monomials[:, : tables.n_features], axis=1)
    fy = np.prod(y ** tables.monomials[:, : tables.n_features], axis=1)
    scaled = np.block([[g, t], [s, h]]) * np.tile(fx, 2)[:, None] * np.tile(fy, 2)[None, :]
    return np.asarray(scaled)


def indicator_blocks(P: Float) -> tuple[Float, Float, Float]:
    """Return P for the basis ``[Z·I; Z]`` in place of ``[Z·I; Z·(1 − I)]``, as three blocks.

    ``⟨P, G⟩`` is the sum of the first block against integrals over [max(x, y), b], the second
    (and its transpose, with x and y exchanged) over [x, b] and the third over [a, b].
    """
    q = len(P) // 2
    A, B, C = P[:q, :q], P[:q, q:], P[q:, q:]
    return A - B - B.T + C, B - C, C


def term_coefficients(tables: TessellatedTables, P: Float) -> Float:
    """Return F (n_x, n_terms) with ``Σᵢⱼ Pᵢⱼ x^{δᵢ} T_{γᵢ+γⱼ} y^{δⱼ} = Σ_c (Φ(x)F)_c term_c``.

    Term c is ``T_{moment[c]} y^{power[c]}`` of ``tables.gram_terms``.
    """
    terms = tables.gram_terms
    F = np.zeros((len(tables.x_powers), len(terms.moment)))
    np.add.at(F, (terms.row_power, terms.term), P)
    return F


def sum_terms(values: Float, power: IntArray, n_x: int) -> Float:
    """Return the sums of ``values`` (m, n_terms) over the terms of each power, shape (m, n_x).

    `power`: sorted, and every power occurs in it.
    """
    starts = np.searchsorted(power, np.arange(n_x))
    return np.asarray(np.add.reduceat(values, starts, axis=1))
