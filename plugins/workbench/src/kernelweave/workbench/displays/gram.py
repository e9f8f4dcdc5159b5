"""The learned kernel as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Labels, RealArray, Rows

from ..machines import fitted_machine, transformed
from .axes import COLUMN, on_axes
from .colours import HEAT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


def cosine_gram(K: RealArray) -> npt.NDArray[np.float64]:
    """Return K after centring in feature space, as cosines: Hᵢⱼ / √(Hᵢᵢ Hⱼⱼ), H = J K J.

    J = I − 11ᵀ/n. Kernels with a large mean look like one flat colour otherwise.

    `K` of shape (n, n): positive semidefinite. Returns shape (n, n): in [−1, 1]; zero where a
    centred sample vanishes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.workbench.displays import cosine_gram
    >>> cosine_gram(np.array([[5.0, 1.0], [1.0, 5.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    gram = np.asarray(K, dtype=np.float64)
    rows = gram.mean(axis=1, keepdims=True)
    centred = gram - rows - rows.T + rows.mean()
    norms = np.sqrt(np.maximum(np.diagonal(centred), 0.0))
    scale = np.outer(norms, norms)
    cosines = np.divide(centred, scale, out=np.zeros_like(gram), where=scale > 0)
    result: npt.NDArray[np.float64] = np.clip(cosines, -1.0, 1.0)
    return result


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
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
    image_ : matplotlib AxesImage
        The heat map.
    bar_ : matplotlib Colorbar
        Beside it.

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
        gram = np.asarray(K, dtype=np.float64)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
            raise ValueError(f"K must be a square matrix, got shape {gram.shape}")
        known = np.arange(len(gram)) if y is None else np.asarray(y)
        if known.shape != (len(gram),):
            raise ValueError(f"y must hold {len(gram)} values, got shape {known.shape}")
        order = np.argsort(known, kind="stable")
        self.similarity = cosine_gram(gram)[np.ix_(order, order)]
        self.y = None if y is None else known[order]
        self.classes = known.dtype.kind not in "f" if classes is None else classes

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

        Parameters
        ----------
        estimator : object
            Fitted, with one ``kernel_``; also a pipeline or a search.
        X : array-like of shape (n_samples, n_features)
            Some hundred samples at most, as ``estimator`` takes them.
        y : array-like of shape (n_samples,) or None, default=None
            Their labels or targets.
        classes : bool or None, default=None
            Whether ``y`` holds labels; that of the estimator's kind without it.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        GramDisplay
            Drawn.
        """
        kernel = fitted_machine(estimator, "kernel_").kernel_
        if classes is None:
            classes = hasattr(estimator, "classes_")
        return cls(kernel(transformed(estimator, X)), y, classes=classes).plot(ax=ax)

    @classmethod
    def from_gram(
        cls,
        K: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        classes: bool | None = None,
        ax: Axes | None = None,
    ) -> GramDisplay:
        """Draw a Gram matrix.

        Parameters
        ----------
        K, y, classes
            As for the class.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        GramDisplay
            Drawn.
        """
        return cls(K, y, classes=classes).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> GramDisplay:
        """Draw the heat map, with a colour bar beside it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        GramDisplay
            Itself.
        """
        with on_axes(ax, height=0.85 * COLUMN) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            self.image_ = ax.imshow(self.similarity, cmap=HEAT, vmin=-1.0, vmax=1.0, aspect="equal")
            ticks = [-1, -0.5, 0, 0.5, 1]
            self.bar_ = self.figure_.colorbar(
                self.image_, ax=ax, fraction=0.046, pad=0.03, ticks=ticks
            )
            self.bar_.outline.set_visible(False)
            self.bar_.set_label("similarity (centred cosine)")
            if self.y is None:
                ax.set_xlabel("sample")
                ax.set_ylabel("sample")
            elif self.classes:
                _mark_classes(ax, self.y)
            else:
                _mark_targets(ax, self.y)
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


def _mark_targets(ax: Axes, y: Labels) -> None:
    """Put the targets of five samples on both axes."""
    places = np.linspace(0, len(y) - 1, 5).astype(int)
    names = [f"{value:.3g}" for value in y[places]]
    ax.set_xticks(places, names)
    ax.set_yticks(places, names)
    ax.set_xlabel("target")
    ax.set_ylabel("target")
