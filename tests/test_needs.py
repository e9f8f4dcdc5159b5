"""Algorithms say what they need: a stranger's learner and set work with them, refusals say why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelDictionary,
    Linear,
    Problem,
    Solution,
    accepted_triples,
    algorithms,
    get_algorithm,
    solve,
)
from kernelweave.kernels_core.exceptions import UnsupportedProblemError
from kernelweave.kernels_core.formula import Learner, WeightSet
from kernelweave.kernels_core.rounding import gamma
from kernelweave.kernels_core.testing import (
    check_intervals_overlap,
    check_learner,
    make_classification,
    make_regression,
)
from kernelweave.qp_smo import SVC, SVR, Ridge, SquaredHingeSVC
from kernelweave.ridge_mkl import LqBall, PowerDictionary
from kernelweave.vv_rkhs import VectorLeastSquares
from kernelweave_template import NAME, TemplateSimplex


@dataclass(frozen=True)
class Quantile:
    """A stranger's learner: max uᵀy − ½uᵀKu over −(1 − τ)C ≤ u ≤ τC, the pinball loss."""

    C: float = 1.0
    level: float = 0.7
    name: ClassVar[str] = "quantile-regression"
    task: ClassVar[str] = "regression"

    def validate(self) -> None:
        assert 0.0 < self.level < 1.0

    def solve(
        self,
        K: Any,
        targets: Any,
        *,
        sample_weight: Any = None,
        dual0: Any = None,
        tol: float = 1e-3,
        check: bool = True,
    ) -> Solution:
        rows = np.atleast_2d(np.asarray(targets, dtype=float))
        K = np.asarray(K, dtype=float)
        cap = self.C * (np.ones(K.shape[0]) if sample_weight is None else np.asarray(sample_weight))
        low, high = -(1.0 - self.level) * cap, self.level * cap
        u = np.zeros(rows.shape) if dual0 is None else np.clip(np.atleast_2d(dual0), low, high)
        f = u @ K
        for _ in range(400):
            for i in range(K.shape[0]):
                step = np.clip(u[:, i] + (rows[:, i] - f[:, i]) / K[i, i], low[i], high[i])
                f += np.outer(step - u[:, i], K[i])
                u[:, i] = step
            if self._gap(K, rows, u, low, high)[3] <= tol * max(1.0, np.abs(rows).max()):
                break
        f = u @ K
        kappa, lower, upper, _ = self._gap(K, rows, u, low, high)
        slope = np.broadcast_to(np.maximum(high, -low), rows.shape)
        return Solution(
            dual_coef=u,
            intercept=np.zeros(len(rows)),
            lower_bound=lower,
            upper_bound=upper,
            function_values=f,
            slope=slope,
            linear=kappa,
        )

    def _gap(self, K: Any, rows: Any, u: Any, low: Any, high: Any) -> tuple[float, ...]:
        """Return κ and both bounds, rounded outwards, and the gap between them."""
        f = u @ K
        rate = gamma(4 * K.shape[0] + 16)
        error = np.abs(u) @ np.abs(K)
        form, form_error = float(np.sum(u * f)), float(np.sum(np.abs(u) * error))
        kappa = float(np.sum(u * rows)) - rate * float(np.sum(np.abs(u * rows)))
        off = rows - f
        loss = float(np.sum(np.maximum(high * off, low * off)))
        loss_error = float(np.sum((high - low) * (error + np.abs(rows))))
        lower = kappa - 0.5 * form - rate * (abs(kappa) + form_error)
        upper = 0.5 * form + loss + rate * (form_error + loss_error + loss)
        return kappa, lower, upper, upper - lower


@dataclass(frozen=True)
class CappedSimplex:
    """A stranger's set: {β ≥ 0, Σβ = 1, β ≤ cap}."""

    cap: float = 0.6
    name: ClassVar[str] = "capped-simplex"
    curvature: ClassVar[float] = 0.0

    def validate(self, n_kernels: int | None = None) -> None:
        assert n_kernels is None or self.cap * n_kernels >= 1.0

    def start(self, n_kernels: int) -> Any:
        return np.full(n_kernels, 1.0 / n_kernels)

    def random_start(self, n_kernels: int, random_state: Any) -> Any:
        return self.project(random_state.random_sample(n_kernels))

    def penalty(self, weights: Any) -> float:
        return 0.0

    def penalty_gradient(self, weights: Any) -> Any:
        return np.zeros(len(weights))

    def project(self, weights: Any) -> Any:
        low, high = np.min(weights) - 1.0, np.max(weights)
        for _ in range(100):
            middle = 0.5 * (low + high)
            enough = np.clip(weights - middle, 0.0, self.cap).sum() >= 1.0
            low, high = (middle, high) if enough else (low, middle)
        return np.clip(weights - low, 0.0, self.cap)

    def worst(self, forms: Any) -> float:
        left, total = 1.0, 0.0
        for value in np.sort(forms)[::-1]:
            total += min(left, self.cap) * value
            left = max(left - self.cap, 0.0)
        return float(total * (1.0 + gamma(2 * len(forms) + 8)))


FAMILY = KernelDictionary.from_data(np.zeros((1, 2)))
LEARNERS = (SVC(), SVR(), Ridge(), SquaredHingeSVC(), VectorLeastSquares())


def problem(learner: Any, constraint: Any, family: Any = FAMILY) -> Problem:
    make = make_classification if learner.task == "classification" else make_regression
    X, y = make(24)
    return Problem(family, learner, constraint, X, y)


@pytest.mark.parametrize(
    "learner",
    [
        *(SVC(C=10.0), SVR(C=10.0, epsilon=0.05), Ridge(C=10.0), Ridge(fit_intercept=True)),
        *(SquaredHingeSVC(C=10.0), VectorLeastSquares(lam=0.01), Quantile(C=2.0)),
    ],
    ids=repr,
)
def test_every_learner_is_one(learner: Any) -> None:
    assert isinstance(learner, Learner)
    check_learner(learner)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: each.name)
def test_the_template_runs_on_every_learner(learner: Any) -> None:
    result = solve(problem(learner, TemplateSimplex()), NAME, tol=1e-2)
    assert result.gap <= 1e-2


def test_a_strangers_learner_works_with_what_is_there() -> None:
    names = {each.algorithm for each in check_intervals_overlap(problem(Quantile(), LqBall()))}
    assert {"krr-spg", "krr-gmkl", "krr-pgd", "krr-mm"} <= names
    simplex = check_intervals_overlap(problem(Quantile(), TemplateSimplex()))
    assert {"mkl-simple", NAME} <= {each.algorithm for each in simplex}
    best = min(each.upper_bound for each in simplex)
    assert best - max(each.lower_bound for each in simplex) <= 1e-4 * best


def test_a_strangers_set_works_with_what_is_there() -> None:
    assert isinstance(CappedSimplex(), WeightSet)
    for learner in (*LEARNERS, Quantile()):
        case = problem(learner, CappedSimplex())
        found = check_intervals_overlap(case)
        assert "krr-spg" in {each.algorithm for each in found}
        best = min(each.upper_bound for each in found)
        assert best - max(each.lower_bound for each in found) <= 1e-4 * best
        assert solve(case, "krr-spg", tol=1e-3).parameters.max() <= 0.6 + 1e-12


@pytest.mark.parametrize(
    ("name", "case", "said"),
    [
        (
            "krr-newton",
            problem(SVC(), LqBall()),
            r"needs a learner with solve_with_error \(an exact solution",
        ),
        (
            "mkl-simple",
            problem(SVC(), LqBall()),
            r"needs a set with total=1.0 \(all weights that sum to one\), "
            "which 'lq-ball' does not have",
        ),
        (
            "mkl-simple",
            problem(SVC(), TemplateSimplex(), PowerDictionary(KernelDictionary([Linear()]))),
            "needs a family with degree=1",
        ),
        ("mkl-easy", problem(SVR(), TemplateSimplex()), "needs a learner with task=classification"),
        ("tkl-low-rank", problem(SVC(), LqBall()), "needs a family with prepare"),
    ],
)
def test_a_refusal_names_what_is_missing(name: str, case: Problem, said: str) -> None:
    with pytest.raises(UnsupportedProblemError, match=said):
        solve(case, name)


def test_at_least_sixty_cells_are_served() -> None:
    cells = {triple for spec in algorithms().values() for triple in accepted_triples(spec)}
    assert len(cells) >= 60


def test_what_one_algorithm_accepts_is_what_it_needs() -> None:
    assert accepted_triples(get_algorithm("tkl-low-rank")) == [
        (family, learner, "spectahedron")
        for family in ("tessellated", "polynomial")
        for learner in ("svc", "svr")
    ]
