"""From decision values to probabilities, by one or two numbers learned on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

# A slope beyond these makes all rows alike or a step of the sigmoid: rounding would choose it.
_SLOPES = (1e-2, 1e2)
# The slope where no row was held out: decision values of ±1 are 0.98 sure of their class.
_PLAIN = 2.0


@dataclass(frozen=True)
class Calibration:
    """Class k gets the logit slope · f_k + offset_k.

    `offset` of shape (n_classes,).
    """

    slope: float
    offset: FloatArray

    @classmethod
    def of(cls, values: FloatArray, codes: NDArray[np.intp], weight: FloatArray) -> Calibration:
        """Minimise the log loss of held-out decision values.

        N rows make a label as sure as (N + 1)/(N + 2), after Platt, 1999: where all are told apart,
        the slope would grow without bounds, and the first row told wrong cost as much.

        `values` of shape (n, n_classes); `codes` of shape (n,); `weight` of shape (n,).
        """
        if not len(values):
            # nothing was held out: ±1 become 0.98 and 0.02
            return cls(_PLAIN, np.zeros(values.shape[1]))
        share = weight / weight.sum()
        n_rows, n_classes = values.shape
        hit = _sure(codes, weight, n_classes)

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            slope, offset = np.exp(theta[0]), theta[1:]
            logits = slope * values + offset
            excess = share[:, None] * (softmax(logits, axis=1) - hit)
            value = -share @ np.sum(hit * log_softmax(logits, axis=1), axis=1)
            # a quadratic prior keeps offsets of rare classes finite
            value += 0.5 * offset @ offset / n_rows
            slopes = np.append(slope * np.sum(excess * values), excess.sum(0) + offset / n_rows)
            return float(value), slopes

        box = [tuple(np.log(_SLOPES)), *[(-5.0, 5.0)] * n_classes]
        first = np.append(np.log(2.0), np.zeros(n_classes))
        done = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=box)
        return cls(float(np.exp(done.x[0])), np.asarray(done.x[1:]))

    def logits(self, values: FloatArray) -> FloatArray:
        """Return the logits, shape (n, n_classes)."""
        return self.slope * values + self.offset


def _sure(codes: NDArray[np.intp], weight: FloatArray, n_classes: int) -> FloatArray:
    """Return the probabilities that labels stand for, shape (n, n_classes)."""
    doubt = 1.0 / (weight.sum() + 2.0)
    out = np.full((len(codes), n_classes), doubt / (n_classes - 1))
    out[np.arange(len(codes)), codes] = 1.0 - doubt
    return out
