"""T, Figure 3: the surface of the Grand Canyon by a learned kernel and by a tuned Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.workbench.displays.axes import HEAT

from ..data import as_unit_range, drawn, folds, load
from ..plan import Drawing, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

# a model of C and tol
_Make = Callable[[float, float], "BaseEstimator"]
_GRID = 60
_TRAIN = "grand_canyon_750.csv"
_TRUTH = "grand_canyon_native.csv.gz"
_SPREAD = 100.0


def learned(path: str, truth: str, n_train: int, degree: int) -> dict[str, object]:
    """Learn a tessellated kernel, C by two folds; return the surface and errors."""
    from kernelweave.spectahedron import TessellatedKernelRegressor

    def make(C: float, tol: float) -> BaseEstimator:
        return TessellatedKernelRegressor(
            units="absolute", C=C, epsilon=0.02, degree=degree, delta=0.1, tol=tol, max_iter=200
        )

    return _best(path, truth, n_train, [(make, C) for C in (1.0, 10.0, 100.0)])


def gaussian(path: str, truth: str, n_train: int) -> dict[str, object]:
    """Tune a Gaussian kernel by two folds; return the surface and errors."""
    from sklearn.svm import SVR

    def with_width(gamma: float) -> _Make:
        return lambda C, _: SVR(C=C, epsilon=0.02, gamma=gamma)

    pairs = [(with_width(10.0**g), 10.0**c) for g in (0, 1, 2, 3) for c in (0, 1, 2, 3)]
    return _best(path, truth, n_train, pairs)


def _best(
    path: str, truth: str, n_train: int, candidates: list[tuple[_Make, float]]
) -> dict[str, object]:
    """Choose by two folds, fit to all, and compare with the finer grid of heights."""
    from sklearn.model_selection import cross_val_score

    X, y = drawn(*load(path), n_train)
    Z, y = as_unit_range(X), y / _SPREAD
    mean, cv = y.mean(), folds(2, 0, classes=False)
    scores = [cross_val_score(make(C, 0.1), Z, y - mean, cv=cv).mean() for make, C in candidates]
    make, C = candidates[int(np.argmax(scores))]
    model = make(C, 1e-2).fit(Z, y - mean)
    finer, heights = load(truth)
    predicted = model.predict((finer - X.min(axis=0)) / np.ptp(X, axis=0)) + mean
    side = np.linspace(0.0, 1.0, _GRID)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    return {
        "surface": ((model.predict(points) + mean) * _SPREAD).reshape(_GRID, _GRID).tolist(),
        "error": float(np.sqrt(np.mean((predicted * _SPREAD - heights) ** 2))),
        "C": float(C),
    }


def figure(request: Request) -> Plan:
    """T, Figure 3: 750 heights, degree 2."""
    path, truth, quick = request.data_file(_TRAIN), request.data_file(_TRUTH), request.quick
    n_train, degree, seconds = (200, 1, (20.0, 5.0)) if quick else (750, 2, (400.0, 60.0))
    cells = [
        cell("learned", seconds[0], quick, learned, path, truth, n_train, degree),
        cell("gaussian", seconds[1], quick, gaussian, path, truth, n_train),
    ]
    return Plan(cells, lambda results: _present(results, path))


def _present(results: Results, path: str) -> list[Sheet | Drawing]:
    titles = {"learned": "learned tessellated kernel", "gaussian": "tuned Gaussian"}
    shown = [key for key in titles if key in results]

    def draw(figure: Figure) -> None:
        X, y = load(path)
        order = np.lexsort((X[:, 1], X[:, 0]))
        n_first = len(np.unique(X[:, 0]))
        heights = y[order].reshape(n_first, -1)
        axes = figure.subplots(1, 1 + len(shown), squeeze=False)[0]
        pictures = [heights, *(np.array(results[key]["surface"]) for key in shown)]
        names = [f"{len(y)} heights", *(titles[key] for key in shown)]
        for ax, picture, name in zip(axes, pictures, names, strict=True):
            image = ax.imshow(
                picture, cmap=HEAT, vmin=y.min(), vmax=y.max(), origin="lower", aspect="auto"
            )
            ax.set_title(name, fontsize=8)
            ax.set_xticks([])
            ax.set_yticks([])
        bar = figure.colorbar(image, ax=axes.tolist(), shrink=0.8)
        bar.set_label("metres")

    rows: list[list[Value]] = [
        [titles[key], results[key]["error"], results[key]["C"]] for key in shown
    ]
    notes = ["The error is the root mean square against the finer grid of heights of the source."]
    description = "Heights, and the surfaces of both machines learned from them."
    return [
        Drawing("The Grand Canyon", description, draw),
        Sheet("Errors", ("model", "error (metres)", "C"), rows, notes),
    ]
