"""EvidenceMKLRegressor and EvidenceMKLClassifier."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from kernelweave.kernels_core import (
    KernelDictionary,
    Problem,
    SolveInterrupted,
    Status,
    clock,
    config_context,
    interrupts,
)
from kernelweave.kernels_core.arrays import FloatArray, Index, Points, RandomState, row_slices
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
from scipy.linalg import cholesky, solve_triangular
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..classes import class_codes, crossed_logits, judge_classes, random_folds
from ..kernel import default_kernels
from ..probabilities import CalibratedClasses
from ..rows import Rows, Split, normalise_weights, spread_of, to_original_rows
from ..scores import judge_numbers
from ..tasks import Classification, Regression, score_of
from .learn import FLOOR, NoisyFamily, learn_weights
from .step import PricedOrthant

_PROOFS = (
    "a feasible dual point of the convex problem that touches the negative log evidence at these "
    "weights from above",
    "its value at these weights; equal bounds prove a stationary point of the evidence, not its "
    "global maximum",
)
# New rows whose kernel values with all training rows are held at a time.
_BLOCK = 2048


class EvidenceWeights(WeightedKernels):
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
    held_out_score_: float = fitted(
        "float", "Cross-validated score; each fold learns its own weights."
    )
    held_out_error_: float = fitted("float", "Its standard error.")
    held_out_prediction_: FloatArray = fitted("ndarray", "Cross-validated predictions.")

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

    def _learn(self, data: Data) -> FitResult:
        """Learn the weights on all rows and in folds, while there is time."""
        n, (merged, groups) = data.X.shape[0], _merged(data)
        if n < 2:
            raise ValueError("1 sample is too few to weight kernels: at least 2 are needed")
        samples = replace(merged, weight=normalise_weights(merged.weight))
        found: dict[str, Any] = {}
        stopped: SolveInterrupted | None = None
        held_out = np.full(samples.targets.T.shape, np.nan)
        splits = self._splits(samples.targets, groups)
        n_missing = len(splits)
        with config_context(memory_limit=self.memory_limit), clock.time_limit(self.max_time):
            try:
                with interrupts.defer_interrupt(), blas_threads(samples.X.shape[0]):
                    found, grams = self._on_all_rows(samples)
                    if found["result_"].status is Status.INTERRUPTED:
                        raise KeyboardInterrupt
                    for rows, others in splits:
                        if clock.expired():
                            break
                        held_out[others] = self._predict_held_out(grams, samples, rows, others)
                        n_missing -= 1
            except KeyboardInterrupt as stop:
                if not found:
                    raise
                found["result_"] = replace(found["result_"], status=Status.INTERRUPTED)
                stopped = SolveInterrupted(found["result_"])
                stopped.__cause__ = stop
        found |= self._judged(samples, held_out) | self._judged_by_groups(samples, held_out, groups)
        if stopped is not None:
            return FitResult(found, None if self.on_interrupt == "return" else stopped)
        result = found["result_"]
        said = "" if result.status.success else result.message
        if n_missing:
            rest = "{n} of {of} folds were not reached: raise {max_time}"
            rest = Message(rest, n=n_missing, of=len(splits))
            said = Message("{said}; {rest}", said=said, rest=rest) if said else rest
        if said:
            warnings.warn(said, ConvergenceWarning, stacklevel=4)
        return FitResult(found)

    def _on_all_rows(self, samples: Samples) -> tuple[dict[str, Any], FloatArray]:
        """Learn the weights on all rows; return what is found, and the kernels' matrices."""
        n, mass = samples.X.shape[0], _mass_of(samples)
        hint = "raise {memory_limit} or give fewer samples"
        require(5 * 8 * n * n, f"factors of the Gram matrix of {n} samples", alternative=hint)
        formula, (values, centre, spread) = self.formula(samples), _standardised(samples)
        parts = formula.family, formula.learner, formula.set
        problem = Problem(*parts, samples.scaled(formula.scaling).X, values, samples.weight)
        result, descent = self._search(problem, verbose=self.verbose)
        found = attributes_of(samples, formula, problem, result)
        size = float(mass.sum()) * len(values)
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
        return found, problem.family.stored.grams

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
        values, centre, spread = _standardised(own)
        inner = PrecomputedDictionary(np.stack([K[np.ix_(rows, rows)] for K in grams]))
        family, places = NoisyFamily(inner, 1.0 / _mass_of(own)), rows.astype(np.float64)[:, None]
        parts = family, Ridge(C=1.0 / FLOOR), PricedOrthant()
        result, _ = self._search(Problem(*parts, places, values, weight))
        K = np.zeros((len(others), len(rows)))
        for w, each in zip(result.parameters[:-1], grams, strict=True):
            if w > 0.0:
                K += w * each[np.ix_(others, rows)]
        return np.asarray(K @ result.solution.dual_coef.T * spread + centre)

    def _splits(self, targets: FloatArray, groups: Index | None) -> list[Split]:
        """Return the folds of merged samples, which hold out whole groups if there are any."""
        n, codes = targets.shape[1], class_codes(targets) if is_classifier(self) else None
        n_groups = n if groups is None else len(np.unique(groups))
        if groups is not None and n_groups < 2:
            raise ValueError("groups are one and the same in every row: at least 2 are needed")
        state, n_folds = check_random_state(self.random_state), min(int(self.n_folds), n_groups)
        return random_folds(n, n_folds, state, codes, groups) if n > 1 else []

    def _judged_by_groups(
        self, samples: Samples, held_out: FloatArray, groups: Index | None
    ) -> dict[str, Any]:
        """Return the held-out score with its standard error over groups, where there are any."""
        seen = np.flatnonzero(~np.isnan(held_out[:, 0]))
        if groups is None or not len(seen):
            return {}
        nothing = np.empty((len(groups), 0))
        rows = Rows(nothing, nothing.astype(np.int64), samples.targets, samples.weight)
        task = Classification() if is_classifier(self) else Regression()
        answers = task.crossed(rows, held_out)[seen]
        score, error = score_of(task, rows.take(seen), answers, groups[seen])
        return {"held_out_score_": score, "held_out_error_": error}

    @abstractmethod
    def _judged(self, samples: Samples, held_out: FloatArray) -> dict[str, Any]:
        """Return the held-out score and what else the held-out predictions say."""


def _merged(data: Data) -> tuple[Samples, Index | None]:
    """Return the distinct samples, and their groups: equal rows of two groups are two samples."""
    if data.groups is None:
        return data.merged, None
    both = replace(data, targets=np.vstack([data.targets, data.groups])).merged
    return replace(both, targets=both.targets[:-1]), both.targets[-1].astype(np.intp)


def _mass_of(samples: Samples) -> FloatArray:
    return np.ones(samples.X.shape[0]) if samples.weight is None else samples.weight


def _standardised(samples: Samples) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return targets, (T, n), in units of their own spread, their centres and their spreads."""
    first, mass = samples.targets[:, :1], _mass_of(samples)
    # the mean of equal numbers is that number
    centre = first[:, 0] + (samples.targets - first) @ (mass / mass.sum())
    rest = samples.targets - centre[:, None]
    spread = spread_of(rest, mass)
    return rest / spread[:, None], centre, spread


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

    def _judged(self, samples: Samples, held_out: FloatArray) -> dict[str, Any]:
        score, error = judge_numbers(held_out, samples.targets, _mass_of(samples))
        prediction = to_original_rows(held_out, samples.owner)
        prediction = prediction[:, 0] if self._is_flat else prediction
        return {
            "held_out_score_": score,
            "held_out_error_": error,
            "held_out_prediction_": prediction,
        }


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

    def _judged(self, samples: Samples, held_out: FloatArray) -> dict[str, Any]:
        calibration, score, error = judge_classes(held_out, samples.targets, _mass_of(samples))
        logits = crossed_logits(held_out, samples.targets, _mass_of(samples))
        found = {"_calibration": calibration, "held_out_score_": score, "held_out_error_": error}
        probabilities = to_original_rows(softmax(logits, axis=1), samples.owner)
        return found | {"held_out_prediction_": probabilities}
