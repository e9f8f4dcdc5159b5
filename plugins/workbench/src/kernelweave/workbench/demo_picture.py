"""The picture of the demo: scores, what the strongest columns do, predictions and the truth."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import FloatArray

from .demonstration import CONFIDENCE, Demonstration
from .displays.axes import open_frame
from .displays.colours import FAINT, LOWER, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIGNATURE = "kernelweave demo"
# Curves in one panel that are still told apart, points of each, and rows with intervals that do not
# cover one another.
_STRONGEST = 3
_GRID = 40
_MAX_DRAWN = 60


def demo_picture(demo: Demonstration) -> bytes:
    """Return a PNG of three panels.

    `demo`: what was learned, and what it is compared with. A PNG that says it is the demo's.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 3, width_ratios=[0.9, 1.0, 1.2])
    _scores(axes[0], demo)
    _effects(axes[1], demo)
    (_labels if demo.classes else _intervals)(axes[2], demo)
    figure.suptitle(
        f"{demo.name}: evidence kernel, fitted on {demo.found['n_train']} rows",
        fontsize=13,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": SIGNATURE})
    return buffer.getvalue()


def _scores(ax: Axes, demo: Demonstration) -> None:
    """Draw a point with two standard errors for each model, ours in colour and on top."""
    scores = list(demo.found["scores"].items())
    for place, (label, each) in enumerate(reversed(scores)):
        colour = LOWER if label == scores[0][0] else FAINT
        below = 2.0 * each["error"]
        # an accuracy of one is rounded
        above = max(0.0, min(below, 1.0 - each["score"]))
        ax.errorbar(
            each["score"], place, xerr=[[below], [above]],
            fmt="o", markersize=8, color=colour, capsize=4,
        )  # fmt: skip
        ax.annotate(
            f"{each['score']:z.3f}", (each["score"], place), (0, 10),
            textcoords="offset points", ha="center",
        )  # fmt: skip
    ax.set_yticks(range(len(scores)), [label.replace(" ", "\n") for label, _ in reversed(scores)])
    ax.set_ylim(-0.5, len(scores) - 0.4)
    measure = "accuracy" if demo.classes else "R²"
    ax.set_xlabel(f"{measure}, ± two standard errors")
    ax.set_title(
        f"{measure[:1].upper()}{measure[1:]} on {demo.found['n_test']} test rows", fontsize=11
    )
    open_frame(ax, "x")


def _effects(ax: Axes, demo: Demonstration) -> None:
    """Draw the mean prediction along each of the strongest columns of numbers."""
    numbers = [
        name
        for name, drop in demo.found["importance"].items()
        if drop > 0 and pd.api.types.is_numeric_dtype(demo.X[name])
    ]
    for name, style in zip(numbers[:_STRONGEST], SERIES, strict=False):
        values = np.quantile(demo.X[name].dropna(), np.linspace(0.0, 1.0, _GRID))
        look = style | {"marker": ""}
        ax.plot(np.linspace(0, 100, _GRID), _along(demo, name, values), label=name, **look)
    ax.set_xlabel("percentile of the column")
    label = f"mean probability of {demo.model.classes_[-1]}" if demo.classes else "mean prediction"
    ax.set_ylabel(label)
    ax.set_title("Effects of the most important columns", fontsize=11)
    if numbers:
        ax.legend(frameon=False, fontsize=9)
    open_frame(ax)


def _along(demo: Demonstration, name: str, values: FloatArray) -> list[float]:
    """Return the mean prediction where every row has the same value of a column."""
    rows = demo.X.iloc[:: max(1, len(demo.X) // 100)]
    means = []
    for value in values:
        changed = rows.assign(**{name: value})
        model = demo.model
        given = model.predict_proba(changed)[:, -1] if demo.classes else model.predict(changed)
        means.append(float(np.mean(given)))
    return means


def _intervals(ax: Axes, demo: Demonstration) -> None:
    """Draw held-out rows against their predictions, with intervals."""
    X, y = demo.X_test[:_MAX_DRAWN], demo.y_test[:_MAX_DRAWN]
    mean = demo.model.predict(X)
    low, high = demo.model.predict_interval(X, CONFIDENCE)
    reach = np.maximum([mean - low, high - mean], 0.0)
    ax.errorbar(y, mean, yerr=reach, fmt="o", markersize=3, color=LOWER, ecolor="#9DC9E6")
    ends = [min(y.min(), mean.min()), max(y.max(), mean.max())]
    ax.plot(ends, ends, color=FAINT, linewidth=1)
    ax.set_xlabel("true value")
    ax.set_ylabel("prediction")
    ax.set_title(
        f"{CONFIDENCE:.0%} intervals contain {demo.found['coverage']['share']:.1%} of "
        f"{demo.found['n_test']} test rows",
        fontsize=11,
    )
    open_frame(ax)


def _labels(ax: Axes, demo: Demonstration) -> None:
    """Draw how often the predicted class is right, against its probability."""
    proba = demo.model.predict_proba(demo.X_test)
    sure = proba.max(axis=1)
    right = demo.model.classes_[proba.argmax(axis=1)] == demo.y_test
    groups = np.array_split(np.argsort(sure), min(6, len(sure)))
    points = np.array([(sure[rows].mean(), right[rows].mean()) for rows in groups])
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    ax.plot(*points.T, marker="o", color=LOWER)
    ax.set_xlim(min(0.5, points.min()) - 0.03, 1.03)
    ax.set_ylim(min(0.5, points.min()) - 0.03, 1.03)
    ax.set_xlabel("probability of the predicted class")
    ax.set_ylabel("accuracy on test rows")
    ax.set_title("Calibration", fontsize=11)
    open_frame(ax)


def is_demo_picture(path: Path) -> bool:
    """Whether a file is a PNG that the demo wrote.

    `path`: any existing file. Returns: by the text in its first bytes.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(1024)
    except OSError:
        return False
    return start.startswith(b"\x89PNG\r\n") and f"Software\0{SIGNATURE}".encode() in start
