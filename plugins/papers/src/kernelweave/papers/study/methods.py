"""The methods that are compared, each with the settings that a careful user would give it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels

from ..data import folds
from ..measuring import CLASSES, Method, class_of, score_of
from ..tessellated.methods import fit_tuned
from .sets import SetSource, samples

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from xrfm import xRFM


OURS = "evidence"
EXTRA = "kernelweave-papers[others]"

N_FOLDS = 5
SIZES = (300, 1000)
QUICK_ROWS = 60
_MOST_TESTED = 2000


_SHORT = ("SimpleMKL", "TKL")  # that are run on few columns and two classes only
_MOST_COLUMNS = 1000
_FEW_COLUMNS = 24
_N_FOLDS = 3


def reason_not_run(name: str, source: SetSource) -> str:
    """Return in words why a method is not run on a set, empty where it is."""
    method = METHODS[name]
    if not method.is_installed:
        return "not installed"
    if source.n_columns > (_FEW_COLUMNS if name in _SHORT else _MOST_COLUMNS):
        return "many columns"
    if source.n_classes > 2 and name in _SHORT:
        return "two classes only"
    return ""


def predictions(
    name: str, task: str, X: FloatArray, y: FloatArray, X_test: FloatArray, *, quick: bool
) -> Any:
    """Tune and fit a method to the training rows and return what it predicts for others."""
    return METHODS[name].run(X, y, X_test, classes=task == CLASSES, quick=quick)


@cache
def warm(name: str) -> None:
    """Let a method of ours compile or load its code before it is timed."""
    if name not in {OURS, "TKL", "SimpleMKL"}:
        return
    X = np.random.RandomState(0).standard_normal((60, 3))
    for task, y in ((CLASSES, np.sign(X[:, 0])), ("regression", X[:, 0])):
        predictions(name, task, X, y, X, quick=True)


def _tuned(
    name: str, X: FloatArray, y: FloatArray, X_test: FloatArray, *, classes: bool, quick: bool
) -> Any:
    task = CLASSES if classes else "regression"
    model, _ = fit_tuned(*(name, task, X, y, 0), quick=quick, per_feature=False, n_folds=_N_FOLDS)
    return model.predict(X_test)


def _fitted(
    maker: Callable[..., Any],
    X: FloatArray,
    y: FloatArray,
    X_test: FloatArray,
    *,
    classes: bool,
    quick: bool,
) -> Labels:
    model = maker(X.shape[1], classes=classes, quick=quick)
    if not classes:
        return np.ravel(model.fit(X, y).predict(X_test))
    # numbers as labels come back from interpret as words
    labels, codes = np.unique(y, return_inverse=True)
    return labels[np.ravel(model.fit(X, codes).predict(X_test)).astype(np.intp)]


def _evidence(n_columns: int, *, classes: bool, quick: bool) -> BaseEstimator:
    return class_of("kernelweave.evidence", "EvidenceKernel", classes=classes)()


def _boosted(n_columns: int, *, classes: bool, quick: bool) -> BaseEstimator:
    from sklearn.model_selection import GridSearchCV

    boosting = class_of("sklearn.ensemble", "HistGradientBoosting", classes=classes)
    trees = boosting(random_state=0, early_stopping=False)
    numbers = [30] if quick else [30, 100, 300]
    return GridSearchCV(trees, {"max_iter": numbers}, cv=folds(_N_FOLDS, 0, classes=classes))


def _catboost(n_columns: int, *, classes: bool, quick: bool) -> BaseEstimator:
    kind = class_of("catboost", "CatBoost", classes=classes)
    limits = {"iterations": 100} if quick else {}
    return kind(verbose=False, allow_writing_files=False, thread_count=1, random_seed=0, **limits)


def _process(n_columns: int, *, classes: bool, quick: bool) -> BaseEstimator:
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF(np.full(n_columns, np.sqrt(n_columns)))
    if classes:
        process = GaussianProcessClassifier(kernel, random_state=0)
    else:
        kernel += WhiteKernel(0.1, (1e-6, 1e2))
        process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return make_pipeline(StandardScaler(), process)


def _additive(n_columns: int, *, classes: bool, quick: bool) -> BaseEstimator:
    boosting = class_of("interpret.glassbox", "ExplainableBoosting", classes=classes)
    return boosting(n_jobs=1, random_state=0, outer_bags=1 if quick else 4)


def _recursive(
    X: FloatArray, y: FloatArray, X_test: FloatArray, *, classes: bool, quick: bool
) -> Labels:
    """Fit recursive feature machines, one a setting; a held-out fifth chooses and stops them."""
    from sklearn.model_selection import ParameterGrid, train_test_split
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    labels, codes = np.unique(y, return_inverse=True) if classes else (np.empty(0), y)
    offset, unit = (0, 1) if classes else (float(np.mean(y)), float(np.std(y)) or 1.0)
    targets = codes.astype(np.int64) if classes else ((codes - offset) / unit).astype(np.float32)
    parts = train_test_split(
        *(scaler.transform(X).astype(np.float32), targets), test_size=0.2, random_state=0,
        stratify=codes if classes else None,
    )  # fmt: skip
    grid = {
        "bandwidth": [10.0] if quick else [2.5, 5.0, 10.0],
        "reg": [1e-2] if quick else [1e-3, 1e-2, 1e-1],
        "diag": [True] if quick else [False, True],
    }
    machines = [_machine(parts, classes=classes, **one) for one in ParameterGrid(grid)]
    best = max(machines, key=lambda each: each[0])[1]
    predicted = best.predict(scaler.transform(X_test).astype(np.float32))
    return labels[np.ravel(predicted)] if classes else np.ravel(predicted) * unit + offset


def _machine(
    parts: Sequence[Labels], *, classes: bool, bandwidth: float, reg: float, diag: bool
) -> tuple[float, xRFM]:
    """Return the score on the held-out fifth, and the model."""
    from xrfm import xRFM

    X, X_out, y, y_out = parts
    kernel = {"kernel": "l2", "exponent": 1.0, "bandwidth": bandwidth, "diag": diag}
    fit = {"reg": reg, "iters": 5, "verbose": False, "early_stop_rfm": True}
    machine = xRFM(
        rfm_params={"model": kernel | {"bandwidth_mode": "constant"}, "fit": fit},
        tuning_metric="accuracy" if classes else "mse",
        device="cpu",
        random_state=0,
        n_threads=1,
        verbose=False,
    )
    machine.fit(X, y, X_out, y_out)
    return score_of(y_out, np.ravel(machine.predict(X_out)), classes=classes), machine


# at 300 rows
METHODS = {
    OURS: Method("kernelweave.evidence", 4.0, partial(_fitted, _evidence)),
    "RBF-SVM": Method("sklearn", 1.0, partial(_tuned, "RBF-SVM")),
    "HistGB": Method("sklearn", 2.0, partial(_fitted, _boosted)),
    "CatBoost": Method("catboost", 2.0, partial(_fitted, _catboost)),
    "GP": Method("sklearn", 6.0, partial(_fitted, _process)),
    "xRFM": Method("xrfm", 6.0, _recursive),
    "SimpleMKL": Method("kernelweave.baselines", 8.0, partial(_tuned, "SimpleMKL")),
    "TKL": Method("kernelweave.spectahedron", 5.0, partial(_tuned, "TKL")),
    "EBM": Method("interpret", 25.0, partial(_fitted, _additive)),
}


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
    score = score_of(y[test], predicted, classes=classes)
    return {"score": max(0.0, 100.0 * score), "seconds": seconds}
