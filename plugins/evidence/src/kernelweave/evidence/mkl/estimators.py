"""EvidenceMKLRegressor and EvidenceMKLClassifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import (
    KernelDictionary,
    KernelWeaveWarning,
    Problem,
    SolveInterrupted,
    Status,
    clock,
    config_context,
    interrupts,
)
from kernelweave.kernels_core.arrays import (
    FloatArray,
    Index,
    Labels,
    Points,
    RandomState,
    is_sparse,
    row_slices,
)
from kernelweave.kernels_core.arrays import Rows as Table
from kernelweave.kernels_core.checks import COUNT, integer, one_of
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.kernel import Data, KernelClassifier, KernelRegressor
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.weights import (
    KERNELS,
    WeightedKernels,
    fit_kernels,
    is_precomputed,
    weight_attributes,
)
from kernelweave.kernels_core.exceptions import Message
from kernelweave.kernels_core.fit import FitResult, Formula, attributes_of
from kernelweave.kernels_core.grams import PrecomputedDictionary
from kernelweave.kernels_core.kernels import Kernel
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.parameters import fitted, parameter
from kernelweave.qp_smo import Ridge
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from ..columns import ColumnEncoder, Dimension, Encoded
from ..copies import ROUNDING, copy_groups
from ..division import Division, division_of, hold_out, n_folds_of
from ..findings import HeldOutScores, doubt_new_rows, first_line, other_lines, told_of
from ..kernel import default_kernels
from ..new_rows import Closed
from ..probabilities import CalibratedClasses
from ..read_table import EXACT_ROWS
from ..rows import Rows, Split, Standardised, normalise_weights, spread_of
from ..tasks import Classification, Regression, Task
from .learn import FLOOR, NoisyFamily, learn_weights
from .step import PricedOrthant

_PROOFS = (
    "a feasible dual point of the convex problem that touches the negative log evidence at these "
    "weights from above",
    "its value at these weights; equal bounds prove a stationary point of the evidence, not its "
    "global maximum",
)
# fit takes no order: a splitter does
_IN_ORDER = "cv=TimeSeriesSplit(), the rows in that order"
# New rows whose kernel values with all training rows are held at a time.
_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class _Table(Data):
    """What a fit is given, and what its table says of new rows.

    `division`: how the user holds rows out; `dimensions`, `cells`: the columns of the table, of
    which none may be known.
    """

    division: Division = field(kw_only=True)
    dimensions: Sequence[Dimension] = field(kw_only=True)
    cells: Encoded = field(kw_only=True)


class EvidenceWeights(HeldOutScores, WeightedKernels):
    """Kernel weights and the noise by the evidence, for classifiers and regressors."""

    kernels: KernelDictionary | Sequence[Kernel] | str | None = parameter(
        "The kernels; by default Gaussians, Laplacians, a linear kernel and tessellated products "
        'of ranks, for features that are then standardised. With ``"precomputed"`` X holds Gram '
        "matrices, (n_kernels, n, n_train).",
        kind='None, KernelDictionary, list of Kernel or "precomputed"',
        default=None,
        rule=KERNELS,
        kw_only=False,
    )
    algorithm: str = parameter(
        "L-BFGS on the logarithms before each convex step, or convex steps alone: both descend, "
        "and end at the same proof.",
        default="lbfgs",
        rule=one_of("lbfgs", "majorize"),
    )
    n_folds: int = parameter(
        "Number of folds of the cross-validated score, each with its own weights; with ``groups``, "
        "they hold out whole groups.",
        default=3,
        rule=integer(2),
    )
    cv: Any = parameter(
        "Cross-validation other than ``n_folds`` random folds: a number of folds, a scikit-learn "
        "splitter such as ``TimeSeriesSplit()``, or an iterable of (train, test) indices.",
        default=None,
        kind="int, splitter, iterable or None",
    )
    tol: float = 1e-3
    max_iter: int = parameter("Maximum number of convex steps.", default=100, rule=COUNT)
    random_state: RandomState = parameter(
        "Seed of the folds; the same integer gives the same model.",
        default=0,
        kind="int, RandomState or None",
    )

    n_iter_: int = fitted("int", "Convex steps on all rows.")
    noise_: float = fitted("float", "σ², in units of the targets' variance.")
    log_evidence_: float = fitted("float", "log p(y) of the standardised targets.")
    descent_: FloatArray = fitted(
        "ndarray", "Negative log evidence, up to a constant, at the start and after each step."
    )

    def formula(self, samples: Samples) -> Formula:
        """Return the first of the convex problems whose solutions the evidence chooses."""
        scaling: Scaling | None = None
        stored: Any
        if self.kernels is None:
            scaling = Scaling(*mean_and_spread(np.asarray(samples.X), samples.weight))
            X = np.asarray(samples.scaled(scaling).X)
            own = default_kernels(X, samples.weight)
            stored = KernelDictionary(own, normalize=self.normalize).fit_grams(X)
        else:
            stored = fit_kernels(self, samples)
        return Formula(
            NoisyFamily(stored, 1.0 / _mass_of(samples)),
            Ridge(C=1.0 / FLOOR),
            PricedOrthant(),
            "evidence-step",
            scaling=scaling,
            proofs=_PROOFS,
            attributes=lambda _, result: {
                **weight_attributes(self, stored, result.parameters[:-1]),
                "noise_": FLOOR + float(result.parameters[-1]),
            },
        )

    def _read_data(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None, groups: object
    ) -> tuple[Data, Labels]:
        data, truth = super()._read_data(X, y, sample_weight, None)  # type: ignore[safe-super]
        if data.grams is not None and isinstance(groups, str):
            raise ValueError(
                f"groups={groups!r} needs columns, which precomputed Gram matrices do not have: "
                "give the group of each row"
            )
        table = X if data.grams is None else data.X
        division = division_of(table, y, groups, None, self.cv)
        columns = _columns(X if data.grams is None else np.empty((len(data.weight), 0)))
        given = vars(data) | {"dimensions": columns[0], "cells": columns[1]}
        return _Table(**given, division=division), truth

    def _learn(self, data: Any) -> FitResult:
        """Learn the weights on all rows and in folds, while there is time."""
        if data.X.shape[0] < 2:
            raise ValueError("1 sample is too few to weight kernels: at least 2 are needed")
        samples, rows, first = _merged(data)
        found: dict[str, Any] = {}
        stopped: SolveInterrupted | None = None
        task: Task = Regression(flat=getattr(self, "_is_flat", True))
        if is_classifier(self):
            task = Classification(labels=self.classes_)
        splits = self._splits(task, data.division, rows, samples)
        held_out, fold = np.full(rows.targets.T.shape, np.nan), np.full(len(rows), -1)
        with config_context(memory_limit=self.memory_limit), clock.time_limit(self.max_time):
            try:
                with interrupts.defer_interrupt(), blas_threads(len(rows)):
                    found, grams, closed = self._on_all_rows(samples)
                    if found["result_"].status is Status.INTERRUPTED:
                        raise KeyboardInterrupt
                    for k, (own, others) in enumerate(splits):
                        if clock.expired():
                            break
                        held_out[others] = self._predict_held_out(grams, samples, own, others)
                        fold[others] = k
            except KeyboardInterrupt as stop:
                if not found:
                    raise
                found["result_"] = replace(found["result_"], status=Status.INTERRUPTED)
                stopped = SolveInterrupted(found["result_"])
                stopped.__cause__ = stop
        task, usual = first_line(task, data.division, rows, held_out, fold)
        lines = [usual]
        if usual.n_rows:
            # after the limit of time, which does not cut them
            lines += other_lines(
                task, data.division, closed, rows, data.dimensions, first, self.random_state,
                many=len(rows) > EXACT_ROWS,
            )[0]  # fmt: skip
        found |= told_of(task, lines, rows, held_out, samples.owner)
        if stopped is not None:
            return FitResult(found, None if self.on_interrupt == "return" else stopped)
        result = found["result_"]
        said = "" if result.status.success else result.message
        if n_missing := len(splits) - len(np.unique(fold[fold >= 0])):
            rest = "{n} of {of} folds were not reached: raise {max_time}"
            rest = Message(rest, n=n_missing, of=len(splits))
            said = Message("{said}; {rest}", said=said, rest=rest) if said else rest
        level = 6 if is_classifier(self) else 4
        if said:
            warnings.warn(said, ConvergenceWarning, stacklevel=level)
        for doubt in doubt_new_rows(task, lines, "the score is", _IN_ORDER):
            warnings.warn(doubt, stacklevel=level)
        return FitResult(found)

    def _on_all_rows(self, samples: Samples) -> tuple[dict[str, Any], FloatArray, Closed]:
        """Learn the weights on all rows.

        Returns what is found, the kernels' matrices, and what leaves rows out.
        """
        n, mass = samples.X.shape[0], _mass_of(samples)
        hint = "raise {memory_limit} or give fewer samples"
        require(5 * 8 * n * n, f"factors of the Gram matrix of {n} samples", alternative=hint)
        formula, target = self.formula(samples), _standardised(samples)
        centre, spread, parts = (
            target.centre, target.spread, (formula.family, formula.learner, formula.set)
        )  # fmt: skip
        X = samples.scaled(formula.scaling).X
        problem = Problem(*parts, X, target.values, samples.weight)
        result, descent = self._search(problem, verbose=self.verbose)
        found = attributes_of(samples, formula, problem, result)
        size = float(mass.sum()) * len(spread)
        several, rule = len(spread) > 1, found["_predictor"]
        # in the units of the targets
        found |= {
            "descent_": np.array(descent),
            "log_evidence_": float(-descent[-1] - 0.5 * size * np.log(2.0 * np.pi)),
            "n_iter_": len(descent) - 1,
            "dual_coef_": found["dual_coef_"] * (spread[:, None] if several else spread[0]),
            "intercept_": centre if several else float(centre[0]),
            "_predictor": replace(rule, coef=rule.coef * spread[:, None], offset=centre),
            "_training": (samples.X, 1.0 / mass, spread),
        }
        stored = problem.family.stored
        S = np.array(stored.gram(X, result.parameters[:-1]), dtype=np.float64)
        S[np.diag_indices_from(S)] += found["noise_"] / mass
        inverse = cho_solve((cholesky(S, lower=True), True), np.eye(n), check_finite=False)
        return found, stored.grams, Closed(inverse, target, mass)

    @property
    def _search(self) -> Any:
        quick = self.algorithm == "lbfgs"
        return partial(learn_weights, quick=quick, tol=self.tol, max_iter=self.max_iter)

    def _predict_held_out(
        self, grams: FloatArray, samples: Samples, rows: Any, others: Any
    ) -> FloatArray:
        """Learn the weights on some rows; return predictions of others, shape (n_others, T)."""
        weight = None if samples.weight is None else samples.weight[rows]
        own = replace(samples, X=rows, targets=samples.targets[:, rows], weight=weight)
        target = _standardised(own)
        inner = PrecomputedDictionary(np.stack([K[np.ix_(rows, rows)] for K in grams]))
        family, places = NoisyFamily(inner, 1.0 / _mass_of(own)), rows.astype(np.float64)[:, None]
        parts = family, Ridge(C=1.0 / FLOOR), PricedOrthant()
        result, _ = self._search(Problem(*parts, places, target.values, weight))
        K = np.zeros((len(others), len(rows)))
        for w, each in zip(result.parameters[:-1], grams, strict=True):
            if w > 0.0:
                K += w * each[np.ix_(others, rows)]
        return target.restore(K @ result.solution.dual_coef.T)

    def _splits(self, task: Task, division: Division, rows: Rows, samples: Samples) -> list[Split]:
        """Return the folds of merged samples, as the user says or at random."""
        state, n_folds = check_random_state(self.random_state), n_folds_of(self)
        if division.is_given:
            given = division.splits(n_folds, task.codes(division.y), state)
            return hold_out(rows, samples.owner, given)
        if samples.grams is not None:
            # as words: without columns, their matrices alone tell which are copies
            rows = replace(rows, codes=samples.places[:, None].astype(np.int64))
        return task.splits(rows, n_folds, state) if len(rows) > 1 else []


def _columns(X: Any) -> tuple[Sequence[Dimension], Encoded]:
    """Return the columns of a table that could name groups or an order, none where none varies."""
    n, encoder = _num_samples(X), ColumnEncoder()
    with warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("ignore", KernelWeaveWarning)
        cells = encoder.fit_transform(X)
        return encoder.dimensions_, cells
    return [], Encoded(np.empty((n, 0)), np.empty((n, 0), dtype=np.int64))


def _merged(data: _Table) -> tuple[Samples, Rows, Index]:
    """Return the distinct samples, as rows of the table too, and where each stands first in it.

    Equal samples that are held out apart are not one; those equal up to rounding are.
    """
    n_tasks, keys = len(data.targets), data.division.keys.T
    like = data.X[_first_copies(data)]
    both = replace(data, X=like, targets=np.vstack([data.targets, keys])).merged
    kept = np.flatnonzero(both.owner >= 0)
    first = kept[np.unique(both.owner[kept], return_index=True)[1]]
    weight = normalise_weights(both.weight)
    samples = replace(both, targets=both.targets[:n_tasks], weight=weight)
    groups = None if data.division.groups is None else data.division.groups[first]
    cells = data.cells.numeric[first], data.cells.codes[first]
    return samples, Rows(*cells, samples.targets, weight, groups=groups), first


def _first_copies(data: Data) -> Index:
    """Return the place of the first sample that is equal up to rounding, shape (n_samples,)."""
    n = data.X.shape[0]
    if data.grams is None:
        if is_sparse(data.X):
            return np.arange(n)
        groups = copy_groups(np.asarray(data.X), np.empty((n, 0), dtype=np.int64))
        return np.asarray(np.unique(groups, return_index=True)[1][groups])
    near = np.ones((n, n), dtype=np.bool_)
    for K in data.grams.grams:
        # squared distances under each kernel, and their rounding errors
        size = np.add.outer(K.diagonal(), K.diagonal())
        apart = size - 2.0 * K
        near &= apart <= ROUNDING**2 * np.median(apart) + 8.0 * np.finfo(K.dtype).eps * size
        if np.count_nonzero(near) <= n:
            return np.arange(n)
    return np.asarray(near.argmax(axis=1))


def _mass_of(samples: Samples) -> FloatArray:
    return np.ones(samples.X.shape[0]) if samples.weight is None else samples.weight


def _standardised(samples: Samples) -> Standardised:
    """Return targets in units of their own spread; predictions are not cut to their range."""
    first, mass = samples.targets[:, :1], _mass_of(samples)
    # the mean of equal numbers is that number
    centre = first[:, 0] + (samples.targets - first) @ (mass / mass.sum())
    rest = samples.targets - centre[:, None]
    spread, endless = spread_of(rest, mass), np.full(len(rest), np.inf)
    return Standardised(rest / spread[:, None], centre, spread, -endless, endless)


def _deviation(
    kernel: Kernel, X: Points, noise: float, rows: Points, share: FloatArray, spread: FloatArray
) -> FloatArray:
    """Return the posterior deviation of a new observation, noise included, (n_new, T).

    `noise`: in units of the targets' variance; `share` of shape (n,): what rows have of it.
    """
    n, hint = rows.shape[0], "raise {memory_limit} or predict without return_std"
    require(2 * 8 * n * n, f"a factor of the Gram matrix of {n} samples", alternative=hint)
    S = np.array(kernel(rows), dtype=np.float64)
    S[np.diag_indices_from(S)] += noise * share
    factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    variance = np.array(kernel.diag(X), dtype=np.float64)
    for block in row_slices(X.shape[0], _BLOCK):
        half = solve_triangular(factor, kernel(X[block], rows).T, lower=True, check_finite=False)
        variance[block] -= np.einsum("ij,ij->j", half, half)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) + noise)[:, None] * spread)


class EvidenceMKLRegressor(EvidenceWeights, KernelRegressor):
    """Regression with kernels weighted by the evidence: no C, no budget, nothing to tune.

    ``min over w ≥ 0 and σ² of ½yᵀS⁻¹y + ½ log det S, S = Σ wⱼKⱼ + σ²I``: the marginal likelihood
    of a Gaussian process on centred and scaled targets. Several outputs share the weights. It
    takes strings, graphs and views as Gram matrices, ``kernels="precomputed"``.

    Notes
    -----
    The evidence is not convex in w. log det lies below its tangent, so each step is a convex
    problem, ridge kernel learning under the weighted trace ½ Σ wⱼ tr(S₀⁻¹Kⱼ), solved with proved
    bounds; the evidence never falls. ``certificate_`` holds the bounds of the convex problem that
    touches the evidence at the weights: where they meet, the weights are stationary, kernels of
    weight 0 included. That no other weights have more evidence is not proved. Folds learn the
    weights anew for the held-out score; what kernels learn from X alone, such as their traces,
    they learn from all rows. A sample weight divides the variance of a sample's noise: 2 is the
    sample twice, and a common factor says nothing.

    References
    ----------
    Wipf and Nagarajan, "A new view of automatic relevance determination", NIPS 2007; Zhou, Hu,
    Zhou and Lange, "MM algorithms for variance components models", JCGS 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave.evidence import EvidenceMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMKLRegressor().fit(X[:150], y[:150])
    >>> bool(model.certificate_.gap <= 1e-3), bool(model.held_out_score_ > 0.3)
    (True, True)
    """

    _multi_output: ClassVar[bool] = True

    def predict(self, X: Table, return_std: bool = False) -> Any:
        """Return predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points to predict.
        return_std : bool, default=False
            Also return the standard deviation of a new observation, its noise included. Gram
            matrices do not hold k(x, x) of new points: kernels are needed.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets.
        std : ndarray of the same shape
            If asked for.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        if is_precomputed(self):
            raise ValueError(
                "return_std needs k(x, x) of new points, which precomputed Gram matrices do not "
                "hold: give kernels instead"
            )
        with config_context(memory_limit=self.memory_limit):
            width = _deviation(self.kernel_, self._points(X), self.noise_, *self._training)
        return mean, width[:, 0] if self._is_flat else width


class EvidenceMKLClassifier(EvidenceWeights, CalibratedClasses, KernelClassifier):
    """Classification with kernels weighted by the evidence: no C, no budget, nothing to tune.

    The weights of `EvidenceMKLRegressor` on ±1 targets; classes share them, one output a class.
    Held-out rows calibrate the probabilities. What is proved and what is not is the same.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave.evidence import EvidenceMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EvidenceMKLClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9), model.predict_proba(X[:2]).shape
    (True, (2, 3))
    """

    # classes share the weights: their evidence is summed
    multiclass: ClassVar[str] = "shared"  # type: ignore[misc]
    # the folds of the fit give probabilities without being asked
    probability: ClassVar[bool] = False  # type: ignore[misc]
    calibration_: ClassVar[None] = None  # type: ignore[misc]
