"""R, Figures 1 to 12: error against λ of kernels learned by projected gradient, by degree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ..plan import Cell, Drawing, Plan, Request, Sheet, Value
from .protocol import Part, folds, halves, kernels_at, lambdas, learn, load, ridge_errors, sizes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEGREES = (1, 2, 3)
_N_FOLDS, _N_SPLITS = 10, 30
_SVM_C = (0.1, 1.0, 10.0, 100.0)
# Okabe and Ito's, with a marker each: told apart without colour too
_STYLES = (("#0072B2", "o"), ("#D55E00", "v"), ("#009E73", "s"))


class Subject(NamedTuple):
    """What a figure shows.

    Parameters
    ----------
    number : int
        Of the figure in the paper.
    data : str
        The set by name.
    file : str
        Its file.
    task : str
        ``"regression"`` (ridge) or ``"classification"`` (a support vector machine on the kernel).
    """

    number: int
    data: str
    file: str
    task: str


SUBJECTS = tuple(
    Subject(number, data, file, task)
    for number, data, file, task in (
        (1, "ionosphere", "ionosphere.csv", "regression"),
        (2, "sonar", "sonar.csv", "regression"),
        (3, "ionosphere", "ionosphere.csv", "classification"),
        (4, "sonar", "sonar.csv", "classification"),
        (5, "breast cancer", "breastcancer_wisconsin_original.csv", "regression"),
        (6, "diabetes", "pima.csv", "regression"),
        (7, "fourclass", "fourclass.csv", "regression"),
        (8, "german", "german_numeric.csv", "regression"),
        (9, "heart", "heart_statlog.csv", "regression"),
        (10, "breast cancer", "breastcancer_wisconsin_original.csv", "classification"),
        (11, "diabetes", "pima.csv", "classification"),
        (12, "heart", "heart_statlog.csv", "classification"),
    )
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
    """Return the share of wrong labels of a support vector machine on the learned kernel, twice.

    Parameters
    ----------
    data : Part
        Both parts.
    mu : ndarray of shape (p,)
        Weights.
    degree : int
        d.
    lam : float
        Not used: C is searched.
    """
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
    """Return the cross-validation and test errors at each λ for one degree.

    Parameters
    ----------
    path : str
        The data file.
    task : str
        As in `Subject`.
    degree : int
        d.
    n_folds, n_splits : int
        Of the cross-validation, and random halves of the test.
    most : int or None
        Rows at most.
    quick : bool
        Whether to search less.

    Returns
    -------
    dict
        ``lam``, ``cv``, ``test``: a number per λ; ``size``: the Λ chosen.
    """
    errors = ridge_errors if task == "regression" else svm_error
    X, y = load(path, most)
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


def _plan(subject: Subject, request: Request) -> Plan:
    path = str(request.data_file(subject.file))
    quick = request.quick
    cells = [
        Cell(
            key=f"{degree}",
            compute=curve,
            arguments={
                "path": path,
                "task": subject.task,
                "degree": degree,
                "n_folds": 2 if quick else _N_FOLDS,
                "n_splits": 1 if quick else _N_SPLITS,
                "most": request.most_samples if quick else None,
                "quick": quick,
            },
            seconds=2.0 if quick else 150.0,
            is_reduced=quick,
        )
        for degree in DEGREES
    ]
    return Plan(cells, partial(_present, subject))


def _present(subject: Subject, results: Mapping[str, Any]) -> list[Sheet | Drawing]:
    what = "RMSE" if subject.task == "regression" else "share of wrong labels"
    found = {degree: results[f"{degree}"] for degree in DEGREES if f"{degree}" in results}

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for degree, value in found.items():
            colour, marker = _STYLES[degree - 1]
            for part, line in (("test", "-"), ("cv", "--")):
                label = f"{'CV' if part == 'cv' else part}, d = {degree}"
                style = {"color": colour, "marker": marker, "linestyle": line, "markersize": 4}
                ax.semilogx(value["lam"], value[part], label=label, **style)
        ax.set_xlabel("λ")
        ax.set_ylabel(what)
        ax.grid(alpha=0.2)
        figure.legend(loc="outside right center", frameon=False, fontsize=8)

    rows: list[list[Value]] = [
        [degree, *each]
        for degree, value in found.items()
        for each in zip(value["lam"], value["size"], value["cv"], value["test"], strict=True)
    ]
    title = f"{subject.task.capitalize()} on {subject.data}"
    start = what[0].upper() + what[1:]
    text = f"{start} against λ on {subject.data}, a pair of curves for each degree."
    columns = ("d", "λ", "Λ", f"{what}, CV", f"{what}, test")
    return [Drawing(title, text, draw), Sheet(title, columns, rows, _NOTES)]


def _figure(number: int) -> Callable[[Request], Plan]:
    subject = SUBJECTS[number - 1]

    def figure(request: Request) -> Plan:
        return _plan(subject, request)

    figure.__doc__ = f"R, Figure {number}: {subject.task} on {subject.data}."
    return figure


figure_1, figure_2, figure_3, figure_4 = (_figure(n) for n in range(1, 5))
figure_5, figure_6, figure_7, figure_8 = (_figure(n) for n in range(5, 9))
figure_9, figure_10, figure_11, figure_12 = (_figure(n) for n in range(9, 13))
