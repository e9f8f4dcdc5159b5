"""Shapley values of columns, against all coalitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import factorial

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EvidenceKernel,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
)
from kernelweave.evidence.explaining._njit_games import add_games
from kernelweave.evidence.explaining.shapley import Quadrature, mixture, rules_for
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.terms import Scales
from kernelweave.kernels_core import MemoryBudgetError, config_context

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}
DAYS = pd.to_datetime(["2020-02-03", "2020-05-08", "2021-07-09"])


def table(n_rows: int, n_columns: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns of three values each, the last two dates and words, with gaps."""
    state = np.random.RandomState(seed)
    codes = state.randint(3, size=(n_rows, n_columns))
    X = pd.DataFrame(codes[:, :-2] * (1.0, *[0.7] * (n_columns - 3)))
    X.columns = [f"n{j}" for j in range(n_columns - 2)]
    X["day"] = DAYS[codes[:, -2]]
    X["town"] = np.array(["north", "south", "west"], dtype=object)[codes[:, -1]]
    X.loc[X["n1"] > 1.0, "n1"] = np.nan
    y = codes[:, 0] * codes[:, 1] + 2.0 * (codes[:, -1] == 1) * codes[:, 2] - codes[:, -2]
    return X, y + 0.1 * state.randn(n_rows)


def every_value(X: pd.DataFrame) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """Return all combinations of the columns' values, and the shares of the values."""
    counts = [X[name].value_counts(dropna=False, normalize=True, sort=False) for name in X]
    cells = list(product(*(each.index for each in counts)))
    whole = pd.DataFrame(cells, columns=X.columns).astype(X.dtypes)
    return whole, [each.to_numpy() for each in counts]


def coalitions(n: int, shares: list[np.ndarray], places: list[int]) -> np.ndarray:
    """Return what Shapley values are of a function's values at all combinations: (n, n_cells)."""
    worth = {}
    for members in product((False, True), repeat=n):
        weights = np.ones(1)
        for inside, share, place in zip(members, shares, places, strict=True):
            own = np.eye(len(share))[place] if inside else share
            weights = np.outer(weights, own).ravel()
        worth[members] = weights
    out = np.zeros((n, len(weights)))
    for members, weights in worth.items():
        size = sum(members)
        for i in range(n):
            joined = size - members[i]
            chance = factorial(joined) * factorial(n - joined - 1) / factorial(n)
            out[i] += (1.0 if members[i] else -1.0) * chance * weights
    return out


def with_all_terms(fitted, X: pd.DataFrame, y) -> object:
    """Fit, then give the kernel two parts with all five terms and scales of their own."""
    fitted.fit(X, y)
    state, predictor = np.random.RandomState(9), fitted._predictor
    n = len(fitted.dimensions_)
    scales = tuple(
        Scales(0.2 + state.rand(n), 2.0 * state.rand(n), 0.3 + state.rand(5), noise)
        for noise in (0.05, 0.1)
    )
    mixture = fit_mixture(predictor.views, predictor.rows, scales)
    fitted._predictor = replace(predictor, mixture=mixture)
    fitted.kernel_, fitted.noise_ = EvidenceKernel(predictor.views, scales), mixture.noise
    return fitted


def latent(model, X: pd.DataFrame) -> np.ndarray:
    """Return predictions that are not cut to the range of the targets."""
    expansion, rows = model._predictor.expansion(), model._predictor.rows
    K = model.kernel_(model.encode(X), np.hstack([rows.numeric, rows.codes]))
    return (K @ expansion.dual) * expansion.target.spread + expansion.target.centre


def places_of(X: pd.DataFrame, grid: pd.DataFrame, row: int) -> list[int]:
    """Return which of the values of the grid a row has in each column."""
    found = []
    for name in X:
        levels, cell = grid[name].drop_duplicates(), X[name].iloc[row]
        same = levels.isna() if pd.isna(cell) else levels == cell
        found.append(int(np.argmax(same)))
    return found


def by_coalitions(X: pd.DataFrame, row: int, values: np.ndarray) -> np.ndarray:
    """Return Shapley values from those of all combinations of the columns' values."""
    grid, shares = every_value(X)
    return coalitions(len(shares), shares, places_of(X, grid, row)) @ values


@pytest.fixture(scope="module")
def model():
    X, y = table(90, 8, 0)
    return X, with_all_terms(EvidenceKernelRegressor(warp=False, **QUICK), X, y)


def test_values_are_those_of_all_coalitions_of_eight_columns(model) -> None:
    X, fitted = model
    values = latent(fitted, every_value(X)[0])[:, 0]
    found = fitted.explain(X[:3])
    for row in range(3):
        np.testing.assert_allclose(found.values[row], by_coalitions(X, row, values), atol=1e-8)
    np.testing.assert_allclose(found.predictions, latent(fitted, X[:3])[:, 0], rtol=0, atol=1e-9)
    assert np.abs(found.values[:, :3]).max() > 0.3


def test_the_base_is_the_mean_over_the_values_of_each_column(model) -> None:
    X, fitted = model
    grid, shares = every_value(X)
    weights = np.ones(1)
    for share in shares:
        weights = np.outer(weights, share).ravel()
    found = fitted.explain(X[:2])
    np.testing.assert_allclose(found.base_values, weights @ latent(fitted, grid)[:, 0], atol=1e-8)


def test_errors_are_deviations_of_the_posterior_of_the_same_sums() -> None:
    X, y = table(60, 5, 1)
    fitted = with_all_terms(EvidenceKernelRegressor(warp=False, **QUICK), X, y)
    grid, shares = every_value(X)
    rows, cells = fitted._predictor.rows, fitted.encode(grid)
    known = np.hstack([rows.numeric, rows.codes])
    S = fitted.kernel_(known) + np.diag(fitted.noise_ / rows.mass + 1e-6)
    cross = fitted.kernel_(cells, known)
    covariance = fitted.kernel_(cells) - cross @ np.linalg.solve(S, cross.T)
    found = fitted.explain(X[:4])
    for row in range(4):
        sums = coalitions(5, shares, places_of(X, grid, row))
        expected = np.sqrt(np.einsum("ij,jk,ik->i", sums, covariance, sums)) * y.std()
        np.testing.assert_allclose(found.errors[row], expected, rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_of_classes_the_logits_are_explained_and_their_probabilities(n_classes: int) -> None:
    X, y = table(100, 4, 2)
    y = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.4, 0.7]))]
    y[y == "middle"] = "low" if n_classes == 2 else "middle"
    fitted = EvidenceKernelClassifier(**QUICK).fit(X, y)
    values = fitted.decision_function(every_value(X)[0])
    found = fitted.explain(X[:3])
    for row in range(3):
        np.testing.assert_allclose(found.values[row], by_coalitions(X, row, values), atol=1e-8)
    assert found.scale == ("the logit of low" if n_classes == 2 else "the logit of each class")
    told = fitted.explain(X[:3], scale="response")
    proba = fitted.predict_proba(X[:3])
    expected = proba[:, 1] if n_classes == 2 else proba
    np.testing.assert_allclose(told.predictions, expected, atol=1e-10)
    assert told.output_names == list(fitted.classes_[-len(told.output_names) :])
    assert (told.errors > 0.0).all()


def test_under_a_power_values_add_up_there_and_by_the_mean_slope_to_predictions() -> None:
    state = np.random.RandomState(0)
    X = state.randn(80, 3)
    y = np.exp(X[:, 0] + 0.5 * X[:, 1] + 0.1 * state.randn(80))
    fitted = EvidenceKernelRegressor(**QUICK).fit(X, y)
    (power,) = fitted._predictor.expansion().target.warps
    found, told = fitted.explain(X[:5]), fitted.explain(X[:5], scale="response")
    assert (found.scale, told.scale) == ("the target under its power", "the target")
    np.testing.assert_allclose(told.predictions, fitted.predict(X[:5]), rtol=1e-12)
    # nearly a logarithm, whose way back is monotone
    assert abs(power.power) < 0.3
    assert (np.sign(found.values) == np.sign(told.values)).all()
    ratio = told.values / found.values
    np.testing.assert_allclose(ratio, np.repeat(ratio[:, :1], 3, axis=1), rtol=1e-9)
    np.testing.assert_allclose(told.errors / found.errors, ratio, rtol=1e-6)


def test_several_targets_each_have_their_values(model) -> None:
    X, y = table(60, 4, 3)
    fitted = EvidenceKernelRegressor(warp=False, **QUICK)
    with_all_terms(fitted, X, np.column_stack([y, y**2]))
    values, found = latent(fitted, every_value(X)[0]), fitted.explain(X[:2])
    for row in range(2):
        np.testing.assert_allclose(found.values[row], by_coalitions(X, row, values), atol=1e-8)
    assert found.output_names == ["output 0", "output 1"]


@pytest.mark.parametrize("classes", [False, True])
def test_rows_held_out_are_explained_by_the_fold_that_did_not_see_them(classes: bool) -> None:
    X, y = table(90, 5, 6)
    if classes:
        fitted = EvidenceKernelClassifier(**QUICK).fit(X, np.digitize(y, np.quantile(y, [0.5])))
    else:
        fitted = EvidenceKernelRegressor(warp=False, **QUICK).fit(X, y)
    asked, folds = np.array([40, 3, 77, 12, 5]), fitted.held_out_fold_
    assert len(set(folds[asked])) > 1
    found = fitted.explain_held_out(asked, scale="link" if classes else "response")
    rows, expected = fitted._predictor.rows, np.zeros(5)
    for k, (_, predict) in enumerate(fitted._predictor.fold_predictors()):
        own = fitted._owner[asked[folds[asked] == k]]
        values = predict(rows.numeric[own], rows.codes[own])
        expected[folds[asked] == k] = (fitted._task.link(values) if classes else values)[:, 0]
    np.testing.assert_allclose(found.predictions, expected, atol=1e-9)
    for shown, cells in zip(found.data, X.iloc[asked].to_numpy(), strict=True):
        assert [each if pd.notna(each) else None for each in shown] == [
            each if pd.notna(each) else None for each in cells
        ]
    with pytest.raises(ValueError, match="rows must be rows that a fold held out, got 90"):
        fitted.explain_held_out([0, 90])
    # a mask would have been read as rows 0 and 1
    for wrong in (folds == 0, [1.7], [], [[1, 2]]):
        with pytest.raises(ValueError, match="rows must be places of training rows, integers"):
            fitted.explain_held_out(wrong)


@pytest.mark.usefixtures("by_landmarks")
def test_of_many_rows_landmarks_are_explained() -> None:
    X, y = table(450, 4, 4)
    settings = {"precisions": (50.0,), "max_iter": 5, "n_landmarks": 50, "warp": False}
    fitted = EvidenceKernelRegressor(**settings).fit(X, y)
    expansion, cells = fitted._predictor.expansion(), every_value(X)[0]
    points = expansion.points_of(*fitted.encoder_.transform(cells))
    values = (expansion.kernel(points) @ expansion.dual) * expansion.target.spread
    found = fitted.explain(X[:2], n_background=500)
    for row in range(2):
        expected = by_coalitions(X, row, values[:, 0])
        np.testing.assert_allclose(found.values[row], expected, atol=1e-8)
    few = fitted.explain(X[:2], n_background=50)
    np.testing.assert_allclose(few.predictions, found.predictions, atol=1e-9)
    assert 1e-6 < np.abs(few.values - found.values).max() < 0.5
    fold = int(fitted.held_out_fold_.max())
    judging = np.flatnonzero(fitted.held_out_fold_ == fold)[:2]
    told, rows = fitted.explain_held_out(judging), fitted._predictor.rows.take(judging)
    K = expansion.kernel(expansion.points_of(rows.numeric, rows.codes))
    whole = (K @ fitted._predictor.duals[fold])[:, 0] * expansion.target.spread
    np.testing.assert_allclose(told.predictions, whole + expansion.target.centre, atol=1e-9)


def test_a_column_that_is_left_out_adds_nothing_and_reasons_are_in_words() -> None:
    X, y = table(60, 4, 5)
    X.insert(1, "always", 1.0)
    X.loc[::7, "town"] = None
    fitted = EvidenceKernelRegressor(warp=False, **QUICK).fit(X, y)
    found = fitted.explain(X[:20])
    assert found.feature_names == list(X)
    assert (found.values[:, 1] == 0.0).all()
    assert (found.errors[:, 1] == 0.0).all()
    row = int(np.argmax(X["n1"].isna()[:20]))
    said = found.reasons(4)[row]
    assert any(each.startswith("n1 = missing: ") for each in said)
    assert any(each.startswith(f"day = {X['day'][row].date()}: ") for each in said)
    # a gap among words has one name, whoever tells of it
    for told in (found, fitted.explain_held_out([0])):
        assert any(each.startswith("town = missing: ") for each in told.reasons(5)[0])
    sizes = [abs(float(each.rpartition(" ")[2].replace("−", "-"))) for each in said]
    assert sizes == sorted(sizes, reverse=True)
    assert [each[:1] for each in found.reasons(1)] == [each[:1] for each in found.reasons(3)]
    with pytest.raises(ValueError, match="output must be an integer >= 0 and <= 0, got 3"):
        found.reasons(3, output=3)
    with pytest.raises(ValueError, match="n_reasons must be an integer >= 1, got -1"):
        found.reasons(-1)


def test_shap_takes_the_values(model) -> None:
    shap = pytest.importorskip("shap")
    X, fitted = model
    found = fitted.explain(X[:4])
    told = found.to_shap()
    assert isinstance(told, shap.Explanation)
    np.testing.assert_array_equal(told[1].values, found.values[1])
    assert told[1].base_values == found.base_values[1]
    assert list(told.feature_names) == list(X)


def test_without_shap_the_way_out_is_named(model, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shap", None)
    X, fitted = model
    with pytest.raises(ImportError, match="pip install shap"):
        fitted.explain(X[:1]).to_shap()


def test_settings_that_make_no_sense_are_refused(model) -> None:
    X, fitted = model
    with pytest.raises(ValueError, match="scale must be one of 'link', 'response'"):
        fitted.explain(X, scale="odds")
    with pytest.raises(ValueError, match="n_background must be an integer >= 2"):
        fitted.explain(X, n_background=1)
    with pytest.raises(ValueError, match="now missing:\n- town"):
        fitted.explain(X.drop(columns="town"))


def test_factors_that_do_not_fit_into_memory_are_refused(model) -> None:
    X, fitted = model
    with config_context(memory_limit=100_000), pytest.raises(MemoryBudgetError, match="factors"):
        fitted.explain(X[:1])


def test_the_laplacian_is_a_mixture_of_gaussians() -> None:
    d = np.concatenate([[0.0], np.logspace(-12.0, 2.0, 2000)])
    rates, weights = mixture()
    found = np.exp(-rates * d[:, None] ** 2) @ weights
    np.testing.assert_allclose(found, np.exp(-d), rtol=0, atol=5e-9)


@pytest.mark.parametrize("n_players", [1, 2, 7, 20, 150])
def test_the_nodes_integrate_products_of_all_players_but_one(n_players: int) -> None:
    roots = np.random.RandomState(0).rand(2, n_players - 1)
    rules = rules_for(n_players)
    nodes, masses = rules.nodes[-1], rules.masses[-1]
    values = np.prod(roots[0] + nodes[:, None] * (roots[1] - roots[0]), axis=1)
    many, own = np.polynomial.legendre.leggauss(100)
    exact = np.prod(roots[0] + 0.5 * (many[:, None] + 1.0) * (roots[1] - roots[0]), axis=1)
    assert abs(masses @ values - 0.5 * own @ exact) < 1e-10 * exact.max()
    # the steepest product: of players without whom nothing is worth anything
    assert abs(masses @ nodes ** (n_players - 1) - 1.0 / n_players) < 1e-9


@pytest.mark.parametrize("spread", [1e-5, 1e-2, 1.0])
def test_few_nodes_are_as_exact_as_asked(spread: float) -> None:
    state = np.random.RandomState(1)
    n_players, least = 20, 1e-12
    mean = np.clip(1.0 - spread * state.rand(n_players, 150), 0.0, 1.0)
    own = np.clip(mean + spread * (state.rand(3, n_players, 150) - 0.5), 0.0, 1.0)
    rules = rules_for(n_players)
    exact = Quadrature(*(each[-1:] for each in rules))
    found, wanted = np.zeros((2, 3, n_players, 150))
    add_games(own, mean, 7.0, *rules, least, found)
    add_games(own, mean, 7.0, *exact, least, wanted)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=least)
    few = Quadrature(*(each[:1] for each in rules))
    wrong = np.zeros_like(found)
    add_games(own, mean, 7.0, *few, least, wrong)
    assert (np.abs(wrong - wanted).max() > least) == (spread > 1e-3)
