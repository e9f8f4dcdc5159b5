"""The tree with the thresholds that it has by default: every support has a bound of its own."""

from itertools import combinations, product

import numpy as np
import pytest
from kernelweave.kernels_core.result import Status
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
from kernelweave.relaxations import search, solve_global
from kernelweave.relaxations.search import SupportSearch
from kernelweave.relaxations.sweep import Sweep

# what the search may do beside the relaxation, and where it does so
WAYS = {
    "split": (SupportSearch, "_split"),
    "enumerate": (Sweep, "step"),
    "improve": (SupportSearch, "_improves"),
    "relax a branch": (SupportSearch, "_closes"),
    "cover": (SupportSearch, "_covering"),
}


def squares(q, n, seed=0):
    """Return Grams of single columns, and labels that depend on the squares of three of them."""
    X = np.random.default_rng(seed).standard_normal((n, q))
    away = (X[:, :3] ** 2).sum(axis=1)
    y = np.where(away > np.median(away), 1.0, -1.0)
    return np.exp(-0.5 * (X.T[:, :, None] - X.T[:, None, :]) ** 2), y


@pytest.fixture
def taken(monkeypatch):
    """Return the ways that the search has taken so far."""
    found = set()

    def told(name, method):
        def call(*arguments):
            found.add(name)
            return method(*arguments)

        return call

    for name, (owner, attribute) in WAYS.items():
        monkeypatch.setattr(owner, attribute, told(name, getattr(owner, attribute)))
    return found


def least_of_all(grams, y, k0, C, lam, wanted):
    """Return bounds between which the least over all supports lies, the lower one up to `wanted`.

    Each support that the multipliers of others do not bound by `wanted` is solved, exactly only
    where a rough solve does not prove so much.
    """
    supports = np.array(list(combinations(range(len(grams)), k0)))
    lower, best = np.full(len(supports), -np.inf), np.inf
    for tol, i in product((0.1, 1e-5), range(len(supports))):
        if lower[i] >= wanted:
            continue
        alone = solve_kernel_weights(
            grams[supports[i]], y, C=C, penalty=KSupport(lam), tol=tol, check=False
        )
        best, lower[i] = min(best, alone.upper_bound), max(lower[i], alone.lower_bound)
        (u,) = alone.solution.dual_coef
        halves = 0.5 * np.einsum("i,qij,j->q", u, grams, u)
        # 1ᵀα − βᵀhalves + λ‖β‖² at any β of the simplex of a support
        bounds = y @ u - halves[supports].max(axis=1) + lam / k0
        lower = np.maximum(lower, bounds * (1.0 - 1e-9))
    return lower.min(), best


ALL = {"split", "enumerate", "improve", "relax a branch", "cover"}


@pytest.mark.parametrize(
    ("q", "k0", "C", "lam", "ways"),
    [
        (6, 2, 1.0, 0.5, {"split"}),
        (12, 3, 10.0, 0.05, {"improve", "enumerate"}),
        pytest.param(20, 3, 10.0, 0.05, {"improve", "enumerate"}, marks=pytest.mark.slow),
        pytest.param(30, 4, 10.0, 0.05, {"improve", "enumerate"}, marks=pytest.mark.slow),
    ],
)
def test_no_support_is_below_the_proved_bound(taken, q, k0, C, lam, ways):
    check(taken, q, k0, C, lam, ways)


@pytest.mark.slow
def test_nor_where_the_relaxation_takes_over(taken, monkeypatch):
    """By itself it does from 35 kernels and k0 = 5 on; 27,405 supports are looked at one by one."""
    monkeypatch.setattr(search, "_LOOKED_AT", 20_000)
    monkeypatch.setattr(search, "_MOST_SOLVES", 32)
    check(taken, 30, 4, 10.0, 0.05, ALL)


def check(taken, q, k0, C, lam, ways):
    """Solve, and compare the bounds and the ways taken with those of all supports."""
    grams, y = squares(q, 40)
    found = solve_global(grams, y, C=C, lam=lam, k0=k0)
    assert taken == ways
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-4
    lower, best = least_of_all(grams, y, k0, C, lam, found.lower_bound)
    assert lower >= found.lower_bound
    assert lower <= found.upper_bound
    assert found.lower_bound <= best
    assert found.upper_bound <= best * (1.0 + 1e-4)
