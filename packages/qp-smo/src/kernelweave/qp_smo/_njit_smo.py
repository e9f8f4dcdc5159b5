"""Compiled passes of sequential minimal optimisation on signed variables.

The problem is ``max pᵀu − ε‖u‖₁ − ½uᵀKu`` over ``lo ≤ u ≤ hi``, ``Σu = 0``. With the gradient
``g = p − Ku``, sample k may go up at the rate ``g[k] + up[k]`` and down at ``−(g[k] + dn[k])``;
the offsets hold ``∓ε`` and are infinite at a bound, so that no pass needs a branch.

An index that may not be negative is unsigned: a signed one keeps the loop from vector instructions,
and a slice instead takes three times as long to compile.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from typing import Any

import numpy as np
from kernelweave.kernels_core.compiled import njit
from numba import config, types
from numba.extending import intrinsic

# All of fast-math but "no infinities": the offsets are infinite at the bounds.
_FAST = {"nnan", "nsz", "reassoc", "contract", "arcp"}
_BLOCK = 128


def _select_by(comparison: str) -> Any:
    """Return a two-argument minimum or maximum that LLVM turns into vector instructions.

    Python's ``max`` and a conditional expression reach LLVM as a select without the flags that
    the vectoriser asks of a floating-point reduction, and then run one element at a time.
    """

    def typed(typingctx, a, b):
        def codegen(context, builder, signature, args):
            flags = ("nnan", "nsz")
            chosen = builder.fcmp_ordered(comparison, args[0], args[1], flags=flags)
            return builder.select(chosen, args[0], args[1], flags=flags)

        return types.float64(types.float64, types.float64), codegen

    if config.DISABLE_JIT:
        return max if comparison == ">" else min
    return intrinsic(typed)


_larger = _select_by(">")
_smaller = _select_by("<")


@njit(cache=True, nogil=True, error_model="numpy")
def _set_offsets(k, u, lo, hi, up, dn, eps):
    """Write ``up[k]`` and ``dn[k]`` for the value ``u[k]``."""
    x = u[k]
    up[k] = -np.inf if x >= hi[k] else (-eps if x >= 0.0 else eps)
    dn[k] = np.inf if x <= lo[k] else (-eps if x > 0.0 else eps)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _update(K, g, up, dn, i, j, t_i, t_j):
    """Subtract ``t_i·K[i] − t_j·K[j]`` from g: 5n loads of 8 bytes.

    Returns the first argmax of ``g + up``, that maximum, and the minimum of ``g + dn``.
    """
    n = g.size
    best = -np.inf
    least = np.inf
    at = 0
    for start in range(0, n, _BLOCK):
        stop = start + _BLOCK if start + _BLOCK < n else n
        high = -np.inf
        low = np.inf
        for l in range(stop - start):
            k = np.uint64(start + l)
            x = g[k] - (t_i * K[i, k] - t_j * K[j, k])
            g[k] = x
            high = _larger(x + up[k], high)
            low = _smaller(x + dn[k], low)
        least = low if low < least else least
        if high > best:
            best = high
            at = start
    for first in range(at, n):
        if g[first] + up[first] >= best:
            return first, best, least
    return at, best, least


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _partner(K, g, dn, diag, i, top, tau, score):
    """Return the j of largest second-order gain ``b²/a`` with the fixed i: n divisions."""
    n = g.size
    best = 0.0
    at = 0
    for start in range(0, n, _BLOCK):
        stop = start + _BLOCK if start + _BLOCK < n else n
        high = 0.0
        for l in range(stop - start):
            k = np.uint64(start + l)
            a = _larger(diag[i] + diag[k] - 2.0 * K[i, k], tau)
            b = _larger(top - (g[k] + dn[k]), 0.0)
            gain = b * b / a
            score[k] = gain
            high = _larger(gain, high)
        if high > best:
            best = high
            at = start
    for first in range(at, n):
        if score[first] >= best:
            return first
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def _move_pair(i, j, u, lo, hi, b, a, eps):
    """Maximise exactly along ``u[i] += t, u[j] -= t``, over the kinks at 0; return both moves."""
    x = u[i]
    z = u[j]
    while True:
        stop_x = 0.0 if x < 0.0 < hi[i] else hi[i]
        stop_z = 0.0 if z > 0.0 > lo[j] else lo[j]
        room_x = stop_x - x
        room_z = z - stop_z
        room = room_x if room_x < room_z else room_z
        if b < a * room:
            x += b / a
            z -= b / a
            break
        b -= a * room
        x = stop_x if room_x <= room else x + room
        z = stop_z if room_z <= room else z - room
        if x >= hi[i] or z <= lo[j]:
            break
        b -= 2.0 * eps * (1.0 * (room_x <= room) + 1.0 * (room_z <= room))
        if b <= 0.0:
            break
    t_i = x - u[i]
    t_j = u[j] - z
    u[i] = x
    u[j] = z
    return t_i, t_j


@njit(cache=True, nogil=True, error_model="numpy")
def smo_steps(K, diag, u, g, lo, hi, up, dn, score, eps, tol, tau, n_steps, i, top, bottom):
    """Take at most ``n_steps`` second-order steps; stop when the violation is at most ``tol``.

    Fan, Chen, Lin, *Working set selection using second order information for training support
    vector machines*, JMLR 2005 (WSS 2), on n signed variables.

    K (n, n) is float64 or float32, read only, and all vectors (n,) are float64: u, g, up and dn are
    updated, score is scratch. ``tau`` is the smallest curvature of a pair; i, top, bottom: the
    first argmax of ``g + up``, that maximum, and the minimum of ``g + dn``.

    Returns the steps taken, the maximum of ``g + up``, the minimum of ``g + dn``, and whether the
    arithmetic can make no further progress. About 14n flops and 10n loads of 8 bytes a step, two
    rows of K among them.
    """
    for step in range(n_steps):
        if top - bottom <= tol:
            return step, top, bottom, False
        j = _partner(K, g, dn, diag, i, top, tau, score)
        a = diag[i] + diag[j] - 2.0 * K[i, j]
        a = a if a > tau else tau
        t_i, t_j = _move_pair(i, j, u, lo, hi, top - (g[j] + dn[j]), a, eps)
        if t_i == 0.0 and t_j == 0.0:
            return step, top, bottom, True
        _set_offsets(i, u, lo, hi, up, dn, eps)
        _set_offsets(j, u, lo, hi, up, dn, eps)
        i, top, bottom = _update(K, g, up, dn, i, j, t_i, t_j)
    return n_steps, top, bottom, False


@njit(cache=True, nogil=True, error_model="numpy")
def sub_gram(K, index, out):
    """Copy ``K[index][:, index]`` into ``out``: m² loads."""
    m = index.size
    for r in range(m):
        row = K[index[r]]
        for c in range(m):
            out[r, c] = row[index[c]]
