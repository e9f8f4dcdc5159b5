"""Pictures for a report: of predictions, of columns, and of how the kernel was learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Labels

from ..displays import ConvergenceDisplay, KernelWeightsDisplay, learned_weights
from ..displays.axes import FAINT, LOWER, SERIES, open_frame, write_thousands
from ..fitting import importance_of
from ..models import Model
from ..pages import Picture, picture
from ..sentences import shown_kinds
from ..summaries import Summary
from .evaluation import HeldOutEvaluation
from .half_known import half_known_pictures

if TYPE_CHECKING:
    from kernelweave.evidence.explaining.effects import ColumnEffect, PairEffect
    from matplotlib.figure import Figure

# more curves in one picture cannot be told apart
_MOST_CURVES = 6
_MOST_POINTS = 2000
# what a reader takes in: the rest is weaker, and the page says how many there are
_MOST_BARS = 15
_EFFECTS, _PAIRS = 4, 2


def prediction_pictures(tested: HeldOutEvaluation) -> list[Picture]:
    """Return what suits the task: residuals, limits, or curves and a confusion matrix."""
    if tested.held_out.ends is not None:
        return half_known_pictures(tested)
    on = f"Computed on {tested.rows}."
    if tested.classes is None:
        exact = f"Each point is a row; on the grey line the prediction is exact. {on}"
        residuals = (
            f"True minus predicted values. A curve or a funnel means that the model misses "
            f"structure. {on}"
        )
        points = partial(_draw_points, tested)
        return [
            picture("Predicted and true values", exact, points("actual_vs_predicted", "true")),
            picture("Residuals", residuals, points("residual_vs_predicted", "true − predicted")),
        ]
    made = [_confusion(tested, on)]
    # a class that is absent has no curve
    shown = [label for label in tested.classes if 0 < np.sum(tested.y == label) < len(tested.y)]
    shown = shown[-1:] if len(tested.classes) == 2 else shown[:_MOST_CURVES]
    values = tested.held_out.decision if tested.held_out.proba is None else tested.held_out.proba
    if not shown or values is None:
        return made
    each = {label: values[:, tested.classes.index(label)] for label in shown}
    draw = partial(_draw_curves, tested, each)
    roc = f"The grey line is chance; the area under the curve (AUC) is at most 1. {on}"
    rates, axes = ("false positive rate", "true positive rate"), ("recall", "precision")
    recall = f"Precision at each recall, as the decision threshold changes. {on}"
    made += [
        picture("ROC curve", roc, partial(draw, "ROC", rates)),
        picture("Precision and recall", recall, partial(draw, "precision", axes)),
    ]
    if tested.held_out.proba is not None:
        text = f"On the grey line the probabilities are calibrated. {on}"
        labels = ("predicted probability", "observed frequency")
        calibration = partial(draw, "calibration", labels)
        made.append(picture("Calibration of probabilities", text, calibration))
    return made


def _draw_points(tested: HeldOutEvaluation, kind: str, ylabel: str) -> Callable[[Figure], None]:
    """Return a function that draws the rows, an even choice of them where they are many."""
    n = len(tested.y)
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.intp))

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator
        from sklearn.metrics import PredictionErrorDisplay

        ax = figure.subplots()
        PredictionErrorDisplay.from_predictions(
            tested.y[rows], tested.held_out.predicted[rows], kind=kind, ax=ax,
            subsample=None, scatter_kwargs={"color": LOWER, "s": 9, "alpha": 0.55},
            line_kwargs={"color": FAINT, "linewidth": 1, "linestyle": "-"},
        )  # fmt: skip
        ax.set(xlabel="predicted", ylabel=ylabel, aspect="auto")
        for axis, parts in ((ax.xaxis, 5), (ax.yaxis, 6)):
            axis.set_major_locator(MaxNLocator(parts))
            write_thousands(axis)
        open_frame(ax)

    return draw


def _confusion(tested: HeldOutEvaluation, on: str) -> Picture:
    labels = list(tested.classes or ())

    def draw(figure: Figure) -> None:
        from sklearn.metrics import ConfusionMatrixDisplay

        ax = figure.subplots()
        ConfusionMatrixDisplay.from_predictions(
            tested.y, tested.held_out.predicted, labels=labels, cmap="Blues", ax=ax, colorbar=False,
            display_labels=[_short(str(each), 13) for each in labels],
            include_values=len(labels) <= 12, xticks_rotation=0 if len(labels) < 4 else 45,
        )  # fmt: skip
        ax.set(xlabel="predicted", ylabel="true", aspect="auto")

    text = f"Number of rows by true and predicted class. {on}"
    return picture("Confusion matrix", text, draw, height=3.4 if len(labels) < 7 else 4.6)


def _curve(kind: str, truth: Labels, share: FloatArray) -> tuple[FloatArray, FloatArray, str]:
    """Return x and y of a curve, and what the legend says of it beside the class."""
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

    if kind == "ROC":
        x, y, _ = roc_curve(truth, share)
        return x, y, f" (AUC = {auc(x, y):.2f})"
    if kind == "precision":
        y, x, _ = precision_recall_curve(truth, share)
        return x, y, f" (AP = {average_precision_score(truth, share):.2f})"
    bins = int(np.clip(len(truth) // 20, 3, 10))
    y, x = calibration_curve(truth, share, n_bins=bins, strategy="quantile")
    return x, y, ""


def _draw_curves(
    tested: HeldOutEvaluation,
    shares: Mapping[object, FloatArray],
    kind: str,
    labels: tuple[str, str],
    figure: Figure,
) -> None:
    ax = figure.subplots()
    if kind != "precision":
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    look = {} if kind == "calibration" else {"marker": ""}
    look |= {"drawstyle": "steps-post"} if kind == "precision" else {}
    for (label, share), style in zip(shares.items(), SERIES, strict=False):
        x, y, area = _curve(kind, tested.y == label, share)
        ax.plot(x, y, label=f"{label}{area}", **style | look)
    whole = (-0.02, 1.02)
    ax.set(xlabel=labels[0], ylabel=labels[1], xlim=whole, ylim=whole)
    ax.legend(frameon=False, fontsize=8)
    open_frame(ax)


def column_pictures(model: Model, measure: str) -> list[Picture]:
    """Return the importance of columns and the effects of the strongest, if the fit has them."""
    left_out = {row["name"] for row in model.header.prepared if row["done"] != "used"}
    header = model.header
    # of a model that took or lost rows it is worked out where it is shown
    known = importance_of(model.estimator) if header.kernel_rows else header.importance
    rows = [row for row in known if row["name"] not in left_out]
    made = [_importance(rows, measure)] if rows else []
    return made + (_effects(model) if header.is_estimate else [])


def new_rows_picture(about: Summary) -> list[Picture]:
    """Return the score to expect of each kind of new rows; nothing where one is known."""
    rows = shown_kinds(about)[::-1]
    if len(rows) < 2 or about.held_out is None:
        return []

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for place, each in enumerate(rows):
            colour = LOWER if place == len(rows) - 1 else FAINT
            reach = [[each["score"] - each["low"]], [each["high"] - each["score"]]]
            bars = reach if np.isfinite(reach).all() else None
            ax.errorbar(each["score"], place, xerr=bars, fmt="o", color=colour, capsize=3)
        ax.set_yticks(range(len(rows)), [_short(row["name"], 26) for row in rows])
        ax.set_ylim(-0.6, len(rows) - 0.4)
        ax.set_xlabel(f"{about.measure}, with 95 % intervals")
        open_frame(ax, "x")

    text = (
        f"Expected {about.measure} on new rows of each kind: rows like those of the "
        f"cross-validation (blue), rows of new groups, and later rows. The kernel was learned from "
        f"all groups and times, so the scores of the other kinds are upper estimates."
    )
    return [picture("Kinds of new rows", text, draw, height=1.3 + 0.34 * len(rows))]


def _importance(rows: list[dict[str, Any]], measure: str) -> Picture:
    shown = rows[:_MOST_BARS][::-1]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        values, errors = ([row[key] for row in shown] for key in ("value", "error"))
        ax.barh(range(len(shown)), values, xerr=errors, color=LOWER, height=0.6,
                error_kw={"linewidth": 1, "capsize": 2})  # fmt: skip
        ax.set_yticks(range(len(shown)), [_short(row["name"], 22) for row in shown])
        ax.set_xlabel(f"drop in {measure} when the column is shuffled")
        open_frame(ax, "x")

    more = f" The {len(rows) - _MOST_BARS} weakest are not shown." if len(rows) > _MOST_BARS else ""
    text = (
        f"Drop in the cross-validated score when a column is shuffled, with standard errors. "
        f"Correlated columns share their importance.{more}"
    )
    return picture("Importance", text, draw, height=1.2 + 0.26 * len(shown))


def _effects(model: Model) -> list[Picture]:
    """Return a picture for each of the strongest columns, and for the strongest pairs."""
    from kernelweave.evidence import EffectDisplay
    from matplotlib.figure import Figure

    hidden = Figure().subplots(1, _EFFECTS + _PAIRS)
    display = EffectDisplay.from_estimator(
        model.machine, n_columns=_EFFECTS, n_pairs=_PAIRS, ax=hidden
    )
    what = display.response

    def draw(effects: list[ColumnEffect], pairs: list[PairEffect], figure: Figure) -> None:
        ax = figure.subplots()
        EffectDisplay(effects, pairs, response=what).plot(ax=[ax])
        if effects:
            write_thousands(ax.yaxis)

    made = []
    for effect in display.effects:
        text = (
            f"Change of the mean {what} when every row has this value of {effect.column} (partial "
            f"dependence); the band is two standard deviations. Computed on training rows."
        )
        one = partial(draw, [effect], [])
        made.append(picture(f"Effect of {effect.column}", text, one, height=2.9))
    for pair in display.pairs:
        text = (
            f"Change of the mean {what} with both columns, beyond the sum of their single effects. "
            f"Computed on training rows."
        )
        two, names = partial(draw, [], [pair]), " and ".join(pair.columns)
        made.append(picture(f"Interaction of {names}", text, two, height=3.2))
    return made


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def weight_pictures(model: Model, kernels: Mapping[str, float]) -> list[Picture]:
    """Return how much each kernel of a list counts; nothing where there was no list."""
    weights = learned_weights(model.machine) if kernels else None
    if weights is None:
        return []

    def draw(figure: Figure) -> None:
        KernelWeightsDisplay(*weights).plot(ax=figure.subplots())

    height = 1.2 + 0.28 * min(len(weights[0]), 20)
    text = f"{len(kernels)} of {len(weights[0])} kernels have a positive weight."
    return [picture("Kernel weights", text, draw, height=height)]


def kernel_pictures(model: Model) -> list[Picture]:
    """Return the course of the bounds; nothing of a fit without iterations."""
    result = model.machine.result_
    if len(result.history) < 2:
        return []
    claim = "The optimum is proved to be within the grey band"
    if premise := result.premise:
        claim = premise[0].upper() + premise[1:]
    text = f"{claim}. After {result.n_iter} iterations the relative gap is {result.gap:.1e}."
    return [picture("Convergence", text, partial(_draw_course, model.machine), height=4.2)]


def _draw_course(machine: object, figure: Figure) -> None:
    bounds, gap = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    ConvergenceDisplay.from_estimator(machine, ax=bounds)
    ConvergenceDisplay.from_estimator(machine, kind="gap", ax=gap)
    bounds.set_xlabel("")
