"""Sums over pairs of samples of the moments of the box between them, as products of matrices."""

from __future__ import annotations

import numpy as np

from ._box import Float
from ._general import Box, workspace
from ._tables import Terms

# Samples of a run, as in `_moments.py`, whose bound on the rounding counts them.
_RUN = 64
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
    XT, own, groups = np.ascontiguousarray(X.T), X[rows], terms.groups
    out = np.empty((len(weights), len(terms.moment)))
    size = min(_ROWS, max(1, _ENTRIES // (_RUN * n_g)))
    high, means, _ = workspace(box.tables)
    block = np.empty((size, n_g, _RUN))
    for first in range(0, len(weights), size):
        part = slice(first, min(first + size, len(weights)))
        left, weight = own[part], np.ascontiguousarray(weights[part])
        T = block[: len(left)]
        totals = [np.zeros((len(left), g, x.stop - x.start)) for g, x in groups]
        for c in range(0, len(X), _RUN):
            run = slice(c, min(c + _RUN, len(X)))
            width = run.stop - c
            pair_moments(
                left, XT, box.upper, box.tables.recursion, weight, c, width, high, means, T
            )
            for total, (g, x) in zip(totals, groups, strict=True):
                total += T[:, :g, :width] @ F[run, x]
        by_power = [total.transpose(0, 2, 1).reshape(len(left), -1) for total in totals]
        np.concatenate(by_power, axis=1, out=out[part])
    return out
