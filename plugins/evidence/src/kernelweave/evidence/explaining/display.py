"""Partial dependence plots of columns and pairs of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from kernelweave.kernels_core.arrays import FloatArray, RandomState, RealArray
from sklearn.utils.validation import check_is_fitted

from ..monotone.curves import lines_along
from ..monotone.predictor import MonotonePredictor
from ..rows import Rows
from .effects import ColumnEffect, EffectFinder, PairEffect, Respond, some_rows
from .mixin import Explained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


_LINE, _LEVEL, _FAINT = "#0072B2", "#56B4E9", "#8C8C8C"
_DIVERGING = "PuOr"
_ACROSS, _INCHES = 3, (2.6, 2.2)
# tick labels with more letters in total are rotated
_LETTERS = 22
# ticks of a map, and the share of the range below which the median calls for a logarithmic axis
_TICKS, _CROWDED = 4, 0.15


class EffectDisplay:
    """Partial dependence of predictions on the strongest columns and pairs of columns.

    A curve is the partial dependence of a column: the mean prediction over training rows when all
    of them have the same value in that column, less the mean prediction. Its band is two standard
    deviations of the posterior. Categories are bars. A map is the interaction of two columns: their
    joint partial dependence less that of each column.

    Parameters
    ----------
    effects : sequence of ColumnEffect
        The effects of columns, one panel for each.
    pairs : sequence of PairEffect, default=()
        The interactions, one map for each.
    response : str, default="prediction"
        Name of the predicted quantity, for the axis labels.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One axis per panel, columns first.
    figure_ : matplotlib Figure
        The figure of the axes.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from kernelweave.evidence import EffectDisplay, EvidenceKernelRegressor
    >>> X, y = make_friedman1(100, noise=0.5, random_state=0)
    >>> model = EvidenceKernelRegressor().fit(X, y)
    >>> display = EffectDisplay.from_estimator(model, n_columns=3, n_pairs=1)
    >>> sorted(effect.column for effect in display.effects)
    ['x0', 'x1', 'x3']
    >>> sorted(display.pairs[0].columns)
    ['x0', 'x1']
    """

    def __init__(
        self,
        effects: Sequence[ColumnEffect],
        pairs: Sequence[PairEffect] = (),
        *,
        response: str = "prediction",
    ) -> None:
        self.effects = list(effects)
        self.pairs = list(pairs)
        self.response = response

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        columns: Sequence[str | tuple[str, str]] | None = None,
        n_columns: int = 4,
        n_pairs: int = 2,
        output: int | None = None,
        n_rows: int = 150,
        random_state: RandomState = 0,
        ax: Axes | None = None,
    ) -> EffectDisplay:
        """Compute and draw the effects of a fitted model.

        Parameters
        ----------
        estimator : EvidenceKernelRegressor or EvidenceKernelClassifier
            Fitted.
        columns : sequence of str or (str, str), optional
            Names of columns, or of dimensions such as ``"day month"``, and pairs of names; without
            it those that change predictions most.
        n_columns, n_pairs : int
            How many of them, where ``columns`` is not given.
        output : int, optional
            Which target, or which of ``classes_``, whose probability is shown; the first target,
            and of two classes the second.
        n_rows : int, default=150
            Training rows, drawn at random, that predictions are averaged over.
        random_state : int, RandomState or None, default=0
            Draws them.
        ax : sequence of matplotlib Axes, optional
            As in `plot`.

        Returns
        -------
        EffectDisplay
            Drawn.

        Raises
        ------
        ValueError
            If a column is unknown or not used.
        """
        finder, response = _finder(estimator, output, n_rows, random_state)
        if columns is None:
            singles, pairs = _strongest(finder, n_columns, n_pairs)
        else:
            singles, pairs = _requested(finder, columns)
        display = cls(
            [finder.column(j) for j in singles],
            [finder.pair(*pair) for pair in pairs],
            response=response,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> EffectDisplay:
        """Draw a panel for each column and each pair.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, optional
            One for each panel; without it a new figure with three panels a row.

        Returns
        -------
        EffectDisplay
            Itself.

        Raises
        ------
        ValueError
            If there are fewer axes than panels.
        """
        count = len(self.effects) + len(self.pairs)
        axes = _new_axes(count) if ax is None else list(np.ravel(ax))
        if len(axes) < count:
            raise ValueError(f"ax must hold {count} axes, one a panel, got {len(axes)}")
        self.axes_, self.figure_ = axes[:count], axes[0].figure
        for place, (effect, panel) in enumerate(zip(self.effects, self.axes_, strict=False)):
            _draw_column(effect, panel)
            if place % _ACROSS == 0:
                panel.set_ylabel(f"change of the\nmean {self.response}", fontsize=8)
        self._share_heights()
        for pair, panel in zip(self.pairs, self.axes_[len(self.effects) :], strict=True):
            _draw_pair(pair, panel)
        return self

    def _share_heights(self) -> None:
        """Give all columns the same y-axis, so that their effects are comparable."""
        ends = [(np.min(each.low), np.max(each.high)) for each in self.effects]
        if not ends:
            return
        low, high = min(each[0] for each in ends), max(each[1] for each in ends)
        room = 0.05 * (high - low) or 1.0
        for panel in self.axes_[: len(self.effects)]:
            panel.set_ylim(low - room, high + room)


def _finder(
    model: BaseEstimator, output: int | None, n_rows: int, random_state: RandomState
) -> tuple[EffectFinder, str]:
    """Return the effect finder of a model, and the name of the predicted quantity."""
    if not isinstance(model, Explained):
        kind = type(model).__name__
        raise ValueError(f"estimator must be a model of kernelweave.evidence, got {kind}")
    check_is_fitted(model, "kernel_")
    classes = getattr(model, "classes_", None)
    if output is None:
        output = 1 if classes is not None and len(classes) == 2 else 0
    predictor = model._predictor
    expansion = predictor.expansion()
    n_outputs = len(predictor.rows.targets) if classes is None else len(classes)
    if not 0 <= output < n_outputs:
        raise ValueError(f"output must be between 0 and {n_outputs - 1}, got {output}")
    response = "prediction" if classes is None else f"P({classes[output]})"
    rows = some_rows(predictor.rows, n_rows, random_state)

    def respond(latent: FloatArray) -> FloatArray:
        return model._task.response(expansion.restore(latent), output)

    predicts = model._predicts
    rearranged = predicts if isinstance(predicts, MonotonePredictor) else None
    show = partial(model._task.response, output=output)
    along = None if rearranged is None else partial(_means_along, rearranged, show)
    return EffectFinder(expansion, rows, model.dimensions_, respond, output, along), response


def _means_along(
    predicts: MonotonePredictor, show: Respond, j: int, grid: FloatArray, rows: Rows
) -> FloatArray | None:
    """Return mean responses along a dimension, ``None`` where predictions are free in it."""
    for each in predicts.columns:
        if each.place == j:
            known = rows.take(np.flatnonzero(each.known(rows.numeric)))
            after = lines_along(predicts, known, each, grid, show)[1]
            return np.asarray(after.mean(axis=1))
    return None


def _strongest(
    finder: EffectFinder, n_columns: int, n_pairs: int
) -> tuple[list[int], list[tuple[int, int]]]:
    strengths = finder.strengths()
    order = [
        int(j)
        for j in np.argsort(-strengths, kind="stable")
        if finder.dimensions[j].kind not in ("missing", "side", "text")
    ]
    pairs = finder.strongest_pairs(n_pairs, order) if n_pairs > 0 else []
    return order[:n_columns], pairs


def _requested(
    finder: EffectFinder, columns: Sequence[str | tuple[str, str]]
) -> tuple[list[int], list[tuple[int, int]]]:
    choices = [each.name for each in finder.dimensions]
    singles, pairs = [], []
    for each in columns:
        names = (each,) if isinstance(each, str) else tuple(each)
        for name in names:
            if name not in choices:
                raise ValueError(f"columns must be among {', '.join(choices)}, got {name!r}")
        places = [choices.index(name) for name in names]
        if len(places) == 1:
            singles.append(places[0])
        elif len(places) == 2 and places[0] != places[1]:
            pairs.append((places[0], places[1]))
        else:
            raise ValueError(f"columns must hold names and pairs of two names, got {each!r}")
    return singles, pairs


def _new_axes(count: int) -> list[Axes]:
    import matplotlib.pyplot as plt

    across = min(_ACROSS, max(count, 1))
    down = -(-max(count, 1) // across)
    size = (across * _INCHES[0], down * _INCHES[1])
    _, axes = plt.subplots(down, across, figsize=size, layout="constrained", squeeze=False)
    for spare in axes.ravel()[count:]:
        spare.set_axis_off()
    return list(axes.ravel())


def _draw_column(effect: ColumnEffect, ax: Axes) -> None:
    if effect.is_category:
        places = np.arange(len(effect.grid))
        reach = np.abs(np.array([effect.effect - effect.low, effect.high - effect.effect]))
        ax.bar(places, effect.effect, yerr=reach, color=_LEVEL, ecolor=_LINE, capsize=2)
        _name_ticks(ax.xaxis, effect.grid)
    else:
        ax.fill_between(effect.grid, effect.low, effect.high, color=_LINE, alpha=0.2, linewidth=0)
        ax.plot(effect.grid, effect.effect, color=_LINE, linewidth=1.5)
        if _is_skewed(effect.grid):
            ax.set_xscale("log")
        # a rug of the values of the grid, which are evenly spaced by rank
        ax.plot(effect.grid, np.zeros(len(effect.grid)), "|", color=_FAINT, markersize=5,
                transform=ax.get_xaxis_transform(), clip_on=False)  # fmt: skip
    ax.axhline(0.0, color=_FAINT, linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.set_xlabel(effect.column, fontsize=9)


def _is_skewed(grid: RealArray) -> bool:
    """Whether most values lie at the lower end, as for incomes and counts."""
    if len(grid) < 2 * _TICKS or grid[0] <= 0.0:
        return False
    return bool(np.median(grid) - grid[0] < _CROWDED * (grid[-1] - grid[0]))


def _draw_pair(pair: PairEffect, ax: Axes) -> None:
    limit = float(np.abs(pair.effect).max()) or 1.0
    # a cell for each value of the grid: by rank, so that every cell stands for as many rows
    image = ax.pcolormesh(
        pair.effect.T, cmap=_DIVERGING, vmin=-limit, vmax=limit, edgecolor="face", linewidth=0.1
    )
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.06, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    ax.tick_params(labelsize=8)
    for axis, grid, is_category in zip(
        (ax.xaxis, ax.yaxis), pair.grids, pair.are_categories, strict=True
    ):
        if is_category:
            _name_ticks(axis, grid, 0.5)
        else:
            places = np.unique(np.linspace(0, len(grid) - 1, _TICKS).round().astype(int))
            axis.set_ticks(places + 0.5, [_short(grid[place]) for place in places])
    ax.set_xlabel(pair.columns[0], fontsize=9)
    ax.set_ylabel(pair.columns[1], fontsize=9)
    ax.set_title("together, beyond each alone", fontsize=8)


def _short(value: float) -> str:
    """Return three digits of a number, without an exponent where it is of common size."""
    rounded = float(f"{value:.3g}")
    common = rounded == 0.0 or 1e-4 <= abs(rounded) < 1e6
    return np.format_float_positional(rounded, trim="-") if common else f"{value:.2g}"


def _name_ticks(axis: Any, names: Iterable[object], start: float = 0.0) -> None:
    shown = [str(name) if len(str(name)) <= 12 else f"{str(name)[:11]}…" for name in names]
    upright = axis.axis_name == "x" and sum(map(len, shown)) > _LETTERS
    axis.set_ticks(np.arange(len(shown)) + start, shown, rotation=90 if upright else 0)
