import numpy as np
import pytest
from kernelweave.kernels_core import KernelDictionary, NotPSDError, PrecomputedGrams, Status
from kernelweave.kernels_core.kernels import RBF, Linear
from kernelweave.mkl_sparse import (
    SparseMKLClassifier,
    SparseMKLRegressor,
    paths,
    sparse_mkl_path,
)
from kernelweave.qp_smo import SVC, SVR
from kernelweave.qp_smo.saddle import KSupport, solve_kernel_weights
from sklearn.model_selection import KFold, StratifiedKFold

KERNELS = [Linear(), RBF(0.1), RBF(1.0), RBF(5.0)]
# where the packages that prove are absent, the search of this one says that its gap is open
GAP_IS_OPEN = pytest.mark.filterwarnings("ignore:smkl-best-response")
GRID = {"Cs": [0.5, 5.0], "lams": [0.1, 3.0], "k0s": [1, 4]}


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.7, 1.0, -1.0)


def grams_of(X):
    return KernelDictionary(KERNELS).fit_grams(X).grams


@pytest.mark.parametrize("learner", [SVC(), SVR(epsilon=0.05)])
def test_every_point_of_a_path_brackets_its_optimum(learner):
    X, y = data()
    grams = grams_of(X)
    path = sparse_mkl_path(grams, y, learner=learner, **GRID)
    assert [(p.C, p.k0, p.lam) for p in path.points] == [
        (C, k0, lam) for C in (0.5, 5.0) for k0 in (1, 4) for lam in (3.0, 0.1)
    ]
    for p in path.points:
        assert p.lower_bound <= p.upper_bound
        assert np.count_nonzero(p.weights) <= p.k0
        own = type(learner)(C=p.C, **({"epsilon": 0.05} if isinstance(learner, SVR) else {}))
        if p.k0 == 4:
            free = solve_kernel_weights(grams, y, learner=own, penalty=KSupport(p.lam), tol=1e-6)
            assert p.lower_bound <= free.upper_bound
            assert p.upper_bound >= free.lower_bound
        else:
            j = p.support[0]
            one = [solve_kernel_weights(K[None], y, learner=own, tol=1e-7) for K in grams]
            assert p.upper_bound == pytest.approx(one[j].upper_bound + p.lam, rel=1e-6)
            assert p.lower_bound <= min(s.upper_bound for s in one) + p.lam


def test_a_path_shares_its_cuts():
    X, y = data()
    grams = grams_of(X)
    lams = np.geomspace(0.01, 10, 16)
    together = sparse_mkl_path(grams, y, lams=lams, k0s=[2])
    alone = [sparse_mkl_path(grams, y, lams=[lam], k0s=[2]) for lam in lams]
    assert together.n_svm_solves < 0.7 * sum(path.n_svm_solves for path in alone)
    assert together.weights.shape == (16, 4)


def test_a_time_limit_keeps_what_was_reached():
    X, y = data()
    path = sparse_mkl_path(grams_of(X), y, **GRID, max_time=1e-9)
    assert len(path.points) == 1
    assert path.points[0].lower_bound <= path.points[0].upper_bound


def test_a_run_that_ends_at_its_limit_says_so(monkeypatch):
    """No time limit ended it, and it need not be at rest."""
    monkeypatch.setattr(paths, "_RUN_LIMIT", 0)
    X, y = data()
    grid = {"Cs": [5.0], "lams": [0.1], "k0s": [2]}
    (found,) = sparse_mkl_path(grams_of(X), y, **grid, algorithm="smkl-best-response").points
    assert found.status is Status.MAX_ITER


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "smkl-best"}, "algorithm must be"),
        ({"lams": [0.0]}, "lam"),
        ({"k0s": [0]}, "k0"),
        ({"Cs": [-1.0]}, "C must"),
    ],
)
def test_bad_arguments_are_named(change, message):
    X, y = data(12)
    with pytest.raises(ValueError, match=message):
        sparse_mkl_path(grams_of(X), y, **change)
    with pytest.raises(ValueError, match="y must have"):
        sparse_mkl_path(grams_of(X), y[:-1])
    with pytest.raises(NotPSDError, match=r"grams\[0\]"):
        sparse_mkl_path(-grams_of(X), y)


@GAP_IS_OPEN
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_fresh_fits(n_classes):
    X, _ = data(60)
    labels = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0.0] if n_classes == 2 else [-0.5, 0.5])
    y = np.array(["a", "b", "c"])[labels]
    # as they are: a list is normalised before the folds are made
    exact = KernelDictionary(KERNELS)
    for kernels, given in (exact, X), ("precomputed", PrecomputedGrams(grams_of(X))):
        model = SparseMKLClassifier(kernels, k0=[1, 2], cv=3, tol=1e-7).fit(given, y)
        for i, (train, test) in enumerate(StratifiedKFold(3).split(y, y)):
            for place, k0 in enumerate([1, 2]):
                own = SparseMKLClassifier(exact, k0=k0, tol=1e-7).fit(X[train], y[train])
                score = model.cv_results_[f"split{i}_test_score"][place]
                assert score == pytest.approx(own.score(X[test], y[test]), abs=0.05)


@GAP_IS_OPEN
def test_scores_of_numbers_are_those_of_fresh_fits():
    X, _ = data(60)
    y = np.sin(X[:, 0]) + X[:, 1]
    options = {"epsilon": 0.1, "units": "absolute", "k0": 1, "lam": 0.1, "tol": 1e-6}
    exact = KernelDictionary(KERNELS)
    model = SparseMKLRegressor(exact, C=[1.0, 10.0], cv=KFold(3), **options).fit(X, y)
    for i, (train, test) in enumerate(KFold(3).split(y)):
        own = SparseMKLRegressor(exact, C=10.0, **options).fit(X[train], y[train])
        score = model.cv_results_[f"split{i}_test_score"][1]
        assert score == pytest.approx(own.score(X[test], y[test]), abs=1e-3)
        assert (model.cv_results_[f"split{i}_gap"] >= 0.0).all()


def test_a_class_that_no_fold_learns_from_is_named():
    X, y = data(60)
    folds = [(np.flatnonzero(y > 0), np.flatnonzero(y < 0))]
    with pytest.raises(ValueError, match=r"class -1\.0 has no sample in the training part"):
        SparseMKLClassifier(KERNELS, k0=[1, 2], cv=folds).fit(X, y)
