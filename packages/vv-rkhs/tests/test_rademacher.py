"""The Rademacher bound is never below a Monte-Carlo average."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.vv_rkhs import rademacher_bound
from sklearn.utils import check_random_state


def average(grams: np.ndarray, L: np.ndarray, p: float, lam: float) -> tuple[float, float]:
    """Return the complexity by 400 draws of the signs, and its standard error.

    For one draw S the supremum is (λ/l) ‖(√⟨Kⱼ, S L Sᵀ⟩)ⱼ‖_q, 1/p + 1/q = 1.
    """
    rng, values = check_random_state(0), list[float]()
    q = np.inf if p == 1.0 else p / (p - 1.0)
    for _ in range(400):
        signs = rng.choice([-1.0, 1.0], size=(grams.shape[1], len(L)))
        forms = np.einsum("jik,ik->j", grams, signs @ L @ signs.T)
        values.append(lam * np.linalg.norm(np.sqrt(np.maximum(forms, 0.0)), q) / len(signs))
    return float(np.mean(values)), float(np.std(values) / np.sqrt(len(values)))


@pytest.mark.parametrize("p", [1.0, 1.1, 4.0 / 3.0, 1.5, 1.7, 2.0, 3.0])
@pytest.mark.parametrize("m", [1, 3, 40])
@pytest.mark.parametrize("rank", [1, 4])
def test_bound_is_above_the_average(p: float, m: int, rank: int) -> None:
    rng = np.random.default_rng(m)
    X = rng.standard_normal((25, m))
    grams = np.exp(-0.5 * (X.T[:, :, None] - X.T[:, None, :]) ** 2) * rng.random((m, 1, 1))
    R = rng.standard_normal((4, rank))
    L = R @ R.T
    mean, error = average(grams, L, p, 2.0)
    bound = rademacher_bound(grams, p, 2.0, float(np.trace(L)))
    assert mean + 4.0 * error <= bound
    assert bound <= 12.0 * mean, "a bound, not a platitude"


def test_separable_forms_of_the_theorem_are_not_smaller() -> None:
    m, l, kappa, tau, lam = 40, 25, 1.0, 3.0, 2.0
    grams = np.tile(np.eye(l), (m, 1, 1))
    eta_0 = 23.0 / 22.0
    ours = rademacher_bound(grams, 1.0, lam, tau)
    theirs = lam * np.sqrt(eta_0 * np.e * np.ceil(2 * np.log(m)) * kappa * tau / l)
    assert ours <= theirs * (1 + 1e-12)
    assert rademacher_bound(grams, 2.0, lam, tau) <= lam * m**0.5 * np.sqrt(
        eta_0 * 2 * kappa * tau / l
    ) * (1 + 1e-12)


def test_bad_input_is_named() -> None:
    for p in (0.5, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match="p must be"):
            rademacher_bound(np.eye(2)[None], p, 1.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tau must be"):
        rademacher_bound(np.eye(2)[None], 1.0, 1.0, -1.0)
    with pytest.raises(ValueError, match="n_kernels"):
        rademacher_bound(np.eye(2), 1.0, 1.0, 1.0)
