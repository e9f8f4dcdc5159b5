"""The baselines on the ten data sets of the sparse multiple kernel learning paper."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import PrecomputedGrams, default_kernels

from ..plan import Cell, Plan, Request, Sheet, Value

FloatArray = npt.NDArray[np.float64]

METHODS = ("AverageMKL", "EasyMKL", "CKA", "PWMK", "SimpleMKL")
_SPLITS = 5
_TRAIN = 0.8
_GRID_C = (1.0, 10.0, 100.0)
_GRID_LAM = (0.01, 0.1, 0.5)
# seconds of a cell in units of (m / 1000)², measured on one core
_SECONDS = {"AverageMKL": 6.0, "EasyMKL": 12.0, "CKA": 8.0, "PWMK": 60.0, "SimpleMKL": 25.0}


class Printed(NamedTuple):
    """A row of the paper's Tables 2, 3 and 4: EasyMKL, AverageMKL, CKA.

    Parameters
    ----------
    file : str
        In the data folder.
    n_train : int
        Training samples.
    accuracy, n_kernels, seconds : tuple of float
        In per cent; weights above 1e-3 in size; on the authors' machine.
    columns : tuple of int or None
        The features that the authors' loader kept; ``None`` for all.
    """

    file: str
    n_train: int
    accuracy: tuple[float, float, float]
    n_kernels: tuple[float, float, float]
    seconds: tuple[float, float, float]
    columns: tuple[int, ...] | None = None


PRINTED = {
    "iris": Printed(
        "iris.csv", 120, (100.0, 100.0, 96.7), (10, 10, 9), (0.030, 0.002, 0.026), (0, 1)
    ),
    "wine": Printed("wine.csv", 142, (97.2, 97.2, 91.7), (4, 10, 7), (0.045, 0.002, 0.029)),
    "breastcancer": Printed(
        "breastcancer_wdbc.csv", 455, (93.0, 92.1, 94.7), (3, 10, 7), (0.244, 0.004, 0.061)
    ),
    "ionosphere": Printed(
        "ionosphere.csv", 280, (73.2, 74.6, 85.9), (3, 10, 6), (0.072, 0.003, 0.036)
    ),
    "spambase": Printed(
        "spambase.csv.gz", 3680, (90.4, 87.6, 81.0), (10, 10, 7), (33.671, 0.631, 8.859)
    ),
    "banknote": Printed(
        "banknote.csv", 1097, (100.0, 100.0, 85.1), (10, 10, 7), (0.337, 0.006, 0.301)
    ),
    "heart": Printed(
        "heart_cleveland.csv", 242, (85.2, 85.2, 86.9), (3, 10, 7), (0.062, 0.003, 0.035)
    ),
    "haberman": Printed("haberman.csv", 244, (61.3, 62.9, 66.1), (8, 10, 8), (0.029, 1.907, 0.033)),
    "mammographic": Printed(
        "mammographic.csv", 768, (80.8, 79.3, 75.1), (7, 10, 7), (0.228, 13.027, 0.125)
    ),
    "parkinsons": Printed(
        "parkinsons.csv", 156, (82.1, 82.1, 74.4), (2, 10, 7), (0.038, 0.002, 0.028)
    ),
}
_PRINTED_ORDER = ("EasyMKL", "AverageMKL", "CKA")
_NOTES = (
    "Ours: 80 % of the rows train, at random, the mean of five splits; features standardised by "
    "the training part; the paper's ten kernels without its two indefinite sigmoids; C from 1, 10, "
    "100 (EasyMKL: λ from .01, .1, .5 too) by three folds; seconds are those of the last fit.",
    "The paper: one split; C = 1000 and its own classifier for EasyMKL, as MKLpy has them; ten "
    "kernels, the polynomial ones with (⟨x, z⟩ + 1)^d and not the (0.01⟨x, z⟩ + 1)^d of its text; "
    "CKA with weights of any sign. PWMK and SimpleMKL are not in the paper.",
)


def load(path: str, columns: tuple[int, ...] | None = None) -> tuple[FloatArray, FloatArray]:
    """Return features and ±1 labels of a CSV file whose last column is the label.

    Parameters
    ----------
    path : str
        With a header row; may be compressed.
    columns : tuple of int, optional
        Features to keep.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Features.
    y : ndarray of shape (n,)
        Labels.
    """
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X = table[:, :-1] if columns is None else table[:, list(columns)]
    return X, table[:, -1]


def measure(
    path: str, columns: list[int] | None, method: str, n_train: int, n_test: int, seed: int
) -> dict[str, float]:
    """Tune, fit and test one method on one random split.

    Parameters
    ----------
    path : str
        As in `load`.
    columns : list of int or None
        As in `load`.
    method : str
        One of `METHODS`.
    n_train, n_test : int
        Samples of either part.
    seed : int
        Of the split and the folds.

    Returns
    -------
    dict
        ``accuracy`` in per cent, ``n_kernels``, ``seconds`` of the last fit, ``gap`` and ``C``.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
    from sklearn.preprocessing import StandardScaler

    X, y = load(path, None if columns is None else tuple(columns))
    parts = train_test_split(
        X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(parts[0])
    fitted = default_kernels().fit_grams(scaler.transform(parts[0]))
    grams = PrecomputedGrams(fitted.grams)
    cross = fitted.cross(scaler.transform(parts[1]))
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    search = GridSearchCV(_estimator(method), _grid(method), cv=folds, refit=False)
    search.fit(grams, parts[2])
    model = _estimator(method).set_params(**search.best_params_)
    start = time.perf_counter()
    model.fit(fitted.grams, parts[2])
    seconds = time.perf_counter() - start
    return {
        "accuracy": 100.0 * float(np.mean(model.predict(cross) == parts[3])),
        "n_kernels": int((np.abs(model.weights_) > 1e-3).sum()),
        "seconds": seconds,
        "gap": float(model.result_.gap),
        "C": float(search.best_params_["C"]),
    }


def _estimator(method: str) -> Any:
    from kernelweave import baselines

    return getattr(baselines, f"{method}Classifier")("precomputed", tol=1e-3)


def _grid(method: str) -> dict[str, list[float]]:
    grid = {"C": list(_GRID_C)}
    return {**grid, "lam": list(_GRID_LAM)} if method == "EasyMKL" else grid


def baselines_table(request: Request) -> Plan:
    """Plan the table: accuracy, kernels used and seconds of every baseline on the ten sets.

    Parameters
    ----------
    request : Request
        Where the data lie, and whether one small split is enough.

    Returns
    -------
    Plan
        A cell per data set, method and split; one sheet with a row per data set and method,
        ours beside the paper's Tables 2 to 4.
    """
    cells = []
    for name, row in PRINTED.items():
        path = str(request.data_file(row.file))
        most = request.most_samples if request.quick else 10**9
        n_train = min(row.n_train, int(_TRAIN * most))
        n_test = max(20, round(n_train * (1.0 - _TRAIN) / _TRAIN))
        cells += [
            Cell(
                key=f"{name}/{method}/{seed}",
                compute=measure,
                arguments={
                    "path": path,
                    "columns": None if row.columns is None else list(row.columns),
                    "method": method,
                    "n_train": n_train,
                    "n_test": n_test,
                    "seed": seed,
                },
                seconds=max(0.5, _SECONDS[method] * (n_train / 1000) ** 2),
                is_reduced=request.quick,
            )
            for method in METHODS
            for seed in range(1 if request.quick else _SPLITS)
        ]
    return Plan(cells, lambda results: [_sheet(results)])


def _sheet(results: Mapping[str, Any]) -> Sheet:
    rows: list[list[Value]] = []
    for name, row in PRINTED.items():
        for method in METHODS:
            found = [v for key, v in results.items() if key.startswith(f"{name}/{method}/")]
            accuracy = [v["accuracy"] for v in found]
            theirs: list[Value] = [None, None, None]
            if method in _PRINTED_ORDER:
                at = _PRINTED_ORDER.index(method)
                theirs = [row.accuracy[at], row.n_kernels[at], row.seconds[at]]
            rows.append(
                [
                    name,
                    method,
                    float(np.mean(accuracy)) if found else None,
                    float(np.std(accuracy, ddof=1)) if len(found) > 1 else None,
                    float(np.mean([v["n_kernels"] for v in found])) if found else None,
                    float(np.mean([v["seconds"] for v in found])) if found else None,
                    max(v["gap"] for v in found) if found else None,
                    *theirs,
                ]
            )
    columns = ("data", "method", "accuracy (%)", "±", "kernels", "seconds", "gap")
    printed = ("accuracy (paper)", "kernels (paper)", "seconds (paper)")
    return Sheet(
        "Baselines on ten sets, ours beside the paper's", (*columns, *printed), rows, _NOTES
    )
