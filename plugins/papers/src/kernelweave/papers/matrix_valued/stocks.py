"""Table 1: next week's returns of nine stocks."""

from __future__ import annotations

import numpy as np
from kernelweave.kernels_core import RBF, PrecomputedGrams
from kernelweave.kernels_core.arrays import FloatArray

from ..data import notes, printed, values
from ..plan import Plan, Request, Results, Sheet, Value, cell

OURS = ("OLS", "Lasso", "IKL", "OKL", "IOKL")
_LEARNS = {"IKL": (True, False), "OKL": (False, True), "IOKL": (True, True)}
_NOTES = notes("matrix_valued.stocks")


_TRAIN = 25


def measure(path: str, method: str, quick: bool = False) -> list[float]:
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
        cell(method, seconds, request.quick, measure, path, method, *quick)
        if method in _LEARNS
        else cell(method, 2.0, False, measure, path, method)
        for method in OURS
    ]
    return Plan(cells, _present)


def _present(found: Results) -> list[Sheet]:
    theirs = printed("matrix_valued")
    methods = [name for name in theirs[0] if name != "stock"]
    columns = ["stock"]
    for method in methods:
        columns += [f"{method} (paper)", *([f"{method} ours"] if method in OURS else [])]
    rows: list[list[Value]] = []
    for i, row in enumerate(theirs):
        rows.append([row["stock"]])
        for method in methods:
            ours = [_error(found.get(method), i)] if method in OURS else []
            rows[-1] += [row[method], *ours]
    return [Sheet("Table 1: mean squared error × 1000 on nine stocks", columns, rows, _NOTES)]


def _error(errors: list[float] | None, stock: int) -> float | None:
    """Return the error of a stock, of all in the mean for the row below the last."""
    if errors is None:
        return None
    return round(float(np.mean(errors)) if stock == len(errors) else errors[stock], 2)
