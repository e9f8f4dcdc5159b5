"""What share of each class its sets hold: all sets have one confidence, and rare classes less."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from kernelweave.evidence.intervals import conformal
from kernelweave.kernels_core.arrays import FloatArray, Labels
from numpy.typing import NDArray

from .held_out import HeldOut

# the confidence that a report shows by class
LEVEL = 0.9
# rows of a class below which their number is told and no share
_FEWEST = 10
# probability of a note where every class is held as often as is asked
_BY_CHANCE = 0.05


@dataclass(frozen=True)
class ClassCoverage:
    """How many rows of a class are held by sets of classes.

    - `label`, `n_rows`: the class and its rows
    - `held`: how many of them have it in their set
    - `held_by_class`: the same of the sets with a threshold for each class; ``None`` where too few
      rows of it were held out, so that it is in every such set
    """

    label: object
    n_rows: int
    held: int
    held_by_class: int | None

    @property
    def share(self) -> str:
        """The share held; how many, where the rows are too few for a share."""
        return self._words(self.held)

    @property
    def share_by_class(self) -> str:
        """The share held by the sets for each class."""
        if self.held_by_class is None:
            return "too few rows: in every set"
        return self._words(self.held_by_class)

    def _words(self, held: int) -> str:
        if self.n_rows < _FEWEST:
            return f"{held} of {self.n_rows}"
        return f"{100.0 * held / self.n_rows:.1f} %"


@dataclass(frozen=True)
class SetsByClass:
    """The coverage of each class that has rows, and how many classes the sets have in the mean.

    - `level`: the confidence of the sets
    - `classes`: one for each class
    - `size`, `size_by_class`: mean number of classes of a set with one threshold, and with one for
      each class
    """

    level: float
    classes: tuple[ClassCoverage, ...]
    size: float
    size_by_class: float

    @classmethod
    def of(
        cls,
        level: float,
        truth: Labels,
        labels: Labels,
        sets: NDArray[np.bool_],
        by_class: NDArray[np.bool_],
        few: NDArray[np.bool_],
    ) -> SetsByClass:
        """Return the coverage of sets of shape (n_rows, n_classes).

        `truth` of shape (n_rows,); `labels`, `few` of shape (n_classes,): the classes, and whether
        the rows held out of each are too few for a threshold.
        """
        rows = []
        for k, label in enumerate(labels.tolist()):
            own = truth == labels[k]
            if own.any():
                own_sets = None if few[k] else int(by_class[own, k].sum())
                rows.append(ClassCoverage(label, int(own.sum()), int(sets[own, k].sum()), own_sets))
        sizes = (float(each.sum(axis=1).mean()) for each in (sets, by_class))
        return cls(level, tuple(rows), *sizes)

    def lowest(self) -> ClassCoverage:
        """Return the class whose coverage would be the least likely by chance."""
        return min(self.classes, key=self._chance)

    def below(self) -> ClassCoverage | None:
        """Return the class that is held less than was asked for, if that is not chance.

        Only classes with rows enough for a threshold of their own count.
        """
        rows = [each for each in self.classes if each.held_by_class is not None]
        worst = min(rows, key=self._chance, default=None)
        if worst is None or self._chance(worst) * len(rows) > _BY_CHANCE:
            return None
        return worst

    def _chance(self, row: ClassCoverage) -> float:
        """Return the probability of so few rows held where each is held with the confidence."""
        from scipy.stats import binom

        return float(binom.cdf(row.held, row.n_rows, self.level))


def rows_needed(level: float) -> int:
    """Return how many rows of a class a threshold for a confidence takes."""
    return math.ceil(level / (1.0 - level) - 1e-9)


def sets_by_class(held_out: HeldOut, level: float = LEVEL) -> SetsByClass | None:
    """Return the coverage of rows held out, each by the thresholds of the others.

    ``None`` without probabilities.
    """
    if held_out.proba is None:
        return None
    labels, proba = held_out.classes, held_out.proba
    codes = np.searchsorted(labels, held_out.truth)
    own = 1.0 - proba[np.arange(len(codes)), codes]
    alike = np.repeat(_of_the_others(own, level)[:, None], len(labels), axis=1)
    by_class = np.empty_like(alike)
    counts = np.bincount(codes, minlength=len(labels))
    for k in range(len(labels)):
        mine = codes == k
        by_class[:, k] = conformal(own[mine][:, None], level)[0]
        by_class[mine, k] = _of_the_others(own[mine], level)
    sets, own_sets = (_sets(proba, most) for most in (alike, by_class))
    few = counts - 1 < rows_needed(level)
    return SetsByClass.of(level, held_out.truth, labels, sets, own_sets, few)


def too_few(held_out: HeldOut, level: float) -> NDArray[np.bool_]:
    """Return which classes have too few rows held out for a threshold of their own."""
    codes = np.searchsorted(held_out.classes, held_out.truth)
    return np.bincount(codes, minlength=len(held_out.classes)) < rows_needed(level)


def membership(chosen: Iterable[list[object]], labels: Labels) -> NDArray[np.bool_]:
    """Return sets that are lists of labels as booleans of shape (n_rows, n_classes)."""
    return np.array([[label in each for label in labels.tolist()] for each in chosen])


def _sets(proba: FloatArray, most: FloatArray) -> NDArray[np.bool_]:
    """Return the classes whose score 1 − p is at most a threshold, and the most probable one."""
    sets = np.asarray(proba >= 1.0 - most)
    sets[np.arange(len(sets)), proba.argmax(axis=1)] = True
    return sets


def _of_the_others(scores: FloatArray, level: float) -> FloatArray:
    """Return for each score the conformal threshold of all others, shape (n,)."""
    n = len(scores)
    rank = math.ceil(level * n - 1e-9)
    if rank > n - 1:
        return np.full(n, np.inf)
    order = np.argsort(scores, kind="stable")
    place = np.empty(n, np.intp)
    place[order] = np.arange(n)
    found: FloatArray = np.where(place < rank, scores[order[rank]], scores[order[rank - 1]])
    return found
