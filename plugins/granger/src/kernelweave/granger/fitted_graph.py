"""Parameters of `GrangerGraph`, what its fit finds, and what that is used for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core.arrays import Matrix, RandomState, Rows
from kernelweave.kernels_core.checks import (
    COUNT,
    FLAG,
    JOBS,
    NONNEGATIVE,
    POSITIVE,
    SEED,
    Rule,
    check_magnitude,
    number,
    one_of,
)
from kernelweave.kernels_core.estimators.base import Estimator
from kernelweave.kernels_core.estimators.folds import SCORING, Folds, Scoring
from kernelweave.kernels_core.parameters import fitted, parameter
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .edges import as_networkx, edge_table
from .forecasts import Forecast, Forecaster
from .frames import as_frame, check_cells, extend_index, is_frame, stack_replicates
from .roles import Names
from .selection import Selection
from .series import LAGS, Lags, replicate_codes
from .significance import ADJUST, SIGNIFICANCE
from .target import Effects

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from kernelweave.kernels_core import Result
    from kernelweave.kernels_core.kernels import Kernel
    from kernelweave.vv_rkhs.penalties import Penalty


_LAGS = Rule(
    "an integer >= 1, a list of such or 'cv'",
    lambda value: LAGS.holds(value) or (isinstance(value, str) and value == "cv"),
)
_LAM = Rule(
    "'cv' or a finite number > 0",
    lambda value: POSITIVE.holds(value) or (isinstance(value, str) and value == "cv"),
)
_PAIRS = Rule("None, True or False", lambda value: value is None or FLAG.holds(value))


class FittedGraph(Estimator):
    """Parameters of `GrangerGraph`, what its fit finds, and the methods that use it."""

    lags: Lags = parameter(
        'Number of lags, a list of lags such as ``[1, 2, 12]``, or ``"cv"`` to choose the number '
        "by cross-validation among 1, 2, 3, 5 and 8. No lag crosses from one replicate to the "
        "next.",
        default=1,
        kind='int, list of int or "cv"',
        rule=_LAGS,
        kw_only=False,
    )
    groups: Iterable[object] | None = parameter(
        "Group label of each column that is not exogenous. The columns of a group form one node of "
        "the graph, with a common history and output kernel. By default each column is a group.",
        default=None,
        kind="sequence of length n_nodes",
        kw_only=False,
    )
    exogenous: Names = parameter(
        "Columns that may drive every node but are not nodes themselves, such as a season or the "
        "weather. They are not permuted for p-values.",
        default=None,
        kind="list of column names",
    )
    never_targets: Names = parameter(
        "Nodes that may drive others but are never driven.", default=None, kind="list of node names"
    )
    forbidden: Iterable[object] | None = parameter(
        "Links to exclude, as (source, target).", default=None, kind="list of pairs of names"
    )
    per_lag: bool = parameter(
        "Whether each lag of a node has its own kernels, weight and p-value.",
        default=False,
        rule=FLAG,
    )
    missing: str = parameter(
        "Treatment of NaN: raise an error, or skip rows with a NaN in the row itself or in its "
        "history.",
        default="raise",
        rule=one_of("raise", "skip"),
    )
    kernels: Sequence[Kernel] | None = parameter(
        "Kernels on the history of each group; by default a linear one and three Gaussians.",
        default=None,
        kind="list of Kernel",
        kw_only=False,
    )
    pairs: bool | None = parameter(
        "Whether to add kernels on products of two histories, for joint effects: of all pairs of "
        "up to 14 groups, else of the hundred pairs whose products correlate most with the "
        "residuals of a linear model. Each group gets half of a pair's weight. By default they "
        "are added to the default kernels unless ``per_lag`` or ``significance`` is set: pairs "
        "rank edges better, but with them fewer edges pass a test.",
        default=None,
        rule=_PAIRS,
    )
    penalty: str | Penalty = parameter(
        "The penalty ω on the weights. With the elastic net, targets that are hard to predict "
        "get small weights, so that edges into different targets are comparable; with squared ℓp "
        "norms the weights of each target sum to 1 (p = 1) even if they explain little.",
        default="elastic-net",
        kind='{"elastic-net", "lp"} or Penalty',
    )
    mu: float = parameter("Share of the squared norm in the elastic net.", default=0.5)
    p: float = parameter("Exponent of the squared ℓp norm, in [1, 2].", default=1.0)
    learn_output: bool = parameter(
        "Whether to learn the output kernel L; without effect for groups of one column.",
        default=True,
        rule=FLAG,
    )
    lam: float | str = parameter(
        'Regularization parameter λ, or ``"cv"`` to choose it by cross-validation.',
        default="cv",
        kind='"cv" or float',
        rule=_LAM,
    )
    lams: npt.ArrayLike | None = parameter(
        "Candidates for λ; by default 7 from 10 to 10⁻². Of five or more, the two smallest are "
        "skipped if the validation error is already rising.",
        default=None,
        kind="sequence of float",
    )
    shared_lam: bool = parameter(
        "Whether all targets have the same λ, which is more stable for short series.",
        default=True,
        rule=FLAG,
    )
    cv: Folds = parameter(
        "Cross-validation folds. An integer makes folds of whole replicates if there are three or "
        "more, else of contiguous blocks of time. Splitters get the replicates as groups. "
        "``None`` needs a number for ``lam``.",
        default=5,
        kind="int, splitter, iterable or None",
    )
    scoring: Scoring = parameter(
        "Criterion for λ and lags: by default the mean squared error of standardised values, or a "
        "scikit-learn scorer, for each node and averaged over folds. With a scorer, no candidate "
        "is skipped.",
        default=None,
        kind="str or callable",
        rule=SCORING,
    )
    replicates: npt.ArrayLike | None = parameter(
        "Replicate of each row. The rows of a replicate are consecutive and in order of time.",
        default=None,
        kind="array-like of shape (n_times,)",
    )
    significance: str | None = parameter(
        "How p-values are computed; None for no test. A permutation test refits each target with "
        "the histories of the other groups moved in time: whole replicates are exchanged if there "
        "are five or more of equal length, else rows are shifted in a circle in each replicate.",
        default=None,
        rule=SIGNIFICANCE,
    )
    n_draws: int = parameter(
        "Number of refits per target for p-values, whose accuracy does not depend on ``tol``. A "
        "weight is compared with all weights that its source got in these, for any target, so "
        "that the smallest p-value is 1/(1 + n_draws · (n_groups − 1)). A single replicate of n "
        "samples has n − 1 shifts: if "
        "``n_draws`` is larger, each shift is used once.",
        default=199,
        rule=COUNT,
    )
    adjust: str = parameter(
        'How p-values are adjusted for the number of edges. ``"bh"`` (Benjamini and Hochberg) '
        'controls the expected share of false edges among those that pass; ``"max-t"`` compares '
        "with the largest weight of each draw and controls the probability of any false edge.",
        default="bh",
        rule=ADJUST,
    )
    level: float = parameter(
        "Significance level of the adjusted p-values.",
        default=0.05,
        rule=number(above=0.0, below=1.0),
    )
    tol: float = parameter(
        "Relative certified gap; for groups with a learned L, relative stationarity.",
        default=1e-3,
        rule=NONNEGATIVE,
    )
    max_iter: int = parameter("Maximum number of iterations of a fit.", default=500, rule=COUNT)
    n_jobs: int | None = parameter(
        "Number of targets fitted in parallel, by joblib.", default=None, rule=JOBS
    )
    memory_limit: float | None = parameter(
        "Memory limit of the fit in bytes, per process.", default=None
    )
    random_state: RandomState = parameter(
        "Seed of the draws.", default=None, kind="int or RandomState", rule=SEED
    )

    graph_: Matrix = fitted(
        "ndarray of shape (n_groups, n_groups)",
        "``graph_[i, j]`` is the weight of the edge j → i; the diagonal says how much a group "
        "drives itself.",
    )
    p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups) or None",
        "P-value of each edge, placed as in ``graph_``; NaN on the diagonal and for links that are "
        "excluded. ``None`` without ``significance``.",
    )
    adjusted_p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups) or None",
        "``p_values_`` adjusted for the number of edges.",
    )
    p_values_doubted_: bool = fitted(
        "bool",
        "Whether some series look nonstationary or share a season, so that p-values may be too "
        "small; False without ``significance``.",
    )
    effects_: Effects = fitted("Effects", "Effect curve of each edge at each lag.")
    n_draws_: int = fitted("int", "Number of draws used per target; 0 without p-values.")
    lag_graph_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups, n_lags) or None",
        "The weight of each lag of each edge; ``None`` without ``per_lag``.",
    )
    lag_p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups, n_lags) or None", "P-values of ``lag_graph_``."
    )
    lags_: tuple[int, ...] = fitted("tuple of int", "The lags of a history.")
    targets_: list[str] = fitted(
        "list of str", "The groups that have a model: all but ``never_targets`` and constant ones."
    )
    output_kernels_: list[Matrix] = fitted("list of ndarray", "L of each of ``targets_``.")
    weights_: Matrix = fitted(
        "ndarray of shape (n_groups, n_kernels)",
        "Kernel weights η in the model of each group, 0 for ``never_targets``; ``owner_`` tells on "
        "whose history a kernel is.",
    )
    owner_: npt.NDArray[np.intp] = fitted(
        "ndarray of int of shape (n_kernels,)",
        "Group on whose history each kernel is; numbers from n_groups on are exogenous columns, "
        "then ``pairs_``.",
    )
    pairs_: list[tuple[str, str]] = fitted(
        "list of (str, str)", "Groups whose histories are multiplied; none without ``pairs``."
    )
    kernel_names_: tuple[str, ...] = fitted("tuple of str", "Names of the kernels.")
    rmse_: npt.NDArray[np.float64] | None = fitted(
        "ndarray of shape (n_nodes,) or None",
        "Held-out root mean squared error of one-step predictions at the chosen λ, in the "
        "units of the data; ``None`` without ``cv``.",
    )
    lam_: npt.NDArray[np.float64] = fitted("ndarray of shape (n_targets,)", "λ of each target.")
    selection_: Selection | None = fitted("Selection or None", "Held-out errors for each λ.")
    group_names_: list[str] = fitted("list of str", "Names of the rows of ``graph_``.")
    constant_: list[str] = fitted(
        "list of str",
        "Series that are constant and left out: no history, model or edge has them, a group "
        "consists of its other series, and forecasts repeat their value.",
    )
    results_: list[Result] = fitted("list of Result", "Bounds and status of each target.")

    if TYPE_CHECKING:
        _forecaster: Forecaster = fitted("", "")
        _slots: npt.NDArray[np.float64] = fitted("", "")
        _slot_p_values: tuple[Matrix | None, Matrix | None] = fitted("", "")

    @property
    def edges_(self) -> pd.DataFrame:
        """A row per edge of positive weight, with ``per_lag`` per lag of it.

        ``source``, ``target``, ``lag`` of the strongest effect, ``effect`` ("+" where the target
        rises with the source, "-" where it falls, "±" otherwise) and ``weight``, the heaviest
        first; with p-values ``p_value``, ``adjusted_p_value`` and ``passes``, the smallest first.
        """
        check_is_fitted(self, "graph_")
        p, adjusted = self._slot_p_values
        level = float(self.level)
        return edge_table(self.group_names_, self._slots, self.effects_, p, adjusted, level)

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
        scaled, ahead = self._read_scaled(X), self._forecaster
        values = ahead.in_units(ahead.one_step(scaled))
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
        scaled, ahead = self._read_scaled(X), self._forecaster
        COUNT.check("steps", steps)
        COUNT.check("n_paths", n_paths)
        number(above=0.0, below=1.0).check("level", level)
        past = scaled[-max(self.lags_) :]
        if np.isnan(past).any():
            raise ValueError(
                "the last rows of X must have no missing value: a forecast starts from them"
            )
        rng = check_random_state(self.random_state)
        paths = ahead.in_units(ahead.paths(past, ahead.coming(future, steps), int(n_paths), rng))
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

        check_cells(X, allow_missing=self.missing == "skip")
        table, labels = stack_replicates(X, None)
        rows = self._read_scaled(table)
        code, far = replicate_codes(labels, len(rows)), max(self.lags_)
        stretches = [rows[code == k] for k in range(code.max() + 1)]
        lengths = [len(each) for each in stretches]
        if min(lengths) <= far or sum(lengths) - far * len(lengths) < 2:
            raise ValueError(
                f"X must have at least {far + 2} rows, got {', '.join(map(str, lengths))}: the "
                f"first {far} of a stretch are history"
            )
        columns = self._forecaster.columns
        predicted = np.vstack([self._forecaster.one_step(each)[:-1, columns] for each in stretches])
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
        return as_networkx(self.group_names_, self.graph_, self.edges_)

    def _read_scaled(self, X: object) -> Matrix:
        """Return a checked table in standardised units."""
        check_is_fitted(self, "graph_")
        check_cells(X, allow_missing=self.missing == "skip")
        return self._forecaster.standardised(self._read(X, max(self.lags_)))

    def _read(self, X: object, least: int, *, reset: bool = False) -> Matrix:
        """Return a checked table of so many rows or more."""
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
