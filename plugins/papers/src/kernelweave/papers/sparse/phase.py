"""Ours: how recovery of the three true views grows with rows and falls with views."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..measuring import within
from ..plan import Cell, Drawing, Plan, Request, Results, Sheet, Value
from .views import N_TRUE, WIDTH, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS, VIEWS = (50, 75, 100, 150, 200, 300), (10, 20, 40, 80)
_N_SEEDS = 10
_NOTES = (
    f"Views of {WIDTH} columns, {N_TRUE} of which matter, and the fit as in smkl-views: at most "
    "three views, proved to a relative gap of 1e-3. recovery: the share of seeds in which exactly "
    "the three true views are kept; found: how many of the three are, on average.",
)


def figure(request: Request) -> Plan:
    """Plan the phase diagram."""
    seeds = range(2 if request.quick else request.repeats or _N_SEEDS)
    cells = [
        Cell(
            key=f"{n_rows}/{n_views}/{seed}",
            compute=measure,
            arguments={
                "name": "three views, proved",
                "n_train": n_rows,
                "n_views": n_views,
                "seed": seed,
            },
            seconds=2.0 * (n_rows / 300) ** 2 * (n_views / 40),
            is_reduced=request.quick,
        )
        for n_views in (VIEWS[:2] if request.quick else VIEWS)
        for n_rows in ROWS
        for seed in seeds
    ]
    return Plan(cells, _present)


def _present(results: Results) -> list[Sheet | Drawing]:
    share = np.full((len(VIEWS), len(ROWS)), np.nan)
    rows: list[list[Value]] = []
    for i, n_views in enumerate(VIEWS):
        for j, n_rows in enumerate(ROWS):
            found = list(within(results, n_rows, n_views).values())
            if not found:
                continue
            right = [len(set(each["kept"]) & set(each["true"])) for each in found]
            share[i, j] = np.mean([set(each["kept"]) == set(each["true"]) for each in found])
            accuracy = np.mean([each["accuracy"] for each in found])
            seconds = np.median([each["seconds"] for each in found])
            numbers = (share[i, j], np.mean(right), accuracy, seconds)
            rows.append([n_views, n_rows, *(float(value) for value in numbers)])

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.imshow(share, origin="lower", cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        for (i, j), value in np.ndenumerate(share):
            if np.isfinite(value):
                colour = "white" if value > 0.6 else "black"
                ax.text(j, i, f"{value:.1f}", ha="center", va="center", color=colour)
        ax.set(xlabel="training rows", ylabel="views")
        ax.set_xticks(range(len(ROWS)), [str(n) for n in ROWS])
        ax.set_yticks(range(len(VIEWS)), [str(n) for n in VIEWS])

    title = "Recovery of three true views by rows and views"
    text = "Share of draws in which exactly the true views are kept; darker is more."
    columns = ("views", "rows", "recovery", "found, of 3", "accuracy (%)", "CPU seconds, median")
    return [Drawing(title, text, draw, _NOTES), Sheet(title, columns, rows, _NOTES)]
