"""Compiled Gram rows of sums of kernels whose integrand is quadratic in z (degree 2)."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import numpy as np

from ..compiled import njit

_FAST = {"reassoc", "contract", "nsz"}
# Columns at a time: what is computed of them stays in the cache.
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
def _fill_images(A, j, values, width, image):
    """Write ``image[0] = Σᵢ A[i, j] values[i]``, image[1] likewise for j + 1; four i at a time."""
    for l in range(width):
        image[0, l] = 0.0
        image[1, l] = 0.0
    for i in range(0, A.shape[0], 4):
        for l in range(width):
            p = values[i, l]
            q = values[i + 1, l]
            r = values[i + 2, l]
            s = values[i + 3, l]
            first = A[i, j] * p + A[i + 1, j] * q
            second = A[i, j + 1] * p + A[i + 1, j + 1] * q
            image[0, l] += first + (A[i + 2, j] * r + A[i + 3, j] * s)
            image[1, l] += second + (A[i + 2, j + 1] * r + A[i + 3, j + 1] * s)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_spread(S, var, width, image, total):
    """Add ``Σⱼ σⱼ² (Sσ²)ⱼ``."""
    for j in range(0, S.shape[0], 2):
        _fill_images(S, j, var, width, image)
        for l in range(width):
            total[l] += var[j, l] * image[0, l] + var[j + 1, l] * image[1, l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _add_factor(k, c, width, base_x, base_y, slope_x, slope_y, Q, mean, var, image, ends, total):
    """Add ``(eₓ + τ)(e_y + τ) + Σⱼ σⱼ²(slopeₓ + 2p)ⱼ(slope_y + 2p)ⱼ`` of one factor."""
    for l in range(width):
        ends[0, l] = base_x[k]
        ends[1, l] = base_y[np.uint64(c + l)]
    for j in range(0, Q.shape[0], 2):
        _fill_images(Q, j, mean, width, image)
        for half in range(2):
            i = j + half
            x, q = slope_x[i, k], Q[i, i]
            for l in range(width):
                y, z = slope_y[i, np.uint64(c + l)], image[half, l]
                ends[0, l] += mean[i, l] * (x + z) + q * var[i, l]
                ends[1, l] += mean[i, l] * (y + z) + q * var[i, l]
                total[l] += var[i, l] * ((x + 2.0 * z) * (y + 2.0 * z))
    for l in range(width):
        total[l] += ends[0, l] * ends[1, l]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def quadratic_rows(X, YT, b, base_x, base_y, slope_x, slope_y, Q, S, out, start, stop, lower):
    """Add ``Σ_f ∫ ρₓ(z) ρ_y(z) dz`` over [max(x, y), b], ``ρₓ(z) = baseₓ + slopeₓ·z + zᵀQz``.

    With z̄, σ² the means and variances of z and p = Qz̄, the integral is the volume times
    ``(eₓ + τ)(e_y + τ) + Σⱼ σⱼ²{(slopeₓ + 2p)ⱼ (slope_y + 2p)ⱼ + (Sσ²)ⱼ}``, where
    ``e = base + z̄·(slope + p)``, ``τ = Σ Qⱼⱼσⱼ²`` and ``S = 2Q∘Q − 6/5 diag(Qⱼⱼ²)`` (the fourth
    central moment of a uniform variable is 9/5 σ⁴). X (m_x, n), YT (n, m_y); base_x (f, m_x),
    slope_x (f, n4, m_x), likewise y, and Q (f, n4, n4), n4 = 4⌈n/4⌉, zero past the n features; S
    (n4, n4) is summed over factors; all float64. Cost: 2n² + f(2n² + 14n) flops a pair.
    """
    n4 = S.shape[0]
    mean, var = np.zeros((n4, _RUN)), np.zeros((n4, _RUN))
    image, ends = np.empty((2, _RUN)), np.empty((2, _RUN))
    total, volume = np.empty(_RUN), np.empty(_RUN)
    for k in range(start, stop):
        columns = k + 1 if lower else YT.shape[1]
        for c in range(0, columns, _RUN):
            width = min(_RUN, columns - c)
            _fill_uniform(X[k], YT, b, c, width, mean, var, volume)
            for l in range(width):
                total[l] = 0.0
            _add_spread(S, var, width, image, total)
            for f in range(Q.shape[0]):
                _add_factor(
                    k, c, width, base_x[f], base_y[f], slope_x[f], slope_y[f], Q[f],
                    mean, var, image, ends, total,
                )  # fmt: skip
            for l in range(width):
                out[k, np.uint64(c + l)] += volume[l] * total[l]
