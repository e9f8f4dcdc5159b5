"""Lower bounds of output kernels from a C whose directions are scaled to one level."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core import Problem, solve
from kernelweave.vv_rkhs import PrecomputedFamily, SeparableKernels, VectorLeastSquares
from kernelweave.vv_rkhs.bounds import rescale_directions


@pytest.mark.parametrize("lam", [1e-1, 1e-3])
def test_rescaled_multipliers_prove_more_and_never_too_much(lam: float) -> None:
    """Next to the C of L = I, which is far from the optimum: the best scaling, and the bound."""
    rng = np.random.default_rng(0)
    X, l, n = np.sort(rng.random(30)), 30, 5
    K = np.exp(-9.0 * (X[:, None] - X) ** 2)
    Y = np.sin(6.0 * X)[:, None] * rng.standard_normal(n) + 0.1 * rng.standard_normal((l, n))
    C = np.linalg.solve(K + lam * l * np.eye(l), Y)

    def bound(C: np.ndarray) -> float:
        top = float(np.linalg.eigvalsh(C.T @ K @ C)[-1])
        return lam * (2.0 * float((C * Y).sum()) - lam * l * float((C**2).sum()) - n * top)

    B = C.T @ K @ C
    best = rescale_directions(C, B, Y, lam * l, float(n))
    V = np.linalg.eigh(B)[1]
    w = np.diag(V.T @ np.linalg.lstsq(C, best, rcond=None)[0] @ V)
    for j in range(n):
        for factor in (0.99, 1.01):
            moved = w * np.where(np.arange(n) == j, factor, 1.0)
            assert bound((C @ V * moved) @ V.T) <= bound(best) * (1.0 + 1e-9)
    case = Problem(
        PrecomputedFamily(K[None]),
        VectorLeastSquares(lam),
        SeparableKernels(learn_input=False),
        np.arange(float(l))[:, None],
        Y.T,
    )
    result = solve(case, "vv-spg", tol=1e-7)
    least, most = (2.0 * lam * each for each in (result.lower_bound, result.upper_bound))
    assert bound(C) < bound(best) <= most
    value = lam * float((C * Y).sum())
    assert value - bound(best) < 0.8 * (value - bound(C))
    assert bound(rescale_directions(C, B, 0.0 * Y, lam * l, float(n))) <= least


def test_levels_save_steps() -> None:
    """To a gap of 1e-4: 57 steps without."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    shared = np.sin(2 * X @ rng.standard_normal((3, 5)))
    Y = shared @ rng.standard_normal((5, 60)) + 0.3 * rng.standard_normal((120, 60))
    case = Problem(
        PrecomputedFamily(K[None]),
        VectorLeastSquares(1e-3),
        SeparableKernels(learn_input=False),
        np.arange(120.0)[:, None],
        Y.T,
    )
    result = solve(case, "vv-spg", tol=1e-4)
    assert result.gap <= 1e-4
    assert result.n_iter <= 40
