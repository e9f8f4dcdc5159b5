"""A power of the targets under which they are nearly normal, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import boxcox, inv_boxcox
from scipy.stats import boxcox_normmax, yeojohnson, yeojohnson_normmax

# a normal variable's mean, by nine nodes
NODES, MASS = hermegauss(9)
MASS = MASS / MASS.sum()
_POWERS = (-1.0, 2.0)


@dataclass(frozen=True)
class Warp:
    """A monotone map of one output: Box and Cox's of positive targets, else Yeo and Johnson's.

    `power`: 1 is no change, 0 the logarithm; `origin`, `unit`: the power is taken of (y −
    origin)/unit.
    """

    power: float
    origin: float
    unit: float
    positive: bool

    @classmethod
    def of(cls, y: FloatArray) -> Warp:
        """Learn the power by the likelihood of training targets, shape (n,)."""
        if y.min() == y.max():
            return cls(1.0, 0.0, 1.0, False)
        if y.min() > 0.0:
            unit = float(np.median(y))
            return cls(_power(partial(boxcox_normmax, method="mle"), y / unit), 0.0, unit, True)
        origin = float(np.median(y))
        # squares of small targets would underflow
        size = float(np.abs(y - origin).max())
        unit = size * float(np.std((y - origin) / size))
        return cls(_power(yeojohnson_normmax, (y - origin) / unit), origin, unit, False)

    def forward(self, y: FloatArray) -> FloatArray:
        """Return warped targets."""
        t = (y - self.origin) / self.unit
        return np.asarray(boxcox(t, self.power) if self.positive else yeojohnson(t, self.power))

    def back(self, z: FloatArray) -> FloatArray:
        """Return the targets of warped ones; what no target maps to is cut to the nearest."""
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
        """Cut z to the range of the power map, short of its end."""
        if power > 0.0:
            return np.maximum(z, -(1.0 - 1e-9) / power)
        return np.minimum(z, -(1.0 - 1e-9) / power) if power < 0.0 else z


def _power(most_likely: Callable[[FloatArray], float], t: FloatArray) -> float:
    """Return the most likely power, 1 where there is none: a few values may have no best one."""
    with np.errstate(all="ignore"):
        power = float(most_likely(t))
    return float(np.clip(power, *_POWERS)) if np.isfinite(power) else 1.0
