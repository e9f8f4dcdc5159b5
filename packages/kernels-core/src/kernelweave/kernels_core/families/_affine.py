"""Rank-one kernels whose integrand is affine in z: degree 0 and 1, and every ``z_degree=0``.

With ``vᵀN(z, x) = ψₓ(z) + I(z ≥ x) ρₓ(z)``, ``ρₓ(z) = cₓ + r·z`` and ``ψₓ(z) = eₓ + p·z``, the
kernel is ``∫_{[max(x,y), b]} ρₓρ_y`` plus three integrals that separate in x and y. The first is
``V·{(Bₓ − h)(B_y − h) + s}`` with ``B = c + r·b``, ``D = b − max(x, y)``, ``V = Π Dⱼ``,
``h = ½ Σ rⱼDⱼ`` and ``s = (1/12) Σ rⱼ²Dⱼ²``, because z is uniform there with mean b − D/2 and
variance D²/12; the others add up to ``eₓ a_y + aₓ e_y + kₓ + k_y``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import RealArray
from ..config import row_bounds, run_blocks
from ._box import Float, TessellatedTables, power_products
from ._general import Box


def is_affine(tables: TessellatedTables) -> bool:
    """Tell whether every monomial with z is a bare ``zⱼ``."""
    return tables.z_degree == 0 or tables.degree <= 1


class Coefficients(NamedTuple):
    """``ρₓ(z) = Φ(x)·rho_x + rho_z·z`` and ``ψₓ(z) = Φ(x)·psi_x + psi_z·z``.

    rho_x, psi_x (n_x,); rho_z, psi_z (n,), or of no entries where there is no z.
    """

    rho_x: Float
    rho_z: Float
    psi_x: Float
    psi_z: Float


def coefficients(tables: TessellatedTables, v: Float) -> Coefficients:
    """Split v (2q,) into the coefficients of ρ and ψ."""
    q = tables.q
    z = tables.z_index > 0
    rho, psi = v[:q] - v[q:], v[q:]
    return Coefficients(rho[~z], rho[z], psi[~z], psi[z])


class UniformMoments(NamedTuple):
    """Volume, means and variances of z uniform on [x, b]: (m,), (m, n), (m, n)."""

    volume: Float
    mean: Float
    var: Float


def uniform(low: Float, high: Float) -> UniformMoments:
    """Return the moments of a uniform z on [low, high]."""
    side = high - low
    return UniformMoments(np.prod(side, axis=-1), 0.5 * (low + high), side * side / 12.0)


def outer_parts(box: Box, c: Coefficients, X: Float) -> Float:
    """Return B, e, a, k of the module's formula, shape (4, m); cost O(mn)."""
    F = power_products(X, box.tables.x_powers)
    rho, other = F @ c.rho_x, F @ c.psi_x
    above, whole = uniform(X, box.upper), uniform(box.lower, box.upper)
    if len(c.rho_z) == 0:
        alpha = above.volume * rho
        return np.stack([rho, other, alpha + 0.5 * whole.volume * other, np.zeros(len(X))])
    alpha = above.volume * (rho + above.mean @ c.rho_z)
    centre = whole.mean @ c.psi_z
    beta = alpha * (above.mean @ c.psi_z) + above.volume * (above.var @ (c.rho_z * c.psi_z))
    e = other + centre
    a = alpha + 0.5 * whole.volume * e
    k = beta - alpha * centre + 0.5 * whole.volume * (whole.var @ c.psi_z**2)
    return np.stack([rho + box.upper @ c.rho_z, e, a, k])


def volumes(sides: Float, others: Float, out: RealArray) -> None:
    """Write ``Πⱼ min(sidesⱼₖ, othersⱼₗ)`` into out; sides (n, m_x), others (n, m_y), out float64.

    The sum of kernels with the integrand 1: all that is left of its formula is the volume.
    """
    from ._njit_affine_sum import sum_rows

    (n, m_x), m_y = sides.shape, others.shape[1]
    no_weights, no_slopes = np.empty(0), np.empty((2, 0))
    ones = [np.vstack([np.ones(m), np.zeros(m)]) for m in (m_x, m_y)]
    none = [np.empty((0, m)) for m in (m_x, m_y)]

    def work(start: int, stop: int) -> None:
        sum_rows(sides, others, n, no_weights, no_slopes, *ones, *none, out, start, stop, False)

    run_blocks(work, row_bounds(m_x, lower=False), float(sides.size) * m_y)


def balance(e: Float, a: Float) -> float:
    """Return the power of two that makes e·s and a/s about as large; a may carry a huge volume."""
    sizes = float(np.abs(e).max()), float(np.abs(a).max())
    if 0.0 in sizes:
        return 1.0
    return float(np.ldexp(1.0, round(0.5 * (np.log2(sizes[1]) - np.log2(sizes[0])))))
