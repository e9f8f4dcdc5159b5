"""The negative log evidence of a kernel with priors, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from .packing import pack_slope, unpack
from .terms import N_TERMS, PairTerms, Scales
from .views import FloatArray, Points

JITTER = 1e-6
_WEAK = 0.02
LOWER = (-9.0, -10.0, -14.0, -11.0)
UPPER = (4.0, 4.0, 7.0, 3.0)
_WORST = 1e25


@dataclass
class Evidence:
    """L(θ) of ``EVIDENCE``: ½ Σₜ yₜᵀS⁻¹yₜ + ½ T log det S + ½ T Σ(w − 1) log σ² + priors.

    S = K(θ) + diag(σ²/w), θ = log ℓ, log s, log w, log σ². A row of weight w counts as w equal
    rows do.

    Parameters
    ----------
    points : Points
    jump : ndarray of shape (n_dimensions,)
    targets : ndarray of shape (n_outputs, n_points)
        Centred and scaled.
    precision : float
        λ, the strength of the prior that pulls all log ℓ and all log s to their means.
    weight : ndarray of shape (n_points,), optional
    """

    points: Points
    jump: FloatArray
    targets: FloatArray
    precision: float
    weight: FloatArray | None = None

    def __post_init__(self) -> None:
        self.terms = PairTerms(self.points, self.jump)
        self.n_evaluations = 0
        n = self.points.n_points
        self._square = np.zeros((n, n))
        self._packed = np.empty(n * (n + 1) // 2)
        self._share = np.ones(n) if self.weight is None else 1.0 / self.weight
        self._repeats = 0.0 if self.weight is None else float(self.weight.sum() - n)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return L and its gradient in θ."""
        self.n_evaluations += 1
        scales = Scales.from_vector(theta)
        factor = self._factor(scales)
        if factor is None:
            return _WORST, np.zeros_like(theta)
        T = len(self.targets)
        dual, _ = lapack.dpotrs(factor, self.targets.T, lower=0)
        log_det = 2.0 * np.log(factor.diagonal()).sum()
        value = 0.5 * np.sum(dual.T * self.targets) + 0.5 * T * log_det
        value += 0.5 * T * self._repeats * theta[-1]
        inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        on_diagonal = 0.5 * (T * inverse.diagonal() - np.sum(dual**2, axis=1))
        by_noise = scales.noise * (on_diagonal @ self._share) + 0.5 * T * self._repeats
        pack_slope(inverse.T, np.ascontiguousarray(dual.T), float(T), self._packed)
        slope = np.append(self.terms.slopes(self._packed, scales), by_noise)
        prior, prior_slope = log_prior(theta, self.precision)
        return float(value + prior), slope + prior_slope

    def _factor(self, scales: Scales) -> FloatArray | None:
        unpack(self.terms.fill(scales), self._square)
        n = len(self._square)
        self._square.reshape(-1)[:: n + 1] += scales.noise * self._share + JITTER
        factor, info = lapack.dpotrf(self._square.T, lower=0, clean=0, overwrite_a=1)
        return factor if info == 0 else None


def log_prior(theta: FloatArray, precision: float) -> tuple[float, FloatArray]:
    """Return the priors on θ and their gradient."""
    n = (len(theta) - N_TERMS - 1) // 2
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


def bounds(n_dimensions: int) -> list[tuple[float, float]]:
    """Return the box of θ."""
    sizes = (n_dimensions, n_dimensions, N_TERMS, 1)
    return [
        (low, high)
        for low, high, size in zip(LOWER, UPPER, sizes, strict=True)
        for _ in range(size)
    ]


def start(n_dimensions: int) -> FloatArray:
    """Return θ where the path begins."""
    n = n_dimensions
    ell = np.full(n, -0.5 * np.log(n) - 0.3)
    strength = np.full(n, np.log(1.5 / n + 0.05))
    return np.concatenate([ell, strength, np.full(N_TERMS, np.log(0.3)), [np.log(0.1)]])
