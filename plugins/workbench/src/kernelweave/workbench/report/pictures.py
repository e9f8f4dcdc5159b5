"""Pictures for people who ask how the kernel was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..displays import (
    ConvergenceDisplay,
    GramDisplay,
    KernelWeightsDisplay,
    SpectrumDisplay,
    learned_weights,
)
from ..machines import transformed
from ..models import Model
from ..pages import Picture, picture
from .evaluation import HeldOutEvaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def kernel_pictures(model: Model, found: HeldOutEvaluation | None) -> list[Picture]:
    """Return the course of the bounds, what the kernel is made of, and the kernel itself.

    `model`: fitted; `found`: of rows that are at hand, for the heat map. Returns: those that this
    model has.
    """
    made: list[Picture | None] = [_convergence(model), _spectrum(model)]
    if found is not None and found.X is not None:
        made.append(_heat_map(model, found))
    return [each for each in made if each is not None]


def _convergence(model: Model) -> Picture | None:
    """Return the course of the proved bounds; None where there is none."""
    result = model.machine.result_
    if len(result.history) < 2:
        return None

    def draw(figure: Figure) -> None:
        bounds, gap = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        ConvergenceDisplay.from_estimator(model.machine, ax=bounds)
        ConvergenceDisplay.from_estimator(model.machine, kind="gap", ax=gap)
        bounds.set_xlabel("")

    text = (
        f"The optimum is proved to be within the grey band. After {result.n_iter} iterations the "
        f"relative gap is {result.gap:.1e}."
    )
    return picture("Convergence", text, draw, height=4.2)


def weight_pictures(model: Model, kernels: dict[str, float]) -> list[Picture]:
    """Return how much each kernel of a list counts; nothing where there was no list.

    `model`: fitted; `kernels`: those of positive weight. Returns: one picture at most.
    """
    weights = learned_weights(model.machine) if kernels else None
    if weights is None:
        return []

    def draw(figure: Figure) -> None:
        KernelWeightsDisplay(*weights).plot(ax=figure.subplots())

    height = 1.2 + 0.28 * min(len(weights[0]), 20)
    text = f"{len(kernels)} of {len(weights[0])} kernels have a positive weight."
    return [picture("Kernel weights", text, draw, height=height)]


def _spectrum(model: Model) -> Picture | None:
    """Return the spectrum of P; None where the kernel has none."""
    P = getattr(model.machine, "P_", None)
    if P is None or np.ndim(P) != 2:
        return None
    text = (
        "The learned kernel is a sum of simple kernels, one for each positive eigenvalue of P; the "
        "shares are their contributions."
    )

    def spectrum(figure: Figure) -> None:
        SpectrumDisplay(P).plot(ax=figure.subplots())

    return picture("Spectrum of P", text, spectrum)


def _heat_map(model: Model, found: HeldOutEvaluation) -> Picture | None:
    """Return the learned kernel between samples; None for a machine with several kernels."""
    kernel = getattr(model.machine, "kernel_", None)
    if not callable(kernel):
        return None
    chosen, classes = found.drawn(), found.classes is not None
    K = kernel(transformed(model.estimator, found.X.iloc[chosen]))

    def draw(figure: Figure) -> None:
        GramDisplay(K, found.y[chosen], classes=classes).plot(ax=figure.subplots())

    order = "class" if classes else "target"
    text = f"Similarity of {len(chosen)} of {found.rows} by the learned kernel, sorted by {order}."
    return picture("The learned kernel", text, draw, height=4.1)
