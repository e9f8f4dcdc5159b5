"""What predictions add for each group, drawn as a caterpillar: a point and its error a group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..displays.axes import FAINT, LOWER, open_frame, write_thousands
from ..models import Model
from ..pages import Picture, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# groups that a picture shows; of more, those at both ends and an even choice between them
_SHOWN, _AT_AN_END = 40, 12
# of a normal distribution, 95 %
_DEVIATIONS = 1.96


def groups_chapter(model: Model) -> dict[str, object] | None:
    """Return a sentence and a picture a grouping; ``None`` of models without groups."""
    machine = model.machine
    if model.header.algorithm != "evidence" or model.header.classes:
        return None
    try:
        effects = machine.group_effects_
    except (AttributeError, ValueError):
        # no column names groups, or effects are in no unit of the target
        return None
    if "output" in effects:
        return None
    sentences = [
        "What predictions add for each group beside what the other columns say, with 95 % "
        "intervals. Effects are shrunk: that of a group of few rows is nearer to 0. Intervals tell "
        "of the mean row of a group, not of single rows.",
    ]
    told = [each for each in model.machine.certificate_.work.split("; ") if "slopes of" in each]
    sentences += [f"{each[0].upper()}{each[1:]}." for each in told]
    parts = effects.groupby("grouping", sort=False)
    pictures = [_picture(model, str(name), part) for name, part in parts]
    return {"title": "Effects of groups", "sentences": sentences, "pictures": pictures}


def shown_places(n_groups: int) -> list[int]:
    """Return which of sorted groups are drawn: all, or the ends and an even choice between them.

    Examples
    --------
    >>> from kernelweave.workbench.report.groups import shown_places
    >>> len(shown_places(25)), len(shown_places(1000)), shown_places(1000)[11:13]
    (25, 40, [11, 12])
    """
    if n_groups <= _SHOWN:
        return list(range(n_groups))
    low, high = _AT_AN_END, n_groups - _AT_AN_END - 1
    middle = np.linspace(low, high, _SHOWN - 2 * _AT_AN_END).round().astype(int).tolist()
    return [*range(low), *middle, *range(high + 1, n_groups)]


def _picture(model: Model, name: str, effects: Any) -> Picture:
    effects = effects.sort_values("effect", kind="stable")
    shown = effects.iloc[shown_places(len(effects))]
    n_rows = effects.n_rows
    text = f"{len(effects):,} groups of {n_rows.min():,} to {n_rows.max():,} rows"
    if len(shown) < len(effects):
        text += f", of which the {_AT_AN_END} at either end and an even choice of the others"
    unit = f"of {model.header.target}" if " by " not in name else "a standard deviation"
    draw = partial(_draw, shown, f"effect ({unit})")
    return picture(name, f"{text}.", draw, height=1.2 + 0.16 * len(shown))


def _draw(shown: Any, label: str, figure: Figure) -> None:
    ax = figure.subplots()
    places = np.arange(len(shown))
    sure = (shown.effect.abs() > _DEVIATIONS * shown.error).to_numpy()
    for which, colour in ((~sure, FAINT), (sure, LOWER)):
        part = shown[which]
        ax.errorbar(
            part.effect, places[which], xerr=_DEVIATIONS * part.error, fmt="o", color=colour,
            markersize=3, linewidth=1,
        )  # fmt: skip
    ax.axvline(0.0, color=FAINT, linewidth=1)
    ax.set_yticks(places, [str(each)[:26] for each in shown.group], fontsize=6)
    ax.set_ylim(-0.8, len(shown) - 0.2)
    ax.set_xlabel(label)
    open_frame(ax, "x")
    write_thousands(ax.xaxis)
