"""Mean predicted survival functions beside those that rows have without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import integer

from .display import SERIES, axes_of, finish, held_out_of, task_of
from .ends import ends_of
from .judging import Measures, Stratum, curves_of_strata, measures_of, new_targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


class SurvivalCalibrationDisplay:
    """Mean predicted survival functions beside those that the rows have without a model.

    Rows are in groups by their predictions, since all together agree nearly by construction: the
    residuals of held-out rows gave the distributions their shape. A line is the mean of the
    predicted survival functions of a group. The steps of the same colour are Kaplan and Meier's
    estimator, or Turnbull's where targets are below a limit or in a range; their band is a 95 %
    interval (Greenwood), where limits lie on one side.

    Parameters
    ----------
    groups : sequence of Stratum
        Curves of each group, the one predicted lowest first.
    measures : Measures, optional
        ``brier``, ``brier_one_curve`` and ``calibration_p`` of all the rows, as in ``held_out_``.
        Of rows that the fit did not see the test is whether each third of them has a tenth in every
        bin of the predicted probabilities.
    labels : sequence of str
        Names of the groups, for the legend.
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
    >>> from kernelweave.evidence import EvidenceKernelRegressor, SurvivalCalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"dose": rng.uniform(0, 2, 60)})
    >>> days = np.exp(X["dose"] + 0.5 * rng.standard_normal(60))
    >>> y = pd.DataFrame({"died": days < 6.0, "days": np.minimum(days, 6.0)})
    >>> model = EvidenceKernelRegressor().fit(X, y)
    >>> display = SurvivalCalibrationDisplay.from_estimator(model)
    >>> display.labels
    ['short', 'middle', 'long']
    >>> [group.n_rows for group in display.groups]
    [20, 20, 20]
    """

    def __init__(
        self,
        groups: Sequence[Stratum],
        measures: Measures | None = None,
        *,
        labels: Sequence[str],
        response: str = "time",
        times: bool = True,
    ) -> None:
        self.groups, self.measures, self.labels = list(groups), measures, list(labels)
        self.response, self.times = response, times

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Table | None = None,
        y: object = None,
        *,
        n_groups: int = 3,
        response: str | None = None,
        ax: Axes | None = None,
    ) -> SurvivalCalibrationDisplay:
        """Compute and draw the curves of rows that folds held out, or of other rows.

        Parameters
        ----------
        estimator : EvidenceKernelRegressor
            Fitted to targets known by half.
        X : table of shape (n_rows, n_columns), optional
            Rows with known targets that the fit did not see; without it those that folds held out.
        y : array-like of shape (n_rows,) or (n_rows, 2), optional
            Their targets, in any form that `fit` takes.
        n_groups : int, default=3
            Groups of as many rows each, by their predictions; 1 for all rows together.
        response : str, optional
            Name of the target; "time" or "target".
        ax : matplotlib Axes, optional
            As in `plot`.

        Returns
        -------
        SurvivalCalibrationDisplay
            Drawn.

        Raises
        ------
        ValueError
            If the estimator was fitted to other targets, only one of X and y is given, no fold
            held out a row, or no row has a finite end, as if all are censored at time 0.
        """
        integer(1).check("n_groups", n_groups)
        task, model = task_of(estimator), estimator
        if (X is None) != (y is None):
            raise ValueError("X and y must be given both, or neither for the rows held out")
        if X is None:
            judged = held_out_of(model)
        else:
            encoded = model._encoded(X)
            ends = ends_of(y, len(encoded.numeric), known=True)[0]
            ends = task.learned(ends)
            judged = new_targets(model._predictor, encoded.numeric, encoded.codes, ends)
        groups = curves_of_strata(
            judged.told, judged.ends, judged.mass, n_groups, log=task.log, times=task.times
        )
        measures = measures_of(judged, log=task.log)
        labels = _names(len(groups), times=task.times)
        named = response or ("time" if task.times else "target")
        display = cls(groups, measures, labels=labels, response=named, times=task.times)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> SurvivalCalibrationDisplay:
        """Draw a line and steps for each group.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Without it those of a new figure.

        Returns
        -------
        SurvivalCalibrationDisplay
            Itself.
        """
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        for k, (label, group) in enumerate(zip(self.labels, self.groups, strict=True)):
            colour, dashes = SERIES[k % len(SERIES)]
            seen = group.observed
            start, end = group.points[0], group.points[-1]
            inside = (seen.places >= start) & (seen.places <= end)
            last = min(end, seen.places[-1]) if len(seen.places) else end
            steps = np.concatenate([[start], seen.places[inside], [last]])
            self.ax_.step(
                steps, seen.at(steps), where="post", color=colour, linewidth=0.8, alpha=0.9
            )
            if seen.low is not None and seen.high is not None:
                self.ax_.fill_between(
                    seen.places[inside], seen.low[inside], seen.high[inside], step="post",
                    color=colour, alpha=0.14, linewidth=0,
                )  # fmt: skip
            shown = group.points <= last
            self.ax_.plot(
                group.points[shown], group.predicted[shown], color=colour, linestyle=dashes,
                linewidth=1.6, label=f"{label} ({group.n_rows} rows)",
            )  # fmt: skip
        finish(self.ax_, self.response, "share surviving" if self.times else "share with more")
        return self


def _names(n_groups: int, *, times: bool) -> list[str]:
    """Return names of groups of rows, by their predictions."""
    if n_groups == 1:
        return ["all"]
    ends = ("short", "long") if times else ("low", "high")
    if n_groups <= 3:
        return [ends[0], *(["middle"] if n_groups == 3 else []), ends[1]]
    return [f"group {k + 1} of {n_groups}" for k in range(n_groups)]
