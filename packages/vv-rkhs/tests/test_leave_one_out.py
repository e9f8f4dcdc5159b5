"""Errors at left-out samples against fits without them."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core import RBF
from kernelweave.vv_rkhs import solve_sylvester
from kernelweave.vv_rkhs.leave_one_out import LeaveOneOut


@pytest.mark.parametrize("coupled", [False, True])
def test_each_error_is_that_of_a_fit_without_the_sample(coupled: bool) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((12, 2)), rng.standard_normal((12, 3))
    K = RBF(0.5)(X, X)
    A = rng.standard_normal((3, 3))
    L = A @ A.T if coupled else np.eye(3)
    found = LeaveOneOut(K).errors(Y, 0.3, L if coupled else None)
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        C = solve_sylvester(K[np.ix_(rest, rest)], L, Y[rest], 0.3, method="eigen").C
        np.testing.assert_allclose(found[i], Y[i] - K[i, rest] @ C @ L, atol=1e-10)


def test_sizes_that_do_not_match_are_named() -> None:
    with pytest.raises(ValueError, match="L must have shape"):
        LeaveOneOut(np.eye(2)).errors(np.ones((2, 1)), 1.0, np.eye(2))
