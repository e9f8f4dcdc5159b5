"""The targets of the rows that a model was given, as far as its file says them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from kernelweave.tables import Target
from numpy.typing import NDArray

from ..machines import kernel_machine
from ..models import Model
from ..scoring.held_out import scoring_weights

# of a weight that was multiplied by that of its class: what the product rounds off
_DIGITS = 14


@dataclass(frozen=True, eq=False)
class KnownTargets:
    """Targets and weights of the rows that a model was given, in the order in which it was.

    A file records those of rows that folds held out, which are all that scores are of.

    - `told` of shape (n_rows,): of which rows the file records the target; the other fields hold
      nothing of the rest
    - `truth` of shape (n_rows,): targets in the user's unit, or labels
    - `weight` of shape (n_rows,): sample weights, without those of classes
    - `ends` of shape (n_rows, 2): where some targets are known by half; otherwise ``None``
    """

    told: NDArray[np.bool_]
    truth: Labels
    weight: FloatArray
    ends: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.told)

    @classmethod
    def of_target(cls, target: Target, weight: FloatArray | None) -> KnownTargets:
        """Return what a table says of all its rows."""
        n = len(target.values)
        mass = np.ones(n) if weight is None else weight
        ends = None if target.ends is None else np.ascontiguousarray(target.ends.T)
        return cls(np.ones(n, dtype=np.bool_), target.values, mass, ends)

    @classmethod
    def of_model(cls, model: Model) -> KnownTargets:
        """Return what the file of a model says of the rows that it was given."""
        n, held_out = model.header.n_samples, model.held_out
        told, weight = np.zeros(n, dtype=np.bool_), np.ones(n)
        labels = model.header.classes
        truth: Labels = np.zeros(n) if labels is None else np.repeat(np.array(labels[:1]), n)
        if held_out is None:
            return cls(told, truth, weight, np.zeros((n, 2)) if model.header.half_known else None)
        told[held_out.rows] = True
        # texts of other lengths
        truth = truth.astype(np.result_type(truth.dtype, held_out.truth.dtype))
        truth[held_out.rows] = held_out.truth
        class_weight = getattr(kernel_machine(model.estimator), "class_weight", None)
        factors = scoring_weights(None, class_weight, held_out.truth)
        # 0.3 times a factor and divided by it is 0.3 but for the last digit
        weight[held_out.rows] = (
            [float(f"{each:.{_DIGITS}g}") for each in held_out.weight / factors]
            if class_weight is not None
            else held_out.weight
        )
        ends = None
        if held_out.ends is not None:
            ends = np.zeros((n, 2))
            ends[held_out.rows] = held_out.ends
        return cls(told, truth, weight, ends)

    def and_others(self, other: KnownTargets) -> KnownTargets:
        """Return these rows and, behind them, others."""
        ends = None
        if self.ends is not None and other.ends is not None:
            ends = np.concatenate([self.ends, other.ends])
        return KnownTargets(
            np.concatenate([self.told, other.told]),
            np.concatenate([self.truth, other.truth]),
            np.concatenate([self.weight, other.weight]),
            ends,
        )

    def take(self, rows: Index) -> KnownTargets:
        """Return some of the rows."""
        ends = None if self.ends is None else self.ends[rows]
        return replace(
            self, told=self.told[rows], truth=self.truth[rows], weight=self.weight[rows], ends=ends
        )
