"""Compiled rank-one Gram rows of kernels whose integrand is quadratic in z (degree 2)."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
_RUN = 64


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _fill_uniform(x, YT, b, c, width, mean, var, volume):
    """Fill means and variances of z uniform on [max(x, y), b], and the volume of that box."""
    for l in range(width):
        volume[l] = 1.0
    for j in range(x.shape[0]):
        own, top, y = x[j], b[j], YT[j, c : c + width]
        means, variances = mean[j], var[j]
        for l in range(width):
            high = y[l] if y[l] > own else own
            side = top - high
            means[l] = 0.5 * (top + high)
            variances[l] = side * side / 12.0
        for l in range(width):
            volume[l] *= top - (y[l] if y[l] > own else own)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_feature(j, rx, ry, Q, S, mean, var, width, parts):
    """Add feature j: ``z̄ⱼ(rⱼ + pⱼ) + Qⱼⱼσⱼ²`` on both sides, ``σⱼ²{g_x g_y + (Sσ²)ⱼ}`` across."""
    left, right, cross, image, spread = parts[0], parts[1], parts[2], parts[3], parts[4]
    for l in range(width):
        image[l] = 0.0
        spread[l] = 0.0
    for i in range(Q.shape[0]):
        q, s, means, variances = Q[i, j], S[i, j], mean[i], var[i]
        for l in range(width):
            image[l] += q * means[l]
        for l in range(width):
            spread[l] += s * variances[l]
    q, means, variances = Q[j, j], mean[j], var[j]
    for l in range(width):
        spread[l] += (rx + 2.0 * image[l]) * (ry[l] + 2.0 * image[l])
    for l in range(width):
        left[l] += means[l] * (rx + image[l]) + q * variances[l]
    for l in range(width):
        right[l] += means[l] * (ry[l] + image[l]) + q * variances[l]
    for l in range(width):
        cross[l] += variances[l] * spread[l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def quadratic_rows(X, YT, b, base_x, base_y, slope_x, slope_y, Q, S, out, start, stop, lower):
    """Add ``∫ ρₓ(z) ρ_y(z) dz`` over [max(x, y), b] to out, ``ρₓ(z) = baseₓ + slopeₓ·z + zᵀQz``.

    With z̄, σ² the means and variances of z and p = Qz̄, the integral is the volume times
    ``(eₓ + τ)(e_y + τ) + Σⱼ σⱼ²{(slopeₓ + 2p)ⱼ (slope_y + 2p)ⱼ + (Sσ²)ⱼ}``, where
    ``e = base + z̄·(slope + p)``, ``τ = Σ Qⱼⱼσⱼ²`` and ``S = 2Q∘Q − 6/5 diag(Qⱼⱼ²)`` (the fourth
    central moment of a uniform variable is 9/5 σ⁴). X (m_x, n), YT (n, m_y), base_x (m_x,),
    slope_x (n, m_x), likewise y; Q, S (n, n); all float64. Cost: 4n² + 20n flops a pair.
    """
    n = b.shape[0]
    mean, var = np.empty((n, _RUN)), np.empty((n, _RUN))
    parts, volume = np.empty((5, _RUN)), np.empty(_RUN)
    for k in range(start, stop):
        columns = k + 1 if lower else YT.shape[1]
        for c in range(0, columns, _RUN):
            width = min(_RUN, columns - c)
            _fill_uniform(X[k], YT, b, c, width, mean, var, volume)
            left, right, cross = parts[0], parts[1], parts[2]
            other = base_y[c : c + width]
            for l in range(width):
                left[l] = base_x[k]
                right[l] = other[l]
                cross[l] = 0.0
            for j in range(n):
                ry = slope_y[j, c : c + width]
                _add_feature(j, slope_x[j, k], ry, Q, S, mean, var, width, parts)
            target = out[k, c : c + width]
            for l in range(width):
                target[l] += volume[l] * (left[l] * right[l] + cross[l])
