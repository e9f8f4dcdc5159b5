"""Each rule against an independent answer: conic solver, plain formula, hand-made folds."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from kernelweave.baselines import (
    AlignmentWeights,
    AverageWeights,
    EasyMKLWeights,
    ProportionalWeights,
    alignment_weights,
    easymkl_weights,
)
from kernelweave.baselines.alignment import centered_products
from kernelweave.baselines.easymkl import margin_distribution
from kernelweave.baselines.proportional import (
    centrality,
    folds,
    proportional_weights,
    single_kernel_accuracies,
)
from kernelweave.baselines.rule import RuleWeights
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    KernelWeaveWarning,
    Laplacian,
    Linear,
    Polynomial,
    Problem,
)
from kernelweave.kernels_core.grams import LowRankStack
from kernelweave.kernels_core.testing import make_classification
from kernelweave.qp_smo import SVC
from sklearn.svm import SVC as LibSVC

KERNELS = [Linear(), Polynomial(2, 1.0, 1.0), RBF(gamma=2.0), RBF(gamma=20.0), Laplacian(gamma=1.0)]


def data(n: int = 40, seed: int = 0) -> tuple[Any, Any]:
    X, y = make_classification(n, seed)
    return np.array([k(X) for k in KERNELS]), y


def test_making_a_search_solves_nothing_and_each_step_is_finer() -> None:
    grams, y = data()
    problem = Problem(KernelDictionary(KERNELS), SVC(C=1.0), AverageWeights(), y[:, None], y)
    K = grams.mean(axis=0)
    search = RuleWeights(problem, np.full(len(grams), 1.0 / len(grams)), K, np.zeros(len(y)))
    assert search.n_solves == 0
    assert search.solution is None
    search.step()
    first = search.upper - search.lower
    value = LibSVC(C=1.0, kernel="precomputed", tol=1e-9).fit(K, y)
    u, at = value.dual_coef_[0], value.support_
    optimum = np.abs(u).sum() - 0.5 * u @ K[np.ix_(at, at)] @ u
    assert search.lower <= optimum * (1.0 + 1e-9)
    assert optimum * (1.0 - 1e-9) <= search.upper
    search.step()
    assert search.counts == {"n_svm_solves": 2}
    assert search.upper - search.lower <= first


def centred(K: Any) -> Any:
    C = np.eye(len(K)) - 1.0 / len(K)
    return C @ K @ C


def test_products_are_those_of_centred_matrices() -> None:
    grams, y = data()
    M, a = centered_products(grams, y)
    flat = np.array([centred(K).ravel() for K in grams])
    np.testing.assert_allclose(M, flat @ flat.T, rtol=1e-12)
    np.testing.assert_allclose(a, flat @ np.outer(y, y).ravel(), rtol=1e-10, atol=1e-12)


def test_alignment_equals_a_conic_solver() -> None:
    grams, y = data()
    M, a = centered_products(grams, y)
    v = cp.Variable(len(a))
    scale = np.sqrt(np.diagonal(M))
    root = np.linalg.cholesky(M / np.outer(scale, scale) + 1e-14 * np.eye(len(a)))
    objective = cp.sum_squares(root.T @ v) - 2.0 * (a / scale) @ v
    cp.Problem(cp.Minimize(objective), [v >= 0]).solve(solver="CLARABEL")
    wanted = np.maximum(v.value, 0.0) / scale
    np.testing.assert_allclose(
        alignment_weights(grams, y), wanted / np.linalg.norm(wanted), atol=1e-5
    )


@pytest.mark.parametrize("method", ["qp", "closed-form"])
def test_no_other_weights_are_better_aligned(method: str) -> None:
    grams, y = data()
    M, a = centered_products(grams, y)
    beta = alignment_weights(grams, y, method=method)
    assert np.linalg.norm(beta) == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    others = rng.standard_normal((500, len(a))) * 0.1 + beta
    if method == "qp":
        others = np.maximum(others, 0.0)
    best = (beta @ a) ** 2 / (beta @ M @ beta)
    assert ((others @ a) ** 2 <= best * np.einsum("ri,ij,rj->r", others, M, others)).all()


def test_the_printed_closed_form_leaves_the_constraint() -> None:
    grams, y = data(60, seed=3)
    assert alignment_weights(grams, y).min() >= 0.0
    assert alignment_weights(grams, y, method="closed-form").min() < 0.0


def test_kernels_without_alignment_get_equal_weights() -> None:
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    with pytest.warns(KernelWeaveWarning, match="no kernel is aligned"):
        found = alignment_weights(np.ones((2, 4, 4)), y)
    np.testing.assert_allclose(found, np.full(2, 0.5**0.5))


@pytest.mark.parametrize("lam", [0.001, 0.1, 0.7])
def test_margin_distribution_equals_a_conic_solver(lam: float) -> None:
    grams, y = data()
    K = grams.sum(axis=0)
    gamma = cp.Variable(len(y), nonneg=True)
    values, vectors = np.linalg.eigh(K)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * y
    objective = (1 - lam) * cp.sum_squares(root @ gamma) + lam * cp.sum_squares(gamma)
    sums = [cp.sum(gamma[y > 0]) == 1, cp.sum(gamma[y < 0]) == 1]
    best = cp.Problem(cp.Minimize(objective), sums).solve(solver="CLARABEL")
    found = margin_distribution(K, y, lam=lam)
    value = (1 - lam) * (y * found) @ K @ (y * found) + lam * found @ found
    assert value == pytest.approx(best, rel=1e-7)
    assert found.min() >= 0.0
    assert found[y > 0].sum() == pytest.approx(1.0)
    assert found[y < 0].sum() == pytest.approx(1.0)


def test_the_ends_of_lambda() -> None:
    grams, y = data()
    even = margin_distribution(grams[0], y, lam=1.0)
    np.testing.assert_allclose(even, np.where(y > 0, 1 / (y > 0).sum(), 1 / (y < 0).sum()))
    K = grams[3]
    hard = margin_distribution(K, y, lam=0.0)
    u = y * hard
    # the margin that all support vectors share
    f = y * (K @ u)
    used = hard > 1e-6
    spread = [np.ptp(f[used & (y == s)]) / np.abs(f).max() for s in (-1, 1)]
    assert max(spread) < 1e-5
    for lam in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"lam must be a finite number in \[0, 1\], got"):
            margin_distribution(K, y, lam=lam)
        for given in (grams, LowRankStack(np.ones((y.size, 2)), [0, 1, 2])):
            with pytest.raises(ValueError, match=r"lam must be a finite number in \[0, 1\], got"):
                easymkl_weights(given, y, lam=lam)


def test_a_weight_is_that_many_samples() -> None:
    grams, y = data(30)
    weight = np.ones(30)
    weight[[3, 17]] = 2.0
    rows = np.r_[np.arange(30), 3, 17]
    doubled = grams[:, rows][:, :, rows]
    for find in (easymkl_weights, alignment_weights):
        np.testing.assert_allclose(
            find(grams, y, sample_weight=weight), find(doubled, y[rows]), atol=1e-7
        )


def test_several_tasks_share_the_weights() -> None:
    grams, y = data()
    for find in (easymkl_weights, alignment_weights):
        np.testing.assert_allclose(find(grams, [y, y, y]), find(grams, y), atol=1e-12)


def test_accuracies_equal_libsvm_on_the_same_folds() -> None:
    grams, y = data(60)
    found = single_kernel_accuracies(grams, y[None], SVC(C=3.0), n_folds=4)
    fold = folds(y[None], 4, centrality(grams, None))
    assert all(np.ptp(np.bincount(fold[y == sign])) <= 1 for sign in (-1, 1))
    for K, pi in zip(grams, found, strict=True):
        hits = 0
        for k in range(4):
            train, test = fold != k, fold == k
            machine = LibSVC(kernel="precomputed", C=3.0, tol=1e-8)
            machine.fit(K[np.ix_(train, train)], y[train])
            hits += (machine.predict(K[np.ix_(test, train)]) == y[test]).sum()
        assert pi == pytest.approx(hits / 60)


def test_proportional_formula() -> None:
    unlike, alike = np.array([0.5, 1.0]), np.array([0.7, 0.7])
    np.testing.assert_allclose(proportional_weights(unlike), [1 / 3, 2 / 3])
    np.testing.assert_allclose(proportional_weights(unlike, 0.5), [0.25, 0.75])
    np.testing.assert_allclose(proportional_weights(alike, 1.0), [0.5, 0.5])


def test_a_class_of_one_sample_gives_equal_weights() -> None:
    grams, _ = data(6)
    y = np.array([1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    pi = single_kernel_accuracies(grams, y[None], SVC(), n_folds=2)
    assert pi.min() >= 0.0
    assert pi.max() <= 1.0
    both = single_kernel_accuracies(grams[:, :2, :2], y[None, :2], SVC(), n_folds=2)
    np.testing.assert_array_equal(both, np.ones(len(grams)))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (EasyMKLWeights(lam=2.0), "lam"),
        (AlignmentWeights(method="exact"), "method"),
        (ProportionalWeights(n_folds=1), "n_folds"),
        (ProportionalWeights(threshold=-1.0), "threshold"),
    ],
)
def test_refusals(rule: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rule.validate()


@pytest.mark.parametrize("method", ["qp", "closed-form"])
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 21.0)])
def test_constant_targets_align_with_no_kernel(method: str, weight: np.ndarray | None) -> None:
    """Their centred kernel is 0, and what rounding leaves of it is no alignment."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    grams = np.stack([X @ X.T, np.exp(X @ X.T), 1e-8 * np.eye(20)])
    with pytest.warns(KernelWeaveWarning, match="no kernel is aligned"):
        found = alignment_weights(grams, np.full(20, 3.0), method=method, sample_weight=weight)
    assert found == pytest.approx(3**-0.5)


def test_a_kernel_listed_twice_shares_its_weight() -> None:
    """M is singular: of all solutions of the closed form the one of least norm."""
    grams, y = data(20)
    one = alignment_weights(grams[[2, 4]], y, method="closed-form")
    two = alignment_weights(grams[[2, 4, 2]], y, method="closed-form")
    expected = np.array([0.5 * one[0], one[1], 0.5 * one[0]])
    assert two == pytest.approx(expected / np.linalg.norm(expected), rel=1e-5)


def test_an_unknown_method_is_named() -> None:
    grams, y = data(20)
    with pytest.raises(ValueError, match="method must be one of"):
        alignment_weights(grams, y, method="best")


def test_no_margin_anywhere_gives_equal_weights() -> None:
    _, y = data(20)
    assert easymkl_weights(np.zeros((4, 20, 20)), y) == pytest.approx(np.full(4, 0.25))
