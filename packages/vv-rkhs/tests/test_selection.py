"""λ and weights by errors at left-out samples, against fits without them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.kernels_core import RBF, Linear, UnderfitWarning
from kernelweave.kernels_core.grams import PrecomputedGrams
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier, MatrixValuedKernelRegressor, fitting
from sklearn.datasets import load_digits, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import get_scorer, r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, ShuffleSplit, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

WIDTHS = [RBF(gamma=g) for g in (0.01, 0.1, 1.0, 10.0)]


def waves(n: int, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], 50 * np.cos(X[:, 0] + X[:, 2])])
    return X, Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)


def test_errors_are_those_of_fits_without_each_sample() -> None:
    X, Y = waves(25)
    model = MatrixValuedKernelRegressor(WIDTHS).fit(X, Y)
    found = model.selection_
    assert found is not None
    K = sum(weight * kernel(X) for weight, kernel in zip(found.weights, WIDTHS, strict=True))
    Z = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    missed = []
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        ridge = KernelRidge(alpha=found.lam * 25, kernel="precomputed")
        ridge.fit(K[np.ix_(rest, rest)], Z[rest])
        missed.append(ridge.predict(K[[i]][:, rest])[0] - Z[i])
    assert found.errors[found.rule] == pytest.approx(np.mean(np.square(missed)))
    assert found.errors[found.rule] == min(found.errors.values())
    assert set(found.errors) >= {"even", "kernel 0", "kernel 3", "learned, p=1", "learned, p=2"}


def test_the_narrowest_width_is_not_taken_whatever_the_data() -> None:
    X, Y = waves(400)
    train, test = slice(0, 150), slice(150, 400)
    given = MatrixValuedKernelRegressor(WIDTHS, lam=1e-3, center=True).fit(X[train], Y[train])
    assert given.weights_[2:].sum() > 0.9, "what p = 1 does at a fixed λ"
    model = MatrixValuedKernelRegressor(WIDTHS).fit(X[train], Y[train])
    scores = [r2_score(Y[test], each.predict(X[test])) for each in (model, given)]
    assert scores[0] > scores[1] + 0.05
    alone = []
    for kernel in WIDTHS:
        for alpha in np.logspace(-3, 2, 11):
            ridge = KernelRidge(kernel="precomputed", alpha=alpha)
            ridge.fit(kernel(X[train]), Y[train] - Y[train].mean(axis=0))
            values = ridge.predict(kernel(X[test], X[train])) + Y[train].mean(axis=0)
            alone.append(r2_score(Y[test], values))
    assert scores[0] > max(alone) - 0.02, "as good as the best width and λ, chosen with sight"


def test_kernels_of_different_columns_are_learned() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(2 * X[:, 1])])
    Y += 0.1 * rng.standard_normal(Y.shape)
    model = MatrixValuedKernelRegressor([RBF(gamma=1.0).on([c]) for c in range(6)]).fit(X, Y)
    assert model.selection_ is not None
    assert model.selection_.rule.startswith("learned")
    assert model.weights_[:2].sum() > 0.8 * model.weights_.sum()


def test_units_of_the_outputs_change_nothing() -> None:
    X, Y = waves(60)
    units, shift = np.array([1e-6, 1e4]), np.array([3.0, -1e5])
    here = MatrixValuedKernelRegressor().fit(X, Y)
    there = MatrixValuedKernelRegressor().fit(X, Y * units + shift)
    np.testing.assert_allclose((there.predict(X) - shift) / units, here.predict(X), rtol=1e-6)
    np.testing.assert_allclose(there.predict(X), there.kernel_(X, X) @ there.dual_coef_ + shift
                               + (there.intercept_ - shift))  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_predicted_by_its_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((300, 8)), 7.0 + rng.standard_normal((300, 3))
    with pytest.warns(UnderfitWarning, match="say next to nothing about the target"):
        model = MatrixValuedKernelRegressor().fit(X[:150], Y[:150])
    misses, of_mean = (
        ((values - Y[150:]) ** 2).mean(axis=1)
        for values in (model.predict(X[150:]), Y[:150].mean(axis=0))
    )
    assert misses.mean() <= of_mean.mean() + of_mean.std() / np.sqrt(150)


def test_nearly_constant_columns_do_no_harm() -> None:
    pixels = load_digits().images.reshape(-1, 64)[np.random.default_rng(0).permutation(1797)]
    X, Y = pixels[:450, :32], pixels[:450, 34:38]
    scaler = StandardScaler().fit(X[:150])
    assert np.abs(scaler.transform(X[150:])).max() > 10.0, "where polynomials explode"
    model = MatrixValuedKernelRegressor().fit(scaler.transform(X[:150]), Y[:150])
    assert r2_score(Y[150:], model.predict(scaler.transform(X[150:]))) > 0.2


@pytest.mark.parametrize("learn_output", [False, True])
def test_a_default_fit_is_proved_and_an_open_gap_is_not_hidden(learn_output: bool) -> None:
    X, Y = waves(40)
    model = MatrixValuedKernelRegressor(learn_output=learn_output)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y)
    assert model.certificate_.gap <= 1e-4
    assert "concave dual" in str(model.certificate_)
    model.set_params(lam=1e-3)
    if learn_output:
        with pytest.warns(UserWarning, match="is not proved"):
            model.fit(X, Y)


def test_more_samples_than_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = waves(90)
    monkeypatch.setattr(fitting, "_DRAWN", 60)
    model = MatrixValuedKernelRegressor(WIDTHS, random_state=0).fit(X, Y)
    again = MatrixValuedKernelRegressor(WIDTHS, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert model.score(X, Y) > 0.7


def test_matrices_weights_and_names() -> None:
    X, Y = waves(50)
    frame = pd.DataFrame(Y, columns=["level", "flow"])
    points = MatrixValuedKernelRegressor(WIDTHS).fit(X, frame)
    assert points.output_names_ == ["level", "flow"]
    grams = PrecomputedGrams(np.stack([kernel(X) for kernel in WIDTHS]))
    given = MatrixValuedKernelRegressor("precomputed").fit(grams, Y)
    np.testing.assert_allclose(given.predict(grams), points.predict(X), rtol=1e-6)
    weight = np.random.default_rng(0).integers(0, 3, 50).astype(float)
    weighted = MatrixValuedKernelRegressor(WIDTHS).fit(X, Y, sample_weight=weight)
    rows = np.repeat(np.arange(50), weight.astype(int))
    repeated = MatrixValuedKernelRegressor(WIDTHS).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


def test_a_classifier_may_choose_too() -> None:
    X, y = load_iris(return_X_y=True)
    model = MatrixValuedKernelClassifier([Linear(), *WIDTHS], lam="loo", learn_output=False)
    assert model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.92


def grouped(n: int = 48) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, Y = waves(n)
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(6), n // 6))
    return X + groups[:, None], Y, groups


WAYS: dict[str, tuple[Any, Any, bool]] = {
    "groups left out": ("loo", None, True),
    "groups in three folds": ("cv", 3, True),
    "later samples": ("cv", TimeSeriesSplit(3), False),
    "a splitter that repeats": ("cv", ShuffleSplit(3, random_state=0), False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scoring", [None, "r2", "neg_median_absolute_error"])
def test_errors_are_those_of_fits_without_each_fold(way: str, scoring: str | None) -> None:
    X, Y, groups = grouped()
    lam, cv, with_groups = WAYS[way]
    if scoring is not None and lam == "loo":
        lam, cv = "cv", LeaveOneGroupOut()
    given = {"groups": groups} if with_groups else {}
    model = MatrixValuedKernelRegressor(WIDTHS, lam=lam, cv=cv, scoring=scoring)
    found = model.fit(X, Y, **given).selection_
    assert found is not None
    splitter = {None: LeaveOneGroupOut(), 3: GroupKFold(3)}.get(cv, cv)
    K = sum(weight * kernel(X) for weight, kernel in zip(found.weights, WIDTHS, strict=True))
    unit, offset = Y.std(axis=0), Y.mean(axis=0)
    Z, losses = (Y - offset) / unit, []
    for train, test in splitter.split(X, Y, groups if with_groups else None):
        ridge = KernelRidge(alpha=found.lam * len(train), kernel="precomputed")
        ridge.fit(K[np.ix_(train, train)], Z[train])
        values = ridge.predict(K[np.ix_(test, train)])
        if scoring is None:
            losses += ((values - Z[test]) ** 2).mean(axis=1).tolist()
        else:
            losses.append(-get_scorer(scoring)._score_func(Y[test], values * unit + offset)
                          * get_scorer(scoring)._sign)  # fmt: skip
    assert found.errors[found.rule] == pytest.approx(np.mean(losses))
    assert found.errors[found.rule] == min(found.errors.values())


def test_equal_samples_of_two_groups_are_not_one_sample() -> None:
    X, Y, groups = grouped()
    rows = np.r_[np.arange(48), np.arange(24)]
    apart = np.r_[groups, np.full(24, 7)]
    grams = PrecomputedGrams(np.stack([kernel(X[rows]) for kernel in WIDTHS]))
    # matrices are not merged
    given = MatrixValuedKernelRegressor("precomputed").fit(grams, Y[rows], groups=apart)
    model = MatrixValuedKernelRegressor(WIDTHS).fit(X[rows], Y[rows], groups=apart)
    assert given.selection_ is not None
    assert model.selection_ is not None
    assert model.selection_.errors == pytest.approx(given.selection_.errors, rel=1e-3)
    weight = np.random.default_rng(2).integers(0, 3, 48)
    twice = np.repeat(np.arange(48), weight)
    weighted = MatrixValuedKernelRegressor(WIDTHS).fit(X, Y, weight, groups=groups)
    repeated = MatrixValuedKernelRegressor(WIDTHS).fit(X[twice], Y[twice], groups=groups[twice])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_scores_of_a_classifier_are_of_its_labels(scoring: str) -> None:
    X, Y, groups = grouped()
    y = np.where(Y[:, 0] > np.median(Y[:, 0]), "yes", "no")
    kernels = [RBF(gamma=0.1)]
    settings: dict[str, Any] = {"lam": "cv", "cv": GroupKFold(3), "scoring": scoring}
    model = MatrixValuedKernelClassifier(kernels, learn_output=False, **settings)
    found = model.fit(X, y, groups=groups).selection_
    assert found is not None
    K, target, scores = RBF(gamma=0.1)(X), (y == "yes") - (y == "yes").mean(), []
    for train, test in GroupKFold(3).split(X, y, groups):
        ridge = KernelRidge(alpha=found.lam * len(train), kernel="precomputed")
        values = ridge.fit(K[np.ix_(train, train)], target[train]).predict(K[np.ix_(test, train)])
        values = values + (y == "yes").mean() - 0.5
        right = np.mean((values > 0) == (y[test] == "yes"))
        scores.append(right if scoring == "accuracy" else roc_auc_score(y[test] == "yes", values))
    assert min(found.errors.values()) == pytest.approx(-np.mean(scores))


def test_folds_that_choose_nothing_are_refused() -> None:
    X, Y, groups = grouped()
    holes = Y.copy()
    holes[3, 0] = np.nan
    with pytest.raises(ValueError, match="lam='cv' and groups need targets without missing values"):
        MatrixValuedKernelRegressor(missing="skip").fit(X, holes, groups=groups)
    labels = np.where(Y[:, 0] > 0.0, "yes", "no")
    asks = MatrixValuedKernelClassifier(lam="cv", scoring="neg_log_loss", probability=True)
    with pytest.raises(ValueError, match="scoring='neg_log_loss' asks for more than the values"):
        asks.fit(X, labels)
    with pytest.raises(ValueError, match="scoring='r2' needs lam='cv', got lam='loo'"):
        MatrixValuedKernelRegressor(scoring="r2").fit(X, Y)
    with pytest.raises(ValueError, match=r"lam must be .*'loo', 'cv' or"):
        MatrixValuedKernelRegressor(lam="best").fit(X, Y)
