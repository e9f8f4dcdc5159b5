"""Sums over pairs of samples of the moments of the box between them, as products of matrices."""

from __future__ import annotations

import numpy as np

from ._box import Float
from ._general import Box
from ._tables import Terms

_RUN = 64
_ROWS = 64
# Entries of a block of moments: 8 MB.
_ENTRIES = 2**20


def _block_moments(box: Box, left: Float, right: Float, weights: Float) -> Float:
    """Return ``weights·T_g(max(xₖ, xₗ), b)`` of rows and a run, shape (n_g, rows, run).

    left (n, rows) and right (n, run) hold the samples, weights is (rows, run). With z uniform on
    [high, b], ``E[zᵉ] = Σᵢ bⁱ high^{e−i} / (e + 1)``.
    """
    parent, variable, exponent = box.tables.recursion
    top = 2 * box.tables.z_degree
    high = np.maximum(left[:, :, None], right[:, None, :])
    corner = box.upper[:, None, None]
    means = np.ones((top + 1, *high.shape))
    for e in range(1, top + 1):
        np.multiply(means[e - 1], high, out=means[e])
        means[e] += corner**e
    means /= np.arange(1.0, top + 2.0)[:, None, None, None]
    T = np.empty((len(parent), *weights.shape))
    np.multiply(weights, np.prod(corner - high, axis=0), out=T[0])
    for level in box.tables.levels:
        T[level] = T[parent[level]] * means[exponent[level], variable[level]]
    return T


def pair_sums(box: Box, X: Float, F: Float, rows: slice, weights: Float, terms: Terms) -> Float:
    """Return ``Σₗ weightsₖₗ T_{moment[c]}(max(xₖ, xₗ), b) F[l, power[c]]``, (rows, n_terms).

    X (m, n), F (m, n_x) its x-monomials, weights (rows, m). The sum over l is cut in runs of 64.
    Cost: ``n_g + 2 n_g n_x`` flops a pair, most of them in a product of matrices.
    """
    n_g, n_x = len(box.tables.moments), F.shape[1]
    XT = np.ascontiguousarray(X.T)
    out = np.empty((len(weights), len(terms.moment)))
    size = min(_ROWS, max(8, _ENTRIES // (_RUN * n_g)))
    for first in range(0, len(weights), size):
        part = slice(first, min(first + size, len(weights)))
        left = XT[:, rows][:, part]
        total = np.zeros((n_g * left.shape[1], n_x))
        for c in range(0, len(X), _RUN):
            run = slice(c, c + _RUN)
            T = _block_moments(box, left, XT[:, run], weights[part, run])
            total += T.reshape(len(total), -1) @ F[run]
        sums = total.reshape(n_g, -1, n_x)
        out[part] = sums[terms.moment, :, terms.power].T
    return out
