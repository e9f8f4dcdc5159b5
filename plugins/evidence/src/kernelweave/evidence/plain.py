"""λ = ∞: a Gaussian kernel of one scale, whose width and ridge leave-one-out errors choose.

The evidence of ±1 targets says noise where a plain kernel ridge regression predicts well. With the
latter at the end of the path, held-out rows never fall far behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from scipy.linalg import eigh
from sklearn.metrics.pairwise import euclidean_distances

from .path import Fit
from .rows import Rows, Standardised
from .terms import N_TERMS, Scales, cross_kernel
from .views import Points, Views

# γ times the number of dimensions, and σ² over the weight of the kernel
WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RIDGES = tuple(10.0 ** np.arange(-5.0, 1.5, 0.5))
# σ² over the mean of the linear kernel's diagonal, roughly: least squares to next to nothing
_LINEAR_RIDGES = tuple(10.0 ** np.arange(-4.0, 4.0, 0.5))
_ABSENT, _LINEAR = -60.0, 2
# the weight of the kernel where all targets are equal
_LEAST = 1e-12


def plain_fit(views: Views, rows: Rows, starts: Sequence[FloatArray] = ()) -> Fit:
    """Return the width and ridge with the least leave-one-out error of these rows.

    The kernel's weight is its likeliest, so that deviations are in units of the targets. `starts`
    are such fits to fewer rows: only their widths and the next narrower one are tried then, as
    each costs a spectrum of the whole matrix.
    """
    points = views.points(rows.numeric, rows.codes)
    values, distances = Standardised.of(rows).values, _squared_distances(points)
    tried = [
        (*each, gamma)
        for gamma in _widths(views.n_dimensions, starts)
        for each in left_out_errors(np.exp(-gamma * distances), values, rows.mass)
    ]
    _, amplitude, ridge, gamma = min(tried)
    return _one_term(views.n_dimensions, 0, 2.0 * gamma, amplitude, ridge)


def linear_fit(views: Views, rows: Rows) -> Fit:
    """Return ridge regression: the linear term alone, its ridge with the least leave-one-out error.

    From a few dozen rows the other kernels learn a bend where there is a line. On 23 tables of 16
    to 144 rows, six draws each, R² is 63.2 % with it and 61.5 % without: 12 gain, 6 lose.
    """
    points, n = views.points(rows.numeric, rows.codes), views.n_dimensions
    metric = 1.0 / n
    scales = Scales(np.full(n, np.sqrt(metric)), np.zeros(n), np.eye(N_TERMS)[_LINEAR], 1.0)
    K = cross_kernel(points, points, scales, views.jump)
    tried = left_out_errors(K, Standardised.of(rows).values, rows.mass, _LINEAR_RIDGES)
    _, amplitude, ridge = min(tried)
    return _one_term(n, _LINEAR, metric, amplitude, ridge)


def _one_term(n: int, term: int, metric: float, amplitude: float, ridge: float) -> Fit:
    """Return a fit with one scale for all dimensions and one term."""
    amplitude = max(amplitude, _LEAST)
    theta = np.full(2 * n + N_TERMS + 1, _ABSENT)
    theta[:n] = 0.5 * np.log(metric)
    theta[2 * n + term] = np.log(amplitude)
    theta[-1] = np.log(amplitude * ridge)
    return Fit(np.inf, theta, np.nan, np.nan, 0)


def _widths(n_dimensions: int, starts: Sequence[FloatArray]) -> FloatArray:
    """Return γ to try, from wide to narrow."""
    widths = np.divide(WIDTHS, n_dimensions)
    known = [np.abs(np.log(0.5 * np.exp(2.0 * each[0]) / widths)).argmin() for each in starts]
    return widths[min(known) : max(known) + 2] if known else widths


def _squared_distances(points: Points) -> FloatArray:
    n = points.n_points
    out = euclidean_distances(points.X.T, squared=True) if len(points.X) else np.zeros((n, n))
    for codes in points.C:
        out += codes[:, None] != codes[None, :]
    return np.asarray(out)


def left_out_errors(
    K: FloatArray, values: FloatArray, mass: FloatArray, ridges: Sequence[float] = RIDGES
) -> list[tuple[float, float, float]]:
    """Return (squared error of rows left out, likeliest weight of K, r) for every ridge r.

    `K` of shape (n, n); `values` of shape (n_outputs, n); `mass` of shape (n,): weights of the
    rows, which divide r.
    """
    root, total = np.sqrt(mass), len(values) * mass.sum()
    spectrum, basis = eigh(root[:, None] * K * root, check_finite=False)
    spectrum = np.maximum(spectrum, 0.0)
    turned = basis.T @ (root[:, None] * values.T)
    out = []
    for ridge in ridges:
        inverse = 1.0 / (spectrum + ridge)
        # the dual and the diagonal of (K + r/w)⁻¹, both over root
        dual, diagonal = basis @ (inverse[:, None] * turned), root * (basis**2 @ inverse)
        residual = dual / diagonal[:, None]
        error = float(np.sum(mass[:, None] * residual**2) / total)
        amplitude = float(np.sum(inverse[:, None] * turned**2) / total)
        out.append((error, amplitude, ridge))
    return out
