"""What both estimators of kernel weights share: standardised targets, the search, the folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from kernelweave.kernels_core.arrays import FloatArray, RandomState
from kernelweave.kernels_core.checks import COUNT, integer, one_of
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators.kernel import Data
from kernelweave.kernels_core.estimators.samples import Samples
from kernelweave.kernels_core.estimators.weights import (
    KERNELS,
    WeightedKernels,
    fit_kernels,
    weight_attributes,
)
from kernelweave.kernels_core.fit import FitResult, Formula, attributes_of
from kernelweave.kernels_core.kernels import Kernel
from kernelweave.kernels_core.kernels.scaled import Scaling, mean_and_spread
from kernelweave.kernels_core.memory import require
from kernelweave.kernels_core.parameters import fitted, parameter
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..folds import Split
from ..rows import relative
from .default import default_kernels
from .learn import LearnedWeights, learn_weights
from .objective import FLOOR
from .posterior import KernelPosterior
from .problem import Standard, predict_held_out, weight_problem

_ALGORITHMS = ("lbfgs", "majorize")
_LOWER = (
    "a feasible dual point of the convex problem that touches the negative log evidence at these "
    "weights from above"
)
_UPPER = (
    "its value at these weights; equal bounds prove a stationary point of the evidence, not its "
    "global maximum"
)


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
        rule=one_of(*_ALGORITHMS),
    )
    n_folds: int = parameter(
        "Folds that learn the weights anew, for the held-out score.", default=3, rule=integer(2)
    )
    tol: float = 1e-3
    max_iter: int = parameter("Convex steps at most.", default=100, rule=COUNT)
    random_state: RandomState = parameter(
        "Draws the folds; the same number gives the same model.",
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
        "float", "Score of rows by weights and functions learned without their targets."
    )
    held_out_error_: float = fitted("float", "Its standard error.")
    held_out_prediction_: FloatArray = fitted("ndarray", "The predictions behind it.")

    def formula(self, samples: Samples) -> Formula:
        """Return the first of the convex problems whose solutions the evidence chooses."""
        scaling = None
        if self.kernels is None:
            scaling = Scaling(*mean_and_spread(np.asarray(samples.X), samples.weight))
        scaled = samples.scaled(scaling)
        if self.kernels is None:
            own = default_kernels(np.asarray(scaled.X), samples.weight)
            stored: Any = KernelDictionary(own, normalize=self.normalize).fit_grams(scaled.X)
        else:
            stored = fit_kernels(self, scaled)
        problem = weight_problem(stored, scaled.X, _standard_of(samples).values, samples.weight)
        return Formula(
            problem.family,
            problem.learner,
            problem.constraint,
            self.algorithm,
            scaling=scaling,
            proofs=(_LOWER, _UPPER),
            attributes=lambda _, result: {
                **weight_attributes(self, stored, result.parameters[:-1]),
                "noise_": FLOOR + float(result.parameters[-1]),
            },
        )

    def _learn(self, data: Data) -> FitResult:
        """Learn the weights on all rows and in folds, while there is time."""
        n = data.X.shape[0]
        if n < 2:
            raise ValueError("1 sample is too few to weight kernels: at least 2 are needed")
        merged = data.merged
        samples = replace(merged, weight=relative(merged.weight))
        found: dict[str, Any] = {}
        stopped: KeyboardInterrupt | None = None
        held_out, n_missing = np.full(samples.targets.T.shape, np.nan), self.n_folds
        with config_context(memory_limit=self.memory_limit), time_limit(self.max_time):
            try:
                with interrupts.kept(), blas_threads(samples.X.shape[0]):
                    found, grams = self._on_all_rows(samples)
                    if found["result_"].status is Status.INTERRUPTED:
                        raise KeyboardInterrupt
                    n_missing = self._hold_out(grams, samples, held_out)
            except KeyboardInterrupt as stop:
                if not found:
                    raise
                stopped = stop
        found |= self._judged(samples, held_out)
        return self._reported(found, n_missing, stopped)

    def _on_all_rows(self, samples: Samples) -> tuple[dict[str, Any], FloatArray]:
        """Learn the weights on all rows; return what is found, and the kernels' matrices."""
        n = samples.X.shape[0]
        hint = "raise memory_limit or give fewer samples"
        require(5 * 8 * n * n, f"factors of the Gram matrix of {n} samples", alternative=hint)
        formula, standard, mass = self.formula(samples), _standard_of(samples), mass_of(samples)
        parts = formula.family, formula.learner, formula.set
        X = samples.scaled(formula.scaling).X
        problem = Problem(*parts, X, standard.values, samples.weight)
        learned = self._search(problem, self.verbose)
        found = attributes_of(samples, formula, problem, learned.result)
        size = float(mass.sum()) * len(samples.targets)
        evidence = -learned.descent[-1] - 0.5 * size * np.log(2.0 * np.pi)
        several, noise = len(standard.spread) > 1, found["noise_"]
        unit = standard.spread[:, None]
        rule = found["_predictor"]
        # in the units of the targets
        found |= {
            "descent_": np.array(learned.descent),
            "log_evidence_": float(evidence),
            "n_iter_": len(learned.descent) - 1,
            "dual_coef_": found["dual_coef_"] * (unit if several else standard.spread[0]),
            "intercept_": standard.centre if several else float(standard.centre[0]),
            "_predictor": replace(rule, coef=rule.coef * unit, offset=standard.centre),
            "_posterior": KernelPosterior(samples.X, 1.0 / mass, noise, standard.spread),
        }
        return found, problem.family.stored.grams

    def _search(self, problem: Problem, verbose: int = 0) -> LearnedWeights:
        quick = self.algorithm == "lbfgs"
        return learn_weights(
            problem, quick=quick, tol=self.tol, max_iter=self.max_iter, verbose=verbose
        )

    def _hold_out(self, grams: FloatArray, samples: Samples, held_out: FloatArray) -> int:
        """Predict each row by a fold that learned without its targets, while there is time.

        `held_out` of shape (n, T): what is filled. Returns how many folds were not reached.
        """
        splits = self._splits(samples.targets, check_random_state(self.random_state))
        for done, (rows, others) in enumerate(splits):
            if clock.expired():
                return len(splits) - done
            held_out[others] = predict_held_out(grams, samples, rows, others, self._search)
        return 0

    def _splits(self, targets: FloatArray, state: np.random.RandomState) -> list[Split]:
        """Return the folds of merged samples."""
        raise NotImplementedError

    def _judged(self, samples: Samples, held_out: FloatArray) -> dict[str, Any]:
        """Return the held-out score and what else the held-out predictions say."""
        raise NotImplementedError

    def _reported(
        self, found: dict[str, Any], n_missing: int, stopped: KeyboardInterrupt | None
    ) -> FitResult:
        """Say what is missing, and pass a Ctrl-C on."""
        if stopped is not None:
            found["result_"] = replace(found["result_"], status=Status.INTERRUPTED)
            if self.on_interrupt == "return":
                return FitResult(found)
            raised = SolveInterrupted(found["result_"])
            raised.__cause__ = stopped
            return FitResult(found, raised)
        result = found["result_"]
        words = [] if result.status.success else [result.message]
        words += [f"{n_missing} folds were not reached"] if n_missing else []
        if words:
            warnings.warn("; ".join(words), ConvergenceWarning, stacklevel=4)
        return FitResult(found)


def mass_of(samples: Samples) -> FloatArray:
    """Return the weight of each merged sample."""
    return np.ones(samples.X.shape[0]) if samples.weight is None else samples.weight


def _standard_of(samples: Samples) -> Standard:
    return Standard.of(samples.targets, mass_of(samples))


def spread_to_given(samples: Samples, held_out: FloatArray) -> FloatArray:
    """Return the held-out predictions of the samples as given; NaN where the weight is zero."""
    out = np.full((len(samples.owner), held_out.shape[1]), np.nan)
    kept = samples.owner >= 0
    out[kept] = held_out[samples.owner[kept]]
    return out
