"""What a learned kernel is made of, where it is given by a positive matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..machines import fitted_machine
from .axes import on_axes, open_frame
from .colours import LOWER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# The numbers of more bars have no room in a figure as wide as a column.
_SHOWN = 20
# below this share of the trace an eigenvalue is rounding
_NOTHING = 1e-9


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
        How many are more than rounding.
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
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
        matrix = np.asarray(P, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"P must be a square matrix, got shape {matrix.shape}")
        values = np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0)
        total = values.sum()
        self.shares = values / total if total > 0 else values
        self.rank = int(np.count_nonzero(self.shares > _NOTHING))

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: Axes | None = None) -> SpectrumDisplay:
        """Draw the spectrum of the matrix that an estimator learned.

        Parameters
        ----------
        estimator : object
            Fitted, with ``P_``.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        SpectrumDisplay
            Drawn.
        """
        return cls(fitted_machine(estimator, "P_").P_).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> SpectrumDisplay:
        """Draw a bar an eigenvalue.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        SpectrumDisplay
            Itself.
        """
        shown = self.shares[: max(self.rank, 3)][:_SHOWN]
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
