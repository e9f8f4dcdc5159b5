"""How often a class is true at each height of its decision value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import RealArray

from ..machines import best_of
from .axes import on_axes, open_frame
from .colours import FAINT, LOWER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


# Of equally many samples, and five of them at least: more show more of the curve and less of each.
_BINS = 10
# 95 % of a normal law lie within ± this.
_Z = 1.959963984540054


def wilson_interval(hits: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's formula.

    `hits`, `n`: how many of how many. Both ends, in [0, 1].

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    share = hits / n
    centre = share + _Z**2 / (2 * n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    scale = 1 + _Z**2 / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


class DecisionCalibrationDisplay:
    """How often the positive class is true at each height of the decision value.

    Samples are put into at most ten bins of equal counts; bars are 95 % Wilson intervals. A
    support vector machine promises a sign, not a probability: the curve says what its values are
    worth. (For probabilities there is scikit-learn's ``CalibrationDisplay``.)

    Parameters
    ----------
    middles, shares : ndarray of shape (n_bins,)
        Median decision value of a bin, and the share of the positive class in it.
    intervals : ndarray of shape (n_bins, 2)
        Both ends of the interval of each share.
    positive : str
        Name of the positive class.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
    points_ : matplotlib ErrorbarContainer
        The bins.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.workbench import DecisionCalibrationDisplay
    >>> d = np.linspace(-1, 1, 40)
    >>> display = DecisionCalibrationDisplay.from_predictions(d > 0, d)
    >>> display.shares
    array([0., 0., 0., 0., 1., 1., 1., 1.])
    """

    def __init__(
        self,
        middles: RealArray,
        shares: RealArray,
        intervals: RealArray,
        *,
        positive: str = "True",
    ) -> None:
        self.middles = middles
        self.shares = shares
        self.intervals = intervals
        self.positive = positive

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: object, y: npt.ArrayLike, *, ax: Axes | None = None
    ) -> DecisionCalibrationDisplay:
        """Draw the decision values of a classifier of two classes.

        Parameters
        ----------
        estimator : object
            Fitted, with ``decision_function`` and two ``classes_``.
        X : array-like of shape (n_samples, n_features)
            Samples that it was not fitted on.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        DecisionCalibrationDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there are not two classes.
        """
        classes: Any = getattr(best_of(estimator), "classes_", ())
        if len(classes) != 2:
            raise ValueError(f"estimator must tell two classes apart, and it has {len(classes)}")
        decision = estimator.decision_function(X)
        return cls.from_predictions(y, decision, pos_label=classes[1], ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y: npt.ArrayLike,
        decision: npt.ArrayLike,
        *,
        pos_label: object = True,
        ax: Axes | None = None,
    ) -> DecisionCalibrationDisplay:
        """Draw decision values.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels.
        decision : array-like of shape (n_samples,)
            Decision values, larger for the positive class.
        pos_label : label, default=True
            The positive class.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        DecisionCalibrationDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there are no samples, or not as many labels as values.
        """
        values: npt.NDArray[np.float64] = np.asarray(decision, dtype=np.float64)
        true: npt.NDArray[np.bool_] = np.asarray(np.asarray(y) == pos_label)
        if values.ndim != 1 or values.shape != true.shape or len(values) == 0:
            raise ValueError(
                f"y and decision must be rows of one length, got {true.shape} and {values.shape}"
            )
        order = np.argsort(values, kind="stable")
        parts = np.array_split(order, min(_BINS, max(1, len(order) // 5)))
        hits = [float(true[part].sum()) for part in parts]
        return cls(
            np.array([np.median(values[part]) for part in parts]),
            np.array([hit / len(part) for hit, part in zip(hits, parts, strict=True)]),
            np.array([wilson_interval(h, len(part)) for h, part in zip(hits, parts, strict=True)]),
            positive=str(pos_label),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> DecisionCalibrationDisplay:
        """Draw a point and an interval a bin.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        DecisionCalibrationDisplay
            Itself.
        """
        with on_axes(ax) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            ax.axvline(0.0, color=FAINT, linewidth=1)
            ax.axhline(0.5, color=FAINT, linewidth=1, linestyle="--")
            reach = np.abs(self.intervals - self.shares[:, None]).T
            self.points_ = ax.errorbar(
                self.middles, self.shares, reach, fmt="o", color=LOWER, markersize=4
            )
            ax.set_ylim(-0.03, 1.03)
            ax.set_xlabel("decision value")
            ax.set_ylabel(f"share of {self.positive}")
            open_frame(ax, None)
        return self
