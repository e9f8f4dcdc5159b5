"""Decision values of learned kernels with affine integrands, up to a constant, and their error.

For weights that sum to exactly 0, ``Σₗ wₗ k(x, xₗ)`` needs neither what is constant in x (an
intercept takes it up) nor what is constant in xₗ. What is left of the formula in the file of the
affine kernels, for a factor v of P = Σ vvᵀ with ``E = Σ wₗ Φ(xₗ)·ψ`` and ``A = Σ wₗ αₗ``, is

    Σₗ wₗ V {(B − h)(Bₗ − h) + s}  +  α(x) E  +  (Φ(x)·ψ)(A + vol E),

vol the volume of the box. A Gram matrix carries vol in every entry, so that rounding it costs
``vol ‖w‖₁``; here it meets only sums that have already cancelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rounding import UNIT
from ..threads import row_bounds, run_blocks
from . import _affine
from ._box import Float
from ._general import Box
from ._moments import by_runs
from ._tables import power_products

# Terms of a run of a sum, as in `by_runs`: the bounds count its roundings.
_RUN = 64
# 2²⁷ + 1, with which Veltkamp splits the 53 bits of a float64 into two halves.
_SPLIT = 134217729.0
# Pairs of samples that are worked on at a time: their minima stay in the cache.
_PAIRS = 8192


class DecisionValues(NamedTuple):
    """Values up to a constant per task, and bounds of their errors, (t, m) each."""

    values: Float
    error: Float


def gamma(count: float) -> float:
    """Return ``ku/(1 − ku)`` for k roundings, rounded up."""
    return 1.001 * count * UNIT / (1.0 - count * UNIT)


class _Parts(NamedTuple):
    """B, α and Φ·ψ of every factor and sample with sizes that bound them: (f, m) each."""

    ends: Float
    reach: Float
    alpha: Float
    alpha_size: Float
    other: Float
    other_size: Float


def _parts(box: Box, X: Float, F: Float, chosen: list[_affine.Coefficients]) -> _Parts:
    sides = box.upper - X
    volume = np.prod(sides, axis=1)
    mean = 0.5 * (X + box.upper)
    reach = np.maximum(np.abs(X), np.abs(box.upper))
    rows: list[tuple[Float, ...]] = []
    for c in chosen:
        own, size = F @ c.rho_x, np.abs(F) @ np.abs(c.rho_x)
        z = slice(len(c.rho_z))
        at_mean, at_end = mean[:, z] @ c.rho_z, box.upper[z] @ c.rho_z
        largest = reach[:, z] @ np.abs(c.rho_z)
        rows.append(
            (
                own + at_end,
                size + np.abs(box.upper[z]) @ np.abs(c.rho_z),
                volume * (own + at_mean),
                volume * (size + largest),
                F @ c.psi_x,
                np.abs(F) @ np.abs(c.psi_x),
            )
        )
    return _Parts(*(np.stack(part) for part in zip(*rows, strict=True)))


def _pairs(
    box: Box, X: Float, chosen: list[_affine.Coefficients], parts: _Parts, W: Float
) -> tuple[Float, Float]:
    """Return the sums over pairs and the sums of their sizes, (t, m) each."""
    own = np.flatnonzero(np.any(W != 0.0, axis=0))
    sides = np.ascontiguousarray((box.upper - X).T)
    slopes = np.zeros((len(chosen), len(sides)))
    for slope, c in zip(slopes, chosen, strict=True):
        slope[: len(c.rho_z)] = 0.5 * c.rho_z
    squares = np.sum(slopes * slopes, axis=0) / 3.0
    weights = np.ascontiguousarray(W[:, own].T)
    values, sizes = np.zeros(W.shape), np.zeros(W.shape)
    step = max(1, _PAIRS // max(len(own), 1))

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, step):
            rows = slice(first, min(first + step, stop))
            V, term, large = _pair_terms(sides, slopes, squares, parts, rows, own)
            values[:, rows] = by_runs(V * term, weights).T
            sizes[:, rows] = by_runs(V * large, np.abs(weights)).T

    steps = float(len(X)) * len(own) * X.shape[1] * (4.0 * len(chosen) + 5.0)
    run_blocks(work, row_bounds(len(X), lower=False), steps)
    return values, sizes


def _pair_terms(
    sides: Float,
    slopes: Float,
    squares: Float,
    parts: _Parts,
    rows: slice,
    own: NDArray[np.intp],
) -> tuple[Float, Float, Float]:
    """Return V, ``Σ_f (Bₖ − h)(Bₗ − h) + s`` and what bounds its size, (rows, s) each.

    sides (n, m) are b − x, slopes (f, n) half the slopes, squares (n,) their sums of squares over
    three. About n(4f + 5) flops a pair, most of them in a product of matrices.
    """
    D = np.minimum(sides[:, rows, None], sides[:, None, own])
    flat, shape = D.reshape(len(D), -1), (len(slopes), *D.shape[1:])
    h, g = (slopes @ flat).reshape(shape), (np.abs(slopes) @ flat).reshape(shape)
    V = np.prod(D, axis=0)
    s = (squares @ np.square(flat, out=flat)).reshape(V.shape)
    term = s + np.sum((parts.ends[:, rows, None] - h) * (parts.ends[:, None, own] - h), axis=0)
    large = s + np.sum((parts.reach[:, rows, None] + g) * (parts.reach[:, None, own] + g), axis=0)
    return V, term, large


def _split(a: Float) -> tuple[Float, Float]:
    """Return two halves of 26 bits each whose sum is a, exactly."""
    big = _SPLIT * a
    high = big - (big - a)
    return high, a - high


def compensated_product(A: Float, B: Float) -> Float:
    """Return ``A Bᵀ`` as if in twice the precision, (t, n) for A (t, m) and B (n, m).

    Exact products (Dekker 1971), added two by two with the rounding of each sum kept (Ogita, Rump
    and Oishi 2005): an entry is within a unit of its value, and ``γ²`` of the sum of sizes for
    m + 4 roundings. About 30m flops an entry.
    """
    a, b = A[:, None, :], B[None, :, :]
    (ah, al), (bh, bl) = _split(a), _split(b)
    p = a * b
    rest = np.sum(al * bl - (((p - ah * bh) - al * bh) - ah * bl), axis=-1)
    while p.shape[-1] > 1:
        half = p.shape[-1] // 2
        first, second = p[..., :half], p[..., half : 2 * half]
        z = first + second
        q = z - first
        rest += np.sum((first - (z - q)) + (second - q), axis=-1)
        p = np.concatenate([z, p[..., 2 * half :]], axis=-1)
    return np.asarray(p[..., 0] + rest)


def decision_values(box: Box, X: Float, factors: Float, W: Float) -> DecisionValues:
    """Return ``Σₗ Wₜₗ k(xₖ, xₗ)`` for P = Σ vvᵀ over the rows v of factors, with error bounds.

    Each error bound counts relative roundings as in Higham, Accuracy and Stability of Numerical
    Algorithms, chapter 3: a term that meets k of them is off by γₖ of its size at most. Sums
    over samples that multiply the volume of the box are compensated, so that they cost a unit of
    their value and not of their terms. Underflow is not accounted for. The weights of a task sum
    to exactly 0.
    """
    (m, n), f = X.shape, len(factors)
    chosen = [_affine.coefficients(box.tables, v) for v in factors]
    F = power_products(X, box.tables.x_powers)
    n_x, power = F.shape[1], box.tables.degree * (box.tables.degree > 1)
    parts = _parts(box, X, F, chosen)
    values, size = _pairs(box, X, chosen, parts, W)
    pair_count = 3 * n + 2 * (2 * n + n_x + power + 6) + f + 12 + _RUN + np.ceil(m / _RUN)
    error = gamma(pair_count) * size

    s = compensated_product(W, np.ascontiguousarray(F.T))
    loose = np.abs(W) @ np.abs(F)
    s_error = gamma(2) * np.abs(s) + (gamma(m + 4) ** 2 + gamma(power)) * loose
    psi = np.stack([c.psi_x for c in chosen])
    E, E_size = s @ psi.T, np.abs(s) @ np.abs(psi).T
    E_error = gamma(n_x + 3) * E_size + s_error @ np.abs(psi).T
    A = by_runs(W, parts.alpha.T)
    alpha_unit = gamma(4 * n + n_x + power + 10)
    A_error = (
        (alpha_unit + gamma(_RUN + np.ceil(m / _RUN) + 2)) * 1.01 * np.abs(W) @ (parts.alpha_size.T)
    )
    volume = float(np.prod(box.upper - box.lower))
    G = A + volume * E
    G_error = A_error + volume * (E_error * (1.0 + gamma(2 * n + 4)) + gamma(2 * n + 4) * np.abs(E))
    G_error += gamma(3) * (np.abs(A) + volume * np.abs(E))

    first, second = E @ parts.alpha, G @ parts.other
    error += (np.abs(E) * alpha_unit * 1.01 + E_error * 1.01) @ parts.alpha_size
    error += (np.abs(G) * gamma(n_x + power + 4) * 1.01 + G_error * 1.01) @ parts.other_size
    sums = np.abs(E) @ np.abs(parts.alpha) + np.abs(G) @ np.abs(parts.other) + np.abs(values)
    values += first + second
    error += gamma(2 * f + 4) * sums
    return DecisionValues(values, 1.001 * error)
