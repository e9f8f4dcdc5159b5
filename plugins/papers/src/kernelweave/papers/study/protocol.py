"""The sets, the methods and the measurement, fixed before any result was seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import data as samples
from ..plan import Request
from ..tessellated.methods import fit_tuned

# learned kernels, the rival, and what is no kernel at all
LEARNED = ("TKL", "SimpleMKL")
RIVAL = "RBF-SVM"
OTHER = "boosted trees"
METHODS = (RIVAL, *LEARNED, OTHER)
N_FOLDS = 5
MOST_ROWS, QUICK_ROWS = 300, 120


class Data(NamedTuple):
    """A set: its file in the data folder, or the name under which scikit-learn brings it."""

    where: str
    task: str


# with at most 13 features, from scikit-learn and the five papers
SETS = {
    "wine": Data("load_wine", "classification"),
    "haberman": Data("haberman.csv", "classification"),
    "heart": Data("heart_statlog.csv", "classification"),
    "liver": Data("liver_bupa.csv", "classification"),
    "pima": Data("pima.csv", "classification"),
    "transfusion": Data("transfusion.csv", "classification"),
    "mammographic": Data("mammographic.csv", "classification"),
    "breast cancer": Data("breastcancer_wisconsin_original.csv", "classification"),
    "abalone": Data("abalone.csv", "classification"),
    "shill bidding": Data("shill_bidding.csv.gz", "classification"),
    "banknote": Data("banknote.csv", "classification"),
    "fourclass": Data("fourclass.csv", "classification"),
    "diabetes": Data("load_diabetes", "regression"),
    "Boston housing": Data("boston_housing.csv", "regression"),
    "airfoil": Data("airfoil.csv", "regression"),
    "CCPP": Data("ccpp.csv", "regression"),
    "space": Data("space_ga.csv", "regression"),
    "California": Data("california_housing.csv.gz", "regression"),
    "gas turbine": Data("gas_turbine.csv.gz", "regression"),
}


def source(name: str, request: Request) -> str:
    """Return the path of a set, or the loader's name.

    Parameters
    ----------
    name : str
        A key of `SETS`.
    request : Request
        Where the files lie.
    """
    where = SETS[name].where
    return where if where.startswith("load_") else str(request.data_file(where))


def measure(where: str, task: str, method: str, fold: int, most: int, quick: bool) -> float:
    """Tune a method on four fifths of a set and return its score on the last fifth.

    Parameters
    ----------
    where : str
        As `source` returns it.
    task : str
        ``"classification"`` or ``"regression"``.
    method : str
        One of `METHODS`; all see the same samples.
    fold : int
        Which of five parts is the test.
    most : int
        Samples, drawn at random, at most.
    quick : bool
        Whether to search a coarser grid.

    Returns
    -------
    float
        Accuracy, or the coefficient of determination R², in per cent.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    X, y = _load(where)
    classes = task == "classification"
    rows = np.random.RandomState(0).permutation(len(X))[:most]
    X, y = X[rows], y[rows]
    kind: Any = StratifiedKFold if classes else KFold
    folds = kind(N_FOLDS, shuffle=True, random_state=0)
    train, test = list(folds.split(X, y))[fold]
    estimator, _ = fit_tuned(method, task, X[train], y[train], 0, quick=quick, per_feature=False)
    return 100.0 * float(estimator.score(X[test], y[test]))


def _load(where: str) -> tuple[Any, Any]:
    if not where.startswith("load_"):
        return samples.load(where)
    from sklearn import datasets

    return getattr(datasets, where)(return_X_y=True)  # type: ignore[no-any-return]
