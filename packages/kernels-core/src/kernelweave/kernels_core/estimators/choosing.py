"""Parameters of which a fit may be given several, to choose among by cross-validation."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import FloatArray, Index, RealArray
from ..checks import Rule, check_sample_weight

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

# scikit-learn's ``cv``
Folds: TypeAlias = "int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None"
# what `one_or_several` allows
OneOrSeveral: TypeAlias = "float | Sequence[float] | NDArray[np.number] | str"

T = TypeVar("T", bound=float)

CHOICES = ("one-standard-error", "best")


def one_or_several(rule: Rule) -> Rule:
    """Return the rule for a number, several to choose among, or ``"cv"``.

    `rule`: of each number. A wrong number is refused in the words of ``rule``.
    """

    def is_several(value: Any) -> bool:
        if isinstance(value, str):
            return value == "cv"
        several = isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1
        return several and len(value) > 0 and all(rule.holds(each) for each in value)

    return Rule(
        f"{rule.words}, a list of such, or 'cv'",
        lambda value: is_several(value) or (np.ndim(value) == 0 and not isinstance(value, str)),
        then=_of_each(rule),
    )


def _of_each(rule: Rule) -> Rule:
    """Return the rule, and what follows it, for a number or each of several."""

    def holds(value: object) -> bool:
        several = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        return value == "cv" if isinstance(value, str) else all(map(rule.holds, several))

    return Rule(rule.words, holds, then=None if rule.then is None else _of_each(rule.then))


def candidates(
    given: T | str | list[T] | tuple[T, ...] | NDArray[np.number], usual: Sequence[T]
) -> list[T]:
    """Return the values of a parameter, ascending: one, those of a list, or ``usual`` of "cv".

    Parameters
    ----------
    given : number, sequence of number, or "cv"
        The parameter.
    usual : sequence of number
        What ``"cv"`` means.

    Returns
    -------
    list of number
        One or more.
    """
    if isinstance(given, str):
        return list(usual)
    return sorted(set(given)) if isinstance(given, (list, tuple, np.ndarray)) else [given]


def folds_of(
    cv: Folds, y: RealArray, weight: FloatArray, *, classifier: bool
) -> list[tuple[Index, Index]]:
    """Return the training and the held-out samples of each fold, as places among those that count.

    - `cv`: as in scikit-learn. A number divides the samples that count; a splitter, or a list of
      splits, speaks of all of them, and those of weight 0 are left out of its folds.
    - `y` of shape (n_samples,) or (n_samples, n_outputs): numbers or codes of classes
    - `weight` of shape (n_samples,): weights, of which some may be 0

    Raises ValueError where there is no fold, or one would train on nothing or hold nothing out; of
    regression, where it would hold out a single sample, of which there is no R².
    """
    from sklearn.model_selection import check_cv

    check_sample_weight(weight, len(weight))
    counts = weight > 0
    if cv is None or isinstance(cv, numbers.Integral):
        y, counts = y[counts], np.ones(np.count_nonzero(counts), dtype=bool)
    place, every = np.cumsum(counts) - 1, np.arange(len(y))
    folds: list[tuple[Index, Index]] = []
    least = 1 if classifier else 2
    for split in check_cv(cv, y, classifier=classifier).split(y, y):
        train, test = (place[rows[counts[rows]]] for rows in (every[part] for part in split))
        if len(train) < 1 or len(test) < least:
            part = f"{len(test) or 'none'} held out" if len(train) else "none for training"
            raise ValueError(
                "cv must leave samples of positive weight in both parts of each fold, and hold out "
                f"{least} or more, got fold {len(folds) + 1} with {part}"
            )
        folds.append((train, test))
    if not folds:
        raise ValueError("cv must give one split or more, got none: an iterator can be used once")
    return folds


def standard_errors(scores: FloatArray) -> FloatArray:
    """Return the standard error of the mean score of each setting over the folds.

    `scores` of shape (n_settings, n_folds). Returns shape (n_settings,): 0 where there is one fold.
    """
    n_folds = scores.shape[1]
    if n_folds == 1:
        return np.zeros(len(scores))
    errors: FloatArray = scores.std(axis=1, ddof=1) / np.sqrt(n_folds)
    return errors


def first_near_best(scores: FloatArray, order: Sequence[int]) -> int:
    """Return the first setting whose mean is within one standard error of the best mean.

    - `scores` of shape (n_settings, n_folds): higher is better
    - `order`: places of the settings, the simplest first
    """
    means = scores.mean(axis=1)
    best = int(np.argmax(means))
    least = means[best] - standard_errors(scores)[best]
    return next((i for i in order if means[i] >= least), best)
