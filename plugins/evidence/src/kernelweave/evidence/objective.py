"""The negative log evidence of a kernel with priors, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from . import _njit_pairs as passes
from .terms import JITTER, N_TERMS, GaussianTerm, PairTerms, Scales, n_dimensions_of

if TYPE_CHECKING:
    from .views import Points

# Precision of the priors on the means and on the weights: weak, for what the data do not determine.
# A prior like that on all parameters, without λ, lost up to 14 points of accuracy.
_WEAK = 0.02
# The box of log ℓ, log s, log w and log σ², of standardised columns and targets: at its ends a
# column is invisible or tells any two rows apart, and a term is absent or all there is.
LOWER = (-9.0, -10.0, -14.0, -11.0)
UPPER = (4.0, 4.0, 7.0, 3.0)
# Value where S is not positive definite: larger than any other, and finite for L-BFGS.
_WORST = 1e25


# Number of outputs in the estimate of the curvature; more outputs are mixed at random.
_PROBES = 3
# number of scales up to which their curvature matrix is cheap to factor
_MANY = 1000
# rows of a triangle that LAPACK inverts as fast as products of its halves
_BASE = 64


@dataclass
class Evidence:
    """L(θ) of ``EVIDENCE``: ½ Σₜ yₜᵀS⁻¹yₜ + ½ T log det S + ½ T Σ(w − 1) log σ² + priors.

    S = K(θ) + diag(σ²/w), θ = log ℓ, log s, log w, log σ². A row of weight w counts as w equal
    rows do.

    - `targets`: centred and scaled, (n_outputs, n_points)
    - `precision`: λ, the strength of the prior that pulls all log ℓ and all log s to their means
    - `terms`: `GaussianTerm` where the weights of the other terms are zero
    """

    points: Points
    match_weight: FloatArray
    targets: FloatArray
    precision: float
    weight: FloatArray | None = None
    terms: type[PairTerms | GaussianTerm] = PairTerms

    def __post_init__(self) -> None:
        self._terms = self.terms(self.points, self.match_weight)
        self.free = self._terms.free
        self.n_evaluations = 0
        # value at the last argument, while its factor is there
        self._last: float | None = None
        self._theta = np.empty(0)
        n = self.points.n_points
        self.n_weights = N_TERMS + len(self.points.G)
        self._wide = is_wide(len(self.match_weight), n, len(self.points.G))
        self._square = np.zeros((n, n))
        self._packed = np.empty(n * (n + 1) // 2)
        self._share = np.ones(n) if self.weight is None else 1.0 / self.weight
        self._repeats = 0.0 if self.weight is None else float(self.weight.sum() - n)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return L and its gradient in θ."""
        value = self.value(theta)
        return value, self.gradient()

    def value(self, theta: FloatArray) -> float:
        """Return L."""
        self.n_evaluations += 1
        if self._last is not None and np.array_equal(theta, self._theta):
            return self._last
        self._last = None
        self._theta, self._scales = theta.copy(), Scales.from_vector(theta, self.n_weights)
        passes.unpack(self._terms.fill(self._scales), self._square)
        n, T = len(self._square), len(self.targets)
        self._square.reshape(-1)[:: n + 1] += self._scales.noise * self._share + JITTER
        factor, info = lapack.dpotrf(self._square.T, lower=0, clean=0, overwrite_a=1)
        self._factor = factor if info == 0 else None
        if self._factor is None:
            self._dual, self._last = np.zeros_like(self.targets.T), _WORST
            return _WORST
        self._dual, _ = lapack.dpotrs(self._factor, self.targets.T, lower=0)
        log_det = 2.0 * np.log(self._factor.diagonal()).sum()
        value = 0.5 * np.sum(self._dual.T * self.targets) + 0.5 * T * log_det
        value += 0.5 * T * self._repeats * theta[-1]
        self._last = float(value + log_prior(theta, self.precision, self.n_weights)[0])
        return self._last

    def gradient(self) -> FloatArray:
        """Return the gradient at the last argument of `value`."""
        return self._derivatives(np.empty((0, self.points.n_points)))[0]

    def derivatives(self) -> tuple[FloatArray, FloatArray | LowRankCurvature]:
        """Return the gradient at the last argument of `value`, and an approximate curvature.

        The curvature is the average information, ½ Σₜ (∂S aₜ)ᵀ S⁻¹ (∂S aₜ), a = S⁻¹y, of Gilmour,
        Thompson and Cullis (1995), the mean of the observed and the expected one, and that of
        the priors. It is positive semidefinite and needs no product of matrices of the pairs. Where
        there are far more scales than rows it is kept as the few vectors that it is a sum of.
        """
        most = len(self.free) // (2 * self.points.n_points) if self._wide else _PROBES
        return self._derivatives(_probes(self._dual.T, min(most, _PROBES)))

    def _derivatives(self, probes: FloatArray) -> tuple[FloatArray, FloatArray | LowRankCurvature]:
        """Return the gradient and the average information along the probes."""
        theta, scales, T = self._theta, self._scales, len(self.targets)
        if self._factor is None:
            flat = LowRankCurvature(np.ones(len(theta)), np.empty((0, len(theta))), np.empty(0))
            return np.zeros_like(theta), flat if self._wide else np.eye(len(theta))
        self._last = None
        inverse = inverse_of(self._factor.copy(order="F") if self._wide else self._factor)
        dual, on_diagonal = np.ascontiguousarray(self._dual.T), inverse.diagonal()
        on_diagonal = 0.5 * (T * on_diagonal - np.sum(dual**2, axis=0))
        by_noise = scales.noise * (on_diagonal @ self._share) + 0.5 * T * self._repeats
        passes.pack_slope(inverse.T, dual, float(T), self._packed)
        slope, moved = self._terms.changes(self._packed, scales, probes)
        moved = np.concatenate([moved, (scales.noise * self._share * probes)[None]])
        slope = np.append(slope, by_noise) + log_prior(theta, self.precision, self.n_weights)[1]
        slope = np.where(self.free, slope, 0.0)
        if self._wide:
            halves = [
                blas.dtrsm(np.sqrt(0.5), self._factor, moved[:, k].T, trans_a=1, lower=0)
                for k in range(len(probes))
            ]
            return slope, LowRankCurvature.of(len(self.match_weight), self.precision, halves)
        curvature = prior_curvature(len(self.match_weight), self.precision, len(slope))
        for k in range(len(probes)):
            columns = np.asfortranarray(moved[:, k].T)
            curvature += 0.5 * columns.T @ blas.dsymm(1.0, inverse, columns, lower=0)
        return slope, curvature


def inverse_of(factor: FloatArray) -> FloatArray:
    """Return the upper half of S⁻¹, written over the upper Cholesky factor of S, in column order.

    LAPACK's ``dpotri`` inverts the triangle by columns, at a third of the speed of products of
    matrices: of 350 rows it took twice as long as this, of 800 a fifth longer.
    """
    _invert_triangle(factor)
    inverse: FloatArray = lapack.dlauum(factor, lower=0, overwrite_c=1)[0]
    return inverse


def _invert_triangle(upper: FloatArray) -> None:
    """Write the inverse of an upper triangle over it, by halves: products do most of the work."""
    if len(upper) <= _BASE:
        upper[:] = lapack.dtrtri(upper, lower=0)[0]
        return
    half = (len(upper) // 2 + 7) // 8 * 8
    first, last = upper[:half, :half], upper[half:, half:]
    _invert_triangle(first)
    _invert_triangle(last)
    left = blas.dtrmm(-1.0, first, upper[:half, half:])
    upper[:half, half:] = blas.dtrmm(1.0, last, left, side=1, overwrite_b=1)


def is_wide(n_dimensions: int, n_points: int, n_groupings: int = 0) -> bool:
    """Return whether a matrix of all scales would dominate the cost of a fit."""
    n_scales = 2 * n_dimensions + N_TERMS + n_groupings + 1
    return n_scales > max(_MANY, 2 * n_points)


def evidence_bytes(n_dimensions: int, n_points: int, n_outputs: int, n_groupings: int = 0) -> int:
    """Return the memory that a fit of the scales takes at most, rows and their views included.

    The terms of all pairs and S; the views of all rows and of a fold; what every scale does to the
    kernel times the probes; and the curvature, a matrix of the scales or some vectors of them.
    `n_groupings`: terms that groups have.
    """
    n, m = n_points, 2 * n_dimensions + N_TERMS + n_groupings + 1
    wide = is_wide(n_dimensions, n, n_groupings)
    probes = max(1, min(_PROBES, n_outputs, m // (2 * n) if wide else _PROBES))
    curvature = 4 * probes * n * m if wide else 2 * n * m + 5 * m * m
    pairs, views = n * n * (11 + n_groupings) // 2, 12 * n * n_dimensions
    return 8 * (pairs + views + probes * n * m + curvature)


@dataclass(frozen=True)
class LowRankCurvature:
    """diag(d) + Σ ±uuᵀ, positive semidefinite.

    `diagonal` of shape (n_scales,); `vectors` of shape (rank, n_scales); `signs` of shape (rank,).
    """

    diagonal: FloatArray
    vectors: FloatArray
    signs: FloatArray

    @classmethod
    def of(
        cls, n_dimensions: int, precision: float, halves: Sequence[FloatArray]
    ) -> LowRankCurvature:
        """Return the curvature of the priors and what the probes tell: Σ HᵀH."""
        n = n_dimensions
        diagonal = np.zeros(halves[0].shape[1])
        diagonal[: 2 * n], diagonal[2 * n : -1] = precision, _WEAK
        # of λ(I − 11ᵀ/n) and the weak prior on the mean of log ℓ, and of log s
        common = _WEAK / n**2 - precision / n
        means = np.zeros((2, len(diagonal)))
        means[0, :n] = means[1, n : 2 * n] = np.sqrt(abs(common))
        signs = np.concatenate(
            [np.full(2, np.copysign(1.0, common)), *(np.ones(len(h)) for h in halves)]
        )
        return cls(diagonal, np.vstack([means, *halves]), signs)

    def __matmul__(self, step: FloatArray) -> FloatArray:
        """Return the product with a vector."""
        return self.diagonal * step + (self.signs * (self.vectors @ step)) @ self.vectors

    def solve(self, moving: NDArray[np.bool_], damping: float, right: FloatArray) -> FloatArray:
        """Return (C + damping)⁻¹ times a vector in what may move, by the Woodbury identity."""
        diagonal = self.diagonal[moving] + damping
        vectors = self.vectors[:, moving]
        scaled = vectors / diagonal
        inner = scaled @ vectors.T
        inner[np.diag_indices_from(inner)] += self.signs
        return np.asarray(right / diagonal - np.linalg.solve(inner, scaled @ right) @ scaled)


def _probes(dual: FloatArray, most: int = _PROBES) -> FloatArray:
    """Return the outputs' coefficients, or mixtures of as much information in the mean."""
    if len(dual) <= most:
        return np.ascontiguousarray(dual)
    signs = np.random.RandomState(0).choice([-1.0, 1.0], size=(most, len(dual)))
    return np.asarray(signs @ dual / np.sqrt(most))


def log_prior(
    theta: FloatArray, precision: float, n_weights: int = N_TERMS
) -> tuple[float, FloatArray]:
    """Return the priors on θ and their gradient."""
    n = n_dimensions_of(theta, n_weights)
    slope = np.zeros_like(theta)
    value = 0.0
    for part in (slice(0, n), slice(n, 2 * n)):
        mean = theta[part].mean()
        spread = theta[part] - mean
        value += 0.5 * precision * (spread @ spread) + 0.5 * _WEAK * mean**2
        slope[part] = precision * spread + _WEAK * mean / n
    weights = theta[2 * n : -1]
    slope[2 * n : -1] = _WEAK * weights
    return float(value + 0.5 * _WEAK * (weights @ weights)), slope


def prior_curvature(n_dimensions: int, precision: float, n_scales: int) -> FloatArray:
    """Return the second derivatives of the priors, shape (n_scales, n_scales)."""
    n = n_dimensions
    out = np.zeros((n_scales, n_scales))
    for part in (slice(0, n), slice(n, 2 * n)):
        out[part, part] = precision * (np.eye(n) - 1.0 / n) + _WEAK / n**2
    weights = np.arange(2 * n, n_scales - 1)
    out[weights, weights] = _WEAK
    return out


def bounds(n_dimensions: int, n_weights: int = N_TERMS) -> list[tuple[float, float]]:
    """Return the box of θ."""
    sizes = (n_dimensions, n_dimensions, n_weights, 1)
    return [
        (low, high)
        for low, high, size in zip(LOWER, UPPER, sizes, strict=True)
        for _ in range(size)
    ]


def start(n_dimensions: int, n_groupings: int = 0) -> FloatArray:
    """Return the initial θ of the path; `n_groupings`: terms that groups have."""
    n = n_dimensions
    ell = np.full(n, -0.5 * np.log(n) - 0.3)
    strength = np.full(n, np.log(1.5 / n + 0.05))
    weights = np.full(N_TERMS + n_groupings, np.log(0.3))
    return np.concatenate([ell, strength, weights, [np.log(0.1)]])
