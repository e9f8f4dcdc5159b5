"""Is a kernel chosen by the evidence better than what a user would pick today? The plan."""

from __future__ import annotations

from collections.abc import Mapping

from ..plan import Cell, Drawing, Plan, Request, Sheet
from .rivals import METHODS, N_FOLDS, OURS, QUICK_ROWS, SIZES, measure, reason_not_run, rows_trained
from .sets import SETS, address
from .showing import SizeResults, drawing, scores, shares, verdict

_QUICK_FOLDS = 2
# a quick run shows that everything works, on one small set of each kind
_QUICK_SETS = ("wine", "diabetes", "Gu and Wahba")
_QUICK_METHODS = (OURS, "RBF-SVM", "HistGB", "CatBoost")


def study(request: Request) -> Plan:
    """Plan the study: a cell per set, method, number of rows and outer fold."""
    most = request.subsample or SIZES[-1]
    sizes = [QUICK_ROWS] if request.quick else [size for size in SIZES if size <= most] or [most]
    n_folds = _QUICK_FOLDS if request.quick else min(request.repeats or N_FOLDS, N_FOLDS)
    names = _QUICK_SETS if request.quick else tuple(SETS)
    methods = _QUICK_METHODS if request.quick else tuple(METHODS)
    cells = [
        _cell(name, method, rows, fold, request)
        for i, rows in enumerate(sizes)
        for fold in range(n_folds)
        for name in names
        for method in methods
        if not reason_not_run(method, SETS[name])
        if i == 0 or rows_trained(SETS[name], rows) > sizes[i - 1]
    ]

    def present(results: Mapping[str, object]) -> list[Sheet | Drawing]:
        shown: list[Sheet | Drawing] = []
        for rows in sizes:
            found = SizeResults(results, rows, names, methods)
            shown += [verdict(found), shares(found), *scores(found), drawing(found)]
        return shown

    return Plan(cells, present)


def _cell(name: str, method: str, rows: int, fold: int, request: Request) -> Cell:
    source, quick = SETS[name], request.quick
    n = rows_trained(source, rows)
    return Cell(
        key=f"{name}/{method}/{rows}/{fold}",
        compute=measure,
        arguments={
            "where": address(source, request),
            "task": source.task,
            "method": method,
            "fold": fold,
            "rows": n,
            "quick": quick,
        },
        seconds=METHODS[method].seconds * (n / 300.0) ** 1.7 * (0.3 if quick else 1.0),
        is_reduced=quick or (request.repeats or N_FOLDS) < N_FOLDS,
    )
