"""Sparse kernel weights with approximated kernels, against the exact ones."""

import pickle

import numpy as np
import pytest
from kernelweave.kernels_core import MemoryBudgetError, NotPSDError
from kernelweave.kernels_core.estimators import weights
from kernelweave.kernels_core.exceptions import ContradictoryBoundsError
from kernelweave.kernels_core.kernels import (
    RBF,
    FittedFactors,
    KernelDictionary,
    Laplacian,
    Linear,
    Sigmoid,
    fitted_factors,
)
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from scipy.sparse import csr_array

pytestmark = pytest.mark.filterwarnings("ignore:.*no step of the search")
KERNELS = [Linear(), RBF(0.1), RBF(1.0), Laplacian(0.3)]


def data(n=150, classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    value = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(n)
    return X, value, np.digitize(value, np.quantile(value, np.arange(1, classes) / classes))


def model(kind, **settings):
    options = {"k0": 2, "tol": 1e-9, "random_state": 0, "scale": True, **settings}
    return kind(KERNELS, **options)


@pytest.mark.filterwarnings("ignore:.*smkl-global")
@pytest.mark.parametrize("kind", [SparseMKLClassifier, SparseMKLRegressor])
def test_as_many_components_as_samples_reproduce_the_exact_fit(kind):
    pytest.importorskip("kernelweave.relaxations", reason="Algorithm 1 ends at a nearby optimum")
    X, value, label = data()
    y = label if kind is SparseMKLClassifier else value
    exact = model(kind).fit(X, y)
    full = model(kind, approximation="nystroem", n_components=len(X)).fit(X, y)
    assert (exact.approximation_, full.approximation_) == (None, "nystroem")
    assert full.result_.value == pytest.approx(exact.result_.value, rel=1e-8)
    np.testing.assert_allclose(full.weights_, exact.weights_, atol=1e-4)
    predict = "decision_function" if kind is SparseMKLClassifier else "predict"
    np.testing.assert_allclose(getattr(full, predict)(X), getattr(exact, predict)(X), atol=2e-3)


def test_bounds_of_the_exact_kernels_that_contradict_each_other_are_refused(monkeypatch):
    # quadratic forms of 0 bound the optimum by κ, which is far above it
    monkeypatch.setattr(FittedFactors, "exact_forms", lambda self, u: np.zeros(len(self)))
    X, _, y = data(40)
    with pytest.raises(ContradictoryBoundsError, match="exact kernels: the lower bound"):
        model(SparseMKLClassifier, tol=1e-3, approximation="nystroem", n_components=9).fit(X, y)


@pytest.mark.parametrize("most", [10**9, 0], ids=["pairs", "diagonals"])
@pytest.mark.parametrize("kind", [SparseMKLClassifier, SparseMKLRegressor])
@pytest.mark.parametrize("n_components", [3, 20, 60])
def test_both_certificates_hold_their_optimum(monkeypatch, kind, n_components, most):
    monkeypatch.setattr(fitted_factors, "_MOST_PAIRS", most)
    X, value, label = data()
    y = label if kind is SparseMKLClassifier else value
    exact = model(kind, tol=1e-6).fit(X, y).certificate_
    found = model(kind, tol=1e-4, approximation="nystroem", n_components=n_components).fit(X, y)
    own, of_exact = found.certificate_, found.exact_certificate_
    # approximated kernels have a higher optimum
    assert own.upper_bound >= exact.lower_bound
    assert of_exact.lower_bound <= exact.upper_bound
    assert of_exact.upper_bound >= exact.lower_bound
    assert own.lower_bound <= own.upper_bound
    assert "exact_certificate_" in own.lower_proof
    if n_components == 60:
        assert of_exact.lower_bound > 0.0


def test_predictions_are_those_of_the_learned_kernel():
    X, value, _ = data()
    found = model(SparseMKLRegressor, tol=1e-4, approximation="nystroem", n_components=20)
    found.fit(X, value)
    new = np.random.default_rng(1).standard_normal((9, 3))
    rows, coef = X[found.support_], found.dual_coef_[found.support_]
    np.testing.assert_allclose(
        found.predict(new), found.kernel_(new, rows) @ coef + found.intercept_, rtol=1e-6
    )
    same = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(same.predict(new), found.predict(new))


def test_sparse_points_are_approximated_as_dense_ones_are():
    X, value, _ = data()
    X[X < 0.0] = 0.0
    found = model(SparseMKLRegressor, tol=1e-5, approximation="nystroem", n_components=30)
    found.set_params(kernels=KERNELS[:3], scale=False)
    dense = found.fit(X, value).predict(X)
    # equal rows may be merged in another order, which draws other columns
    sparse = found.set_params(n_components=150).fit(csr_array(X), value).predict(csr_array(X))
    same = found.fit(X, value).predict(X)
    np.testing.assert_allclose(sparse, same, atol=1e-2)
    assert np.corrcoef(dense, same)[0, 1] > 0.9


@pytest.mark.parametrize("multiclass", ["shared", "ovr", "ovo"])
def test_several_classes(multiclass):
    X, _, y = data(classes=3)
    found = model(SparseMKLClassifier, tol=1e-3, approximation="nystroem", n_components=25)
    found.set_params(multiclass=multiclass, C=10.0).fit(X, y, sample_weight=np.arange(len(y)) % 3)
    assert found.score(X, y) > 0.7


def test_auto_approximates_above_a_fixed_size(monkeypatch):
    X, value, _ = data()
    quick = {"tol": 1e-3, "n_components": 30}
    assert model(SparseMKLRegressor, **quick).fit(X, value).approximation_ is None
    monkeypatch.setattr(weights, "EXACT_BYTES", 8 * 4 * 149**2)
    found = model(SparseMKLRegressor, **quick).fit(X, value)
    assert found.approximation_ == "nystroem"
    assert not hasattr(found.set_params(approximation=None).fit(X, value), "exact_certificate_")


def test_what_cannot_be_approximated_is_refused():
    X, value, y = data()
    with pytest.raises(ValueError, match="kernels='precomputed' gives their Gram matrices"):
        SparseMKLRegressor("precomputed", approximation="nystroem").fit(X @ X.T[None], value)
    odd = KernelDictionary([Linear(), Sigmoid(1.0, 0.0)], psd="drop")
    with pytest.raises(NotPSDError, match="set approximation=None"):
        SparseMKLClassifier(odd, approximation="nystroem").fit(X, y)
    with pytest.raises(ValueError, match="n_components must be"):
        SparseMKLClassifier(approximation="nystroem", n_components=0).fit(X, y)
    with pytest.raises(ValueError, match="approximation must be"):
        SparseMKLClassifier(approximation="exact").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="30 components of 4 kernels on 150 samples"):
        model(
            SparseMKLClassifier, approximation="nystroem", n_components=30, memory_limit=100_000
        ).fit(X, y)


def test_starts_that_need_matrices_say_so():
    X, _, y = data()
    search = model(SparseMKLClassifier, approximation="nystroem", n_components=20, tol=None)
    search.set_params(algorithm="smkl-best-response", init="sdp-3x3")
    with pytest.raises(ValueError, match="this needs Gram matrices"):
        search.fit(X, y)
    assert search.set_params(init="saddle").fit(X, y).score(X, y) > 0.7


def test_the_kept_problem_computes_its_factors_again():
    certify = pytest.importorskip("kernelweave.relaxations").certify
    X, _, y = data()
    found = model(SparseMKLClassifier, approximation="nystroem", n_components=20, tol=1e-4)
    again = certify(found.fit(X, y))
    assert again.lower_bound <= found.certificate_.upper_bound
    assert again.gap <= 2e-4


@pytest.mark.filterwarnings("ignore:.*smkl-global")
@pytest.mark.parametrize("k0", [2, "cv"])
def test_linear_kernels_of_few_columns_are_stored_as_columns(monkeypatch, k0):
    if k0 == "cv":
        # the k₀ of least error is that of one optimum or another, by rounding
        pytest.importorskip(
            "kernelweave.relaxations", reason="Algorithm 1 ends at a nearby optimum"
        )
    X, _, y = data(60)
    X = np.hstack([X, np.random.default_rng(1).standard_normal((60, 9))])
    kernels = KernelDictionary([Linear()], columns=[[j] for j in range(12)], normalize="trace")
    options = {"k0": k0, "C": 0.1, "tol": 1e-6, "random_state": 0}
    exact = SparseMKLClassifier(kernels, approximation=None, **options).fit(X, y)
    monkeypatch.setattr(fitted_factors, "_FEW_BYTES", 0)
    monkeypatch.setattr(KernelDictionary, "fit_grams", None)
    found = SparseMKLClassifier(kernels, **options).fit(X, y)
    assert found.approximation_ is None
    assert not hasattr(found, "exact_certificate_")
    assert found.kernel_support_.tolist() == exact.kernel_support_.tolist()
    assert found.certificate_.lower_bound <= exact.certificate_.upper_bound
    assert exact.certificate_.lower_bound <= found.certificate_.upper_bound
    np.testing.assert_allclose(found.decision_function(X), exact.decision_function(X), atol=5e-3)
    same = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(same.predict(X), found.predict(X))
