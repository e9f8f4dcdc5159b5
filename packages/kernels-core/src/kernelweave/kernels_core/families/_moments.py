"""The moment matrix of a tessellated family, and a proven bound on its rounding error.

In the basis ``[Z·I; Z]`` the matrix ``D(w) = Σₖₗ wₖ wₗ G(xₖ, xₗ)`` has three blocks: *inner*,
``E₁ = Σ wₖwₗ ∫_{[max, b]} Z(z,xₖ)Z(z,xₗ)ᵀ``, the only one that costs a sum over pairs; *cross*,
``E₂[i,j] = H[δᵢ, γᵢ+γⱼ]·s[δⱼ]`` with ``H[δ, g] = Σₖ wₖ xₖ^δ T_g(xₖ, b)`` and ``s[δ] = Σₖ wₖ xₖ^δ``;
and *whole*, ``E₃[i,j] = s[δᵢ] s[δⱼ] T_g(a, b)``. Then

    D = [ E₁        E₂ − E₁ ;
          E₂ᵀ − E₁  E₃ − E₂ − E₂ᵀ + E₁ ].
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from ..config import row_bounds, run_blocks
from ..rounding import UNIT
from ._affine import volumes
from ._box import Float, Terms, moment_bounds, power_products
from ._general import Box, workspace

# Sums are cut in runs: 64 + m/64 roundings bound one of m terms instead of m. A run of √m terms is
# the best, which 64 is for m = 4096.
RUN = 64
# Rows that the compiled pass sums before they join the total, for the same reason.
_GROUP = 32
# Rows whose moments are held at a time, so that the memory does not grow with samples times
# moments.
_CHUNK = 512
# Measured: from here on the bound on rounding from pairs cost more than the moments themselves, and
# was at most one and a half times sharper than the one from single sums.
_MOST_PAIRED = 512

# Rows of a block at most; with many moments fewer fit.
_ROWS = 64
# Entries of a block of moments: 1 MB.
_ENTRIES = 2**17


def pair_sums(box: Box, X: Float, F: Float, rows: slice, weights: Float, terms: Terms) -> Float:
    """Return ``Σₗ weightsₖₗ T_{moment[c]}(max(xₖ, xₗ), b) F[l, power[c]]``, (rows, n_terms).

    X (m, n), F (m, n_x) its x-monomials, weights (rows, m). The sum over l is cut in runs of 64.
    Cost: ``n_g + 2 n_terms`` flops a pair, most of them in products of matrices.
    """
    from ._njit_general import pair_moments

    n_g = len(box.tables.moments)
    XT, X_rows, groups = np.ascontiguousarray(X.T), X[rows], terms.groups
    out = np.empty((len(weights), len(terms.moment)))
    size = min(_ROWS, max(1, _ENTRIES // (RUN * n_g)))
    high, means, _ = workspace(box.tables)
    block = np.empty((size, n_g, RUN))
    for first in range(0, len(weights), size):
        part = slice(first, min(first + size, len(weights)))
        left, weight = X_rows[part], np.ascontiguousarray(weights[part])
        T = block[: len(left)]
        totals = [np.zeros((len(left), g, x.stop - x.start)) for g, x in groups]
        for c in range(0, len(X), RUN):
            run = slice(c, min(c + RUN, len(X)))
            width = run.stop - c
            pair_moments(
                left, XT, box.upper, box.tables.recursion, weight, c, width, high, means, T
            )
            for total, (g, x) in zip(totals, groups, strict=True):
                total += T[:, :g, :width] @ F[run, x]
        by_power = [total.transpose(0, 2, 1).reshape(len(left), -1) for total in totals]
        np.concatenate(by_power, axis=1, out=out[part])
    return out


def blocked_product(A: Float, B: Float) -> Float:
    """Return ``A @ B`` summed in runs of 64 terms, whose error 64 + m/64 roundings bound, not m."""
    total = np.zeros((A.shape[0], B.shape[1]))
    for c in range(0, A.shape[1], RUN):
        total += A[:, c : c + RUN] @ B[c : c + RUN]
    return total


def has_affine_moment(box: Box) -> bool:
    """Tell whether the faster sum for degree 1 with all its z applies."""
    return box.tables.degree == 1 and box.tables.z_degree == 1


def binary_units(sides: Float) -> tuple[Float, int]:
    """Return powers of two that bring every row of sides (n, m) to about 1, and their product.

    The units are 2^−eⱼ, and Σ eⱼ is even: scaling by them rounds nothing, and its square root is
    a power of two as well.
    """
    largest = sides.max(axis=1)
    powers = np.zeros(len(largest), dtype=np.int64)
    powers[largest > 0] = np.round(np.log2(largest[largest > 0])).astype(np.int64)
    powers[0] += int(powers.sum()) % 2
    return np.ldexp(1.0, -powers), int(powers.sum())


def inner_affine(box: Box, X: Float, W: Float) -> Float:
    """Return E₁ at degree 1, shape (q, q), by the compiled half sum; m²/2·(n² + 12n) flops."""
    from ._njit_affine_moment import moment_group

    m, n = X.shape
    n4 = -(-n // 4) * 4
    XT = np.ascontiguousarray(X.T)
    F = np.vstack([np.ones((1, m)), XT])
    units, power = binary_units(box.upper[:, None] - XT)

    def work(start: int, stop: int) -> list[Float]:
        total = [np.zeros(shape) for shape in ((n + 1, n + 1), (n, n + 2), (n4, n4))]
        s, mean, side = np.empty(RUN), np.zeros((n4, RUN)), np.empty((n, RUN))
        weighted, columns = np.zeros((n4, RUN)), np.zeros((n, m))
        fx, fz, row_zz = np.zeros(n + 1), np.zeros((2, n)), np.zeros((n4, n4))
        for k in range(start, stop, _GROUP):
            part = [np.zeros_like(sums) for sums in total]
            moment_group(
                XT, F, box.upper, units, W, k, min(k + _GROUP, stop),
                s, mean, side, weighted, columns, fx, fz, row_zz, *part,
            )  # fmt: skip
            for sums, more in zip(total, part, strict=True):
                sums += more
        return total

    steps = float(len(X)) ** 2 * (0.5 * n * n + 4 * n + len(W))
    parts = run_blocks(work, row_bounds(len(X), lower=True), steps)
    xx, zx, zz = (np.sum([part[i] for part in parts], axis=0) for i in range(3))
    half = np.tril(zz[:n, :n], -1)
    E = np.empty((2 * n + 1, 2 * n + 1))
    E[: n + 1, : n + 1] = xx + xx.T
    E[n + 1 :, : n + 1] = zx[:, : n + 1]
    E[: n + 1, n + 1 :] = zx[:, : n + 1].T
    E[n + 1 :, n + 1 :] = 2.0 * (half + half.T + np.diag(np.diag(zz)[:n] + zx[:, n + 1] / 12.0))
    return np.ldexp(E, power)


def inner_general(box: Box, X: Float, W: Float) -> Float:
    """Return E₁ of any degree, shape (q, q): sums over l, then products over k."""
    tables, terms = box.tables, box.tables.moment_terms
    F = power_products(X, tables.x_powers)

    def work(start: int, stop: int) -> Float:
        rows = slice(start, stop)
        return blocked_product(F[rows].T, pair_sums(box, X, F, rows, W[:, rows].T @ W, terms))

    steps = float(len(X)) ** 2 * (len(tables.moments) + 2 * len(terms.moment))
    parts = run_blocks(work, row_bounds(len(X), lower=False), steps)
    B: Float = np.sum(parts, axis=0)
    return np.asarray(B[terms.row_power, terms.term])


def _outer(box: Box, X: Float, W: Float) -> tuple[Float, Float]:
    """Return E₂ and E₃, each (q, q)."""
    tables = box.tables
    F = power_products(X, tables.x_powers)
    s = blocked_product(W, F)
    i, g = tables.x_index, tables.entry_moment
    cross = np.zeros((tables.q, tables.q))
    H = np.zeros((len(W), len(tables.moments), F.shape[1]))
    for c in range(0, len(X), _CHUNK):
        rows = slice(c, c + _CHUNK)
        above = box.above(X[rows])
        for t in range(len(W)):
            H[t] += blocked_product(above, W[t, rows, None] * F[rows])
    for t in range(len(W)):
        cross += H[t][g, i[:, None]] * s[t][i]
    return cross, (s.T @ s)[np.ix_(i, i)] * box.whole()[g]


def moment(box: Box, X: Float, W: Float) -> Float:
    """Return ``D = Σₜ D(Wₜ)``, shape (n_P, n_P); rows of X without weight cost nothing."""
    n_P = 2 * box.tables.q
    active = np.flatnonzero(np.any(W != 0.0, axis=0))
    if len(active) == 0:
        return np.zeros((n_P, n_P))
    X, W = np.ascontiguousarray(X[active]), np.ascontiguousarray(W[:, active])
    inner = (inner_affine if has_affine_moment(box) else inner_general)(box, X, W)
    cross, whole = _outer(box, X, W)
    side = cross - inner
    return np.block([[inner, side], [side.T, whole - (cross + cross.T) + inner]])


class Roundings(NamedTuple):
    """How many relative roundings k meet in one entry of a block, or γₖ of them."""

    inner: float
    cross: float
    whole: float
    sums: float


def roundings(box: Box, m: int, t: int) -> Roundings:
    """Count the roundings behind an entry of the blocks, for m active samples and t rows."""
    n, d, z = box.tables.n_features, box.tables.degree, box.tables.z_degree
    runs = ceil(m / RUN)
    affine = has_affine_moment(box)
    blocks = row_bounds(m, lower=affine)
    longest = ceil(max(stop - start for start, stop in blocks) / _GROUP)
    if affine:
        inner = (2 * n + t + 8) + (RUN + 33 + runs + longest + len(blocks))
    else:
        per_block = RUN + ceil(longest * _GROUP / RUN) + len(blocks)
        inner = (2 * n + t + 12 * z + 2 * d + 6) + (RUN + runs) + per_block
    box_terms = 2 * n + 12 * z + 4
    chunks = ceil(m / _CHUNK) + ceil(_CHUNK / RUN)
    cross = box_terms + d + 3 + RUN + chunks + t
    return Roundings(inner + 6, cross + 6, box_terms + t + 8, d + 2 + RUN + runs)


def _inner_sizes(box: Box, X: Float, W: Float) -> Float:
    """Bound ``Σₖₗ Σₜ|WₜₖWₜₗ| V(xₖ,xₗ) φᵢ(xₖ) φⱼ(xₗ)``, φ = |x|^δ max(|x|,|b|)^γ: (q, q).

    Equal to it for up to 512 samples; past them, where the sum over pairs would cost as much as
    the moment matrix itself, ``V(x, y)² ≤ V(x, x) V(y, y)`` makes it a product of single sums, at
    most one and a half times as large in all that was tried.
    """
    tables = box.tables
    weights = np.abs(W)
    reach = np.maximum(np.abs(X), np.abs(box.upper))
    sizes = power_products(np.hstack([np.abs(X), reach]), tables.monomials)
    sides = np.ascontiguousarray((box.upper - X).T)
    if len(X) > _MOST_PAIRED:
        sums = weights @ (np.sqrt(np.prod(sides, axis=0))[:, None] * sizes)
        return np.asarray(sums.T @ sums)
    total = np.zeros((tables.q, tables.q))
    for c in range(0, len(X), _CHUNK):
        rows = slice(c, min(c + _CHUNK, len(X)))
        V = np.empty((rows.stop - c, len(X)))
        volumes(np.ascontiguousarray(sides[:, rows]), sides, V)
        V *= weights[:, rows].T @ weights
        total += sizes[rows].T @ (V @ sizes)
    return total


def moment_error(box: Box, X: Float, W: Float) -> float:
    """Bound ``‖moment − D‖₂``; see the docstring of the public method for the argument."""
    active = np.flatnonzero(np.any(W != 0.0, axis=0))
    if len(active) == 0:
        return 0.0
    X, W = np.ascontiguousarray(X[active]), np.ascontiguousarray(W[:, active])
    tables = box.tables
    count = roundings(box, len(X), len(W))
    unit = Roundings(*(k * UNIT / (1.0 - k * UNIT) for k in count))
    i, g = tables.x_index, tables.entry_moment
    F = power_products(X, tables.x_powers)
    upper = np.broadcast_to(box.upper, X.shape)
    sizes = moment_bounds(tables, X, upper)
    whole_sizes = moment_bounds(tables, box.lower[None, :], box.upper[None, :])[:, 0][g]
    inner = unit.inner * _inner_sizes(box, X, W)
    cross, whole = np.zeros_like(inner), np.zeros_like(inner)
    for w in W:
        loose = unit.sums * (np.abs(w) @ np.abs(F))
        s = np.abs(blocked_product(w[None, :], F)[0]) + loose
        H = sizes @ np.abs(w[:, None] * F)
        cross += H[g, i[:, None]] * (unit.cross * s + loose)[i]
        both = np.outer(s, loose) + np.outer(loose, s) + unit.whole * np.outer(s, s)
        whole += both[np.ix_(i, i)] * whole_sizes
    side = inner + cross
    bound = np.block([[inner, side], [side.T, whole + cross + side.T]])
    norm = min(float(np.linalg.norm(bound)), float(bound.sum(axis=1).max()))
    return norm * (1.0 + 1e-6)
