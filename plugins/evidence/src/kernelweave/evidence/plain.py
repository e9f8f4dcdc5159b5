"""λ = ∞: a Gaussian kernel of one scale, whose width and ridge held-out rows choose.

The evidence of ±1 targets says noise where a plain kernel ridge regression predicts well. Folds
that may choose the latter are never far behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from sklearn.metrics.pairwise import euclidean_distances

from .objective import JITTER
from .path import Fit
from .rows import FloatArray, Rows, Standardised
from .terms import N_TERMS
from .views import Points, Views

# γ times the number of dimensions, and σ² over the weight of the kernel
WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RIDGES = tuple(10.0 ** np.arange(-5.0, 1.5, 0.5))
_ABSENT = -60.0


def held_out_grid(views: Views, rows: Rows, other: Rows) -> FloatArray:
    """Return predictions of other rows for every width and ridge.

    Returns
    -------
    ndarray of shape (n_widths * n_ridges, n_other, n_outputs)
        In the units of the targets.
    """
    points = views.points(rows.numeric, rows.codes)
    targets = Standardised.of(rows)
    near = _squared_distances(points, points)
    far = _squared_distances(views.points(other.numeric, other.codes), points)
    grid = [
        targets.moments(np.exp(-gamma * far) @ dual, width)[0]
        for gamma in np.divide(WIDTHS, views.n_dimensions)
        for dual, width in _duals(np.exp(-gamma * near), targets.values, rows.mass)
    ]
    return np.array(grid)


def plain_fit(views: Views, rows: Rows, choice: int) -> Fit:
    """Return the kernel of one width and ridge, its weight the likeliest for these rows."""
    which, ridge = divmod(choice, len(RIDGES))
    points = views.points(rows.numeric, rows.codes)
    gamma = WIDTHS[which] / views.n_dimensions
    K = np.exp(-gamma * _squared_distances(points, points))
    K[np.diag_indices_from(K)] += RIDGES[ridge] / rows.mass + JITTER
    values = Standardised.of(rows).values
    dual = cho_solve(cho_factor(K, lower=True), values.T)
    amplitude = np.log(np.sum(dual.T * values) / (len(values) * rows.mass.sum()))
    n = views.n_dimensions
    theta = np.full(2 * n + N_TERMS + 1, _ABSENT)
    theta[:n] = 0.5 * np.log(2.0 * gamma)
    theta[2 * n] = amplitude
    theta[-1] = amplitude + np.log(RIDGES[ridge])
    return Fit(np.inf, theta, np.nan, np.nan, 0)


def _squared_distances(left: Points, right: Points) -> FloatArray:
    out = np.zeros((left.n_points, right.n_points))
    if len(left.X):
        out += euclidean_distances(left.X.T, right.X.T, squared=True)
    for mine, theirs in zip(left.C, right.C, strict=True):
        out += mine[:, None] != theirs[None, :]
    return out


def _duals(
    K: FloatArray, values: FloatArray, mass: FloatArray
) -> Iterator[tuple[FloatArray, float]]:
    """Yield (K + r/w)⁻¹y and the deviation of a row left out, for every ridge r."""
    root = np.sqrt(mass)
    spectrum, basis = eigh(root[:, None] * K * root, overwrite_a=True, check_finite=False)
    spectrum = np.maximum(spectrum, 0.0)
    turned = basis.T @ (root[:, None] * values.T)
    for ridge in RIDGES:
        inverse = 1.0 / (spectrum + ridge)
        dual = root[:, None] * (basis @ (inverse[:, None] * turned))
        amplitude = np.sum(inverse[:, None] * turned**2) / (values.shape[0] * mass.sum())
        left_out = amplitude / (mass * (basis**2 @ inverse))
        yield dual, float(np.sqrt(mass @ left_out / mass.sum()))
