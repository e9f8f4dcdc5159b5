"""Algorithm 1 for the driver: several starts, one pool of cuts, a proven lower bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import KernelWeaveWarning, NotPSDError
from kernelweave.kernels_core.formula import Solution
from kernelweave.kernels_core.grams import fit_family, stack_of
from kernelweave.kernels_core.grams.psd import REMEDY, Spectrum, describe, find_indefinite
from kernelweave.kernels_core.result import Status
from kernelweave.qp_smo.saddle import KSupport, SaddleOracle, SaddleSearch, solve_cut_master

from .best_response import BestResponseRun, Ending, largest_kept, start_from, starting_weights
from .settings import BestResponse

# the relative gap of the relaxation that a run starts from, and its rounds at most
_RELAXED = 1e-4
ROUNDS = 200


def oracle_of(problem: Problem, *, allow_indefinite: bool = False) -> tuple[SaddleOracle, bool]:
    """Return the saddle function of a dictionary problem, and whether bounds hold for it.

    `problem`: a dictionary, a learner and a `SparseSimplex`; `allow_indefinite`: whether indefinite
    kernels are used, with a warning, where the dictionary's policy let them through; only Algorithm
    1 can, and only to reproduce published numbers.
    """
    problem.constraint.validate()
    fitted = fit_family(problem.family, problem.X)
    indefinite = _indefinite_kernels(fitted)
    if indefinite:
        clauses = "; ".join(describe(name, spectrum) for name, spectrum in indefinite.items())
        if not (allow_indefinite and hasattr(fitted, "kernels")):
            raise NotPSDError(f"{clauses}: {REMEDY}")
        warnings.warn(
            f"{clauses}: used as they are (psd='keep'), so that the objective is that of a "
            "stationary point and no bound is claimed",
            KernelWeaveWarning,
            stacklevel=2,
        )
    weight = problem.sample_weight
    oracle = SaddleOracle(
        stack_of(fitted),
        np.asarray(problem.targets, dtype=np.float64),
        problem.learner,
        None if weight is None else np.asarray(weight, dtype=np.float64),
    )
    return oracle, not indefinite


def _indefinite_kernels(fitted: Any) -> dict[str, Spectrum]:
    """Return the indefinite kernels of a fitted dictionary with the ends of their spectra.

    No bound holds with one of them. Kernels that are proved positive semidefinite are taken as they
    are; of the others the Gram matrix is tested: n³/3 flops, and an eigendecomposition where that
    fails.

    `fitted`: with ``grams`` of shape (q, n, n), ``names``, and ``kernels`` where they are known; or
    with ``factors``, which no indefinite kernel has.
    """
    if hasattr(fitted, "factors"):
        return {}
    kernels = getattr(fitted, "kernels", None)
    spectra = {}
    for j, K in enumerate(fitted.grams):
        if kernels is not None and kernels[j].is_psd is True:
            continue
        spectrum = find_indefinite(np.asarray(K))
        if spectrum is not None:
            spectra[fitted.names[j]] = spectrum
    return spectra


class BestResponseSearch:
    """Alternating best response on ``min over sparse β of F(β)``.

    It promises a mutual best response, not the optimum. Every learner solve also gives a cut, and
    the k-support relaxation over all cuts is a proven lower bound, but with indefinite kernels.

    - `relaxation`: the search whose weights the first run starts from, while it goes on
    - `scout`: sparse weights to return before that, evaluated once
    - `runs`: all runs so far, the present one last
    """

    settings: BestResponse = BestResponse()

    def __init__(
        self,
        problem: Problem,
        random_state: np.random.RandomState,
        settings: BestResponse = settings,
    ) -> None:
        """Draw the starts and evaluate the first.

        `problem`: a dictionary, a learner and a `SparseSimplex`.
        """
        if getattr(problem.constraint, "n_views", None) is not None:
            raise ValueError(
                f"smkl-best-response knows no views, got n_views={problem.constraint.n_views}: "
                "use smkl-global"
            )
        self.settings = settings
        self.oracle, self._has_bounds = oracle_of(problem, allow_indefinite=True)
        q = len(self.oracle.grams)
        lam, k0 = float(problem.constraint.lam), min(problem.constraint.k0, q)
        self._starts = starting_weights(
            self.oracle,
            settings.init,
            lam=lam,
            k0=k0,
            n_init=settings.n_init,
            warm=settings.warm,
            random_state=random_state,
        )
        self._options: dict[str, Any] = {
            "penalty": KSupport(lam).on(q),
            "lam": lam,
            "k0": k0,
            "tol": settings.epsilon,
            "patience": settings.patience,
            "cap": settings.cap,
        }
        self._relaxed = KSupport(lam, k0).on(q)
        self.runs: list[BestResponseRun] = []
        self.relaxation: SaddleSearch | None = None
        self.scout: BestResponseRun | None = None
        self._n_bounded = 0
        self.lower = -math.inf
        if isinstance(settings.init, str) and settings.init == "saddle":
            self.relaxation = SaddleSearch(self.oracle, self._relaxed, _RELAXED)
            self._relax(self.relaxation)
        else:
            self._begin()
        self._bound()

    def step(self) -> None:
        """Take one step of the relaxation or of the present run, or begin the next one."""
        if self.relaxation is not None:
            self._relax(self.relaxation)
        else:
            run = self.runs[-1]
            if run.ending is Ending.RUNNING and len(run.objectives) > self.settings.run_limit:
                run.ending = Ending.MAX_ITER
            if run.ending is Ending.RUNNING:
                run.step()
            elif self._starts:
                self._begin()
        self._bound()

    def _run_from(self, weights: FloatArray) -> BestResponseRun:
        run = BestResponseRun(oracle=self.oracle, weights=weights, **self._options)
        run.evaluate()
        return run

    def _relax(self, search: SaddleSearch) -> None:
        """Take a round of the relaxation; begin the first run where it has ended."""
        outcome = search.advance()
        if self.scout is None:
            self.scout = self._run_from(largest_kept(search.parameters, self._options["k0"]))
        if outcome is not None or search.n_visits == ROUNDS:
            k0, warm = self._options["k0"], self.settings.warm
            self._starts.insert(0, start_from(search.parameters, k0, warm))
            self.relaxation = None
            self._begin()

    def _begin(self) -> None:
        """Begin the next run and go on to its first sparse weights."""
        run = self._run_from(self._starts.pop(0))
        self.runs.append(run)
        if run.best is None:
            run.step()

    def _bound(self) -> None:
        """Raise the lower bound to the relaxation over all cuts so far."""
        pool, search = self.oracle.pool, self.relaxation
        if self._has_bounds and search is not None:
            self.lower = max(self.lower, search.lower)
        elif self._has_bounds and len(pool) > self._n_bounded:
            self.lower = max(self.lower, solve_cut_master(pool, self._relaxed).lower_bound)
            self._n_bounded = len(pool)

    @property
    def best_run(self) -> BestResponseRun:
        """Return the run with the best weights."""
        scouts = [] if self.scout is None else [self.scout]
        return min([*self.runs, *scouts], key=lambda run: run.upper)

    @property
    def upper(self) -> float:
        """Return the best objective."""
        return self.best_run.upper

    @property
    def parameters(self) -> FloatArray:
        """Return the best weights, shape (q,)."""
        best = self.best_run.best
        assert best is not None
        return best.weights

    @property
    def solution(self) -> Solution:
        """Return the learner's solution at the best weights."""
        best = self.best_run.best
        assert best is not None
        return best.solution

    @property
    def counts(self) -> Mapping[str, int]:
        """Return learner solves, runs, and the period of the cycle that ended the best run."""
        return {
            "n_svm_solves": self.oracle.counts.n_svm_solves,
            "n_runs": len(self.runs),
            "cycle_period": self.best_run.period,
        }

    @property
    def outcome(self) -> Status | None:
        """Return a status once the last run has ended."""
        if self.relaxation is not None or self.runs[-1].ending is Ending.RUNNING or self._starts:
            return None
        best = min(self.runs, key=lambda run: run.upper)
        at_limit = best.ending is Ending.MAX_ITER
        return Status.MAX_ITER if at_limit else Status.STATIONARY
