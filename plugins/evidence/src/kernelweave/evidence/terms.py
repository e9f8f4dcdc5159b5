"""The five terms of the kernel, for all pairs of a set of points or between two sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _njit_pairs as passes
from .views import FloatArray, Points

N_TERMS = 5
_FLAT = 200.0
# below it a distance divides as if it were this: its own slope is zero
_NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Scales:
    """Parameters of one kernel.

    Attributes
    ----------
    ell : ndarray of shape (n,)
        Inverse length scale of each dimension.
    strength : ndarray of shape (n,)
        How much each dimension takes part in the product term.
    weights : ndarray of shape (5,)
        Gaussian, Laplacian, linear, product, wide Gaussian.
    noise : float
        Variance of the noise σ², in units of the target's variance.
    """

    ell: FloatArray
    strength: FloatArray
    weights: FloatArray
    noise: float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scales):
            return NotImplemented
        return bool(np.array_equal(self._vector(), other._vector()))

    def __hash__(self) -> int:
        return hash(self._vector().tobytes())

    def _vector(self) -> FloatArray:
        return np.concatenate([self.ell, self.strength, self.weights, [self.noise]])

    @classmethod
    def from_vector(cls, theta: FloatArray) -> Scales:
        """Read log ℓ, log s, log w, log σ²."""
        n = (len(theta) - N_TERMS - 1) // 2
        values = np.exp(theta)
        return cls(values[:n], values[n : 2 * n], values[2 * n : -1], float(values[-1]))

    def to_vector(self) -> FloatArray:
        """Return log ℓ, log s, log w, log σ²."""
        with np.errstate(divide="ignore"):
            return np.log(self._vector())

    def shape(self, jump: FloatArray) -> FloatArray:
        """Return s/(1 + s), 1/(1 + s) and κ's jump, as the compiled passes take them."""
        rest = 1.0 / (1.0 + self.strength)
        return np.vstack([self.strength * rest, rest, jump])


@dataclass
class PairTerms:
    """Terms of all pairs b ≤ a of one set of points, packed.

    Attributes
    ----------
    distance : ndarray of shape (n(n + 1)/2,)
        d, not squared.
    values : tuple of 5 ndarrays
        The terms, without their weights.
    """

    points: Points
    jump: FloatArray

    def __post_init__(self) -> None:
        n = self.points.n_points
        self.n_points = n
        self._store = np.empty((8, n * (n + 1) // 2))

    def fill(self, scales: Scales) -> FloatArray:
        """Compute the terms at some scales; return the kernel, packed."""
        d2, linear, product, gauss, laplace, wide, near, out = self._store
        self.strength = scales.shape(self.jump)
        passes.fill_pairs(
            self.points, self.points, 0, self.n_points, True, scales.ell**2, self.strength,
            d2, linear, product,
        )  # fmt: skip
        np.sqrt(d2, out=near)
        np.exp(np.negative(near, out=laplace), out=laplace)
        np.maximum(near, _NEAR, out=near)
        np.exp(np.multiply(d2, -0.5, out=gauss), out=gauss)
        np.exp(np.multiply(d2, -1.0 / _FLAT, out=wide), out=wide)
        self.values = (gauss, laplace, linear, product, wide)
        np.multiply(gauss, scales.weights[0], out=out)
        for weight, value in zip(scales.weights[1:], self.values[1:], strict=True):
            np.multiply(value, weight, out=d2)
            out += d2
        return out

    def slopes(self, slope: FloatArray, scales: Scales) -> FloatArray:
        """Return dL/d(log ℓ, log s, log w) from dL/dK of the packed pairs, shape (2n + 5,).

        `fill` comes first; ``slope`` counts a pair off the diagonal once, so it holds twice the
        entry of the matrix.
        """
        gauss, laplace, _, product, wide = self.values
        far, _, _, _, _, _, near, shape = self._store
        weights = scales.weights
        np.divide(laplace, near, out=far)
        far *= -0.5 * weights[1]
        np.multiply(gauss, -0.5 * weights[0], out=shape)
        far += shape
        np.multiply(wide, -weights[4] / _FLAT, out=shape)
        far += shape
        far *= slope
        by_weight = np.array([value @ slope for value in self.values])
        np.multiply(product, slope, out=shape)
        shape *= weights[3]
        n = len(scales.ell)
        by_metric, by_part = np.zeros(n), np.zeros(n)
        slope *= weights[2]
        passes.packed_slopes(self.points, self.strength, far, slope, shape, by_metric, by_part)
        by_strength = by_part / (1.0 + scales.strength) ** 2
        return np.concatenate(
            [2.0 * scales.ell**2 * by_metric, scales.strength * by_strength, weights * by_weight]
        )


def cross_kernel(
    left: Points, right: Points, scales: Scales, jump: FloatArray, rows: slice = slice(None)
) -> NDArray[np.float64]:
    """Return the kernel between some rows of ``left`` and all of ``right``."""
    first, last, _ = rows.indices(left.n_points)
    d2, linear, product = np.empty((3, last - first, right.n_points))
    passes.fill_pairs(
        left, right, first, last - first, False, scales.ell**2, scales.shape(jump),
        d2.reshape(-1), linear.reshape(-1), product.reshape(-1),
    )  # fmt: skip
    w = scales.weights
    out = np.exp(d2 * -0.5)
    out *= w[0]
    linear *= w[2]
    out += linear
    product *= w[3]
    out += product
    np.multiply(d2, -1.0 / _FLAT, out=linear)
    np.exp(linear, out=linear)
    linear *= w[4]
    out += linear
    np.sqrt(d2, out=d2)
    np.negative(d2, out=d2)
    np.exp(d2, out=d2)
    d2 *= w[1]
    out += d2
    return out


def own_kernel(points: Points, scales: Scales, jump: FloatArray) -> FloatArray:
    """Return k(x, x) of every point, shape (n,)."""
    p, strength = len(points.X), scales.shape(jump)
    kappa = 2.0 * points.H + strength[2][:, None]
    square = np.vstack([points.X**2, 0.5 * kappa[p:] / np.maximum(jump[p:], 1.0)[:, None]])
    product = np.prod(strength[1][:, None] + strength[0][:, None] * kappa, axis=0)
    w = scales.weights
    values: FloatArray = w[0] + w[1] + w[4] + w[2] * (scales.ell**2 @ square) + w[3] * product
    return values
