"""Ours: which edges pass a test, over random systems whose graph is known."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from kernelweave.granger import GrangerGraph, random_network

from ..measuring import interval, timed, within
from ..plan import Cell, Plan, Request, Results, Sheet, Value

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
_NOTES = (
    f"{_N_NODES} nodes, {_N_TIMES} rows, a driver per node on average; λ by cross-validation among "
    f"{', '.join(map(str, _LAMS))}, {_N_DRAWS} draws per series; an edge passes where its p-value, "
    "against all draws of its source, adjusted by Benjamini and Hochberg over all edges of the "
    f"system, is at most {_LEVEL}.",
    "found: of the true edges of a system, the share that passes. false: of what passes, the share "
    "that is false, 0 where nothing passes; its expectation is what the level bounds. null: of "
    f"pairs without an edge, the share whose p-value is at most {_NULL_LEVEL} as it is. Means over "
    "systems with 95 % intervals of Student's t.",
)


def measure(
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
    _, seconds = timed(lambda: model.fit(X), time.process_time)
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


def table(request: Request) -> Plan:
    """A cell per kind of system and seed."""
    n_seeds = 1 if request.quick else request.repeats or _N_SEEDS
    n_times = min(_N_TIMES, request.sample_limit or _N_TIMES)
    cells = [
        Cell(
            key=f"{name}/{seed}",
            compute=measure,
            arguments={
                "system": system,
                "seed": seed,
                "n_nodes": _N_NODES,
                "n_times": n_times,
                "n_draws": _N_DRAWS,
            },
            seconds=3.0,
            is_reduced=n_seeds < _N_SEEDS or n_times < _N_TIMES,
        )
        for seed in range(n_seeds)
        for name, system in _SYSTEMS.items()
    ]
    return Plan(cells, _present)


def _present(found: Results) -> list[Sheet]:
    rows: list[list[Value]] = []
    for name in _SYSTEMS:
        each = list(within(found, name).values())
        driven = [one for one in each if one["edges"]]
        passed = [max(1, one["found"] + one["false"]) for one in each]
        rows.append(
            [
                name,
                len(each),
                _share(one["found"] / one["edges"] for one in driven) if driven else "no edges",
                _share(one["false"] / n for one, n in zip(each, passed, strict=True)),
                sum(one["false"] > 0 for one in each),
                _share(one["null"] / one["without"] for one in each if one["without"]),
                float(np.mean([one["seconds"] for one in each])) if each else None,
            ]
        )
    heads = ("links", "systems", "found", "false", "systems with a false edge", "null", "CPU s")
    return [Sheet("Edges that pass, of random systems", heads, rows, _NOTES)]


def _share(values: Iterable[float]) -> str | None:
    """Return the mean and the half-width of its interval."""
    low, middle, _ = interval(values)
    if middle is None:
        return None
    return f"{middle:.3f}" if low is None else f"{middle:.3f} ± {middle - low:.3f}"
