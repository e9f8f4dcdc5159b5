"""Does learning the kernel beat a tuned Gaussian kernel? Paired, nested, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.workbench.displays.colours import SERIES

from ..measuring import CLASSES, mean, within
from ..plan import Cell, Drawing, Plan, Request, Sheet, Value
from .intervals import Interval, corrected_resampled, of_independent
from .protocol import (
    LEARNED,
    METHODS,
    MOST_ROWS,
    N_FOLDS,
    OTHER,
    QUICK_ROWS,
    RIVAL,
    SETS,
    measure,
    source,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUICK_FOLDS = 2
_SECONDS = {RIVAL: 0.5, "TKL": 3.0, "SimpleMKL": 5.0, OTHER: 3.0}
_AGAINST = (*LEARNED, OTHER)
_NOTES = (
    f"Sets: nineteen with at most 13 features, from scikit-learn and the five papers; of each "
    f"{MOST_ROWS} random samples at most. Score: accuracy, or R², in per cent.",
    f"Nested cross-validation: {N_FOLDS} outer folds, the same for every method; inside each, two "
    "folds choose the settings. Gaussian: C in .1 … 1000 by γ in .001 … 10, standardised features. "
    "TKL: C in .001 … 10 by δ in .1, .5. SimpleMKL: ten Gaussians and three polynomials on all "
    "features, C in .1 … 100. In regression C and ε scale with the targets. Boosted trees: 50 to "
    "650 of them. The sets, methods, grids and intervals were fixed before a result was seen.",
    "Difference: score minus the tuned Gaussian's, in points, the mean over the folds; its 95 % "
    "interval is the corrected resampled t of Nadeau and Bengio (2003), √(1/k + n_test/n_train) "
    "for √(1/k), as folds share training samples. All sets: Student's interval of the mean over "
    "sets. No correction for the number of intervals: of twenty, one misses by chance.",
    f"A quick run takes {QUICK_ROWS} samples, {_QUICK_FOLDS} of the folds and coarser grids.",
)


def study(request: Request) -> Plan:
    """Plan the study: a cell per set, method and outer fold."""
    most = min(QUICK_ROWS if request.quick else MOST_ROWS, request.sample_limit or MOST_ROWS)
    cells = [
        Cell(
            key=f"{name}/{method}/{fold}",
            compute=measure,
            arguments={
                "where": source(name, request),
                "task": task,
                "method": method,
                "fold": fold,
                "most": most,
                "quick": request.quick,
            },
            seconds=_SECONDS[method] * (0.15 if request.quick else 1.0),
            is_reduced=most < MOST_ROWS or request.quick,
        )
        for fold in range(_QUICK_FOLDS if request.quick else N_FOLDS)
        for name, (_, task) in SETS.items()
        for method in METHODS
    ]
    return Plan(cells, present)


def present(results: Mapping[str, Any]) -> list[Sheet | Drawing]:
    """Return a verdict over all sets, a picture, the scores, and the differences."""
    found = {name: _differences(results, name) for name in SETS}
    return [_verdict(found), _drawing(found), _scores(results), _intervals(found)]


def _differences(results: Mapping[str, Any], name: str) -> dict[str, Interval]:
    """Return the interval of each method's difference to the rival, where two folds have both."""
    rival = within(results, name, RIVAL)
    found = {}
    for method in _AGAINST:
        ours = within(results, name, method)
        paired = [ours[fold] - rival[fold] for fold in sorted(rival) if fold in ours]
        if len(paired) > 1:
            found[method] = corrected_resampled(paired, 1.0 / (N_FOLDS - 1))
    return found


def _scores(results: Mapping[str, Any]) -> Sheet:
    rows: list[list[Value]] = []
    for name, (_, task) in SETS.items():
        means = [mean(within(results, name, method).values()) for method in METHODS]
        rows.append([name, "accuracy" if task == CLASSES else "R²", *means])
    return Sheet("Mean score, per cent", ("data", "score", *METHODS), rows, ())


def _words(found: Interval | None) -> str | None:
    if found is None:
        return None
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def _intervals(found: Mapping[str, dict[str, Interval]]) -> Sheet:
    rows = [
        [name, *(_words(each.get(method)) for method in _AGAINST)] for name, each in found.items()
    ]
    title = f"Points above the tuned Gaussian ({RIVAL}), with 95 % intervals"
    return Sheet(title, ("data", *_AGAINST), rows, _NOTES)


def _verdict(found: Mapping[str, dict[str, Interval]]) -> Sheet:
    rows: list[list[Value]] = []
    for method in _AGAINST:
        each = [intervals[method] for intervals in found.values() if method in intervals]
        signs = [interval.sign for interval in each]
        over_sets = of_independent([interval.mean for interval in each]) if len(each) > 1 else None
        medians = float(np.median([interval.mean for interval in each])) if each else None
        counts: list[Value] = [signs.count(1), signs.count(0), signs.count(-1)]
        rows.append([method, *(counts if each else [None] * 3), medians, _words(over_sets)])
    heads = ("surely better", "undecided", "surely worse", "median of the sets", "mean of the sets")
    title = "On how many sets does it beat the tuned Gaussian, and by how many points?"
    return Sheet(title, ("method", *heads), rows, ())


def _drawing(found: Mapping[str, dict[str, Interval]]) -> Drawing:
    def draw(figure: Figure) -> None:
        from matplotlib.ticker import NullLocator

        figure.set_size_inches(6.4, 6.0)
        ax = figure.subplots()
        names = list(found)
        for number, method in enumerate(_AGAINST):
            style = SERIES[number]
            at = [i for i, name in enumerate(names) if method in found[name]]
            each = [found[names[i]][method] for i in at]
            ax.errorbar(
                [interval.mean for interval in each],
                [i + 0.24 * (number - 1) for i in at],
                xerr=[
                    [interval.mean - interval.low for interval in each],
                    [interval.high - interval.mean for interval in each],
                ],
                fmt=style.get("marker") or "o",
                color=style["color"],
                markersize=4,
                linewidth=1,
                label=method,
            )
        ax.axvline(0.0, color="0.4", linewidth=1)
        ax.set_xscale("symlog", linthresh=5.0)
        ticks = (-40, -20, -10, -5, 0, 5, 10, 20, 40)
        ax.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel("points above the tuned Gaussian")
        ax.grid(axis="x", alpha=0.2)
        figure.legend(loc="outside upper center", ncols=len(_AGAINST), frameon=False)

    description = (
        "For each set the mean difference of three methods to the tuned Gaussian, with its 95 % "
        "interval; the scale is linear within five points and logarithmic outside."
    )
    return Drawing("Difference to the tuned Gaussian", description, draw)
