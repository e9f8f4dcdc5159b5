"""What a fitted graph is used for: forecasts, a score, a table of edges, other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Rows
from kernelweave.kernels_core.checks import COUNT, check_magnitude, number
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.kernels_core.parameters import fitted
from kernelweave.vv_rkhs import PrecomputedFamily
from kernelweave.vv_rkhs.leave_one_out import LeaveOneOut
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .frames import as_frame, extend_index, future_rows, is_frame, stack_replicates
from .graph_parameters import GraphParameters
from .roles import Roles
from .series import lag_list, replicate_codes
from .target import Effects, TargetFit

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecasts of the rows that follow.

    Attributes
    ----------
    mean : ndarray or DataFrame of shape (steps, n_nodes)
        Mean over the paths.
    lower, upper : ndarray or DataFrame of shape (steps, n_nodes)
        Ends of the interval that holds a share ``level`` of the paths.
    level : float
        That share.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger import GrangerGraph
    >>> X = np.random.default_rng(0).standard_normal((80, 2)).cumsum(axis=0)
    >>> ahead = GrangerGraph(lam=0.1, cv=None).fit(X).forecast_ahead(X, 3)
    >>> ahead.mean.shape, bool((ahead.lower <= ahead.upper).all())
    ((3, 2), True)
    """

    mean: Any
    lower: Any
    upper: Any
    level: float


class FittedGraph(GraphParameters):
    """Methods of a fitted `GrangerGraph`."""

    if TYPE_CHECKING:
        _mean: npt.NDArray[np.float64] = fitted("", "")
        _scale: npt.NDArray[np.float64] = fitted("", "")
        _errors: Matrix = fitted("", "")
        _dictionary: FittedDictionary = fitted("", "")
        _roles: Roles = fitted("", "")
        _by_lag: npt.NDArray[np.float64] = fitted("", "")
        _row_p_values: tuple[Matrix | None, Matrix | None] = fitted("", "")
        _models: dict[int, tuple[Index, TargetFit]] = fitted("", "")

    @property
    def edges_(self) -> pd.DataFrame:
        """A row per edge of positive weight, with ``per_lag`` per lag of it.

        ``source``, ``target``, ``lag`` of the strongest effect, ``effect`` ("+" where the target
        rises with the source, "-" where it falls, "±" otherwise) and ``weight``, the heaviest
        first; with p-values ``p_value``, ``adjusted_p_value`` and ``passes``, the smallest first.
        """
        check_is_fitted(self, "graph_")
        p, adjusted = self._row_p_values
        level = float(self.level)
        return edge_table(self.group_names_, self._by_lag, self.effects_, p, adjusted, level)

    def forecast(self, X: Rows) -> Any:
        """Return one-step predictions along one stretch of time.

        Parameters
        ----------
        X : array-like of shape (n_times, n_columns)
            Rows in order of time, at least as many as the longest lag.

        Returns
        -------
        ndarray or DataFrame of shape (n_times - longest lag + 1, n_columns)
            Row k predicts row ``longest lag + k`` of X; the last one lies beyond it. NaN where a
            value is missing in the history, and for columns without a model. A DataFrame, with
            names and times, where X is one.
        """
        rows = self._read(X)
        values = self._predict((rows - self._mean) / self._scale) * self._scale + self._mean
        if not is_frame(X):
            return values
        return as_frame(values, X, X.index[max(self.lags_) :].append(extend_index(X.index, 1)))

    def forecast_ahead(
        self,
        X: Rows,
        steps: int = 1,
        *,
        future: object = None,
        level: float = 0.9,
        n_paths: int = 200,
    ) -> Forecast:
        """Return what comes after a stretch of time, with intervals.

        Paths go on step by step: each adds to the prediction an error that the model made at a
        sample left out, all nodes' at once.

        Parameters
        ----------
        X : array-like of shape (n_times, n_columns)
            Rows in order of time, at least as many as the longest lag, the last ones complete.
        steps : int, default=1
            How far.
        future : array-like of shape (steps, n_columns), optional
            The coming rows; read are exogenous columns and ``never_targets`` only, which need it. A
            DataFrame may have these columns alone.
        level : float, default=0.9
            Share of the paths within the interval.
        n_paths : int, default=200
            How many are drawn, from ``random_state``.

        Returns
        -------
        Forecast
            Mean, lower and upper end, each of shape (steps, n_columns); DataFrames, with names and
            times, where X is one.
        """
        rows = self._read(X)
        COUNT.check("steps", steps)
        COUNT.check("n_paths", n_paths)
        number(above=0.0, below=1.0).check("level", level)
        past = rows[-max(self.lags_) :]
        if np.isnan(past).any():
            raise ValueError(
                "the last rows of X must have no missing value: a forecast starts from them"
            )
        paths = draw_paths(
            (past - self._mean) / self._scale,
            self.lags_,
            self._dictionary,
            list(self._models.values()),
            self._errors,
            self._coming(future, steps),
            int(n_paths),
            check_random_state(self.random_state),
        )
        paths = paths * self._scale + self._mean
        ends = np.quantile(paths, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
        forecasts = [paths.mean(axis=0), *ends]
        if is_frame(X):
            index = extend_index(X.index, int(steps))
            forecasts = [as_frame(each, X, index) for each in forecasts]
        return Forecast(forecasts[0], forecasts[1], forecasts[2], float(level))

    def score(self, X: Rows, y: ArrayLike | None = None) -> float:
        """Return the mean R² of one-step predictions of the nodes that have a model.

        Parameters
        ----------
        X : array-like of shape (n_times, n_columns), or a list of such
            One stretch of time, or several, each longer than the longest lag.
        y : None
            Ignored.

        Returns
        -------
        float
            1 for a perfect prediction, 0 for one no better than the mean of all stretches.
        """
        from sklearn.metrics import r2_score

        table, labels = stack_replicates(X, None)
        rows = (self._read(table) - self._mean) / self._scale
        code, far = replicate_codes(labels, len(rows)), max(self.lags_)
        stretches = [rows[code == k] for k in range(code.max() + 1)]
        lengths = [len(each) for each in stretches]
        if min(lengths) <= far or sum(lengths) - far * len(lengths) < 2:
            raise ValueError(
                f"X must have at least {far + 2} rows, got {', '.join(map(str, lengths))}: the "
                f"first {far} of a stretch are history"
            )
        columns = self._roles.driven_columns
        predicted = np.vstack([self._predict(each)[:-1, columns] for each in stretches])
        observed = np.vstack([each[far:, columns] for each in stretches])
        whole = ~(np.isnan(predicted) | np.isnan(observed)).any(axis=1)
        return float(r2_score(observed[whole], predicted[whole]))

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the graph for networkx, which writes GraphML and other formats.

        Edges that do not pass are left out, where there are p-values.

        Returns
        -------
        networkx.MultiDiGraph
            Keys are lags; the columns of ``edges_`` are attributes.
        """
        import networkx as nx

        graph = nx.MultiDiGraph()
        for name, weight in zip(self.group_names_, np.diag(self.graph_).tolist(), strict=True):
            graph.add_node(name, self_weight=weight)
        for row in self._kept():
            source, target = row.pop("source"), row.pop("target")
            graph.add_edge(source, target, key=int(row["lag"]), **row)
        return graph

    def _kept(self) -> list[dict[str, Any]]:
        edges = self.edges_
        kept = edges[edges["passes"]] if "passes" in edges else edges
        return [{str(k): value for k, value in row.items()} for row in kept.to_dict("records")]

    def _read(self, X: object, *, reset: bool = False) -> Matrix:
        """Return a checked table."""
        if not reset:
            check_is_fitted(self, "graph_")
        least = max(self.lags_) if not reset else 2 + max(lag_list(1 if self._tries else self.lags))
        read: Matrix = validate_data(
            self,
            X,
            dtype=np.float64,
            reset=reset,
            ensure_min_samples=least,
            ensure_all_finite="allow-nan" if self.missing == "skip" else True,
        )
        check_magnitude("X", np.nan_to_num(read))
        return read

    @property
    def _tries(self) -> bool:
        return isinstance(self.lags, str)

    def _predict(self, scaled: Matrix) -> Matrix:
        """Return one-step predictions in standardised units, NaN where there is none."""
        far = max(self.lags_)
        longer = np.vstack([scaled, scaled[-1:]])
        past = np.stack([longer[far - lag : len(longer) - lag] for lag in self.lags_], axis=2)
        history = past.reshape(len(past), -1)
        whole = ~np.isnan(history).any(axis=1)
        values = np.full((len(history), scaled.shape[1]), np.nan)
        if whole.any():
            cross = self._dictionary.cross(history[whole])
            for columns, fit in self._models.values():
                values[np.ix_(whole, columns)] = fit.predict(cross)
        return values

    def _coming(self, future: object, steps: int) -> Matrix:
        """Return the coming rows in standardised units; NaN where a model says what comes."""
        given = np.setdiff1d(np.arange(len(self._mean)), self._roles.driven_columns)
        if len(given) == 0:
            return np.full((steps, len(self._mean)), np.nan)
        names = [str(each) for each in getattr(self, "feature_names_in_", range(len(self._mean)))]
        if future is None:
            raise ValueError(
                f"future must hold the coming rows of {', '.join(names[j] for j in given)}, which "
                "have no model, got None"
            )
        return (future_rows(future, names, given, steps) - self._mean) / self._scale


def edge_table(
    names: list[str],
    weights: npt.NDArray[np.float64],
    effects: Effects,
    p: Matrix | None = None,
    adjusted: Matrix | None = None,
    level: float = 0.05,
) -> pd.DataFrame:
    """Return a row per edge of positive weight between different groups, see `edges_`.

    `weights` of shape (n_groups, n_groups, n_lags or 1); `p`, `adjusted`: likewise, an edge passing
    where the latter is at most `level`. Where lags have no weights of their own, the lag is that of
    the strongest effect.
    """
    import pandas as pd

    there = (weights > 0.0) & ~np.eye(len(names), dtype=bool)[:, :, None]
    targets, sources, slots = (each.tolist() for each in np.nonzero(there))
    at = slots if weights.shape[2] == len(effects.lags) else effects.lag()[targets, sources]
    columns: dict[str, object] = {
        "source": [names[j] for j in sources],
        "target": [names[i] for i in targets],
        "lag": [effects.lags[k] for k in at],
        "effect": effects.signs()[targets, sources, at].tolist(),
        "weight": weights[there],
    }
    order, ascending = ["weight"], [False]
    if p is not None and adjusted is not None:
        columns["p_value"] = p[there]
        columns["adjusted_p_value"] = adjusted[there]
        columns["passes"] = adjusted[there] <= level
        order, ascending = ["p_value", "weight"], [True, False]
    table = pd.DataFrame(columns)
    return table.sort_values(order, ascending=ascending, kind="stable", ignore_index=True)


def left_out_errors(grams: RealArray, fit: TargetFit, Y: Matrix, lam: float) -> Matrix:
    """Return what a target's model misses at each sample when it is fitted without it, as `Y`.

    Weights and output kernel are those of all samples.
    """
    K = PrecomputedFamily(grams, check=False).combine(fit.weights)
    return LeaveOneOut(K).errors(Y - fit.mean, lam * len(Y), fit.output_kernel)


def draw_paths(
    past: Matrix,
    lags: tuple[int, ...],
    dictionary: FittedDictionary,
    models: list[tuple[Index, TargetFit]],
    errors: Matrix,
    future: Matrix,
    n_paths: int,
    rng: np.random.RandomState,
) -> npt.NDArray[np.float64]:
    """Return paths of all columns in standardised units, shape (n_paths, steps, n_columns).

    They go on after `past`. Rows of `errors`, shape (n_samples, n_columns), are drawn together, so
    that nodes err together as they did; `future` of shape (steps, n_columns): values of the columns
    that have no model.
    """
    steps, n_columns = future.shape
    longest = max(lags)
    path = np.empty((n_paths, longest + steps, n_columns))
    path[:, :longest] = past[len(past) - longest :]
    for step in range(steps):
        now = longest + step
        history = np.stack([path[:, now - lag] for lag in lags], axis=2).reshape(n_paths, -1)
        cross = dictionary.cross(history)
        path[:, now] = future[step]
        noise = errors[rng.randint(len(errors), size=n_paths)]
        for columns, fit in models:
            path[:, now, columns] = fit.predict(cross) + noise[:, columns]
    return path[:, longest:]
