"""R, Figures 1 to 12: error against λ of kernels learned by projected gradient, by degree."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.workbench.displays.colours import SERIES
from threadpoolctl import threadpool_limits

from ..data import drawn, load
from ..measuring import CLASSES
from ..plan import Cell, Drawing, Plan, Request, Results, Sheet, Value
from .protocol import (
    N_FOLDS,
    N_SPLITS,
    Part,
    folds,
    halves,
    kernels_at,
    lambdas,
    learn,
    ridge_errors,
    sizes_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEGREES = (1, 2, 3)
_SVM_C = (0.1, 1.0, 10.0, 100.0)
_FILES = {
    "ionosphere": ("ionosphere.csv",),
    "sonar": ("sonar.csv",),
    "breast cancer": ("breastcancer_wisconsin_original.csv", "breastcancer_ljubljana.csv"),
    "diabetes": ("pima.csv",),
    "fourclass": ("fourclass.csv",),
    "german": ("german_numeric.csv",),
    "heart": ("heart_statlog.csv",),
}
# how a set is told from another of its name
_LABELS = {
    "breastcancer_wisconsin_original.csv": " (Wisconsin)",
    "breastcancer_ljubljana.csv": " (Ljubljana)",
}
_ON_BREAST_CANCER = (
    "The paper's text describes the set from Ljubljana, 286 patients; its figures have the names "
    "of the LIBSVM sets, where breast cancer is the one from Wisconsin: both are shown. Of "
    "Ljubljana, 9 rows with gaps are left out."
)
_NOTES = [
    "The paper's figures are pictures without numbers: compare the trends it states. Errors fall "
    "as λ grows from 0.0001 to 10, and are mostly higher for d > 1.",
    "Λ is chosen for each λ by cross-validation; regression shows the root mean squared error of "
    "ridge on ±1 labels, classification the share of wrong labels of a support vector machine on "
    "the kernel that ridge learned, its C from 0.1, 1, 10, 100 by three folds.",
    "Base kernels, which the paper does not print: linear and Gaussian with γ = 2⁻⁶ … 2³.",
]


def svm_error(data: Part, mu: Any, degree: int, lam: float) -> tuple[float, float]:
    """Return the share of wrong labels of a machine on the learned kernel, twice; C is searched."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    train, test = kernels_at(data, mu, degree)
    machine = GridSearchCV(SVC(kernel="precomputed"), {"C": list(_SVM_C)}, cv=3)
    wrong = 1.0 - float(machine.fit(train, data.y).score(test, data.y_test))
    return wrong, wrong


@threadpool_limits.wrap(limits=1)
def curve(
    path: str, task: str, degree: int, n_folds: int, n_splits: int, most: int | None, quick: bool
) -> dict[str, list[float]]:
    """Return the cross-validation and test errors at each λ for one degree, and the Λ chosen."""
    errors = svm_error if task == CLASSES else ridge_errors
    X, y = drawn(*load(path), most)
    lams, sizes = lambdas(quick), sizes_of("PGD", quick)

    def error(data: Part, lam: float, size: float) -> float:
        return errors(data, learn(data, "PGD", degree, lam, size, quick=quick), degree, lam)[0]

    validation = np.array(
        [[[error(d, lam, s) for s in sizes] for lam in lams] for d in folds(X, y, n_folds)]
    ).mean(axis=0)
    chosen = [sizes[int(k)] for k in validation.argmin(axis=1)]
    test = np.array(
        [
            [error(d, lam, size) for lam, size in zip(lams, chosen, strict=True)]
            for d in halves(X, y, n_splits)
        ]
    )
    return {
        "lam": list(lams),
        "size": list(chosen),
        "cv": validation.min(axis=1).tolist(),
        "test": test.mean(axis=0).tolist(),
    }


def figure(request: Request, data: str, task: str) -> Plan:
    """Plan one of the figures: regression is ridge, classification a machine on its kernel."""
    quick = request.quick
    cells = [
        Cell(
            key=f"{file}/{degree}",
            compute=curve,
            arguments={
                "path": str(request.data_file(file)),
                "task": task,
                "degree": degree,
                "n_folds": 2 if quick else N_FOLDS,
                "n_splits": 1 if quick else N_SPLITS,
                "most": request.most_samples if quick else None,
                "quick": quick,
            },
            seconds=2.0 if quick else 150.0,
            is_reduced=quick,
        )
        for file in _FILES[data]
        for degree in DEGREES
    ]
    return Plan(cells, partial(_present, data, task))


def _present(data: str, task: str, results: Results) -> list[Sheet | Drawing]:
    return [item for file in _FILES[data] for item in _shown(file, data, task, results)]


def _shown(file: str, data: str, task: str, results: Results) -> list[Sheet | Drawing]:
    what = "share of wrong labels" if task == CLASSES else "RMSE"
    data += _LABELS.get(file, "")
    keys = {degree: f"{file}/{degree}" for degree in DEGREES}
    found = {degree: results[key] for degree, key in keys.items() if key in results}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for degree, value in found.items():
            for part, line in (("test", "-"), ("cv", "--")):
                label = f"{'CV' if part == 'cv' else part}, d = {degree}"
                style = {**SERIES[degree - 1], "linestyle": line, "label": label}
                ax.semilogx(value["lam"], value[part], **style)
        ax.set(xlabel="λ", ylabel=what)
        ax.grid(alpha=0.2)
        figure.legend(loc="outside right center", frameon=False, fontsize=8)

    rows: list[list[Value]] = [
        [degree, *each]
        for degree, value in found.items()
        for each in zip(value["lam"], value["size"], value["cv"], value["test"], strict=True)
    ]
    title = f"{task.capitalize()} on {data}"
    text = f"{what[0].upper()}{what[1:]} against λ on {data}, a pair of curves for each degree."
    columns = ("d", "λ", "Λ", f"{what}, CV", f"{what}, test")
    notes = [*_NOTES, _ON_BREAST_CANCER] if file in _LABELS else _NOTES
    return [Drawing(title, text, draw), Sheet(title, columns, rows, notes)]
