"""Tables 6 and 7: lower bounds, objectives and gaps at the authors' settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..data import notes
from ..plan import Cell, Plan, Request, Results, Sheet, Value
from .fits import STARTS, cells_of, figure_of, on_starts
from .sets import SETS, compared_sheet, ours, read, set_cell, size_of

BOUNDS = ("soc", "soc-random", "sdp-3x3", "saddle")
# training samples up to which a conic relaxation is worth its time
_LARGEST = {"soc": 1100, "soc-random": 300, "sdp-3x3": 306, "saddle": 10_000}
# and those of a quick run, which leaves nothing out
_QUICK_LARGEST = {"soc": 500, "soc-random": 100, "sdp-3x3": 60, "saddle": 500}
_SECONDS = {"soc": 10.0, "soc-random": 200.0, "sdp-3x3": 400.0, "saddle": 2.0}
_SETTINGS = notes("sparse.objectives settings")
_NOTES = (*_SETTINGS, *notes("sparse.objectives"))
_ON_BOUNDS = notes("sparse.objectives bounds")
_ON_OBJECTIVES = notes("sparse.objectives objectives")
# our bounds and our starts, and the columns of Table 6 that have theirs
_PRINTED_BOUNDS = {"soc": "SOC", "soc-random": "SOC random", "sdp-3x3": "3×3", "saddle": "full"}
_PRINTED_STARTS = {"random": "random", "3×3": "from 3×3", "relaxation": "from full"}
_ON_GAPS = notes("sparse.objectives gaps")


def bound(
    path: str,
    columns: list[int] | None,
    limit: int | None,
    C: float,
    lam: float,
    k0: int,
    relaxation: str,
) -> float:
    """Return a lower bound, proved from multipliers, on the published training part."""
    from kernelweave.kernels_core import default_kernels
    from kernelweave.relaxations import lower_bound

    parts = read(path, columns, limit)
    grams = default_kernels().fit_grams(parts.X).grams
    result = lower_bound(
        grams, parts.y, C=C, lam=lam, k0=k0, relaxation=relaxation, tol=1e-5, check=False
    )
    return float(result.bound)


def _bound_cells(request: Request, bounds: tuple[str, ...]) -> list[Cell]:
    cells = []
    for name in SETS:
        n = size_of(request, name)
        for relaxation in bounds:
            limits: dict[str, int] = {}
            if request.quick:
                limits["limit"] = min(n, _QUICK_LARGEST[relaxation])
            elif n > _LARGEST[relaxation]:
                continue
            effort = _SECONDS[relaxation]
            cells.append(
                set_cell(request, name, relaxation, bound, effort, relaxation=relaxation, **limits)
            )
    return cells


def _bound_of(request: Request, results: Results, relaxation: str, name: str) -> Value:
    """Return a bound, or why it is left out."""
    most = _LARGEST[relaxation]
    left_out = not request.quick and size_of(request, name) > most
    value: Value = results.get(f"{name}/{relaxation}", f"n > {most}" if left_out else None)
    return value


def _head(request: Request, relaxation: str) -> str:
    """Return the relaxation, in a quick run with the samples that it takes at most."""
    most = _QUICK_LARGEST[relaxation]
    few = request.quick and most < request.most_samples
    return f"{relaxation}, n ≤ {most}" if few else relaxation


def table(request: Request, number: int) -> Plan:
    """Plan Table 6 or 7."""
    return _objectives(request) if number == 6 else _gaps(request)


def _objectives(request: Request) -> Plan:
    """Table 6: lower bounds, and objectives of three starts and of the proved optimum."""

    def present(results: Results) -> list[Sheet]:
        bounds = {_head(request, b): partial(_bound_of, request, results, b) for b in BOUNDS}
        sizes = notes(f"sparse.objectives{' quick' if request.quick else ''} sizes")
        printed = tuple(_PRINTED_BOUNDS.values())
        figures = {s: partial(figure_of, request, results, s, "objective") for s in STARTS}
        return [
            compared_sheet("Lower bounds", bounds, 6, printed, (*_NOTES, *_ON_BOUNDS, *sizes)),
            compared_sheet(
                *("Objectives", figures, 6, tuple(_PRINTED_STARTS.values())),
                (*_SETTINGS, *on_starts(request), *_ON_OBJECTIVES),
            ),
        ]

    return Plan([*_bound_cells(request, BOUNDS), *cells_of(request, STARTS)], present)


def _gaps(request: Request) -> Plan:
    """Table 7: gaps in per cent of the lower bound, as the paper divides them."""

    def present(results: Results) -> list[Sheet]:
        def gap(heuristic: str, name: str) -> Value:
            lower = results.get(f"{name}/saddle")
            upper = figure_of(request, results, heuristic, "objective", name)
            if lower is None or not isinstance(upper, float):
                return upper if isinstance(upper, str) else None
            return 100.0 * (upper / float(lower) - 1.0)

        def best(name: str) -> Value:
            gaps = [gap(heuristic, name) for heuristic in STARTS[:-1]]
            return min((each for each in gaps if isinstance(each, float)), default=None)

        def proved(name: str) -> Value:
            share = ours(results, "optimum", "gap")(name)
            return None if share is None else 100.0 * float(share)

        figures: dict[str, Callable[[str], Value]] = {s: partial(gap, s) for s in STARTS[:-1]}
        figures |= {"best": best, "optimum": partial(gap, "optimum"), "proved by search": proved}
        printed = ("random", "3×3", "full", "best")
        remarks = (*_NOTES, *on_starts(request), *_ON_GAPS)
        return [compared_sheet("Gaps to the relaxation (%)", figures, 7, printed, remarks)]

    return Plan([*_bound_cells(request, ("saddle",)), *cells_of(request, STARTS)], present)
