"""The conformance kit catches every lie planted here, and says what is refuted by what."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import Needs, Problem, Status, algorithms, get_algorithm
from kernelweave.kernels_core.exceptions import KernelWeaveWarning
from kernelweave.kernels_core.formula.problem import ROLES
from kernelweave.kernels_core.testing import (
    check_algorithm,
    check_intervals_overlap,
    check_learner,
    intervals,
    small_problems,
)
from kernelweave.qp_smo import SVC, Ridge

Bounds = tuple[float, float]

# one honest algorithm for each kind of learner and family, with a triple on which it is certified
HONEST = {
    "SVC": ("mkl-simple", ("dictionary", "svc", "simplex")),
    "SVR": ("mkl-simple", ("dictionary", "svr", "simplex")),
    "ridge": ("krr-newton", ("dictionary", "ridge", "lq-ball")),
    "positive-matrix": ("tkl-low-rank", ("polynomial", "svc", "spectahedron")),
    "matrix-valued": ("vv-spg", ("dictionary", "vector-least-squares", "separable-kernels")),
}


class Liar:
    """Asks an honest algorithm, and lies; each lie below overrides what it lies about."""

    base: Any = None

    def __init__(self, problem: Problem, *rest: Any, **settings: Any) -> None:
        self.problem = problem
        self.honest = self.base(self.posed(problem), *rest, **settings)

    def posed(self, problem: Problem) -> Problem:
        return problem

    @property
    def lower(self) -> float:
        return float(self.honest.lower)

    @property
    def upper(self) -> float:
        return float(self.honest.upper)

    def step(self) -> None:
        self.honest.step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)


def planted(kind: str, lie: type[Liar], name: str = "planted") -> Any:
    """Return the record of a liar that accepts one triple, with the honest algorithm's settings."""
    honest, triple = HONEST[kind]
    spec = get_algorithm(honest)
    base = spec.load()
    own = {"base": base, "settings": getattr(base, "settings", None)}
    globals()["Planted"] = type("Planted", (lie,), own)
    exact = {role: (f"name={part}",) for role, part in zip(ROLES, triple, strict=True)}
    target = f"{__name__}:Planted"
    return replace(spec, name=name, target=target, needs=Needs(**exact), max_samples=None)


def bounds(lie: Callable[[float, float], Bounds], where: Callable[[Problem], bool]) -> type[Liar]:
    """Return a liar about its bounds, on the problems where it lies."""

    class AboutBounds(Liar):
        @property
        def lower(self) -> float:
            pair = self.honest.lower, self.honest.upper
            return lie(*pair)[0] if where(self.problem) else pair[0]

        @property
        def upper(self) -> float:
            pair = self.honest.lower, self.honest.upper
            return lie(*pair)[1] if where(self.problem) else pair[1]

    return AboutBounds


def always(problem: Problem) -> bool:
    return True


class Stays(Liar):
    """Takes no step, and claims to have arrived."""

    @property
    def lower(self) -> float:
        return float(self.honest.upper) * (1.0 - 1e-6)

    def step(self) -> None:
        pass


class Rests(Liar):
    """Takes no step, and says that no step would help."""

    outcome = Status.STATIONARY

    def step(self) -> None:
        pass


class ProvesNothing(Liar):
    """Solves the problem, proves nothing, and says that it is not convex."""

    @property
    def lower(self) -> float:
        return 0.0

    @property
    def outcome(self) -> Status | None:
        gap = self.honest.upper - self.honest.lower
        return Status.STATIONARY if gap <= 1e-3 * self.honest.upper else None


class NoWeights(Liar):
    """Ignores sample weights: the optimum that it proves is that of another problem."""

    def posed(self, problem: Problem) -> Problem:
        return replace(problem, sample_weight=None)


class FirstTask(Liar):
    """Ignores all tasks but the first."""

    def posed(self, problem: Problem) -> Problem:
        return replace(problem, y=problem.targets[0])


class DualAsUpper(Liar):
    """Claims the dual value as upper bound, so that the gap is closed at once."""

    @property
    def upper(self) -> float:
        return float(self.honest.lower)


class Heavier(Liar):
    """Returns parameters that are a millionth too large."""

    @property
    def parameters(self) -> Any:
        found = self.honest.parameters
        if hasattr(found, "output_kernel"):
            return replace(found, output_kernel=found.output_kernel * (1.0 + 1e-6))
        return found * (1.0 + 1e-6)


class Elsewhere(Liar):
    """Returns parameters a hundredth away from those that were evaluated."""

    @property
    def parameters(self) -> Any:
        found = self.honest.parameters
        if hasattr(found, "output_kernel"):
            turned = 0.99 * found.weights + 0.01 * found.weights[::-1]
            return replace(found, weights=turned)
        turned = 0.99 * found + 0.01 * np.flip(found)
        return 0.5 * (turned + turned.T) if np.ndim(found) == 2 else turned


def raised(percent: float) -> Callable[[float, float], Bounds]:
    return lambda lower, upper: ((1.0 + percent / 100.0) * lower, upper)


def lowered(lower: float, upper: float) -> Bounds:
    return 0.5 * lower, 0.95 * upper


BOUNDS = {
    **{f"lower-{p}-percent-high": bounds(raised(p), always) for p in (0.1, 0.5, 2, 3)},
    "upper-5-percent-low": bounds(lowered, always),
    "a-dual-value-as-upper-bound": DualAsUpper,
    "no-step": Stays,
    "no-step-and-stationary": Rests,
    "lower-bound-0-and-stationary": ProvesNothing,
    "weights-ignored": NoWeights,
    "parameters-a-millionth-too-large": Heavier,
    "parameters-elsewhere": Elsewhere,
    "a-lie-above-40-samples": bounds(lowered, lambda problem: problem.n_samples > 40),
    "a-lie-above-200-samples": bounds(lowered, lambda problem: problem.n_samples > 200),
    "a-lie-at-small-C": bounds(
        lowered, lambda p: getattr(p.learner, "C", 1e-3 / getattr(p.learner, "lam", 1e-3)) < 0.05
    ),
}


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("lie", BOUNDS)
def test_a_lie_is_caught(kind: str, lie: str) -> None:
    with pytest.raises(AssertionError, match=r"^planted on .*(refuted|not in the set|above)"):
        check_algorithm(planted(kind, BOUNDS[lie]))


@pytest.mark.parametrize("kind", HONEST)
def test_tasks_that_are_ignored_are_caught(kind: str) -> None:
    with pytest.raises(AssertionError, match=r"three tasks: .*(refuted|not in the set)"):
        check_algorithm(planted(kind, FirstTask))


@pytest.mark.parametrize("kind", ["SVC", "SVR", "ridge", "matrix-valued"])
def test_a_lie_above_twelve_kernels_is_caught(kind: str) -> None:
    def many(problem: Problem) -> bool:
        return len(problem.family.kernels) > 12

    with pytest.raises(AssertionError, match=r"fifteen kernels: .*(refuted|above)"):
        check_algorithm(planted(kind, bounds(lowered, many)))


@pytest.mark.parametrize("kind", HONEST)
def test_the_honest_algorithm_passes(kind: str) -> None:
    check_algorithm(planted(kind, Liar))


@pytest.mark.parametrize(
    ("lie", "refuted"),
    [
        (bounds(lowered, always), "its claimed upper bound .* dual value at the parameters"),
        (Stays, "its claimed lower bound .* primal value at the parameters of honest"),
    ],
)
def test_an_honest_algorithm_passes_beside_liars(
    lie: type[Liar], refuted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three liars of one mind are refuted by what is true at their points, not outvoted."""
    honest = replace(get_algorithm("mkl-simple"), name="honest", needs=planted("SVC", lie).needs)
    liars = {f"liar-{i}": planted("SVC", lie, f"liar-{i}") for i in range(3)}
    monkeypatch.setattr(intervals, "algorithms", lambda: {"honest": honest, **liars})
    monkeypatch.setattr(intervals, "_interval_cache", {})
    with pytest.warns(KernelWeaveWarning) as told:
        check_algorithm(honest)
    for name in liars:
        assert any(re.match(f"{name} on .*{refuted}", str(each.message)) for each in told)
    with pytest.raises(AssertionError, match=r"^liar-0 on .* refuted by"):
        check_algorithm(liars["liar-0"])


class WrongSVC(SVC):
    """Solves another problem than it is asked for."""

    def posed(self, targets: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return targets, options

    def solve(self, K: Any, targets: Any, **options: Any) -> Any:
        targets, options = self.posed(targets, options)
        return super().solve(K, targets, **options)


class WeightsIgnored(WrongSVC):
    def posed(self, targets: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return targets, {**options, "sample_weight": None}


class SmallWeightsIgnored(WrongSVC):
    def posed(self, targets: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        weight = options.get("sample_weight")
        if weight is not None:
            options["sample_weight"] = np.where(np.asarray(weight) < 0.5, 0.0, weight)
        return targets, options


class LargeWeightsCut(WrongSVC):
    def posed(self, targets: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        weight = options.get("sample_weight")
        if weight is not None:
            options["sample_weight"] = np.minimum(weight, 2.0)
        return targets, options


class ThirdTaskIgnored(WrongSVC):
    def solve(self, K: Any, targets: Any, **options: Any) -> Any:
        y = np.atleast_2d(targets)
        found = super().solve(K, y[:2], **options)
        if len(y) < 3:
            return found
        pad = [(0, len(y) - 2), (0, 0)]
        return replace(
            found,
            dual_coef=np.pad(found.dual_coef, pad),
            intercept=np.pad(found.intercept, pad[0]),
            function_values=np.pad(found.function_values, pad),
            slope=np.pad(found.slope, pad),
        )


class DualAsUpperSVC(WrongSVC):
    def solve(self, K: Any, targets: Any, **options: Any) -> Any:
        found = super().solve(K, targets, **options)
        return replace(found, upper_bound=found.lower_bound)


class WrongAboveForty(WrongSVC):
    def solve(self, K: Any, targets: Any, **options: Any) -> Any:
        found = super().solve(K, targets, **options)
        low = 0.95 * found.lower_bound
        return found if len(K) <= 40 else replace(found, lower_bound=low, upper_bound=low)


@pytest.mark.parametrize(
    "learner",
    [
        *(WeightsIgnored(), SmallWeightsIgnored(), LargeWeightsCut(), ThirdTaskIgnored()),
        *(DualAsUpperSVC(), WrongAboveForty()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_learner_that_lies_is_caught(learner: Any) -> None:
    with pytest.raises(AssertionError, match=r"^svc"):
        check_learner(learner)


def test_learners_that_do_not_lie_pass() -> None:
    check_learner(SVC(C=1.0))
    check_learner(Ridge(C=1.0))


def _problems() -> dict[tuple[str, str, str], Problem]:
    return {
        problem.triple: problem
        for spec in algorithms().values()
        for problem in small_problems(spec)
    }


@pytest.mark.faults
@pytest.mark.parametrize("problem", _problems().values(), ids=lambda each: "-".join(each.triple))
def test_all_intervals_of_one_problem_overlap(problem: Problem) -> None:
    assert check_intervals_overlap(problem)
