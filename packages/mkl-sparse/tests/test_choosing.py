"""C, λ and k₀ by cross-validation within a fit."""

import numpy as np
import pytest
from kernelweave.kernels_core import RBF, KernelDictionary, Linear
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from sklearn.model_selection import KFold

# where kernelweave-relaxations is absent the default is Algorithm 1, whose gap may stay open
pytestmark = pytest.mark.filterwarnings("ignore:.*no step of the search")


def views(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12))
    y = (X[:, 0:2] ** 2).sum(axis=1) + (X[:, 4:6] ** 2).sum(axis=1) > 4
    columns = {str(v): [2 * v, 2 * v + 1] for v in range(6)}
    return X, y, KernelDictionary([RBF(0.5)], columns=columns)


def scores_of(model):
    """Return the scores of the folds, shape (n_settings, n_folds)."""
    results, n_folds = model.cv_results_, 0
    while f"split{n_folds}_test_score" in results:
        n_folds += 1
    return np.array([results[f"split{fold}_test_score"] for fold in range(n_folds)]).T


def test_the_number_of_views_is_found():
    X, y, kernels = views()
    model = SparseMKLClassifier(kernels, k0="cv", lam=0.1).fit(X, y)
    assert model.k0_ == 2
    assert [name for name, weight in model.view_weights_.items() if weight] == ["0", "2"]
    assert (model.C_, model.lam_) == (1.0, 0.1)
    assert model.cv_results_["param_k0"].tolist() == [1, 2, 3, 4, 5]
    assert scores_of(model).shape == (5, 5)
    plain = SparseMKLClassifier(kernels, k0=2, lam=0.1).fit(X, y)
    np.testing.assert_array_equal(plain.weights_, model.weights_)
    assert plain.cv_results_ is None
    assert plain.k0_ == 2


def test_lists_and_all_three_at_once():
    X, y, kernels = views()
    model = SparseMKLClassifier(kernels, C=[1.0, 10.0], lam="cv", k0=(1, 2), cv=3, choice="best")
    model.fit(X, y)
    results = model.cv_results_
    assert len(results["params"]) == 2 * 4 * 2
    best = results["params"][int(results["mean_test_score"].argmax())]
    assert {"C": model.C_, "lam": model.lam_, "k0": model.k0_} == best
    target = (X[:, 0] ** 2) + X[:, 4]
    number = SparseMKLRegressor([Linear(), RBF(0.5)], k0=[1, 2], C="cv", cv=KFold(3)).fit(X, target)
    assert number.C_ in (1.0, 10.0, 100.0)


@pytest.mark.parametrize("multiclass", ["shared", "ovr"])
def test_several_classes_weights_and_gram_matrices(multiclass):
    X, y, kernels = views()
    y = y + (X[:, 4] > 1.0)
    weight = np.arange(len(y)) % 3
    grams = PrecomputedGrams(kernels.fit_grams(X).grams)
    settings = {"k0": [1, 2], "cv": 3, "multiclass": multiclass, "class_weight": "balanced"}
    one = SparseMKLClassifier(kernels, **settings).fit(X, y, weight)
    other = SparseMKLClassifier("precomputed", **settings).fit(grams, y, weight)
    assert one.k0_ == other.k0_
    assert np.mean(one.predict(X) == other.predict(grams)) > 0.98


def test_no_limit_is_tried_above_what_there_is():
    X, y, kernels = views()
    kernels = KernelDictionary([RBF(0.5), Linear()], columns=kernels.columns)
    found = {}
    for given, settings in (
        ("kernels", {"kernels": [Linear(), RBF(0.5)]}),
        ("matrices", {"kernels": "precomputed"}),
        ("views", {"kernels": kernels, "n_views": 1}),
    ):
        points = kernels.fit_grams(X).grams[:3] if given == "matrices" else X
        model = SparseMKLClassifier(**settings, k0="cv", cv=2, tol=1e-2)
        if given == "views":
            pytest.importorskip("kernelweave.relaxations")
        found[given] = model.fit(points, y).cv_results_["param_k0"].tolist()
    assert found == {"kernels": [1, 2], "matrices": [1, 2, 3], "views": [1, 2]}


@pytest.mark.parametrize("wrong", ["all", [], [0, 1], [[1]], True])
def test_what_is_no_choice_is_refused(wrong):
    with pytest.raises(ValueError, match="k0 must be an integer >= 1"):
        SparseMKLClassifier(k0=wrong).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    "kind", [SparseMKLClassifier, pytest.param(SparseMKLRegressor, marks=pytest.mark.slow)]
)
def test_folds_of_factors_choose_what_folds_of_matrices_choose(kind):
    X, y, kernels = views()
    targets = y if kind is SparseMKLClassifier else X[:, 0] + (y == y[0])
    options = {"k0": [1, 2], "lam": [0.1, 100.0], "cv": 3, "random_state": 0, "tol": 1e-5}
    exact = kind(kernels, **options).fit(X, targets)
    options.update(approximation="nystroem", n_components=len(X))
    full = kind(kernels, **options).fit(X, targets)
    assert (full.k0_, full.lam_) == (exact.k0_, exact.lam_)
    np.testing.assert_allclose(scores_of(full), scores_of(exact), atol=1e-2)
    few = kind(kernels, **{**options, "n_components": 10, "tol": 1e-2}).fit(X, targets)
    assert scores_of(few).shape == scores_of(exact).shape


def test_splits_speak_of_all_samples_whatever_their_weight():
    X, y, kernels = views(60)
    target = X[:, 0] + y
    weight = np.tile([0.0, 1.0, 2.0], 20)
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    settings = {"C": [0.1, 10.0], "k0": 1, "scale": False}
    model = SparseMKLRegressor(kernels, cv=splits, **settings).fit(X, target, weight)
    doubled = np.repeat(np.arange(60), weight.astype(int))
    half = np.flatnonzero(doubled < 30), np.flatnonzero(doubled >= 30)
    rows = SparseMKLRegressor(kernels, cv=[half, half[::-1]], **settings)
    rows.fit(X[doubled], target[doubled])
    assert model.C_ == rows.C_
    np.testing.assert_allclose(scores_of(model), scores_of(rows), atol=1e-3)
    with pytest.raises(ValueError, match=r"cv must leave .* got fold 1 with none held out"):
        SparseMKLRegressor(kernels, cv=splits, **settings).fit(X, target, np.arange(60) < 30)
