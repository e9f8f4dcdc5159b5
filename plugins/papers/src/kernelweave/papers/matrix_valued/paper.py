"""Figures 1 and 2: objective and accuracy against time at several degrees of inexactness.

And Table 1: next week's returns of nine stocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import RBF, PrecomputedGrams, Problem, Result, solve
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.workbench.displays.axes import SERIES

from ..data import notes, printed, values
from ..measuring import timed
from ..plan import Drawing, Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Variant(NamedTuple):
    """An algorithm with its parameters, and the problem that it solves.

    With ``rho``, the factor of ‖L‖², it is output kernel learning at even weights: a problem, and
    an objective, of its own. Without, joint learning with a bound on the trace, that of both
    figures.
    """

    algorithm: str
    params: Mapping[str, Any] = {}
    lam: float = 0.1
    rho: float | None = None


# the paper's three levels of inexactness, exact steps, output kernel learning, and ours
METHODS: dict[str, Variant] = {
    "cg 0.1, 100 SDP steps": Variant("vv-block-descent", {"cg_tol": 1e-1, "sdp_iter": 100}),
    "cg 0.01, 1000 SDP steps": Variant("vv-block-descent", {"cg_tol": 1e-2, "sdp_iter": 1000}),
    "cg 1e-6, 3000 SDP steps": Variant("vv-block-descent", {"cg_tol": 1e-6, "sdp_iter": 3000}),
    "exact C and L": Variant("vv-block-descent", {"method": "eigen", "output_step": "exact"}),
    "vv-dinuzzo": Variant("vv-dinuzzo", lam=1e-3, rho=1e-3),
    "vv-spg": Variant("vv-spg"),
}
STEPS = (1, 2, 4, 8)
_SECONDS = {"cg 1e-6, 3000 SDP steps": 900.0}
_NOTES = notes("matrix_valued.paper")
_ON_ACCURACY = notes("matrix_valued.paper accuracy")


def classes(
    n_classes: int, n_test: int, seed: int = 0
) -> tuple[FloatArray, npt.NDArray[np.int64], FloatArray, npt.NDArray[np.int64]]:
    """Return training points and labels, test points and labels; 40 columns, the last 16 noise.

    Thirty training points of each class, around one of 12 centres.
    """
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((12, 40))[rng.integers(12, size=n_classes)]
    mean = centre + 0.9 * rng.standard_normal((n_classes, 40))
    train, test = np.repeat(np.arange(n_classes), 30), rng.integers(n_classes, size=n_test)
    X, Z = (mean[y] + rng.standard_normal((len(y), 40)) for y in (train, test))
    for points in (X, Z):
        points[:, 24:] = 2.0 * rng.standard_normal((len(points), 16))
    return X, train, Z, test


def measure(name: str, n_classes: int, n_test: int) -> dict[str, list[float]]:
    """Run one method for 1, 2, 4 and 8 steps: steps, seconds, objective and accuracy."""
    from kernelweave.vv_rkhs import (
        FrobeniusOutputKernels,
        PrecomputedFamily,
        SeparableKernels,
        SquaredLpNorm,
        VectorLeastSquares,
    )

    X, train, Z, test = classes(n_classes, n_test)
    kernels = [RBF(gamma=1.0 / 16.0).on(list(range(4 * k, 4 * k + 4))) for k in range(10)]
    grams = np.stack([kernel(X) for kernel in kernels])
    Y = np.eye(n_classes)[train]
    targets = (Y - Y.mean(axis=0)).T
    method = METHODS[name]
    set_: SeparableKernels | FrobeniusOutputKernels = SeparableKernels(
        SquaredLpNorm(1.7), 10.0 * n_classes
    )
    if method.rho is not None:
        set_ = FrobeniusOutputKernels(0.5 * method.rho / method.lam)

    def run(size: int, steps: int) -> Result:
        family = PrecomputedFamily(grams[:, :size, :size])
        positions = np.arange(float(size))[:, None]
        learner = VectorLeastSquares(method.lam)
        problem = Problem(family, learner, set_, positions, targets[:, :size])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return solve(problem, method.algorithm, tol=1e-6, max_iter=steps, **method.params)

    def accuracy(result: Result) -> float:
        weights, L = result.parameters.weights, result.parameters.output_kernel
        scores = sum(
            w * (kernel(Z, X) @ (result.solution.C @ L))
            for w, kernel in zip(weights, kernels, strict=True)
        )
        return float((np.argmax(scores, axis=1) == test).mean())

    run(40, 1)  # what is imported and compiled at the first call is not of the first row
    record: dict[str, list[float]] = {"steps": [], "seconds": [], "value": [], "accuracy": []}
    for steps in STEPS:
        result, seconds = timed(partial(run, len(Y), steps))
        objective = 2.0 * method.lam * float(result.history.value[-1])  # J, as V writes it
        row = (result.n_iter, seconds, objective, accuracy(result))
        for series, figure in zip(record.values(), row, strict=True):
            series.append(figure)
    return record


def figure(request: Request, number: int) -> Plan:
    """Plan Figure 1, the objective, or 2, the accuracy, which shares the cells of the first."""
    n_classes = max(2, min(102, request.most_samples // 30)) if request.quick else 102
    cells = [
        cell(
            *(name, 20.0 if request.quick else _SECONDS.get(name, 60.0), request.quick, measure),
            *(name, n_classes, 1355),
        )
        for name, method in METHODS.items()
        if number == 2 or method.rho is None
    ]
    return Plan(cells, lambda results: _present(results, number))


def _present(results: Results, number: int) -> list[Sheet | Drawing]:
    what, label = ("value", "objective") if number == 1 else ("accuracy", "accuracy")
    title = f"Figure {number}: {label} against time"
    rows = [
        [name, steps, round(seconds, 2), round(value, 4)]
        for name, each in results.items()
        for steps, seconds, value in zip(each["steps"], each["seconds"], each[what], strict=True)
    ]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for style, name in zip(SERIES, METHODS, strict=False):
            if name in results:
                ax.semilogx(results[name]["seconds"], results[name][what], **style, label=name)
        ax.set(xlabel="CPU seconds", ylabel=label)
        ax.grid(alpha=0.2)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)

    description = f"The {label} of each method after 1, 2, 4 and 8 steps."
    notes = _NOTES if number == 1 else (*_NOTES, *_ON_ACCURACY)
    return [
        Sheet(title, ["method", "steps", "CPU seconds", label], rows, notes),
        Drawing(title, description, draw),
    ]


OURS = ("OLS", "Lasso", "IKL", "OKL", "IOKL")
_LEARNS = {"IKL": (True, False), "OKL": (False, True), "IOKL": (True, True)}
_ON_STOCKS = notes("matrix_valued.paper stocks")


_TRAIN = 25


def predict_stocks(path: str, method: str, quick: bool = False) -> list[float]:
    """Select and fit on the first 25 pairs of weeks; return the errors of the nine on the last 26.

    A quick run learns a kernel of fewer bandwidths, with fewer λ and folds.
    """
    table = values(path)
    X, Y, now = table[:_TRAIN], table[1 : _TRAIN + 1], table[_TRAIN:-1]
    learns = method in _LEARNS
    predicted = _learned(X, Y, now, method, quick) if learns else _linear(X, Y, now, method)
    errors: list[float] = (1000.0 * ((predicted - table[_TRAIN + 1 :]) ** 2).mean(axis=0)).tolist()
    return errors


def _learned(X: FloatArray, Y: FloatArray, now: FloatArray, method: str, quick: bool) -> FloatArray:
    from kernelweave.vv_rkhs import MatrixValuedKernelRegressor
    from sklearn.model_selection import GridSearchCV, KFold

    spread = X.std(axis=0)
    kernels = [
        RBF(gamma=2.0**power / (2.0 * spread[c] ** 2)).on([c])
        for c in range(X.shape[1])
        for power in (range(-9, 4, 3) if quick else range(-9, 4))
    ]
    learn_input, learn_output = _LEARNS[method]
    model = MatrixValuedKernelRegressor(
        "precomputed",
        learn_input=learn_input,
        learn_output=learn_output,
        center=True,
        tol=1e-3,
        max_iter=300,
    )
    lams = np.logspace(-4, 1, 6 if quick else 16)
    folds = KFold(5 if quick else 10)
    search = GridSearchCV(model, {"lam": lams}, cv=folds, scoring="neg_mean_squared_error")
    search.fit(PrecomputedGrams(np.stack([kernel(X) for kernel in kernels])), Y)
    return np.asarray(search.predict(np.stack([kernel(now, X) for kernel in kernels])))


def _linear(X: FloatArray, Y: FloatArray, now: FloatArray, method: str) -> FloatArray:
    from sklearn.linear_model import Lasso, LinearRegression
    from sklearn.model_selection import GridSearchCV, KFold

    if method == "OLS":
        return np.asarray(LinearRegression().fit(X, Y).predict(now))
    # from the smallest penalty that selects nothing for any stock, three decades down
    largest = float(np.abs((X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0))).max()) / len(X)
    search = GridSearchCV(
        Lasso(max_iter=100_000),
        {"alpha": largest * np.logspace(0, -3, 60)},
        cv=KFold(10),
        scoring="neg_mean_squared_error",
    )
    return np.asarray(search.fit(X, Y).predict(now))


def table(request: Request) -> Plan:
    """Table 1: a cell per method."""
    path = request.data_file("stock04.csv")
    # what learns nothing does the same in a quick run
    quick, seconds = ([True], 10.0) if request.quick else ([], 60.0)
    cells = [
        cell(method, seconds, request.quick, predict_stocks, path, method, *quick)
        if method in _LEARNS
        else cell(method, 2.0, False, predict_stocks, path, method)
        for method in OURS
    ]
    return Plan(cells, _present_table)


def _present_table(results: Results) -> list[Sheet]:
    theirs = printed("matrix_valued")
    methods = [name for name in theirs[0] if name != "stock"]
    columns = ["stock"]
    for method in methods:
        columns += [f"{method} (paper)", *([f"{method} ours"] if method in OURS else [])]
    rows: list[list[Value]] = []
    for i, row in enumerate(theirs):
        rows.append([row["stock"]])
        for method in methods:
            ours = [_error(results.get(method), i)] if method in OURS else []
            rows[-1] += [row[method], *ours]
    return [Sheet("Table 1: mean squared error × 1000 on nine stocks", columns, rows, _ON_STOCKS)]


def _error(errors: list[float] | None, stock: int) -> float | None:
    """Return the error of a stock, of all in the mean for the row below the last."""
    if errors is None:
        return None
    return round(float(np.mean(errors)) if stock == len(errors) else errors[stock], 2)
