"""The sets, the methods and the measurement, fixed before any result was seen."""

from __future__ import annotations

from typing import Any

from ..data import drawn, folds, load
from ..measuring import CLASSES, TASKS
from ..plan import Request
from ..tessellated.methods import fit_tuned

# learned kernels, the rival, and what is no kernel at all
LEARNED = ("TKL", "SimpleMKL")
RIVAL = "RBF-SVM"
OTHER = "boosted trees"
METHODS = (RIVAL, *LEARNED, OTHER)
N_FOLDS = 5
MOST_ROWS, QUICK_ROWS = 300, 120
# file in the data folder, or the name under which scikit-learn brings it; with at most 13 features
_FILES = {
    CLASSES: {
        "wine": "load_wine",
        "haberman": "haberman.csv",
        "heart": "heart_statlog.csv",
        "liver": "liver_bupa.csv",
        "pima": "pima.csv",
        "transfusion": "transfusion.csv",
        "mammographic": "mammographic.csv",
        "breast cancer": "breastcancer_wisconsin_original.csv",
        "abalone": "abalone.csv",
        "shill bidding": "shill_bidding.csv.gz",
        "banknote": "banknote.csv",
        "fourclass": "fourclass.csv",
    },
    "regression": {
        "diabetes": "load_diabetes",
        "Boston housing": "boston_housing.csv",
        "airfoil": "airfoil.csv",
        "CCPP": "ccpp.csv",
        "space": "space_ga.csv",
        "California": "california_housing.csv.gz",
        "gas turbine": "gas_turbine.csv.gz",
    },
}
# where it is, and the task, by name
SETS = {name: (where, task) for task in TASKS for name, where in _FILES[task].items()}


def source(name: str, request: Request) -> str:
    """Return the path of a set, or the loader's name."""
    where, _ = SETS[name]
    return where if where.startswith("load_") else str(request.data_file(where))


def measure(where: str, task: str, method: str, fold: int, most: int, quick: bool) -> float:
    """Tune a method on four fifths of a set and return its score on the last fifth, in per cent.

    Accuracy, or the coefficient of determination R²; every method sees the same samples.
    """
    X, y = drawn(*_load(where), most)
    cv = folds(N_FOLDS, 0, classes=task == CLASSES)
    train, test = list(cv.split(X, y))[fold]
    estimator, _ = fit_tuned(method, task, X[train], y[train], 0, quick=quick, per_feature=False)
    return 100.0 * float(estimator.score(X[test], y[test]))


def _load(where: str) -> tuple[Any, Any]:
    if not where.startswith("load_"):
        return load(where)
    from sklearn import datasets

    return getattr(datasets, where)(return_X_y=True)  # type: ignore[no-any-return]
