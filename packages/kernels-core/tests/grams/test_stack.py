import numpy as np
import pytest
from kernelweave.kernels_core import NotPSDError, config_context
from kernelweave.kernels_core.grams import GramStack


@pytest.fixture
def grams():
    """Return four Gram matrices of different shape and scale."""
    X = np.random.default_rng(0).standard_normal((24, 3))
    square = ((X[:, None] - X[None]) ** 2).sum(-1)
    rbf = [np.exp(-(2.0**e) * square) for e in (-2, -1)]
    return np.stack([X @ X.T, (0.1 * X @ X.T + 1.0) ** 2, *rbf])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_and_forms_equal_numpy(grams, dtype):
    grams = grams.astype(dtype)
    stack = GramStack(grams)
    weights = np.array([0.2, 0.0, 0.5, 0.3])
    expected = np.einsum("j,jkl->kl", weights, grams.astype(float))
    np.testing.assert_allclose(stack.combine(weights), expected, rtol=1e-14, atol=1e-14)
    u = np.linspace(-1.0, 1.0, grams.shape[1])
    forms = stack.quadratic_forms(u)
    exact = np.einsum("k,jkl,l->j", u, grams.astype(float), u)
    np.testing.assert_allclose(forms, exact, rtol=1e-11)
    assert (forms >= exact * (1 - 1e-15)).all()


def test_a_sum_is_taken_in_order_whatever_the_types_and_the_zeros():
    rng = np.random.default_rng(0)
    grams = [np.full((5, 5), rng.random()).astype(rng.choice(["f4", "f8"])) for _ in range(23)]
    grams[:4] = [K.astype(np.float32) for K in grams[:4]]
    weights = np.where(np.arange(23) % 7 == 3, 0.0, rng.random(23))
    expected = np.zeros((5, 5))
    for K, weight in zip(grams, weights, strict=True):
        expected += weight * K.astype(np.float64)
    assert np.array_equal(GramStack(grams, check=False).combine(weights), expected)


def test_grams_are_not_copied_and_a_list_serves(grams):
    assert all(np.shares_memory(K, grams) for K in GramStack(grams).matrices)
    assert len(GramStack(list(grams))) == len(grams)


def test_threads_give_the_same_bits():
    K = np.random.default_rng(0).random((3, 2100, 2100))
    K = K + K.transpose(0, 2, 1)
    stack, u = GramStack(K, check=False), np.ones(2100)
    weights = np.array([0.1, 0.2, 0.7])
    with config_context(n_threads=1):
        one, forms = stack.combine(weights), stack.quadratic_forms(u)
    with config_context(n_threads=2):
        assert np.array_equal(stack.combine(weights), one)
        assert np.array_equal(stack.quadratic_forms(u), forms)


@pytest.mark.parametrize(
    ("grams", "message"),
    [
        (np.zeros((0, 2, 2)), "q >= 1"),
        (np.eye(2), "shape"),
        ([np.eye(2), np.eye(3)], "one shape"),
        (np.array([[[1.0, np.nan], [np.nan, 1.0]]]), r"grams\[0\]"),
        (np.array([[[1.0, 2.0], [0.0, 1.0]]]), "symmetric"),
    ],
)
def test_bad_grams_are_named(grams, message):
    with pytest.raises(ValueError, match=message):
        GramStack(grams)


def test_indefinite_grams_are_named_and_measured():
    with pytest.raises(NotPSDError, match=r"grams\[1\].*smallest eigenvalue -1"):
        GramStack([np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])])
