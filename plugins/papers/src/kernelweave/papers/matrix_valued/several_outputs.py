"""Ours: several outputs at once, against what users would take, R² and CPU seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index

from ..data import Samples, notes, read
from ..measuring import Method, mean, spread, timed, within
from ..plan import Plan, Request, Results, Sheet, Value, cell

_GAS_TURBINE, _OUTPUTS = "gas_turbine.csv.gz", ["target", "co", "nox"]
SETS = ("gas turbine, 3 outputs", "digits, 26 outputs", "sines and squares, 3 outputs")
ROWS = (150, 500, 1000)
_N_TEST, _N_DRAWS = 500, 3
_N_TREES, _N_BOOSTS, _N_SEARCHES = 200, 300, 20
_WIDTHS, _RIDGES = np.logspace(-3, 1, 9), np.logspace(-8, 3, 23)
_NOTES = notes(
    "matrix_valued.several_outputs",
    n_test=_N_TEST,
    n_searches=_N_SEARCHES,
    n_trees=_N_TREES,
    n_boosts=_N_BOOSTS,
)


def _ours(X: FloatArray, Y: FloatArray, X_test: FloatArray) -> FloatArray:
    from kernelweave.vv_rkhs import MatrixValuedKernelRegressor

    return np.asarray(MatrixValuedKernelRegressor().fit(X, Y).predict(X_test))


def _gaussian(X: FloatArray, Z: FloatArray, width: float) -> FloatArray:
    from scipy.spatial.distance import cdist

    return np.asarray(np.exp(-width / X.shape[1] * cdist(X, Z, "sqeuclidean")))


def _kernel_ridge(X: FloatArray, Y: FloatArray, X_test: FloatArray) -> FloatArray:
    """Return predictions at the width and ridge of the least error at left-out rows."""
    best, least = X_test, np.inf
    for width in _WIDTHS:
        values, vectors = np.linalg.eigh(_gaussian(X, X, width))
        for ridge in len(X) * _RIDGES:
            shrunk = vectors / (np.maximum(values, 0.0) + ridge)
            coef = shrunk @ (vectors.T @ Y)
            error = float(((coef / (shrunk * vectors).sum(axis=1)[:, None]) ** 2).mean())
            if error < least:
                least, best = error, _gaussian(X_test, X, width) @ coef
    return best


def _himalaya(X: FloatArray, Y: FloatArray, X_test: FloatArray) -> FloatArray:
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    def stack(Z: FloatArray) -> FloatArray:
        return np.stack([Z @ X.T / X.shape[1], *(_gaussian(Z, X, width) for width in _WIDTHS)])

    search = {"n_iter": _N_SEARCHES, "alphas": len(X) * _RIDGES, "progress_bar": False}
    model = MultipleKernelRidgeCV("precomputed", solver_params=search, cv=5, random_state=0)
    return np.asarray(model.fit(stack(X), Y).predict(stack(X_test)))


def _trees(name: str) -> Callable[[FloatArray, FloatArray, FloatArray], FloatArray]:
    def predict(X: FloatArray, Y: FloatArray, X_test: FloatArray) -> FloatArray:
        from sklearn import ensemble

        trees = getattr(ensemble, name)(_N_TREES, random_state=0)
        return np.asarray(trees.fit(X, Y).predict(X_test))

    return predict


def _boosted(X: FloatArray, Y: FloatArray, X_test: FloatArray) -> FloatArray:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        iterations=_N_BOOSTS,
        loss_function="MultiRMSE",
        thread_count=1,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
    )
    return np.asarray(model.fit(X, Y).predict(X_test))


# each predicts from X, Y and new X; seconds at 500 rows
METHODS = {
    "ours": Method("kernelweave.vv_rkhs", 1.5, _ours),
    "kernel ridge": Method("sklearn", 2.0, _kernel_ridge),
    "himalaya": Method("himalaya", 10.0, _himalaya),
    "random forest": Method("sklearn", 2.0, _trees("RandomForestRegressor")),
    "extra trees": Method("sklearn", 1.0, _trees("ExtraTreesRegressor")),
    "CatBoost": Method("catboost", 10.0, _boosted),
}


def samples(name: str, path: str, n: int, seed: int) -> Samples:
    """Return n rows of X and Y drawn from a set; `path`: of the gas turbine's file."""
    rng = np.random.RandomState(seed)
    if name == SETS[2]:
        X = rng.uniform(-1.0, 1.0, (n, 6))
        Y = np.column_stack(
            [np.sin(3.0 * X[:, 0]) + X[:, 1], X[:, 2] ** 2 + 0.5 * X[:, 0], X[:, 3] * X[:, 4]]
        )
        return X, Y + 0.1 * Y.std(axis=0) * rng.standard_normal(Y.shape)
    if name == SETS[1]:
        from sklearn.datasets import load_digits

        pixels = load_digits().data[rng.permutation(1797)[:n]]
        return pixels[:, :32], pixels[:, _lower_pixels()]
    table = read(path).iloc[rng.permutation(36733)[:n]]
    return table.drop(columns=[*_OUTPUTS, "year"]).to_numpy(float), table[_OUTPUTS].to_numpy(float)


@cache
def _lower_pixels() -> Index:
    """Return the 26 pixels of the lower half that vary most."""
    from sklearn.datasets import load_digits

    return np.sort(32 + np.argsort(-load_digits().data[:, 32:].std(axis=0), kind="stable")[:26])


def measure(method: str, name: str, path: str, rows: int, seed: int) -> dict[str, float]:
    """Return R² of a method on the rows that do not train it, and CPU seconds."""
    from sklearn.metrics import r2_score
    from sklearn.preprocessing import StandardScaler

    X, Y = samples(name, path, rows + _N_TEST, seed)
    X, Y = (StandardScaler().fit(each[:rows]).transform(each) for each in (X, Y))
    predict = METHODS[method].run
    predict(X[:60], Y[:60], X[:60])  # compiles and loads what is not to be timed
    predicted, seconds = timed(lambda: predict(X[:rows], Y[:rows], X[rows:]))
    return {"score": float(r2_score(Y[rows:], predicted)), "seconds": seconds}


def table(request: Request) -> Plan:
    """A cell per set, number of rows, draw and method, of the methods that are installed."""
    paths = {SETS[0]: request.data_file(_GAS_TURBINE)}
    n_draws = 1 if request.quick else request.repeats or _N_DRAWS
    most = request.sample_limit or ROWS[-1]
    sizes = [150] if request.quick else [rows for rows in ROWS if rows <= most] or [most]
    cells = [
        cell(
            f"{name}/{rows}/{method}/{seed}",
            *(entry.seconds * (rows / 500.0) ** 2, n_draws < _N_DRAWS, measure),
            *(method, name, paths.get(name, ""), rows, seed),
        )
        for rows in sizes
        for seed in range(n_draws)
        for name in SETS
        for method, entry in METHODS.items()
        if entry.is_installed
    ]
    return Plan(cells, lambda results: _present(results, sizes))


def _present(results: Results, sizes: list[int]) -> list[Sheet]:
    sheets = []
    for key, title, digits in (("score", "R²", 3), ("seconds", "CPU seconds", 1)):
        rows: list[list[Value]] = []
        for name in SETS:
            for size in sizes:
                cells = [within(results, name, size, method).values() for method in METHODS]
                rows.append([name, size])
                for of_one, method in zip(cells, METHODS.values(), strict=True):
                    rows[-1] += method.shown([_text([each[key] for each in of_one], digits)])
        sheets.append(Sheet(f"Several outputs: {title}", ("set", "rows", *METHODS), rows, _NOTES))
    return sheets


def _text(values: list[float], digits: int) -> str | None:
    middle, deviation = mean(values), spread(values)
    if middle is None:
        return None
    text = f"{middle:.{digits}f}"
    return text if deviation is None else f"{text} ± {deviation:.{digits}f}"
