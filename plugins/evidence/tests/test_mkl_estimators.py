"""Kernel weights by the evidence, as a user meets them."""

from __future__ import annotations

import pickle
import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EvidenceMKLClassifier,
    EvidenceMKLRegressor,
    HeldOutWarning,
    new_rows,
)
from kernelweave.evidence.mkl import estimators
from kernelweave.kernels_core import (
    RBF,
    KernelDictionary,
    Linear,
    Polynomial,
    Problem,
    SolveInterrupted,
    UnderfitWarning,
    clock,
)
from kernelweave.kernels_core.exceptions import (
    KernelWeaveWarning,
    MemoryBudgetError,
    NotPSDError,
)
from kernelweave.kernels_core.kernels import FunctionKernel, as_sklearn_gp_kernel
from kernelweave.kernels_core.testing import check_algorithm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import KFold, TimeSeriesSplit

THREE = [Linear(), RBF(0.5), Polynomial(2)]
ESTIMATORS = [EvidenceMKLRegressor(), EvidenceMKLClassifier()]


@pytest.mark.faults
def test_conformance() -> None:
    check_algorithm("evidence-step")


@pytest.fixture(scope="module")
def data():
    X, y = make_friedman1(220, n_features=6, noise=0.5, random_state=0)
    return X[:100], y[:100], X[100:], y[100:]


@pytest.fixture(scope="module")
def model(data):
    return EvidenceMKLRegressor().fit(*data[:2])


def test_held_out_score_foretells_the_score(data, model) -> None:
    _, _, X, y = data
    assert model.score(X, y) > 0.85
    assert abs(model.score(X, y) - model.held_out_score_) < 3.5 * model.held_out_error_
    assert 0 < model.held_out_error_ < 0.1
    assert model.held_out_prediction_.shape == (100,)


def test_weights_kernel_and_duals_say_the_same(data, model) -> None:
    X, _, X_new, _ = data
    assert len(model.weights_) == len(model.kernel_names_)
    by_hand = model.kernel_(X_new, X[model.support_]) @ model.dual_coef_[model.support_]
    np.testing.assert_allclose(by_hand + model.intercept_, model.predict(X_new), rtol=1e-9)


def test_the_deviation_is_that_of_a_gaussian_process(data, model) -> None:
    X, y, X_new, _ = data
    centred = (y - y.mean()) / y.std()
    process = GaussianProcessRegressor(
        as_sklearn_gp_kernel(model.kernel_), alpha=model.noise_, optimizer=None
    ).fit(X, centred)
    mean, std = process.predict(X_new, return_std=True)
    own_mean, own_std = model.predict(X_new, return_std=True)
    np.testing.assert_allclose(own_mean, mean * y.std() + y.mean(), rtol=1e-5)
    np.testing.assert_allclose(own_std, np.hypot(std, model.noise_**0.5) * y.std(), rtol=1e-5)
    share = np.mean(np.abs(data[3] - own_mean) < 1.645 * own_std)
    assert 0.8 < share < 0.98


def test_the_deviation_of_weighted_rows_and_several_outputs(data) -> None:
    X, y, X_new, _ = data
    weight = np.ones(60)
    weight[:20] = 2.0
    X, y = X[:60], np.column_stack([y[:60], -3.0 * y[:60]])
    once = EvidenceMKLRegressor(kernels=THREE).fit(X, y, sample_weight=weight)
    twice = EvidenceMKLRegressor(kernels=THREE).fit(np.vstack([X, X[:20]]), np.vstack([y, y[:20]]))
    std = once.predict(X_new, return_std=True)[1]
    assert std.shape == (120, 2)
    np.testing.assert_allclose(std[:, 1], 3.0 * std[:, 0])
    np.testing.assert_allclose(std, twice.predict(X_new, return_std=True)[1], rtol=1e-6)


def test_matrices_alone_do_not_tell_the_deviation(data) -> None:
    X, y, X_new, _ = data
    model = EvidenceMKLRegressor(kernels="precomputed").fit(np.stack([k(X) for k in THREE]), y)
    with pytest.raises(ValueError, match="precomputed Gram matrices"):
        model.predict(np.stack([k(X_new, X) for k in THREE]), return_std=True)


@pytest.mark.parametrize("unit", [1e9, 1e-9])
def test_targets_of_any_unit(data, model, unit: float) -> None:
    X, y, X_new, _ = data
    other = EvidenceMKLRegressor().fit(X, unit * y)
    np.testing.assert_allclose(other.predict(X_new), unit * model.predict(X_new), rtol=1e-6)


def test_matrices_of_ones_own_give_the_same(data) -> None:
    X, y, X_new, _ = data
    # at random, rows without columns are held out in another order
    splits = list(KFold(3).split(X))
    kernels = EvidenceMKLRegressor(kernels=THREE, normalize=None, cv=splits).fit(X, y)
    grams = np.stack([k(X) for k in THREE])
    model = EvidenceMKLRegressor(kernels="precomputed", cv=splits).fit(grams, y)
    cross = np.stack([k(X_new, X) for k in THREE])
    np.testing.assert_allclose(model.predict(cross), kernels.predict(X_new), rtol=1e-5)
    with pytest.raises(NotPSDError):
        EvidenceMKLRegressor(kernels="precomputed").fit(grams - 3.0 * np.eye(100), y)


def test_copies_with_other_targets_both_count_in_matrices_of_ones_own(data) -> None:
    """They share a place among the columns, where one of the two was forgotten."""
    X, y, X_new, _ = data
    X, y = np.vstack([X[:60], X[:3]]), np.append(y[:60], y[:3] + 5.0)
    grams, cross = np.stack([k(X) for k in THREE]), np.stack([k(X_new, X) for k in THREE])
    model = EvidenceMKLRegressor("precomputed").fit(grams, y)
    K, new = (np.tensordot(model.weights_, each, 1) for each in (grams, cross))
    oracle = KernelRidge(alpha=model.noise_, kernel="precomputed").fit(K, y - y.mean())
    np.testing.assert_allclose(model.predict(cross), oracle.predict(new) + y.mean(), rtol=1e-6)


def test_several_outputs_share_the_weights(data) -> None:
    X, y, X_new, _ = data
    # a prior of the weights would count half as much beside two outputs
    usual = EvidenceMKLRegressor(kernels=THREE, algorithm="lbfgs")
    both = clone(usual).fit(X, np.column_stack([y, -3 * y + 1]))
    one = usual.fit(X, y)
    assert both.weights_.shape == (3,)
    # an output and its multiple have the evidence of one, twice
    np.testing.assert_allclose(both.predict(X_new)[:, 0], one.predict(X_new), rtol=1e-3)
    assert both.log_evidence_ == pytest.approx(2 * one.log_evidence_, rel=1e-4)
    assert both.held_out_prediction_.shape == (100, 2)


def test_a_repeated_row_is_a_weight_of_two(data) -> None:
    X, y, X_new, _ = data
    X, y = X[:60], y[:60]
    weight = np.ones(60)
    weight[:20] = 2.0
    once = EvidenceMKLRegressor().fit(X, y, sample_weight=weight)
    twice = EvidenceMKLRegressor().fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
    np.testing.assert_allclose(once.predict(X_new), twice.predict(X_new), rtol=1e-9)
    assert once.log_evidence_ == pytest.approx(twice.log_evidence_)


def test_folds_do_not_see_the_targets_they_are_judged_on(data) -> None:
    X, y = data[0][:60], data[1][:60]
    # folds of a path are combined by the errors of the others, which learn from these targets
    usual = EvidenceMKLRegressor(kernels=THREE, algorithm="lbfgs")
    first = clone(usual).fit(X, y)
    state = np.random.RandomState(0)
    order = np.lexsort(np.hstack([X, y[:, None]])[:, ::-1].T)
    _, others = next(iter(KFold(3, shuffle=True, random_state=state).split(X)))
    other = y.copy()
    other[order[others]] = other[order[others]][::-1]
    second = usual.fit(X, other)
    np.testing.assert_array_equal(
        first.held_out_prediction_[order[others]], second.held_out_prediction_[order[others]]
    )


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
def test_a_path_holds_out_no_more_of_noise_than_there_is() -> None:
    """Combined by the errors of other folds: scores of pure noise are not above 0 in the mean."""
    state, scores = np.random.default_rng(0), []
    for _ in range(12):
        X, y = state.normal(size=(80, 4)), state.normal(size=80)
        scores.append(EvidenceMKLRegressor(THREE).fit(X, y).held_out_score_)
    assert np.mean(scores) < 2.0 * np.std(scores) / np.sqrt(12)
    assert np.mean(scores) > -0.1


def test_a_path_is_combined_by_errors_in_folds(data) -> None:
    """One weight for all where kernels help alike, free weights where one alone says all."""
    X = data[0] - 0.5
    grams = np.stack([np.outer(x, x) for x in X.T])
    state = np.random.default_rng(0)
    alike = 2.0 * X @ np.ones(6) + state.normal(size=100)
    one = 3.0 * X[:, 2] + 0.3 * state.normal(size=100)
    shares = [EvidenceMKLRegressor("precomputed").fit(grams, y).path_weights_ for y in (alike, one)]
    assert shares[0].shape == (4,)
    np.testing.assert_allclose(np.sum(shares, axis=1), 1.0)
    assert shares[0][0] > shares[1][0]
    sole = EvidenceMKLRegressor("precomputed", algorithm="lbfgs").fit(grams, one)
    assert sole.path_weights_.tolist() == [1.0]


@pytest.mark.parametrize("classes", [False, True])
def test_groups_are_held_out_whole_and_errors_are_over_them(classes: bool) -> None:
    """Groups were taken for nothing: the scores were those of random rows, 0.88 and 0.98."""
    state = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 4)
    X = state.normal(size=(30, 2))[group] + 0.01 * state.normal(size=(120, 2))
    y = state.uniform(-2.0, 2.0, size=30)[group] + 0.1 * state.normal(size=120)
    y = np.where(y > 0, "high", "low") if classes else y
    # rows of two groups that are equal stay two
    X[0], y[0] = X[4], y[4]
    kind = EvidenceMKLClassifier if classes else EvidenceMKLRegressor
    with pytest.warns(HeldOutWarning, match="near copies of no other.*fit with groups='rows al"):
        at_random = kind([RBF(10.0)]).fit(X, y)
    model = kind([RBF(10.0)]).fit(X, y, groups=group)
    assert at_random.held_out_score_ > 0.75
    assert model.held_out_score_ < 0.7
    said = model.held_out_prediction_
    said = model.classes_[said.argmax(axis=1)] if classes else said
    score = accuracy_score if classes else r2_score
    assert model.held_out_score_ == pytest.approx(score(y, said))
    left = np.array([score(y[group != g], said[group != g]) for g in range(30)])
    assert model.held_out_error_ == pytest.approx(np.sqrt(29 * left.var()), rel=0.2)
    with pytest.raises(ValueError, match="groups are one and the same"):
        model.fit(X, y, groups=np.zeros(120))


def test_the_line_of_new_groups_is_that_of_refits_at_the_same_weights() -> None:
    state = np.random.default_rng(0)
    site, level = np.repeat(state.permutation(20), 5), 2.0 * state.normal(size=20)
    X = pd.DataFrame({"dose": state.normal(size=100), "site": site})
    y = X["dose"].to_numpy() + level[site] + 0.3 * state.normal(size=100)
    with pytest.warns(HeldOutWarning, match="new 'site', .* fit with groups='site': the score is"):
        model = EvidenceMKLRegressor().fit(X, y)
    K, found = model.kernel_(X.to_numpy()), np.empty(100)
    for g in range(20):
        out, own = site == g, site != g
        alone = KernelRidge(alpha=model.noise_, kernel="precomputed")
        alone.fit(K[np.ix_(own, own)], y[own] - y[own].mean())
        found[out] = y[own].mean() + alone.predict(K[np.ix_(out, own)])
    line = model.held_out_.loc["new site"]
    assert line["score"] == pytest.approx(r2_score(y, found), abs=1e-6)
    assert line[["n_rows", "n_groups"]].tolist() == [100, 20]
    told = EvidenceMKLRegressor().fit(X, y, groups="site").held_out_
    assert told.index.tolist() == ["new site", "rows like these", "later in the file"]
    assert abs(told["score"].iloc[0] - line["score"]) < 3.0 * line["error"]


@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
def test_later_rows_are_those_of_refits_to_the_rows_before_them() -> None:
    """The blocks of `order` by other fits; closed forms at given weights by scikit-learn."""
    state = np.random.default_rng(2)
    time, y = state.permutation(60), np.cumsum(state.normal(size=60))
    y, days = y[time], pd.to_datetime("2024-03-01") + pd.to_timedelta(time, unit="D")
    grams, at = np.stack([k(time[:, None] / 10.0) for k in (RBF(4.0), Linear())]), np.argsort(time)
    alone = EvidenceMKLRegressor("precomputed", algorithm="lbfgs")
    model = clone(alone).fit(grams, y, order=days)
    for low in (30, 40, 50):
        own, out = at[:low], at[low : low + 10]
        before = alone.fit(grams[:, own][:, :, own], y[own])
        said = before.predict(grams[:, out][:, :, own])
        np.testing.assert_allclose(model.held_out_prediction_[out], said, rtol=1e-6)
        assert (model.held_out_fold_[out] == low // 10 - 3).all()
    assert np.isnan(model.held_out_prediction_[at[:30]]).all()
    score = r2_score(y[at[30:]], model.held_out_prediction_[at[30:]])
    told = model.held_out_
    assert told.index.tolist() == ["later rows", "rows like these"]
    assert told["score"].iloc[0] == model.held_out_score_ == pytest.approx(score)
    assert told["n_groups"].tolist() == [3, 60]

    def refitted(model: Any, own: Any, out: Any) -> Any:
        K = np.tensordot(model.weights_, grams, 1)
        alone = KernelRidge(alpha=model.noise_, kernel="precomputed")
        alone.fit(K[np.ix_(own, own)], y[own] - y[own].mean())
        return y[own].mean() + alone.predict(K[np.ix_(out, own)])

    one = [refitted(model, np.delete(at, i), at[[i]])[0] for i in range(60)]
    assert told["score"].iloc[1] == pytest.approx(r2_score(y[at], one), abs=1e-6)
    grams, y, at = grams[:, at][:, :, at], y[at], np.arange(60)
    usual = EvidenceMKLRegressor("precomputed", scoring="neg_mean_absolute_error").fit(grams, y)
    later = [refitted(usual, at[:k], at[k : k + 5]) for k in range(30, 60, 5)]
    error = mean_absolute_error(y[30:], np.concatenate(later))
    assert usual.held_out_.loc["later in the file", "score"] == pytest.approx(-error, abs=1e-6)
    error = mean_absolute_error(y, usual.held_out_prediction_)
    assert usual.held_out_score_ == pytest.approx(-error)


def test_classes_by_a_scorer_and_in_an_order(data) -> None:
    X, y = pd.DataFrame(data[0], columns=list("abcdef")), data[1] > data[1].mean()
    model = EvidenceMKLClassifier(THREE, scoring="roc_auc").fit(X, y, order="a")
    seen = ~np.isnan(model.held_out_prediction_[:, 0])
    assert (X["a"][seen].min(), seen.sum()) == (X["a"].sort_values().iloc[50], 50)
    score = roc_auc_score(y[seen], model.held_out_prediction_[seen, 1])
    assert model.held_out_score_ == pytest.approx(score)
    assert model.held_out_.index[0] == "later by a"
    with pytest.raises(ValueError, match="roc_auk"):
        EvidenceMKLClassifier(THREE, scoring="roc_auk").fit(X, y)


def test_a_splitter_holds_out_what_it_says() -> None:
    state = np.random.default_rng(1)
    y = np.cumsum(state.normal(size=120))
    grams = np.stack([k(np.arange(120.0)[:, None] / 10.0) for k in (RBF(4.0), Linear())])
    with pytest.warns(
        HeldOutWarning, match=r"later in the table, .*order=np.arange\(len\(y\)\): the score is"
    ):
        EvidenceMKLRegressor("precomputed").fit(grams, y)
    model = EvidenceMKLRegressor("precomputed", cv=TimeSeriesSplit(3))
    model.fit(grams, y)
    assert np.isnan(model.held_out_prediction_[:30]).all()
    assert model.held_out_score_ == pytest.approx(r2_score(y[30:], model.held_out_prediction_[30:]))
    assert model.held_out_.index[0] == "rows as held out"
    for name in ("groups", "order"):
        with pytest.raises(ValueError, match=f"{name}='day' needs columns, which precomputed Gram"):
            model.fit(grams, y, **{name: "day"})


def test_three_classes_named_by_words() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = EvidenceMKLClassifier(kernels=THREE).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.9
    assert model.decision_function(X).shape == (150, 3)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    assert model.held_out_prediction_.shape == (75, 3)


def test_random_labels_have_no_held_out_score() -> None:
    state = np.random.RandomState(0)
    X, y = state.randn(120, 4), state.randint(0, 2, 120)
    model = EvidenceMKLClassifier().fit(X, y)
    assert abs(model.held_out_score_ - 0.5) < 3.5 * model.held_out_error_


def test_a_time_limit_keeps_a_model_and_says_what_is_missing(data) -> None:
    X, y, X_new, _ = data
    with pytest.warns(ConvergenceWarning, match="3 of 3 folds were not reached: raise max_time"):
        model = EvidenceMKLRegressor(max_time=1e-9).fit(X, y)
    assert np.isfinite(model.predict(X_new)).all()
    assert np.isnan(model.held_out_score_)
    assert model.certificate_.lower_bound <= model.certificate_.upper_bound


def test_the_lines_of_new_rows_are_within_the_time_limit(data, monkeypatch) -> None:
    late = SimpleNamespace(expired=clock.limited, LATE_SECONDS=-1.0, Stopwatch=clock.Stopwatch)
    monkeypatch.setattr(new_rows, "clock", late)
    model = EvidenceMKLRegressor(THREE, max_time=1000.0)
    with pytest.warns(ConvergenceWarning, match="later in the table were not reached") as given:
        model.fit(data[0][:40], data[1][:40])
    assert model.held_out_.index.tolist() == ["rows like these"]
    assert given[0].filename == __file__


def test_columns_that_cannot_be_read_have_no_lines_and_it_is_said() -> None:
    """Constants name no groups, which nobody has to be told; an endless column that no view has."""
    x, noise = np.random.default_rng(0).normal(size=(2, 40))
    kernels = KernelDictionary([Linear(), RBF()], columns={"x": ["x"]})
    for kind in (EvidenceMKLRegressor, EvidenceMKLClassifier):
        y = x + 0.1 * noise if kind is EvidenceMKLRegressor else x > 0.0
        with pytest.warns(
            KernelWeaveWarning, match="no lines of columns: column 'rate', "
        ) as given:
            model = kind(kernels).fit(pd.DataFrame({"x": x, "rate": np.inf}), y)
        assert [each.filename for each in given] == [__file__]
        assert model.held_out_.index.tolist() == ["rows like these", "later in the file"]
    with pytest.warns(UnderfitWarning) as given:
        EvidenceMKLRegressor([Linear(), RBF()]).fit(np.ones((20, 1)), noise[:20])
    assert [each.filename for each in given] == [__file__]


def test_a_limit_of_steps_is_said(data) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = EvidenceMKLRegressor(algorithm="majorize", max_iter=1).fit(*data[:2])
    assert model.certificate_.gap > model.tol
    assert model.n_iter_ == 1


def test_an_interrupt_keeps_the_model(data, monkeypatch) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(estimators, "without_folds", interrupted)
    model = EvidenceMKLRegressor(kernels=THREE)
    with pytest.raises(SolveInterrupted):
        model.fit(*data[:2])
    assert np.isfinite(model.predict(data[2])).all()
    assert np.isnan(model.held_out_score_)


@pytest.mark.parametrize("algorithm", ["path", "lbfgs"])
def test_a_key_pressed_in_a_fold_is_not_lost(data, monkeypatch, algorithm: str) -> None:
    """The fit of all rows stays, and the interruption is raised; it went on in silence."""
    searched = EvidenceMKLRegressor._searched

    def pressed(model: Any, problem: Problem, verbose: int = 0) -> Any:
        if len(problem.targets[0]) < 100:
            signal.raise_signal(signal.SIGINT)
        return searched(model, problem, verbose)

    monkeypatch.setattr(EvidenceMKLRegressor, "_searched", pressed)
    model = EvidenceMKLRegressor(kernels=THREE, algorithm=algorithm)
    with pytest.raises(SolveInterrupted):
        model.fit(*data[:2])
    assert np.isfinite(model.predict(data[2])).all()
    assert np.isnan(model.held_out_score_)
    np.testing.assert_allclose(model.path_weights_, 1.0 / len(model.path_weights_))


def test_kernels_that_are_zero_leave_the_noise() -> None:
    y = np.random.default_rng(0).normal(size=40)
    for kind in ("path", "lbfgs"):
        model = EvidenceMKLRegressor("precomputed", algorithm=kind)
        with pytest.warns(UnderfitWarning):
            model.fit(np.zeros((2, 40, 40)), y)
        np.testing.assert_allclose(model.predict(np.zeros((2, 3, 40))), y.mean())
        assert model.noise_ == pytest.approx(1.0, rel=1e-3)
        assert not model.weights_.any()


def test_kernels_without_a_semidefinite_sum_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    kernels = KernelDictionary([FunctionKernel(lambda X, Z: -(X @ Z.T))], psd="keep")
    with pytest.raises(NotPSDError, match="not positive semidefinite: leave out"):
        EvidenceMKLRegressor(kernels).fit(X, X[:, 0])


def test_a_path_in_an_order_knows_nothing_of_later_rows(data) -> None:
    X, y = data[:2]
    model = EvidenceMKLRegressor(kernels=THREE)
    first = clone(model).fit(X, y, order=np.arange(100)).held_out_prediction_
    later = y.copy()
    later[90:] = later[90:][::-1] + 5.0
    second = model.fit(X, later, order=np.arange(100)).held_out_prediction_
    known = ~np.isnan(first) & (np.arange(100) < 82)
    assert known.sum() > 30
    # but for the unit of the errors
    np.testing.assert_allclose(second[known], first[known], rtol=1e-9)


def test_pickles(data, model) -> None:
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(data[2]), model.predict(data[2]))


def test_more_rows_than_memory_are_refused(data) -> None:
    with pytest.raises(MemoryBudgetError, match="100"):
        EvidenceMKLRegressor(memory_limit=10_000).fit(*data[:2])
