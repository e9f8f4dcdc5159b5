"""Survival functions of chosen rows, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, Index
from kernelweave.kernels_core.arrays import Rows as Table
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .judging import (
    JudgedTargets,
    distributions_of,
    held_out_targets,
    points_between,
    to_learned,
)
from .task import CensoredRegression

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

# of Okabe and Ito, in black and white told apart by the dashes
SERIES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))
# posterior deviations from the curve to the ends of its band
_REACH = 2.0
# rows that `from_held_out` draws: at these quantiles of the predictions
_SHOWN = {"short": 0.1, "middle": 0.5, "long": 0.9}
_INCHES = (3.5, 2.6)


class SurvivalDisplay:
    """Survival functions of chosen rows, with bands.

    A curve is the probability of a longer time, or of a larger target. Its band is where the curve
    would be if the posterior mean of the row were two posterior standard deviations lower or
    higher: how well the curve is known, by Laplace's approximation at the learned scales. It is no
    interval for the time itself, which the curve tells.

    Parameters
    ----------
    points : ndarray of shape (n_points,)
        Times, or values of the target.
    survival, low, high : ndarray of shape (n_rows, n_points)
        The curves, and the ends of their bands.
    labels : sequence of str
        Names of the rows, for the legend.
    response : str, default="time"
        Name of the target, for the axis.
    times : bool, default=True
        Whether targets are times up to an event, also for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from kernelweave.evidence import EvidenceKernelRegressor, SurvivalDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"dose": rng.uniform(0, 2, 60)})
    >>> days = np.exp(X["dose"] + 0.5 * rng.standard_normal(60))
    >>> y = pd.DataFrame({"died": days < 6.0, "days": np.minimum(days, 6.0)})
    >>> model = EvidenceKernelRegressor().fit(X, y)
    >>> display = SurvivalDisplay.from_estimator(model, X.iloc[:2])
    >>> display.survival.shape
    (2, 200)
    >>> bool((display.low <= display.survival).all())
    True
    """

    def __init__(
        self,
        points: FloatArray,
        survival: FloatArray,
        low: FloatArray,
        high: FloatArray,
        *,
        labels: Sequence[str],
        response: str = "time",
        times: bool = True,
    ) -> None:
        self.points, self.survival, self.low, self.high = points, survival, low, high
        self.labels, self.response, self.times = list(labels), response, times

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Table,
        *,
        points: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
        response: str | None = None,
        ax: Axes | None = None,
    ) -> SurvivalDisplay:
        """Compute and draw the curves of new rows.

        Parameters
        ----------
        estimator : EvidenceKernelRegressor
            Fitted to targets known by half.
        X : table of shape (n_rows, n_columns)
            The rows, a few.
        points : array-like of shape (n_points,), optional
            Times to draw the curves at, ascending; 200 up to the last finite limit of training.
        labels : sequence of str, optional
            One a row; by default the index of a pandas DataFrame, or the row's number from 0.
        response : str, optional
            Name of the target; "time" or "target".
        ax : matplotlib Axes, optional
            As in `plot`.

        Returns
        -------
        SurvivalDisplay
            Drawn.

        Raises
        ------
        ValueError
            If the estimator was fitted to other targets, or labels are not one a row.
        """
        task, model = task_of(estimator), estimator
        told = distributions_of(model._predictor, *model._encoded(X))
        if labels is None:
            # lists have a method `index`
            table: Any = X
            index = table.index if hasattr(X, "iloc") else range(len(told.centre))
            labels = [f"row {each}" for each in index]
        return cls._of(model, task, told, points, labels, response).plot(ax=ax)

    @classmethod
    def from_held_out(
        cls,
        estimator: BaseEstimator,
        rows: Sequence[int] | None = None,
        *,
        points: ArrayLike | None = None,
        labels: Sequence[str] | None = None,
        response: str | None = None,
        ax: Axes | None = None,
    ) -> SurvivalDisplay:
        """Compute and draw the curves of training rows, by folds that did not see them.

        Parameters
        ----------
        estimator : EvidenceKernelRegressor
            Fitted to targets known by half, with two folds or more.
        rows : sequence of int, optional
            Places in the training table, from 0; by default three rows: at the 10 %, 50 % and 90 %
            quantile of the predictions.
        points, labels, response, ax
            As in `from_estimator`.

        Returns
        -------
        SurvivalDisplay
            Drawn.

        Raises
        ------
        ValueError
            If the estimator was fitted to other targets, rows is empty, or no fold held out one of
            the rows.
        """
        task, model = task_of(estimator), estimator
        held_out = held_out_of(model)
        owner = np.asarray(model._owner)
        if rows is None:
            order = np.argsort(held_out.told.centre, kind="stable")
            at = order[[round(share * (len(order) - 1)) for share in _SHOWN.values()]]
            rows = [int(np.argmax(owner == held_out.rows[place])) for place in at]
            named = zip(rows, _SHOWN, strict=True)
            names = [f"{name} (row {row})" for row, name in named]
        else:
            at = _places_of(rows, owner, held_out.rows)
            names = [f"row {row}" for row in rows]
        labels = names if labels is None else labels
        told = held_out.told.take(at)
        return cls._of(model, task, told, points, labels, response).plot(ax=ax)

    @classmethod
    def _of(
        cls, model: Any, task: CensoredRegression, told: Any, points: ArrayLike | None,
        labels: Sequence[str], response: str | None,
    ) -> SurvivalDisplay:  # fmt: skip
        if len(labels) != len(told.centre):
            raise ValueError(
                f"labels must be {len(told.centre)}, one a row, got {len(labels)}: {list(labels)}"
            )
        if points is None:
            points = points_between(model._predictor.rows.ends, log=task.log)
        places = np.asarray(points, dtype=np.float64)
        at = to_learned(places, log=task.log)
        curve, low, high = (told.survival(at, shift) for shift in (0.0, -_REACH, _REACH))
        named = response or ("time" if task.times else "target")
        return cls(places, curve, low, high, labels=labels, response=named, times=task.times)

    def plot(self, *, ax: Axes | None = None) -> SurvivalDisplay:
        """Draw the curves and their bands.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Without it those of a new figure.

        Returns
        -------
        SurvivalDisplay
            Itself.
        """
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        for k, (label, curve) in enumerate(zip(self.labels, self.survival, strict=True)):
            colour, dashes = SERIES[k % len(SERIES)]
            self.ax_.fill_between(
                self.points, self.low[k], self.high[k], color=colour, alpha=0.18, linewidth=0
            )
            self.ax_.plot(
                self.points, curve, color=colour, linestyle=dashes, linewidth=1.4, label=label
            )
        what = "survival probability" if self.times else "probability of more"
        finish(self.ax_, self.response, what)
        return self


def task_of(estimator: Any) -> CensoredRegression:
    """Return the task of a fitted estimator; raise unless its targets were known by half."""
    check_is_fitted(estimator)
    task = getattr(estimator, "_task", None)
    if not isinstance(task, CensoredRegression):
        raise ValueError(
            "estimator must be an EvidenceKernelRegressor fitted to targets known by half, such as "
            f"times with an event, got {type(estimator).__name__} fitted to others"
        )
    return task


def held_out_of(model: Any) -> JudgedTargets:
    """Return the rows that folds held out; raise where there are fewer than two folds."""
    held_out = held_out_targets(model._predictor)
    if held_out is None:
        raise ValueError(
            "estimator must have held out rows in two folds or more: give X and y, or fit with "
            "n_folds=3 and time enough"
        )
    return held_out


def _places_of(rows: Sequence[int], owner: Index, held_out: Index) -> Index:
    """Return the places of rows of the user's table among those held out."""
    if not len(rows):
        raise ValueError("rows must name a row or more, got none: leave it out for three rows")
    places = np.empty(len(rows), dtype=np.intp)
    for k, row in enumerate(rows):
        found = np.flatnonzero(held_out == owner[row]) if 0 <= row < len(owner) else np.empty(0)
        if not len(found):
            raise ValueError(
                f"rows must be places from 0 to {len(owner) - 1} of rows that a fold held out, got "
                f"{row}"
            )
        places[k] = found[0]
    return places


def axes_of(ax: Axes | None) -> Any:
    """Return the axes, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=_INCHES, layout="constrained")[1]


def finish(ax: Axes, response: str, what: str) -> None:
    """Name the axes of survival functions, and show the legend."""
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel(response, fontsize=9)
    ax.set_ylabel(what, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.2)
    ax.set_axisbelow(True)
    ax.legend(fontsize=8, framealpha=0.7, edgecolor="none")
