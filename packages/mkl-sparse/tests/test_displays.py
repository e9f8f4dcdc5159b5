import numpy as np
import pytest
from kernelweave.kernels_core.kernels import RBF, Linear
from kernelweave.mkl_sparse import (
    SparseMKLClassifier,
    plot_gap_by_solves,
    plot_supports,
    plot_weights,
    sparse_mkl_path,
)
from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.7, 1.0, -1.0)
    return SparseMKLClassifier([Linear(), RBF(0.1), RBF(1.0)], k0=2).fit(X, y)


def test_weights_are_bars_with_the_names_of_the_kernels(fitted):
    ax = Figure().subplots()
    plot_weights(fitted, ax)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], fitted.weights_)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(fitted.kernel_names_)


def test_the_gap_is_drawn_over_the_solves(fitted):
    ax = Figure().subplots()
    plot_gap_by_solves(fitted.result_.history, ax, label="a fit")
    solves, gap = ax.lines[0].get_data()
    assert solves[-1] == fitted.result_.history.counts["n_svm_solves"][-1]
    assert gap[-1] == pytest.approx(max(fitted.result_.gap, 1e-16))


def test_supports_are_drawn_along_one_path(fitted):
    problem = fitted.problem_
    grams = problem.family.fit_grams(problem.X).grams
    path = sparse_mkl_path(grams, problem.targets, lams=[0.1, 10.0], k0s=[1, 3])
    ax = Figure().subplots()
    plot_supports(path.at(k0=3), ax, names=["linear", "wide", "narrow"])
    shown = ax.images[0].get_array()
    assert shown.shape == (3, 2)
    assert shown.mask[:, 1].sum() == 3 - len(path.at(k0=3, lam=10.0).points[0].support)
    with pytest.raises(ValueError, match="one C and one k0"):
        plot_supports(path, ax)
