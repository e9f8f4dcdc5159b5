import numpy as np
from kernelweave.kernels_core.result import Status
from kernelweave.mkl_sparse import SparseMKLClassifier, sparse_mkl_path
from kernelweave.relaxations import solve_global


def test_a_path_of_optima_equals_single_optima(problem):
    grams, y, _ = problem
    grid = {"Cs": [1.0, 4.0, 20.0], "lams": [0.05, 1.0, 20.0], "k0s": [1, 2, 3]}
    path = sparse_mkl_path(grams, y, **grid, algorithm="smkl-global", tol=1e-5)
    assert len(path.points) == 27
    alone = 0
    for p in path.points:
        own = solve_global(grams, y, C=p.C, lam=p.lam, k0=p.k0, tol=1e-5)
        alone += own.n_svm_solves
        assert p.status is Status.CONVERGED
        assert p.gap <= 1e-5
        assert p.lower_bound <= own.upper_bound
        assert p.upper_bound >= own.lower_bound
    assert path.n_svm_solves < 0.8 * alone


def test_a_long_path_is_proved_to_the_end(published):
    grams, y, _ = published("ionosphere")
    grid = {"Cs": [5.0, 10.0], "lams": [0.01, 0.1, 1.0, 10.0, 100.0], "k0s": [1, 2, 3]}
    path = sparse_mkl_path(grams, y, **grid, algorithm="smkl-global", check=False)
    assert all(p.gap <= 1e-4 for p in path.points)


def test_best_response_never_beats_the_optimum(problem):
    grams, y, _ = problem
    grid = {"Cs": [1.0, 4.0], "lams": [0.05, 1.0], "k0s": [1, 2]}
    optima = sparse_mkl_path(grams, y, **grid, algorithm="smkl-global")
    for p, best in zip(sparse_mkl_path(grams, y, **grid).points, optima.points, strict=True):
        assert p.upper_bound >= best.lower_bound
        assert p.lower_bound <= best.upper_bound


def test_cross_validation_of_optima():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + X[:, 1] ** 2 > 0.7
    model = SparseMKLClassifier(algorithm="smkl-global", C=[1.0, 10.0], k0=[1, 2], cv=3).fit(X, y)
    assert max(model.cv_results_[f"split{fold}_gap"].max() for fold in range(3)) <= 1e-4
    assert model.score(X, y) > 0.8
