"""The estimator: a graph from series."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.arrays import Index, Matrix, RealArray, Rows, Vector
from kernelweave.kernels_core.checks import STRENGTH
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.kernels import FittedDictionary
from kernelweave.vv_rkhs import PrecomputedFamily
from kernelweave.vv_rkhs.penalties import as_penalty
from sklearn.utils import check_random_state

from .draws import Mixed, null_weights
from .fitted_graph import FittedGraph, left_out_errors
from .frames import stack_replicates, warn_of_draws, warn_of_series, warn_of_times
from .graph_parameters import LAMS, LENGTHS, history_dictionary
from .roles import Pair, Roles, choose_pairs, make_roles, shares, takes_all
from .selection import choose, held_out_errors, make_folds, search, warn_of_ends
from .series import LaggedSamples, lag_list, lagged_samples, replicate_codes
from .shared_grams import LOST, factored
from .significance import adjusted_p_values, most_draws, pooled_p_values, warn_if_short
from .target import Effects, TargetFit, TargetSettings, find_effects, fit_target, warn_of_rest
from .together import fit_together, is_fitted_jointly

T = TypeVar("T")


class GrangerGraph(FittedGraph):
    """Estimate which time series help to predict which others: nonlinear Granger causality.

    For every target group i, x_t^i = f^i(histories of all groups, t − 1 to t − lags) with

        min over f, η, L of (1/n) Σ ‖f(h_t) − x_t^i‖² + λ Σ ‖f_{j,s}‖²/η_{j,s} + λω(η),

    f_{j,s} in the space of a kernel on the history of group j times the output kernel L ⪰ 0,
    tr L ≤ number of nodes (Sindhwani, Minh and Lozano 2013, section 4.1, whose text exchanges i and
    j). The weight of the edge j → i is Σ_s η_{j,s}. Nodes and kernels are standardised on the whole
    series; targets that are held out in cross-validation are never fitted.

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
        table, replicates = stack_replicates(X, self.replicates)
        warn_of_times(table, replicate_codes(replicates, len(table)))
        table = self._read(table, reset=True)
        names = [str(each) for each in getattr(self, "feature_names_in_", range(table.shape[1]))]
        roles = make_roles(names, self.groups, self.exogenous, self.never_targets, self.forbidden)
        with config_context(memory_limit=self.memory_limit), blas_threads(len(table)):
            scaled = self._standardise(table, names)
            self._choose_lags(scaled, roles, replicates)
            samples = self._samples(scaled, self.lags_, replicates)
            dictionary = self._describe(samples, roles)
            self._select(dictionary.grams, samples)
            self._fit_targets(dictionary.grams, samples)
            self._errors = self._left_out(dictionary.grams, samples)
            self.effects_ = self._find_effects(scaled)
            self._warn(scaled, names, replicate_codes(replicates, len(scaled)), samples)
            self._find_p_values(dictionary.grams, samples)
        return self

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

    def _standardise(self, X: Matrix, names: list[str]) -> Matrix:
        """Return standardised columns; a constant one is an error."""
        self._mean, self._scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        flat = np.flatnonzero(~(self._scale > 1e-12 * np.maximum(1.0, np.abs(self._mean))))
        if len(flat):
            raise ValueError(f"node {names[flat[0]]} is constant over the series: leave it out")
        return (X - self._mean) / self._scale

    def _samples(
        self, scaled: Matrix, lags: tuple[int, ...], replicates: object, first: int = 0
    ) -> LaggedSamples:
        return lagged_samples(
            scaled, lags, replicates, allow_missing=self.missing == "skip", first=first
        )

    def _choose_lags(self, scaled: Matrix, roles: Roles, replicates: object) -> None:
        """Set ``lags_``, by held-out errors of the same rows where they are to be chosen."""
        if not self._tries:
            self.lags_ = lag_list(self.lags)
            return
        longest = int(np.bincount(replicate_codes(replicates, len(scaled))).max())
        lengths = [each for each in LENGTHS if each == 1 or 5 * each <= longest]
        errors = []
        for length in lengths:
            self.lags_ = lag_list(length)
            samples = self._samples(scaled, self.lags_, replicates, first=lengths[-1])
            self._select(self._describe(samples, roles).grams, samples)
            assert self.selection_ is not None
            losses = self.selection_.at_chosen(self.selection_.losses, self._columns)
            errors.append(float(np.nansum(losses)))
        self.lags_ = lag_list(lengths[int(np.argmin(errors))])

    def _describe(self, samples: LaggedSamples, roles: Roles) -> FittedDictionary:
        """Set the kernels on histories, and which source and lag each belongs to."""
        n_lags = len(self.lags_)
        self._pairs: list[Pair] = []
        if self._sees_pairs(roles):
            driven = samples.targets[:, roles.driven_columns]
            self._pairs = choose_pairs(samples.history, driven, roles.nodes, n_lags)
        dictionary, unit = history_dictionary(
            *(samples.history, roles.sources, n_lags, self.kernels),
            per_lag=self.per_lag,
            pairs=self._pairs,
        )
        self._slots = n_lags if self.per_lag else 1
        self._roles, self._dictionary = roles, dictionary
        self._unit = unit
        self._share = shares(unit, len(roles.sources) * self._slots, self._pairs)
        self.owner_ = unit // self._slots
        self.pairs_ = [(roles.nodes.names[a], roles.nodes.names[b]) for a, b in self._pairs]
        self._columns = [roles.nodes.members[i] for i in roles.driven]
        self.group_names_, self.kernel_names_ = roles.nodes.names, dictionary.names
        self.targets_ = [roles.nodes.names[i] for i in roles.driven]
        return dictionary

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

    def _task(self) -> TargetSettings:
        penalty = as_penalty(self.penalty, p=self.p, mu=self.mu)
        return TargetSettings(penalty, self.learn_output, self.tol, self.max_iter)

    def _in_parallel(self, function: Callable[..., T], *columns: Iterable[object]) -> list[T]:
        """Return ``function(*row)`` for each row of these columns, several at a time."""
        from joblib import Parallel, delayed

        rows = zip(*columns, strict=True)
        return list(Parallel(n_jobs=self.n_jobs)(delayed(function)(*row) for row in rows))

    def _models_alike(self) -> list[tuple[Index, Index, bool]]:
        """Return columns, kernels that are seen, and whether each column is a target of its own.

        Targets of one node that see the same kernels are fitted together.
        """
        alike: dict[bytes | int, list[tuple[Index, Index]]] = {}
        for i, columns in zip(self._roles.driven, self._columns, strict=True):
            seen = self._roles.kernels_of(i, self.owner_, self._pairs)
            apart = is_fitted_jointly(self._task().penalty, len(columns))
            key = seen.tobytes() if apart else int(i)
            alike.setdefault(key, []).append((columns, seen))
        return [
            (np.concatenate([columns for columns, _ in each]), each[0][1], not isinstance(key, int))
            for key, each in alike.items()
        ]

    def _data_of(self, samples: LaggedSamples) -> tuple[list[Matrix], list[Index]]:
        """Return values to predict and kernels that are seen, for each target."""
        values = [np.ascontiguousarray(samples.targets[:, nodes]) for nodes in self._columns]
        return values, [
            self._roles.kernels_of(i, self.owner_, self._pairs) for i in self._roles.driven
        ]

    def _select(self, grams: RealArray, samples: LaggedSamples) -> None:
        """Set ``selection_``, ``lam_`` and ``rmse_``."""
        n_targets = len(self._columns)
        self.selection_ = None
        self.rmse_ = None
        if self.lam == "cv":
            lams = np.sort(np.asarray(LAMS if self.lams is None else self.lams, float))[::-1]
        else:
            lams = np.array([float(self.lam)])
        for lam in lams.tolist():
            STRENGTH.check("lams" if self.lam == "cv" else "lam", lam)
        self.lam_ = np.full(n_targets, lams[0])
        if self.cv is None:
            return
        errors_of, grouping = self._errors_of(grams, samples), (self._columns, self.shared_lam)
        if self.scoring is None:
            selection = search(lams, lambda some: errors_of(some)[0], *grouping)
        else:
            errors, losses = errors_of(lams)
            selection = choose(errors, lams, *grouping, losses)
        self.selection_, self.lam_ = selection, lams[selection.chosen]
        errors = selection.at_chosen(selection.errors, self._columns)
        self.rmse_ = np.sqrt(errors) * self._scale

    def _errors_of(self, grams: RealArray, samples: LaggedSamples) -> Callable[[Vector], RealArray]:
        """Return a function from the next candidates of λ to held-out errors and losses of nodes.

        It returns shape (2, n_lams, n_nodes).
        """
        folds, models = make_folds(self.cv, samples.replicate), self._models_alike()
        work = [
            (grams, samples.targets[:, columns], seen, self._unit, apart, fold, self._task())
            for columns, seen, apart in models
            for fold in folds
        ]
        starts: list[Vector | None] = [None] * len(work)
        n_held_out = sum(len(test) for _, test in folds)

        def errors_of(lams: Vector) -> RealArray:
            pairs = zip(work, starts, strict=True)
            given = zip(*((*each, lams, start, self.scoring) for each, start in pairs), strict=True)
            held_out, starts[:] = zip(*self._in_parallel(held_out_errors, *given), strict=True)
            errors = np.full((2, len(lams), samples.targets.shape[1]), np.nan)
            # squared errors of all samples count alike, and so do scores of the folds
            parts = [n_held_out, n_held_out if self.scoring is None else len(folds)]
            for k, (columns, _, _) in enumerate(models):
                each = np.sum(held_out[k * len(folds) : (k + 1) * len(folds)], axis=0)
                errors[:, :, columns] = each / np.reshape(parts, (2, 1, 1))
            return errors

        return errors_of

    def _fit_targets(self, grams: RealArray, samples: LaggedSamples) -> None:
        """Fit all targets on all samples; set their models, weights and the graph."""
        n, n_targets = len(self._roles.nodes), len(self._columns)
        values, seen = self._data_of(samples)
        starts = self._find_together(grams, samples)
        # what sees all kernels measures their norms once
        whole = PrecomputedFamily(grams, check=False)
        given = [whole if len(each) == len(grams) else grams for each in seen]
        fits: list[TargetFit] = self._in_parallel(
            partial(fit_target, exact=True),
            *(given, values, self.lam_.tolist(), [self._task()] * n_targets, seen),
            starts,
        )
        driven = self._roles.driven.tolist()
        self._models = dict(zip(driven, zip(self._columns, fits, strict=True), strict=True))
        self.weights_ = np.zeros((n, len(self.owner_)))
        self.weights_[driven] = [each.weights for each in fits]
        self.output_kernels_ = [each.output_kernel for each in fits]
        self.results_ = [each.result for each in fits]
        self._by_lag = self._of_lags(self.weights_)
        self._as_drawn = self._of_lags(self._drawn_weights(starts, seen))
        self.graph_ = self._by_lag.sum(axis=2)
        self.lag_graph_ = self._by_lag if self.per_lag else None
        warn_of_rest(dict(zip(self.targets_, self.results_, strict=True)), self.tol)

    def _of_lags(self, weights: Matrix) -> Matrix:
        """Return weights of kernels as those of sources and lags, (n_nodes, n_nodes, n_lags)."""
        n, n_slots = len(self._roles.nodes), self._slots
        by_unit: Matrix = weights @ self._share
        return by_unit[:, : n * n_slots].reshape(n, n, n_slots)

    def _drawn_weights(self, starts: list[Vector | None], seen: list[Index]) -> Matrix:
        """Return the weights of the search that draws run too, to compare with theirs.

        Draws are searches without a proof, which may take steps of its own.
        """
        weights = self.weights_.copy()
        for i, start, kernels in zip(self._roles.driven, starts, seen, strict=True):
            if start is not None:
                weights[i] = 0.0
                weights[i, kernels] = start
        return weights

    def _find_together(self, grams: RealArray, samples: LaggedSamples) -> list[Vector | None]:
        """Return the weights of targets that are fitted together, ``None`` for the others."""
        starts: dict[int, Vector] = {}
        for columns, seen, apart in self._models_alike():
            if not apart:
                continue
            which = [k for k, each in enumerate(self._columns) if each[0] in columns]
            Y = samples.targets[:, columns]
            error = LOST * self.tol * float(self.lam_[which].min()) * len(Y)
            fits = fit_together(
                factored(grams, seen, np.arange(len(Y)), self._unit[seen], error, grams.dtype),
                np.ascontiguousarray((Y - Y.mean(axis=0)).T),
                *(self.lam_[which], self._task().penalty, None),
                tol=0.5 * self.tol,
                max_iter=self.max_iter,
            )
            starts.update(zip(which, fits.weights, strict=True))
        return [starts.get(k) for k in range(len(self._columns))]

    def _find_p_values(self, grams: RealArray, samples: LaggedSamples) -> None:
        """Set the p-values of edges and lags, ``None`` where no test is asked for."""
        self.p_values_ = self.adjusted_p_values_ = self.lag_p_values_ = None
        self._row_p_values: tuple[Matrix | None, Matrix | None] = (None, None)
        self.n_draws_ = 0
        if self.significance is None:
            return
        n, n_targets = len(self._roles.nodes), len(self._columns)
        rng = check_random_state(self.random_state)
        seeds = [rng.randint(2**31 - 1, size=int(self.n_draws)) for _ in range(n_targets)]
        work = ([grams] * n_targets, *self._data_of(samples))
        rest = (self.lam_.tolist(), [self._task()] * n_targets)
        stays = [self._roles.never_permuted(i, self.owner_) for i in self._roles.driven]
        whose, replicate = [self._share] * n_targets, [samples.replicate] * n_targets
        mixed = [self._mixed(i, samples) for i in self._roles.driven]
        drawn = self._in_parallel(null_weights, *work, stays, whose, *rest, replicate, seeds, mixed)
        self.n_draws_ = len(drawn[0])
        null = np.full((n, self.n_draws_, n * self._slots), np.nan)
        null[self._roles.driven] = np.array(drawn)[:, :, : n * self._slots]
        self._use_null(null)

    def _mixed(self, target: int, samples: LaggedSamples) -> Mixed:
        """Return the pairs of a target's own history with others, by their kernel."""
        views = self._roles.nodes.columns(len(self.lags_))
        first = len(self._roles.sources)
        pairs: Mixed = {}
        for k, (a, b) in enumerate(self._pairs):
            if target in (a, b):
                other = b if target == a else a
                kernel = int(np.flatnonzero(self.owner_ == first + k)[0])
                pairs[kernel] = samples.history[:, views[target]], samples.history[:, views[other]]
        return pairs

    def _use_null(self, null: npt.NDArray[np.float64]) -> None:
        """Turn weights by chance into p-values, of nodes and of their lags."""
        n, n_slots = len(self._roles.nodes), self._slots
        whole = null.reshape(*null.shape[:2], n, n_slots).sum(axis=3)
        edges, flat = self._as_drawn.sum(axis=2), self._as_drawn.reshape(n, -1)
        self.p_values_ = pooled_p_values(edges, whole)
        self.adjusted_p_values_ = adjusted_p_values(self.p_values_, edges, whole, self.adjust)
        p = pooled_p_values(flat, null)
        adjusted = adjusted_p_values(p, flat, null, self.adjust)
        self._row_p_values = (p.reshape(n, n, n_slots), adjusted.reshape(n, n, n_slots))
        self.lag_p_values_ = self._row_p_values[0] if self.per_lag else None

    def _warn(
        self, scaled: Matrix, names: list[str], replicate: Index, samples: LaggedSamples
    ) -> None:
        """Warn of a λ at an end of its candidates, and of what p-values take for granted."""
        self.p_values_doubted_ = False
        if self.selection_ is not None:
            warn_of_ends(self.selection_)
        if self.significance is None:
            return
        warn_if_short(samples.replicate)
        roles, filled = self._roles, np.nan_to_num(scaled)
        nodes = np.concatenate(roles.nodes.members)
        rest = filled[:, nodes]
        if len(roles.exogenous):
            # what exogenous columns explain, a season or a trend, stays in place in every draw
            given = filled[:, np.concatenate(roles.exogenous.members)]
            rest = rest - given @ np.linalg.lstsq(given, rest, rcond=None)[0]
        self.p_values_doubted_ = warn_of_series(rest, [names[j] for j in nodes], replicate)
        tested = roles.tested()
        if tested.any():
            most = most_draws(samples.replicate)
            draws, pool = int(min(self.n_draws, most)), int(tested.sum(axis=0).max())
            n_edges = int(tested.sum()) * self._slots
            smallest = 1.0 / (1.0 + draws * pool)
            warn_of_draws(draws, smallest, n_edges, float(self.level), self.adjust, most)

    def _find_effects(self, scaled: Matrix) -> Effects:
        fits = {i: fit for i, (_, fit) in self._models.items()}
        return find_effects(
            scaled,
            (self._mean, self._scale),
            *(self.lags_, self._roles.nodes, self._dictionary, self.owner_, fits),
        )

    def _left_out(self, grams: RealArray, samples: LaggedSamples) -> Matrix:
        """Return errors at left-out samples, standardised, shape (n_samples, n_columns)."""
        errors = np.zeros(samples.targets.shape)
        for (columns, fit), lam in zip(self._models.values(), self.lam_, strict=True):
            errors[:, columns] = left_out_errors(
                grams, fit, samples.targets[:, columns], float(lam)
            )
        return errors
