"""Compiled Shapley values of a product with one factor per column (a *player* of the game).

If the columns S are known, the product is Π_S a · Π_rest m, where a is the factor of the explained
row and m its mean over the background. Its multilinear extension Π (m + t(a − m)) has
Shapley values φᵢ = (aᵢ − mᵢ) ∫ Π_{j≠i} (mⱼ + t(aⱼ − mⱼ)) dt over [0, 1] (Owen 1972): a polynomial
in t, which Gauss and Legendre's nodes integrate.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np
from kernelweave.kernels_core.compiled import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
# number of points that are computed at once, so that the buffers fit into the L1 cache
_WIDTH = 64
# an ellipse may be so large that the bound on it is this many times the largest product
_ABOVE = 16.0


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_game(base, step, gain, nodes, masses, spare, out):
    """Add Σ mass · gainᵢ Π_{j≠i} (baseⱼ + node · stepⱼ) over two nodes to outᵢ.

    ``base``, ``step``, ``gain`` and ``out`` are (n_players, _WIDTH), ``spare`` is (2, n_players,
    _WIDTH).
    """
    n_players = base.shape[0]
    first, second = nodes
    one, two = np.full(_WIDTH, masses[0]), np.full(_WIDTH, masses[1])
    for j in range(n_players):
        start, slope, before, other = base[j], step[j], spare[0, j], spare[1, j]
        for z in range(_WIDTH):
            before[z] = one[z]
            other[z] = two[z]
            one[z] *= start[z] + first * slope[z]
            two[z] *= start[z] + second * slope[z]
    one[:] = 1.0
    two[:] = 1.0
    for i in range(n_players):
        j = n_players - 1 - i
        start, slope, before, other = base[j], step[j], spare[0, j], spare[1, j]
        worth, into = gain[j], out[j]
        for z in range(_WIDTH):
            into[z] += worth[z] * (before[z] * one[z] + other[z] * two[z])
            one[z] *= start[z] + first * slope[z]
            two[z] *= start[z] + second * slope[z]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _enough(base, step, most, weight, least, rules, first):
    """Return the first Gauss-Legendre rule from ``first`` on with an error of at most ``least``.

    With n nodes, a function of at most M on the ellipse of Bernstein with parameter ρ is integrated
    up to 32/15 · M ρ^{-2n} / (1 - ρ^{-2}) (Trefethen, Approximation Theory and Approximation
    Practice, theorem 19.3). There a factor is at most |c| + e |s|, with c half way, s the step and
    e = (ρ + 1/ρ) / 4, and the gain of a player at most its factor over e.
    """
    n_players = base.shape[0]
    largest = most.max()
    for rule in range(first, len(rules) - 1):
        n = rules[rule]
        rho = max(2.0, (12.0 * _ABOVE * weight * largest / least) ** (1.0 / (2 * n + 1)))
        e = 0.25 * (rho + 1.0 / rho)
        product = np.ones(_WIDTH)
        for j in range(n_players):
            start, slope = base[j], step[j]
            for z in range(_WIDTH):
                product[z] *= abs(start[z] + 0.5 * slope[z]) + e * abs(slope[z])
        if 3.0 * weight * product.max() * rho ** (-2.0 * n) <= least * e:
            return rule
    return len(rules) - 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_games(own, mean, weight, rules, nodes, masses, least, out):
    """Add ``weight`` times the Shapley values of Π ``own`` with background Π ``mean`` to ``out``.

    ``own`` and ``out`` are (n_rows, n_players, n_points), ``mean`` is (n_players, n_points);
    ``rules``, ``nodes``, ``masses`` as of `rules_for`. Values err by at most ``least`` each.
    """
    n_rows, n_players, n_points = own.shape
    base, step = np.empty((n_players, _WIDTH)), np.empty((n_players, _WIDTH))
    spare, sums = np.empty((2, n_players, _WIDTH)), np.empty((n_players, _WIDTH))
    most = np.empty(_WIDTH)
    size, rule = abs(weight), 0
    for row in range(n_rows):
        for start in range(0, n_points, _WIDTH):
            width = min(_WIDTH, n_points - start)
            most[:] = 1.0
            most[width:] = 0.0
            base[:, width:] = 0.0
            step[:, width:] = 0.0
            for j in range(n_players):
                with_, without = own[row, j, start : start + width], mean[j, start : start + width]
                for z in range(width):
                    base[j, z] = without[z]
                    step[j, z] = with_[z] - without[z]
                    most[z] *= max(abs(with_[z]), abs(without[z]))
            if size * most.max() < least:
                continue
            # neighbouring points need about the same number of nodes
            rule = _enough(base, step, most, size, least, rules, max(0, rule - 1))
            sums[:] = 0.0
            for k in range(0, rules[rule], 2):
                pair = (nodes[rule, k], nodes[rule, k + 1])
                shares = (weight * masses[rule, k], weight * masses[rule, k + 1])
                _add_game(base, step, step, pair, shares, spare, sums)
            for j in range(n_players):
                for z in range(width):
                    out[row, j, start + z] += sums[j, z]


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_variances(own, mean, both, weight, nodes, masses, out):
    """Add ``weight`` times the prior variances of the Shapley values of products to ``out``.

    As `add_games`, but for both arguments of the kernel: ``own`` holds the factors between a row
    and itself, ``mean`` their means over one side, (n_players, n_rows), ``both`` over both,
    (n_players,).
    """
    n_players, n_rows = own.shape
    base, step = np.zeros((n_players, _WIDTH)), np.zeros((n_players, _WIDTH))
    gain, sums = np.zeros((n_players, _WIDTH)), np.empty((n_players, _WIDTH))
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
            for n in range(0, len(nodes), 2):
                pair = (nodes[n], nodes[n + 1])
                shares = (weight * masses[k] * masses[n], weight * masses[k] * masses[n + 1])
                _add_game(base, step, gain, pair, shares, spare, sums)
        for j in range(n_players):
            for z in range(width):
                out[j, start + z] += sums[j, z]
