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
from kernelweave.kernels_core.arrays import FloatArray, Labels, RealArray, Rows
from kernelweave.kernels_core.checks import one_of

from ..machines import fitted_machine, transformed
from .axes import COLUMN, FAINT, GAP, HEAT, LOWER, UPPER, on_axes, open_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

_KIND = one_of("bounds", "gap")
_NOUNS = {"iterations": "iteration", "seconds": "seconds"}
# so many bars make a figure 6 inches tall, and their numbers have room in a column
_MOST_BARS = 20
# inches of a letter, and the share of the width that names beside the bars may take
_LETTER, _SHARE = 0.065, 0.4
# below this share of the trace an eigenvalue is rounding
_NOTHING = 1e-9


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


class SpectrumDisplay:
    """The eigenvalues of P as shares of its trace, the largest first.

    Parameters
    ----------
    P : array-like of shape (n_P, n_P)
        Symmetric positive semidefinite.

    Attributes
    ----------
    shares : ndarray of shape (n_P,)
        Descending; they sum to one.
    rank : int
        Number of eigenvalues above rounding errors.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    bars_ : matplotlib BarContainer
        At most twenty.

    Raises
    ------
    ValueError
        If P is not a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.workbench import SpectrumDisplay
    >>> SpectrumDisplay(np.diag([0.9, 0.1, 0.0])).plot().ax_.get_xlabel()
    'eigenvalue of P (rank 2 of 3)'
    """

    def __init__(self, P: npt.ArrayLike) -> None:
        values = np.maximum(np.linalg.eigvalsh(_square("P", P))[::-1], 0.0)
        total = values.sum()
        self.shares = values / total if total > 0 else values
        self.rank = int(np.count_nonzero(self.shares > _NOTHING))

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> SpectrumDisplay:
        """Draw the spectrum of the matrix ``P_`` that an estimator learned, on ``ax``."""
        return cls(fitted_machine(estimator, "P_").P_).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> SpectrumDisplay:
        """Draw a bar an eigenvalue, on ``ax`` or a new figure."""
        shown = self.shares[: max(self.rank, 3)][:_MOST_BARS]
        with on_axes(ax) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            places = np.arange(1, len(shown) + 1)
            self.bars_ = ax.bar(places, shown, color=LOWER, width=0.7)
            ax.set_xlabel(f"eigenvalue of P (rank {self.rank} of {len(self.shares)})")
            ax.set_ylabel("share of the trace")
            ax.set_ylim(0.0, 1.0)
            ax.set_xticks(places)
            open_frame(ax, "y")
        return self


class GramDisplay:
    """A Gram matrix as a heat map of centred cosines, its samples ordered by class or target.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Symmetric positive semidefinite.
    y : array-like of shape (n_samples,) or None, default=None
        Labels or targets; without it samples keep their order.
    classes : bool or None, default=None
        Whether ``y`` holds labels: blocks are then named. Otherwise the axes carry targets.
        Decided by the type of ``y`` without it.

    Attributes
    ----------
    similarity : ndarray of shape (n_samples, n_samples)
        What is drawn, see `cosine_gram`, in the order drawn.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.
    image_, bar_ : matplotlib AxesImage and Colorbar
        The heat map and its colour bar.

    Raises
    ------
    ValueError
        If K is not square or ``y`` has another length.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels_core import RBF
    >>> from kernelweave.workbench import GramDisplay
    >>> X = np.array([[0.0], [3.0], [0.1]])
    >>> GramDisplay(RBF(gamma=1.0)(X), ["a", "b", "a"]).similarity.round(1)
    array([[ 1.,  1., -1.],
           [ 1.,  1., -1.],
           [-1., -1.,  1.]])
    """

    def __init__(
        self, K: npt.ArrayLike, y: npt.ArrayLike | None = None, *, classes: bool | None = None
    ) -> None:
        gram = _square("K", K)
        values = np.arange(len(gram)) if y is None else np.asarray(y)
        if values.shape != (len(gram),):
            raise ValueError(f"y must hold {len(gram)} values, got shape {values.shape}")
        order = np.argsort(values, kind="stable")
        self.similarity = cosine_gram(gram)[np.ix_(order, order)]
        self.y = None if y is None else values[order]
        self.classes = values.dtype.kind not in "f" if classes is None else classes

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows,
        y: npt.ArrayLike | None = None,
        *,
        classes: bool | None = None,
        ax: Axes | None = None,
    ) -> GramDisplay:
        """Draw the learned kernel between samples.

        - `estimator`: fitted, with one ``kernel_``
        - `X` of shape (n_samples, n_features): some hundred samples at most
        - `y` of shape (n_samples,): their labels or targets
        - `classes`: whether ``y`` holds labels; that of the estimator's kind without it
        - `ax`: where; a new figure without it
        """
        kernel = fitted_machine(estimator, "kernel_").kernel_
        if classes is None:
            classes = hasattr(estimator, "classes_")
        return cls(kernel(transformed(estimator, X)), y, classes=classes).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> GramDisplay:
        """Draw the heat map, with a colour bar beside it, on ``ax`` or a new figure."""
        with on_axes(ax, height=0.85 * COLUMN) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            self.image_ = ax.imshow(self.similarity, cmap=HEAT, vmin=-1.0, vmax=1.0, aspect="equal")
            ticks = [-1, -0.5, 0, 0.5, 1]
            self.bar_ = self.figure_.colorbar(
                self.image_, ax=ax, fraction=0.046, pad=0.03, ticks=ticks
            )
            self.bar_.outline.set_visible(False)
            self.bar_.set_label("similarity (centred cosine)")
            if self.y is not None and self.classes:
                _mark_classes(ax, self.y)
                return self
            if self.y is not None:
                # the targets of five samples
                places = np.linspace(0, len(self.y) - 1, 5).astype(int)
                names = [f"{value:.3g}" for value in self.y[places]]
                ax.set(xticks=places, yticks=places, xticklabels=names, yticklabels=names)
            what = "sample" if self.y is None else "target"
            ax.set(xlabel=what, ylabel=what)
        return self


def _mark_classes(ax: Axes, y: Labels) -> None:
    """Name each block of equal labels and draw a line between blocks."""
    labels, starts, counts = np.unique(y, return_index=True, return_counts=True)
    for start in starts[1:]:
        ax.axhline(start - 0.5, color="white", linewidth=1)
        ax.axvline(start - 0.5, color="white", linewidth=1)
    middles = starts + (counts - 1) / 2
    names = [f"{label}\n({count})" for label, count in zip(labels, counts, strict=True)]
    ax.set_xticks(middles, names)
    ax.set_yticks(middles, names, rotation=90, va="center")
    ax.tick_params(length=0)


def cosine_gram(K: RealArray) -> npt.NDArray[np.float64]:
    """Return K after centring in feature space, as cosines: Hᵢⱼ / √(Hᵢᵢ Hⱼⱼ), H = J K J.

    J = I − 11ᵀ/n. Kernels with a large mean look like one flat colour otherwise. Zero where a
    centred sample vanishes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.workbench.displays import cosine_gram
    >>> cosine_gram(np.array([[5.0, 1.0], [1.0, 5.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    from sklearn.preprocessing import KernelCenterer

    centred = KernelCenterer().fit_transform(np.asarray(K, dtype=np.float64))
    norms = np.sqrt(np.maximum(np.diagonal(centred), 0.0))
    scale = np.outer(norms, norms)
    cosines = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)
    result: npt.NDArray[np.float64] = np.clip(cosines, -1.0, 1.0)
    return result


def _square(name: str, given: npt.ArrayLike) -> npt.NDArray[np.float64]:
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}")
    return matrix
