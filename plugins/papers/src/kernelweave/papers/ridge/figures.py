"""R, Figures 1 to 12: error against λ of kernels learned by projected gradient, by degree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.workbench.displays.axes import SERIES
from threadpoolctl import threadpool_limits

from ..data import drawn, load, notes
from ..engine.verdicts import WIDTHS, claim, heads
from ..measuring import CLASSES, mean
from ..plan import PAPER, Drawing, Plan, Request, Results, Sheet, Value, cell
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
# what `curve` returns, and that by width and degree
_Curve: TypeAlias = "Mapping[str, Any]"
_Curves: TypeAlias = "Mapping[tuple[str, int], _Curve]"
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
_ON_BREAST_CANCER = notes("ridge.figures breast cancer")
_NOTES = notes("ridge.figures")
_QUICK = "A quick run: two folds, λ from .0001, .01, 1, 10, Λ from .1, 1, ten steps."
_ON_CLAIMS = notes("ridge.figures claims")


def svm_error(data: Part, mu: FloatArray, degree: int, lam: float) -> tuple[float, float]:
    """Return the share of wrong labels of a model on the learned kernel, twice; C is searched."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    train, test = kernels_at(data, mu, degree)
    model = GridSearchCV(SVC(kernel="precomputed"), {"C": list(_SVM_C)}, cv=3)
    wrong = 1.0 - float(model.fit(train, data.y).score(test, data.y_test))
    return wrong, wrong


@threadpool_limits.wrap(limits=1)
def curve(
    path: str,
    task: str,
    degree: int,
    n_folds: int,
    n_splits: int,
    most: int | None,
    quick: bool,
    share: bool,
) -> dict[str, object]:
    """Return the errors at each λ for one degree, and the Λ chosen; test errors half by half."""
    errors = svm_error if task == CLASSES else ridge_errors
    X, y = drawn(*load(path), most)
    lams, sizes = lambdas(quick), sizes_of("PGD", quick)

    def error(data: Part, lam: float, size: float) -> float:
        return errors(data, learn(data, "PGD", degree, lam, size, quick=quick), degree, lam)[0]

    validation = np.array(
        [[[error(d, lam, s) for s in sizes] for lam in lams] for d in folds(X, y, n_folds, share)]
    ).mean(axis=0)
    chosen = [sizes[int(k)] for k in validation.argmin(axis=1)]
    test = np.array(
        [
            [error(d, lam, size) for lam, size in zip(lams, chosen, strict=True)]
            for d in halves(X, y, n_splits, share)
        ]
    )
    return {
        "lam": list(lams),
        "size": list(chosen),
        "cv": validation.min(axis=1).tolist(),
        "test": test.tolist(),
    }


def figure(request: Request, data: str, task: str) -> Plan:
    """Plan one of the figures: regression is ridge, classification a model on its kernel."""
    quick = request.quick
    seconds = 1.0 if quick else 30.0 if task == CLASSES else 10.0
    sizes = 2 if quick else N_FOLDS, request.repeats or (1 if quick else N_SPLITS)
    most = request.most_samples if quick else None
    cells = [
        cell(
            *(f"{file}/{degree}/{width}", seconds, quick, curve, request.data_file(file)),
            *(task, degree, *sizes, most, quick, share),
        )
        for file in _FILES[data]
        for degree in DEGREES
        for width, share in WIDTHS.items()
    ]
    notes = (*_NOTES, _QUICK) if quick else _NOTES
    return Plan(cells, partial(_present, data, task, notes))


def _present(
    data: str, task: str, notes: tuple[str, ...], results: Results
) -> list[Sheet | Drawing]:
    what = "share of wrong labels" if task == CLASSES else "RMSE"
    shown: list[Sheet | Drawing] = []
    for file in _FILES[data]:
        name = data + _LABELS.get(file, "")
        on_set = (*notes, *_ON_BREAST_CANCER) if file in _LABELS else notes
        curves = {
            (width, degree): results[f"{file}/{degree}/{width}"]
            for width in WIDTHS
            for degree in DEGREES
            if f"{file}/{degree}/{width}" in results
        }
        title = f"{task.capitalize()} on {name}"
        text = f"{what[0].upper()}{what[1:]} against λ on {name}, a pair of curves for each degree."
        shown.append(Drawing(title, text, partial(_draw, what, curves)))
        shown.append(Sheet(title, _heads(what), _rows(curves), on_set))
        title = f"What the curves on {name} say"
        columns = (f"difference of {what}", *heads(), f"trend {PAPER}")
        shown.append(Sheet(title, columns, _claims(curves), _ON_CLAIMS))
    return shown


def _draw(what: str, curves: _Curves, figure: Figure) -> None:
    panels = figure.subplots(1, len(WIDTHS), sharey=True)
    for ax, width in zip(panels, WIDTHS, strict=True):
        for (_, degree), value in ((key, curves[key]) for key in curves if key[0] == width):
            errors = {"test": np.mean(value["test"], axis=0), "CV": value["cv"]}
            for (part, error), line in zip(errors.items(), ("-", "--"), strict=True):
                style = {**SERIES[degree - 1], "linestyle": line, "label": f"{part}, d = {degree}"}
                ax.semilogx(value["lam"], error, **style)
        ax.set(xlabel="λ", title=width)
        ax.grid(alpha=0.2)
    panels[0].set(ylabel=what)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)


def _heads(what: str) -> tuple[str, ...]:
    fields = ("Λ", f"{what}, CV", f"{what}, test")
    return ("d", "λ", *(f"{field}, {width}" for width in WIDTHS for field in fields))


def _rows(curves: _Curves) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for degree in DEGREES:
        of_widths = [curves.get((width, degree)) for width in WIDTHS]
        lams: list[float] = next((value["lam"] for value in of_widths if value), [])
        for i, lam in enumerate(lams):
            row: list[Value] = [degree, lam]
            for value in of_widths:
                row += _figures(value, i) if value else [None] * 3
            rows.append(row)
    return rows


def _figures(value: _Curve, i: int) -> list[Value]:
    return [value["size"][i], value["cv"][i], mean(half[i] for half in value["test"])]


def _claims(curves: _Curves) -> list[list[Value]]:
    """Return whether errors fall with λ, by degree, and whether they are higher at d = 2 and 3."""
    rows: list[list[Value]] = []
    lams: list[float] = next((value["lam"] for value in curves.values()), [])
    ends = f"λ = {lams[-1]:g} less λ = {lams[0]:g}" if lams else "the largest λ less the least"
    # equal shares of wrong labels differ by rounding
    test = {key: np.round(np.array(value["test"]), 12) for key, value in curves.items()}
    for degree in DEGREES:
        along = {w: test[w, degree] for w in WIDTHS if (w, degree) in test}
        differences = {w: along[w][:, -1] - along[w][:, 0] if w in along else () for w in WIDTHS}
        rows.append([*claim(f"d = {degree}: {ends}", -1.0, differences), "falls"])
    for degree in DEGREES[1:]:
        both = {w for w in WIDTHS if {(w, degree), (w, 1)} <= test.keys()}
        differences = {
            w: (test[w, degree] - test[w, 1]).mean(axis=1) if w in both else () for w in WIDTHS
        }
        rows.append([*claim(f"d = {degree} less d = 1", 1.0, differences), "higher"])
    return rows
