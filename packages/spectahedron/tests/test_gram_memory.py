"""Fits with Gram matrices in float32, in blocks, and begun at a part of the samples."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelWeaveWarning,
    MemoryBudgetError,
    PolynomialFamily,
    Problem,
    TessellatedFamily,
    config_context,
    solve,
)
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC, SVR
from kernelweave.spectahedron import (
    LowRank,
    Spectahedron,
    TessellatedKernelClassifier,
    TessellatedKernelRegressor,
    low_rank,
)
from kernelweave.spectahedron.low_rank import coarse_factor, part_of, roughly_solved

N = 120


def box(n: int, degree: int = 1) -> TessellatedFamily:
    return TessellatedFamily(degree, lower=np.full(n, -0.5), upper=np.full(n, 1.5))


def problem(kind: str, n: int = N) -> Problem:
    X, y = make_classification(n)
    if kind == "numbers":
        X, z = make_regression(n)
        return Problem(box(2), SVR(C=2.0, epsilon=0.05), Spectahedron(), X, z)
    if kind == "polynomial":
        return Problem(PolynomialFamily(2, n_features=2), SVC(C=2.0), Spectahedron(), X, y)
    if kind == "tasks":
        other = np.where(X[:, 0] > 0.5, 1.0, -1.0)
        return Problem(box(2), SVC(C=2.0), Spectahedron(), X, np.stack([y, other]))
    if kind == "universal":
        return Problem(box(2), SVC(C=2.0), Spectahedron(min_eig=0.1), X, y)
    degree = 2 if kind == "degree 2" else 1
    weight = np.linspace(0.5, 2.0, n) if kind == "weights" else None
    return Problem(box(2, degree), SVC(C=2.0), Spectahedron(), X, y, weight)


KINDS = ("classes", "numbers", "polynomial", "tasks", "universal", "degree 2", "weights")


def assert_same_optimum(one: Any, other: Any) -> None:
    assert one.lower_bound <= other.upper_bound
    assert other.lower_bound <= one.upper_bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_certify_the_same_optimum(kind: str, dtype: str) -> None:
    case = problem(kind)
    stored = solve(case, "tkl-low-rank", tol=1e-6)
    # the largest block holds less than half of the samples
    with config_context(memory_limit=2 * int(1.5 * np.dtype(dtype).itemsize * 50**2)):
        monkey = pytest.MonkeyPatch()
        with monkey.context() as patch:
            patch.setattr("kernelweave.spectahedron.gram_memory.require", lambda *a, **k: None)
            found = solve(case, "tkl-low-rank", tol=1e-4, gram="blocks", dtype=dtype)
    assert found.gap <= 1e-4
    assert found.history.counts["n_grams"][-1] == 0
    assert_same_optimum(stored, found)


@pytest.mark.parametrize("algorithm", ["tkl-low-rank", "tkl-frank-wolfe"])
def test_float32_is_certified_where_constants_would_drown_it(algorithm: str) -> None:
    """The box has 256 times the volume of the data, which a plain float32 Gram would carry."""
    rng = np.random.default_rng(0)
    X = rng.random((250, 8))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=250)
    case = Problem(box(8), SVR(C=0.5, epsilon=0.02), Spectahedron(), X, y)
    exact = solve(case, "tkl-low-rank", tol=1e-7)
    if algorithm == "tkl-low-rank":
        found = solve(case, algorithm, tol=1e-3, dtype="float32")
        assert found.gap <= 1e-3
    else:
        double = solve(case, algorithm, tol=0.2, max_iter=300)
        found = solve(case, algorithm, tol=0.2, dtype="float32", max_iter=300)
        assert found.n_iter <= double.n_iter + 3
    assert_same_optimum(exact, found)
    K = case.family.gram(X, found.parameters)
    u = found.solution.dual_coef
    value, _ = case.learner.primal_at(y, u, u @ K, np.zeros(len(u)))
    assert found.upper_bound >= value * (1.0 - 1e-12)


def peak_in_grams(algorithm: str, n: int, **params: Any) -> float:
    case = problem("numbers", n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(problem("numbers", 40), algorithm, max_iter=3, **params)
        tracemalloc.start()
        solve(case, algorithm, tol=0.0, max_iter=3, **params)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / (8.0 * n * n)


@pytest.mark.parametrize(("algorithm", "most"), [("tkl-low-rank", 2.0), ("tkl-frank-wolfe", 3.6)])
def test_peak_memory_in_gram_matrices(algorithm: str, most: float) -> None:
    """One and three Gram matrices, and the learner's copy of half of one."""
    params = {"rescue": False} if algorithm == "tkl-low-rank" else {}
    assert peak_in_grams(algorithm, 1200, **params) <= most


def test_blocks_hold_no_gram() -> None:
    with config_context(memory_limit=2**24):
        assert peak_in_grams("tkl-low-rank", 2400, gram="blocks", rescue=False) <= 0.5


def test_what_does_not_fit_is_said_with_both_figures() -> None:
    X, y = make_regression(1500)
    model = TessellatedKernelRegressor(tol=0.1, memory_limit=2**24, max_iter=1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    said = [str(w.message) for w in seen if issubclass(w.category, KernelWeaveWarning)]
    text = next(s for s in said if "blocks" in s)
    assert "1500 samples in float64 need 25.7 MiB" in text
    assert "limit of 16 MiB" in text
    assert model.result_.lower_bound <= model.result_.upper_bound


def test_blocks_asked_for_are_silent() -> None:
    X, y = make_classification(80)
    model = TessellatedKernelClassifier(gram="blocks", tol=1e-2).fit(X, y)
    assert model.certificate_.gap <= 1e-2


def test_stored_is_refused_with_the_figure_and_the_ways_out() -> None:
    X, y = make_regression(1500)
    model = TessellatedKernelRegressor(gram="stored", memory_limit=2**24)
    said = r"1 Gram-sized array of 1500 samples in float64 .*MiB.*gram='blocks'"
    with pytest.raises(MemoryBudgetError, match=said):
        model.fit(X, y)


def test_not_even_blocks_fit() -> None:
    X, y = make_regression(1500)
    with pytest.raises(MemoryBudgetError, match="blocks of 500 of 1500 samples"):
        TessellatedKernelRegressor(memory_limit=2**20).fit(X, y)


def test_other_algorithms_cannot() -> None:
    X, y = make_classification(40)
    model = TessellatedKernelClassifier(algorithm="tkl-frank-wolfe", gram="blocks")
    with pytest.raises(ValueError, match="such as tkl-low-rank, got 'tkl-frank-wolfe'"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="gram must be one of"):
        TessellatedKernelClassifier(gram="rows").fit(X, y)


def test_a_part_keeps_the_balance_of_loss_and_norm() -> None:
    case = problem("weights", 200)
    part = part_of(case, 50)
    assert part.n_samples == 50
    whole, kept = case.sample_weight, part.sample_weight
    assert whole is not None
    assert kept is not None
    assert part.learner.C * kept.sum() == pytest.approx(case.learner.C * whole.sum())
    # every so many in the order of the targets: the classes keep their shares
    assert np.mean(part.targets > 0) == pytest.approx(np.mean(case.targets > 0), abs=0.02)


def test_a_part_keeps_rare_classes_and_no_sample_without_weight() -> None:
    X = np.random.default_rng(0).normal(size=(1200, 2))
    model = TessellatedKernelClassifier(C=1.0, tol=1e-2).fit(X, np.repeat([0, 1, 2], [600, 1, 599]))
    assert model.dual_gap_ <= 1e-2 * model.result_.upper_bound
    case = problem("weights", 200)
    weight = np.zeros(200)
    weight[[3, 50, 120, 121]] = 1.0
    case = replace(case, sample_weight=weight)
    part = part_of(case, 50)
    assert part.sample_weight.tolist() == [1.0] * 4
    assert part.learner.C == case.learner.C


@pytest.mark.parametrize("kind", ["classes", "numbers", "tasks"])
def test_a_start_at_a_part_reaches_the_same_optimum(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = problem(kind, 400)
    # at C = 2 the last digits of a processor decide whether numbers reach 1e-6
    case = replace(case, learner=replace(case.learner, C=1.0))
    cold = solve(case, "tkl-low-rank", tol=1e-6)
    monkeypatch.setattr(low_rank, "_LARGE", 100)
    monkeypatch.setattr(low_rank, "_PART", 40)
    monkeypatch.setattr(low_rank, "_SHRINK", 3)
    found = solve(case, "tkl-low-rank", tol=1e-6)
    assert found.gap <= 1e-6
    assert_same_optimum(cold, found)
    first = found.history.upper[0] / cold.upper_bound
    assert first < cold.history.upper[0] / cold.upper_bound


def test_a_factor_of_a_part_is_near_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "_PART", 100)
    case = problem("numbers", 400)
    U = coarse_factor(roughly_solved, case, LowRank())
    best = solve(case, "tkl-low-rank", tol=1e-4)
    n_P = case.family.n_P
    K = case.family.gram(case.X, n_P * (U @ U.T))
    at = case.learner.solve(K, case.targets, tol=1e-5)
    assert at.upper_bound <= 1.2 * best.upper_bound
