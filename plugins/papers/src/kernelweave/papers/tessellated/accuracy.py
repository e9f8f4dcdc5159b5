"""T, Tables 3 and 4: test error or accuracy and CPU seconds of every method.

And the first row of Table 3 at its full size: one fit to 30,000 samples of the gas turbine's
energy yield. C and δ by two folds of 3000 of the training samples, then one fit in float32 to a
certified relative gap of 1e-2. The paper took 13,580 s on eight cores.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.arrays import Rows
from kernelweave.kernels_core.config import effective_threads
from kernelweave.kernels_core.memory import limit_bytes
from kernelweave.workbench.machines import kernel_machine
from numpy.typing import ArrayLike

from ..data import as_unit_range, drawn, folds, load, notes, printed, split
from ..measuring import CLASSES, mean, spread, timed, within
from ..plan import Cell, Plan, Request, Results, Sheet, Value, cell
from .methods import (
    FINE,
    GAP,
    MOST_STEPS,
    MOST_TUNED,
    OF_DICTIONARIES,
    QUICK_STEPS,
    XGBOOST,
    fit_tuned,
    is_installed,
    methods_for,
)


class Task(NamedTuple):
    """A data set of Table 3 or 4.

    The sizes are the paper's split where the file has as many rows, else the test part of the
    paper and the rest to learn from. The note says what stands between the file and the paper's
    set.
    """

    file: str
    n_features: int
    n_train: int
    n_test: int
    note: str = ""


@cache
def sets(task: str) -> dict[str, Task]:
    """Return the sets of a task, regression or classification, from ``sets.csv``."""
    sizes, tasks = ("n_features", "n_train", "n_test"), {}
    for row in printed("tessellated", "sets.csv"):
        if row["task"] == task:
            counts = {name: int(row[name]) for name in sizes}
            tasks[str(row["name"])] = Task(row["file"], **counts, note=row.get("note", ""))
    return tasks


@cache
def theirs() -> dict[tuple[str, str], dict[str, Any]]:
    """Return score, spread and seconds by set and method; empty where the paper prints N/A."""
    return {(row["data"], row["method"]): row for row in printed("tessellated")}


_SMALL = 5000
_SPLITS = 5
# what the text of the paper says of TKL against the mean of the methods, in per cent
_CLAIMS = {CLASSES: 6.77, "regression": -23.6}
_NOTES = notes("tessellated.accuracy", most_steps=MOST_STEPS, quick_steps=QUICK_STEPS)
_TURBINE, _TURBINE_TUNED = "Gas Turbine", 3_000
_DELTAS = (0.1, 0.5)
_SETTINGS: dict[str, Any] = {"epsilon": 0.1, "tol": 1e-2}
_MEMORY = 16 * 2**30
# how the table calls what a cell returns
_FIGURES = {
    "error": "test error (MSE)",
    "tuning_seconds": "CPU seconds, C and δ chosen",
    "fit_seconds": "CPU seconds of the fit",
    "threads": "threads",
    "peak_gib": "peak memory (GiB)",
    "gap": "certified relative gap",
    "lower": "lower bound",
    "upper": "upper bound",
    "C": "C",
    "delta": "δ",
    "n_iter": "steps",
    "n_solves": "learner solves",
    "n_steps": "pair steps in them",
    "n_support": "samples with a coefficient",
}
_ON_TURBINE = notes("tessellated.accuracy turbine")


# seconds of one core, tune·tᵍ + fit·mᵍ for m thousand samples of which t are tuned on, measured
# with 300 to 30,000 samples of the sets below, mostly of the gas turbine; boosted trees,
# AverageMKL, PWMK and CKA are guesses on the generous side
COSTS = {row["method"]: row for row in printed("tessellated", "costs.csv")}
_CUBE = 2.7


def seconds_of(method: str, n_train: int, n_features: int) -> float:
    """Return an estimate of the seconds that a split takes on one core.

    With many features a learned kernel has about as many parameters as there are samples, which
    is slow from a few hundred samples on. A stack of kernels that does not fit in memory is
    refused at once.
    """
    cost, tuned = COSTS[method], min(n_train, MOST_TUNED)
    # the Gram matrices of the paper's dictionary must fit in memory
    most = float((limit_bytes() / (8 * 13 * (n_features + 1))) ** 0.5)
    most = most if method in OF_DICTIONARIES else math.inf
    seconds = cost["tune"] * (tuned / 1000) ** cost["growth"] if tuned / 2 <= most else 0.0
    seconds += cost["fit"] * (n_train / 1000) ** cost["growth"] if n_train <= most else 0.0
    if method == "TKL":
        seconds += _CUBE * (n_features / 10) ** 3 * min(1.0, n_train / 1000)
    return float(max(0.5, seconds))


def measure(
    path: str,
    method: str,
    task: str,
    n_train: int,
    n_test: int,
    seed: int,
    quick: bool,
    unit_target: bool,
) -> dict[str, object]:
    """Fit one method to one split and return its score, CPU seconds and what it chose."""
    X, y = load(path)
    if unit_target:
        y = as_unit_range(y)
    if task == CLASSES:
        y = np.searchsorted(np.unique(y), y).astype(np.float64)
    X, X_test, y, y_test = split(X, y, n_train, n_test, seed, classes=task == CLASSES)
    (estimator, chosen), seconds = timed(lambda: fit_tuned(method, task, X, y, seed, quick=quick))
    predicted = estimator.predict(X_test)
    if task == CLASSES:
        score = 100.0 * np.mean(predicted == y_test)
    else:
        score = np.mean((predicted - y_test) ** 2)
    result = getattr(kernel_machine(estimator), "result_", None)
    gap = None if result is None else float(result.gap)
    return {"score": float(score), "seconds": seconds, "gap": gap, "chosen": chosen}


def _sizes(about: Task, request: Request) -> tuple[int, int, bool]:
    """Return the training and test sizes, and whether they are less than the paper's."""
    limit = request.sample_limit
    if limit is None or about.n_train + about.n_test <= limit:
        return about.n_train, about.n_test, request.quick
    return limit * 4 // 5, min(about.n_test, limit // 5), True


def _cells(name: str, about: Task, task: str, request: Request) -> list[Cell]:
    n_train, n_test, reduced = _sizes(about, request)
    splits = request.repeats or (1 if request.quick or about.n_train > _SMALL else _SPLITS)
    path, share = request.data_file(about.file), 0.3 if reduced else 1
    return [
        cell(
            f"{name}/{method}/{seed}",
            seconds_of(method, n_train, about.n_features) * share,
            *(reduced, measure, path, method, task, n_train, n_test, seed),
            *(request.quick, name == "CA"),
        )
        for method in methods_for(task)
        if is_installed(method) and (method != FINE or not (reduced or about.n_train > _SMALL))
        for seed in range(splits)
    ]


def table(request: Request, task: str) -> Plan:
    """Table 3, mean squared error on six sets, or Table 4, accuracy on six."""
    cells = [
        each for name, about in sets(task).items() for each in _cells(name, about, task, request)
    ]
    return Plan(cells, lambda results: [_sheet(task, results), _summary(task, results)])


def _sheet(task: str, results: Results) -> Sheet:
    """Return ours beside theirs, a row a data set and method."""
    rows: list[list[Value]] = []
    for name in sets(task):
        for method in methods_for(task):
            draws = within(results, name, method).values()
            if method == FINE and not draws:
                continue
            scores = [each["score"] for each in draws]
            gaps = [each["gap"] for each in draws if each["gap"] is not None]
            seconds = mean(each["seconds"] for each in draws)
            bound: Value = float(f"{max(gaps):.1e}") if gaps else ("no bound" if draws else None)
            figures = theirs().get((name, method), {})
            score = figures.get("score", "N/A" if figures else None)
            if not is_installed(method):
                rows.append([name, method, *["not run: not installed"] * 4])
            else:
                rows.append([name, method, mean(scores), spread(scores), seconds, bound])
            rows[-1] += [score, figures.get("spread"), figures.get("seconds")]
    what = "accuracy (%)" if task == CLASSES else "MSE"
    columns = ("data", "method", what, "±", "CPU seconds", "gap")
    heads = (*columns, f"{what} (paper)", "± (paper)", "seconds (paper)")
    on_files = [f"{name}: {about.note}." for name, about in sets(task).items() if about.note]
    short = [f"{row[0]} ({row[5]})" for row in rows if isinstance(row[5], float) and row[5] > GAP]
    if short:
        on_files.append(f"Fits that ended with a gap above {GAP:g}: {', '.join(short)}.")
    return Sheet("Ours compared with the paper's", heads, rows, [*on_files, *_NOTES])


def _summary(task: str, results: Results) -> Sheet:
    """Return the paper's aggregate claim with its figures and with ours."""
    # one boosting among them, as in the paper
    left_out = (FINE, "RBF-SVM", *(["boosted trees"] if is_installed(XGBOOST) else []))
    pooled = [method for method in methods_for(task) if method not in left_out]
    ours, in_print = [], []
    for name in sets(task):
        means = {
            method: mean(each["score"] for each in within(results, name, method).values())
            for method in pooled
        }
        ours.append(_against_all(means))
        scores = {method: theirs().get((name, method), {}).get("score") for method in pooled}
        in_print.append(_against_all(scores))
    what = "accuracy" if task == CLASSES else "MSE"
    rows: list[list[Value]] = [
        ["printed in the text", _CLAIMS[task]],
        ["recomputed from the printed table", _change(in_print)],
        ["ours", _change(ours)],
    ]
    note = f"TKL's {what} over the mean of all methods with a figure, averaged over the data sets."
    title = f"Change of the {what} by TKL, in per cent"
    return Sheet(title, ("source", "per cent"), rows, [note], is_aggregate=True)


def _against_all(scores: Mapping[str, float | None]) -> float | None:
    """Return TKL's score over the mean of all, where there is another."""
    numbers = [score for score in scores.values() if score is not None]
    tkl = scores["TKL"]
    return tkl / float(np.mean(numbers)) if tkl is not None and len(numbers) > 1 else None


def _change(ratios: list[float | None]) -> float | None:
    average = mean(ratio for ratio in ratios if ratio is not None)
    return None if average is None else 100.0 * (average - 1.0)


def measure_turbine(path: str, n_train: int, n_test: int, seed: int) -> dict[str, float]:
    """Choose C and δ, fit once, and return what that took and what came out."""
    from kernelweave.spectahedron import TessellatedKernelRegressor

    X, X_test, y, y_test = split(*load(path), n_train, n_test, seed, classes=False)
    with config_context(memory_limit=_MEMORY):
        chosen, tuning = timed(lambda: choose_turbine(*drawn(X, y, _TURBINE_TUNED, seed), seed))
        model = TessellatedKernelRegressor(units="absolute", dtype="float32", **_SETTINGS)
        model.set_params(**chosen)
        _, fitting = timed(lambda: model.fit(X, y))
        error = float(np.mean((model.predict(X_test) - y_test) ** 2))
        threads = effective_threads()
    result = model.result_
    counts = {name: int(each[-1]) for name, each in result.history.counts.items()}
    return {
        **{name: float(value) for name, value in chosen.items()},
        "tuning_seconds": tuning,
        "fit_seconds": fitting,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "threads": threads,
        "lower": float(result.lower_bound),
        "upper": float(result.upper_bound),
        "gap": float(result.gap),
        "n_iter": int(model.n_iter_),
        "n_solves": counts["n_solves"],
        "n_steps": counts["n_inner_iterations"],
        "n_support": len(model.support_),
        "error": error,
    }


def choose_turbine(X: Rows, y: ArrayLike, seed: int) -> dict[str, float]:
    """Return C and δ with the least squared error over two folds."""
    from kernelweave.spectahedron import TessellatedKernelRegressorCV

    search = TessellatedKernelRegressorCV(
        **_SETTINGS,
        units="absolute",
        delta=_DELTAS,
        cv=folds(2, seed, classes=False),
        scoring="neg_mean_squared_error",
    )
    best: dict[str, float] = search.fit(X, y).best_params_
    return {name: best[name] for name in ("C", "delta")}


def gas_turbine(request: Request) -> Plan:
    """T, Table 3, the row of the gas turbine at its full size."""
    about, limit = sets("regression")[_TURBINE], request.sample_limit
    whole = limit is None or limit >= about.n_train + about.n_test
    n_train = about.n_train if whole or limit is None else limit * 4 // 5
    n_test, seconds = (about.n_test, 400.0) if whole else (n_train // 4, 10.0)
    sizes = (request.data_file(about.file), n_train, n_test, 0)
    return Plan([cell(_TURBINE, seconds, not whole, measure_turbine, *sizes)], _present_turbine)


def _present_turbine(results: Results) -> list[Sheet]:
    printed = theirs()[_TURBINE, "TKL"]
    paper = {"error": printed["score"], "fit_seconds": printed["seconds"], "threads": 8}
    record = results.get(_TURBINE, {})
    rows = [[shown, record.get(name), paper.get(name)] for name, shown in _FIGURES.items()]
    return [Sheet("Gas turbine", ("figure", "ours", "theirs (paper)"), rows, _ON_TURBINE)]
