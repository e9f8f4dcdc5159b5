"""Ours: the best three columns, beside solvers that are made for columns.

With one linear kernel a column, ``Kⱼ = xⱼxⱼᵀ``, sparse kernel weights choose columns: the fit is
``min Σ wⱼ²/2βⱼ + C Σ loss + λ‖β‖²`` over at most k₀ columns.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray

from ..data import notes
from ..measuring import Method, mean, settled, within
from ..plan import Plan, Request, Results, Sheet, Value, cell

_K0, _C, _LAM, _EPSILON, _TOL = 3, 0.1, 1.0, 0.1, 1e-4
# the ridge of the others: that of ours where the chosen columns share the weight evenly
_RIDGE = _K0 / _C
_SIGNAL, _N_TEST, _LIMIT, _N_SEEDS = 10.0, 1000, 120.0, 3
# OKRidge decomposes the matrix of all products of columns
_MOST_COLUMNS = 2000
DESIGNS = {"equicorrelated": 0.5, "Toeplitz": 0.9}
_SIZES = ((300, 100), (300, 1000), (1000, 1000), (300, 10_000))
_NOTES = notes(
    "sparse.best_subset",
    k0=_K0,
    C=_C,
    lam=_LAM,
    ridge=_RIDGE,
    epsilon=_EPSILON,
    limit=_LIMIT,
    tol=_TOL,
)


class SampledColumns(NamedTuple):
    """Standardised training and test rows, and the columns that the targets depend on."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    true: list[int]


class Found(NamedTuple):
    """Coefficients of shape (q,), the intercept, and the relative gap that is proved, if any."""

    coef: FloatArray
    intercept: float
    gap: float | None


def made(design: str, n_rows: int, n_columns: int, seed: int) -> SampledColumns:
    """Return Gaussian rows; the targets are the sum of three columns at even distances, and noise.

    Columns have the correlation ½ (equicorrelated) or .9 to the power of their distance (Toeplitz).
    """
    from scipy.signal import lfilter

    rng, rho = np.random.default_rng(seed), DESIGNS[design]
    X = rng.standard_normal((n_rows + _N_TEST, n_columns))
    if design == "Toeplitz":
        X[:, 1:] *= np.sqrt(1.0 - rho**2)
        X = lfilter([1.0], [1.0, -rho], X, axis=1)
    else:
        X = np.sqrt(1.0 - rho) * X + np.sqrt(rho) * rng.standard_normal((len(X), 1))
    true = [n_columns * (2 * i + 1) // (2 * _K0) for i in range(_K0)]
    signal = X[:, true].sum(axis=1)
    y = signal + rng.standard_normal(len(X)) * signal.std() / np.sqrt(_SIGNAL)
    train = slice(n_rows)
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    y = (y - y[train].mean()) / y[train].std()
    return SampledColumns(X[train], y[train], X[n_rows:], y[n_rows:], true)


def _ours(X: FloatArray, y: FloatArray, true: list[int], *, classes: bool) -> Found:
    from kernelweave.kernels_core.grams import LowRankStack
    from kernelweave.qp_smo import SVC, SVR
    from kernelweave.relaxations import solve_global

    learner = SVC(_C) if classes else SVR(_C, _EPSILON)
    stack = LowRankStack(X, np.arange(X.shape[1] + 1))
    setting: dict[str, Any] = {"lam": _LAM, "k0": _K0, "tol": _TOL, "max_time": _LIMIT}
    best = solve_global(stack, y, learner=learner, **setting)
    solution = best.solution
    coef = best.weights * (X.T @ solution.dual_coef[0])
    return Found(coef, float(solution.intercept[0]), best.gap)


def price(X: FloatArray, y: FloatArray, true: list[int], *, classes: bool) -> float:
    """Return what El0ps charges a column: between what the third true one and a fourth are worth.

    The geometric mean; the fourth is the column that the residual of the three wants most.
    """
    from sklearn.linear_model import Ridge
    from sklearn.svm import LinearSVC

    def fit(columns: list[int]) -> tuple[float, FloatArray]:
        part = X[:, columns]
        if classes:
            model: Any = LinearSVC(C=1.0 / _RIDGE, fit_intercept=False, dual=False, tol=1e-8)
        else:
            model = Ridge(_RIDGE, fit_intercept=False)
        w = np.ravel(model.fit(part, y).coef_)
        rest = np.maximum(1.0 - y * (part @ w), 0.0) * y if classes else y - part @ w
        loss = float(rest @ rest) * (1.0 if classes else 0.5)
        return loss + 0.5 * _RIDGE * float(w @ w), rest

    value, rest = fit(true)
    worth = np.abs(X.T @ rest)
    worth[true] = 0.0
    fourth = value - fit([*true, int(np.argmax(worth))])[0]
    third = min(fit([j for j in true if j != out])[0] for out in true) - value
    return float(np.sqrt(third * fourth))


def _el0ps(X: FloatArray, y: FloatArray, true: list[int], *, classes: bool) -> Found:
    from el0ps.datafit import Leastsquares, Squaredhinge
    from el0ps.penalty import L2norm
    from el0ps.solver import BnbSolver, Status

    fit = (Squaredhinge if classes else Leastsquares)(np.ascontiguousarray(y))
    charge = price(X, y, true, classes=classes)
    solver = BnbSolver(relative_gap=_TOL, time_limit=_LIMIT)
    found = solver.solve(fit, L2norm(0.5 * _RIDGE), np.asfortranarray(X), charge)
    return Found(np.asarray(found.x), 0.0, _TOL if found.status is Status.OPTIMAL else None)


def _okridge(X: FloatArray, y: FloatArray, true: list[int], *, classes: bool) -> Found:
    try:  # in no extra: it asks for NumPy below 2, and runs with a newer one
        from okridge.tree import BNBTree
    except ImportError as error:
        raise ImportError("OKRidge is missing: pip install --no-deps okridge") from error
    wide = X.shape[1] >= X.shape[0]
    with redirect_stdout(io.StringIO()):
        tree = BNBTree(X, y, lambda2=_RIDGE, tighten_bound_via_ADMM=not wide)
        if wide:
            # the tuning of a step that is not taken: of more columns than rows it fails
            tree.data.rho_ADMM_is_finetuned = True
        _, coef, gap, _, _ = tree.solve(_K0, gap_tol=_TOL, time_limit=_LIMIT)
    return Found(np.asarray(coef), 0.0, float(gap))


METHODS = {
    "ours, ε-insensitive": Method("kernelweave.relaxations", 5.0, _ours),
    "El0ps, squares": Method("el0ps", 30.0, _el0ps),
    "OKRidge, squares": Method("okridge", 60.0, _okridge),
    "ours, hinge": Method("kernelweave.relaxations", 5.0, _ours),
    "El0ps, squared hinge": Method("el0ps", 30.0, _el0ps),
}


def measure(name: str, design: str, n_rows: int, n_columns: int, seed: int) -> dict[str, object]:
    """Choose three columns of one draw: which, the score on other rows, gap and CPU seconds."""
    data = made(design, n_rows, n_columns, seed)
    classes = name.endswith("hinge")
    run: Callable[..., Found] = METHODS[name].run
    y, y_test = (np.sign(data.y), np.sign(data.y_test)) if classes else (data.y, data.y_test)
    if name.startswith("El0ps"):
        # compiles for each loss
        run(data.X[:50, :5], y[:50], [0, 1, 2], classes=classes)
    found, seconds = settled(lambda: run(data.X, y, data.true, classes=classes))
    values = data.X_test @ found.coef + found.intercept
    right = np.sign(values) == y_test if classes else 1.0 - (y_test - values) ** 2 / y_test.var()
    kept = np.flatnonzero(np.abs(found.coef) > 1e-8).tolist()
    return {
        "kept": kept,
        "true": data.true,
        "score": 100.0 * float(np.mean(right)),
        "gap": found.gap,
        "seconds": seconds,
    }


def _reason_not_run(name: str, n_columns: int) -> str:
    if not METHODS[name].is_installed:
        return f"{METHODS[name].needs} is not installed"
    return "many columns" if "OKRidge" in name and n_columns > _MOST_COLUMNS else ""


def table(request: Request) -> Plan:
    """Plan the best three columns of each design and size by each method."""
    sizes = _SIZES[:1] if request.quick else _SIZES
    seeds = range(1 if request.quick else request.repeats or _N_SEEDS)
    cells = [
        cell(
            f"{design}/{n_rows}/{n_columns}/{name}/{seed}",
            *(METHODS[name].seconds * n_columns / 1000, request.quick, measure),
            *(name, design, n_rows, n_columns, seed),
        )
        for n_rows, n_columns in sizes
        for design in DESIGNS
        for seed in seeds
        for name in METHODS
        if not _reason_not_run(name, n_columns)
    ]
    return Plan(cells, lambda results: [_sheet(results, sizes)])


def _sheet(results: Results, sizes: tuple[tuple[int, int], ...]) -> Sheet:
    rows: list[list[Value]] = []
    for n_rows, n_columns in sizes:
        for design in DESIGNS:
            for name in METHODS:
                found = list(within(results, design, n_rows, n_columns, name).values())
                start: list[Value] = [design, n_rows, n_columns, name]
                reason = _reason_not_run(name, n_columns)
                rows.append([*start, *([reason, *["not run"] * 4] if reason else _figures(found))])
    heads = (
        *("design", "rows", "columns", "method", "found, of 3", "kept"),
        *("score (%)", "proved", "CPU seconds, median"),
    )
    return Sheet("The best three columns", heads, rows, _NOTES)


def _figures(found: list[Any]) -> list[Value]:
    if not found:
        return [None] * 5
    gaps = [each["gap"] for each in found]
    n_proved = sum(gap is not None and gap <= _TOL for gap in gaps)
    return [
        mean(len(set(each["kept"]) & set(each["true"])) for each in found),
        mean(len(each["kept"]) for each in found),
        mean(each["score"] for each in found),
        f"{n_proved} of {len(found)}",
        float(np.median([each["seconds"] for each in found])),
    ]
