"""Metrics of predictions that are at hand: scikit-learn's scorers, and of a rare class."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index, Labels
from kernelweave.tables.errors import did_you_mean, one_line
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from ..errors import CommandError
from .held_out import HeldOut
from .scores import FEWEST_PARTS, Score, lead, mean_interval

if TYPE_CHECKING:
    from sklearn.utils import Tags

# Bootstrap draws of the rows: 200 give a standard error to about 5 %.
_DRAWS = 200
# More rows tell their error by fewer draws: each takes as long as the metric itself.
_MANY = 20_000
# rows or groups that are answered wrongly in turn, where a score is perfect
_FEW = 50
# folds whose leads have an interval: Student's quantile of one degree of freedom is 12.7
_FOLDS = 3
# scorers without a best value
_UNLIMITED = ("positive_likelihood_ratio", "mutual_info_score")
# Of two classes, one that is rarer is what people look for, and accuracy hardly shows it.
RARE = 0.2


class Metric:
    """What models are judged by: a scorer of scikit-learn; greater is better.

    Without a name R² or accuracy, whose standard errors have a closed form; those of others are
    the spread over draws of the rows.

    `name`: of a scorer, such as ``"roc_auc"`` or ``"neg_mean_absolute_error"``; ``None`` for R² or
    accuracy. Raises CommandError if there is none of that name.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.workbench.scoring.held_out import HeldOut
    >>> from kernelweave.workbench.scoring.metrics import Metric
    >>> truth, predicted = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0])
    >>> rows = HeldOut(np.arange(3), np.arange(3), truth, predicted, np.ones(3), "regression")
    >>> round(Metric("neg_mean_absolute_error").value(rows), 3)
    -0.333
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        # values of draws, by the identity of what was drawn from, which is kept with them
        self._known: dict[int, tuple[HeldOut, FloatArray]] = {}
        if name is not None:
            self._scorer  # noqa: B018

    @cached_property
    def _scorer(self) -> Callable[..., float]:
        from sklearn.metrics import get_scorer, get_scorer_names

        assert self.name is not None
        names = get_scorer_names()
        if self.name not in names:
            hint = did_you_mean(self.name, names, what="metrics")
            raise CommandError(f"--metric {self.name}: scikit-learn has no such scorer; {hint}")
        scorer: Callable[..., float] = get_scorer(self.name)
        return scorer

    def value(self, rows: HeldOut) -> float:
        """Return the metric of predictions. Raises ValueError where they do not suit it."""
        if self.name is None:
            return rows.score.value
        at = np.flatnonzero(rows.weight > 0.0)
        weight = rows.weight[at]
        shown = _Shown(rows)
        given = {} if np.ptp(weight) == 0.0 else {"sample_weight": weight}
        try:
            value = float(self._scorer(shown, at, rows.truth[at], **given))
        except AttributeError as error:
            raise ValueError(f"{self.name} needs probabilities") from error
        # the shares of a class differ from fold to fold, which ranks folds, not rows
        return 0.5 if self._is_area and math.isfinite(value) and rows.ranks_nothing else value

    @property
    def _is_area(self) -> bool:
        return self.name is not None and self.name.startswith(SHORT["AUC"])

    def score(self, rows: HeldOut) -> Score:
        """Return the metric with its standard error over the rows."""
        if self.name is None:
            return rows.score
        value, error = self.value(rows), _spread(self._draws(rows))
        return Score(value, error or self._error_of_perfect(rows, value))

    def interval(
        self,
        score: Score,
        task: str,
        n_parts: int,
        held_out: float = 0.0,
        *,
        half_known: bool = False,
    ) -> tuple[float, float]:
        """Return `Score.interval`, within what the metric can be.

        `half_known`: whether some targets are, so that the score is a concordance.
        """
        name = self.name or ""
        # fewer parts tell no interval, not even one from 0 to 1
        least = 0.0 if half_known and n_parts >= FEWEST_PARTS else -math.inf
        best = math.inf if name in _UNLIMITED else 0.0 if name.startswith("neg_") else 1.0
        if task == "classification" and not name.startswith(("neg_", "d2_", "matthews")):
            least = 0.0
        is_share = task == "classification" and name in ("", "accuracy")
        return score.interval(n_parts, held_out=held_out, best=best, least=least, is_share=is_share)

    def _error_of_perfect(self, rows: HeldOut, value: float) -> float:
        """Return half of what three wrong rows, or groups, cost where draws do not differ.

        What n rows never show is rarer than 3 / n, in 95 of 100 samples.
        """
        wrong, names = rows.answered_wrongly, rows.rows if rows.groups is None else rows.groups
        parts = np.unique(names)
        changed = [
            value - self.value(rows.mixed_with(wrong, names == each))
            for each in parts[:: -(-len(parts) // _FEW)]
        ]
        return 1.5 * max(0.0, float(np.mean(changed)))

    def lead(self, first: HeldOut, other: HeldOut) -> Score:
        """Return how much better the first predictions are than others of the same rows."""
        if self.name is None:
            answers = first.known, first.predicted, other.predicted
            return lead(*answers, first.weight, first.task, first.groups)

        both = replace(other, weight=first.weight)
        ahead = self.value(first) - self.value(both)
        return Score(ahead, _spread(self._draws(first) - self._draws(other, first)))

    def lead_over_folds(self, first: HeldOut, other: HeldOut) -> tuple[float, float] | None:
        """Return the interval of a lead over folds; ``None`` where they do not tell it.

        The corrected resampled t interval of Nadeau and Bengio 2003 around the lead on all rows. Of
        two folds, such as those that judge above 2,000 rows, it would be 12.7 standard errors on
        either side, however many rows there are: they do not tell how fits vary.
        """
        n_folds = int(first.fold.max()) + 1
        if first.groups is not None:
            # a few groups or later rows have a mean of their own; errors are over groups already
            return None
        try:
            by_fold = [self._lead_of_part(first, other, first.fold == k) for k in range(n_folds)]
        except ValueError:
            # such as a fold without one of the classes
            return None
        if n_folds < _FOLDS or not np.isfinite(by_fold).all():
            return None
        around = mean_interval(by_fold, 1.0 / (n_folds - 1))
        middle, half = self._lead_of_part(first, other, first.fold >= 0), around.high - around.mean
        return middle - half, middle + half

    def _lead_of_part(self, first: HeldOut, other: HeldOut, part: NDArray[np.bool_]) -> float:
        return self.value(first.part(part)) - self.value(other.part(part))

    def _draws(self, rows: HeldOut, first: HeldOut | None = None) -> FloatArray:
        """Return the metric on draws of the rows, or groups: NaN where a draw has no value.

        Those of one table are the same for all predictions, so that differences are paired.

        `first`: whose weights and groups count, where not those of the rows.
        """
        from sklearn import config_context

        of = rows if first is None else first
        known = self._known.get(id(rows))
        if known is not None and np.array_equal(known[0].weight, of.weight):
            return known[1]
        state, scores = np.random.RandomState(0), []
        at = np.arange(len(of.truth)) if of.groups is None else of.groups
        at, n = np.unique(at, return_inverse=True)[1], len(np.unique(at))
        n_draws = _DRAWS if n <= _MANY else _DRAWS // 4
        if self._is_area and rows.ranks_nothing:
            return np.full(n_draws, 0.5)
        # each draw has the columns of the first call, which was checked
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for _ in range(n_draws):
                counts = np.bincount(state.randint(n, size=n), minlength=n)[at]
                try:
                    scores.append(self.value(replace(rows, weight=of.weight * counts)))
                except ValueError:
                    scores.append(math.nan)
        self._known[id(rows)] = rows, np.array(scores)
        return self._known[id(rows)][1]


def _spread(draws: FloatArray) -> float:
    """Return the standard deviation of the draws that have a value, NaN of fewer than two."""
    found = draws[~np.isnan(draws)]
    return float(np.std(found, ddof=1)) if len(found) > 1 else math.nan


class _Shown(BaseEstimator):  # type: ignore[misc]
    """Predictions as a fitted estimator whose rows are their positions.

    `rows`: the predictions.
    """

    def __init__(self, rows: HeldOut) -> None:
        self.rows = rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self.rows.task == "classification" else "regressor"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Labels:
        """Labels in the order of probabilities."""
        return self.rows.classes

    def predict(self, at: Index) -> Labels:
        """Return labels or numbers."""
        return self.rows.predicted[at]

    @available_if(lambda self: self.rows.proba is not None)
    def predict_proba(self, at: Index) -> FloatArray:
        """Return probabilities that sum to one to the last digit, as metrics ask."""
        assert self.rows.proba is not None
        proba = self.rows.proba[at]
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))

    @available_if(lambda self: self.rows.proba is None and self.rows.decision is not None)
    def decision_function(self, at: Index) -> FloatArray:
        """Return decision values: of two classes those of the second."""
        assert self.rows.decision is not None
        decision = self.rows.decision[at]
        return decision[:, 1] if decision.shape[1] == 2 else decision


def check_metric(name: str | None, y: Labels, task: str) -> Metric:
    """Return a metric, tried on guesses at the targets.

    Raises CommandError if scikit-learn has no scorer of that name, or it is not for such targets.
    """
    metric = Metric(name)
    refused = None if name is None else _refusal(metric, y, task)
    if refused is not None:
        from sklearn.metrics import get_scorer, get_scorer_names

        # of few rows, as each of some fifty is tried; those of clusters are for neither task
        few = np.unique(y)[:_DRAWS]
        modules = {each: get_scorer(each)._score_func.__module__ for each in get_scorer_names()}
        candidates = [each for each, module in modules.items() if "cluster" not in module]
        suitable = [each for each in candidates if _refusal(Metric(each), few, task) is None]
        what = task if task == "regression" else f"{task}, {len(np.unique(y))} classes"
        # numbers, labels and probabilities are shown, so that a scorer misses none of these
        reason = "" if isinstance(refused.__cause__, AttributeError) else f": {one_line(refused)}"
        hint = did_you_mean(str(name), suitable, what="metrics that suit it")
        if f"{name}_macro" in suitable:
            hint = f"{name}_macro suits classes of any name and number"
        text = f"--metric {name} does not suit this target ({what}){reason}; {hint}"
        raise CommandError(text) from refused
    return metric


def _refusal(metric: Metric, y: Labels, task: str) -> Exception | None:
    """Return why a metric has no value for guesses at the targets, ``None`` if it has one."""
    n, proba = len(y), None
    if task == "regression":
        # whole numbers would pass for classes
        y = np.pi * np.asarray(y, dtype=np.float64)
    if task == "classification":
        labels, codes = np.unique(y, return_inverse=True)
        if labels.dtype.kind == "U":
            # metrics that refuse a label show it as Python writes it
            y = labels.astype(object)[codes]
        proba = 0.5 * np.eye(len(labels))[codes] + 0.5 / len(labels)
    guess = HeldOut(np.arange(n), np.zeros(n, np.intp), y, y, np.ones(n), task, proba)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            metric.value(guess)
        except (ValueError, TypeError) as error:
            return error
    return None


# scorers by the short names of `also_scored`
SHORT = {
    "RMSE": "neg_root_mean_squared_error",
    "MAE": "neg_mean_absolute_error",
    "log loss": "neg_log_loss",
    "AUC": "roc_auc",
    "balanced": "balanced_accuracy",
}


def also_scored(rows: HeldOut) -> dict[str, float]:
    """Return what people ask for beside R² or accuracy, by name.

    Of numbers the errors in the target's unit; of classes what probabilities and decision values
    are worth, where there are some. Nothing of targets known by half: their errors are not known.
    """
    if rows.ends is not None:
        return {}
    if rows.task == "regression":
        return {title: -Metric(SHORT[title]).value(rows) for title in ("RMSE", "MAE")}
    two = len(rows.classes) == 2
    area = SHORT["AUC"] if two else "roc_auc_ovr"
    scores = {}
    if rows.proba is not None:
        scores["log loss"] = _or_nothing(Metric(SHORT["log loss"]), rows, -1.0)
    if rows.proba is not None or (two and rows.decision is not None):
        scores["AUC"] = _or_nothing(Metric(area), rows)
    scores["balanced"] = _or_nothing(Metric(SHORT["balanced"]), rows)
    return {name: value for name, value in scores.items() if value is not None}


def _or_nothing(metric: Metric, rows: HeldOut, sign: float = 1.0) -> float | None:
    """Return a metric; ``None`` where the rows have too few classes for it."""
    try:
        with warnings.catch_warnings():
            # of rows of one class, which a test file may have
            warnings.simplefilter("ignore", UserWarning)
            value = sign * metric.value(rows)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def has_rare_class(counts: Mapping[object, float]) -> bool:
    """Whether one of two classes has a fifth of the rows, or of their weight, or less."""
    return len(counts) == 2 and min(counts.values()) <= RARE * sum(counts.values())


@dataclass(frozen=True)
class Ranking:
    """How a model tells the rarer of two classes from the other.

    - `label`: of the rarer class
    - `n_rows`, `n_found`, `n_wrong`: its rows, how many of them are predicted so, and how many
      others are
    - `share`: of the rarer class among all rows
    - `area`: under the ROC curve of its probabilities
    - `informs`: whether they rank rows better than chance, by the test of Mann and Whitney
    """

    label: str
    n_rows: int
    n_found: int
    n_wrong: int
    share: float
    area: float
    informs: bool

    @property
    def is_rare(self) -> bool:
        """Whether accuracy is mostly that of the other class."""
        return self.share <= RARE

    def __str__(self) -> str:
        return (
            f"The model finds {self.n_found} of the {self.n_rows} rows of {self.label!r}, with "
            f"{self.n_wrong} false positives. The area under the ROC curve is {self.area:.3f} "
            "(chance: 0.5)."
        )


def ranking_of(held_out: HeldOut) -> Ranking | None:
    """Return how well scores separate the rarer of two classes from the other.

    ``None`` for other tasks, and where there are no probabilities.
    """
    from scipy.stats import mannwhitneyu
    from sklearn.metrics import roc_auc_score

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
    taken, proba = held_out.predicted == labels[rare], held_out.proba[:, rare]
    above = mannwhitneyu(proba[is_it], proba[others], alternative="greater")
    return Ranking(
        label=str(labels[rare]),
        n_rows=int(is_it.sum()),
        n_found=int((is_it & taken).sum()),
        n_wrong=int((others & taken).sum()),
        share=float(shares[rare]),
        area=float(roc_auc_score(is_it, proba, sample_weight=held_out.weight)),
        informs=bool(above.pvalue < 0.025),
    )
