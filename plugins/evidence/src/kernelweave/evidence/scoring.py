"""Scores of held-out predictions by any scorer of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from .classes import Calibration, class_codes, per_class
from .rows import Rows

# number of jackknife blocks for the standard error
_PARTS = 20
# rows or groups that are answered wrongly in turn, where all parts score alike
_WRONG = 50
# what a perfect score loses: the path is combined by ratios of losses
_LEAST = 1e-9


class _Predictions(BaseEstimator):  # type: ignore[misc]
    """A fitted estimator whose predictions are given; X holds positions of rows."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        self.fitted_ = True


class _Numbers(RegressorMixin, _Predictions):  # type: ignore[misc]
    def predict(self, X: Index) -> FloatArray:
        return np.asarray(self.values[X[:, 0]])


class _Classes(ClassifierMixin, _Predictions):  # type: ignore[misc]
    def __init__(self, values: FloatArray, labels: Labels) -> None:
        super().__init__(values)
        self.labels = self.classes_ = labels

    def predict_proba(self, X: Index) -> FloatArray:
        return np.asarray(softmax(self.values[X[:, 0]], axis=1))

    def decision_function(self, X: Index) -> FloatArray:
        logits = self.values[X[:, 0]]
        return np.asarray(logits[:, 1] - logits[:, 0] if len(self.labels) == 2 else logits)

    def predict(self, X: Index) -> Labels:
        chosen: Labels = self.labels[self.values[X[:, 0]].argmax(axis=1)]
        return chosen


@dataclass(frozen=True)
class Scoring:
    """A scorer, and the classes that it is asked of.

    `scorer`: its name or a function of an estimator, rows and targets; `labels` of shape
    (n_classes,): ``None`` for a regression; `flat`: whether targets have one dimension.
    """

    scorer: Any
    labels: Labels | None
    flat: bool = True

    def __post_init__(self) -> None:
        # an unknown name is refused before there is work
        get_scorer(self.scorer)

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return self.scorer if isinstance(self.scorer, str) else "score"

    def loss(self, rows: Rows, values: FloatArray) -> float:
        """Return what predictions of held-out rows lose, as the path is combined by."""
        if self.labels is not None:
            codes, values = class_codes(rows.targets), per_class(values)
            values = Calibration.of(values, codes, rows.mass).logits(values)
        score = self._score(rows, values, np.arange(len(rows)))
        worst_is_zero = getattr(get_scorer(self.scorer), "_sign", 1) < 0
        return max(-score if worst_is_zero else 1.0 - score, _LEAST)

    def score(
        self, rows: Rows, values: FloatArray, parts: Index | None = None
    ) -> tuple[float, float]:
        """Return the score, and its standard error by leaving out parts of the rows in turn.

        Where these do not differ, as of a perfect score, it is half of what three wrong rows, or
        groups, would cost.

        `values`: predictions, or logits of the classes; `parts` of shape (n,): groups or blocks;
        twenty parts of the rows if ``None``.
        """
        everything = np.arange(len(rows))
        names, blocks = np.unique(everything if parts is None else parts, return_inverse=True)
        value = self._score(rows, values, everything)
        left_out = blocks % _PARTS if parts is None else blocks
        found = [self._score(rows, values, everything[left_out != k]) for k in np.unique(left_out)]
        spread = float(np.sqrt((len(found) - 1) * np.var(found))) if len(found) > 1 else np.nan
        if spread == 0.0:
            # a perfect score: what n rows never show is rarer than 3 / n, in 95 of 100 samples
            wrong = -values if self.labels is not None else np.mean(rows.targets.T, axis=0)
            lost = [
                value - self._score(rows, np.where(part[:, None], wrong, values), everything)
                for part in (blocks == k for k in range(0, len(names), -(-len(names) // _WRONG)))
            ]
            spread = 1.5 * max(0.0, float(np.mean(lost)))
        return value, spread

    def _score(self, rows: Rows, values: FloatArray, places: Index) -> float:
        predictions: _Predictions
        if self.labels is None:
            predictions = _Numbers(values[:, 0] if self.flat else values)
            truth = rows.targets[0] if self.flat else rows.targets.T
        else:
            predictions, truth = (
                _Classes(values, self.labels),
                self.labels[class_codes(rows.targets)],
            )
        weight = {} if rows.weight is None else {"sample_weight": rows.weight[places]}
        return float(get_scorer(self.scorer)(predictions, places[:, None], truth[places], **weight))
