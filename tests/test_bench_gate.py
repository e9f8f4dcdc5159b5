"""The performance gate catches what is planted and passes what has not changed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import AlgorithmSpec, Problem, algorithms, get_algorithm
from kernelweave.kernels_core.testing import check_algorithm, small_problems

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "asv_bench"))

from gate import compare, counts, exponents
from workspace import ROOT

NAME = "tkl-frank-wolfe"


class Slowed:
    """A registered algorithm that can be made to waste steps, memory or arithmetic."""

    waste_steps = 0
    waste_grams = 0
    waste_powers = False
    # of the clock, in the side of P
    power_of_n_P = 2.0
    # seconds that the work would take: another process cannot slow it
    clock = 0.0

    def __init__(self, problem: Problem, random_state: Any, **settings: Any) -> None:
        self.wasted = 0
        self.size = problem.n_samples
        self.n_P = problem.family.n_P
        self.kept = np.zeros((self.waste_grams, self.size, self.size))
        self.inner = get_algorithm(NAME).load()(problem, random_state, **settings)

    def step(self) -> None:
        Slowed.clock += 1.0 + 1e-3 * self.size ** (3.0 if self.waste_powers else 2.0)
        Slowed.clock += self.n_P**self.power_of_n_P
        if self.wasted < self.waste_steps:
            self.wasted += 1
        else:
            self.inner.step()

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
        needs=original.needs,
        prefers=original.prefers,
        tasks=original.tasks,
        scaling=original.scaling,
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


SMALL = (12, 60, 120, 240, 480)


def declared(spec: AlgorithmSpec, exponent: float) -> AlgorithmSpec:
    return replace(spec, scaling={"m": exponent})


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the planted algorithm by its own clock."""
    clock = SimpleNamespace(process_time=lambda: Slowed.clock)
    monkeypatch.setattr(exponents, "time", clock)


@pytest.mark.usefixtures("counted")
def test_a_steeper_growth_is_caught(spec: AlgorithmSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    assert exponents.growth(declared(spec, 2.0), values=SMALL).verdict == "as declared"
    monkeypatch.setattr(Slowed, "waste_powers", True)
    found = exponents.growth(declared(spec, 2.0), values=SMALL)
    assert found.is_too_steep
    assert found.verdict == "too steep"


@pytest.mark.usefixtures("counted")
def test_a_flatter_growth_is_caught(spec: AlgorithmSpec) -> None:
    found = exponents.growth(declared(spec, 3.0), values=SMALL)
    assert found.is_too_flat
    assert found.verdict == "too flat"


@pytest.mark.usefixtures("counted")
def test_a_steeper_growth_in_the_side_of_P_is_caught(
    spec: AlgorithmSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replace(spec, scaling={"m": 2.0, "n_P": 2.0})
    few = (1, 2, 4, 8)
    assert exponents.growth(one, "n_P", few).verdict == "as declared"
    monkeypatch.setattr(Slowed, "power_of_n_P", 4.0)
    found = exponents.growth(one, "n_P", few)
    assert (found.size, found.verdict) == ("n_P", "too steep")
    assert found.fitted == pytest.approx(4.0, abs=0.01)


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_the_growth_in_the_number_of_kernels_is_that_of_the_problem(
    power: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock sees the number of kernels alone, so the fit must find its exponent."""
    spec = replace(get_algorithm("mkl-simple"), scaling={"m": 2.0, "q": power})

    def seconds(chosen: AlgorithmSpec, problems: list[Problem]) -> list[float]:
        return [3.0 + 1e-2 * len(problem.family.kernels) ** power for problem in problems]

    monkeypatch.setattr(exponents, "seconds", seconds)
    assert exponents.growth(spec, "q").fitted == pytest.approx(power, abs=0.01)
    assert exponents.growth(replace(spec, scaling={"q": power - 0.5}), "q").is_too_steep


def test_every_algorithm_declares_sizes_that_are_measured() -> None:
    ours = [each for each in algorithms().values() if each.target.startswith("kernelweave")]
    assert len(ours) > 30
    for each in ours:
        assert "m" in each.scaling, each.name
        assert set(each.scaling) <= set(exponents.SIZES), each.name


def test_a_size_that_nobody_measures_is_refused(spec: AlgorithmSpec) -> None:
    with pytest.raises(ValueError, match="m, q, n_P, n_outputs, got 'p'"):
        exponents.sized(spec, "p", 3)


@pytest.mark.parametrize("power", [1.0, 2.0, 2.3, 3.0])
@pytest.mark.parametrize("constant", [0.0, 0.002, 0.05])
def test_what_does_not_grow_hides_no_exponent(power: float, constant: float) -> None:
    m = np.array(exponents.SIZES["m"], dtype=float)
    noise = 1.0 + 0.02 * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    grown = 0.1 * (m / m[-1]) ** power
    assert exponents.exponent(m, constant + grown) == pytest.approx(power, abs=1e-4)
    costs = constant + grown * noise
    assert exponents.exponent(m, costs) == pytest.approx(power, abs=0.05)
    line = np.polyfit(np.log(m[1:]), np.log(costs[1:]), 1)[0]
    assert constant < 0.01 or line < power - 0.3


def test_a_cost_that_does_not_grow_has_no_exponent() -> None:
    assert exponents.exponent([1, 2, 4, 8], [1.0, 1.02, 0.99, 1.05]) == 0.0


@pytest.mark.parametrize(
    ("fitted", "verdict"),
    [(2.0, "as declared"), (1.71, "as declared"), (1.69, "too flat"), (2.31, "too steep")],
)
def test_the_margin_holds_on_both_sides(fitted: float, verdict: str) -> None:
    assert exponents.Growth("a", fitted, 2.0).verdict == verdict


def test_an_algorithm_without_scaling_fails_conformance(spec: AlgorithmSpec) -> None:
    with pytest.raises(AssertionError, match="declare 'scaling'"):
        check_algorithm(replace(spec, scaling={}))


def test_the_command_names_what_is_not_declared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from gate import __main__ as command

    silent = replace(get_algorithm(NAME), name="silent", scaling={"n_P": 2.0})
    monkeypatch.setattr(command, "algorithms", lambda: {"silent": silent})
    # nothing else is wrong: the clock grows as declared
    monkeypatch.setattr(exponents, "seconds", lambda _, made: [each.family.n_P**2 for each in made])
    monkeypatch.setattr(sys, "argv", ["gate", "exponents"])
    assert command.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "no scaling in m is declared: silent"
    assert lines[1:] == ["as declared: silent: n_P^2.00, declared n_P^2"]


@pytest.mark.parametrize(("cost", "n_solves"), [(1.0, 8), (15.0, 2)])
def test_long_solves_are_counted_in_fewer_rounds(
    monkeypatch: pytest.MonkeyPatch, spec: AlgorithmSpec, cost: float, n_solves: int
) -> None:
    ends: list[float] = []
    monkeypatch.setattr(exponents, "solve", lambda *_, **__: ends.append(cost))
    monkeypatch.setattr(exponents, "time", SimpleNamespace(process_time=lambda: sum(ends)))
    assert exponents.seconds(spec, [next(iter(small_problems(spec, 20)))]) == [cost]
    assert len(ends) == n_solves


def test_an_algorithm_for_few_samples_is_measured_at_few(spec: AlgorithmSpec) -> None:
    assert exponents.sizes_for(spec) == exponents.SIZES["m"]
    assert exponents.sizes_for(replace(spec, max_samples=60)) == (6, 12, 15, 20, 30)


def test_what_is_new_or_gone_as_a_whole_is_no_regression() -> None:
    assert compare.regressions({}, {"new": {"iterations": 9.0}}) == []
    assert (
        compare.regressions({"gone/a": {"iterations": 9.0}}, {"kept/a": {"iterations": 1.0}}) == []
    )


def test_a_problem_that_is_no_longer_taken_is_worse() -> None:
    before = {"mine/svc": {"iterations": 9.0}, "mine/svr": {"iterations": 9.0}}
    (found,) = compare.regressions(before, {"mine/svc": {"iterations": 9.0}})
    assert (found.problem, found.after) == ("mine/svr", np.inf)


def test_joint_learning_is_counted_with_work_that_can_get_worse() -> None:
    spec = get_algorithm("vv-spg")
    (name,) = (each for each in counts.problems_of(spec) if each.endswith("three outputs"))
    found = counts.counts(spec, counts.problems_of(spec)[name])
    assert 1.0 < found["iterations"] < np.inf
    worse = {**found, "iterations": 1.5 * found["iterations"], "value": 1.05 * found["value"]}
    said = compare.regressions({name: found}, {name: worse})
    assert {each.count for each in said} == {"iterations", "value"}


@pytest.mark.parametrize("name", ["nightly", "performance"])
def test_a_workflow_that_compares_commits_has_them(name: str) -> None:
    """A checkout of one commit has no parent, and every job that runs the gate needs one."""
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    jobs = [job for job in text.split("runs-on:")[1:] if "-s full" in job or "-s bench" in job]
    assert jobs
    assert all("fetch-depth: 0" in job for job in jobs)
    gates = [job for job in jobs if "-s full" in job or "-s bench-gate" in job]
    assert gates
    assert all("install -y valgrind" in job for job in gates)


def test_what_is_pushed_to_main_is_gated() -> None:
    text = (ROOT / ".github" / "workflows" / "performance.yml").read_text(encoding="utf-8")
    assert "push:\n    branches: [main]" in text
    assert "github.event.before" in text
