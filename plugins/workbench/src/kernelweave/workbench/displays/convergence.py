"""The course of a solve: both proved bounds, and the gap between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import History, Result
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.checks import one_of

from ..machines import fitted_machine
from .axes import on_axes, open_frame
from .colours import FAINT, GAP, LOWER, UPPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator


_KIND = one_of("bounds", "gap")
_NOUNS = {"iterations": "iteration", "seconds": "seconds"}


class ConvergenceDisplay:
    """How the proved bounds closed on the optimum, or how the relative gap fell.

    Parameters
    ----------
    history : History
        One entry an iteration.
    tol : float or None, default=None
        The relative gap asked for; drawn as a line where the gap is.
    name : str or None, default=None
        Of the solve, for a legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
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
        cls,
        estimator: BaseEstimator,
        *,
        kind: str = "bounds",
        by: str = "iterations",
        name: str | None = None,
        ax: Axes | None = None,
        **line: object,
    ) -> ConvergenceDisplay:
        """Draw the course of a fit.

        Parameters
        ----------
        estimator : object
            Fitted: a kernel machine, a pipeline that ends in one, or a search over either.
        kind, by, ax, **line
            As in `plot`.
        name : str or None, default=None
            For a legend.

        Returns
        -------
        ConvergenceDisplay
            Drawn.

        Raises
        ------
        ValueError
            If the estimator holds several solves; draw one by `from_result`.
        """
        machine = fitted_machine(estimator, "result_")
        display = cls(machine.result_.history, tol=getattr(machine, "tol", None), name=name)
        return display.plot(kind=kind, by=by, ax=ax, **line)

    @classmethod
    def from_result(
        cls,
        result: Result,
        *,
        tol: float | None = None,
        kind: str = "bounds",
        by: str = "iterations",
        name: str | None = None,
        ax: Axes | None = None,
        **line: object,
    ) -> ConvergenceDisplay:
        """Draw the course of a solve.

        Parameters
        ----------
        result : Result
            What ``solve`` returns.
        tol : float or None, default=None
            The relative gap asked for.
        kind, by, ax, **line
            As in `plot`.
        name : str or None, default=None
            For a legend; the algorithm without it.

        Returns
        -------
        ConvergenceDisplay
            Drawn.
        """
        display = cls(result.history, tol=tol, name=result.algorithm if name is None else name)
        return display.plot(kind=kind, by=by, ax=ax, **line)

    def plot(
        self,
        *,
        kind: str = "bounds",
        by: str = "iterations",
        ax: Axes | None = None,
        **line: object,
    ) -> ConvergenceDisplay:
        """Draw the bounds and the strip between them, or the gap on a logarithmic axis.

        Parameters
        ----------
        kind : {"bounds", "gap"}, default="bounds"
            What to draw.
        by : str, default="iterations"
            Against what: ``"iterations"``, ``"seconds"``, or a count of the history such as
            ``"n_solves"``.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.
        **line
            Passed to matplotlib for the gap's line, e.g. ``color`` and ``linestyle``.

        Returns
        -------
        ConvergenceDisplay
            Itself.

        Raises
        ------
        ValueError
            If ``kind`` or ``by`` is none of those.
        """
        _KIND.check("kind", kind)
        at = self._places(by)
        with on_axes(ax) as self.ax_:
            self.figure_ = self.ax_.figure
            self.lines_ = self._bounds(at) if kind == "bounds" else self._gap(at, line)
            self.ax_.set_xlabel(_NOUNS.get(by, by.removeprefix("n_").replace("_", " ")))
            open_frame(self.ax_)
            if by != "seconds":
                _whole_numbers(self.ax_)
        return self

    def _places(self, by: str) -> npt.NDArray[np.number]:
        if by == "iterations":
            return np.arange(len(self.history))
        if by == "seconds":
            return np.array(self.history.seconds)
        one_of("iterations", "seconds", *self.history.counts).check("by", by)
        return np.array(self.history.counts[by])

    def _bounds(self, at: npt.NDArray[np.number]) -> list[Line2D]:
        lower, upper = np.array(self.history.lower), np.array(self.history.upper)
        shown, ax = np.isfinite(lower), self.ax_
        ax.fill_between(at[shown], lower[shown], upper[shown], color=FAINT, alpha=0.25, linewidth=0)
        lines = ax.plot(at, upper, color=UPPER, marker="v", markersize=4, label="upper bound")
        if shown.any():
            lines += ax.plot(
                at[shown], lower[shown], color=LOWER, marker="^", markersize=4, label="lower bound"
            )
            _focus(ax, lower[shown], upper)
        ax.set_ylabel("objective")
        ax.legend(frameon=False)
        return list(lines)

    def _gap(self, at: npt.NDArray[np.number], line: dict[str, object]) -> list[Line2D]:
        gap, ax = self.history.gap, self.ax_
        shown = np.isfinite(gap) & (gap > 0)
        style = {"color": GAP, "marker": "o", "markersize": 3, "linewidth": 1.2} | line
        lines = ax.semilogy(at[shown], gap[shown], label=self.name, **style)
        if self.tol is not None and self.tol > 0:
            ax.axhline(self.tol, color=FAINT, linestyle="--", linewidth=1)
            place = {"xycoords": ("axes fraction", "data"), "ha": "left", "va": "bottom"}
            ax.annotate(
                f"asked for: {self.tol:g}", (0.01, self.tol), color=GAP, fontsize=8, **place
            )
        ax.set_ylabel("relative gap")
        return list(lines)


def _focus(ax: Axes, lower: FloatArray, upper: FloatArray) -> None:
    """Let the first lower bounds leave the picture where they would flatten all the others."""
    end = upper[-1]
    reach = 1.15 * max(upper.max() - end, end - np.median(lower))
    if lower.min() < end - 1.5 * reach:
        ax.set_ylim(end - reach, end + reach)


def _whole_numbers(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
