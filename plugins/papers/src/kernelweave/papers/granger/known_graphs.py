"""Random systems whose graph is known.

AUROC on five DREAM3 networks and on Lorenz-96 against a swept lasso; ours: Lorenz-96 against what
users of other packages would take, and which edges of small systems pass a test.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from kernelweave.granger import GrangerGraph, lasso_var, lorenz96, random_network, score_graph
from kernelweave.kernels_core.arrays import FloatArray

from ..data import folds, notes, values
from ..measuring import Method, mean, plus_minus, timed, within
from ..plan import Plan, Request, Results, Sheet, Value, cell

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

# series, replicates and the true graph
_Known: TypeAlias = tuple[FloatArray, FloatArray | None, npt.NDArray[np.bool_]]

NETWORKS = ("ecoli1", "ecoli2", "yeast1", "yeast2", "yeast3")
_SCORES = ("kernel", "lasso", "lasso_shared", "lasso_best", "kernel_aupr", "lasso_aupr")
_NOTES = notes("granger.known_graphs")


def dream3(series: str, edges: str) -> _Known:
    """Return series (n_times, n), replicates (n_times,) and true graph (n, n) of a network."""
    table = values(series)
    truth = np.zeros((table.shape[1] - 2,) * 2, dtype=bool)
    for source, target, _ in values(edges).astype(int):
        truth[target - 1, source - 1] = True
    return table[:, 2:], table[:, 0], truth


def measure(seed: int, files: list[list[str]] | None) -> dict[str, list[float]]:
    """Return scores, each a list over networks, or of one Lorenz-96 series without files."""
    cv: int | BaseCrossValidator = 5
    if files is None:
        X, truth = lorenz96(8, 200, noise=0.5, random_state=seed)
        sets: list[_Known] = [(X, None, truth)]
    else:
        cv = folds(5, seed, classes=False)
        sets = [dream3(*pair) for pair in files]
    rows = []
    for X, replicates, truth in sets:
        model = GrangerGraph(replicates=replicates, cv=cv, tol=1e-2).fit(X)
        linear = lasso_var(X, replicates=replicates, cv=cv)
        ours, theirs, shared = (
            score_graph(graph, truth)
            for graph in (model.graph_, linear.chosen(), linear.chosen(shared=True))
        )
        areas = [ours.auroc, theirs.auroc, shared.auroc, linear.best_auroc(truth)]
        rows.append([*areas, ours.aupr, theirs.aupr])
    return dict(zip(_SCORES, np.transpose(rows).tolist(), strict=True))


def table(request: Request) -> Plan:
    """A cell per set and seed."""
    folder = "granger/dream3_size10_"
    files = [
        [request.data_file(f"{folder}{name}{end}.csv") for end in ("", "_edges")]
        for name in NETWORKS
    ]
    cells = [
        cell(f"{label}/{seed}", 20.0, request.quick, measure, seed, given)
        for label, given in (("DREAM3, size 10", files), ("Lorenz-96", None))
        for seed in range(1 if request.quick else 5)
    ]
    return Plan(cells, _present)


def _present(results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    for label in dict.fromkeys(key.partition("/")[0] for key in results):
        each = list(within(results, label).values())
        values = np.array([[one[name] for name in _SCORES] for one in each])
        rows.append([label, len(each), *map(plus_minus, values.mean(axis=2).T)])
        if values.shape[2] > 1:
            for name, of_one in zip(NETWORKS, np.moveaxis(values, 2, 0), strict=True):
                rows.append([f"of which {name}", len(each), *map(plus_minus, of_one.T)])
    areas = ("kernel", "lasso", "lasso with one penalty", "best lasso")
    scores = (*(f"{name}, AUROC" for name in areas), "kernel, AP", "lasso, AP")
    title = "Known graphs: AUROC, and average precision (AP)"
    return [Sheet(title, ["set", "seeds", *scores], rows, _NOTES)]


# forcing, and time between two rows
LORENZ = {
    f"F = {forcing:g}, rows {dt:g} apart": (forcing, dt)
    for dt in (0.05, 0.1)
    for forcing in (10.0, 40.0)
}
_METHOD_NODES, _METHOD_TIMES, _METHOD_SEEDS = 10, 250, 3
_N_TREES = 500
_LINK_LEVEL, _THRESHOLD = 0.2, 0.05
_ON_METHODS = notes(
    "granger.known_graphs methods",
    n_nodes=_METHOD_NODES,
    n_times=_METHOD_TIMES,
    n_trees=_N_TREES,
    link_level=_LINK_LEVEL,
    threshold=_THRESHOLD,
)


def _pcmci(X: FloatArray, linear: bool = True, lag_0: bool = False) -> FloatArray:
    """Return sizes of the statistics at lag 1, by partial correlations or nearest neighbours.

    With ``lag_0`` by PCMCI+, which also looks for links within a row.
    """
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.cmiknn import CMIknn
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    test = ParCorr() if linear else CMIknn(significance="fixed_thres", workers=1)
    level = _LINK_LEVEL if linear else _THRESHOLD
    search = PCMCI(dataframe=DataFrame(X), cond_ind_test=test, verbosity=0)
    if lag_0:
        results = search.run_pcmciplus(tau_min=0, tau_max=1, pc_alpha=level)
    else:
        results = search.run_pcmci(tau_min=1, tau_max=1, pc_alpha=level, alpha_level=level)
    return np.asarray(np.abs(results["val_matrix"][:, :, 1]).T)


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


_GRAPH = "kernelweave.granger"
# each returns weights[i, j] of j on i from a series
METHODS = {
    "GrangerGraph": Method(_GRAPH, 5.0, lambda X: GrangerGraph(pairs=True).fit(X).graph_),
    "GrangerGraph(pairs=False)": Method(
        _GRAPH, 3.0, lambda X: GrangerGraph(pairs=False).fit(X).graph_
    ),
    "PCMCI, ParCorr": Method("tigramite", 1.0, _pcmci),
    "PCMCI, CMIknn": Method("tigramite", 6.0, partial(_pcmci, linear=False)),
    "PCMCI+, ParCorr": Method("tigramite", 1.0, partial(_pcmci, lag_0=True)),
    "PCMCI+, CMIknn": Method("tigramite", 20.0, partial(_pcmci, linear=False, lag_0=True)),
    "VAR, F test": Method("statsmodels", 0.2, _f_tests),
    "VAR of each pair, F test": Method("statsmodels", 0.5, partial(_f_tests, by_pair=True)),
    "random forest": Method("sklearn", 8.0, _forest),
    "lasso VAR": Method(_GRAPH, 1.0, lambda X: lasso_var(X).chosen()),
}


def measure_method(
    method: str, forcing: float, dt: float, seed: int, n_nodes: int, n_times: int
) -> dict[str, float]:
    """Return the AUROC of a method on one system, and its CPU seconds."""
    _warm(method)
    X, truth = lorenz96(n_nodes, n_times, forcing=forcing, dt=dt, random_state=seed)
    graph, seconds = timed(lambda: METHODS[method].run(X))
    return {"auroc": score_graph(graph, truth).auroc, "seconds": seconds}


@cache
def _warm(method: str) -> None:
    """Let a method compile or load its code before it is timed."""
    METHODS[method].run(lorenz96(4, 60, noise=0.5, random_state=0)[0])


def methods(request: Request) -> Plan:
    """A cell per system, method and seed, of the methods that are installed."""
    n_seeds = 1 if request.quick else request.repeats or _METHOD_SEEDS
    most = 100 if request.quick else _METHOD_TIMES
    n_times = min(most, request.sample_limit or most)
    reduced = n_times < _METHOD_TIMES or n_seeds < _METHOD_SEEDS
    cells = [
        cell(
            *(f"{system}/{method}/{seed}", entry.seconds, reduced, measure_method),
            *(method, *about, seed, _METHOD_NODES, n_times),
        )
        for system, about in LORENZ.items()
        for seed in range(n_seeds)
        for method, entry in METHODS.items()
        if entry.is_installed
    ]
    return Plan(cells, _present_methods)


def _present_methods(results: Results) -> list[Sheet]:
    heads, rows = ["method"], []
    for system in LORENZ:
        heads += [f"{system}: AUROC", "least", "CPU s"]
    for method, entry in METHODS.items():
        row: list[Value] = [method]
        for system in LORENZ:
            each = within(results, system, method).values()
            areas = [one["auroc"] for one in each]
            figures = mean(areas), min(areas, default=None), mean(one["seconds"] for one in each)
            row += entry.shown(figures)
        rows.append(row)
    title = "Lorenz-96 by several methods: AUROC, mean over seeds and the least, and CPU seconds"
    return [Sheet(title, heads, rows, _ON_METHODS)]


_SYSTEMS: dict[str, dict[str, Any]] = {
    "linear": {"kind": "linear"},
    "saturating": {"kind": "saturating"},
    "even": {"kind": "even"},
    "mixed, memory 0.8": {"memory": 0.8},
    "none, memory 0.9": {"degree": 0.0, "memory": 0.9},
}
_N_SEEDS = 40
_N_NODES, _N_TIMES, _N_DRAWS = 5, 150, 59
_LEVEL, _NULL_LEVEL = 0.1, 0.05
_LAMS = (1.0, 0.3, 0.1, 0.03)
_ON_DECISIONS = notes(
    "granger.known_graphs decisions",
    n_nodes=_N_NODES,
    n_times=_N_TIMES,
    listed=", ".join(map(str, _LAMS)),
    n_draws=_N_DRAWS,
    level=_LEVEL,
    null_level=_NULL_LEVEL,
)


def decide(
    system: dict[str, Any], seed: int, n_nodes: int, n_times: int, n_draws: int
) -> dict[str, object]:
    """Return counts of edges of one random system, and CPU seconds."""
    X, truth = random_network(n_nodes, n_times, **system, random_state=seed)
    model = GrangerGraph(
        lams=_LAMS,
        tol=1e-2,
        significance="permutation",
        n_draws=n_draws,
        level=_LEVEL,
        random_state=seed,
    )
    _, seconds = timed(lambda: model.fit(X))
    pairs = ~np.eye(n_nodes, dtype=bool)
    p, adjusted = model.p_values_, model.adjusted_p_values_
    assert p is not None
    assert adjusted is not None
    edges, passed = truth[pairs], adjusted[pairs] <= _LEVEL
    return {
        "edges": int(edges.sum()),
        "found": int((edges & passed).sum()),
        "false": int((~edges & passed).sum()),
        "null": int((p[pairs][~edges] <= _NULL_LEVEL).sum()),
        "without": int((~edges).sum()),
        "seconds": seconds,
    }


def decisions(request: Request) -> Plan:
    """A cell per kind of system and seed."""
    n_seeds = 1 if request.quick else request.repeats or _N_SEEDS
    n_times = min(_N_TIMES, request.sample_limit or _N_TIMES)
    cells = [
        cell(
            *(f"{name}/{seed}", 3.0, n_seeds < _N_SEEDS or n_times < _N_TIMES, decide),
            *(system, seed, _N_NODES, n_times, _N_DRAWS),
        )
        for seed in range(n_seeds)
        for name, system in _SYSTEMS.items()
    ]
    return Plan(cells, _present_decisions)


def _present_decisions(results: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    for name in _SYSTEMS:
        each = list(within(results, name).values())
        driven = [one for one in each if one["edges"]]
        passed = [max(1, one["found"] + one["false"]) for one in each]
        rows.append(
            [
                name,
                len(each),
                plus_minus(one["found"] / one["edges"] for one in driven) if driven else "no edges",
                plus_minus(one["false"] / n for one, n in zip(each, passed, strict=True)),
                sum(one["false"] > 0 for one in each),
                plus_minus(one["null"] / one["without"] for one in each if one["without"]),
                float(np.mean([one["seconds"] for one in each])) if each else None,
            ]
        )
    heads = ("links", "systems", "found", "false", "systems with a false edge", "null", "CPU s")
    return [Sheet("Edges that pass, of random systems", heads, rows, _ON_DECISIONS)]
