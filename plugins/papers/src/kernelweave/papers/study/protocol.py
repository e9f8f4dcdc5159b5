"""What is measured: folds, training rows and scores, the same for every method."""

from __future__ import annotations

import math
import time

import numpy as np

from ..data import folds
from ..measuring import CLASSES
from .rivals import predictions, warm
from .sets import SetSource, samples

N_FOLDS = 5
SIZES = (300, 1000)
QUICK_ROWS = 60
_MOST_TESTED = 2000


def rows_trained(source: SetSource, rows: int) -> int:
    """Return how many rows train where so many are asked for."""
    return min(rows, math.floor(source.n_rows * (1.0 - 1.0 / N_FOLDS)))


def measure(
    where: str, task: str, method: str, fold: int, rows: int, quick: bool
) -> dict[str, float]:
    """Train a method on rows outside a fold, at most ``rows``, and test it on the fold's.

    Returns the score in per cent, accuracy or the coefficient of determination R² (0 where it
    is less), and the CPU seconds of tuning, fitting and predicting.
    """
    from sklearn.metrics import accuracy_score, r2_score

    X, y = samples(where)
    classes = task == CLASSES
    train, test = list(folds(N_FOLDS, 0, classes=classes).split(X, y))[fold]
    state = np.random.RandomState(fold)
    train = state.permutation(train)[:rows]
    test = state.permutation(test)[: 200 if quick else _MOST_TESTED]
    warm(method)
    start = time.process_time()
    predicted = predictions(method, task, X[train], y[train], X[test], quick=quick)
    seconds = time.process_time() - start
    score = accuracy_score if classes else r2_score
    return {"score": max(0.0, 100.0 * float(score(y[test], predicted))), "seconds": seconds}
