"""Thousands of rows to a million: what a kernel chosen by the evidence costs, and what it buys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from numpy.typing import ArrayLike

from ..data import Samples, folds, notes, split
from ..measuring import CLASSES, peak_of, score_of, timed, within
from ..plan import Plan, Request, Results, Sheet, Value, cell
from .methods import EXTRA, OURS, predictions, reason_not_run, warm
from .sets import SETS, SetSource, address, samples

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


_NAMES = ("abalone, rings", "CCPP", "California", "gas turbine", "spambase", "shill bidding")
_GROWING = (10**4, 10**5, 10**6)
_FRIEDMAN = "Friedman 1, rows "
_PLAIN = ("linear", "Nystroem + ridge")
_METHODS = (OURS, "HistGB", "CatBoost", "xRFM", *_PLAIN)
# CPU seconds for 10,000 rows
_SECONDS = {
    OURS: 15.0, "HistGB": 2.0, "CatBoost": 1.5, "xRFM": 350.0, "linear": 0.1,
    "Nystroem + ridge": 3.0,
}  # fmt: skip
_N_SPLITS = 3
# with the digits that are printed
_FIGURES = {"score": 2, "seconds": 1, "memory": 0}
_MOST_TESTED, _TUNED = 20_000, 4_000
_NOTES = notes(
    "study.large", n_splits=_N_SPLITS, most_tested=_MOST_TESTED, tuned=_TUNED, extra=EXTRA
)


def measure(where: str, task: str, method: str, n_rows: int, seed: int) -> dict[str, float]:
    """Return score in per cent, CPU seconds and MiB of a method on one random split."""
    X, y = _samples(where, n_rows, seed)
    n_test = len(X) // 5
    classes = task == CLASSES
    X, X_test, y, y_test = split(X, y, len(X) - n_test, n_test, seed, classes=classes)
    X_test, y_test = X_test[:_MOST_TESTED], y_test[:_MOST_TESTED]

    def run() -> Any:
        if method not in _PLAIN:
            return predictions(method, task, X, y, X_test, quick=False)
        make = _linear if method == "linear" else _nystroem
        return make(X, y, seed, classes=classes).fit(X, y).predict(X_test)

    warm(method)
    (predicted, seconds), peak = peak_of(lambda: timed(run))
    return {
        "score": 100.0 * score_of(y_test, predicted, classes=classes),
        "seconds": seconds,
        "memory": peak / 2**20,
    }


def _samples(where: str, n_rows: int, seed: int) -> Samples:
    if where != _FRIEDMAN:
        X, y = samples(where)
        return X[:n_rows], y[:n_rows]
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(n_rows, noise=1.0, random_state=seed)
    return X, y


def _linear(X: FloatArray, y: ArrayLike, seed: int, *, classes: bool) -> BaseEstimator:
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression() if classes else RidgeCV())


def _nystroem(X: FloatArray, y: RealArray, seed: int, *, classes: bool) -> BaseEstimator:
    """Return landmarks and ridge, with γ and α chosen on a part of the rows."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    last = RidgeClassifier() if classes else Ridge()
    few, many = (Nystroem(n_components=n, random_state=seed) for n in (300, 1000))
    grid = {
        "nystroem__gamma": [0.1 / X.shape[1], 0.3 / X.shape[1], 1.0 / X.shape[1]],
        f"{type(last).__name__.lower()}__alpha": [1e-3, 1e-2, 1e-1, 1.0],
    }
    part = np.random.RandomState(seed).permutation(len(X))[:_TUNED]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), few, last), grid, cv=folds(3, seed, classes=classes),
        refit=False,
    ).fit(X[part], y[part])  # fmt: skip
    return make_pipeline(StandardScaler(), many, last).set_params(**search.best_params_)


def large(request: Request) -> Plan:
    """Plan the table: a cell per set, method and random split."""
    limit = request.sample_limit
    sources = {name: SETS[name] for name in (() if request.quick else _NAMES)}
    growing = [limit or 0] if request.quick else _GROWING
    made = SetSource(_FRIEDMAN, "regression", 0, 10, 0, had_a_say=True)._replace
    sources |= {f"{_FRIEDMAN}{n:,}": made(n_rows=n) for n in growing if not limit or n <= limit}
    n_splits = 1 if request.quick else min(request.repeats or _N_SPLITS, _N_SPLITS)
    reduced = limit is not None or n_splits < _N_SPLITS
    cells = [
        cell(
            *(f"{name}/{method}/{seed}", _SECONDS[method] * n_rows / 1e4, reduced, measure),
            *(address(source, request), source.task, method, n_rows, seed),
        )
        for seed in range(n_splits)
        for name, source in sources.items()
        for n_rows in [min(source.n_rows, limit or source.n_rows)]
        for method in _METHODS
        if method in _PLAIN or not reason_not_run(method, source)
    ]
    return Plan(cells, lambda results: [_sheet(results, sources)])


def _sheet(results: Results, sources: Mapping[str, SetSource]) -> Sheet:
    rows: list[list[Value]] = []
    for name, source in sources.items():
        by_method = {method: list(within(results, name, method).values()) for method in _METHODS}
        row: list[Value] = [name, source.n_rows, "accuracy" if source.n_classes else "R²"]
        for figure, digits in _FIGURES.items():
            for method, each in by_method.items():
                lost = None if method in _PLAIN else reason_not_run(method, source) or None
                middle = float(np.median([one[figure] for one in each])) if each else None
                row.append(lost if middle is None else f"{middle:.{digits}f}")
        rows.append(row)
    heads = [f"{method}{unit}" for unit in ("", ", s", ", MiB") for method in _METHODS]
    title = "Scores, CPU seconds and memory by the number of rows"
    return Sheet(title, ("data", "rows", "score", *heads), rows, _NOTES)
