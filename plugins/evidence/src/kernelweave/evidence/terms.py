"""The terms of the kernel, for all pairs of a set of points or between two sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core import clock
from kernelweave.kernels_core.arrays import FloatArray, Index, row_slices
from numpy.typing import NDArray
from scipy.linalg import blas

from . import _njit_pairs as passes
from ._njit_exp import exp_of_multiples

if TYPE_CHECKING:
    from .views import Points

# where columns name groups there are more: see `Points.group_term`
N_TERMS = 5
# Added to the noise, in units of the targets' variance, so that S stays positive definite with
# duplicate rows.
JITTER = 1e-6
# exp(−d²/200) has ten times the length scale of the first term, exp(−d²/2): what is nearly linear.
FLAT = 200.0
# below it a distance divides as if it were this: its own slope is zero
_NEAR = 1e-9
# bytes of the kernel values that are worked on at a time
_BLOCK_BYTES = 32e6
# pairs that a processor's cache holds with all their terms
_PIECE = 1 << 14
# pairs times dimensions that a pass takes a few hundredths of a second for: between two such parts
# the clock is looked at, for of thousands of columns a whole pass takes seconds
_MOMENT = 2**25
# how much longer a pass over the slopes of all dimensions takes than one over the pairs alone
_SLOWER = 8


class Stopped(Exception):  # noqa: N818
    """The time limit passed or somebody pressed Ctrl-C."""


@dataclass(frozen=True, eq=False)
class Scales:
    """Parameters of one kernel.

    - `ell`: inverse length scale of each dimension, (n,)
    - `strength`: how much each dimension takes part in the product term, (n,)
    - `weights`: Gaussian, Laplacian, linear, product, wide Gaussian; behind them one for each term
      that groups have
    - `noise`: variance of the noise σ², in units of the target's variance
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
    def from_vector(cls, theta: FloatArray, n_weights: int = N_TERMS) -> Scales:
        """Read log ℓ, log s, log w, log σ², of so many weights."""
        n = n_dimensions_of(theta, n_weights)
        values = np.exp(theta)
        return cls(values[:n], values[n : 2 * n], values[2 * n : -1], float(values[-1]))

    def to_vector(self) -> FloatArray:
        """Return log ℓ, log s, log w, log σ²."""
        with np.errstate(divide="ignore"):
            return np.log(self._vector())

    @property
    def of_groups(self) -> FloatArray:
        """The weights of the terms that groups have."""
        return self.weights[N_TERMS:]

    def without_levels(self) -> Scales:
        """Return these without the first term of groups, which sums of rows have as levels."""
        if len(self.weights) <= N_TERMS + 1:
            return replace(self, weights=self.weights[:N_TERMS])
        weights = self.weights.copy()
        weights[N_TERMS] = 0.0
        return replace(self, weights=weights)

    def with_levels(self, weight: float) -> Scales:
        """Return these with a weight of the first term of groups."""
        return replace(
            self, weights=np.concatenate([self.weights[:N_TERMS], [weight], self.of_groups[1:]])
        )

    def shape(self, match_weight: FloatArray) -> FloatArray:
        """Return s/(1 + s), 1/(1 + s) and the match weights, as the compiled passes take them."""
        rest = 1.0 / (1.0 + self.strength)
        return np.vstack([self.strength * rest, rest, match_weight])


def embedded(theta: FloatArray, kept: Index, n_dimensions: int) -> FloatArray:
    """Return θ of all dimensions from that of some; the scales of the others are 0."""
    scales = np.full((2, n_dimensions), -np.inf)
    scales[:, kept] = theta[: 2 * len(kept)].reshape(2, -1)
    return np.concatenate([scales.ravel(), theta[2 * len(kept) :]])


def restricted(theta: FloatArray, kept: Index, n_weights: int = N_TERMS) -> FloatArray:
    """Return θ of some dimensions from that of all; a scale of 0 becomes the mean of the others."""
    n = n_dimensions_of(theta, n_weights)
    scales = theta[: 2 * n].reshape(2, n)
    means = [[each[np.isfinite(each)].mean()] for each in scales]
    filled = np.where(np.isfinite(scales), scales, means)[:, kept]
    return np.concatenate([filled.ravel(), theta[2 * n :]])


def n_dimensions_of(theta: FloatArray, n_weights: int = N_TERMS) -> int:
    """Return of how many dimensions θ is; `n_weights`: of the terms, those of groups included."""
    return (len(theta) - n_weights - 1) // 2


@dataclass
class PairTerms:
    """Terms of all pairs b ≤ a of one set of points, packed; `values` holds them, unweighted."""

    points: Points
    match_weight: FloatArray

    def __post_init__(self) -> None:
        n = self.points.n_points
        self._store = np.empty((8, n * (n + 1) // 2))
        self._of_groups = _packed_groups(self.points)

    @property
    def free(self) -> NDArray[np.bool_]:
        """What of log ℓ, log s, log w, log σ² changes the kernel or the noise: all."""
        n_weights = N_TERMS + len(self._of_groups)
        return np.ones(2 * len(self.match_weight) + n_weights + 1, dtype=np.bool_)

    def fill(self, scales: Scales) -> FloatArray:
        """Compute the terms at some scales; return the kernel, packed."""
        d2, linear, product, gauss, laplace, wide, near, out = self._store
        self.strength = scales.shape(self.match_weight)
        metric = scales.ell**2
        for first, n_rows, block in _row_blocks(self.points.n_points, len(metric)):
            passes.fill_pairs(
                self.points[:4], self.points[:4], first, n_rows, True, metric, self.strength,
                d2[block], linear[block], product[block],
            )  # fmt: skip
        self.values = (gauss, laplace, linear, product, wide, *self._of_groups)
        for part in row_slices(len(d2), _PIECE):
            np.sqrt(d2[part], out=near[part])
            exp_of_multiples(near[part], -1.0, laplace[part], out[part])
            exp_of_multiples(d2[part], -0.5, gauss[part], out[part])
            exp_of_multiples(d2[part], -1.0 / FLAT, wide[part], out[part])
            _weigh(scales.weights, [value[part] for value in self.values], out[part], d2[part])
        return out

    def changes(
        self, slope: FloatArray, scales: Scales, probes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return dL/dθ of θ = log ℓ, log s, log w, and dK/dθ times vectors.

        - `slope`: dL/dK of the packed pairs; one off the diagonal counts once, so it holds twice
          the entry of the matrix
        - `scales`: those that `fill` had
        - `probes`: the vectors, (k, n)
        - returned: slopes (2p + n_weights,), and what is moved (2p + n_weights, k, n)
        """
        gauss, laplace, _, product, wide = self.values[:N_TERMS]
        far, near, shape = self._store[0], self._store[6], self._store[7]
        weights, p = scales.weights, len(scales.ell)
        factors = -weights[[1, 0, 4]] * (0.5, 0.5, 1.0 / FLAT)
        for part in row_slices(len(far), _PIECE):
            np.maximum(near[part], _NEAR, out=shape[part])
            np.divide(laplace[part], shape[part], out=shape[part])
            values = [shape[part].copy(), gauss[part], wide[part]]
            _weigh(factors, values, far[part], shape[part])
        np.multiply(product, weights[3], out=shape)
        n_scales = 2 * p + len(weights)
        slopes, moved = np.zeros(n_scales), np.zeros((n_scales, *probes.shape))
        metric, kappa = ((slopes[part], moved[part]) for part in (slice(p), slice(p, 2 * p)))
        for first, n_rows, block in _row_blocks(self.points.n_points, _SLOWER * p):
            passes.packed_changes(
                self.points[:4], first, n_rows, self.strength, far[block], weights[2], shape[block],
                slope[block], probes, metric, kappa,
            )  # fmt: skip
        for k, value in enumerate(self.values):
            slopes[2 * p + k] = value @ slope
            for j, probe in enumerate(probes):
                moved[2 * p + k, j] = _times(value, probe)
        factors = np.concatenate(
            [2.0 * scales.ell**2, scales.strength / (1.0 + scales.strength) ** 2, weights]
        )
        return factors * slopes, factors[:, None, None] * moved


@dataclass
class GaussianTerm:
    """The first term, and those of groups: the others have weight zero, and cost nothing."""

    points: Points
    match_weight: FloatArray

    def __post_init__(self) -> None:
        n = self.points.n_points
        self._store = np.empty((3, n * (n + 1) // 2))
        self._of_groups = _packed_groups(self.points)

    @property
    def free(self) -> NDArray[np.bool_]:
        """What of log ℓ, log s, log w, log σ² changes the kernel or the noise."""
        n = len(self.match_weight)
        free = np.zeros(2 * n + N_TERMS + len(self._of_groups) + 1, dtype=np.bool_)
        free[:n] = free[2 * n] = free[2 * n + N_TERMS :] = True
        return free

    def fill(self, scales: Scales) -> FloatArray:
        """Compute the term at some scales; return the kernel, packed."""
        d2, gauss, out = self._store
        metric = scales.ell**2
        for first, n_rows, block in _row_blocks(self.points.n_points, len(metric)):
            passes.packed_distances(self.points[:4], first, n_rows, metric, d2[block])
        exp_of_multiples(d2, -0.5, gauss, out)
        np.multiply(gauss, scales.weights[0], out=out)
        for weight, same in zip(scales.weights[N_TERMS:], self._of_groups, strict=True):
            out += np.multiply(same, weight, out=d2)
        return out

    def changes(
        self, slope: FloatArray, scales: Scales, probes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Do what `PairTerms.changes` does."""
        far, gauss, _ = self._store
        weights, p = scales.weights, len(scales.ell)
        np.multiply(gauss, -0.5 * weights[0], out=far)
        n_scales = 2 * p + len(weights)
        slopes, moved = np.zeros(n_scales), np.zeros((n_scales, *probes.shape))
        for first, n_rows, block in _row_blocks(self.points.n_points, _SLOWER * p):
            passes.packed_distance_changes(
                self.points[:4], first, n_rows, far[block], slope[block], probes, slopes[:p],
                moved[:p],
            )  # fmt: skip
        for k, value in ((0, gauss), *enumerate(self._of_groups, start=N_TERMS)):
            slopes[2 * p + k] = weights[k] * (value @ slope)
            for j, probe in enumerate(probes):
                moved[2 * p + k, j] = weights[k] * _times(value, probe)
        slopes[:p] *= 2.0 * scales.ell**2
        moved[:p] *= 2.0 * scales.ell[:, None, None] ** 2
        return slopes, moved


def _packed_groups(points: Points) -> list[FloatArray]:
    """Return the terms of groups, packed."""
    below = np.tri(points.n_points, dtype=np.bool_)
    whole = (points.group_term(points, term=k) for k in range(len(points.G)))
    return [each[below].astype(np.float64) for each in whole]


def _row_blocks(n_points: int, width: int) -> Iterator[tuple[int, int, slice]]:
    """Yield rows of the lower triangle, first and how many, and where their packed pairs are.

    Raises Stopped between two blocks where time is up.
    """
    size = max(1, _MOMENT // max(1, n_points * width))
    for first in range(0, n_points, size):
        if first and clock.expired():
            raise Stopped
        last = min(first + size, n_points)
        yield first, last - first, slice(first * (first + 1) // 2, last * (last + 1) // 2)


def _weigh(
    weights: FloatArray, values: Sequence[FloatArray], out: FloatArray, spare: FloatArray
) -> None:
    """Fill a weighted sum."""
    np.multiply(values[0], weights[0], out=out)
    for weight, value in zip(weights[1:], values[1:], strict=True):
        out += np.multiply(value, weight, out=spare)


def _times(packed: FloatArray, vector: FloatArray) -> FloatArray:
    """Return a symmetric matrix, its lower triangle packed by rows, times a vector."""
    return np.asarray(blas.dspmv(len(vector), 1.0, packed, vector))


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Cut rows into slices whose kernel values fit a processor's cache and a little more."""
    return row_slices(n_rows, max(1, int(_BLOCK_BYTES / 8 / max(1, width))))
