"""Pictures of predictions beside what is known, by scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ..displays.axes import open_frame, write_thousands
from ..displays.colours import FAINT, LOWER, SERIES
from ..pages import Picture, picture
from .evaluation import HeldOutEvaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# more curves in one picture cannot be told apart
_MOST_CURVES = 6
_MOST_POINTS = 2000


def prediction_pictures(found: HeldOutEvaluation) -> list[Picture]:
    """Return what suits the task: residuals, or curves and a confusion matrix.

    `found`: of some rows. Returns: each says of which rows it is.
    """
    if found.classes is None:
        return [_against_truth(found), _residuals(found)]
    made = [_confusion(found)]
    # a class that is absent has no curve
    shown = [label for label in found.classes if 0 < np.sum(found.y == label) < len(found.y)]
    shown = shown[-1:] if len(found.classes) == 2 else shown[:_MOST_CURVES]
    if shown and (found.proba is not None or found.decision is not None):
        made += [_roc(found, shown), _precision_recall(found, shown)]
    if shown and found.proba is not None:
        made.append(_calibration(found, shown))
    return made


def _points(found: HeldOutEvaluation) -> npt.NDArray[np.intp]:
    """Return the rows to draw: an even choice where they are many."""
    n = len(found.y)
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.intp))


def _against_truth(found: HeldOutEvaluation) -> Picture:
    text = (
        f"Each point is a row; on the grey line the prediction is exact. Computed on {found.rows}."
    )
    return picture(
        "Predicted and true values", text, _points_drawn(found, "actual_vs_predicted", "true")
    )


def _residuals(found: HeldOutEvaluation) -> Picture:
    text = (
        f"True minus predicted values. A curve or a funnel means that the model misses structure. "
        f"Computed on {found.rows}."
    )
    drawn = _points_drawn(found, "residual_vs_predicted", "true − predicted")
    return picture("Residuals", text, drawn)


def _points_drawn(found: HeldOutEvaluation, kind: str, ylabel: str) -> Callable[[Figure], None]:
    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator
        from sklearn.metrics import PredictionErrorDisplay

        ax = figure.subplots()
        rows = _points(found)
        PredictionErrorDisplay.from_predictions(
            found.y[rows], found.predicted[rows], kind=kind, ax=ax,
            subsample=None, scatter_kwargs={"color": LOWER, "s": 9, "alpha": 0.55},
            line_kwargs={"color": FAINT, "linewidth": 1, "linestyle": "-"},
        )  # fmt: skip
        ax.set(xlabel="predicted", ylabel=ylabel)
        ax.set_aspect("auto")
        for axis, parts in ((ax.xaxis, 5), (ax.yaxis, 6)):
            axis.set_major_locator(MaxNLocator(parts))
            write_thousands(axis)
        open_frame(ax)

    return draw


def _confusion(found: HeldOutEvaluation) -> Picture:
    labels = list(found.classes or ())
    many = len(labels) > 12

    def draw(figure: Figure) -> None:
        from sklearn.metrics import ConfusionMatrixDisplay

        ax = figure.subplots()
        names = [str(each) if len(str(each)) < 14 else f"{str(each)[:12]}…" for each in labels]
        ConfusionMatrixDisplay.from_predictions(
            found.y, found.predicted, labels=labels, display_labels=names, cmap="Blues", ax=ax,
            colorbar=False, include_values=not many,
            xticks_rotation=0 if len(labels) < 4 else 45,
        )  # fmt: skip
        ax.set(xlabel="predicted", ylabel="true")
        ax.set_aspect("auto")

    text = f"Number of rows by true and predicted class. Computed on {found.rows}."
    return picture("Confusion matrix", text, draw, height=3.4 if len(labels) < 7 else 4.6)


def _curves(
    found: HeldOutEvaluation,
    labels: list[object],
    each: Callable[..., None],
    axes: dict[str, str],
    place: str,
    *,
    diagonal: bool = True,
) -> Callable[[Figure], None]:
    """Return what draws a curve for each class by a display of scikit-learn."""

    def draw(figure: Figure) -> None:
        values = found.decision if found.proba is None else found.proba
        if values is None:
            raise ValueError("there are neither probabilities nor decision values")
        ax = figure.subplots()
        for label, style in zip(labels, SERIES, strict=False):
            share = values[:, list(found.classes or ()).index(label)]
            each(found.y == label, share, name=str(label), ax=ax, style=style)
        if diagonal:
            ax.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
        ax.set(**axes)
        ax.set_aspect("auto")
        ax.legend(frameon=False, fontsize=8, loc=place)
        open_frame(ax)

    return draw


def _roc(found: HeldOutEvaluation, labels: list[object]) -> Picture:
    def each(y: ArrayLike, share: object, *, style: dict[str, object], **options: object) -> None:
        from sklearn.metrics import RocCurveDisplay

        RocCurveDisplay.from_predictions(y, share, curve_kwargs=style | {"marker": ""}, **options)

    axes = {"xlabel": "false positive rate", "ylabel": "true positive rate"}
    text = (
        f"The grey line is chance; the area under the curve (AUC) is at most 1. Computed on "
        f"{found.rows}."
    )
    return picture("ROC curve", text, _curves(found, labels, each, axes, "lower right"))


def _precision_recall(found: HeldOutEvaluation, labels: list[object]) -> Picture:
    def each(y: ArrayLike, share: object, *, style: dict[str, object], **options: object) -> None:
        from sklearn.metrics import PrecisionRecallDisplay

        PrecisionRecallDisplay.from_predictions(y, share, **options, **style | {"marker": ""})

    axes = {
        "xlabel": "recall",
        "ylabel": "precision",
    }
    text = f"Precision at each recall, as the decision threshold changes. Computed on {found.rows}."
    drawn = _curves(found, labels, each, axes, "lower left", diagonal=False)
    return picture("Precision and recall", text, drawn)


def _calibration(found: HeldOutEvaluation, labels: list[object]) -> Picture:
    bins = int(np.clip(len(found.y) // 20, 3, 10))

    def each(
        y: ArrayLike, share: object, *, style: Mapping[str, object], **options: object
    ) -> None:
        from sklearn.calibration import CalibrationDisplay

        CalibrationDisplay.from_predictions(
            y, share, n_bins=bins, strategy="quantile", ref_line=False, **options, **style
        )

    axes = {"xlabel": "predicted probability", "ylabel": "observed frequency"}
    text = f"On the grey line the probabilities are calibrated. Computed on {found.rows}."
    drawn = _curves(found, labels, each, axes, "upper left")
    return picture("Calibration of probabilities", text, drawn)
