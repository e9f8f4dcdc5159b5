"""Algorithm 1 for the driver: several starts, one pool of cuts, a proven lower bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kernelweave.kernels_core import Problem
from kernelweave.kernels_core.arrays import FloatArray
from kernelweave.kernels_core.exceptions import KernelWeaveWarning, NotPSDError
from kernelweave.kernels_core.grams import fit_family, stack_of
from kernelweave.kernels_core.grams.psd import REMEDY, describe
from kernelweave.kernels_core.result import Status
from kernelweave.qp_smo.saddle import (
    KSupport,
    RidgePenalty,
    SaddleOracle,
    SaddleSearch,
    WeightPenalty,
    solve_cut_master,
)

from .best_response import BestResponseRun, Ending
from .definiteness import indefinite_kernels
from .settings import BestResponse
from .starts import largest_kept, start_from, starting_weights

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
    found = indefinite_kernels(fitted)
    if found:
        clauses = "; ".join(describe(name, spectrum) for name, spectrum in found.items())
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
    return oracle, not found


@dataclass
class BestResponseState:
    """Where the runs are.

    - `starts` of shape (q,): still to run
    - `run`: the run in progress
    - `runs`: all runs so far, the present one last
    - `has_bounds`: False with indefinite kernels
    - `relaxation`: the search whose weights the first run starts from, while it goes on
    - `scout`: sparse weights to return before that, evaluated once
    - `n_rounds`: of that search
    """

    oracle: SaddleOracle
    relaxed: WeightPenalty
    options: dict[str, Any]
    settings: BestResponse
    starts: list[FloatArray]
    has_bounds: bool = True
    runs: list[BestResponseRun] = field(default_factory=list)
    lower: float = -math.inf
    n_bounded: int = 0
    relaxation: SaddleSearch | None = None
    scout: BestResponseRun | None = None
    n_rounds: int = 0

    @property
    def run(self) -> BestResponseRun:
        """Return the run in progress."""
        return self.runs[-1]

    @property
    def champion(self) -> BestResponseRun:
        """Return the run with the best weights."""
        scouts = [] if self.scout is None else [self.scout]
        return min([*self.runs, *scouts], key=lambda run: run.upper)

    def relax(self) -> None:
        """Take a round of the relaxation; begin the first run where it has ended."""
        search = self.relaxation
        assert search is not None
        outcome = search.advance()
        assert search.best is not None
        self.n_rounds += 1
        if self.scout is None:
            weights = largest_kept(search.best.weights, self.options["k0"])
            self.scout = BestResponseRun(oracle=self.oracle, weights=weights, **self.options)
            self.scout.evaluate()
        if outcome is not None or self.n_rounds == ROUNDS:
            k0, warm = self.options["k0"], self.settings.warm
            self.starts.insert(0, start_from(search.best.weights, k0, warm))
            self.relaxation = None
            self.begin()

    def begin(self) -> None:
        """Begin the next run and go on to its first sparse weights."""
        run = BestResponseRun(oracle=self.oracle, weights=self.starts.pop(0), **self.options)
        self.runs.append(run)
        run.evaluate()
        if run.best is None:
            run.step()


class BestResponseSearch:
    """Alternating best response on ``min over sparse β of F(β)``.

    It promises a mutual best response, not the optimum. Every learner solve also gives a cut, and
    the k-support relaxation over all cuts is a proven lower bound.
    """

    settings: BestResponse = BestResponse()

    def init(self, problem: Problem, random_state: np.random.RandomState) -> BestResponseState:
        """Draw the starts and evaluate the first.

        `problem`: a dictionary, a learner and a `SparseSimplex`.
        """
        asked = self.settings
        if getattr(problem.constraint, "n_views", None) is not None:
            raise ValueError(
                f"smkl-best-response knows no views, got n_views={problem.constraint.n_views}: "
                "use smkl-global"
            )
        oracle, has_bounds = oracle_of(problem, allow_indefinite=True)
        q = len(oracle.grams)
        lam, k0 = float(problem.constraint.lam), min(problem.constraint.k0, q)
        starts = starting_weights(
            oracle,
            asked.init,
            lam=lam,
            k0=k0,
            n_init=asked.n_init,
            warm=asked.warm,
            random_state=random_state,
        )
        options = {
            "penalty": RidgePenalty(lam).on(q),
            "lam": lam,
            "k0": k0,
            "tol": asked.epsilon,
            "patience": asked.patience,
            "cap": asked.cap,
        }
        relaxed = KSupport(lam, k0).on(q)
        state = BestResponseState(oracle, relaxed, options, asked, starts, has_bounds)
        if isinstance(asked.init, str) and asked.init == "saddle":
            state.relaxation = SaddleSearch(oracle, relaxed, _RELAXED)
            state.relax()
        else:
            state.begin()
        return state

    def step(self, state: BestResponseState) -> BestResponseState:
        """Take one step of the relaxation or of the present run, or begin the next one."""
        if state.relaxation is not None:
            state.relax()
            return state
        limit = state.settings.run_limit
        if state.run.ending is Ending.RUNNING and len(state.run.objectives) > limit:
            state.run.ending = Ending.MAX_ITER
        if state.run.ending is Ending.RUNNING:
            state.run.step()
        elif state.starts:
            state.begin()
        return state

    def gap(self, state: BestResponseState) -> tuple[float, float]:
        """Return the relaxation over all cuts so far, and the best objective."""
        pool, search = state.oracle.pool, state.relaxation
        if state.has_bounds and search is not None:
            state.lower = max(state.lower, search.lower)
        elif state.has_bounds and len(pool) > state.n_bounded:
            state.lower = max(state.lower, solve_cut_master(pool, state.relaxed).lower_bound)
            state.n_bounded = len(pool)
        upper = state.champion.upper
        return min(state.lower, upper), upper

    def best(self, state: BestResponseState) -> FloatArray:
        """Return the best weights, shape (q,)."""
        best = state.champion.best
        assert best is not None
        return best.weights

    def solution(self, state: BestResponseState) -> Any:
        """Return the learner's solution at the best weights."""
        best = state.champion.best
        assert best is not None
        return best.solution

    def counts(self, state: BestResponseState) -> Mapping[str, int]:
        """Return learner solves, runs, and the period of the cycle that ended the best run."""
        return {
            "n_svm_solves": state.oracle.counts.n_svm_solves,
            "n_runs": len(state.runs),
            "cycle_period": state.champion.period,
        }

    def outcome(self, state: BestResponseState) -> Status | None:
        """Return a status once the last run has ended."""
        if state.relaxation is not None or state.run.ending is Ending.RUNNING or state.starts:
            return None
        best = min(state.runs, key=lambda run: run.upper)
        at_limit = best.ending is Ending.MAX_ITER
        return Status.MAX_ITER if at_limit else Status.STATIONARY
