"""What both estimators of kernel weights share: standardised targets, the search, the folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from kernelweave.kernels_core import (
    Certificate,
    KernelDictionary,
    Problem,
    Result,
    SolveInterrupted,
    Status,
    clock,
    config_context,
    interrupts,
)
from kernelweave.kernels_core.arrays import FloatArray, Points, RandomState, RealArray
from kernelweave.kernels_core.checks import COUNT, integer, one_of
from kernelweave.kernels_core.clock import time_limit
from kernelweave.kernels_core.config import blas_threads
from kernelweave.kernels_core.estimators import DictionaryMachine
from kernelweave.kernels_core.estimators.dictionary import KERNELS
from kernelweave.kernels_core.estimators.samples import Samples, merge_samples
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
from .noisy import Stored
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


class EvidenceMachine(DictionaryMachine):
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

    def _learner(self) -> NoReturn:
        raise NotImplementedError  # the search makes its own problem

    _constraint = _learner

    def _algorithm(self, problem: Problem, samples: Samples) -> NoReturn:
        raise NotImplementedError

    def _scaling(self, samples: Samples) -> Scaling | None:
        if self.kernels is not None:
            return None
        return Scaling(*mean_and_spread(np.asarray(samples.X), samples.weight))

    def _fitted(self, samples: Samples) -> Stored:
        if self.kernels is not None:
            return super()._fitted(samples)
        kernels = default_kernels(np.asarray(samples.X), samples.weight)
        return KernelDictionary(kernels, normalize=self.normalize).fit_grams(samples.X)

    def _certify(self, problem: Problem, result: Result) -> Certificate:
        return Certificate(result.lower_bound, result.upper_bound, _LOWER, _UPPER)

    def _run(
        self, X: Points, targets: FloatArray, weight: FloatArray, grams: RealArray | None
    ) -> None:
        """Merge, scale, learn the weights on all rows and in folds, store."""
        samples = merge_samples(X, targets, weight)
        samples = replace(samples, weight=relative(samples.weight), grams=grams)
        learned, stopped = False, None
        with config_context(memory_limit=self.memory_limit), time_limit(self.max_time):
            try:
                with interrupts.kept(), blas_threads(samples.X.shape[0]):
                    stored = self._learn(samples)
                    learned = True
                    if self.result_.status is Status.INTERRUPTED:
                        raise KeyboardInterrupt
                    self._hold_out(stored.grams, samples)
            except KeyboardInterrupt as stop:
                if not learned:
                    raise
                stopped = stop
        self._judge(samples)
        self._report(stopped)

    def _learn(self, samples: Samples) -> Stored:
        """Learn the weights on all rows, keep the model, and return the kernels' matrices."""
        n = samples.X.shape[0]
        hint = "raise memory_limit or give fewer samples"
        require(5 * 8 * n * n, f"factors of the Gram matrix of {n} samples", alternative=hint)
        scaling = self._scaling(samples)
        scaled = samples if scaling is None else replace(samples, X=scaling(samples.X))
        stored = self._fitted(scaled)
        self.kernel_names_ = stored.names
        self._places = len(stored) + len(stored.dropped), stored.kept
        self._mass = np.ones(n) if samples.weight is None else samples.weight
        self._held_out: FloatArray = np.full(samples.targets.T.shape, np.nan)
        self._n_missing = self.n_folds
        standard = Standard.of(samples.targets, self._mass)
        problem = weight_problem(stored, scaled.X, standard.values, samples.weight)
        learned = self._search(problem, self.verbose)
        self.descent_ = np.array(learned.descent)
        size = float(self._mass.sum()) * len(samples.targets)
        self.log_evidence_ = float(-learned.descent[-1] - 0.5 * size * np.log(2.0 * np.pi))
        self._store(problem, learned.result, samples, scaling)
        self.n_iter_ = len(learned.descent) - 1
        self._restore_units(standard)
        self._posterior = KernelPosterior(samples.X, 1.0 / self._mass, self.noise_, standard.spread)
        return stored

    def _search(self, problem: Problem, verbose: int = 0) -> LearnedWeights:
        quick = self.algorithm == "lbfgs"
        return learn_weights(
            problem, quick=quick, tol=self.tol, max_iter=self.max_iter, verbose=verbose
        )

    def _keep(self, problem: Problem, result: Result) -> None:
        super()._keep(problem, replace(result, parameters=result.parameters[:-1]))
        self.noise_ = FLOOR + float(result.parameters[-1])

    def _restore_units(self, standard: Standard) -> None:
        """Give the dual coefficients and the intercept the units of the targets."""
        several = len(standard.spread) > 1
        self._coef = self._coef * standard.spread[:, None]
        self.dual_coef_ *= standard.spread[:, None] if several else standard.spread[0]
        self.intercept_ = standard.centre if several else float(standard.centre[0])

    def _hold_out(self, grams: RealArray, samples: Samples) -> None:
        """Predict each row by a fold that learned without its targets, while there is time."""
        state = check_random_state(self.random_state)
        splits = self._splits(samples.targets, state)
        self._n_missing = len(splits)
        for rows, others in splits:
            if clock.expired():
                return
            self._held_out[others] = predict_held_out(grams, samples, rows, others, self._search)
            self._n_missing -= 1

    def _splits(self, targets: FloatArray, state: np.random.RandomState) -> list[Split]:
        """Return the folds of merged samples."""
        raise NotImplementedError

    def _judge(self, samples: Samples) -> None:
        """Set the held-out score and what else the held-out predictions say."""
        raise NotImplementedError

    def _spread(self, samples: Samples) -> FloatArray:
        """Return the held-out predictions of the samples as given; NaN where the weight is zero."""
        out = np.full((len(samples.owner), self._held_out.shape[1]), np.nan)
        kept = samples.owner >= 0
        out[kept] = self._held_out[samples.owner[kept]]
        return out

    def _report(self, stopped: KeyboardInterrupt | None) -> None:
        """Say what is missing, and pass a Ctrl-C on."""
        del self._held_out, self._mass
        if stopped is not None:
            self.result_ = replace(self.result_, status=Status.INTERRUPTED)
            if self.on_interrupt == "raise":
                raise SolveInterrupted(self.result_) from stopped
            return
        words = [] if self.result_.status.success else [self.result_.message]
        words += [f"{self._n_missing} folds were not reached"] if self._n_missing else []
        if words:
            warnings.warn("; ".join(words), ConvergenceWarning, stacklevel=4)
