"""The estimator: a graph from series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.arrays import Index, Matrix, Rows, Vector
from kernelweave.kernels_core.checks import STRENGTH
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.base import assigned_last
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.fit import FitResult
from kernelweave.vv_rkhs.penalties import as_penalty

from .fitted_graph import FittedGraph
from .fitting import Candidates, choose_lam, fit_targets, left_out_errors
from .forecasts import Forecaster
from .frames import check_cells, stack_replicates, warn_of_constants, warn_of_times
from .histories import Histories, describe
from .roles import Roles, make_roles, takes_all
from .selection import warn_of_ends
from .series import lag_list, lagged_samples, replicate_codes
from .target import TargetFit, TargetSettings, find_effects, warn_of_rest
from .testing import NO_TEST, Test, find_p_values, warn_of_test

# default candidates for λ
LAMS = tuple(np.logspace(1, -2, 7).tolist())
# Numbers of lags that "cv" tries, fewer for short series. Each costs a fit in every fold, so steps
# widen: a sixth lag beside five others adds little.
LENGTHS = (1, 2, 3, 5, 8)


@dataclass(frozen=True, eq=False)
class _Series:
    """What a fit is given: `scaled` of shape (n_times, n_columns), and what it was made from.

    `mean`, `scale` of shape (n_columns,); `constant`: columns that are left out; `replicate` of
    shape (n_times,).
    """

    scaled: Matrix
    names: list[str]
    mean: Vector
    scale: Vector
    constant: Index
    roles: Roles
    replicate: Index


class GrangerGraph(FittedGraph):
    """Estimate which time series help to predict which others: nonlinear Granger causality.

    For every target group i, x_t^i = f^i(histories of all groups, t − 1 to t − lags) with

        min over f, η, L of (1/n) Σ ‖f(h_t) − x_t^i‖² + λ Σ ‖f_{j,s}‖²/η_{j,s} + λω(η),

    f_{j,s} in the space of a kernel on the history of group j times the output kernel L ⪰ 0,
    tr L ≤ number of nodes (Sindhwani, Minh and Lozano 2013, section 4.1, whose text exchanges i and
    j). The weight of the edge j → i is Σ_s η_{j,s}. Nodes and kernels are standardised on the whole
    series; targets that are held out in cross-validation are never fitted. A constant series is
    left out with a warning: it stays in the graph without a model and without edges, and forecasts
    repeat it.

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

    def fit(self, X: Rows, y: object = None) -> GrangerGraph:
        """Learn the graph.

        Parameters
        ----------
        X : array-like of shape (n_times, n_columns), or a list of such
            The series in order of time, one replicate after the other; or a table, DataFrame or
            array, for each replicate.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        with assigned_last(self) as draft:
            draft.__dict__.update(draft._learn(X).attributes)
        return self

    def _learn(self, X: Rows) -> FitResult:
        """Return what a fit finds."""
        series = self._standardise(X)
        task, n_jobs = self._task, self.n_jobs
        with config_context(memory_limit=self.memory_limit), blas_threads(len(series.scaled)):
            lags = self._choose_lags(series)
            histories = self._histories(series, lags)
            lam, selection = choose_lam(histories, task, self._candidates, n_jobs)
            fits = fit_targets(histories, task, lam, n_jobs)
            targets = [series.roles.nodes.names[i] for i in series.roles.driven]
            warn_of_rest(dict(zip(targets, (each.result for each in fits), strict=True)), self.tol)
            errors = left_out_errors(histories, fits, lam)
            if selection is not None:
                warn_of_ends(selection)
            tested = self._test(series, histories, lam)
            found = self._describe(series, histories, fits, errors)
        rmse = None
        if selection is not None:
            at_chosen = selection.at_chosen(selection.errors, histories.columns)
            rmse = np.sqrt(at_chosen) * series.scale
        return FitResult(
            found
            | tested
            | {"targets_": targets, "lam_": lam, "selection_": selection, "rmse_": rmse}
        )

    def _standardise(self, X: Rows) -> _Series:
        """Return what a fit is given, in standard units, and warn of what is odd in it."""
        check_cells(X, allow_missing=self.missing == "skip")
        table, labels = stack_replicates(X, self.replicates)
        replicate = replicate_codes(labels, len(table))
        warn_of_times(table, replicate)
        longest = 1 if self._tries else max(lag_list(self.lags))
        rows = self._read(table, 2 + longest, reset=True)
        names = [str(each) for each in getattr(self, "feature_names_in_", range(rows.shape[1]))]
        mean, scale, constant = _units(rows, names)
        roles = make_roles(
            names, self.groups, self.exogenous, self.never_targets, self.forbidden, constant
        )
        if len(constant):
            warn_of_constants([names[j] for j in constant], mean[constant])
        scaled = (rows - mean) / scale
        # a gap in a series that is left out costs no row
        scaled[:, constant] = 0.0
        return _Series(scaled, names, mean, scale, constant, roles, replicate)

    def _test(self, series: _Series, histories: Histories, lam: Vector) -> dict[str, object]:
        """Return p-values, where they are asked for, as attributes."""
        doubted, tested = False, NO_TEST
        if self.significance is not None:
            test = Test(self.n_draws, self.adjust, self.level)
            doubted = warn_of_test(series.scaled, series.names, series.replicate, histories, test)
            tested = find_p_values(histories, lam, self._task, test, self.random_state, self.n_jobs)
        return {
            "p_values_": tested.edges,
            "adjusted_p_values_": tested.adjusted,
            "p_values_doubted_": doubted,
            "n_draws_": tested.n_draws,
            "lag_p_values_": tested.slots if self.per_lag else None,
            "_slot_p_values": (tested.slots, tested.adjusted_slots),
        }

    def _describe(
        self, series: _Series, histories: Histories, fits: list[TargetFit], errors: Matrix
    ) -> dict[str, object]:
        """Return the graph, its effects and what forecasts need, as attributes."""
        nodes, driven, lags = series.roles.nodes, series.roles.driven, histories.lags
        owner, dictionary = histories.owner, histories.dictionary
        weights = np.zeros((len(nodes), len(owner)))
        weights[driven] = [each.weights for each in fits]
        slots = histories.weights_of_lags(weights)
        units, by_node = (series.mean, series.scale), dict(zip(driven.tolist(), fits, strict=True))
        models = list(zip(histories.columns, fits, strict=True))
        return {
            "graph_": slots.sum(axis=2),
            "lag_graph_": slots if self.per_lag else None,
            "effects_": find_effects(series.scaled, units, lags, nodes, dictionary, owner, by_node),
            "lags_": lags,
            "output_kernels_": [each.output_kernel for each in fits],
            "weights_": weights,
            "owner_": owner,
            "pairs_": [(nodes.names[a], nodes.names[b]) for a, b in histories.pairs],
            "kernel_names_": dictionary.names,
            "group_names_": nodes.names,
            "constant_": [series.names[j] for j in series.constant],
            "results_": [each.result for each in fits],
            "_slots": slots,
            "_forecaster": Forecaster(
                series.names, *units, lags, dictionary, models, errors, series.constant
            ),
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.lam == "cv" and self.cv is None:
            raise ValueError(
                Message("{lam}='cv' needs cv, got None: give a number of folds or a {lam}")
            )
        if self._tries and self.cv is None:
            raise ValueError(
                Message("{lags}='cv' needs cv, got None: give a number of folds or {lags}")
            )
        if self.per_lag and self.pairs:
            raise ValueError(Message("{pairs} excludes {per_lag}: a pair has no lag of its own"))
        if self.lams is not None and np.size(self.lams) == 0:
            raise ValueError(Message("{lams} must hold at least one candidate, got none"))

    @property
    def _tries(self) -> bool:
        return isinstance(self.lags, str)

    @property
    def _task(self) -> TargetSettings:
        penalty = as_penalty(self.penalty, p=self.p, mu=self.mu)
        return TargetSettings(penalty, self.learn_output, self.tol, self.max_iter)

    @property
    def _candidates(self) -> Candidates:
        if self.lam == "cv":
            lams = np.sort(np.asarray(LAMS if self.lams is None else self.lams, float))[::-1]
        else:
            lams = np.array([float(self.lam)])
        for lam in lams.tolist():
            STRENGTH.check("lams" if self.lam == "cv" else "lam", lam)
        return Candidates(lams, self.cv, self.scoring, self.shared_lam)

    def _sees_pairs(self, roles: Roles) -> bool:
        """Tell whether products of two histories have kernels."""
        if self.pairs is None:
            return self.kernels is None and not self.per_lag and self.significance is None
        if self.pairs and self.significance is not None and not takes_all(len(roles.nodes)):
            raise ValueError(
                Message(
                    f"{{pairs}} excludes {{significance}} for {len(roles.nodes)} groups: of more "
                    "than 14 the most promising pairs are chosen by the same series, and p-values "
                    "would come out too small"
                )
            )
        return bool(self.pairs)

    def _histories(self, series: _Series, lags: tuple[int, ...], first: int = 0) -> Histories:
        """Return the samples, none before row ``first`` of a replicate, and their kernels."""
        skip = self.missing == "skip"
        samples = lagged_samples(
            series.scaled, lags, series.replicate, allow_missing=skip, first=first
        )
        pairs, roles = self._sees_pairs(series.roles), series.roles
        return describe(samples, lags, roles, self.kernels, per_lag=self.per_lag, sees_pairs=pairs)

    def _choose_lags(self, series: _Series) -> tuple[int, ...]:
        """Return the lags, by held-out errors of the same rows where they are to be chosen."""
        if not self._tries:
            return lag_list(self.lags)
        longest = int(np.bincount(series.replicate).max())
        lengths = [each for each in LENGTHS if each == 1 or 5 * each <= longest]
        losses = []
        for length in lengths:
            histories = self._histories(series, lag_list(length), first=lengths[-1])
            _, selection = choose_lam(histories, self._task, self._candidates, self.n_jobs)
            assert selection is not None
            each = selection.at_chosen(selection.losses, histories.columns)
            losses.append(float(np.nansum(each)))
        return lag_list(lengths[int(np.argmin(losses))])


def _units(X: Matrix, names: list[str]) -> tuple[Vector, Vector, Index]:
    """Return mean and standard deviation of each column, 1 for constant ones, and which these are.

    Raises ValueError if a column has no value.
    """
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if len(empty):
        raise ValueError(
            f"series {names[empty[0]]!r} has no value, all are missing: leave it out of X"
        )
    mean, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    constant = np.flatnonzero(scale <= 1e-12 * np.nanmax(np.abs(X), axis=0))
    scale[constant] = 1.0
    return mean, scale, constant
