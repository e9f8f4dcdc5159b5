"""What a fit says over one or two features: its decision, its prediction, or its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import FloatArray, Labels, RealArray
from kernelweave.kernels_core.checks import one_of

from ..machines import best_of, fitted_machine, transformed
from .axes import COLUMN, on_axes, open_frame
from .colours import DIVERGING, FAINT, GAP, HEAT, LOWER, REGIONS, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


_RESPONSE = one_of("auto", "decision", "prediction", "kernel")


class SurfaceDisplay:
    """A function of one feature as a curve, or of two as a map; other features are held.

    Parameters
    ----------
    grid : sequence of ndarray
        The values of each of the one or two features.
    values : ndarray of shape (n_first,) or (n_second, n_first)
        The function on the grid.
    names : sequence of str
        Of the features.
    quantity : str
        What the values are: ``"decision value"``, ``"prediction"``, ``"class"`` or a kernel's.
    classes : sequence or None, default=None
        Names of the classes where ``values`` count them.
    centred : bool, default=False
        Whether zero separates two classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
    surface_ : matplotlib Line2D or QuadContourSet or QuadMesh
        The curve or the map.
    points_ : matplotlib PathCollection or None
        The samples drawn over it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.spectahedron import TessellatedKernelRegressor
    >>> from kernelweave.workbench import SurfaceDisplay
    >>> x = np.linspace(0, 1, 30)[:, None]
    >>> model = TessellatedKernelRegressor(tol=1e-2).fit(x, np.abs(x[:, 0] - 0.5))
    >>> SurfaceDisplay.from_estimator(model, x, features=[0]).ax_.get_ylabel()
    'prediction'
    """

    def __init__(
        self,
        grid: Sequence[npt.ArrayLike],
        values: npt.ArrayLike,
        names: Sequence[str],
        *,
        quantity: str,
        classes: Sequence[object] | None = None,
        centred: bool = False,
    ) -> None:
        self.grid = [np.asarray(axis, dtype=np.float64) for axis in grid]
        self.values = np.asarray(values)
        if self.values.shape != tuple(len(axis) for axis in reversed(self.grid)):
            raise ValueError(
                f"values must have shape {tuple(len(axis) for axis in reversed(self.grid))}, got "
                f"{self.values.shape}"
            )
        self.names = list(names)
        self.quantity = quantity
        self.classes = None if classes is None else list(classes)
        self.centred = centred

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: object,
        *,
        features: Sequence[int | str] = (0, 1),
        response: str = "auto",
        at: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        grid_resolution: int = 80,
        eps: float = 0.05,
        ax: Axes | None = None,
    ) -> SurfaceDisplay:
        """Draw a fit over the range of one or two features of ``X``.

        Parameters
        ----------
        estimator : object
            Fitted.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Its ranges are drawn, and other features are held at its medians.
        features : sequence of int or str, default=(0, 1)
            One or two, by index or, of a data frame, by name.
        response : {"auto", "decision", "prediction", "kernel"}, default="auto"
            ``"kernel"`` is k(at, ·), the learned kernel as seen from one point. ``"auto"`` is the
            decision value of two classes, else the prediction.
        at : array-like of shape (n_features,) or None, default=None
            The point of the kernel; the medians without it.
        y : array-like of shape (n_samples,) or None, default=None
            Labels or targets: samples are then drawn too.
        grid_resolution : int, default=80
            Places a feature.
        eps : float, default=0.05
            How far the map reaches beyond the range, as a share of it.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        SurfaceDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there are not one or two features, or the estimator lacks the response.
        """
        table = _Table(X)
        places = [table.place(each) for each in features]
        if len(places) not in (1, 2):
            raise ValueError(f"features must be one or two, got {list(features)}")
        grid = [table.axis(place, grid_resolution, eps) for place in places]
        points = table.points(places, grid)
        values, about = _respond(estimator, table, points, response, at)
        shape = tuple(len(axis) for axis in reversed(grid))
        names = [table.names[place] for place in places]
        display = cls(grid, values.reshape(shape), names, **about)
        shown = None if y is None else (table.array[:, places], np.asarray(y))
        return display.plot(samples=shown, ax=ax)

    def plot(
        self, *, samples: tuple[RealArray, RealArray] | None = None, ax: Axes | None = None
    ) -> SurfaceDisplay:
        """Draw the curve or the map.

        Parameters
        ----------
        samples : (ndarray of shape (n, 1 or 2), ndarray of shape (n,)) or None, default=None
            Features and labels or targets of points to draw over it.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        SurfaceDisplay
            Itself.
        """
        flat = len(self.grid) == 2
        with on_axes(ax, height=0.85 * COLUMN if flat else 2.6) as self.ax_:
            self.figure_ = self.ax_.figure
            self.surface_ = self._map() if flat else self._curve()
            self.points_ = None if samples is None else self._samples(*samples)
            self.ax_.set_xlabel(self.names[0])
            self.ax_.set_ylabel(self.names[1] if flat else self.quantity)
        return self

    def _curve(self) -> Any:
        ax = self.ax_
        (line,) = ax.plot(self.grid[0], self.values, color=LOWER, linewidth=1.4, zorder=3)
        if self.centred:
            ax.axhline(0.0, color=FAINT, linewidth=1, linestyle="--")
        if self.classes is not None:
            ax.set_yticks(range(len(self.classes)), list(map(str, self.classes)))
        open_frame(ax)
        return line

    def _map(self) -> Any:
        if self.classes is not None:
            return self._regions()
        ax, limits = self.ax_, {}
        if self.centred:
            most = float(np.abs(self.values).max()) or 1.0
            limits = {"vmin": -most, "vmax": most}
        surface = ax.contourf(
            *self.grid, self.values, 24, cmap=DIVERGING if self.centred else HEAT, **limits
        )
        if self.centred and self.values.min() < 0.0 < self.values.max():
            ax.contour(*self.grid, self.values, [0.0], colors=GAP, linewidths=1.2)
        bar = self.figure_.colorbar(surface, ax=ax, fraction=0.046, pad=0.03)
        bar.outline.set_visible(False)
        bar.set_label(self.quantity)
        return surface

    def _regions(self) -> Any:
        from matplotlib.colors import ListedColormap

        ax, count = self.ax_, len(self.classes or ())
        colours = ListedColormap([REGIONS[j % len(REGIONS)] for j in range(count)])
        surface = ax.pcolormesh(*self.grid, self.values, cmap=colours, vmin=-0.5, vmax=count - 0.5)
        bar = self.figure_.colorbar(surface, ax=ax, fraction=0.046, pad=0.03, ticks=range(count))
        bar.ax.set_yticklabels(list(map(str, self.classes or ())))
        bar.outline.set_visible(False)
        return surface

    def _samples(self, X: RealArray, y: Labels) -> Any:
        style: dict[str, Any] = {"s": 10, "edgecolors": GAP, "linewidths": 0.4, "zorder": 4}
        ax, at = self.ax_, X.T
        if self.classes is None and not self.centred:
            if len(at) == 1:
                return ax.scatter(at[0], y, color=FAINT, **style)
            limits = self.surface_.get_clim()
            return ax.scatter(*at, c=y, cmap=HEAT, vmin=limits[0], vmax=limits[1], **style)
        labels = np.unique(y).tolist()
        for j, label in enumerate(labels):
            chosen = at[:, y == label]
            if len(at) == 1:
                chosen = np.stack([chosen[0], np.full(chosen.shape[1], 0.0 if self.centred else j)])
            look = {"marker": SERIES[j % len(SERIES)]["marker"], **style}
            colour = self._class_colour(j, len(labels))
            drawn = ax.scatter(*chosen, color=colour, label=str(label), **look)
        if self.centred:
            ax.legend(fontsize=7, framealpha=0.9, handletextpad=0.1)
        return drawn

    def _class_colour(self, j: int, count: int) -> str:
        """Return a class's colour: the ends of the map where zero separates two."""
        if self.centred and count == 2:
            return ("#E08214", "#8073AC")[j]
        return str(SERIES[j % len(SERIES)]["color"])


class _Table:
    """Samples with names, whatever they were given as."""

    def __init__(self, X: Any) -> None:
        named = hasattr(X, "columns")
        self.make = type(X) if named else None
        self.array = np.asarray(X, dtype=np.float64)
        if self.array.ndim != 2:
            raise ValueError(f"X must be a table of samples by features, got {self.array.shape}")
        count = self.array.shape[1]
        self.names = list(map(str, X.columns)) if named else [f"x{j}" for j in range(count)]
        self.medians = np.median(self.array, axis=0)

    def place(self, feature: int | str) -> int:
        """Return the column of a feature."""
        if isinstance(feature, str):
            if feature not in self.names:
                raise ValueError(f"features must be columns of X, got {feature!r}")
            return self.names.index(feature)
        if not 0 <= feature < len(self.names):
            raise ValueError(f"features must be below {len(self.names)}, got {feature}")
        return int(feature)

    def axis(self, place: int, count: int, eps: float) -> npt.NDArray[np.float64]:
        """Return evenly spaced values over the range of a feature and a little beyond."""
        low, high = self.array[:, place].min(), self.array[:, place].max()
        reach = eps * ((high - low) or 1.0)
        return np.linspace(low - reach, high + reach, count)

    def points(self, places: list[int], grid: list[FloatArray]) -> npt.NDArray[np.float64]:
        """Return the samples on the grid, the first feature fastest."""
        meshed = np.meshgrid(*grid)
        points = np.tile(self.medians, (meshed[0].size, 1))
        for place, values in zip(places, meshed, strict=True):
            points[:, place] = values.ravel()
        return points

    def as_given(self, points: npt.NDArray[np.float64]) -> Any:
        """Return points as the kind of table that X was."""
        if self.make is None:
            return points
        return self.make(dict(zip(self.names, points.T, strict=True)))


def _respond(
    estimator: BaseEstimator,
    table: _Table,
    points: npt.NDArray[np.float64],
    response: str,
    at: npt.ArrayLike | None,
) -> tuple[Labels, dict[str, Any]]:
    """Return the values on the points, and what they are."""
    _RESPONSE.check("response", response)
    rows = table.as_given(points)
    if response == "kernel":
        kernel = fitted_machine(estimator, "kernel_").kernel_
        centre = table.medians if at is None else np.asarray(at, dtype=np.float64)
        seen = transformed(estimator, table.as_given(centre[None, :]))
        values = kernel(transformed(estimator, rows), seen)[:, 0]
        return values, {"quantity": "k(·, point)"}
    classes = getattr(best_of(estimator), "classes_", None)
    two = classes is not None and len(classes) == 2
    if response == "decision" and not two:
        raise ValueError("response='decision' needs a classifier of two classes")
    if two and response != "prediction":
        return estimator.decision_function(rows), {"quantity": "decision value", "centred": True}
    predicted = np.asarray(estimator.predict(rows))
    if classes is None:
        return predicted, {"quantity": "prediction"}
    return np.searchsorted(classes, predicted), {"quantity": "class", "classes": classes}
