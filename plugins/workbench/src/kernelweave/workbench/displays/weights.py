"""What a learned kernel is made of: weights of named kernels, or the spectrum of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .colours import FAINT, LOWER

_SHOWN = 20


def plot_weights(weights: npt.NDArray[Any], names: Sequence[str], ax: Any) -> None:
    """Draw the weights of a combination of kernels as bars, the largest on top.

    Parameters
    ----------
    weights : ndarray of shape (n_kernels,)
        The twenty largest in size are drawn; the axis says how many there are.
    names : sequence of str
        Of the kernels.
    ax : matplotlib Axes
        Where to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.workbench import plot_weights
    >>> plot_weights(np.array([0.2, 0.8]), ["linear", "rbf"], Figure().subplots())
    """
    values = np.asarray(weights, dtype=np.float64)
    order = np.argsort(-np.abs(values), kind="stable")[:_SHOWN][::-1]
    ax.barh(np.arange(len(order)), values[order], color=LOWER, height=0.7)
    ax.set_yticks(np.arange(len(order)), [names[i] for i in order])
    if (values < 0).any():
        ax.axvline(0.0, color=FAINT, linewidth=1)
    n_used = int(np.count_nonzero(values))
    ax.set_xlabel(f"weight ({n_used} of {len(values)} kernels used)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", alpha=0.2)


def plot_spectrum(P: npt.NDArray[Any], ax: Any) -> None:
    """Draw the eigenvalues of P as shares of its trace, the largest first.

    Parameters
    ----------
    P : ndarray of shape (n, n)
        Positive semidefinite.
    ax : matplotlib Axes
        Where to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.workbench import plot_spectrum
    >>> plot_spectrum(np.diag([0.9, 0.1, 0.0]), Figure().subplots())
    """
    values = np.maximum(np.linalg.eigvalsh(np.asarray(P, dtype=np.float64))[::-1], 0.0)
    total = values.sum()
    shares = values / total if total > 0 else values
    rank = int(np.count_nonzero(shares > 1e-9))
    shown = shares[: max(rank, 3)][:_SHOWN]
    ax.bar(np.arange(1, len(shown) + 1), shown, color=LOWER, width=0.7)
    ax.set_xlabel(f"eigenvalue of P (rank {rank} of {len(values)})")
    ax.set_ylabel("share of the trace")
    ax.set_ylim(0.0, 1.0)
    ax.set_xticks(np.arange(1, len(shown) + 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.2)
