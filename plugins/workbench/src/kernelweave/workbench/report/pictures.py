"""The pictures of a report, each with the sentence that stands below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..displays.convergence import plot_convergence, plot_gap
from ..displays.gram import plot_gram
from ..displays.predictions import plot_calibration, plot_residuals
from ..displays.weights import plot_spectrum, plot_weights
from ..models import Model
from ..pages import as_data_uri, figure_svg
from .evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = dict[str, str]


def _picture(title: str, text: str, draw: Callable[[Figure], None], **size: float) -> Picture:
    return {
        "title": title,
        "description": text,
        "address": as_data_uri(figure_svg(draw, **size)),
    }


def convergence(model: Model) -> Picture:
    """Return the course of the proved bounds."""
    result, tol = model.machine.result_, float(model.machine.tol)

    def draw(figure: Figure) -> None:
        bounds, gap = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        plot_convergence(result.history, bounds)
        plot_gap(result.history, tol, gap)

    text = (
        f"The optimum is proved to lie in the grey strip. After {result.n_iter} iterations the "
        f"relative gap is {result.gap:.1e}."
    )
    return _picture("Convergence", text, draw, height=4.4)


def composition(model: Model) -> Picture | None:
    """Return the weights of the kernels or the spectrum of P; None if the kernel has neither."""
    machine = model.machine
    kernel = getattr(machine, "kernel_", None)
    weights = getattr(machine, "weights_", getattr(kernel, "weights", None))
    names = getattr(kernel, "kernels", None)
    if weights is not None and np.ndim(weights) == 1:
        labels = [str(name) for name in (range(len(weights)) if names is None else names)]

        def draw(figure: Figure) -> None:
            plot_weights(np.asarray(weights), labels, figure.subplots())

        height = 1.2 + 0.28 * min(len(labels), 20)
        return _picture(
            "Kernel weights", "How much of each kernel was chosen.", draw, height=height
        )
    P = getattr(machine, "P_", None)
    if P is None or np.ndim(P) != 2:
        return None
    text = (
        "The learned kernel is a sum of as many simple kernels as P has positive eigenvalues; "
        "the shares say how much each contributes."
    )
    return _picture("Spectrum of P", text, lambda figure: plot_spectrum(P, figure.subplots()))


def heat_map(model: Model, found: Evaluation) -> Picture | None:
    """Return the learned kernel between samples; None for a machine with several kernels."""
    kernel = getattr(model.machine, "kernel_", None)
    if not callable(kernel):
        return None
    chosen = found.drawn()
    X = found.X[chosen]
    for _, step in getattr(model.estimator, "steps", [])[:-1]:
        X = step.transform(X)
    K, classes = kernel(X), model.header.task == "classification"

    def draw(figure: Figure) -> None:
        plot_gram(K, found.y[chosen], figure.subplots(), classes=classes)

    order = "class" if classes else "target"
    text = f"Similarity by the learned kernel of {len(chosen)} samples, ordered by {order}."
    return _picture("The learned kernel", text, draw, width=5.6, height=4.8)


def predictions(model: Model, found: Evaluation) -> Picture | None:
    """Return calibration or residuals; None where there is neither (several classes)."""
    if model.header.task == "regression":

        def draw(figure: Figure) -> None:
            plot_residuals(found.y, found.predicted, figure.subplots())

        return _picture("Residuals", "Predictions against targets; on the line is right.", draw)
    decision = np.asarray(model.estimator.decision_function(found.X))
    classes = model.header.classes or ()
    if decision.ndim != 1 or len(classes) != 2:
        return None
    positive = np.asarray(found.y) == classes[1]

    def curve(figure: Figure) -> None:
        plot_calibration(decision, positive, figure.subplots())

    text = f"How often {classes[1]} is true at each decision value, with 95 % Wilson intervals."
    return _picture("Calibration", text, curve)


def all_pictures(model: Model, found: Evaluation | None) -> list[Picture]:
    """Return the pictures that this model and these data have."""
    made: list[Any] = [convergence(model), composition(model)]
    if found is not None:
        made += [heat_map(model, found), predictions(model, found)]
    return [picture for picture in made if picture is not None]
