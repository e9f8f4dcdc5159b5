"""Two classes, one of them rare: what accuracy does not show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from numpy.typing import NDArray

from .held_out import HeldOut
from .metrics import RARE
from .scores import Score


@dataclass(frozen=True)
class Ranking:
    """How a model tells the rarer of two classes from the other.

    - `label`: of the rarer class
    - `n_rows`, `n_found`, `n_wrong`: its rows, how many of them are predicted so, and how many
      others are
    - `share`: of the rarer class among all rows
    - `area`: under the ROC curve of its probabilities, with its standard error
    - `chance`: standard deviation of the area of scores that mean nothing
    """

    label: str
    n_rows: int
    n_found: int
    n_wrong: int
    share: float
    area: Score
    chance: float

    @property
    def is_rare(self) -> bool:
        """Whether accuracy is mostly that of the other class."""
        return self.share <= RARE

    @property
    def informs(self) -> bool:
        """Whether the probabilities rank rows better than chance."""
        return self.area.value - 0.5 > 2.0 * max(self.area.error, self.chance)

    def as_json(self) -> dict[str, object]:
        """Return plain values by name."""
        return {**vars(self), "area": self.area.value, "area_error": self.area.error}

    def __str__(self) -> str:
        return (
            f"The model finds {self.n_found} of the {self.n_rows} rows of {self.label!r}, with "
            f"{self.n_wrong} false positives. The area under the ROC curve is {self.area.told(3)} "
            f"(chance: 0.5)."
        )


def ranking_of(held_out: HeldOut) -> Ranking | None:
    """Return how the rarer of two classes is told from the other.

    `held_out`: predictions. ``None`` for other tasks, and where there are no probabilities.
    """
    counted = held_out.weight > 0.0
    labels, codes = np.unique(held_out.truth, return_inverse=True)
    if held_out.proba is None or len(labels) != 2 or held_out.proba.shape[1] != 2:
        return None
    shares = np.bincount(codes, weights=held_out.weight) / held_out.weight.sum()
    if shares.min() == 0.0:
        return None
    rare = int(shares.argmin())
    is_it = (codes == rare) & counted
    others = (codes != rare) & counted
    taken = held_out.predicted == labels[rare]
    return Ranking(
        label=str(labels[rare]),
        n_rows=int(is_it.sum()),
        n_found=int((is_it & taken).sum()),
        n_wrong=int((others & taken).sum()),
        share=float(shares[rare]),
        area=roc_area(is_it[counted], held_out.proba[counted, rare], held_out.weight[counted]),
        chance=_chance(int(is_it.sum()), int(others.sum())),
    )


def roc_area(is_it: NDArray[np.bool_], scores: FloatArray, weight: FloatArray) -> Score:
    """Return the area under the ROC curve with its standard error (DeLong et al. 1988).

    `is_it` of shape (n,): rows of the class; `scores` of shape (n,): large for it; `weight` of
    shape (n,): of each row.

    Examples
    --------
    >>> import numpy as np
    >>> roc_area(np.array([True, True, False]), np.array([0.9, 0.4, 0.5]), np.ones(3)).value
    0.5
    """
    own, other = scores[is_it], scores[~is_it]
    w, v = (part / part.sum() for part in (weight[is_it], weight[~is_it]))
    above = _mass_below(own, other, v)
    below = 1.0 - _mass_below(other, own, w)
    area = float(w @ above)
    if min(len(own), len(other)) == 1:
        # nothing is known of how rows of that class differ
        return Score(area, _chance(len(own), len(other)))
    spread = np.sum((w * (above - area)) ** 2) / (1.0 - np.sum(w**2))
    spread += np.sum((v * (below - area)) ** 2) / (1.0 - np.sum(v**2))
    return Score(area, float(np.sqrt(spread)))


def _chance(n_own: int, n_other: int) -> float:
    """Return the standard deviation of the area where all orders are equally likely."""
    return math.sqrt((n_own + n_other + 1) / (12.0 * n_own * n_other))


def _mass_below(at: FloatArray, scores: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the mass of the scores below each of ``at``; of equal ones, half."""
    order = np.argsort(scores, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(mass[order])])
    below = sums[np.searchsorted(scores[order], at, side="left")]
    up_to = sums[np.searchsorted(scores[order], at, side="right")]
    found: FloatArray = 0.5 * (below + up_to)
    return found
