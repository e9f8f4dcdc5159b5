"""A Gram matrix in memory: its layout, and the checks against NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core import NotPSDError
from kernelweave.kernels_core.grams import _njit_grams, as_gram, check_gram
from kernelweave.kernels_core.grams._fill import asymmetry
from sklearn.metrics.pairwise import rbf_kernel


def test_a_contiguous_gram_is_not_copied():
    A = np.random.default_rng(0).normal(size=(20, 20))
    K = A @ A.T
    for array in (K, K.astype(np.float32), np.asfortranarray(K)):
        view = as_gram(array)
        assert np.shares_memory(view, array)
        assert not view.flags.writeable
    assert K.flags.writeable


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 127, 128, 129, 300])
def test_asymmetry_is_measured_in_tiles(n, dtype):
    K = np.random.default_rng(n).normal(size=(n, n)).astype(dtype)
    wide = K.astype(np.float64)
    assert asymmetry(K) == np.abs(wide - wide.T).max()


@pytest.mark.parametrize("skew", [0.0, 1e-12])
@pytest.mark.parametrize("n", [2, 63, 64, 65, 200])
def test_entries_are_compared_with_the_diagonal(n, skew):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n + 2))
    K = A @ A.T
    K = (K + K.T) / 2
    K[0, 1] += skew
    assert (check_gram(as_gram(K)) > 0.0) == (skew > 0.0)
    K[n - 1, 0] = K[0, n - 1] = 1.01 * np.sqrt(K[0, 0] * K[n - 1, n - 1])
    with pytest.raises(NotPSDError, match=f"its rows 0 and {n - 1} have"):
        check_gram(as_gram(K))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 47, 48, 49, 100])
def test_the_quick_answer_is_that_of_numpy(n, dtype):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    sound = ((A + A.T) / 2).astype(dtype)
    reach = np.full(n, np.sqrt(np.abs(sound).max() * 1.001))
    cases = [sound]
    for wrong in (np.nan, np.inf, 1.5 * np.abs(sound).max(), np.nextafter(sound[0, -1], dtype(9))):
        for i, j in ((0, n - 1), (n - 1, 0), (n // 2, n // 2)):
            other = sound.copy()
            other[i, j] = wrong
            cases.append(other)
            both = other.copy()
            both[j, i] = wrong
            cases.append(both)
    near, answers = 2.0**-16, []
    for share in (0.9, 1.1):
        other = sound.copy()
        other[n // 2, 0] += dtype(share * near * reach[0] ** 2)
        cases.append(other)
    for K in cases:
        with np.errstate(invalid="ignore"):
            is_sound, is_symmetric = _njit_grams.soundness(K, reach, near)
            close = np.abs(K - K.T) <= near * np.outer(reach, reach)
            within = np.abs(K) <= np.outer(reach, reach)
        answers.append(is_sound)
        assert is_sound == (close & within).all()
        assert is_symmetric == (is_sound and np.array_equal(K, K.T))
    assert answers[0]
    assert not all(answers)


def test_a_difference_within_rounding_is_bounded_without_being_measured():
    X = np.random.default_rng(0).normal(size=(150, 5))
    K = rbf_kernel(X)
    skew = np.abs(K - K.T).max()
    assert 0.0 < skew <= check_gram(as_gram(K)) <= 2e-14
    scale = np.geomspace(1e-6, 1e6, 150)
    wide = scale[:, None] * K * scale
    assert np.abs(wide - wide.T).max() <= check_gram(as_gram(wide)) <= 2e-14 * wide.max()
    more = K.copy()
    more[7, 120] += 1e-12
    assert check_gram(as_gram(more)) == np.abs(more - more.T).max()
