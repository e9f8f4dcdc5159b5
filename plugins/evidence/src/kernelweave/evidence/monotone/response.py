"""What of a prediction rises with a column: the prediction, or probabilities of higher classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from scipy.special import softmax

from ..classes import Calibration, per_class
from ..tasks import Classification, Regression, Task

# a probability of less is as good as none
_LEAST = 1e-18


@dataclass(frozen=True)
class MonotoneResponse:
    """Values as they are: targets, or the logit of the second of two classes.

    `sign`: −1 where the second of two classes is the lower level.
    """

    sign: int = 1

    def of(self, values: FloatArray) -> FloatArray:
        """Return what rises, (n, n_outputs), from what a predictor returns."""
        return self.sign * values

    def back(self, values: FloatArray) -> FloatArray:
        """Return what a predictor returns from what rises."""
        return self.sign * values


@dataclass(frozen=True)
class OrderedResponse(MonotoneResponse):
    """Probabilities of more than each level but the last.

    `calibration`: from values to logits; `order` of shape (n_classes,): classes, lowest first.
    """

    calibration: Calibration = field(kw_only=True)
    order: Index = field(kw_only=True)

    def of(self, values: FloatArray) -> FloatArray:
        """Return probabilities of higher levels, (n, n_classes − 1)."""
        p = softmax(self.calibration.logits(per_class(values)), axis=1)[:, self.order]
        return np.asarray(np.cumsum(p[:, :0:-1], axis=1)[:, ::-1])

    def back(self, values: FloatArray) -> FloatArray:
        """Return values whose calibrated probabilities are these."""
        # what is between two levels does not cross, but for rounding
        above = np.minimum.accumulate(np.clip(values, 0.0, 1.0), axis=1)
        steps = -np.diff(above, axis=1, prepend=1.0, append=0.0)
        p = np.empty_like(steps)
        p[:, self.order] = np.maximum(steps, _LEAST)
        return np.asarray((np.log(p) - self.calibration.offset) / self.calibration.slope)


def response_of(task: Task) -> MonotoneResponse:
    """Return what is to rise. Raises ValueError for three classes or more without an order."""
    if isinstance(task, Regression):
        return MonotoneResponse()
    assert task.labels is not None
    if len(task.labels) == 2:
        return MonotoneResponse(-1 if task.ranks is not None and task.ranks[1] == 0 else 1)
    assert task.ranks is not None
    assert task.calibration is not None
    return OrderedResponse(calibration=task.calibration, order=np.argsort(task.ranks))


def refuse_without_order(task: Task) -> None:
    """Raise ValueError for three classes or more without an order."""
    if not isinstance(task, Classification) or task.labels is None or task.ranks is not None:
        return
    if len(task.labels) > 2:
        raise ValueError(
            f"monotone needs classes with an order, and y has {len(task.labels)} without: give "
            "levels, lowest first, or two classes"
        )
