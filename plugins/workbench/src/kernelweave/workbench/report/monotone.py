"""Columns with which predictions may only rise or fall: how they are before and after that."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..displays.axes import FAINT, LOWER, open_frame, write_thousands
from ..models import Model
from ..pages import Picture, picture
from ..scoring.scores import Score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WAYS = {1: "rise", -1: "fall"}


def monotone_chapter(model: Model) -> dict[str, object] | None:
    """Return the sentences and pictures of monotone columns; ``None`` of other models."""
    machine = model.machine
    finding = getattr(getattr(machine, "certificate_", None), "monotone", None)
    monotone = getattr(machine, "_monotone", None)
    if finding is None or monotone is None:
        return None
    before = Score(finding.score_before, finding.error_before).formatted(3)
    after = Score(finding.score, finding.error).formatted(3)
    subject = "Predictions"
    if model.header.classes and len(model.header.classes) == 2:
        subject = f"Probabilities of {model.header.classes[-1]}"
    sentences = [
        f"{subject} {_ways(finding.signs)}, for any two rows that differ in these columns alone. "
        "They are put in order after the fit.",
        f"The cross-validated score is {after}; without that it would be {before}.",
    ]
    pictures = [_picture(model, each) for each in monotone.columns]
    return {"title": "Columns with a direction", "sentences": sentences, "pictures": pictures}


def _ways(signs: tuple[tuple[str, int], ...]) -> str:
    """Return which columns predictions rise and fall with."""
    parts = []
    for sign, verb in _WAYS.items():
        names = [name for name, own in signs if own == sign]
        if names:
            last = f" and {names[-1]}" if len(names) > 1 else names[-1]
            parts.append(f"{verb} with {', '.join(names[:-1])}{last}")
    return " and ".join(parts)


def _picture(model: Model, column: Any) -> Picture:
    from kernelweave.evidence.monotone.curves import monotone_curves

    curve = monotone_curves(model.machine, column.name)
    wrong = "none" if curve.wrong_before == 0.0 else f"{curve.wrong_before:.1%}"
    what = "prediction"
    if model.header.classes:
        what = f"probability of {model.header.classes[-1]}"
    text = (
        f"Mean {what} of training rows with {column.name} at each value: before (grey) and after "
        f"(blue) predictions may only {_WAYS[column.sign]} with it. Before, {wrong} of the steps "
        "that single rows take along the curve went the other way."
    )
    return picture(column.name, text, partial(_draw, curve, column, what, model), height=2.9)


def _draw(curve: Any, column: Any, what: str, model: Model, figure: Figure) -> None:
    ax = figure.subplots()
    values = curve.grid
    if column.year >= 0:
        values = np.floor(values).astype("datetime64[D]")
    ax.plot(values, curve.before, color=FAINT, linestyle="--", marker="", label="before")
    ax.plot(values, curve.after, color=LOWER, marker="", label="after")
    shown = what if model.header.classes else f"mean {model.header.target}"
    ax.set(xlabel=column.name, ylabel=shown)
    ax.legend(frameon=False, fontsize=8)
    open_frame(ax)
    write_thousands(ax.yaxis)
