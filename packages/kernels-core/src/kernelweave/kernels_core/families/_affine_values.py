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

from . import _affine
from ._box import Float
from ._general import Box
from ._moments import by_runs
from ._tables import power_products
from ._threads import row_bounds, run_blocks

_UNIT = 2.0**-53
_RUN = 64


class DecisionValues(NamedTuple):
    """Values up to a constant per task, and bounds of their errors, (t, m) each."""

    values: Float
    error: Float


def gamma(count: float) -> float:
    """Return ``ku/(1 − ku)`` for k roundings, rounded up."""
    return 1.001 * count * _UNIT / (1.0 - count * _UNIT)


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
    from ._njit_affine_values import pair_values

    own = np.flatnonzero(np.any(W != 0.0, axis=0))
    left = np.ascontiguousarray(box.upper - X)
    right = np.ascontiguousarray(left[own].T)
    slopes = np.stack([0.5 * c.rho_z for c in chosen])
    squares = np.zeros(X.shape[1])
    squares[: slopes.shape[1]] = np.sum(slopes * slopes, axis=0) / 3.0
    if slopes.shape[1] == 0:
        slopes = np.zeros((0, X.shape[1]))
    weights = np.ascontiguousarray(W[:, own])
    values, sizes = np.zeros(W.shape), np.zeros(W.shape)

    def work(start: int, stop: int) -> None:
        pair_values(
            left, right, slopes, squares, parts.ends, parts.reach, own, weights, start, stop,
            values, sizes,
        )  # fmt: skip

    steps = float(len(X)) * len(own) * X.shape[1] * (4.0 * len(chosen) + 5.0)
    run_blocks(work, row_bounds(len(X), lower=False), steps)
    return values, sizes


def decision_values(box: Box, X: Float, factors: Float, W: Float) -> DecisionValues:
    """Return ``Σₗ Wₜₗ k(xₖ, xₗ)`` for P = Σ vvᵀ over the rows v of factors, with error bounds.

    Each error bound counts relative roundings as in Higham, Accuracy and Stability of Numerical
    Algorithms, chapter 3: a term that meets k of them is off by γₖ of its size at most. Sums
    over samples that multiply the volume of the box are compensated, so that they cost a unit of
    their value and not of their terms. Underflow is not accounted for. The weights of a task sum
    to exactly 0.
    """
    from ._njit_affine_values import compensated_dot

    (m, n), f = X.shape, len(factors)
    chosen = [_affine.coefficients(box.tables, v) for v in factors]
    F = power_products(X, box.tables.x_powers)
    n_x, power = F.shape[1], box.tables.degree * (box.tables.degree > 1)
    parts = _parts(box, X, F, chosen)
    values, size = _pairs(box, X, chosen, parts, W)
    pair_count = 3 * n + 2 * (2 * n + n_x + power + 6) + f + 12 + _RUN + np.ceil(m / _RUN)
    error = gamma(pair_count) * size

    columns = np.ascontiguousarray(F.T)
    s = np.array([[compensated_dot(w, column) for column in columns] for w in W])
    loose = np.abs(W) @ np.abs(F)
    s_error = gamma(2) * np.abs(s) + (gamma(m) ** 2 + gamma(power)) * loose
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
