"""How the decision values of fixed dual coefficients change with the factor of P.

With ``Φₖ = Σₗ wₗ G(xₖ, xₗ)`` the derivative of ``(K(UUᵀ) w)ₖ`` in U is ``(Φₖ + Φₖᵀ) U``. In the
basis [Z·I; Z] of the moments' file, U is ρ = U₁ − U₂ on the first half and ψ = U₂ on the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..threads import row_bounds, run_blocks
from ._box import Float
from ._general import Box
from ._moments import by_runs
from ._pair_moments import pair_sums
from ._tables import power_products

# Numbers of the intermediate products at a time: 32 MiB.
_ENTRIES = 2**22


class _Sums(NamedTuple):
    """Sums over l: inner (rows, n_terms), above (n_g, rows), ends (n_x, n_g), mass (n_x,)."""

    inner: Float
    above: Float
    ends: Float
    mass: Float


def _pair_sums(box: Box, X: Float, F: Float, w: Float, n_rows: int) -> Float:
    """Return ``Σₗ wₗ x_l^δ' T_g(max(xₖ, xₗ), b)`` for the first ``n_rows`` samples."""
    tables, terms = box.tables, box.tables.gram_terms
    out = np.empty((n_rows, len(terms.moment)))

    def work(start: int, stop: int) -> None:
        weights = np.broadcast_to(w, (stop - start, len(w)))
        out[start:stop] = pair_sums(box, X, F, slice(start, stop), weights, terms)

    steps = float(n_rows) * len(X) * (len(tables.moments) + 2 * len(terms.moment))
    run_blocks(work, row_bounds(n_rows, lower=False), steps)
    return out


def _sums(box: Box, X: Float, w: Float, n_rows: int) -> _Sums:
    F = power_products(X, box.tables.x_powers)
    ends = by_runs((w[:, None] * F).T, box.above(X).T)
    return _Sums(_pair_sums(box, X, F, w, n_rows), box.above(X[:n_rows]), ends, w @ F)


def _contract(box: Box, F: Float, sums: _Sums, rows: slice, U: Float) -> Float:
    """Return ``(Φₖ + Φₖᵀ) U`` of a run of rows, shape (rows, 2q, r).

    The sums of entry (i, j) depend on i by its power γᵢ of z alone, so they are taken once for
    each of the n_z powers, at the monomials of z alone.
    """
    tables, q, r = box.tables, box.tables.q, U.shape[1]
    i, z = tables.x_index, tables.z_index
    bare = np.flatnonzero(i == 0)
    bare = bare[np.argsort(z[bare])]
    g, term = tables.entry_moment[bare], tables.gram_terms.term[bare]
    own = F[:, i][:, :, None]
    by_power = np.zeros((F.shape[1], len(bare), 2 * r))
    rho, psi = U[:q] - U[q:], U[q:]
    by_power[i, z] = np.hstack([rho, psi])
    mixed = (F @ by_power.reshape(len(by_power), -1)).reshape(len(F), len(bare), 2 * r)
    own_rho, own_psi = mixed[:, :, :r], mixed[:, :, r:]

    inner = sums.inner[rows][:, term]
    above = sums.above[:, rows].T[:, g] * sums.mass[i]
    ends, whole = sums.ends[i, g], box.whole()[g] * sums.mass[i]
    first = own * (inner @ rho + above @ psi)[:, z]
    second = own * (ends @ rho + whole @ psi)[z]
    first += inner.transpose(0, 2, 1) @ own_rho + ends.T @ own_psi
    second += above.transpose(0, 2, 1) @ own_rho + whole.T @ own_psi
    return np.concatenate([first, second - first], axis=1)


def sample_products(
    box: Box, X: Float, w: Float, U: Float, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return ``(Φₖ + Φₖᵀ) U`` for the samples k in ``rows``, shape (len(rows), n_P, r).

    Cost: about 3n² flops a pair of a row and a weighted sample at degree 1, and 8q n_z r a row for
    n_z powers of z.
    """
    rest = np.setdiff1d(np.flatnonzero(w), rows)
    order = np.concatenate([rows, rest])
    X, w = np.ascontiguousarray(X[order]), np.ascontiguousarray(w[order])
    sums = _sums(box, X, w, len(rows))
    F = power_products(X[: len(rows)], box.tables.x_powers)
    out = np.empty((len(rows), 2 * box.tables.q, U.shape[1]))
    step = max(1, _ENTRIES // (box.tables.q * len(box.tables.z_powers)))
    for start in range(0, len(rows), step):
        run = slice(start, start + step)
        out[run] = _contract(box, F[run], sums, run, U)
    return out
