"""Power transforms (Box-Cox, Yeo-Johnson) with weights, and their inverse."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize_scalar
from scipy.special import boxcox, inv_boxcox
from scipy.stats import yeojohnson

from .columns.encoded import weighted_median

# Gauss-Hermite quadrature for expectations over a normal variable
NODES, MASS = hermegauss(9)
MASS = MASS / MASS.sum()
_POWERS = (-1.0, 2.0)


@dataclass(frozen=True)
class Warp:
    """A monotone map: Box and Cox's of positive numbers, else Yeo and Johnson's.

    `power`: 1 is no change, 0 the logarithm; `origin`, `unit`: the power is taken of (y −
    origin)/unit.
    """

    power: float
    origin: float
    unit: float
    positive: bool

    @classmethod
    def of(cls, y: FloatArray, mass: FloatArray | None = None) -> Warp:
        """Fit the power by maximum likelihood.

        `y` of shape (n,); `mass` of shape (n,): 2 counts a value twice. Values that are never
        negative are not shifted, so that zero stays zero.
        """
        share = np.full(len(y), 1.0 / len(y)) if mass is None else mass / mass.sum()
        if y.min() == y.max():
            return cls(1.0, 0.0, 1.0, False)
        if y.min() >= 0.0:
            above, origin = y > 0.0, 0.0
            unit = weighted_median(y[above], share[above])
        else:
            origin = weighted_median(y, share)
            # squares of small targets would underflow
            size = float(np.abs(y - origin).max())
            rest = (y - origin) / size
            unit = size * float(np.sqrt(share @ (rest - share @ rest) ** 2))
        straight = cls(1.0, origin, unit, bool(y.min() > 0.0))
        return replace(straight, power=straight._likeliest(y, share))

    def _likeliest(self, y: FloatArray, share: FloatArray) -> float:
        """Return the power of maximum likelihood under a normal distribution."""
        t = (y - self.origin) / self.unit
        slope = float(share @ (np.log(t) if self.positive else np.sign(t) * np.log1p(np.abs(t))))

        def loss(power: float) -> float:
            z = replace(self, power=power).forward(y)
            return 0.5 * float(np.log(share @ (z - share @ z) ** 2)) - (power - 1.0) * slope

        with np.errstate(all="ignore"):
            found = minimize_scalar(loss, bounds=_POWERS, method="bounded", options={"xatol": 1e-6})
        # with few values the likelihood may have no maximum
        return float(found.x) if np.isfinite(found.fun) else 1.0

    def forward(self, y: FloatArray) -> FloatArray:
        """Return transformed values."""
        t = (y - self.origin) / self.unit
        return np.asarray(boxcox(t, self.power) if self.positive else yeojohnson(t, self.power))

    def inverse(self, z: FloatArray) -> FloatArray:
        """Return the original values; input outside the range of the transform is clipped to it."""
        if self.positive:
            t = inv_boxcox(self._inside(z, self.power), self.power)
        else:
            high = inv_boxcox(self._inside(np.maximum(z, 0.0), self.power), self.power) - 1.0
            other = 2.0 - self.power
            low = 1.0 - inv_boxcox(self._inside(np.maximum(-z, 0.0), other), other)
            t = np.where(z >= 0.0, high, low)
        return np.asarray(self.origin + self.unit * t)

    @staticmethod
    def _inside(z: FloatArray, power: float) -> FloatArray:
        """Clip z to the range of the transform, just inside its end."""
        if power > 0.0:
            return np.maximum(z, -(1.0 - 1e-9) / power)
        return np.minimum(z, -(1.0 - 1e-9) / power) if power < 0.0 else z


def clip_far(z: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Clip transformed values to the training range, extended by its length at either end.

    `low`, `high`: ends of the training range. NaN becomes the lower limit.
    """
    return np.clip(np.where(np.isnan(z), -np.inf, z), 2.0 * low - high, 2.0 * high - low)
