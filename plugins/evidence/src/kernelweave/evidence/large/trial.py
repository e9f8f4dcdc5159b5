"""Some landmarks tried out: the ridge that predicts rows held out best, and how well it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray

from ..rows import Rows, Standardised
from .features import Landmarks
from .landmarks import LandmarkPredictor
from .posterior import Posterior, latent_variance
from .row_equations import RowEquations
from .sums import Normal

# From one ridge to the next: the error of rows held out is flat around its minimum, and each ridge
# costs a factorisation of the order of the landmarks.
_STEP = float(np.sqrt(10.0))
# the least noise that the path may find, too: without any, deviations mean nothing
_LEAST = 1e-5
# Steps of a walk at most, a factor of 10⁶; it ends where one does not gain.
_WALK = 12
Equations = Normal | RowEquations


class _Solution(NamedTuple):
    loss: float
    ridge: float
    losses: FloatArray
    dual: FloatArray
    posterior: Posterior | None


@dataclass(frozen=True)
class Trial:
    """Landmarks with the ridge that serves the rows held out.

    `dual`, `posterior`: as in `LandmarkPredictor`; `losses` of shape (n_held_out,): squared
    residuals in units of the targets' variance, averaged over outputs; `n_rows`: rows in the sums.
    """

    landmarks: Landmarks
    ridge: float
    dual: FloatArray
    posterior: Posterior
    losses: FloatArray
    n_rows: int

    @classmethod
    def of(
        cls,
        landmarks: Landmarks,
        equations: Equations,
        n_rows: int,
        held_out: Rows,
        targets: Standardised,
        units: FloatArray,
        ridges: Sequence[float],
    ) -> Trial:
        """Walk from the best of some ridges to the least held-out error.

        `targets`: as in the sums; `units` of shape (n_outputs,): of the errors: the spread of the
        targets themselves; `ridges`: to begin with. Steps are of √10.
        """
        own = landmarks.features(held_out.numeric, held_out.codes)
        judge = _Judge(equations, own, held_out, targets, units)
        tried = [judge.least_that_solves(ridges[0]), *map(judge, ridges[1:])]
        first = min(tried, key=lambda each: each.loss)
        best = judge.walk(first, 1.0 / _STEP)
        if best is first:
            best = judge.walk(first, _STEP)
        _, ridge, losses, dual, posterior = best
        assert posterior is not None
        return cls(landmarks, ridge, dual, posterior, losses, n_rows)

    def gain_over(self, other: Trial, weight: FloatArray) -> tuple[float, float]:
        """Return how much less the held-out loss is than another's, and its standard error."""
        gains, share = other.losses - self.losses, weight / weight.sum()
        gain = float(share @ gains)
        return gain, float(np.sqrt(np.sum((share * (gains - gain)) ** 2)))

    def predictor(self, held_out: Rows, targets: Standardised) -> LandmarkPredictor:
        """Return the predictor, its spread set by the rows held out."""
        numeric, codes = held_out.numeric, held_out.codes
        own = self.landmarks.features(numeric, codes)
        latent, width = own @ self.dual, _width(own @ self.dual, held_out, targets)
        predicted = targets.moments(latent, width)[0]
        residuals = targets.of_rows(held_out).values.T - targets.standardise(
            targets.restore(latent)
        )
        variance = self.ridge + latent_variance(self.landmarks, self.posterior, numeric, codes)
        share = held_out.mass / held_out.mass.sum()
        units = residuals**2 / variance[:, None]
        inflation = np.maximum(share @ units, np.finfo(np.float64).tiny)
        deviation = targets.moments(latent, np.sqrt(variance[:, None] * inflation))[1]
        scores = np.abs(held_out.targets.T - predicted) / deviation
        return LandmarkPredictor(
            self.landmarks, self.ridge, self.dual, self.posterior, targets, width, inflation,
            scores, held_out, predicted,
        )  # fmt: skip


def _width(latent: FloatArray, held_out: Rows, targets: Standardised) -> float:
    """Return the deviation of warped targets around standardised predictions; 0 of others."""
    if not targets.warps:
        return 0.0
    rest = targets.of_rows(held_out).values.T - latent
    return float(np.sqrt(np.average(np.mean(rest**2, axis=1), weights=held_out.mass)))


@dataclass
class _Judge:
    equations: Equations
    features: RealArray
    held_out: Rows
    targets: Standardised
    units: FloatArray

    def least_that_solves(self, ridge: float) -> _Solution:
        """Raise a ridge until it is more than the rounding of the sums."""
        for _ in range(2 * _WALK):
            solution = self(ridge)
            if np.isfinite(solution.loss):
                return solution
            ridge *= _STEP
        raise np.linalg.LinAlgError(
            f"a ridge of {ridge:.1e} does not make the normal equations positive definite"
        )

    def walk(self, best: _Solution, step: float) -> _Solution:
        """Return the best solution on a walk from one, while each step gains."""
        for _ in range(_WALK):
            if best.ridge * step < _LEAST:
                break
            other = self(best.ridge * step)
            if not other.loss < best.loss:
                break
            best = other
        return best

    def __call__(self, ridge: float) -> _Solution:
        solved = self.equations.solve(ridge)
        if solved is None:
            nothing = np.empty(0)
            return _Solution(np.inf, ridge, nothing, nothing, None)
        dual, posterior = solved
        latent = self.features @ dual
        width = _width(latent, self.held_out, self.targets)
        predicted = self.targets.moments(latent, width)[0]
        residuals = (self.held_out.targets.T - predicted) / self.units
        losses = np.mean(residuals**2, axis=1)
        share = self.held_out.mass / self.held_out.mass.sum()
        return _Solution(float(share @ losses), ridge, losses, dual, posterior)
