"""Integrals of monomials over boxes, in float64: the host side of the tessellated families.

Throughout, ``T_g(l, u) = Πⱼ ∫_{lⱼ}^{uⱼ} z^{gⱼ} dz`` for an exponent vector g; the kernels need it
over [x, b], over [max(x, y), b] and over the whole box [a, b] (2024 paper, Corollary 12, with the
corrections of its lower-left block and exponents).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._tables import IntArray, TessellatedTables

Float = NDArray[np.float64]


def interval_means(low: Float, high: Float, top: int) -> Float:
    """Return ``E[zᵉ]``, z uniform on [low, high], e = 0 … top, shape (top + 1, *low.shape)."""
    sums = np.ones((top + 1, *low.shape))
    power = np.ones_like(high)
    for e in range(1, top + 1):
        power = power * high
        sums[e] = sums[e - 1] * low + power
    return np.asarray(sums / np.arange(1.0, top + 2.0).reshape(-1, *[1] * low.ndim))


def box_moments(tables: TessellatedTables, low: Float, high: Float) -> Float:
    """Return ``T_g(low, high)`` for every g of the tables.

    `low`, `high` of shape (m, n). Returns shape (n_g, m).
    """
    means = interval_means(low, high, 2 * tables.z_degree)
    return _product_moments(tables, np.prod(high - low, axis=1), means)


def moment_sizes(tables: TessellatedTables, low: Float, high: Float) -> Float:
    """Return bounds on ``|T_g(l, high)|`` for low ≤ l ≤ high, as if by size: (n_g, m).

    The volume times ``max(|low|, |high|)^g``; every intermediate result of an evaluation of T_g
    is bounded by it as well.
    """
    reach = np.maximum(np.abs(low), np.abs(high))
    sizes = np.stack([reach**e for e in range(2 * tables.z_degree + 1)])
    return _product_moments(tables, np.prod(high - low, axis=1), sizes)


def _product_moments(tables: TessellatedTables, volume: Float, factors: Float) -> Float:
    parent, variable, exponent = tables.recursion
    T = np.empty((len(tables.moments), len(volume)))
    T[0] = volume
    for g in range(1, len(T)):
        np.multiply(T[parent[g]], factors[exponent[g], :, variable[g]], out=T[g])
    return T


def _cells(x: Float, y: Float, a: Float, b: Float, top: int) -> tuple[Float, ...]:
    """Integrate zᵉ over the parts of [a, b] on both, one or neither side of x and y.

    Returns six arrays (top + 1, n): above both, above x only, above y only, below both, above x,
    above y. A part that is empty is exactly zero.
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

    With g the integral over the z above both points so far, t above x and not above y, t' the
    reverse and h above neither, one more feature turns (g, t, t', h) into sums of products with
    its interval integrals; nothing is subtracted, so integrals that vanish are exactly zero.
    """
    cells = _cells(x, y, a, b, 2 * tables.z_degree)
    g = np.ones((tables.q, tables.q))
    t, s, h = np.zeros_like(g), np.zeros_like(g), np.zeros_like(g)
    for j in range(tables.n_features):
        gamma = tables.monomials[:, tables.n_features + j]
        pick = gamma[:, None] + gamma[None, :]
        both, only_x, only_y, below, above_x, above_y = (cell[pick, j] for cell in cells)
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


def split(P: Float) -> tuple[Float, Float, Float]:
    """Return P for the basis ``[Z·I; Z]`` in place of ``[Z·I; Z·(1 − I)]``, as three blocks.

    ``⟨P, G⟩`` is the sum of the first block against integrals over [max(x, y), b], the second
    (and its transpose, with x and y exchanged) over [x, b] and the third over [a, b].
    """
    q = len(P) // 2
    A, B, C = P[:q, :q], P[:q, q:], P[q:, q:]
    return A - B - B.T + C, B - C, C


def fold(tables: TessellatedTables, P: Float) -> Float:
    """Return F (n_x, n_terms) with ``Σᵢⱼ Pᵢⱼ x^{δᵢ} T_{γᵢ+γⱼ} y^{δⱼ} = Σ_c (Φ(x)F)_c term_c``.

    Term c is ``T_{moment[c]} y^{power[c]}`` of ``tables.gram_terms``.
    """
    terms = tables.gram_terms
    F = np.zeros((len(tables.x_powers), len(terms.moment)))
    np.add.at(F, (terms.row_power, terms.term), P)
    return F


def sum_terms(values: Float, power: IntArray, n_x: int) -> Float:
    """Return the sums of ``values`` (m, n_terms) over the terms of one power, shape (m, n_x)."""
    starts = np.searchsorted(power, np.arange(n_x))
    return np.asarray(np.add.reduceat(values, starts, axis=1))
