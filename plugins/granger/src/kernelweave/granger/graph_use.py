"""What a fitted graph is used for: forecasts, a score, a table of edges, other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RandomState, Rows
from kernelweave.kernels_core.checks import COUNT, check_magnitude, number
from kernelweave.kernels_core.kernels import FittedDictionary
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .forecasting import Forecast, draw_paths, summarise
from .frames import as_frame, future_rows, is_frame, later
from .roles import Roles
from .series import Lags, lag_list
from .target import Effects, TargetFit

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


class GraphUse:
    """Methods of a fitted `GrangerGraph`, which has what is listed here."""

    lags: Lags
    level: float
    gaps: str
    random_state: RandomState
    lags_: tuple[int, ...]
    graph_: Matrix
    group_names_: list[str]
    effects_: Effects
    _mean: npt.NDArray[np.float64]
    _scale: npt.NDArray[np.float64]
    _errors: Matrix
    _dictionary: FittedDictionary
    _roles: Roles
    _by_lag: npt.NDArray[np.float64]
    _row_p_values: tuple[Matrix | None, Matrix | None]
    _models: dict[int, tuple[npt.NDArray[np.intp], TargetFit]]

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
            gap is in the history, and for columns without a model. A DataFrame, with names and
            times, where X is one.
        """
        rows = self._read(X)
        values = self._predict((rows - self._mean) / self._scale) * self._scale + self._mean
        if not is_frame(X):
            return values
        return as_frame(values, X, X.index[max(self.lags_) :].append(later(X.index, 1)))

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
            Rows in order of time, at least as many as the longest lag, the last ones without gap.
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
            raise ValueError("the last rows of X must have no gap: a forecast starts from them")
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
        found = summarise(paths * self._scale + self._mean, float(level))
        if not is_frame(X):
            return found
        index = later(X.index, int(steps))
        mean, lower, upper = (
            as_frame(each, X, index) for each in (found.mean, found.lower, found.upper)
        )
        return Forecast(mean, lower, upper, found.level)

    def score(self, X: Rows, y: ArrayLike | None = None) -> float:
        """Return the mean R² of one-step predictions of the nodes that have a model.

        Parameters
        ----------
        X : array-like of shape (n_times, n_columns)
            One stretch of time, longer than the longest lag.
        y : None
            Ignored.

        Returns
        -------
        float
            1 for a perfect prediction, 0 for one no better than the mean.
        """
        from sklearn.metrics import r2_score

        X = self._read(X)
        if len(X) < max(self.lags_) + 2:
            raise ValueError(
                f"X must have at least {max(self.lags_) + 2} rows, got {len(X)}: the first "
                f"{max(self.lags_)} are history"
            )
        columns = self._roles.driven_columns
        scaled = (X - self._mean) / self._scale
        found = self._predict(scaled)[:-1, columns]
        known = scaled[max(self.lags_) :, columns]
        whole = ~(np.isnan(found) | np.isnan(known)).any(axis=1)
        return float(r2_score(known[whole], found[whole]))

    def to_networkx(self, *, passing: bool = True) -> nx.MultiDiGraph:
        """Return the graph for networkx, which writes GraphML and other formats.

        Parameters
        ----------
        passing : bool, default=True
            Whether edges that do not pass are left out, where there are p-values.

        Returns
        -------
        networkx.MultiDiGraph
            Keys are lags; the columns of ``edges_`` are attributes.
        """
        return as_networkx(self._kept(passing), self.group_names_, np.diag(self.graph_))

    def to_dot(self, *, passing: bool = True) -> str:
        """Return the graph in the DOT language of Graphviz.

        Parameters
        ----------
        passing : bool, default=True
            Whether edges that do not pass are left out, where there are p-values.

        Returns
        -------
        str
            A digraph.
        """
        return as_dot(self._kept(passing), self.group_names_)

    def _kept(self, passing: bool) -> pd.DataFrame:
        edges = self.edges_
        return edges[edges["passes"]] if passing and "passes" in edges else edges

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
            ensure_all_finite="allow-nan" if self.gaps == "skip" else True,
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
        scaled: Matrix = (future_rows(future, names, given, steps) - self._mean) / self._scale
        return scaled


def edge_table(
    names: list[str],
    weights: npt.NDArray[np.float64],
    effects: Effects,
    p: Matrix | None = None,
    adjusted: Matrix | None = None,
    level: float = 0.05,
) -> pd.DataFrame:
    """Return a row per edge of positive weight between different groups.

    - `names`: of the groups
    - `weights` of shape (n_groups, n_groups, n_lags or 1): of the edges to the first group from the
      second
    - `effects`: of the same edges
    - `p`, `adjusted`: p-values of each edge, and of all together
    - `level`: what an adjusted p-value must not exceed for an edge to pass

    ``source``, ``target``, ``lag``, of the strongest effect unless lags have weights of their own,
    ``effect`` (its sign) and ``weight``, the heaviest first; with p-values ``p_value``,
    ``adjusted_p_value`` and ``passes``, the smallest first.
    """
    import pandas as pd

    there = (weights > 0.0) & ~np.eye(len(names), dtype=bool)[:, :, None]
    targets, sources, slots = (each.tolist() for each in np.nonzero(there))
    at = slots if weights.shape[2] == len(effects.lags) else effects.lag()[targets, sources]
    edges = list(zip(targets, sources, at, strict=True))
    columns: dict[str, object] = {
        "source": [names[j] for j in sources],
        "target": [names[i] for i in targets],
        "lag": [effects.lags[k] for k in at],
        "effect": [effects.sign(*each) for each in edges],
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


def as_networkx(table: pd.DataFrame, names: list[str], self_weights: Matrix) -> nx.MultiDiGraph:
    """Return a directed multigraph of the edges of a table, keyed by lag.

    `table`: rows of `edge_table`; `names`: nodes; `self_weights` of shape (n_groups,): how much
    each drives itself. With the columns of the table as attributes of the edges, which all formats
    can write.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for name, weight in zip(names, self_weights.tolist(), strict=True):
        graph.add_node(name, self_weight=weight)
    for row in table.to_dict("records"):
        given = {str(name): value for name, value in row.items() if name not in _ENDS}
        graph.add_edge(row["source"], row["target"], key=int(row["lag"]), **given)
    return graph


def as_dot(table: pd.DataFrame, names: list[str]) -> str:
    """Return the edges of a table as text in the DOT language of Graphviz.

    `table`: rows of `edge_table`; `names`: nodes. A digraph; labels hold lag and sign, widths
    follow weights.
    """
    heaviest = max(table["weight"], default=1.0)
    lines = ["digraph {", *(f"  {_quoted(name)};" for name in names)]
    for row in table.to_dict("records"):
        label = f"{row['lag']} {row['effect']}".strip()
        width = 0.5 + 3.0 * row["weight"] / heaviest
        ends = f"{_quoted(row['source'])} -> {_quoted(row['target'])}"
        lines.append(f"  {ends} [label={_quoted(label)}, penwidth={width:.2f}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: object) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


_ENDS = ("source", "target")
