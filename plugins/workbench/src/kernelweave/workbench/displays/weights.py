"""What a learned kernel is made of, where it is a combination of named kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import RealArray

from ..machines import fitted_machine
from .axes import on_axes, open_frame
from .colours import FAINT, LOWER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# So many bars make a figure 6 inches tall; the axis says how many kernels there are.
_SHOWN = 20
# inches of a letter, and the share of the width that names beside the bars may take
_LETTER, _SHARE = 0.065, 0.4


class KernelWeightsDisplay:
    """The weights of a combination of kernels as bars, the largest on top.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,)
        A number a kernel.
    names : sequence of str or None, default=None
        Of the kernels; K0, K1, ... without it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
    bars_ : matplotlib BarContainer
        The smallest first.

    Raises
    ------
    ValueError
        If there are not as many names as weights.

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
        cls,
        estimator: BaseEstimator,
        *,
        names: Sequence[str] | None = None,
        max_kernels: int = _SHOWN,
        ax: Axes | None = None,
    ) -> KernelWeightsDisplay:
        """Draw the weights that an estimator learned.

        Parameters
        ----------
        estimator : object
            Fitted, with ``weights_``, or with a ``kernel_`` that combines named kernels.
        names : sequence of str or None, default=None
            Other names than the estimator's.
        max_kernels : int, default=20
            As in `plot`.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        KernelWeightsDisplay
            Drawn.

        Raises
        ------
        ValueError
            If the estimator has learned no weights of kernels.
        """
        found = learned_weights(estimator)
        if found is None:
            kind = type(estimator).__name__
            raise ValueError(f"estimator must have learned weights of kernels, and {kind} has not")
        weights, own = found
        display = cls(weights, own if names is None else names)
        return display.plot(max_kernels=max_kernels, ax=ax)

    def plot(self, *, max_kernels: int = _SHOWN, ax: Axes | None = None) -> KernelWeightsDisplay:
        """Draw a bar a kernel.

        Parameters
        ----------
        max_kernels : int, default=20
            The largest in size are drawn; the axis says how many there are.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        KernelWeightsDisplay
            Itself.
        """
        order = np.argsort(-np.abs(self.weights), kind="stable")[:max_kernels][::-1]
        with on_axes(ax, height=0.6 + 0.26 * len(order)) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            places = np.arange(len(order))
            self.bars_ = ax.barh(places, self.weights[order], color=LOWER, height=0.7)
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
    for bar in ax.patches:
        bar.set_height(0.35)
        bar.set_y(bar.get_y() + 0.02)
    for place, name in enumerate(names):
        at = {"xycoords": ("axes fraction", "data"), "va": "bottom", "ha": "left"}
        ax.annotate(name, (0.015, place + 0.04), fontsize=8, **at)


def learned_weights(estimator: BaseEstimator) -> tuple[RealArray, list[str] | None] | None:
    """Return the weights of kernels and their names, None where none were learned.

    `estimator`: fitted: a kernel machine, a pipeline that ends in one, or a search over either.
    Returns shape (n_kernels,): names are None where the kernels have none.
    """
    machine = fitted_machine(estimator, "result_")
    kernel = getattr(machine, "kernel_", None)
    weights = getattr(machine, "weights_", getattr(kernel, "weights", None))
    if weights is None or np.ndim(weights) != 1:
        return None
    names = getattr(machine, "kernel_names_", getattr(kernel, "kernels", None))
    if names is None or len(names) != len(weights):
        return np.asarray(weights), None
    return np.asarray(weights), [str(name) for name in names]
