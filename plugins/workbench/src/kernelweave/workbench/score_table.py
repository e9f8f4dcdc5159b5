"""Models and their scores as a table that fits the screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .scoring.metrics import SHORT
from .scoring.scores import Score

if TYPE_CHECKING:
    from rich.console import Console

# between columns
_GAP = 2
# columns that give way on a narrow screen, the first first
_GIVES_WAY = ("seconds", "--models", "log loss", "MAE", "balanced", "AUC", "RMSE")


def print_scores(
    screen: Console,
    rows: Sequence[Mapping[str, Any]],
    *,
    measure: str,
    rare: bool,
    unit: str = "",
    named: bool = False,
) -> None:
    """Print models with their scores, and a line on those that learned nothing.

    - `rows`: each with ``title``, ``score``, ``error``, ``also``, ``seconds``, and where it has
      them ``name``, ``ours``, ``learned``, ``cut`` and the ``away`` that is shown; columns that do
      not fit are left out, and no score is cut
    - `measure`: what ``score`` is; `unit`: of the target
    - `rare`: whether accuracy says little, so that what else is known stands first
    - `named`: whether names of the command line have a column
    """
    from rich.table import Table
    from rich.text import Text

    columns = _columns(rows, measure, rare, named)
    widths = {n: max(map(len, [n, *cells])) + _GAP for n, cells in columns.items()}
    while len(columns) > 2 and sum(widths[name] for name in columns) > screen.width:
        going = next((name for name in _GIVES_WAY if name in columns), None)
        if going is None:
            break
        del columns[going]
    table = Table(box=None, padding=(0, _GAP // 2), header_style="dim")
    for name in columns:
        right = name == "seconds" or name in _GIVES_WAY[2:]
        in_unit = f"{name} [{unit}]" if unit and name in ("RMSE", "MAE") else name
        table.add_column(
            Text(in_unit), justify="right" if right else "left", no_wrap=name != "", overflow="fold"
        )
    for at, row in enumerate(rows):
        style = "bold cyan" if row.get("ours") else "cyan"
        cells = [cells[at] for cells in columns.values()]
        table.add_row(Text(cells[0], style=style), *cells[1:])
    screen.print(table)
    if not all(row.get("learned", True) for row in rows):
        screen.print("  † not significantly better than a constant prediction")
    if any(row.get("cut") for row in rows):
        screen.print("  * did not converge")


def _columns(
    rows: Sequence[Mapping[str, Any]], measure: str, rare: bool, named: bool
) -> dict[str, list[str]]:
    """Return the cells of each column, in the order that they are shown."""
    metrics = dict.fromkeys(name for row in rows for name in row.get("also", {}))
    # one that is asked for stands once, and first
    extra = [name for name in metrics if not measure.startswith(SHORT[name])]
    rare = rare and measure.endswith("accuracy")
    also = {name: [shown(name, row.get("also", {}).get(name)) for row in rows] for name in extra}
    scores = {measure: [Score(row["score"], row["error"]).formatted(3) for row in rows]}
    titles = [row["title"] + ("" if row.get("learned", True) else " †") for row in rows]
    columns = {"": titles} | (also | scores if rare else scores | also)
    columns["seconds"] = [f"{row['seconds']:.1f}{'*' if row.get('cut') else ''}" for row in rows]
    if any(row.get("away") for row in rows):
        columns["difference"] = [row.get("away", "") for row in rows]
    if named:
        columns["--models"] = [row["name"] for row in rows]
    return columns


def shown(name: str, value: float | None) -> str:
    """Return a score that `also_scored` names; a dash where there is none."""
    if value is None:
        return "–"
    return amount(value) if name in ("RMSE", "MAE") else f"{value:.3f}"


def amount(value: float) -> str:
    """Return a positive number with four digits, or all before its point.

    Examples
    --------
    >>> from kernelweave.workbench.score_table import amount
    >>> amount(13.9), amount(34567.8), amount(0.01234), amount(0.0)
    ('13.90', '34,568', '0.01234', '0')
    """
    if value == 0.0 or not 1e-4 < value < 1e9:
        return f"{value:.4g}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(value)))}f}"


def away(row: Mapping[str, Any]) -> str:
    """Return the score of another model less that of this one."""
    return Score(-row["behind"], row["behind_error"]).formatted(3, sign="+")
