from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelweave.mkl_sparse import project_sparse_simplex


def by_enumeration(w, k0):
    """Project on the simplex of every support and keep the nearest."""
    best = None
    for support in combinations(range(w.size), k0):
        part = np.sort(w[list(support)])[::-1]
        sums = np.cumsum(part) - 1
        r = np.flatnonzero(part * np.arange(1, k0 + 1) > sums)[-1]
        beta = np.zeros(w.size)
        beta[list(support)] = np.maximum(w[list(support)] - sums[r] / (r + 1), 0)
        if best is None or ((beta - w) ** 2).sum() < ((best - w) ** 2).sum() - 1e-12:
            best = beta
    return best


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    st.integers(1, 6),
)
@settings(max_examples=200, deadline=None)
def test_projection_is_the_nearest_sparse_point(values, k0):
    w = np.array(values)
    k = min(k0, w.size)
    found = project_sparse_simplex(w, k0)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found >= 0).all()
    assert np.count_nonzero(found) <= k
    distance = ((found - w) ** 2).sum()
    assert distance <= ((by_enumeration(w, k) - w) ** 2).sum() + 1e-9


@pytest.mark.parametrize("scale", [1.0, 1e7, 1e14, 1e300])
def test_the_sum_is_one_at_any_scale(scale):
    w = scale * np.array([1.0, 0.9999999, 0.5, 1.0])
    assert project_sparse_simplex(w, 3).sum() == pytest.approx(1.0, abs=1e-14)


def test_ties_go_to_the_lowest_index_and_the_cap_makes_ties():
    assert project_sparse_simplex([1.0, 1.0, 1.0], 2).tolist() == [0.5, 0.5, 0.0]
    w = [3e8, 1e9, 2e7, 5.0]
    assert project_sparse_simplex(w, 2).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert project_sparse_simplex(w, 3, cap=1e6).tolist() == pytest.approx([1 / 3] * 3 + [0.0])


@pytest.mark.parametrize(
    ("w", "k0", "message"), [([], 1, "w"), ([np.nan], 1, "w"), ([1.0], 0, "k0"), ([1.0], 1.5, "k0")]
)
def test_bad_arguments_are_named(w, k0, message):
    with pytest.raises(ValueError, match=message):
        project_sparse_simplex(w, k0)
