"""The demo: the evidence kernel, two baselines and two proved kernels on one split."""

from __future__ import annotations

import io
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.tables import choose_target, read_table, read_target
from numpy.typing import ArrayLike

from .displays import ConvergenceDisplay
from .displays.axes import FAINT, LOWER, open_frame
from .errors import CommandError
from .machines import kernel_machine
from .model_catalog import make_model, models_for_task
from .progress import fit_bar
from .scoring.other_models import other_models
from .scoring.scores import Coverage, measure_name, score

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# The demo shall end in seconds: larger tables are refused and sent to `fit`.
MAX_FEATURES = 13
MAX_ROWS = 2500
HELD_OUT = 0.3
SEED = 0
CONFIDENCE = 0.9
OURS = "evidence kernel"
SIGNATURE = "kernelweave demo"
OTHERS = {"tuned RBF SVM": "rbf", "HistGradientBoosting": "boosting"}
# Models whose fit ends with a proof, as `--model` and `--set` name them; not tuned.
TESSELLATED = "tessellated, C = 100"
PROVED: dict[str, tuple[str, dict[str, Any]]] = {
    TESSELLATED: ("tkl", {"C": 100.0}),
    "3 of 8 kernels, C = 1": ("sparse", {"k0": 3}),
}
# Panels of effects, and rows with intervals that do not cover one another.
_STRONGEST = 3
_MAX_DRAWN = 60
# As many as scikit-learn's `permutation_importance` takes.
_REPEATS = 5


class Demonstration:
    """Everything the demo shows, computed once.

    `name`: a data set by name or a file whose last column is the target. `figures`: scores and
    seconds of each model, the proved gap of those that have one, and what the evidence kernel says
    of itself: what ``--json`` prints.
    """

    def __init__(self, name: str) -> None:
        table = read_table(name)
        self.target = read_target(table, choose_target(table, None))
        columns = [each for each in table.columns if each != self.target.column]
        _refuse_what_takes_minutes(name, len(columns), len(table.frame))
        self.name = name
        self.models: dict[str, BaseEstimator] = {}
        self._split(table.inputs(columns), self.target.values)
        self.figures: dict[str, Any] = {
            "data": name,
            "task": self.target.task,
            "n_samples": len(table.frame),
            "n_features": len(columns),
            "n_train": len(self.y),
            "n_test": len(self.y_test),
            "scores": {label: self._scored(label) for label in (OURS, *OTHERS)},
            "proved": {
                label: {**self._scored(label), "gap": self._gap(label)}
                for label, (kind, _) in PROVED.items()
                if kind in models_for_task(self.target.task)
            },
        }
        self.figures |= self._own_figures()

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
        """Fit one of the models and return its score on test rows, its error and seconds."""
        model = self._made(label)
        started = time.perf_counter(), time.process_time()
        with fit_bar(f"{label}: fitting {len(self.y)} rows"):
            model.fit(self.X, self.y)
        seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        self.models[label] = model
        predicted, weight = np.asarray(model.predict(self.X_test)), np.ones(len(self.y_test))
        test_score = score(np.asarray(self.y_test), predicted, weight, self.target.task)
        return {
            "score": test_score.value,
            "error": test_score.error,
            "seconds": seconds,
            "cpu_seconds": cpu,
        }

    def _made(self, label: str) -> BaseEstimator:
        if label in OTHERS:
            model = next(each for each in other_models() if each.name == OTHERS[label])
            return model.make(self.target.task, SEED)
        if label in PROVED:
            kind, settings = PROVED[label]
            return make_model(kind, self.target.task, settings, seed=SEED)
        from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor

        return EvidenceKernelClassifier() if self.classes else EvidenceKernelRegressor()

    def _gap(self, label: str) -> float:
        """Return the relative gap between the bounds of the optimum."""
        return float(kernel_machine(self.models[label]).certificate_.gap)

    @property
    def model(self) -> BaseEstimator:
        """The evidence kernel."""
        return self.models[OURS]

    def _own_figures(self) -> dict[str, object]:
        """Return the held-out score by the folds, the coverage, and what columns matter."""
        from sklearn.inspection import permutation_importance

        drop = permutation_importance(
            self.model, self.X_test, self.y_test, n_repeats=_REPEATS, random_state=SEED
        )["importances_mean"]
        order = np.argsort(-drop)
        figures = {
            "held_out_score": self.model.held_out_score_,
            "held_out_error": self.model.held_out_error_,
            "importance": {str(self.X.columns[j]): float(drop[j]) for j in order},
        }
        if self.classes:
            sets = self.model.predict_set(self.X_test, CONFIDENCE)
            inside = sets[np.arange(len(sets)), np.searchsorted(self.model.classes_, self.y_test)]
        else:
            low, high = self.model.predict_interval(self.X_test, CONFIDENCE)
            inside = (low <= self.y_test) & (self.y_test <= high)
        predicted = self.model.predict(self.X_test)
        figures["coverage"] = asdict(Coverage.of(CONFIDENCE, inside, predicted, self.X_test))
        return figures

    @property
    def target_sentence(self) -> str:
        """The task, with the range of the targets or the number of rows of each class."""
        values = self.target.values
        if not self.classes:
            return f"regression, targets from {values.min():g} to {values.max():g}"
        counts = zip(*np.unique(values, return_counts=True), strict=True)
        return f"classification: {', '.join(f'{label} {count}' for label, count in counts)}"


def _refuse_what_takes_minutes(name: str, n_features: int, n_rows: int) -> None:
    for count, most, what in ((n_features, MAX_FEATURES, "features"), (n_rows, MAX_ROWS, "rows")):
        if count > most:
            raise CommandError(
                f"{name} has {count} {what}, and the demo takes at most {most}: use `kernelweave "
                f"fit {name}`"
            )


def demo_picture(demo: Demonstration) -> bytes:
    """Return the figure as a PNG, marked as the demo's so that it may be overwritten.

    Scores, effects of the strongest columns, how sure predictions are, and the bounds of a proof.
    """
    from kernelweave.evidence import EffectDisplay
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16.5, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(1, 4, width_ratios=[1.2, 1.0, 1.2, 1.1])
    left, middle, right, last = parts
    _draw_scores(left.subplots(), demo)
    n_effects = min(_STRONGEST, len(demo.X.columns))
    axes: Any = list(middle.subplots(n_effects, 1, squeeze=False)[:, 0])
    effects = EffectDisplay.from_estimator(demo.model, n_columns=n_effects, n_pairs=0, ax=axes)
    axes[0].set_ylabel("")
    for spare in axes[len(effects.effects) :]:
        spare.set_visible(False)
    middle.supylabel(f"change of the mean {effects.response}", fontsize=10)
    middle.suptitle("Effects of the most important columns", fontsize=11)
    (_draw_calibration if demo.classes else _draw_intervals)(right.subplots(), demo)
    _draw_bounds(last.subplots(), demo)
    figure.suptitle(f"{demo.name}: evidence kernel, fitted on {demo.figures['n_train']} rows")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": SIGNATURE})
    return buffer.getvalue()


def _draw_scores(ax: Any, demo: Demonstration) -> None:
    """Draw a point with two standard errors for each model, ours in colour and on top."""
    scores = list(demo.figures["scores"].items())[::-1]
    for place, (label, each) in enumerate(scores):
        at, colour, below = each["score"], LOWER if label == OURS else FAINT, 2.0 * each["error"]
        # an accuracy of one is rounded
        reach = [[below], [max(0.0, min(below, 1.0 - at))]]
        ax.errorbar(at, place, xerr=reach, fmt="o", markersize=8, color=colour, capsize=4)
        above = {"xytext": (0, 10), "textcoords": "offset points", "ha": "center"}
        ax.annotate(f"{at:z.3f}", (at, place), **above)
    ax.set_yticks(range(len(scores)), [label.replace(" ", "\n") for label, _ in scores])
    ax.set_ylim(-0.5, len(scores) - 0.4)
    measure = measure_name(demo.target.task)
    ax.set(xlabel=f"{measure}, ± two standard errors")
    ax.set_title(f"Scores on {demo.figures['n_test']} test rows", fontsize=11)
    open_frame(ax, "x")


def _draw_intervals(ax: Axes, demo: Demonstration) -> None:
    """Draw held-out rows against their predictions, with intervals."""
    X, y = demo.X_test[:_MAX_DRAWN], demo.y_test[:_MAX_DRAWN]
    mean = demo.model.predict(X)
    low, high = demo.model.predict_interval(X, CONFIDENCE)
    reach = np.maximum([mean - low, high - mean], 0.0)
    ax.errorbar(y, mean, yerr=reach, fmt="o", markersize=3, color=LOWER, ecolor="#9DC9E6")
    ax.axline((mean.mean(), mean.mean()), slope=1, color=FAINT, linewidth=1)
    ax.set(xlabel="true value", ylabel="prediction")
    share = demo.figures["coverage"]["share"]
    held = f"{share:.1%} of {demo.figures['n_test']} test rows"
    ax.set_title(f"{CONFIDENCE:.0%} intervals contain {held}", fontsize=11)
    open_frame(ax)


def _draw_calibration(ax: Any, demo: Demonstration) -> None:
    """Draw how often the predicted class is right, against its probability."""
    from sklearn.calibration import CalibrationDisplay

    proba = demo.model.predict_proba(demo.X_test)
    right = demo.model.classes_[proba.argmax(axis=1)] == demo.y_test
    CalibrationDisplay.from_predictions(
        right, proba.max(axis=1), pos_label=True, n_bins=6, strategy="quantile", ref_line=False,
        ax=ax, color=LOWER, marker="o", name=OURS,
    )  # fmt: skip
    least = min(0.5, ax.lines[0].get_xydata().min()) - 0.03
    ax.axline((1, 1), slope=1, color=FAINT, linewidth=1)
    ax.set(xlim=(least, 1.03), ylim=(least, 1.03), aspect="auto")
    ax.set(xlabel="probability of the predicted class", ylabel="accuracy on test rows")
    ax.set_title("Calibration", fontsize=11)
    open_frame(ax)


def _draw_bounds(ax: Axes, demo: Demonstration) -> None:
    """Draw the bounds between which the best tessellated kernel lies, as they close."""
    ConvergenceDisplay.from_estimator(demo.models[TESSELLATED], ax=ax)
    gap = demo.figures["proved"][TESSELLATED]["gap"]
    ax.set_title(f"Tessellated kernel: proved gap {100 * gap:.2g} %", fontsize=11)


def is_demo_picture(path: Path) -> bool:
    """Whether a file is a PNG that the demo wrote: it says so in its first bytes."""
    return path.is_file() and f"Software\0{SIGNATURE}".encode() in path.read_bytes()[:1024]
