"""The paper's first question: does Algorithm 1 predict better than the baselines, tuned alike?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..data import folds, notes
from ..engine.verdicts import lead
from ..measuring import mean, spread, within
from ..plan import PAPER, Cell, Plan, Request, Results, Sheet, Value
from .sets import SETS, read, report, set_cell, theirs

if TYPE_CHECKING:
    from kernelweave.kernels_core import KernelDictionary
    from sklearn.base import BaseEstimator

ALGORITHM_1, OPTIMUM, GAUSSIAN = "Algorithm 1", "proved optimum", "Gaussian SVM"
# those that the paper has
BASELINES = ("EasyMKL", "AverageMKL", "CKA")
METHODS = (*BASELINES, "SimpleMKL", GAUSSIAN, ALGORITHM_1, OPTIMUM)
# what it prints, by the number of kernels that we take for its ten and fifty
_PRINTED = {8: 2, 50: 8}
_C = [1.0, 10.0, 100.0]
_SPARSE: dict[str, list[float]] = {"lam": [0.01, 1.0, 100.0], "k0": [1, 2, 4]}
_N_FOLDS = _N_SPLITS = 3
# seconds of a cell of 1000 rows with eight kernels, measured on one core
_SECONDS = {
    "EasyMKL": 15.0,
    "AverageMKL": 5.0,
    "CKA": 6.0,
    "SimpleMKL": 25.0,
    GAUSSIAN: 4.0,
    ALGORITHM_1: 60.0,
    OPTIMUM: 90.0,
}
_BEST = "best baseline of the set"
_NOTES = notes("sparse.question")
_ON_LEADS = notes("sparse.question leads")


def dictionary(n_kernels: int) -> KernelDictionary:
    """Return the paper's kernels: eight of its ten, or so many of fifty."""
    from kernelweave.kernels_core import KernelDictionary, default_kernels
    from kernelweave.kernels_core.kernels import PAPER_FIFTY

    if n_kernels == 8:
        return default_kernels()
    return KernelDictionary(list(PAPER_FIFTY)[:n_kernels], psd="clip")


def measure(
    path: str,
    columns: list[int] | None,
    limit: int | None,
    method: str,
    n_kernels: int,
    seed: int,
    **_: object,
) -> dict[str, float]:
    """Tune, fit and test one method on one split."""
    from kernelweave.kernels_core import PrecomputedGrams
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV

    parts = read(path, columns, limit, seed)
    with warnings.catch_warnings():
        # what the clipping of sigmoids says, and that Algorithm 1 proves nothing
        warnings.filterwarnings("ignore", ".*set to zero")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, grid = _machine(method, parts.X.shape[1])
        cv = folds(_N_FOLDS, seed, classes=True)
        if method == GAUSSIAN:
            search = GridSearchCV(model, grid, cv=cv).fit(parts.X, parts.y)
            return {"accuracy": 100.0 * float(search.score(parts.X_test, parts.y_test))}
        fitted = dictionary(n_kernels).fit_grams(parts.X)
        cross = fitted.cross(parts.X_test)
        search = GridSearchCV(model, grid, cv=cv, refit=False)
        search.fit(PrecomputedGrams(fitted.grams), parts.y)
        model.set_params(**search.best_params_)
        return report(model, fitted.grams, parts.y, cross, parts.y_test)


def _machine(method: str, n_columns: int) -> tuple[BaseEstimator, dict[str, list[float]]]:
    """Return a method, not fitted, and what its folds choose from."""
    from kernelweave import baselines
    from kernelweave.mkl_sparse import SparseMKLClassifier
    from sklearn.svm import SVC

    if method == GAUSSIAN:
        return SVC(), {"C": _C, "gamma": [scale / n_columns for scale in (1 / 3, 1.0, 3.0)]}
    if method in (ALGORITHM_1, OPTIMUM):
        model = SparseMKLClassifier("precomputed", random_state=0, algorithm="smkl-global")
        if method == ALGORITHM_1:
            model.set_params(algorithm="smkl-best-response", init="random")
        return model, {"C": _C, **_SPARSE}
    model = getattr(baselines, f"{method}Classifier")("precomputed", tol=1e-3)
    return model, {"C": _C} | ({"lam": [0.01, 0.1, 0.5]} if method == "EasyMKL" else {})


def cells_of(request: Request, methods: Iterable[str], n_kernels: int, n_splits: int) -> list[Cell]:
    """Return a cell for each set, method and split; the first split is the authors'."""
    return [
        set_cell(
            *(request, name, f"{method}/{seed}", measure, n_kernels / 8 * _SECONDS[method]),
            method=method,
            n_kernels=n_kernels,
            seed=seed,
        )
        for seed in range(n_splits)
        for name in SETS
        for method in methods
    ]


def table(request: Request, n_kernels: int) -> Plan:
    """Plan the comparison with eight or fifty kernels."""
    n_splits = 1 if request.quick else request.repeats or _N_SPLITS
    cells = cells_of(request, METHODS, n_kernels, n_splits)
    most = f"at most {request.sample_limit}" if request.sample_limit else "all"
    made_of = f"Splits of each set: {n_splits}; training rows: {most}."
    remarks = (*notes(f"sparse.question {n_kernels}"), made_of, *_NOTES)
    return Plan(cells, partial(_present, n_kernels, remarks))


def _present(n_kernels: int, notes: tuple[str, ...], results: Results) -> list[Sheet]:
    means: dict[str, dict[str, float]] = {}
    rows: list[list[Value]] = []
    for name in SETS:
        accuracies = {
            method: [each["accuracy"] for each in within(results, name, method).values()]
            for method in METHODS
        }
        means_of = (mean(accuracies[method]) for method in METHODS)
        rows.append([name, *means_of, spread(accuracies[ALGORITHM_1])])
        if all(accuracies.values()):
            means[name] = {method: float(np.mean(accuracies[method])) for method in METHODS}
            means[name][_BEST] = max(means[name][method] for method in BASELINES)
    heads = ("data", *METHODS, "± of Algorithm 1")
    title = f"Test accuracy (%) with {n_kernels} kernels, tuned alike"
    leads = Sheet(
        f"Leads with {n_kernels} kernels, and what they say",
        ("first", "second", "lead", "from", "to", f"lead {PAPER}", "verdict"),
        _leads(n_kernels, list(means.values())),
        _ON_LEADS,
    )
    return [Sheet(title, heads, rows, notes), leads]


def _leads(n_kernels: int, means: list[dict[str, float]]) -> list[list[Value]]:
    pairs = [(ALGORITHM_1, second) for second in (_BEST, *METHODS) if second != ALGORITHM_1]
    pairs += [(OPTIMUM, second) for second in (_BEST, *METHODS) if second not in pairs[-1]]
    rows: list[list[Value]] = []
    for first, second in pairs:
        printed = lead_in_the_paper(n_kernels, second) if first == ALGORITHM_1 else None
        rows.append(lead(first, second, (each[first] - each[second] for each in means), printed))
    return rows


def lead_in_the_paper(n_kernels: int, second: str) -> float | None:
    """Return the mean lead of Algorithm 1 that the paper's figures have, where it has both."""
    figures = theirs(_PRINTED[n_kernels])
    names = BASELINES if second == _BEST else (second,)
    if not set(names) <= set(figures):
        return None
    leads = []
    for name in SETS:
        others = [figures[each][name] for each in names if name in figures[each]]
        if others:
            leads.append(float(str(figures[ALGORITHM_1][name])) - max(map(float, map(str, others))))
    return mean(leads)
