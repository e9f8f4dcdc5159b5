"""The learned kernel as a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .colours import HEAT


def cosine_gram(K: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return K after centring in feature space, as cosines: Hᵢⱼ / √(Hᵢᵢ Hⱼⱼ), H = J K J.

    J = I − 11ᵀ/n. Kernels with a large mean look like one flat colour otherwise.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Positive semidefinite.

    Returns
    -------
    ndarray of shape (n, n), float64
        In [−1, 1]; zero where a centred sample vanishes.

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


def plot_gram(K: npt.NDArray[Any], y: npt.NDArray[Any], ax: Any, *, classes: bool = True) -> None:
    """Draw a Gram matrix with its samples ordered by class or target.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix of the samples.
    y : ndarray of shape (n,)
        Labels or targets.
    ax : matplotlib Axes
        Where to draw; a colour bar is added beside it.
    classes : bool, default=True
        Whether ``y`` holds labels: blocks are then named. Otherwise the axes carry targets.
    """
    order = np.argsort(y, kind="stable")
    image = ax.imshow(
        cosine_gram(K)[np.ix_(order, order)], cmap=HEAT, vmin=-1.0, vmax=1.0, aspect="equal"
    )
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.outline.set_visible(False)
    bar.set_label("similarity (centred cosine)")
    _mark_classes(ax, y[order]) if classes else _mark_targets(ax, y[order])


def _mark_classes(ax: Any, y: npt.NDArray[Any]) -> None:
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


def _mark_targets(ax: Any, y: npt.NDArray[Any]) -> None:
    """Put the targets of five samples on both axes."""
    places = np.linspace(0, len(y) - 1, 5).astype(int)
    names = [f"{value:.3g}" for value in y[places]]
    ax.set_xticks(places, names)
    ax.set_yticks(places, names)
    ax.set_xlabel("target")
    ax.set_ylabel("target")
