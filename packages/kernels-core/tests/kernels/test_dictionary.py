"""Dictionaries: names, views, normalisations, policies for indefinite kernels, test points."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.exceptions import (
    KernelWeaveWarning,
    MemoryBudgetError,
    NotPSDError,
)
from kernelweave.kernels_core.grams.psd import spectrum
from kernelweave.kernels_core.kernels import (
    PAPER_FIFTY,
    PAPER_TEN,
    RBF,
    KernelDictionary,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    default_kernels,
)
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import KernelCenterer


def diagonals_of(fitted, X):
    """Return kⱼ(xᵢ, xᵢ), shape (q, n)."""
    return np.stack([k.diag(X.astype(fitted.X.dtype)) for k in fitted.kernels])


def test_the_papers_ten_kernels_in_its_order():
    X = np.random.default_rng(0).normal(size=(5, 3))
    G = X @ X.T
    D2 = ((X[:, None] - X[None]) ** 2).sum(-1)
    D1 = np.abs(X[:, None] - X[None]).sum(-1)
    expected = [
        G,
        *((0.01 * G + 1) ** d for d in (2, 3, 5)),
        *(np.exp(-g * D2) for g in (0.5, 0.3, 0.1)),
        *(np.tanh(g * G + 1) for g in (0.5, 0.7)),
        np.exp(-0.3 * D1),
    ]
    assert len(PAPER_TEN) == 10
    for kernel, K in zip(PAPER_TEN, expected, strict=True):
        np.testing.assert_allclose(kernel(X), K, rtol=1e-12)
    assert PAPER_TEN.psd == "raise"
    assert list(default_kernels()) == [k for k in PAPER_TEN if not isinstance(k, Sigmoid)]


def test_the_papers_fifty_kernels():
    kernels = list(PAPER_FIFTY)
    counts = {c: sum(type(k) is c for k in kernels) for c in {type(k) for k in kernels}}
    assert counts == {Linear: 1, Polynomial: 18, RBF: 12, Sigmoid: 12, Laplacian: 7}
    assert len(set(PAPER_FIFTY.names)) == 50
    assert [k.gamma for k in kernels if type(k) is RBF] == [2.0**e for e in range(-6, 6)]
    assert [k.gamma for k in kernels if type(k) is Laplacian] == [2.0**e for e in range(-5, 2)]
    assert {(k.degree, k.gamma, k.coef0) for k in kernels if type(k) is Polynomial} == {
        (d, 0.01, c) for d in range(2, 11) for c in (0.0, 1.0)
    }
    assert {(k.gamma, k.coef0) for k in kernels if type(k) is Sigmoid} == {
        (g, c) for g in (0.01, 0.03, 0.1, 0.3) for c in (-1.0, 0.0, 1.0)
    }
    assert PAPER_FIFTY.psd == "clip"


def test_names_and_access():
    d = KernelDictionary({"a": Linear(), "b": RBF(0.5)})
    assert d.names == ("a", "b")
    assert d["b"] == d[1] == RBF(0.5)
    assert list(d) == [Linear(), RBF(0.5)]
    assert d[:1].names == ("a",)
    assert KernelDictionary([RBF(1.0), Linear(), RBF(1.0)]).names == (
        "RBF(gamma=1.0) #1",
        "Linear()",
        "RBF(gamma=1.0) #2",
    )
    assert KernelDictionary(d).names == d.names
    with pytest.raises(KeyError, match="no kernel 'c': there are a, b"):
        d["c"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "kernels is empty"),
        (("rbf",), "must be a list of kernels"),
        ((iter([RBF()]),), "iterator"),
        (([0.5],), "must hold kernels such as"),
        (([[RBF()], [Linear()]],), "columns must hold 2 views, got None"),
        (([[RBF()], [Linear()]], [[0]]), "columns must hold 2 views, got 1"),
    ],
)
def test_bad_dictionaries_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        KernelDictionary(*arguments).fit_grams([[0.0], [1.0]])


@pytest.mark.parametrize(("name", "value"), [("normalize", "cosine"), ("psd", "ignore")])
def test_bad_options_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be (None or )?one of .*got '{value}'"):
        KernelDictionary([RBF()], **{name: value}).fit_grams([[0.0]])
    with pytest.raises(ValueError, match="dtype must be one of 'float64', 'float32'"):
        KernelDictionary([RBF()]).fit_grams([[0.0]], dtype=int)


def test_views(wine):
    X = wine[0]
    flat = KernelDictionary([RBF(0.5), Linear()], columns=[[0, 1], [2]])
    assert flat.names == (
        "RBF(gamma=0.5).on([0, 1])",
        "Linear().on([0, 1])",
        "RBF(gamma=0.5).on([2])",
        "Linear().on([2])",
    )
    np.testing.assert_array_equal(flat.fit_grams(X).grams[2], RBF(0.5)(X[:, [2]]))
    nested = KernelDictionary([[RBF(0.5)], [Linear(), RBF(2.0)]], columns=[[0, 1], [2]])
    assert list(nested) == [RBF(0.5).on([0, 1]), Linear().on([2]), RBF(2.0).on([2])]
    mixed = KernelDictionary([RBF(0.5).on([0]), Linear()])
    np.testing.assert_array_equal(mixed.fit_grams(X).grams[0], RBF(0.5)(X[:, [0]]))


def test_a_dictionary_is_a_parameter_like_any_other():
    class Learner(BaseEstimator):
        def __init__(self, kernels=None):
            self.kernels = kernels

    estimator = Learner(KernelDictionary([Linear(), RBF(gamma=1.0)]))
    copy = clone(estimator)
    assert copy.kernels == estimator.kernels
    assert copy.kernels is not estimator.kernels
    copy.set_params(kernels__normalize="trace", kernels__kernels__1__gamma=5.0)
    assert copy.kernels == KernelDictionary([Linear(), RBF(gamma=5.0)], normalize="trace")
    assert estimator.kernels[1].gamma == 1.0
    assert pickle.loads(pickle.dumps(copy.kernels)) == copy.kernels
    named = clone(KernelDictionary({"a": RBF(0.5)}))
    assert named == KernelDictionary({"a": RBF(0.5)})
    assert hash(named) == hash(KernelDictionary({"a": RBF(0.5)}))


def test_fitting_changes_no_parameter(wine):
    d = KernelDictionary(PAPER_TEN, psd="drop", normalize="center-trace")
    before = pickle.dumps(d)
    with pytest.warns(KernelWeaveWarning):
        d.fit_grams(wine[0])
    assert pickle.dumps(d) == before


# ---- normalisations ----------------------------------------------------------------------


def test_normalisations_against_their_formulas(wine):
    train, test = wine
    kernel = Polynomial(degree=2)
    K, C, n = kernel(train), kernel(test, train), len(train)
    centerer = KernelCenterer().fit(K)
    scale = n / np.trace(centerer.transform(K))
    d, e = np.sqrt(K.diagonal()), np.sqrt(kernel.diag(test))
    expected = {
        None: (K, C),
        "trace": (K * n / np.trace(K), C * n / np.trace(K)),
        "unit-diagonal": (K / np.outer(d, d), C / np.outer(e, d)),
        "center": (centerer.transform(K), centerer.transform(C)),
        "center-trace": (scale * centerer.transform(K), scale * centerer.transform(C)),
    }
    for normalize, (gram, cross) in expected.items():
        fitted = KernelDictionary([kernel], normalize=normalize).fit_grams(train)
        atol = 1e-12 * np.abs(gram).max()
        np.testing.assert_allclose(fitted.grams[0], gram, rtol=1e-11, atol=atol)
        np.testing.assert_allclose(fitted.cross(test)[0], cross, rtol=1e-11, atol=atol)


@pytest.mark.parametrize("normalize", [None, "trace", "unit-diagonal", "center", "center-trace"])
def test_fitted_kernels_agree_with_their_grams(clipped, wine, normalize):
    train, test = wine
    fitted = clipped[normalize]
    scale = np.abs(fitted.grams).max(axis=(1, 2), keepdims=True)
    assert np.array_equal(fitted.grams, fitted.grams.transpose(0, 2, 1))
    np.testing.assert_allclose((fitted.cross(train) - fitted.grams) / scale, 0.0, atol=1e-12)
    diagonal = np.einsum("qii->qi", fitted.grams)
    np.testing.assert_allclose(
        (diagonals_of(fitted, train) - diagonal) / scale[:, 0], 0.0, atol=1e-12
    )
    for j, kernel in enumerate(fitted.kernels):
        both = kernel(np.vstack([train, test]))
        n = len(train)
        np.testing.assert_allclose(
            both[n:, :n] / scale[j], fitted.cross(test)[j] / scale[j], atol=1e-9
        )
        np.testing.assert_allclose(
            both.diagonal()[n:] / scale[j], diagonals_of(fitted, test)[j] / scale[j], atol=1e-9
        )
        assert spectrum(both).lambda_min > -1e-9 * spectrum(both).lambda_max


def test_centred_grams_have_no_mean_and_trace_ones_mean_one(clipped):
    np.testing.assert_allclose(clipped["center"].grams.sum(axis=2), 0.0, atol=1e-10)
    for normalize in ("trace", "center-trace"):
        traces = np.einsum("qii->q", clipped[normalize].grams)
        np.testing.assert_allclose(traces, clipped[normalize].grams.shape[1], rtol=1e-12)
    assert (np.einsum("qii->qi", clipped["unit-diagonal"].grams) == 1.0).all()


def test_kernels_that_cannot_be_normalised_are_named():
    X = np.array([[0.0, 1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match=r"Linear\(\).on\(\[0\]\) has trace 0"):
        KernelDictionary([Linear().on([0])], normalize="trace").fit_grams(X)
    with pytest.raises(ValueError, match="has trace"):
        KernelDictionary([RBF().on([0])], normalize="center-trace").fit_grams(X)
    with pytest.raises(ValueError, match="negative diagonal value"):
        KernelDictionary([Sigmoid(0.1, -1.0)], normalize="unit-diagonal", psd="keep").fit_grams(X)
    unit = KernelDictionary([Linear().on([0])], normalize="unit-diagonal").fit_grams(X)
    assert not unit.grams.any()


# ---- the fitted dictionary and the family protocol -----------------------------------------


def test_combinations(clipped, wine):
    train, test = wine
    fitted = clipped["trace"]
    weights = np.random.default_rng(0).dirichlet(np.ones(10))
    weights[2] = 0.0
    K = fitted.gram(train, weights)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K, np.tensordot(weights, fitted.grams, 1), rtol=1e-12, atol=1e-14)
    kernel = pickle.loads(pickle.dumps(fitted.kernel(weights)))
    assert len(kernel.kernels) == 9
    np.testing.assert_allclose(
        kernel(test, train),
        np.tensordot(weights, fitted.cross(test), 1),
        rtol=1e-11,
        atol=1e-12,
    )
    np.testing.assert_allclose(kernel(train), K, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernel.diag(test), weights @ diagonals_of(fitted, test), rtol=1e-11)
    assert not fitted.kernel(np.zeros(10))(test, train).any()
    with pytest.raises(ValueError, match="weights must be 10 finite numbers"):
        fitted.gram(train, weights[:9])


def test_combined_kernel_of_a_plain_dictionary_forgets_the_training_points(wine):
    fitted = default_kernels().fit_grams(wine[0])
    assert len(pickle.dumps(fitted.kernel(np.ones(8)))) < 3000


def test_the_family_protocol_needs_no_stack(wine):
    train, test = wine
    weights = np.arange(8.0) / 28.0
    d = default_kernels()
    assert d.name == "dictionary"
    fitted = d.fit_grams(train)
    np.testing.assert_allclose(d.gram(train, weights), fitted.gram(train, weights), rtol=1e-13)
    cross = np.tensordot(weights, fitted.cross(test), 1)
    np.testing.assert_allclose(d.gram(test, weights, train), cross, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(d.kernel(weights)(test, train), cross, rtol=1e-12, atol=1e-14)
    unit = KernelDictionary(d, normalize="unit-diagonal")
    np.testing.assert_allclose(
        unit.gram(train, weights), unit.fit_grams(train).gram(train, weights), rtol=1e-13
    )
    with pytest.raises(ValueError, match="normalize='trace' needs training points"):
        KernelDictionary(d, normalize="trace").gram(train, weights)
    with pytest.raises(ValueError, match=r"psd='clip' of Sigmoid.* needs training points"):
        KernelDictionary(PAPER_TEN, psd="clip").kernel(np.ones(10))
    with pytest.raises(NotPSDError, match="Sigmoid"):
        PAPER_TEN.gram(train, np.ones(10))
    PAPER_TEN.gram(train, np.array([1.0] * 7 + [0.0, 0.0, 1.0]))


def test_a_fitted_dictionary_is_a_family(clipped, wine):
    train, test = wine
    family = fitted = clipped["center-trace"]
    weights = np.full(10, 0.1)
    assert (family.name, len(family), family.names) == ("dictionary", 10, fitted.names)
    assert family.fit_grams(train.copy()) is fitted
    combined = np.tensordot(weights, fitted.grams, 1)
    np.testing.assert_allclose(family.gram(train.copy(), weights), combined, atol=1e-12)
    cross = np.tensordot(weights, fitted.cross(test), 1)
    np.testing.assert_allclose(family.gram(test, weights, train), cross, atol=1e-11)
    np.testing.assert_allclose(family.kernel(weights)(test, train), cross, atol=1e-11)
    np.testing.assert_allclose(
        family.gram(test, weights).diagonal(), weights @ diagonals_of(family, test), rtol=1e-9
    )
    with pytest.raises(ValueError, match="fitted on other samples"):
        family.fit_grams(test)
    with pytest.raises(ValueError, match="fitted on other samples"):
        family.fit_grams(train, np.float32)


def test_the_default_family():
    assert KernelDictionary.from_data(np.eye(3)) == default_kernels()


def test_float32(wine):
    train, test = wine
    with pytest.warns(KernelWeaveWarning):
        half = KernelDictionary(PAPER_TEN, normalize="trace", psd="clip").fit_grams(
            train, np.float32
        )
    with pytest.warns(KernelWeaveWarning):
        full = KernelDictionary(PAPER_TEN, normalize="trace", psd="clip").fit_grams(train)
    assert (
        half.grams.dtype == half.cross(test).dtype == diagonals_of(half, test).dtype == np.float32
    )
    assert half.gram(train, np.ones(10)).dtype == np.float32
    np.testing.assert_allclose(half.grams, full.grams, rtol=1e-4, atol=1e-4)
    assert np.array_equal(half.grams, half.grams.transpose(0, 2, 1))
    proved = [j for j in range(10) if j not in (7, 8)]
    np.testing.assert_allclose(half.cross(test)[proved], full.cross(test)[proved], atol=1e-4)


def test_sparse_training_points():
    A = scipy.sparse.random_array((25, 6), density=0.4, rng=np.random.default_rng(1))
    d = KernelDictionary([Linear(), Polynomial(2), RBF(0.5)], normalize="center")
    sparse, dense = d.fit_grams(A), d.fit_grams(A.toarray())
    np.testing.assert_allclose(sparse.grams, dense.grams, atol=1e-13)
    np.testing.assert_allclose(
        sparse.cross(A.tocsr()[:7]), dense.cross(A.toarray()[:7]), atol=1e-13
    )
    with pytest.raises(ValueError, match="both be sparse or both dense"):
        sparse.cross(A.toarray())


def test_memory_is_asked_for_before_the_work(wine):
    n = len(wine[0])
    with (
        config_context(memory_limit=8 * 8 * n * n - 1),
        pytest.raises(MemoryBudgetError, match=f"8 Gram matrices of {n} x {n} samples.*use fewer"),
    ):
        default_kernels().fit_grams(wine[0])
    with config_context(memory_limit=8 * 8 * n * n):
        fitted = default_kernels().fit_grams(wine[0])
    with config_context(memory_limit=1000), pytest.raises(MemoryBudgetError):
        fitted.cross(wine[1])


def test_overflow_names_the_kernel():
    X = np.full((3, 1), 1e20)
    with pytest.raises(ValueError, match=r"Polynomial.*overflows"):
        KernelDictionary([Linear(), Polynomial(degree=3)]).fit_grams(X)


def test_new_points_are_checked(clipped):
    with pytest.raises(ValueError, match="X_new has 2 features, the dictionary was fitted on 13"):
        clipped[None].cross([[1.0, 2.0]])
    with pytest.raises(ValueError, match="X_new contains NaN"):
        clipped[None].cross([[np.nan] * 13])


def test_no_warning_where_nothing_is_repaired(wine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = KernelDictionary(default_kernels(), psd="clip").fit_grams(wine[0])
    assert fitted.dropped == fitted.clipped == {}
