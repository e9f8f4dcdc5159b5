"""Compiled Gram rows of a tessellated family of any degree."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
# Columns at a time: what is computed of them stays in the cache. Work arrays are made for so many.
_RUN = 64


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_volume(x, YT, b, c, width, high, volume):
    """Fill ``high = max(x, y)`` (n, run) and multiply ``volume`` by ``Πⱼ (bⱼ − highⱼ)``."""
    for j in range(x.shape[0]):
        own, top = x[j], b[j]
        y, highs = YT[j, c : c + width], high[j]
        for l in range(width):
            highs[l] = y[l] if y[l] > own else own
        for l in range(width):
            volume[l] *= top - highs[l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_moments(b, high, width, recursion, means, T):
    """Fill ``T[g] = T[0]·Πⱼ E[zⱼ^gⱼ]``, z uniform on [high, b]: ``Σᵢ bⁱ high^{e−i} / (e + 1)``.

    means (n, e_max + 1, run); T (n_g, run), T[0] given.
    """
    parent, variable, exponent = recursion
    top = means.shape[1] - 1
    for j in range(b.shape[0]):
        highs = high[j]
        for l in range(width):
            means[j, 0, l] = 1.0
        power = 1.0
        for e in range(1, top + 1):
            power *= b[j]
            before, now = means[j, e - 1], means[j, e]
            for l in range(width):
                now[l] = before[l] * highs[l] + power
        for e in range(1, top + 1):
            now, share = means[j, e], 1.0 / (e + 1.0)
            for l in range(width):
                now[l] *= share
    for g in range(1, T.shape[0]):
        source, factor, target = T[parent[g]], means[variable[g], exponent[g]], T[g]
        for l in range(width):
            target[l] = source[l] * factor[l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def gram_rows(X, YT, b, recursion, C, moment, power, FT, out, start, stop, lower, high, means, T):
    """Add ``Σ_c C[k, c]·T_{moment[c]}(xₖ, yₗ)·FT[power[c], l]`` to out[k, l].

    X (m_x, n), YT (n, m_y); C (stop − start, n_c) the coefficients of the rows start..stop; power
    sorted; FT (n_x, m_y) the x-monomials of Y. With ``lower`` only l ≤ k. Work arrays high
    (n + 2, 64), means (n, e_max + 1, 64) and T (n_g, 64). Cost: n_g + 2n_c flops a pair.
    """
    n, n_c = X.shape[1], moment.shape[0]
    total, part, first = high[n], high[n + 1], T[0]
    for k in range(start, stop):
        columns = k + 1 if lower else YT.shape[1]
        for c in range(0, columns, _RUN):
            width = min(_RUN, columns - c)
            for l in range(width):
                first[l] = 1.0
                total[l] = 0.0
                part[l] = 0.0
            _fill_volume(X[k], YT, b, c, width, high, first)
            _fill_moments(b, high, width, recursion, means, T)
            for i in range(n_c):
                weight, values = C[k - start, i], T[moment[i]]
                for l in range(width):
                    part[l] += weight * values[l]
                if i + 1 == n_c or power[i + 1] != power[i]:
                    f = FT[power[i], c : c + width]
                    for l in range(width):
                        total[l] += part[l] * f[l]
                        part[l] = 0.0
            target = out[k, c : c + width]
            for l in range(width):
                target[l] += total[l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def pair_moments(X, YT, b, recursion, weights, c, width, high, means, T):
    """Write ``weights[k, c + l]·T_g(max(xₖ, y_{c + l}), b)`` to T[k, g, l] for l < width ≤ 64.

    X (rows, n), YT (n, m_y), weights (rows, m_y), T (rows, n_g, 64); work arrays high and means as
    in `gram_rows`. Cost: n_g flops a pair.
    """
    for k in range(X.shape[0]):
        first = T[k, 0]
        for l in range(width):
            first[l] = weights[k, c + l]
        _fill_volume(X[k], YT, b, c, width, high, first)
        _fill_moments(b, high, width, recursion, means, T[k])
