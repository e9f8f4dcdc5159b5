"""Views of tables: columns by name, by a selector, transformed; sparse X; kernels by name."""

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import RBF, KernelDictionary, Laplacian, Linear
from kernelweave.kernels_core.estimators.folds import Scores
from kernelweave.mkl_sparse import (
    SparseMKLClassifier,
    SparseMKLRegressor,
    SparseSimplex,
    sparse_mkl_path,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

# where kernelweave-relaxations is absent the default is Algorithm 1, whose gap may stay open
pytestmark = pytest.mark.filterwarnings("ignore:.*no step of the search")
WORDS = np.array(["good", "bad", "fine", "poor", "great", "awful"])


def table(n=60):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    reviews = [" ".join(rng.choice(WORDS[1 - label :: 2], 3)) + " thing" for label in y]
    columns = {"age": rng.normal(40, 9, n), "size": rng.standard_normal(n), "review": reviews}
    return pd.DataFrame(columns), y


def text_and_numbers():
    return KernelDictionary(
        [["rbf", "laplacian"], ["linear"]],
        columns={
            "numbers": (StandardScaler(), make_column_selector(dtype_include="number")),
            "text": (TfidfVectorizer(), "review"),
        },
    )


def test_a_text_view_beside_a_numeric_one():
    X, y = table()
    model = SparseMKLClassifier(text_and_numbers(), k0=1).fit(X, y)
    assert model.kernel_names_ == ("rbf on numbers", "laplacian on numbers", "linear on text")
    assert model.view_weights_ == {"numbers": 0.0, "text": 1.0}
    assert model.kernel_support_.tolist() == [2]
    assert model.feature_names_in_.tolist() == ["age", "size", "review"]
    assert model.score(X, y) == 1.0
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"age": "years"}))
    # a search by folds learns the words and the spread of each training part
    found = GridSearchCV(clone(model), {"k0": [1, 2]}, cv=3).fit(X, y)
    assert found.best_score_ > 0.9
    chosen = clone(model).set_params(k0=[1, 2], cv=3).fit(X, y)
    assert chosen.cv_results_["mean_test_score"][0] > 0.9


@pytest.mark.parametrize("multiclass", ["shared", "ovr", "ovo"])
def test_views_of_several_classes(multiclass):
    X, y = table()
    y = y + (X["size"] > 0.8).to_numpy()
    model = SparseMKLClassifier(text_and_numbers(), k0=2, C=10.0, multiclass=multiclass).fit(X, y)
    views = [model.view_weights_] if multiclass == "shared" else model.view_weights_
    for view in views:
        assert list(view) == ["numbers", "text"]
        assert sum(view.values()) == pytest.approx(1.0)
    assert model.score(X, y) > 0.9


def test_names_select_the_columns_that_positions_do():
    X, y = table()
    by_name = KernelDictionary([RBF(0.1)], columns=[["age"], "size", slice("age", "size")])
    places = KernelDictionary([RBF(0.1)], columns=[[0], [1], [0, 1]])
    one = SparseMKLClassifier(by_name, k0=2).fit(X, y)
    other = SparseMKLClassifier(places, k0=2).fit(X[["age", "size"]].to_numpy(), y)
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert list(one.view_weights_) == ["['age']", "size", "slice('age', 'size', None)"]
    assert list(other.view_weights_) == ["[0]", "[1]", "[0, 1]"]


def test_views_without_names_are_all_kept():
    X, y = table()
    numbers = make_column_selector(dtype_include="number")
    same = (TfidfVectorizer(), "review")
    dictionary = KernelDictionary(["linear"], columns=[numbers, same, same])
    model = SparseMKLClassifier(dictionary, k0=1).fit(X, y)
    names = ["make_column_selector", "review", "review (2)"]
    assert model.kernel_names_ == tuple(f"linear on {name}" for name in names)
    assert model.view_weights_[names[0]] == 0.0
    nested = KernelDictionary([["linear"], ["rbf", "linear"]], columns=[["age"], ["age"]])
    names = SparseMKLClassifier(nested, k0=1).fit(X, y).kernel_names_
    assert names == ("linear on ['age']", "rbf on ['age'] (2)", "linear on ['age'] (2)")


def test_views_that_cannot_be_read_are_refused():
    X, y = table()
    for columns, message in (
        ([["review"]], r"view \['review'\]: could not convert .*TfidfVectorizer"),
        ({"body": ["agee"]}, "view body has the column 'agee', .* did you mean 'age'?"),
        (
            {"text": (TfidfVectorizer(), "word")},
            "view text has the column 'word', which X does not",
        ),
        ({"dates": make_column_selector(dtype_include="datetime")}, "view dates selects no column"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseMKLClassifier(KernelDictionary(["rbf"], columns=columns), k0=1).fit(X, y)
    with pytest.raises(ValueError, match="by name, 'age', and X has no names: pass a Data"):
        SparseMKLClassifier(KernelDictionary(["rbf"], columns=[["age"]])).fit(np.eye(4), [0, 1] * 2)
    with pytest.raises(ValueError, match=r"view \['age'\] are known once a table is read"):
        KernelDictionary(["rbf"], columns=[["age"]]).fit_grams(X)


@pytest.mark.parametrize("kind", [SparseMKLClassifier, SparseMKLRegressor])
def test_sparse_points_give_the_model_of_dense_ones(kind):
    pytest.importorskip("kernelweave.relaxations", reason="Algorithm 1 ends at a nearby optimum")
    X, y = table()
    words = TfidfVectorizer().fit_transform(X["review"])
    weight = np.arange(len(y)) % 3
    kernels = ["linear", RBF(0.5), Laplacian(0.1).on([0, 1])]
    # of targets in units of their spread the optimum is so flat that no gap fixes six digits
    as_it_is = {"units": "absolute"} if kind is SparseMKLRegressor else {}
    models = [
        kind(kernels, k0=2, tol=1e-8, **as_it_is).fit(points, y, weight)
        for points in (words, sparse.csr_array(words), words.toarray())
    ]
    for model, points in zip(models[:2], (words, sparse.csr_array(words)), strict=True):
        np.testing.assert_allclose(model.weights_, models[2].weights_, atol=1e-6)
        np.testing.assert_allclose(
            model.predict(points), models[2].predict(words.toarray()), atol=1e-4
        )
    with pytest.raises(TypeError, match=r"Sparse data .* dense: pass kernels such as \['linear'"):
        kind().fit(words, y)
    with pytest.raises(TypeError, match=r"Sparse data .* dense: set scale=False, or"):
        kind(kernels, scale=True).fit(words, y)
    with pytest.raises(TypeError, match="does not accept sparse samples"):
        kind(["laplacian"]).fit(words, y)


def test_kernels_by_name_have_the_width_of_their_view():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 3)) * [1.0, 2.0, 3.0]
    names = ["linear", "polynomial", "rbf", "laplacian"]
    fitted = KernelDictionary(names, columns=[[1, 2]]).fit_grams(X)
    gamma = 1.0 / (2 * X[:, 1:].var())
    assert fitted.kernels[0] == Linear().on([1, 2])
    assert fitted.kernels[1].kernel.gamma == pytest.approx(gamma)
    assert fitted.kernels[2].kernel.gamma == pytest.approx(gamma)
    assert fitted.kernels[3].kernel.gamma == pytest.approx(1.0 / (2 * X[:, 1:].std()))
    same = KernelDictionary(["rbf"]).fit_grams(sparse.csr_array(X)).kernels[0].gamma
    assert same == pytest.approx(1.0 / (3 * X.var()))
    assert KernelDictionary(["rbf"]).fit_grams(np.ones((3, 2))).kernels[0] == RBF(1.0)
    with pytest.raises(ValueError, match="got 'rfb', did you mean 'rbf'"):
        KernelDictionary(["rfb"]).fit_grams(X)
    with pytest.raises(ValueError, match="width of 'rbf' comes from training points"):
        KernelDictionary(["rbf"]).gram(X, [1.0])


@pytest.mark.parametrize("multiclass", ["shared", "ovr", "ovo"])
def test_few_views_and_one_kernel_of_each(multiclass):
    pytest.importorskip("kernelweave.relaxations")
    X, y = table()
    y = y + (X["size"] > 0.8).to_numpy()
    settings = {"k0": 1, "C": 10.0, "multiclass": multiclass}
    model = SparseMKLClassifier(text_and_numbers(), n_views=2, **settings).fit(X, y)
    for part in [model] if multiclass == "shared" else model.estimators_:
        assert np.count_nonzero(part.weights_[:2]) <= 1
        assert part.certificate_.gap <= 1e-4
    one = SparseMKLClassifier(text_and_numbers(), n_views=1, **settings).fit(X, y)
    for views in [one.view_weights_] if multiclass == "shared" else one.view_weights_:
        assert sorted(views.values()) == [0.0, pytest.approx(1.0)]


def test_folds_choose_the_kernels_of_a_view():
    pytest.importorskip("kernelweave.relaxations")
    X, y = table()
    model = SparseMKLClassifier(text_and_numbers(), k0=[1, 2], n_views=1, cv=3).fit(X, y)
    assert model.k0_ == 1
    assert max(model.cv_results_[f"split{fold}_gap"].max() for fold in range(3)) <= 1e-4
    approximate = clone(model).set_params(kernels=[RBF(0.1), RBF(1.0)], approximation="nystroem")
    with pytest.raises(ValueError, match="n_views=1 needs views: give kernels=KernelDictionary"):
        approximate.fit(X[["age", "size"]].to_numpy(), y)
    numbers = KernelDictionary(["rbf", "laplacian"], columns=[[0], [1]])
    approximate.set_params(kernels=numbers).fit(X[["age", "size"]].to_numpy(), y)
    low, high = approximate.exact_certificate_.lower_bound, approximate.certificate_.upper_bound
    assert low <= high


def test_folds_choose_the_number_of_views():
    pytest.importorskip("kernelweave.relaxations")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] ** 2 + X[:, 2] ** 2 > 1.3).astype(int)
    views = {"a": [0], "b": [1], "c": [2]}
    kernels = KernelDictionary([RBF(0.5), RBF(5.0)], columns=views)
    settings = {"k0": 1, "C": 10.0, "cv": 2, "tol": 1e-2}
    model = SparseMKLClassifier(kernels, n_views="cv", **settings).fit(X, y)
    results = model.cv_results_
    assert results["param_n_views"].tolist() == [1, 2, 3]
    assert max(results[f"split{fold}_gap"].max() for fold in range(2)) <= 1e-2
    assert model.n_views_ == 2
    assert {name for name, weight in model.view_weights_.items() if weight} == {"a", "c"}
    with pytest.raises(ValueError, match=r"n_views must be None or an integer >= 1, .*got 0"):
        clone(model).set_params(n_views=0).fit(X, y)


def test_fewest_views_count_before_fewest_kernels():
    settings = [{"C": 1.0, "lam": 1.0, "k0": k0, "n_views": v} for v in (1, 2) for k0 in (1, 2)]
    scores = np.array([[0.1, 0.1], [0.8, 0.9], [0.8, 0.9], [0.9, 0.9]])
    complexity = SparseMKLClassifier.complexity
    for given, place in (scores, 3), (scores - [[0.0, 0.2]], 1):
        found = Scores(settings, given, np.zeros((4, 2)))
        assert found.choose("one-standard-error", complexity) == place


def test_a_relaxed_set_of_no_kernels_is_refused():
    for wrong in (0, -1, 2.5, "x"):
        with pytest.raises(ValueError, match="n_kernels must be an integer >= 1, got"):
            SparseSimplex(k0=2, lam=1.0).relaxed(wrong)
    with pytest.raises(ValueError, match="k0 must be an integer >= 1"):
        SparseSimplex(k0=0, lam=1.0).relaxed(3)
    assert SparseSimplex(k0=2, lam=0.0).relaxed(3).lam == 0.0


def test_a_limit_on_views_needs_the_proved_search():
    X, y = table()
    model = SparseMKLClassifier(text_and_numbers(), n_views=1, algorithm="smkl-best-response")
    with pytest.raises((ValueError, ImportError), match="n_views=1 needs"):
        model.fit(X, y)
    grams = np.stack([np.eye(len(y)), np.ones((len(y), len(y)))])
    with pytest.raises(ValueError, match="n_views=1 needs algorithm='smkl-global'"):
        sparse_mkl_path(grams, 2.0 * y - 1.0, views="ab", n_views=1)


def test_kernels_by_name_are_approximated_with_their_width():
    pytest.importorskip("kernelweave.relaxations", reason="Algorithm 1 ends at a nearby optimum")
    X, y = table()
    points = X[["age", "size"]].to_numpy()
    options = {"k0": 2, "random_state": 0, "scale": True, "tol": 1e-7}
    exact = SparseMKLClassifier(["rbf", "laplacian"], **options).fit(points, y)
    options.update(approximation="nystroem", n_components=len(points))
    factors = SparseMKLClassifier(["rbf", "laplacian"], **options).fit(points, y)
    np.testing.assert_allclose(factors.weights_, exact.weights_, atol=1e-4)


def test_parameters_are_what_the_user_may_set():
    for kind in (SparseMKLClassifier, SparseMKLRegressor):
        assert not [name for name in kind().get_params() if name.startswith("_")]
