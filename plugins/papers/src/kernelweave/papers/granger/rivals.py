"""Ours: Lorenz-96 against what users of other packages would take, AUROC and CPU seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from kernelweave.granger import GrangerGraph, lasso_var, lorenz96, score_graph
from kernelweave.kernels_core.arrays import FloatArray

from ..measuring import mean, timed, within
from ..plan import Cell, Plan, Request, Results, Sheet, Value

# forcing, and time between two rows
SYSTEMS = {
    f"F = {forcing:g}, rows {dt:g} apart": (forcing, dt)
    for dt in (0.05, 0.1)
    for forcing in (10.0, 40.0)
}
_N_NODES, _N_TIMES, _N_SEEDS = 10, 250, 3
_N_TREES = 500
_LEVEL, _THRESHOLD = 0.2, 0.05
_NOTES = (
    f"AUROC over ordered pairs of {_N_NODES} different series of {_N_TIMES} rows without noise, "
    "one lag for every method. CPU s: processor seconds of one graph, one thread.",
    "A pair is ranked by: the weight (ours); the size of the last test's statistic (PCMCI, "
    "tigramite); the F statistic of the test that the source's past has no effect, given all "
    "series or the pair alone (statsmodels); the importance of the source in a forest of "
    f"{_N_TREES} trees; the lasso's coefficient, a penalty per target by five folds.",
    f"PCMCI's first step keeps links at level {_LEVEL} with partial correlations. With nearest "
    f"neighbours it keeps conditional informations above {_THRESHOLD}: p-values by shuffling take "
    "minutes a graph.",
)


class GraphRival(NamedTuple):
    """A method: the module it needs, CPU seconds of a graph, weights[i, j] of j on i from X."""

    needs: str
    seconds: float
    graph: Callable[[FloatArray], FloatArray]


def _ours(X: FloatArray, pairs: bool = True) -> FloatArray:
    return GrangerGraph(pairs=pairs).fit(X).graph_


def _pcmci(X: FloatArray, linear: bool = True) -> FloatArray:
    """Return sizes of the statistics, of partial correlations or by nearest neighbours."""
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.cmiknn import CMIknn
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    test = ParCorr() if linear else CMIknn(significance="fixed_thres", workers=1)
    level = _LEVEL if linear else _THRESHOLD
    search = PCMCI(dataframe=DataFrame(X), cond_ind_test=test, verbosity=0)
    found = search.run_pcmci(tau_min=1, tau_max=1, pc_alpha=level, alpha_level=level)
    return np.asarray(np.abs(found["val_matrix"][:, :, 1]).T)


def _f_tests(X: FloatArray, by_pair: bool = False) -> FloatArray:
    from statsmodels.tsa.api import VAR

    n, whole = X.shape[1], None if by_pair else VAR(X).fit(1)
    graph = np.zeros((n, n))
    for i, j in np.argwhere(~np.eye(n, dtype=bool)).tolist():
        model, ends = (VAR(X[:, [i, j]]).fit(1), (0, 1)) if whole is None else (whole, (i, j))
        graph[i, j] = model.test_causality(*ends, kind="f").test_statistic
    return graph


def _forest(X: FloatArray) -> FloatArray:
    from sklearn.ensemble import RandomForestRegressor

    trees = RandomForestRegressor(_N_TREES, random_state=0)
    return np.array([trees.fit(X[:-1], x).feature_importances_ for x in X[1:].T])


def _lasso(X: FloatArray) -> FloatArray:
    return lasso_var(X).chosen()


_GRAPH = "kernelweave.granger"
METHODS = {
    "GrangerGraph": GraphRival(_GRAPH, 5.0, _ours),
    "GrangerGraph(pairs=False)": GraphRival(_GRAPH, 3.0, partial(_ours, pairs=False)),
    "PCMCI, ParCorr": GraphRival("tigramite", 1.0, _pcmci),
    "PCMCI, CMIknn": GraphRival("tigramite", 6.0, partial(_pcmci, linear=False)),
    "VAR, F test": GraphRival("statsmodels", 0.2, _f_tests),
    "VAR of each pair, F test": GraphRival("statsmodels", 0.5, partial(_f_tests, by_pair=True)),
    "random forest": GraphRival("sklearn", 8.0, _forest),
    "lasso VAR": GraphRival(_GRAPH, 1.0, _lasso),
}


def measure(
    method: str, forcing: float, dt: float, seed: int, n_nodes: int, n_times: int
) -> dict[str, float]:
    """Return the AUROC of a method on one system, and its CPU seconds."""
    _warm(method)
    X, truth = lorenz96(n_nodes, n_times, forcing=forcing, dt=dt, random_state=seed)
    graph, seconds = timed(lambda: METHODS[method].graph(X), time.process_time)
    return {"auroc": score_graph(graph, truth).auroc, "seconds": seconds}


@cache
def _warm(method: str) -> None:
    """Let a method compile or load its code before it is timed."""
    METHODS[method].graph(lorenz96(4, 60, noise=0.5, random_state=0)[0])


def table(request: Request) -> Plan:
    """A cell per system, method and seed, of the methods that are installed."""
    n_seeds = 1 if request.quick else request.repeats or _N_SEEDS
    n_times = min(_N_TIMES, request.sample_limit or _N_TIMES, 100 if request.quick else _N_TIMES)
    cells = [
        Cell(
            key=f"{system}/{method}/{seed}",
            compute=measure,
            arguments={
                "method": method,
                "forcing": forcing,
                "dt": dt,
                "seed": seed,
                "n_nodes": _N_NODES,
                "n_times": n_times,
            },
            seconds=rival.seconds,
            is_reduced=n_times < _N_TIMES or n_seeds < _N_SEEDS,
        )
        for system, (forcing, dt) in SYSTEMS.items()
        for seed in range(n_seeds)
        for method, rival in METHODS.items()
        if _installed(rival)
    ]
    return Plan(cells, _present)


def _installed(rival: GraphRival) -> bool:
    return find_spec(rival.needs) is not None


def _present(found: Results) -> list[Sheet]:
    heads, rows = ["method"], []
    for system in SYSTEMS:
        heads += [f"{system}: AUROC", "least", "CPU s"]
    for method, rival in METHODS.items():
        row: list[Value] = [method]
        for system in SYSTEMS:
            each = within(found, system, method).values()
            areas = [one["auroc"] for one in each]
            if areas:
                row += [mean(areas), min(areas), mean(one["seconds"] for one in each)]
            else:
                row += ([None] if _installed(rival) else ["not installed"]) * 3
        rows.append(row)
    title = "Lorenz-96 by several methods: AUROC, mean over seeds and the least, and CPU seconds"
    return [Sheet(title, heads, rows, _NOTES)]
