"""The estimator: a graph from series."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.checks import (
    COUNT,
    FLAG,
    NONNEGATIVE,
    POSITIVE,
    Rule,
    check_magnitude,
    number,
)
from kernelweave.kernels_core.estimators.base import Estimator
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.vv_rkhs.penalties.choose import as_penalty
from sklearn.utils import check_random_state
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from .assumptions import warn_of_draws, warn_of_series
from .dictionary import history_dictionary
from .edges import edge_table
from .effects import Effects, find_effects
from .selection import Selection, choose, held_out_errors, make_folds
from .series import LaggedSamples, lagged_samples, make_groups
from .significance import (
    ADJUST,
    SIGNIFICANCE,
    adjusted_p_values,
    incoming,
    null_weights,
    pooled_p_values,
    selection_frequencies,
    stability_p_values,
    warn_if_short,
)
from .target import Task, fit_target, warn_of_rest

Matrix = npt.NDArray[np.float64]

LAMS = tuple(np.logspace(1, -2, 7).tolist())


_LAM = Rule(
    "'cv' or a finite number > 0",
    lambda value: POSITIVE.holds(value) or (isinstance(value, str) and value == "cv"),
)


class GrangerGraph(Estimator):
    """Which series help to predict which others, by nonlinear Granger causality (V, section 4.1).

    For every target group i, x_t^i = f^i(histories of all groups, t − 1 to t − lags) with

        min over f, η, L of (1/n) Σ ‖f(h_t) − x_t^i‖² + λ Σ ‖f_{j,s}‖²/η_{j,s} + λω(η),

    f_{j,s} in the space of a kernel on the history of group j times the output kernel L ⪰ 0,
    tr L ≤ number of nodes. The edge j → i weighs Σ_s η_{j,s}: V's text has i and j the other way
    round. Nodes and kernels are standardised on the whole series; targets that are held out in
    cross-validation are never fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.granger import GrangerGraph
    >>> X = np.random.default_rng(0).standard_normal((80, 3))
    >>> X[1:, 0] = np.sin(2 * X[:-1, 2]) + 0.1 * X[1:, 0]
    >>> graph = GrangerGraph(lam=0.1, cv=None).fit(X).graph_
    >>> graph[0].argmax()
    np.int64(2)
    """

    lags: int = parameter(
        "Length of a history. No history crosses the border of a replicate.",
        default=1,
        rule=COUNT,
        kw_only=False,
    )
    groups: Any = parameter(
        "A label per node; nodes of a group share a history and an output kernel. Every node "
        "by itself by default.",
        default=None,
        kind="sequence of length n_nodes",
        kw_only=False,
    )
    kernels: Any = parameter(
        "Used on each group's history; a linear one and three Gaussians by default.",
        default=None,
        kind="list of Kernel",
        kw_only=False,
    )
    penalty: Any = parameter(
        "The regulariser ω. An elastic net gives small weights where there is little to "
        "explain, so that edges into different targets compare; squared ℓp norms make the "
        "weights of each target sum to 1 (p = 1), however little they explain.",
        default="elastic-net",
        kind='{"elastic-net", "lp"} or Penalty',
    )
    mu: float = parameter("Share of the squared norm in the elastic net.", default=0.5)
    p: float = parameter("Exponent of the squared ℓp norm, in [1, 2].", default=1.0)
    learn_output: bool = parameter(
        "Whether L is learned; without effect for groups of one node.", default=True, rule=FLAG
    )
    lam: Any = parameter(
        "λ, or its choice by cross-validation.", default="cv", kind='"cv" or float', rule=_LAM
    )
    lams: Any = parameter(
        "Candidates; 7 from 10 to 10⁻² by default.", default=None, kind="sequence of float"
    )
    shared_lam: bool = parameter(
        "Whether one λ serves all targets, which is the steadier choice for short series.",
        default=True,
        rule=FLAG,
    )
    cv: Any = parameter(
        "Folds of the held-out errors. An integer holds out whole replicates where there are "
        "three or more, else contiguous stretches of time. ``None`` needs a number for "
        "``lam``.",
        default=5,
        kind="int, splitter or None",
    )
    replicates: Any = parameter(
        "Replicate of each row; its rows are neighbours in order of time.",
        default=None,
        kind="array-like of shape (n_times,)",
    )
    significance: str | None = parameter(
        "How p-values are computed: by refits with the histories of the other groups moved in"
        " time, by whole replicates where there are five or more of equal length, else round "
        "in a circle within each; or by refits on random halves of the samples. The first is "
        "a test, the second bounds an error rate.",
        default=None,
        rule=SIGNIFICANCE,
    )
    n_draws: int = parameter(
        "Refits per target for p-values. All draws of a source's history, into whichever target, "
        "speak for each of its edges: the smallest p-value of a permutation is "
        "1/(1 + n_draws · (n_groups − 1)). One replicate has as many shifts as samples.",
        default=199,
        rule=COUNT,
    )
    adjust: str = parameter(
        "How p-values of permutations are adjusted for the number of edges: by Benjamini and "
        "Hochberg, for the rate of false edges among those that pass, or by the largest weight "
        "of each draw, for the chance of one false edge.",
        default="bh",
        rule=ADJUST,
    )
    level: float = parameter(
        "Adjusted p-value up to which an edge passes.",
        default=0.05,
        rule=number(above=0.0, below=1.0),
    )
    tol: float = parameter(
        "Relative certified gap; for groups with a learned L, relative stationarity.",
        default=1e-3,
        rule=NONNEGATIVE,
    )
    max_iter: int = parameter("Steps per fit at most.", default=500, rule=COUNT)
    n_jobs: int | None = parameter(
        "Targets at a time, by joblib under whatever backend is configured.", default=None
    )
    memory_limit: float | None = parameter(
        "Bytes that the fit may allocate per process.", default=None
    )
    random_state: int | np.random.RandomState | None = parameter(
        "Of the draws.", default=None, kind="int or RandomState"
    )

    graph_: Matrix = fitted(
        "ndarray of shape (n_groups, n_groups)",
        "``graph_[i, j]`` is the weight of j → i; the diagonal says how much a group drives "
        "itself.",
    )
    p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups) or None",
        "Per edge; NaN on the diagonal for permutations. ``None`` without ``significance``.",
    )
    adjusted_p_values_: Matrix | None = fitted(
        "ndarray of shape (n_groups, n_groups) or None",
        "The same, adjusted for the number of edges; for stability selection the bound on the "
        "number of false edges, at most 1.",
    )
    edges_: Any = fitted(
        "DataFrame",
        "A row per edge of positive weight: ``source``, ``target``, ``lag`` of the strongest "
        'effect, ``effect`` ("+" where the target rises with the source, "-" where it falls, '
        '"±" otherwise) and ``weight``; with p-values ``p_value``, ``adjusted_p_value`` and '
        "``passes``, the smallest first.",
    )
    effects_: Effects = fitted("Effects", "Curves of all edges.")
    n_draws_: int = fitted("int", "Draws behind them; 0 without.")
    output_kernels_: list[Matrix] = fitted("list of ndarray", "L of each target group.")
    weights_: Matrix = fitted(
        "ndarray of shape (n_groups, n_kernels)",
        "η of each target; ``owner_`` tells whose history a kernel sees.",
    )
    owner_: npt.NDArray[np.intp] = fitted(
        "ndarray of int of shape (n_kernels,)", "Group of each kernel."
    )
    kernel_names_: tuple[str, ...] = fitted("tuple of str", "Names of the kernels.")
    rmse_: npt.NDArray[np.float64] | None = fitted(
        "ndarray of shape (n_nodes,) or None",
        "Held-out root mean squared error of one-step predictions at the chosen λ, in the "
        "units of the data; ``None`` without ``cv``.",
    )
    lam_: npt.NDArray[np.float64] = fitted("ndarray of shape (n_groups,)", "λ of each target.")
    selection_: Selection | None = fitted("Selection or None", "Held-out errors per candidate.")
    group_names_: list[str] = fitted("list of str", "In the order of ``graph_``.")
    results_: list[Any] = fitted("list of Result", "Bounds and status of each target.")

    def fit(self, X: Any, y: Any = None) -> GrangerGraph:
        """Learn the graph.

        Parameters
        ----------
        X : array-like of shape (n_times, n_nodes)
            The series in order of time, one replicate after the other.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        names = _get_feature_names(X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=int(self.lags) + 2)
        check_magnitude("X", X)
        names = [str(j) for j in range(X.shape[1])] if names is None else [str(n) for n in names]
        groups = make_groups(self.groups, names)
        with config_context(memory_limit=self.memory_limit):
            samples = self._standardise(X, names)
            dictionary, self.owner_ = history_dictionary(
                samples.history, groups, int(self.lags), self.kernels
            )
            self._groups, self._dictionary = groups, dictionary
            self.group_names_, self.kernel_names_ = groups.names, dictionary.names
            self._select(dictionary.grams, samples)
            self._fit_targets(dictionary.grams, samples)
            self._find_p_values(dictionary.grams, samples)
            self._tabulate(X, dictionary)
        return self

    def forecast(self, X: Any) -> Matrix:
        """Return one-step predictions along one stretch of time.

        Parameters
        ----------
        X : array-like of shape (n_times, n_nodes)
            Rows in order of time, at least ``lags`` of them.

        Returns
        -------
        ndarray of shape (n_times - lags + 1, n_nodes)
            Row k predicts row ``lags + k`` of X; the last one lies beyond it.
        """
        check_is_fitted(self, "graph_")
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_min_samples=int(self.lags))
        scaled = (X - self._mean) / self._scale
        longer = np.vstack([scaled, scaled[-1:]])
        cross = self._dictionary.cross(lagged_samples(longer, int(self.lags)).history)
        values = np.empty((cross.shape[1], X.shape[1]))
        for nodes, found in zip(self._groups.members, self._targets, strict=True):
            values[:, nodes] = found.predict(cross)
        predicted: Matrix = values * self._scale + self._mean
        return predicted

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_random_state(self.random_state)
        if self.lam == "cv" and self.cv is None:
            raise ValueError("lam='cv' needs cv, got None: give a number of folds or a lam")
        if self.lams is not None and np.size(self.lams) == 0:
            raise ValueError("lams must hold at least one candidate, got none")

    def _standardise(self, X: Matrix, names: list[str]) -> LaggedSamples:
        """Return lagged samples of standardised nodes; a constant node is an error."""
        self._mean, self._scale = X.mean(axis=0), X.std(axis=0)
        flat = np.flatnonzero(self._scale <= 1e-12 * np.maximum(1.0, np.abs(self._mean)))
        if len(flat):
            raise ValueError(f"node {names[flat[0]]} is constant over the series: leave it out")
        return lagged_samples((X - self._mean) / self._scale, int(self.lags), self.replicates)

    def _task(self) -> Task:
        penalty = as_penalty(self.penalty, p=self.p, mu=self.mu)
        return Task(penalty, self.learn_output, self.tol, self.max_iter)

    def _over_targets(self, function: Any, *columns: Any) -> list[Any]:
        """Return ``function(*row)`` for each target, several at a time."""
        from joblib import Parallel, delayed

        work = (delayed(function)(*row) for row in zip(*columns, strict=True))
        return list(Parallel(n_jobs=self.n_jobs)(work))

    def _targets_of(self, samples: LaggedSamples) -> list[Matrix]:
        return [np.ascontiguousarray(samples.targets[:, nodes]) for nodes in self._groups.members]

    def _select(self, grams: npt.NDArray[Any], samples: LaggedSamples) -> None:
        """Set ``selection_``, ``lam_`` and ``rmse_``."""
        n_groups = len(self._groups)
        self.selection_ = None
        self.rmse_ = None
        if self.lam == "cv":
            lams = np.sort(np.asarray(LAMS if self.lams is None else self.lams, float))[::-1]
        else:
            lams = np.array([float(self.lam)])
        self.lam_ = np.full(n_groups, lams[0])
        if self.cv is None:
            return
        folds = make_folds(self.cv, samples.replicate)
        task, targets = self._task(), self._targets_of(samples)
        found = self._over_targets(
            held_out_errors,
            [grams] * n_groups,
            targets,
            [folds] * n_groups,
            [lams] * n_groups,
            [task] * n_groups,
        )
        errors = np.empty((len(lams), samples.targets.shape[1]))
        for nodes, each in zip(self._groups.members, found, strict=True):
            errors[:, nodes] = each
        self.selection_ = choose(errors, lams, self._groups, self.shared_lam)
        self.lam_ = lams[self.selection_.chosen]
        self.rmse_ = np.sqrt(self.selection_.error(self._groups)) * self._scale

    def _fit_targets(self, grams: npt.NDArray[Any], samples: LaggedSamples) -> None:
        """Set what the fits on all samples give."""
        n_groups = len(self._groups)
        self._targets = self._over_targets(
            fit_target,
            [grams] * n_groups,
            self._targets_of(samples),
            self.lam_.tolist(),
            [self._task()] * n_groups,
        )
        self.weights_ = np.array([each.weights for each in self._targets])
        self.output_kernels_ = [each.output_kernel for each in self._targets]
        self.results_ = [each.result for each in self._targets]
        self.graph_ = np.array([incoming(w, self.owner_, n_groups) for w in self.weights_])
        warn_of_rest(dict(zip(self.group_names_, self.results_, strict=True)), self.tol)

    def _find_p_values(self, grams: npt.NDArray[Any], samples: LaggedSamples) -> None:
        """Set ``p_values_``, ``adjusted_p_values_`` and ``n_draws_``."""
        self.p_values_ = self.adjusted_p_values_ = None
        self.n_draws_ = 0
        if self.significance is None:
            return
        n = len(self._groups)
        rng = check_random_state(self.random_state)
        seeds = [rng.randint(2**31 - 1, size=int(self.n_draws)) for _ in range(n)]
        targets, lams, task = self._targets_of(samples), self.lam_.tolist(), [self._task()] * n
        stack, owner = [grams] * n, [self.owner_] * n
        self.n_draws_ = int(self.n_draws)
        if self.significance == "stability":
            found = self._over_targets(
                selection_frequencies, stack, targets, owner, lams, task, [n] * n, seeds
            )
            self.p_values_ = stability_p_values(np.stack(found, axis=1))
            self.adjusted_p_values_ = np.minimum(1.0, n * (n - 1) * self.p_values_)
            return
        self._warn_of_tests(samples)
        found = self._over_targets(
            null_weights,
            *(stack, targets, owner, range(n), lams, task),
            *([samples.replicate] * n, [n] * n, seeds),
        )
        self.p_values_ = pooled_p_values(self.graph_, np.array(found))
        self.adjusted_p_values_ = adjusted_p_values(
            self.p_values_, self.graph_, np.array(found), self.adjust
        )

    def _warn_of_tests(self, samples: LaggedSamples) -> None:
        """Warn of what p-values take for granted and does not hold."""
        n, draws = len(self._groups), int(self.n_draws)
        warn_if_short(samples.replicate)
        names = getattr(self, "feature_names_in_", range(samples.targets.shape[1]))
        warn_of_series(samples.targets, [str(name) for name in names], samples.replicate)
        if n > 1:
            smallest = 1.0 / (1.0 + draws * (n - 1))
            warn_of_draws(draws, smallest, n * (n - 1), float(self.level), self.adjust)

    def _tabulate(self, X: Matrix, dictionary: FittedDictionary) -> None:
        """Set ``effects_`` and ``edges_``."""
        self.effects_ = find_effects(
            (X - self._mean) / self._scale,
            (self._mean, self._scale),
            *(int(self.lags), self._groups, dictionary, self.owner_, self._targets),
        )
        self.edges_ = edge_table(
            self.group_names_,
            self.graph_,
            self.effects_,
            *(self.p_values_, self.adjusted_p_values_, float(self.level)),
        )
