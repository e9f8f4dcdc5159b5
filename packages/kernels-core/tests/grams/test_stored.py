"""A Gram matrix in memory: its layout, and the compiled checks against NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.kernels_core.grams import _njit_grams, as_gram


def test_a_contiguous_gram_is_not_copied():
    A = np.random.default_rng(0).normal(size=(20, 20))
    K = A @ A.T
    for array in (K, K.astype(np.float32), np.asfortranarray(K)):
        view = as_gram(array)
        assert np.shares_memory(view, array)
        assert not view.flags.writeable
    assert K.flags.writeable


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_scan_matches_numpy(n):
    rng = np.random.default_rng(n)
    K = rng.normal(size=(n, n))
    K.flags.writeable = False
    largest, skew, finite, _ = _njit_grams.scan_gram(K, np.ones(n))
    upper = np.abs(np.triu(K)).max()
    assert upper <= largest <= np.abs(K).max()
    assert skew == np.abs(K - K.T).max()
    assert finite


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_scan_compares_with_the_diagonal(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    K, reach = A + A.T, np.abs(rng.normal(size=n)) + 0.5
    needed = reach * np.sqrt((np.abs(K) / np.outer(reach, reach)).max())
    assert _njit_grams.scan_gram(K, needed * (1.0 + 1e-12))[3]
    assert not _njit_grams.scan_gram(K, needed * (1.0 - 1e-12))[3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 47, 48, 49, 100])
def test_the_quick_answer_is_that_of_the_scan(n, dtype):
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
    answers = []
    for K in cases:
        _, skew, finite, within = _njit_grams.scan_gram(K, reach)
        answers.append(_njit_grams.is_sound(K, reach))
        assert answers[-1] == (skew == 0.0 and finite and within)
    assert answers[0]
    assert not all(answers)
