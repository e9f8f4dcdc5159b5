"""The pictures of a report, each with the sentence that stands below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..displays import (
    ConvergenceDisplay,
    DecisionCalibrationDisplay,
    GramDisplay,
    KernelWeightsDisplay,
    SpectrumDisplay,
    learned_weights,
)
from ..displays.axes import open_frame
from ..displays.colours import GAP, LOWER
from ..machines import transformed
from ..models import Model
from ..pages import as_data_uri, figure_svg
from .evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = dict[str, str]
# small enough that the letters can be read on a phone
_SIZE = {"width": 4.8, "height": 3.2}


def _picture(title: str, text: str, draw: Callable[[Figure], None], **size: float) -> Picture:
    return {
        "title": title,
        "description": text,
        "address": as_data_uri(figure_svg(draw, **_SIZE | size)),
    }


def convergence(model: Model) -> Picture:
    """Return the course of the proved bounds."""
    result = model.machine.result_

    def draw(figure: Figure) -> None:
        bounds, gap = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        ConvergenceDisplay.from_estimator(model.estimator, ax=bounds)
        ConvergenceDisplay.from_estimator(model.estimator, kind="gap", ax=gap)
        bounds.set_xlabel("")

    text = (
        f"The optimum is proved to lie in the grey strip. After {result.n_iter} iterations the "
        f"relative gap is {result.gap:.1e}."
    )
    return _picture("Convergence", text, draw, height=4.2)


def composition(model: Model) -> Picture | None:
    """Return the weights of the kernels or the spectrum of P; None if the kernel has neither."""
    weights = learned_weights(model.estimator)
    if weights is not None:

        def draw(figure: Figure) -> None:
            KernelWeightsDisplay(*weights).plot(ax=figure.subplots())

        height = 1.2 + 0.28 * min(len(weights[0]), 20)
        text = "How much of each kernel was chosen."
        return _picture("Kernel weights", text, draw, height=height)
    P = getattr(model.machine, "P_", None)
    if P is None or np.ndim(P) != 2:
        return None
    text = (
        "The learned kernel is a sum of as many simple kernels as P has positive eigenvalues; "
        "the shares say how much each contributes."
    )

    def spectrum(figure: Figure) -> None:
        SpectrumDisplay(P).plot(ax=figure.subplots())

    return _picture("Spectrum of P", text, spectrum)


def heat_map(model: Model, found: Evaluation) -> Picture | None:
    """Return the learned kernel between samples; None for a machine with several kernels."""
    kernel = getattr(model.machine, "kernel_", None)
    if not callable(kernel):
        return None
    chosen = found.drawn()
    K, classes = kernel(transformed(model.estimator, found.rows(chosen))), found.classes

    def draw(figure: Figure) -> None:
        GramDisplay(K, found.y[chosen], classes=classes).plot(ax=figure.subplots())

    order = "class" if classes else "target"
    text = f"Similarity by the learned kernel of {len(chosen)} samples, ordered by {order}."
    return _picture("The learned kernel", text, draw, height=4.1)


def residuals(found: Evaluation) -> Picture:
    """Return predictions against targets, and what is left of the targets."""

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator
        from sklearn.metrics import PredictionErrorDisplay

        style = {
            "scatter_kwargs": {"color": LOWER, "s": 8, "alpha": 0.6},
            "line_kwargs": {"color": GAP, "linewidth": 1, "linestyle": "-"},
        }
        top, bottom = figure.subplots(2, 1, sharex=True)
        for ax, kind in ((top, "actual_vs_predicted"), (bottom, "residual_vs_predicted")):
            PredictionErrorDisplay.from_predictions(
                found.y, found.predicted, kind=kind, ax=ax, subsample=None, **style
            )
            ax.set_aspect("auto")
            ax.xaxis.set_major_locator(MaxNLocator(5))
            ax.yaxis.set_major_locator(MaxNLocator(5))
            open_frame(ax)
        top.set(xlabel="", ylabel="target")
        bottom.set(xlabel="prediction", ylabel="target − prediction")

    text = "Targets against predictions, on the line is right; and what is left of each target."
    return _picture("Residuals", text, draw, height=5.2)


def predictions(model: Model, found: Evaluation) -> Picture | None:
    """Return calibration or residuals; None where there is neither (several classes)."""
    if not found.classes:
        return residuals(found)
    classes = model.header.classes or ()
    if len(classes) != 2:
        return None

    def draw(figure: Figure) -> None:
        DecisionCalibrationDisplay.from_estimator(
            model.estimator, found.X, found.y, ax=figure.subplots()
        )

    text = f"How often {classes[1]} is true at each decision value, with 95 % Wilson intervals."
    return _picture("Calibration", text, draw)


def all_pictures(model: Model, found: Evaluation | None) -> list[Picture]:
    """Return the pictures that this model and these data have."""
    made: list[Any] = [convergence(model), composition(model)]
    if found is not None:
        made += [heat_map(model, found), predictions(model, found)]
    return [picture for picture in made if picture is not None]
