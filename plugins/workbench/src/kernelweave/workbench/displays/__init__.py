"""Pictures of a fit in scikit-learn's style: how the bounds closed, and what was learned.

`from_estimator` takes a fitted kernel machine, a pipeline that ends in one, or a search over
either. Each display draws on the axes ``ax``, or on a new figure without it, and then has ``ax_``
and ``figure_``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import History, Result
from kernelweave.kernels_core.arrays import FloatArray, RealArray
from kernelweave.kernels_core.checks import one_of

from ..machines import fitted_machine
from .axes import FAINT, GAP, LOWER, UPPER, on_axes, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

_KIND = one_of("bounds", "gap")
_NOUNS = {"iterations": "iteration", "seconds": "seconds"}
# so many bars make a figure 6 inches tall, and their numbers have room in a column
_MOST_BARS = 20
# inches of a letter, and the share of the width that names beside the bars may take
_LETTER, _SHARE = 0.065, 0.4


class ConvergenceDisplay:
    """The proved bounds of the optimum, or the relative gap, by iteration.

    Parameters
    ----------
    history : History
        One entry per iteration.
    tol : float or None, default=None
        The relative gap asked for; drawn as a line where the gap is.
    name : str or None, default=None
        Of the solve, for a legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    lines_ : list of matplotlib Line2D
        Upper and lower bound, or the gap.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.spectahedron import TessellatedKernelClassifier
    >>> from kernelweave.workbench import ConvergenceDisplay
    >>> model = TessellatedKernelClassifier(tol=1e-2).fit(*load_iris(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(model, kind="gap")
    >>> display.ax_.get_ylabel()
    'relative gap'
    """

    def __init__(
        self, history: History, *, tol: float | None = None, name: str | None = None
    ) -> None:
        self.history = history
        self.tol = tol
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, name: str | None = None, **options: Any
    ) -> ConvergenceDisplay:
        """Draw the course of a fit.

        `estimator`: fitted; `name`: for a legend; `**options`: as in `plot`. Raises ValueError if
        the estimator holds several solves; draw one by `from_result`.
        """
        machine = fitted_machine(estimator, "result_")
        tol = getattr(machine, "tol", None)
        return cls(machine.result_.history, tol=tol, name=name).plot(**options)

    @classmethod
    def from_result(
        cls, result: Result, *, tol: float | None = None, name: str | None = None, **options: Any
    ) -> ConvergenceDisplay:
        """Draw the course of a solve.

        `result`: what ``solve`` returns; `tol`: the relative gap asked for; `name`: for a legend;
        the algorithm without it; `**options`: as in `plot`.
        """
        name = result.algorithm if name is None else name
        return cls(result.history, tol=tol, name=name).plot(**options)

    def plot(
        self,
        *,
        kind: str = "bounds",
        by: str = "iterations",
        ax: Axes | None = None,
        **line: object,
    ) -> ConvergenceDisplay:
        """Draw the bounds and the strip between them, or the gap on a logarithmic axis.

        - `kind`: ``"bounds"`` or ``"gap"``
        - `by`: ``"iterations"``, ``"seconds"``, or a count of the history such as ``"n_solves"``
        - `ax`: where; a new figure without it
        - `**line`: passed to matplotlib for the gap's line, e.g. ``color`` and ``linestyle``

        Raises ValueError if ``kind`` or ``by`` is none of those.
        """
        _KIND.check("kind", kind)
        one_of("iterations", "seconds", *self.history.counts).check("by", by)
        positions = {"iterations": range(len(self.history)), "seconds": self.history.seconds}
        at = np.array((positions | dict(self.history.counts))[by])
        with on_axes(ax) as self.ax_:
            self.figure_ = self.ax_.figure
            if kind == "bounds":
                self._draw_bounds(at)
            else:
                self._draw_gap(at, line)
            self.ax_.set_xlabel(_NOUNS.get(by, by.removeprefix("n_").replace("_", " ")))
            open_frame(self.ax_)
            if by != "seconds":
                self.ax_.xaxis.get_major_locator().set_params(integer=True)
        return self

    def _draw_bounds(self, at: npt.NDArray[np.number]) -> None:
        lower, upper = np.array(self.history.lower), np.array(self.history.upper)
        shown, ax = np.isfinite(lower), self.ax_
        ax.fill_between(at[shown], lower[shown], upper[shown], color=FAINT, alpha=0.25, linewidth=0)
        look = {"markersize": 4}
        self.lines_ = ax.plot(at, upper, color=UPPER, marker="v", label="upper bound", **look)
        if shown.any():
            low = {"color": LOWER, "marker": "^", "label": "lower bound"} | look
            self.lines_ += ax.plot(at[shown], lower[shown], **low)
            _focus(ax, lower[shown], upper)
        ax.set_ylabel("objective")
        ax.legend(frameon=False)

    def _draw_gap(self, at: npt.NDArray[np.number], line: dict[str, object]) -> None:
        gap, ax = self.history.gap, self.ax_
        shown = np.isfinite(gap) & (gap > 0)
        style = {"color": GAP, "marker": "o", "markersize": 3, "linewidth": 1.2} | line
        self.lines_ = ax.semilogy(at[shown], gap[shown], label=self.name, **style)
        if self.tol is not None and self.tol > 0:
            ax.axhline(self.tol, color=FAINT, linestyle="--", linewidth=1)
            place = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "bottom"}
            text = f"asked for: {self.tol:g}"
            ax.annotate(text, (0.01, self.tol), color=GAP, fontsize=8, **place)
        ax.set_ylabel("relative gap")


def _focus(ax: Axes, lower: FloatArray, upper: FloatArray) -> None:
    """Let the first lower bounds leave the picture where they would flatten all the others."""
    end = upper[-1]
    reach = 1.15 * max(upper.max() - end, end - np.median(lower))
    if lower.min() < end - 1.5 * reach:
        ax.set_ylim(end - reach, end + reach)


class KernelWeightsDisplay:
    """The weights of a combination of kernels as bars, the largest on top.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,)
        Weight of each kernel.
    names : sequence of str or None, default=None
        Names of the kernels; by default K0, K1, ...

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    bars_ : matplotlib BarContainer
        The smallest first.

    Raises
    ------
    ValueError
        If the numbers of names and weights differ.

    Examples
    --------
    >>> from kernelweave.workbench import KernelWeightsDisplay
    >>> display = KernelWeightsDisplay([0.2, 0.8, 0.0], ["linear", "rbf", "laplacian"]).plot()
    >>> display.ax_.get_xlabel()
    'weight (2 of 3 kernels used)'
    """

    def __init__(self, weights: npt.ArrayLike, names: Sequence[str] | None = None) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 1:
            raise ValueError(f"weights must be one row of numbers, got shape {self.weights.shape}")
        count = len(self.weights)
        self.names = [f"K{j}" for j in range(count)] if names is None else list(map(str, names))
        if len(self.names) != count:
            raise ValueError(f"names must be {count}, one a weight, got {len(self.names)}")

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, names: Sequence[str] | None = None, **options: Any
    ) -> KernelWeightsDisplay:
        """Draw the weights that an estimator learned.

        `estimator`: fitted, with ``weights_``, or with a ``kernel_`` that combines named kernels;
        `names`: other names than its own; `**options`: as in `plot`. Raises ValueError if it has
        learned no weights of kernels.
        """
        learned = learned_weights(estimator)
        if learned is None:
            kind = type(estimator).__name__
            raise ValueError(f"estimator must have learned weights of kernels, and {kind} has not")
        return cls(learned[0], learned[1] if names is None else names).plot(**options)

    def plot(
        self, *, max_kernels: int = _MOST_BARS, ax: Axes | None = None
    ) -> KernelWeightsDisplay:
        """Draw a bar a kernel.

        `max_kernels`: the largest in size are drawn, and the axis says how many there are; `ax`:
        where; a new figure without it.
        """
        order = np.argsort(-np.abs(self.weights), kind="stable")[:max_kernels][::-1]
        with on_axes(ax, height=0.6 + 0.26 * len(order)) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            self.bars_ = ax.barh(range(len(order)), self.weights[order], color=LOWER, height=0.7)
            _name_bars(ax, [self.names[i] for i in order])
            if (self.weights < 0).any():
                ax.axvline(0.0, color=FAINT, linewidth=1)
            used = int(np.count_nonzero(self.weights))
            ax.set_xlabel(f"weight ({used} of {len(self.weights)} kernels used)")
            open_frame(ax, "x")
        return self


def _name_bars(ax: Any, names: list[str]) -> None:
    """Write names beside the bars, or above them where that would leave no room for bars."""
    inches = ax.get_position().width * ax.figure.get_figwidth()
    if max(map(len, names), default=0) * _LETTER < _SHARE * inches:
        ax.set_yticks(range(len(names)), names)
        return
    ax.set_yticks([])
    for place, (bar, name) in enumerate(zip(ax.patches, names, strict=True)):
        bar.set_height(0.35)
        bar.set_y(bar.get_y() + 0.02)
        at = {"xycoords": ("axes fraction", "data"), "va": "bottom", "ha": "left"}
        ax.annotate(name, (0.015, place + 0.04), fontsize=8, **at)


def learned_weights(estimator: BaseEstimator) -> tuple[RealArray, list[str] | None] | None:
    """Return the weights of kernels and their names, if any; None if none were learned."""
    machine = fitted_machine(estimator, "result_")
    kernel = getattr(machine, "kernel_", None)
    weights = getattr(machine, "weights_", getattr(kernel, "weights", None))
    if weights is None or np.ndim(weights) != 1:
        return None
    names = getattr(machine, "kernel_names_", getattr(kernel, "kernels", None))
    if names is None or len(names) != len(weights):
        return np.asarray(weights), None
    return np.asarray(weights), [str(name) for name in names]
