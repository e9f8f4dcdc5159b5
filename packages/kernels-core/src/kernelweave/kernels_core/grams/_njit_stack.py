"""Compiled passes over Gram matrices: weighted sums and quadratic forms with error majorants."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from ..compiled import njit

_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(K, weight, out):
    """Add ``weight · K`` to out: 2 flops an entry."""
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] += weight * K[i, j]


@njit(cache=True, nogil=True, error_model="numpy")
def add_four(K, L, M, N, weights, out):
    """Add four matrices to out as `add_rows` does one after another, in one pass over out."""
    k, l, m, n = weights
    for i in range(K.shape[0]):
        for j in range(K.shape[1]):
            out[i, j] = (((out[i, j] + k * K[i, j]) + l * L[i, j]) + m * M[i, j]) + n * N[i, j]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def quadratic_form(K, rows, u):
    """Return ``uᵀKu`` and ``|u|ᵀ|K||u|`` from the lower triangle of the rows where u ≠ 0.

    Parameters
    ----------
    K : ndarray of shape (n, n), float64 or float32, read only
    rows : ndarray of shape (m,), int64
        Ascending positions of the entries of u that are not 0.
    u : ndarray of shape (n,), float64

    Notes
    -----
    About 2mn flops and mn/2 loads of K.
    """
    value = 0.0
    size = 0.0
    for r in rows:
        part = 0.0
        absolute = 0.0
        row = K[r, :r]
        head = u[:r]
        for c in range(r):
            term = row[c] * head[c]
            part += term
            absolute += abs(term)
        corner = K[r, r] * u[r]
        value += u[r] * (2.0 * part + corner)
        size += abs(u[r]) * (2.0 * absolute + abs(corner))
    return value, size
