"""What a fit asks of its targets, numbers or classes: how they are read, held out and judged.

"Answers" are what is judged: predictions, or calibrated logits of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from kernelweave.kernels_core.estimators.classes import class_weights
from kernelweave.kernels_core.estimators.underfit import (
    HELD_OUT,
    Judged,
    underfit_of_classes,
    underfit_of_numbers,
)
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from .classes import (
    Calibration,
    class_codes,
    class_targets,
    crossed_logits,
    folds_of_copies,
    judge_classes,
    per_class,
)
from .intervals import Range
from .large.reading import ClassTargets, NumberTargets
from .rows import Rows, Split, to_original_rows
from .scores import grouped_ratio, judge_numbers, squared_losses
from .targets import check_classes, check_numbers, more_classes, more_numbers, ranks_of

# number of jackknife blocks for the standard error
_PARTS = 20
# rows or groups that are answered wrongly in turn, where all parts score alike
_WRONG = 50
# what a perfect score loses: the path is combined by ratios of losses
_LEAST = 1e-9
# as few as blocks of time are: without one of them the unit of R² is another
_FEW_PARTS = 6


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
        scores = [self._score(rows, values, everything[left_out != k]) for k in np.unique(left_out)]
        spread = float(np.sqrt((len(scores) - 1) * np.var(scores))) if len(scores) > 1 else np.nan
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
            predictions = _Classes(values, self.labels)
            truth = self.labels[class_codes(rows.targets)]
        weight = {} if rows.weight is None else {"sample_weight": rows.weight[places]}
        return float(get_scorer(self.scorer)(predictions, places[:, None], truth[places], **weight))


@dataclass(frozen=True)
class Regression:
    """Targets are numbers.

    `scorer`: as the user gives it; `flat`: whether the user gave one dimension.
    """

    scorer: Any = None
    flat: bool = True
    usual_score: ClassVar[str] = "R²"
    is_share: ClassVar[bool] = False
    ends: ClassVar[FloatArray | None] = None
    log: ClassVar[bool] = False

    @property
    def scoring(self) -> Scoring | None:
        """The scorer that was asked for."""
        return None if self.scorer is None else Scoring(self.scorer, None, self.flat)

    @property
    def lower(self) -> float:
        """What all targets are larger than."""
        return -np.inf

    def read(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[Regression, FloatArray, FloatArray | None]:
        """Return the task of checked targets, these, and the weights of their rows."""
        values, flat = check_numbers(y, n_rows, weight)
        return replace(self, flat=flat), values, weight

    def more(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return targets of more rows, their ends where they are known by half, and the weights.

        Read as those of training were.
        """
        values, flat = more_numbers(y, n_rows)
        if flat != self.flat:
            had, got = ("one", "two") if self.flat else ("two", "one")
            raise ValueError(f"y has {got} dimensions, and {had} when the kernel was learned")
        return values, None, weight

    @property
    def summary(self) -> Callable[..., NumberTargets]:
        """What reads targets batch by batch."""
        return NumberTargets.of

    def of_summary(self, targets: Any) -> Regression:
        """Return the task of the targets of all batches, which are checked."""
        targets.check()
        return replace(self, flat=targets.flat)

    def codes(self, y: Labels) -> None:
        """Return nothing: numbers have no classes."""

    def splits(self, rows: Rows, n_folds: int, state: np.random.RandomState) -> list[Split]:
        """Return folds at random; rows that are equal stay together."""
        return folds_of_copies(rows.duplicate_ids, n_folds, state)

    def calibrated(self, rows: Rows, held_out: FloatArray) -> tuple[Regression, float, float]:
        """Return the task as rows held out calibrate it, their score and its standard error."""
        return self, *judge_numbers(held_out, rows.targets, rows.mass)

    def answers(self, values: FloatArray) -> FloatArray:
        """Return answers from held-out values: predictions as they are."""
        return values

    def crossed(self, rows: Rows, held_out: FloatArray) -> FloatArray:
        """Return answers of all rows held out, none calibrated by itself."""
        return held_out

    def answers_of_new(self, rows: Rows, values: FloatArray, usual: FloatArray) -> FloatArray:
        """Return answers of rows left out together, calibrated by their usual values."""
        return values

    def losses(self, rows: Rows, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of answers and their units: the score is 1 less the ratio of means."""
        return squared_losses(rows.targets.T, answers, rows.mass)

    def in_the_table(self, rows: Rows, held_out: FloatArray, owner: Index) -> FloatArray:
        """Return predictions of rows held out, for each of the user's."""
        return self.shaped(to_original_rows(held_out, owner))

    def shaped(self, values: FloatArray) -> FloatArray:
        """Return values (…, n_outputs) in the user's unit, and without outputs where he has one."""
        return values[..., 0] if self.flat else values

    def deviations(self, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return deviations around predictions (n, n_outputs), as `shaped` does values."""
        return self.shaped(deviation)

    def range_of(self, rows: Rows) -> Range:
        """Return what new targets never leave."""
        return Range.of(rows.targets)

    def underfit(self, rows: Rows, values: FloatArray, judged: Judged = HELD_OUT) -> Warning | None:
        """Return the warning that rows are predicted hardly better than by no column, if so."""
        return underfit_of_numbers(rows.targets.T, values, rows.mass, judged)

    def link(self, values: FloatArray) -> FloatArray:
        """Return predictions (n, n_outputs) of the targets on the scale that `explain` adds on."""
        return values

    def response(self, values: FloatArray, output: int) -> FloatArray:
        """Return what is shown of predictions (n, n_outputs) of the targets, shape (n,)."""
        return values[:, output]


@dataclass(frozen=True)
class Classification:
    """Targets are classes; its methods do what those of `Regression` do.

    `scorer`, `class_weight`, `levels`: as the user gives them; `labels` of shape (n_classes,):
    sorted; `ranks` of shape (n_classes,): their places where they have an order; `calibration`: by
    rows held out; `factors` of shape (n_classes,): of the weights of the rows of each, as
    `class_weight` was read; ``None`` where there are none.
    """

    scorer: Any = None
    class_weight: Any = None
    levels: Any = None
    labels: Labels | None = None
    ranks: Index | None = None
    calibration: Calibration | None = None
    factors: FloatArray | None = None
    flat: ClassVar[bool] = True
    usual_score: ClassVar[str] = "accuracy"
    is_share: ClassVar[bool] = True
    ends: ClassVar[FloatArray | None] = None
    log: ClassVar[bool] = False

    @property
    def scoring(self) -> Scoring | None:
        """The scorer that was asked for."""
        return None if self.scorer is None else Scoring(self.scorer, self.labels)

    def read(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[Classification, FloatArray, FloatArray | None]:
        """Return the task of checked targets, these as numbers, and the weights of their rows."""
        labels, codes = check_classes(y, n_rows, weight)
        factors = None
        if self.class_weight is not None:
            mass = np.ones(n_rows) if weight is None else weight
            factors = class_weights(self, labels, codes, mass)
            weight = mass * factors[codes]
        ranks = ranks_of(labels, self.levels, y)
        task = replace(self, labels=labels, ranks=ranks, factors=factors)
        return task, class_targets(codes, len(labels), ranks), weight

    def more(
        self, y: object, n_rows: int, weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return targets of more rows, nothing, and their weights; see `Regression.more`."""
        assert self.labels is not None
        codes = more_classes(y, n_rows, self.labels)
        if self.factors is not None:
            weight = self.factors[codes] * (1.0 if weight is None else weight)
        return class_targets(codes, len(self.labels), self.ranks), None, weight

    @property
    def ordered(self) -> Labels | None:
        """The labels, lowest first, where they have an order."""
        if self.labels is None or self.ranks is None:
            return None
        return np.asarray(self.labels[self.ranks.argsort()])

    @property
    def summary(self) -> Callable[..., ClassTargets]:
        """What reads targets batch by batch."""
        return ClassTargets.of

    def of_summary(self, targets: Any) -> Classification:
        """Return the task of the targets of all batches, which are checked and weighed."""
        targets.check(
            lambda labels, masses: class_weights(self, labels, np.arange(len(labels)), masses)
        )
        targets.ranks = ranks_of(targets.labels, self.levels)
        return replace(self, labels=targets.labels, ranks=targets.ranks)

    def codes(self, y: Labels) -> Index:
        """Return the class of each label."""
        assert self.labels is not None
        return np.searchsorted(self.labels, np.ravel(y))

    def splits(self, rows: Rows, n_folds: int, state: np.random.RandomState) -> list[Split]:
        """Return folds at random that keep the shares of the classes."""
        return folds_of_copies(rows.duplicate_ids, n_folds, state, class_codes(rows.targets))

    def calibrated(self, rows: Rows, held_out: FloatArray) -> tuple[Classification, float, float]:
        """Return the task as rows held out calibrate it, their score and its standard error."""
        calibration, score, error = judge_classes(held_out, rows.targets, rows.mass)
        return replace(self, calibration=calibration), score, error

    def answers(self, values: FloatArray) -> FloatArray:
        """Return calibrated logits of all classes."""
        assert self.calibration is not None
        return self.calibration.logits(per_class(values))

    def crossed(self, rows: Rows, held_out: FloatArray) -> FloatArray:
        """Return logits calibrated by other parts of the rows held out."""
        return crossed_logits(held_out, rows.targets, rows.mass)

    def answers_of_new(self, rows: Rows, values: FloatArray, usual: FloatArray) -> FloatArray:
        """Return logits of rows left out together, calibrated by their usual values."""
        calibration = Calibration.of(per_class(usual), class_codes(rows.targets), rows.mass)
        return calibration.logits(per_class(values))

    def losses(self, rows: Rows, answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1 where the most probable class is wrong, and units of 1."""
        wrong = answers.argmax(axis=1) != class_codes(rows.targets)
        return wrong[:, None].astype(np.float64), np.ones((len(rows), 1))

    def in_the_table(self, rows: Rows, held_out: FloatArray, owner: Index) -> FloatArray:
        """Return probabilities of rows held out, for each of the user's."""
        return to_original_rows(softmax(self.crossed(rows, held_out), axis=1), owner)

    def underfit(self, rows: Rows, values: FloatArray, judged: Judged = HELD_OUT) -> Warning | None:
        """Return the warning that fewer labels are right than the most frequent class has."""
        right = self.losses(rows, self.answers(values))[0][:, 0] == 0.0
        return underfit_of_classes(class_codes(rows.targets), right, rows.mass, judged)

    def link(self, values: FloatArray) -> FloatArray:
        """Return the logits that `decision_function` returns, shape (n, n_explained)."""
        logits = self.answers(values)
        return logits[:, 1:] - logits[:, :1] if logits.shape[1] == 2 else logits

    def response(self, values: FloatArray, output: int) -> FloatArray:
        """Return the probability of a class."""
        return np.asarray(softmax(self.answers(values), axis=1)[:, output])


Task: TypeAlias = Regression | Classification


def score_of(task: Task, rows: Rows, answers: FloatArray, parts: Index) -> tuple[float, float]:
    """Return the score of answers, and its standard error over groups or blocks of the rows.

    Over a few parts, such as blocks of time, the error is that of the jackknife that leaves one
    out: the variance of the targets, the unit of R², hangs on which parts there are.
    """
    if task.scoring is not None:
        return task.scoring.score(rows, answers, parts)
    losses = task.losses(rows, answers)
    score, error = grouped_ratio(*losses, rows.mass, parts, is_share=task.is_share)
    numbers = np.unique(parts)
    if not 2 < len(numbers) <= _FEW_PARTS:
        return score, error
    without = np.empty(len(numbers))
    for k, number in enumerate(numbers):
        others = np.flatnonzero(parts != number)
        kept, subset = answers[others], rows.take(others)
        without[k] = grouped_ratio(*task.losses(subset, kept), subset.mass, parts[others])[0]
    n = len(numbers)
    return score, max(error, float(np.sqrt((n - 1) * without.var())))


def score_name(task: Task) -> str:
    """Return what a sentence calls the score of rows held out."""
    return task.usual_score if task.scoring is None else task.scoring.name
