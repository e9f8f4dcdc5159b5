"""The outer loop on an algorithm whose optimum is known: halve the interval around 1."""

from __future__ import annotations

import itertools
import math
import types
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    AlgorithmSpec,
    ContradictoryBoundsError,
    Needs,
    Problem,
    SolveInterrupted,
    Status,
    UnsupportedProblemError,
    clock,
    solve,
    watch,
)
from kernelweave.kernels_core.clock import expired, seconds_left, time_limit
from kernelweave.kernels_core.exceptions import convergence_warning


@dataclass(frozen=True)
class Part:
    name: str

    @property
    def halves(self) -> bool:
        return self.name != "other"


class Halving:
    """Bounds 1 ± 2^-k after k steps; its value rises at step 3 to test that the best is kept."""

    def __init__(self, problem: Problem, random_state: Any) -> None:
        self.random = random_state
        self.k = 0

    def step(self) -> None:
        self.k += 1

    @property
    def lower(self) -> float:
        return 1.0 - 2.0**-self.k

    @property
    def upper(self) -> float:
        return 5.0 if self.k == 3 else 1.0 + 2.0**-self.k

    @property
    def parameters(self) -> int:
        return self.k

    @property
    def counts(self) -> dict[str, int]:
        return {"n_halvings": self.k}


class Small(Halving):
    """A constant prediction costs so much that every gap is negligible beside it."""

    scale = 1e12


class Resting(Halving):
    """It finds nothing better from step 2 on."""

    @property
    def outcome(self) -> Status | None:
        return Status.STATIONARY if self.k == 2 else None


class Boundless(Resting):
    """The same where no lower bound is known."""

    lower = -math.inf


class Crossing(Halving):
    """Its lower bound passes the upper one at step 3, where no single iterate shows it."""

    beyond = 1e-9

    @property
    def lower(self) -> float:
        return 1.25 * (1.0 + self.beyond) if self.k == 3 else super().lower

    @property
    def upper(self) -> float:
        return 5.0 if self.k > 2 else super().upper


class Rounding(Crossing):
    beyond = 1e-14


class Forgetting(Halving):
    """It counts how many of its arrays are alive while it steps."""

    def __init__(self, problem: Problem, random_state: Any) -> None:
        super().__init__(problem, random_state)
        self.arrays: weakref.WeakSet[Part] = weakref.WeakSet()
        self.step()

    def step(self) -> None:
        super().step()
        self.array = Part(f"array {self.k}")
        self.arrays.add(self.array)
        self.alive = len(self.arrays)

    @property
    def parameters(self) -> int:
        return self.alive

    @property
    def solution(self) -> Part:
        return self.array


class Stuck(Halving):
    remark = "it cannot go on"

    @property
    def outcome(self) -> Status | None:
        return Status.STALLED if self.k == 2 else None


def spec(cls: str = "Halving", max_samples: int | None = None) -> AlgorithmSpec:
    new = AlgorithmSpec(
        name="halving",
        target="builtins:object",
        needs=Needs(family=("halves",), learner=()),
        tasks=("regression",),
        summary="halves",
        max_samples=max_samples,
    )
    loaded = {"Halving": Halving, "Small": Small, "Stuck": Stuck}
    loaded |= {"Crossing": Crossing, "Rounding": Rounding}
    loaded |= {"Resting": Resting, "Boundless": Boundless, "Forgetting": Forgetting}
    object.__setattr__(new, "load", lambda: loaded[cls])
    return new


@pytest.fixture
def problem() -> Problem:
    return Problem(Part("f"), Part("l"), Part("c"), np.zeros((3, 1)), np.arange(3.0))


def test_stops_at_the_certified_gap(problem: Problem) -> None:
    result = solve(problem, spec(), tol=1e-3)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-3
    assert result.lower_bound <= 1.0 <= result.upper_bound
    assert result.value == result.upper_bound
    assert len(result.history) == result.n_iter + 1
    assert result.history.counts["n_halvings"] == list(range(result.n_iter + 1))


@pytest.mark.parametrize("tol", [0.0, 1e-3, 0.1])
def test_bounds_that_contradict_each_other_are_no_convergence(problem: Problem, tol: float) -> None:
    with pytest.raises(ContradictoryBoundsError) as caught:
        solve(problem, spec("Crossing"), tol=tol)
    words = str(caught.value)
    assert words.startswith("halving: the lower bound 1.25000000125")
    assert "upper bound 1.25," in words


def test_what_rounding_can_do_is_no_contradiction(problem: Problem) -> None:
    result = solve(problem, spec("Rounding"), tol=1e-3)
    assert result.status is Status.CONVERGED


def test_history_is_monotone_and_the_best_iterate_is_kept(problem: Problem) -> None:
    with pytest.warns(convergence_warning(), match="max_iter was reached"):
        result = solve(problem, spec(), tol=0.0, max_iter=3)
    assert result.parameters == 2
    assert result.upper_bound == 1.25
    assert (np.diff(result.history.upper) <= 0).all()
    assert result.history.value[-1] == 5.0
    assert "n_halvings" in result.history.counts
    assert len(result.history.gap) == len(result.history.seconds) == 4


def test_rest_with_an_open_gap_is_no_success(problem: Problem) -> None:
    with pytest.warns(convergence_warning(), match="is not proved.*relative gap 4.00e-01"):
        result = solve(problem, spec("Resting"), tol=1e-3)
    assert result.status is Status.STATIONARY
    assert not result.status.success
    assert result.falls_short
    closed = solve(problem, spec("Resting"), tol=0.5)
    assert closed.status is Status.CONVERGED


def test_rest_claims_nothing_where_no_lower_bound_is_known(problem: Problem) -> None:
    result = solve(problem, spec("Boundless"), tol=1e-3)  # warnings are errors
    assert result.status is Status.STATIONARY
    assert not result.status.success
    with pytest.warns(convergence_warning(), match="max_iter was reached"):
        solve(problem, spec("Boundless"), tol=1e-3, max_iter=1)


def test_max_time_is_kept(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count(0.0, 0.01)
    monkeypatch.setattr(clock, "time", types.SimpleNamespace(monotonic=lambda: next(looks)))
    with pytest.warns(convergence_warning(), match="max_time was reached"):
        result = solve(problem, spec(), tol=0.0, max_time=0.2)
    assert result.status is Status.MAX_TIME
    assert 1 <= result.n_iter <= 20


def test_a_negligible_gap_is_warned_of_for_what_is_not_proved(problem: Problem) -> None:
    with pytest.warns(convergence_warning(), match="which kernel is best, is not proved"):
        result = solve(problem, spec("Small"), tol=1e-3)
    assert result.status is Status.NEGLIGIBLE
    assert not result.status.success
    assert result.gap > 1e-3


def test_an_algorithm_can_say_that_it_is_stuck(problem: Problem) -> None:
    with pytest.warns(convergence_warning(), match="it cannot go on"):
        assert solve(problem, spec("Stuck"), tol=0.0).status is Status.STALLED


def test_interruption_hands_over_the_best_iterate(problem: Problem) -> None:
    def interrupt(progress: Any) -> None:
        if progress.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        solve(problem, spec(), tol=0.0, callback=interrupt)
    assert isinstance(caught.value, SolveInterrupted)
    assert caught.value.result.parameters == 2
    assert caught.value.result.status is Status.INTERRUPTED
    kept = solve(problem, spec(), tol=0.0, callback=interrupt, on_interrupt="return")
    assert kept.upper_bound == 1.25


def test_callbacks_and_watchers_see_progress_and_may_stop(problem: Problem) -> None:
    seen: list[int] = []
    with watch(lambda progress: seen.append(progress.n_iter)):
        result = solve(problem, spec(), tol=0.0, callback=lambda p: p.n_iter == 4)
    assert seen == [0, 1, 2, 3, 4]
    assert result.status is Status.STOPPED


def test_verbose_prints_a_line_per_iteration(
    problem: Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    solve(problem, spec(), tol=0.5, verbose=1)
    assert capsys.readouterr().out.count("[halving]") == 3


def test_a_problem_it_does_not_solve_is_refused_before_work(problem: Problem) -> None:
    other = Problem(Part("other"), Part("l"), Part("c"), problem.X, problem.y)
    with pytest.raises(
        UnsupportedProblemError,
        match="halving needs a family with halves, which 'other' does not have",
    ):
        solve(other, spec())


def test_more_samples_than_it_takes_are_refused_before_work(problem: Problem) -> None:
    assert solve(problem, spec(max_samples=3)).status is Status.CONVERGED
    with pytest.raises(UnsupportedProblemError, match="halving takes at most 2 samples, got 3"):
        solve(problem, spec(max_samples=2))
    with pytest.raises(ValueError, match="max_samples must be None or an integer >= 1, got 0"):
        spec(max_samples=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("tol", v) for v in (-1.0, np.nan, np.inf, "a")),
        *(("max_iter", v) for v in (-1, 1.5, True)),
        *(("max_time", v) for v in (0, -1.0, np.nan, "x")),
        ("on_interrupt", "ignore"),
        ("random_state", "seed"),
    ],
)
def test_senseless_limits_are_named(problem: Problem, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        solve(problem, spec(), **{name: value})


def test_seeds_are_the_only_randomness(problem: Problem) -> None:
    drawn = []

    class Drawing(Halving):
        def __init__(self, problem: Problem, random_state: Any) -> None:
            super().__init__(problem, random_state)
            drawn.append(random_state.rand())

    own = spec()
    object.__setattr__(own, "load", lambda: Drawing)
    for seed in (3, 3, np.random.RandomState(3)):
        solve(problem, own, tol=0.5, random_state=seed)
    assert drawn[0] == drawn[1] == drawn[2]


def test_nested_time_limits_only_shorten() -> None:
    assert seconds_left() == np.inf
    with time_limit(1.0), time_limit(100.0):
        assert seconds_left() <= 1.0
    with time_limit(0.0), time_limit(None):
        assert seconds_left() == 0.0
        assert expired()
    assert seconds_left() == np.inf
    assert not expired()
    for senseless in (-1.0, np.nan):
        with pytest.raises(ValueError, match="max_time"), time_limit(senseless):
            pass


def test_only_the_best_iterate_and_the_present_one_are_kept(problem: Problem) -> None:
    result = solve(problem, spec("Forgetting"), tol=1e-3)
    assert result.n_iter > 3
    assert result.parameters == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros(3)}, "X must have shape"),
        ({"y": np.zeros(4)}, "4 samples, X has 3"),
        ({"X": np.full((3, 1), np.nan)}, "X must be finite"),
        ({"y": np.array([0.0, np.inf, 1.0])}, "y must be finite"),
        ({"sample_weight": np.ones(2)}, "sample_weight must have shape"),
        ({"sample_weight": np.full(3, np.nan)}, "sample_weight must be finite"),
    ],
)
def test_a_malformed_problem_is_refused(changes: dict[str, Any], message: str) -> None:
    parts: dict[str, Any] = {"X": np.zeros((3, 1)), "y": np.arange(3.0), **changes}
    with pytest.raises(ValueError, match=message):
        Problem(Part("f"), Part("l"), Part("c"), **parts)


def test_a_part_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="learner must have a str attribute 'name'"):
        Problem(Part("f"), object(), Part("c"), np.zeros((3, 1)), np.arange(3.0))
