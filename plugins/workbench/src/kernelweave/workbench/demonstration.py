"""The demo: the evidence kernel and two baselines on one split, and its figure."""

from __future__ import annotations

import io
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.tables import Target, choose_target, read_table, read_target
from numpy.typing import ArrayLike

from .displays.axes import open_frame
from .displays.colours import FAINT, LOWER, SERIES
from .errors import CommandError
from .progress import fit_bar
from .scoring import Coverage, rivals, score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# The demo shall end in seconds: larger tables are refused and sent to `fit`.
MAX_FEATURES = 13
MAX_ROWS = 2500
HELD_OUT = 0.3
SEED = 0
CONFIDENCE = 0.9
OURS = "evidence kernel"
OTHERS = {"tuned RBF SVM": "rbf", "HistGradientBoosting": "boosting"}
SIGNATURE = "kernelweave demo"
# Curves in one panel that are still told apart, points of each, and rows with intervals that do not
# cover one another.
_STRONGEST = 3
_GRID = 40
_MAX_DRAWN = 60
# As many as scikit-learn's `permutation_importance` takes.
_REPEATS = 5


class Demonstration:
    """Everything the demo shows, computed once.

    `name`: a data set by name or a file whose last column is the target. `found`: scores and
    seconds of each model, and what ours says of itself: what ``--json`` prints.
    """

    def __init__(self, name: str) -> None:
        table = read_table(name)
        self.target = read_target(table, choose_target(table, None))
        columns = [each for each in table.columns if each != self.target.column]
        _refuse_what_takes_minutes(name, len(columns), len(table.frame))
        self.name = name
        self._split(table.as_given(columns), self.target.values)
        self.found: dict[str, Any] = {
            "data": name,
            "task": self.target.task,
            "n_samples": len(table.frame),
            "n_features": len(columns),
            "n_train": len(self.y),
            "n_test": len(self.y_test),
            "scores": {label: self._scored(label) for label in (OURS, *OTHERS)},
        }
        self.found |= self._said_by_ours()

    @property
    def classes(self) -> bool:
        """Whether labels are predicted."""
        return self.target.task == "classification"

    def _split(self, X: pd.DataFrame, y: ArrayLike) -> None:
        from sklearn.model_selection import train_test_split

        self.X, self.X_test, self.y, self.y_test = train_test_split(
            X, y, test_size=HELD_OUT, random_state=SEED, stratify=y if self.classes else None
        )

    def _scored(self, label: str) -> dict[str, float]:
        """Fit one of the models and return its held-out score, its error and seconds."""
        model = self._made(label)
        started = time.perf_counter()
        with fit_bar(f"{label}: fitting {len(self.y)} rows"):
            model.fit(self.X, self.y)
        seconds = time.perf_counter() - started
        if label == OURS:
            self.model = model
        predicted, weight = np.asarray(model.predict(self.X_test)), np.ones(len(self.y_test))
        found = score(np.asarray(self.y_test), predicted, weight, self.target.task)
        return {"score": found.value, "error": found.error, "seconds": seconds}

    def _made(self, label: str) -> BaseEstimator:
        if label != OURS:
            rival = next(each for each in rivals() if each.name == OTHERS[label])
            return rival.make(self.target.task, SEED)
        from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor

        return EvidenceKernelClassifier() if self.classes else EvidenceKernelRegressor()

    def _said_by_ours(self) -> dict[str, object]:
        """Return the held-out score by the folds, intervals' coverage, and what columns matter."""
        from sklearn.inspection import permutation_importance

        drop = permutation_importance(
            self.model, self.X_test, self.y_test, n_repeats=_REPEATS, random_state=SEED
        )["importances_mean"]
        order = np.argsort(-drop)
        said = {
            "held_out_score": self.model.held_out_score_,
            "held_out_error": self.model.held_out_error_,
            "importance": {str(self.X.columns[j]): float(drop[j]) for j in order},
        }
        if not self.classes:
            low, high = self.model.predict_interval(self.X_test, CONFIDENCE)
            inside = (low <= self.y_test) & (self.y_test <= high)
            predicted = self.model.predict(self.X_test)
            said["coverage"] = asdict(Coverage.of(CONFIDENCE, inside, predicted, self.X_test))
        return said

    def target_sentence(self) -> str:
        """Return what is predicted, for people."""
        return _target_sentence(self.target)


def _refuse_what_takes_minutes(name: str, n_features: int, n_rows: int) -> None:
    for count, most, what in ((n_features, MAX_FEATURES, "features"), (n_rows, MAX_ROWS, "rows")):
        if count > most:
            raise CommandError(
                f"{name} has {count} {what}, and the demo takes at most {most}: use `kernelweave "
                f"fit {name}`"
            )


def _target_sentence(target: Target) -> str:
    if target.task == "regression":
        return f"regression, targets from {target.values.min():g} to {target.values.max():g}"
    labels, counts = np.unique(target.values, return_counts=True)
    parts = [f"{label} {count}" for label, count in zip(labels, counts, strict=True)]
    return f"classification: {', '.join(parts)}"


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
