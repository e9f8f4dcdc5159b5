"""How a fit changes along one of its settings: weights of kernels, or scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.checks import one_of

from ..machines import kernel_machine
from .axes import on_axes, open_frame
from .colours import FAINT, SERIES
from .weights import learned_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


_SYMBOLS = {"lam": "λ", "k0": "kernels at most, $k_0$", "n_views": "views at most"}
_SYMBOLS |= {"gamma": "γ", "delta": "δ"}
_POINT = ("C", "lam", "k0")


class PathDisplay:
    """Curves along one setting: a regularisation, sparsity or C path.

    Parameters
    ----------
    settings : array-like of shape (n_points,)
        Values of the setting.
    values : array-like of shape (n_points, n_curves)
        A column a curve.
    names : sequence of str
        Of the curves.
    parameter : str
        Name of the setting, for the axis.
    quantity : str, default="weight"
        What the values are, for the axis.
    spread : array-like of shape (n_points, n_curves) or None, default=None
        Half-width of a strip around each curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn last.
    figure_ : matplotlib Figure
        That holds them.
    lines_ : list of matplotlib Line2D
        One a curve, in the order of ``names``.

    Raises
    ------
    ValueError
        If the shapes do not go together.

    Examples
    --------
    >>> from kernelweave.workbench import PathDisplay
    >>> values = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]
    >>> display = PathDisplay([1, 10, 100], values, ["rbf", "linear"], parameter="C").plot()
    >>> display.ax_.get_xscale(), len(display.lines_)
    ('log', 2)
    """

    def __init__(
        self,
        settings: npt.ArrayLike,
        values: npt.ArrayLike,
        names: Sequence[str],
        *,
        parameter: str,
        quantity: str = "weight",
        spread: npt.ArrayLike | None = None,
    ) -> None:
        at, curves = np.asarray(settings, dtype=np.float64), np.asarray(values, dtype=np.float64)
        if curves.shape != (len(at), len(names)):
            raise ValueError(
                f"values must have shape {(len(at), len(names))}, a row a setting and a column a "
                f"name, got {curves.shape}"
            )
        order = np.argsort(at, kind="stable")
        self.settings, self.values = at[order], curves[order]
        self.spread = None if spread is None else np.asarray(spread, dtype=np.float64)[order]
        self.names = list(map(str, names))
        self.parameter = parameter
        self.quantity = quantity

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        along: str | None = None,
        names: Sequence[str] | None = None,
        max_curves: int = len(SERIES),
        ax: Axes | None = None,
    ) -> PathDisplay:
        """Draw the weights of kernels along a path of ``kernelweave.mkl_sparse``.

        Parameters
        ----------
        path : SparseMKLPath
            Or anything with ``points``, each with ``C``, ``lam``, ``k0`` and ``weights``.
        along : {"C", "lam", "k0"} or None, default=None
            The setting that changes; found out without it.
        names : sequence of str or None, default=None
            Of the kernels.
        max_curves, ax
            As in `plot`.

        Returns
        -------
        PathDisplay
            Drawn.

        Raises
        ------
        ValueError
            If more than one setting changes; ``path.at(...)`` holds the others.
        """
        points = list(path.points)
        moving = [name for name in _POINT if len({getattr(each, name) for each in points}) > 1]
        along = (moving or ["lam"])[0] if along is None else along
        if set(moving) - {along}:
            others = ", ".join(name for name in moving if name != along)
            raise ValueError(
                f"path must change along {along} alone, and {others} changes too: hold it by "
                f"path.at(...)"
            )
        weights = np.stack([np.asarray(each.weights) for each in points])
        kernels = [f"K{j}" for j in range(weights.shape[1])] if names is None else names
        settings = [float(getattr(each, along)) for each in points]
        display = cls(settings, weights, kernels, parameter=along)
        return display.plot(max_curves=max_curves, ax=ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[BaseEstimator],
        *,
        parameter: str,
        names: Sequence[str] | None = None,
        max_curves: int = len(SERIES),
        ax: Axes | None = None,
    ) -> PathDisplay:
        """Draw the weights of kernels of several fits that differ in one setting.

        Parameters
        ----------
        estimators : sequence of object
            Fitted, each with weights of the same kernels.
        parameter : str
            The setting, e.g. ``"C"``; its values are read from the estimators.
        names : sequence of str or None, default=None
            Other names than the estimators'.
        max_curves, ax
            As in `plot`.

        Returns
        -------
        PathDisplay
            Drawn.

        Raises
        ------
        ValueError
            If one has learned no weights of kernels.
        """
        found = [learned_weights(each) for each in estimators]
        settings = [float(kernel_machine(each).get_params()[parameter]) for each in estimators]
        weights = [each[0] for each in found if each is not None]
        if len(weights) < max(len(found), 1):
            raise ValueError("estimators must each have learned weights of kernels")
        own = found[0][1] if found[0] is not None else None
        kernels = names or own or [f"K{j}" for j in range(len(weights[0]))]
        display = cls(settings, np.stack(weights), kernels, parameter=parameter)
        return display.plot(max_curves=max_curves, ax=ax)

    @classmethod
    def from_estimator(
        cls, search: object, *, parameter: str | None = None, ax: Axes | None = None
    ) -> PathDisplay:
        """Draw the cross-validated score along a setting that a search tried.

        At each value of the setting stands the best mean score over all other settings, with a
        strip of one standard deviation over the folds.

        Parameters
        ----------
        search : object
            Fitted, with ``cv_results_``: a ``GridSearchCV``, a ``Tessellated…CV``, or a model whose
            folds chose, such as ``SparseMKLClassifier(k0="cv")``.
        parameter : str or None, default=None
            The setting; the one that changes most without it.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        PathDisplay
            Drawn.

        Raises
        ------
        ValueError
            If there was no search over ``parameter``, or its values are no numbers.
        """
        results = getattr(search, "cv_results_", None)
        results = results or getattr(kernel_machine(search), "cv_results_", None)
        if results is None:
            raise ValueError("search must be fitted and have cv_results_, as where folds chose")
        tried = list(results["params"])
        values = {name: {each[name] for each in tried if name in each} for name in tried[0]}
        if parameter is None:
            parameter = max(values, key=lambda name: len(values[name]))
        one_of(*values).check("parameter", parameter)
        means, spreads = results["mean_test_score"], results["std_test_score"]
        best: dict[float, int] = {}
        for i, setting in enumerate(tried):
            at = float(setting[parameter])
            best[at] = max(best.get(at, i), i, key=lambda j: means[j])
        rows = list(best.values())
        return cls(
            list(best),
            np.asarray(means)[rows, None],
            ["score"],
            parameter=parameter.rpartition("__")[2],
            quantity="cross-validated score",
            spread=np.asarray(spreads)[rows, None],
        ).plot(ax=ax)

    def plot(self, *, max_curves: int = len(SERIES), ax: Axes | None = None) -> PathDisplay:
        """Draw the curves; the largest are named, the others are thin and grey.

        Parameters
        ----------
        max_curves : int, default=7
            How many are named at most.
        ax : matplotlib Axes or None, default=None
            Where; a new figure without it.

        Returns
        -------
        PathDisplay
            Itself.
        """
        peaks = np.abs(self.values).max(axis=0)
        largest = np.argsort(-peaks, kind="stable")[: min(max_curves, len(SERIES))]
        named = [int(j) for j in largest if peaks[j] > 0]
        with on_axes(ax, height=2.9) as self.ax_:
            ax, self.figure_ = self.ax_, self.ax_.figure
            self.lines_ = [self._curve(j, named) for j in range(len(self.names))]
            if (self.settings > 0).all() and self.settings[-1] / self.settings[0] >= 20:
                ax.set_xscale("log")
            ax.set_xlabel(_SYMBOLS.get(self.parameter, self.parameter))
            ax.set_ylabel(self.quantity)
            if len(self.names) > 1:
                handles = [self.lines_[j] for j in named]
                ax.legend(handles=handles, frameon=False, fontsize=7, handlelength=2.6)
            open_frame(ax)
        return self

    def _curve(self, j: int, named: list[int]) -> Any:
        style: dict[str, Any] = {"color": FAINT, "linewidth": 0.6}
        if j in named:
            style = SERIES[named.index(j)] | {"label": self.names[j], "zorder": 3}
        curve = self.values[:, j]
        if self.spread is not None:
            half = self.spread[:, j]
            self.ax_.fill_between(
                self.settings, curve - half, curve + half, color=style["color"], alpha=0.18
            )
        (line,) = self.ax_.plot(self.settings, curve, **style)
        return line
