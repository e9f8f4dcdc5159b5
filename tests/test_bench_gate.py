"""The performance gate catches what is planted and passes what has not changed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import AlgorithmSpec, Problem, get_algorithm
from kernelweave.kernels_core.testing import small_problems

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "asv_bench"))

from gate import compare, counts, exponents

NAME = "tkl-frank-wolfe"


class Slowed:
    """A registered algorithm that can be made to waste steps, memory or arithmetic."""

    waste_steps = 0
    waste_grams = 0
    waste_powers = False

    def __init__(self) -> None:
        self.inner = get_algorithm(NAME).load()()
        self.wasted = 0

    def init(self, problem: Problem, random_state: Any, **params: Any) -> Any:
        self.size = problem.n_samples
        self.kept = np.zeros((self.waste_grams, self.size, self.size))
        return self.inner.init(problem, random_state, **params)

    def step(self, state: Any) -> Any:
        if self.waste_powers:
            for _ in range(self.size**2 // 20):
                np.ones((self.size, self.size)).sum()
        if self.wasted < self.waste_steps:
            self.wasted += 1
            return state
        return self.inner.step(state)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> AlgorithmSpec:
    for name, value in (("waste_steps", 0), ("waste_grams", 0), ("waste_powers", False)):
        monkeypatch.setattr(Slowed, name, value)
    original = get_algorithm(NAME)
    return AlgorithmSpec(
        name="slowed",
        target=f"{__name__}:Slowed",
        summary="a planted regression",
        accepts=original.accepts[:1],
        tasks=original.tasks,
        # what such small samples show of m^2.3
        scaling={"m": 1.0},
    )


def measured(spec: AlgorithmSpec) -> dict[str, dict[str, float]]:
    problem = next(iter(small_problems(spec, counts.N_SAMPLES)))
    return {counts.name_of(spec, problem): counts.counts(spec, problem)}


def test_an_unchanged_algorithm_passes(spec: AlgorithmSpec) -> None:
    before = measured(spec)
    assert compare.regressions(before, measured(spec)) == []
    assert all(np.isfinite(list(found.values())).all() for found in before.values())


@pytest.mark.parametrize(
    ("kind", "amount", "count"), [("waste_steps", 5, "iterations"), ("waste_grams", 4, "grams")]
)
def test_a_planted_regression_is_caught(
    spec: AlgorithmSpec, monkeypatch: pytest.MonkeyPatch, kind: str, amount: int, count: str
) -> None:
    before = measured(spec)
    monkeypatch.setattr(Slowed, kind, amount)
    worse = compare.regressions(before, measured(spec))
    assert count in {each.count for each in worse}


def test_a_lost_convergence_is_caught(spec: AlgorithmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    before = measured(spec)
    monkeypatch.setattr(Slowed, "waste_steps", counts.MAX_ITER)
    worse = compare.regressions(before, measured(spec))
    assert next(each.after for each in worse if each.count == "iterations") == np.inf


def test_a_steeper_growth_is_caught(spec: AlgorithmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (60, 120, 240)
    assert not exponents.growth(spec, sizes).is_too_steep
    monkeypatch.setattr(Slowed, "waste_powers", True)
    assert exponents.growth(spec, sizes).is_too_steep


def test_an_algorithm_for_few_samples_is_measured_at_few(spec: AlgorithmSpec) -> None:
    assert exponents.sizes_for(spec) == exponents.SIZES
    assert exponents.sizes_for(replace(spec, max_samples=60)) == (15, 20, 30)


def test_what_only_one_commit_has_is_no_regression() -> None:
    assert compare.regressions({}, {"new": {"iterations": 9.0}}) == []
    assert compare.regressions({"gone": {"iterations": 9.0}}, {}) == []
