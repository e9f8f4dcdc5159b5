import pickle

import numpy as np
import pytest
from kernelweave.kernels_core import KernelDictionary, KernelWeaveWarning, NotPSDError
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.kernels_core.kernels import RBF, Linear, ScaledFeatures, as_sklearn_gp_kernel
from kernelweave.kernels_core.testing import check_kernel
from kernelweave.mkl_sparse import SparseMKLClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

# where kernelweave-relaxations is absent the default is Algorithm 1, whose gap may stay open
pytestmark = pytest.mark.filterwarnings("ignore:.*no step of the search")
KERNELS = [Linear(), RBF(0.1), RBF(1.0)]
ALGORITHM_1 = "smkl-best-response"


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.7, "in", "out")


@pytest.mark.parametrize("kernels", [None, KERNELS, KernelDictionary(KERNELS)])
def test_fit_finds_at_most_k0_kernels(kernels):
    X, y = data()
    model = SparseMKLClassifier(kernels, k0=2).fit(X, y)
    assert len(model.kernel_support_) <= 2
    assert model.weights_.sum() == pytest.approx(1.0)
    assert len(model.kernel_names_) == len(model.weights_)
    assert model.certificate_.lower_bound <= model.result_.value
    assert model.score(X, y) > 0.8
    same = SVC(kernel=pickle.loads(pickle.dumps(model.kernel_)), C=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        same.decision_function(X), model.decision_function(X), rtol=1e-4, atol=1e-4
    )


def test_the_learned_kernel_of_scaled_features_is_a_kernel():
    X, y = data()
    k = SparseMKLClassifier(k0=2).fit(X, y).kernel_
    assert isinstance(k, ScaledFeatures)
    np.testing.assert_allclose(k(X).diagonal(), k.diag(X))
    np.testing.assert_allclose((2 * k)(X), 2 * k(X))
    np.testing.assert_allclose((k + Linear())(X), k(X) + X @ X.T)
    process = GaussianProcessRegressor(as_sklearn_gp_kernel(k), alpha=1e-3).fit(X, X[:, 0])
    assert process.score(X, X[:, 0]) > 0.99
    check_kernel(k, X)


def test_support_means_samples_and_the_kernels_have_a_name_of_their_own():
    X, y = data()
    model = SparseMKLClassifier(k0=2, C=0.1).fit(X, y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.dual_coef_))
    np.testing.assert_array_equal(model.kernel_support_, np.flatnonzero(model.weights_))


def test_a_fitted_model_is_small_and_can_compute_its_gram_matrices_again():
    X, y = data(200)
    model = SparseMKLClassifier(k0=2).fit(X, y)
    assert len(pickle.dumps(model)) < 8 * 200 * 200
    problem = pickle.loads(pickle.dumps(model)).problem_
    K = problem.family.fit_grams(problem.X).gram(problem.X, model.weights_)
    u = np.asarray(model.result_.solution.dual_coef)[0]
    f = K @ u
    value = (
        0.5 * u @ f + model.C * np.maximum(0, 1 - problem.targets[0] * (f + model.intercept_)).sum()
    )
    total = value + model.lam * model.weights_ @ model.weights_
    assert total == pytest.approx(model.result_.value, rel=1e-6)


def test_precomputed_equals_the_kernels_themselves():
    X, y = data()
    order = np.lexsort(X.T[::-1])  # the order in which equal samples are merged
    X, y = X[order], y[order]
    grams = np.stack([k(X) for k in KERNELS])
    # a list is normalised to a mean diagonal of 1
    grams *= len(X) / grams.trace(axis1=1, axis2=2)[:, None, None]
    a = SparseMKLClassifier(KERNELS, k0=2).fit(X, y)
    b = SparseMKLClassifier("precomputed", k0=2).fit(grams, y)
    np.testing.assert_allclose(a.weights_, b.weights_, rtol=1e-12)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(grams), rtol=1e-9)
    with pytest.raises(ValueError, match="cross-Gram"):
        b.predict(grams[:2])


def test_precomputed_is_sliced_by_cross_validation():
    X, y = data()
    grams = KernelDictionary(KERNELS).fit_grams(X).grams
    stack = PrecomputedGrams(grams)
    scores = cross_val_score(SparseMKLClassifier("precomputed", k0=1), stack, y, cv=4)
    plain = cross_val_score(SparseMKLClassifier(KERNELS, k0=1, normalize=None), X, y, cv=4)
    np.testing.assert_array_equal(scores, plain)
    search = GridSearchCV(SparseMKLClassifier("precomputed"), {"k0": [1, 2]}, cv=3).fit(stack, y)
    assert search.predict(stack).shape == y.shape


def test_a_weight_of_zero_is_no_sample_precomputed():
    X, y = data()
    grams = KernelDictionary(KERNELS).fit_grams(X).grams
    weight = np.ones(len(y))
    weight[:5] = 0.0
    a = SparseMKLClassifier("precomputed", k0=1).fit(grams, y, weight)
    rest = grams[:, 5:, 5:]
    b = SparseMKLClassifier("precomputed", k0=1).fit(rest, y[5:])
    np.testing.assert_allclose(a.decision_function(grams)[5:], b.decision_function(rest), rtol=1e-9)


def test_indefinite_matrices_are_named_and_refused():
    _, y = data()
    bad = np.stack([np.eye(40), np.ones((40, 40)) - np.eye(40)])
    with pytest.raises(NotPSDError, match=r"K1 .*smallest eigenvalue -1"):
        SparseMKLClassifier("precomputed").fit(bad, y)


def three_classes():
    X, _ = data(60)
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def test_classes_share_the_weights():
    X, y = three_classes()
    model = SparseMKLClassifier(k0=2).fit(X, y)
    assert model.dual_coef_.shape == (3, 60)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize(("scheme", "n_parts"), [("ovr", 3), ("ovo", 3)])
def test_classes_with_weights_of_their_own(scheme, n_parts):
    X, y = three_classes()
    settings = {"k0": 1, "C": 5.0, "multiclass": scheme}
    model = SparseMKLClassifier(KERNELS, normalize=None, **settings).fit(X, y)
    assert len(model.estimators_) == len(model.weights_) == len(model.kernel_) == n_parts
    assert all(len(support) == 1 for support in model.kernel_support_)
    assert all(proof.lower_bound <= proof.upper_bound for proof in model.certificate_)
    assert model.decision_function(X).shape == (60, 3)
    assert model.score(X, y) > 0.9
    grams = KernelDictionary(KERNELS).fit_grams(X).grams
    same = SparseMKLClassifier("precomputed", **settings).fit(grams, y)
    np.testing.assert_array_equal(same.predict(grams), model.predict(X))
    cross = KernelDictionary(KERNELS).fit_grams(X).cross(X[:7])
    np.testing.assert_array_equal(same.predict(cross), model.predict(X[:7]))


def test_one_against_the_rest_is_the_binary_classifier():
    X, y = three_classes()
    model = SparseMKLClassifier(KERNELS, k0=1, multiclass="ovr").fit(X, y)
    one = SparseMKLClassifier(KERNELS, k0=1).fit(X, y == model.classes_[1])
    np.testing.assert_allclose(model.decision_function(X)[:, 1], one.decision_function(X))
    with pytest.raises(ValueError, match="multiclass must be"):
        SparseMKLClassifier(multiclass="all").fit(X, y)
    two = SparseMKLClassifier(KERNELS, k0=1, multiclass="ovo").fit(X, y == "low")
    assert not hasattr(two, "estimators_")


class Bent(RBF):
    """A kernel that nobody would prove positive semidefinite."""

    is_psd = None

    def _gram(self, X, Y):
        K = super()._gram(X, Y)
        return K - 0.9


def test_indefinite_kernels_are_named_dropped_clipped_or_kept_without_a_bound():
    X, y = data()
    kernels = [Bent(1.0), Linear(), RBF(0.1)]
    with pytest.raises(NotPSDError, match=r"Bent.*smallest eigenvalue"):
        SparseMKLClassifier(kernels, k0=1).fit(X, y)
    with pytest.warns(KernelWeaveWarning, match=r"Bent.*left out"):
        dropped = SparseMKLClassifier(KernelDictionary(kernels, psd="drop"), k0=1).fit(X, y)
    assert dropped.weights_.shape == (3,)
    assert dropped.weights_[0] == 0.0
    assert dropped.kernel_names_[dropped.kernel_support_[0]] in ("Linear()", "RBF(gamma=0.1)")
    with pytest.warns(KernelWeaveWarning, match=r"Bent.*set to zero"):
        clipped = SparseMKLClassifier(KernelDictionary(kernels, psd="clip"), k0=1).fit(X, y)
    assert np.isfinite(clipped.certificate_.lower_bound)
    with pytest.warns(KernelWeaveWarning, match=r"Bent.*no bound is claimed"):
        kept = SparseMKLClassifier(
            KernelDictionary(kernels, psd="keep"), k0=1, algorithm=ALGORITHM_1, init="random"
        ).fit(X, y)
    assert kept.certificate_.lower_bound == -np.inf
    assert "none" in kept.certificate_.lower_proof


def test_unknown_algorithms_and_absent_packages_are_named(monkeypatch):
    from kernelweave.kernels_core.exceptions import UnknownNameError
    from kernelweave.mkl_sparse import settings

    X, y = data()
    with pytest.raises(UnknownNameError, match="smkl"):
        SparseMKLClassifier(algorithm="smkl-nothing").fit(X, y)

    def absent(name):
        raise UnknownNameError(name)

    monkeypatch.setattr(settings, "get_algorithm", absent)
    with pytest.raises(ImportError, match="kernelweave-relaxations"):
        SparseMKLClassifier(algorithm="smkl-global").fit(X, y)
    model = SparseMKLClassifier().fit(X, y)
    assert model.result_.algorithm == ALGORITHM_1
    assert "kernelweave-relaxations, which is not installed" in model.certificate_.lower_proof


@pytest.mark.parametrize(
    "setting", [{"init": "random"}, {"init": [1.0, 0.0, 0.0]}, {"n_init": 3}, {"cap": 1e6}]
)
def test_settings_of_one_algorithm_need_its_name(setting):
    X, y = data()
    (name,) = setting
    with pytest.raises(ValueError, match=f"{name} is a setting of Algorithm 1: set algorithm="):
        SparseMKLClassifier(KERNELS, k0=1, **setting).fit(X, y)
    SparseMKLClassifier(KERNELS, k0=1, algorithm=ALGORITHM_1, **setting).fit(X, y)


def test_a_start_of_an_absent_package_names_it(monkeypatch):
    import sys

    X, y = data()
    monkeypatch.setitem(sys.modules, "kernelweave.relaxations", None)
    with pytest.raises(ImportError, match="kernelweave-relaxations"):
        SparseMKLClassifier(algorithm=ALGORITHM_1, init="sdp-3x3").fit(X, y)
