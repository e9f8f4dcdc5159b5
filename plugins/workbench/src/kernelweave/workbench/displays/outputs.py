"""Which outputs go together: a learned output kernel as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..machines import fitted_machine
from .axes import COLUMN, on_axes
from .colours import FAINT, LOWER, UPPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

_LINES = 3  # for each output
_UPRIGHT = 12  # outputs up to which names stand upright


class OutputGraphDisplay:
    """Outputs on a circle, those that go together beside each other and joined by lines.

    A line is as wide as the similarity Lᵢⱼ/√(Lᵢᵢ Lⱼⱼ) is large: solid where outputs rise together,
    dashed where one falls as the other rises. A large dot is an output with much of the trace of L,
    which is where the model spends its freedom.

    By default `MatrixValuedKernelRegressor` learns no output kernel: L is a multiple of the
    identity, nothing is joined, and the picture says so. ``learn_output=True`` learns it.

    Parameters
    ----------
    L : array-like of shape (n_outputs, n_outputs)
        Output kernel, symmetric positive semidefinite.
    names : sequence of str, optional
        Of the outputs; their places otherwise.
    least : float, default=0.3
        Similarity, in absolute value, from which a line is drawn; three times as many lines as
        outputs at most.

    Attributes
    ----------
    similarity : ndarray of shape (n_outputs, n_outputs)
        In [−1, 1]; zero where L is.
    order : ndarray of shape (n_outputs,)
        Outputs round the circle.
    pairs : list of (str, str, float)
        What is joined, the most alike first.
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.

    Raises
    ------
    ValueError
        If L is not square or ``names`` are not as many.

    Examples
    --------
    >>> from kernelweave.workbench import OutputGraphDisplay
    >>> L = [[1.0, 0.0, -0.8], [0.0, 1.0, 0.1], [-0.8, 0.1, 1.0]]
    >>> OutputGraphDisplay(L, ["price", "rain", "stock"]).pairs
    [('price', 'stock', -0.8)]
    """

    def __init__(
        self, L: npt.ArrayLike, names: Sequence[str] | None = None, *, least: float = 0.3
    ) -> None:
        kernel = np.asarray(L, dtype=np.float64)
        if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
            raise ValueError(f"L must be a square matrix, got shape {kernel.shape}")
        self.names = [str(each) for each in (range(len(kernel)) if names is None else names)]
        if len(self.names) != len(kernel):
            raise ValueError(f"names must hold {len(kernel)} names, got {len(self.names)}")
        self.least = least
        self.shares = np.diagonal(kernel) / (float(np.trace(kernel)) or 1.0)
        root = np.sqrt(np.maximum(np.diagonal(kernel), 0.0))
        scale = np.outer(root, root)
        self.similarity = np.divide(kernel, scale, out=np.zeros_like(kernel), where=scale > 0.0)
        self.order = _seriation(np.abs(self.similarity))
        first, second = np.triu_indices(len(kernel), 1)
        alike = self.similarity[first, second]
        kept = [k for k in np.argsort(-np.abs(alike), kind="stable") if abs(alike[k]) >= least]
        drawn = kept[: _LINES * len(kernel)]
        self._joined = [(int(first[k]), int(second[k]), float(alike[k])) for k in drawn]
        self.pairs = [(self.names[i], self.names[j], value) for i, j, value in self._joined]

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        names: Sequence[str] | None = None,
        least: float = 0.3,
        ax: Axes | None = None,
    ) -> OutputGraphDisplay:
        """Draw the output kernel of a fit.

        Parameters
        ----------
        estimator : object
            Fitted with ``learn_output=True``; also a pipeline or a search.
        names : sequence of str, optional
            Of the outputs; those of a DataFrame that it was fitted to, or its classes, otherwise.
        least : float, default=0.3
            As for the class.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        OutputGraphDisplay
            Drawn.
        """
        machine = fitted_machine(estimator, "output_kernel_")
        if names is None:
            known = getattr(machine, "classes_", None)
            names = getattr(machine, "output_names_", None) if known is None else list(known)
        return cls(machine.output_kernel_, names, least=least).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> OutputGraphDisplay:
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        OutputGraphDisplay
            Itself.
        """
        with on_axes(ax, height=COLUMN) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            n = len(self.names)
            angle = 0.5 * np.pi - 2.0 * np.pi * np.arange(n) / max(n, 1)
            place = np.empty((n, 2))
            place[self.order] = np.column_stack([np.cos(angle), np.sin(angle)])
            for i, j, value in reversed(self._joined):
                ax.plot(
                    *place[[i, j]].T,
                    color=LOWER if value > 0.0 else UPPER,
                    linestyle="-" if value > 0.0 else "--",
                    linewidth=0.4 + 2.6 * value**2,
                    alpha=0.85,
                    zorder=1,
                )
            largest = float(self.shares.max(initial=0.0)) or 1.0
            room = min(70.0, 1500.0 / max(n, 1))
            sizes = room * (0.15 + 0.85 * np.maximum(self.shares, 0.0) / largest)
            ax.scatter(place[:, 0], place[:, 1], s=sizes, color=FAINT, edgecolors="white", zorder=2)
            for name, (x, y) in zip(self.names, place, strict=True):
                _write(ax, name, x, y, n)
            ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal")
            ax.set_axis_off()
            ax.set_title(self._title(), fontsize=8, pad=20 if n <= _UPRIGHT else 34)
        return self

    def _title(self) -> str:
        if not (self.similarity - np.diag(np.diagonal(self.similarity))).any():
            return "L is diagonal: outputs are not coupled\n(learn_output=True learns how they are)"
        if not self._joined:
            return f"no two outputs are alike by {self.least:g} or more"
        full = len(self._joined) == _LINES * len(self.names)
        shown = abs(self._joined[-1][2]) if full else self.least
        return f"alike by {shown:.2g} or more: solid together, dashed against"


def _seriation(similarity: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return an order in which what is alike stands close: along the Fiedler vector."""
    laplacian = np.diag(similarity.sum(axis=1)) - similarity
    _, vectors = np.linalg.eigh(laplacian)
    return np.argsort(vectors[:, min(1, len(vectors) - 1)], kind="stable")


def _write(ax: Axes, name: str, x: float, y: float, n: int) -> None:
    """Write a name outside the circle, upright for few outputs, along the radius for many."""
    turned = n > _UPRIGHT
    left = x < -1e-9
    angle = float(np.degrees(np.arctan2(y, x)))
    upright = "center" if abs(x) < 0.3 else "right" if left else "left"
    ax.annotate(
        name,
        (x, y),
        (7.0 * x, 7.0 * y),
        textcoords="offset points",
        fontsize=float(np.clip(130.0 / max(n, 1), 4.0, 8.0)),
        ha=("right" if left else "left") if turned else upright,
        va="center" if turned or abs(y) < 0.3 else "bottom" if y > 0 else "top",
        rotation=(angle + 180.0 if left else angle) if turned else 0.0,
        rotation_mode="anchor",
        annotation_clip=False,
    )
