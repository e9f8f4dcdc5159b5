"""Stacks of precomputed Gram matrices under scikit-learn's model selection."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from kernelweave.kernels_core import config_context
from kernelweave.kernels_core.exceptions import MemoryBudgetError, NotPSDError
from kernelweave.kernels_core.grams import PrecomputedGrams, as_grams, definite_grams, precomputed
from kernelweave.kernels_core.kernels import RBF, KernelDictionary, Linear
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.svm import SVC


class WeightedSVC(ClassifierMixin, BaseEstimator):
    """An SVM on w·K₁ + (1 − w)·K₂."""

    def __init__(self, w=0.5, C=1.0):
        self.w = w
        self.C = C

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, X, y):
        self.svc_ = SVC(kernel="precomputed", C=self.C)
        self.svc_.fit(self._combine(as_grams(X, square=True)), y)
        self.classes_ = self.svc_.classes_
        return self

    def predict(self, X):
        return self.svc_.predict(self._combine(as_grams(X)))

    def _combine(self, grams):
        return self.w * grams[0] + (1 - self.w) * grams[1]


class WeightedKernelSVC(WeightedSVC):
    """The same from samples: the oracle."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def fit(self, X, y):
        self.X_ = X
        return super().fit(self._grams(X), y)

    def predict(self, X):
        return super().predict(self._grams(X))

    def _grams(self, X):
        return np.stack([k(X, None if X is self.X_ else self.X_) for k in (Linear(), RBF(0.1))])


@pytest.fixture(scope="module")
def problem():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    grams = KernelDictionary([Linear(), RBF(0.1)]).fit_grams(X).grams
    return X, y, grams


def test_it_looks_like_one_kernel_matrix_and_copies_nothing(problem):
    _, _, grams = problem
    X = PrecomputedGrams(grams)
    n = grams.shape[1]
    assert len(X) == n
    assert X.shape == (n, n)
    assert X.n_kernels == 2
    assert X.grams is grams
    assert np.shares_memory(np.asarray(X), grams)
    assert np.shares_memory(as_grams(X), grams)
    assert np.shares_memory(PrecomputedGrams(list(grams)[:1])._stack, grams) is False
    assert X[:].grams is grams
    part = X[np.ix_([3, 1], [0, 2, 5])]
    assert part._stack is grams
    np.testing.assert_array_equal(part.grams, grams[:, [3, 1]][:, :, [0, 2, 5]])


def test_slices_compose(problem):
    _, _, grams = problem
    X = PrecomputedGrams(grams)
    rows, columns = np.array([5, 3, 8, 1]), np.array([2, 7, 4])
    part = X[np.ix_(rows, columns)]
    np.testing.assert_array_equal(part[[1, 3]].grams, grams[:, [3, 1]][:, :, columns])
    np.testing.assert_array_equal(part[1:, :2].grams, grams[:, rows[1:]][:, :, columns[:2]])
    mask = np.array([True, False, True, False])
    np.testing.assert_array_equal(part[mask, ...].grams, grams[:, [5, 8]][:, :, columns])
    np.testing.assert_array_equal(X[-1:].grams, grams[:, -1:])
    assert X[[]].shape == (0, grams.shape[2])
    for key in (3, (1, 2, 3), [10**6]):
        with pytest.raises(IndexError):
            X[key]
    assert repr(part) == "PrecomputedGrams(n_kernels=2, shape=(4, 3))"
    again = pickle.loads(pickle.dumps(part))
    np.testing.assert_array_equal(again.grams, part.grams)


def test_cross_validation_slices_both_axes(problem):
    X, y, grams = problem
    cv = KFold(4, shuffle=True, random_state=0)
    ours = cross_val_score(WeightedSVC(0.3), PrecomputedGrams(grams), y, cv=cv)
    oracle = cross_val_score(WeightedKernelSVC(0.3), X, y, cv=cv)
    np.testing.assert_array_equal(ours, oracle)
    assert ours.min() > 0.9
    np.testing.assert_array_equal(
        cross_val_predict(WeightedSVC(0.3), PrecomputedGrams(grams), y, cv=cv),
        cross_val_predict(WeightedKernelSVC(0.3), X, y, cv=cv),
    )


def test_grid_search(problem):
    X, y, grams = problem
    grid = {"w": [0.0, 0.5, 1.0], "C": [0.01, 1.0]}
    ours = GridSearchCV(WeightedSVC(), grid, cv=3).fit(PrecomputedGrams(grams), y)
    oracle = GridSearchCV(WeightedKernelSVC(), grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], oracle.cv_results_["mean_test_score"]
    )
    assert ours.best_params_ == oracle.best_params_
    new = PrecomputedGrams(grams[:, :9])
    np.testing.assert_array_equal(ours.predict(new), oracle.predict(X[:9]))


def test_splitting_by_hand(problem):
    _, y, grams = problem
    train, test = train_test_split(np.arange(len(y)), random_state=0)
    X = PrecomputedGrams(grams)
    model = WeightedSVC().fit(X[np.ix_(train, train)], y[train])
    assert model.score(X[np.ix_(test, train)], y[test]) > 0.9
    with pytest.raises(ValueError, match="training Gram matrices are square"):
        WeightedSVC().fit(X[train], y[train])


def test_bad_stacks_are_refused():
    ok = np.stack([np.eye(3), np.ones((3, 3))])
    for broken, message in (
        (np.eye(3), r"X has shape \(3, 3\).*\(n_kernels, n_samples, n_train\)"),
        (np.empty((0, 3, 3)), "has shape"),
        (ok * 1j, "complex"),
        (np.where(ok == 0, np.nan, ok), r"X\[0\] contains NaN"),
        (ok[:, :2], "are square"),
        (
            ok + np.triu(np.full((3, 3), 1e-3)),
            r"X\[0\] is not symmetric \(entries differ by up to 0.001\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            as_grams(broken, square=True)
    assert as_grams(ok.astype(int)).dtype == np.float64
    assert as_grams(ok.astype(np.float32)).dtype == np.float32
    assert as_grams([np.eye(2), np.eye(2)]).shape == (2, 2, 2)


def test_memory_is_asked_for_when_a_slice_is_read(problem):
    part = PrecomputedGrams(problem[2])[:100]
    with config_context(memory_limit=1000), pytest.raises(MemoryBudgetError, match="2 precomputed"):
        _ = part.grams


def test_what_a_check_proved_of_some_samples_holds_for_every_part(problem, monkeypatch):
    _, _, grams = problem
    X, calls, fit = PrecomputedGrams(grams), [], definite_grams
    count = lambda stack, name: calls.append(stack.shape[1])  # noqa: E731
    monkeypatch.setattr(precomputed, "refuse_indefinite", count)
    fit(X[np.ix_(range(100), range(100))])
    fit(X[np.ix_(range(90), range(90))])
    fit(X[np.ix_([5, 2, 5], [5, 2, 5])])
    assert calls == [100], "parts of what was proved are proved"
    fit(X[np.ix_(range(50, 120), range(50, 120))])
    assert calls == [100, 70], "others are not"
    fit(X)
    fit(pickle.loads(pickle.dumps(X))[np.ix_(range(30), range(30))])
    assert calls == [100, 70, len(X)]
    fit(fit(grams))
    assert calls == [100, 70, len(X), len(X)], "what was returned is known"
    fit(grams)
    assert calls == [100, 70, len(X), len(X), len(X)], "arrays remember nothing"


def test_a_check_that_refuses_is_not_remembered():
    X = PrecomputedGrams(np.stack([np.diag([1.0, -1.0, 1.0])]))
    for _ in range(2):
        with pytest.raises(NotPSDError, match="smallest eigenvalue -1"):
            definite_grams(X)
    definite_grams(X[np.ix_([0, 2], [0, 2])])


@pytest.mark.parametrize("place", [(0, 0), (250, 3), (3, 250), (299, 299)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_entry_that_is_no_number_is_found_anywhere(place, value):
    grams = np.ones((2, 300, 300))
    grams[1][place] = value
    with pytest.raises(ValueError, match=r"X\[1\] contains NaN or infinity"):
        as_grams(grams, square=True)
    with pytest.raises(ValueError, match=r"X\[1\] contains NaN or infinity"):
        as_grams(grams)
