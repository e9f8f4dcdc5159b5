"""Compiled Shapley values of products of factors, one factor a player.

With the players S, the product is Π_S a · Π_rest m. Its multilinear extension Π (m + t(a − m)) has
Shapley values φᵢ = (aᵢ − mᵢ) ∫ Π_{j≠i} (mⱼ + t(aⱼ − mⱼ)) dt over [0, 1] (Owen 1972): a polynomial
in t, which Gauss and Legendre's nodes integrate.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# points that are worked on at once: their buffers stay in a core's first cache
_WIDTH = 64


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_game(base, step, gain, width, node, mass, spare, out):
    """Add mass · gainᵢ Π_{j≠i} (baseⱼ + node · stepⱼ) to outᵢ, for ``width`` points.

    ``base``, ``step``, ``gain`` and ``out`` are (n_players, at least width), ``spare`` is
    (2, n_players, at least width).
    """
    n_players = base.shape[0]
    run = np.full(_WIDTH, mass)
    for j in range(n_players):
        factor, before, own, slope = spare[0, j], spare[1, j], base[j], step[j]
        for z in range(width):
            factor[z] = own[z] + node * slope[z]
            before[z] = run[z]
            run[z] *= factor[z]
    run[:] = 1.0
    for i in range(n_players):
        j = n_players - 1 - i
        factor, before, worth, into = spare[0, j], spare[1, j], gain[j], out[j]
        for z in range(width):
            into[z] += worth[z] * before[z] * run[z]
            run[z] *= factor[z]


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_games(own, mean, weight, nodes, masses, least, out):
    """Add ``weight`` times the Shapley values of Π ``own`` beside Π ``mean`` to ``out``.

    ``own`` and ``out`` are (n_rows, n_players, n_points), ``mean`` is (n_players, n_points). Points
    where no coalition is worth ``least`` are passed over.
    """
    n_rows, n_players, n_points = own.shape
    base, step = np.empty((n_players, _WIDTH)), np.empty((n_players, _WIDTH))
    spare, sums = np.empty((2, n_players, _WIDTH)), np.empty((n_players, _WIDTH))
    most = np.empty(_WIDTH)
    for row in range(n_rows):
        for start in range(0, n_points, _WIDTH):
            width = min(_WIDTH, n_points - start)
            most[:] = 1.0
            for j in range(n_players):
                with_, without = own[row, j, start : start + width], mean[j, start : start + width]
                for z in range(width):
                    base[j, z] = without[z]
                    step[j, z] = with_[z] - without[z]
                    most[z] *= max(abs(with_[z]), abs(without[z]))
            if most[:width].max() < least:
                continue
            sums[:] = 0.0
            for k in range(len(nodes)):
                _add_game(base, step, step, width, nodes[k], weight * masses[k], spare, sums)
            for j in range(n_players):
                for z in range(width):
                    out[row, j, start + z] += sums[j, z]


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_variances(own, mean, both, weight, nodes, masses, out):
    """Add ``weight`` times the prior variances of the Shapley values of products to ``out``.

    The same, on both sides of the kernel: ``own`` holds the factors between a row and itself,
    ``mean`` their means over one side, (n_players, n_rows), ``both`` over both, (n_players,).
    """
    n_players, n_rows = own.shape
    base, step = np.empty((n_players, _WIDTH)), np.empty((n_players, _WIDTH))
    gain, sums = np.empty((n_players, _WIDTH)), np.empty((n_players, _WIDTH))
    spare = np.empty((2, n_players, _WIDTH))
    for start in range(0, n_rows, _WIDTH):
        width = min(_WIDTH, n_rows - start)
        sums[:] = 0.0
        for k in range(len(nodes)):
            s = nodes[k]
            for j in range(n_players):
                for z in range(width):
                    a, m, b = own[j, start + z], mean[j, start + z], both[j]
                    base[j, z] = b + s * (m - b)
                    step[j, z] = m + s * (a - m) - base[j, z]
                    gain[j, z] = a - 2.0 * m + b
            for n in range(len(nodes)):
                mass = weight * masses[k] * masses[n]
                _add_game(base, step, gain, width, nodes[n], mass, spare, sums)
        for j in range(n_players):
            for z in range(width):
                out[j, start + z] += sums[j, z]
