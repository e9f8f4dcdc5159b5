"""The proved optimum of few views and few kernels within each, against all supports."""

from itertools import combinations, product

import numpy as np
import pytest
from enumeration import best_of
from kernelweave.kernels_core.result import Status
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
from kernelweave.relaxations import certify, search, solve_global

SIZES = (3, 1, 2, 3, 2)
WIDTHS = (0.1, 1.0, 5.0)


def problem(seed=0, n=40):
    """Return Grams of five views with one to three widths each, out of order, labels and views."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2 * len(SIZES)))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0, 1.0, -1.0)
    grams, views = [], []
    for v, size in enumerate(SIZES):
        own = X[:, 2 * v : 2 * v + 2]
        squares = ((own[:, None] - own[None]) ** 2).sum(axis=-1)
        grams += [np.exp(-gamma * squares) for gamma in WIDTHS[:size]]
        views += ["abcde"[v]] * size
    order = rng.permutation(len(views))
    return np.stack(grams)[order], y, [views[j] for j in order]


def supports(views, k0, n_views):
    """Yield all supports of the largest size."""
    for some in combinations("abcde", n_views):
        own = [[j for j, v in enumerate(views) if v == name] for name in some]
        for parts in product(*[combinations(at, min(k0, len(at))) for at in own]):
            yield [j for part in parts for j in part]


@pytest.mark.parametrize(
    ("seed", "k0", "n_views", "lam"),
    [
        *((0, 1, 2, 0.01), (1, 2, 2, 1.0), (2, 3, 1, 20.0), (4, 1, 1, 1.0)),
        pytest.param(3, 2, 3, 0.1, marks=pytest.mark.slow),
    ],
)
def test_it_is_the_best_of_all_supports(monkeypatch, seed, k0, n_views, lam):
    grams, y, views = problem(seed)
    low, high = best_of(grams, y, supports(views, k0, n_views), lam, C=2.0, tol=1e-7)
    limits = {"views": views, "n_views": n_views}
    # by enumeration at once, by branches alone, and the largest by one after the other
    for n_branches in (0, 10**9, 4)[: 3 if seed == 3 else 2]:
        monkeypatch.setattr(search, "_FEW_NODES", n_branches)
        found = solve_global(grams, y, C=2.0, lam=lam, k0=k0, **limits, tol=1e-6)
        assert found.status is Status.CONVERGED
        assert found.lower_bound <= high
        assert low <= found.upper_bound <= high * (1 + 1e-6)
        assert found.relaxation_bound <= found.lower_bound
        own = [views[j] for j in found.support]
        assert len(set(own)) <= n_views
        assert max(map(own.count, own)) <= k0


def test_as_many_views_as_there_are_limit_kernels_alone():
    grams, y, views = problem()
    limits = {"views": views, "n_views": 9, "k0": 9}
    free = solve_kernel_weights(grams, y, C=2.0, penalty=KSupport(0.5), tol=1e-7)
    found = solve_global(grams, y, C=2.0, lam=0.5, **limits, tol=1e-6)
    assert found.lower_bound <= free.upper_bound
    assert free.lower_bound <= found.upper_bound


def test_views_and_their_number_go_together():
    grams, y, views = problem()
    setting = {"C": 2.0, "lam": 0.5, "k0": 1}
    with pytest.raises(ValueError, match="n_views=2 needs views, the view of each kernel"):
        solve_global(grams, y, **setting, n_views=2)
    with pytest.raises(ValueError, match="views must name the view of each of 11 kernels, got 3"):
        solve_global(grams, y, **setting, views=views[:3], n_views=2)
    plain = solve_global(grams, y, **setting)
    assert plain.support.tolist() == solve_global(grams, y, **setting, views=views).support.tolist()


def test_an_estimator_is_certified_with_its_views():
    from kernelweave.kernels_core import RBF, KernelDictionary
    from kernelweave.mkl_sparse import SparseMKLRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    columns = {str(v): [2 * v, 2 * v + 1] for v in range(3)}
    kernels = KernelDictionary([RBF(0.2), RBF(1.0)], columns=columns)
    model = SparseMKLRegressor(kernels, k0=1, n_views=2).fit(X, X[:, 0] ** 2 + X[:, 2])
    own = certify(model)
    assert own.gap <= 1e-4
    assert own.lower_bound <= model.certificate_.upper_bound
