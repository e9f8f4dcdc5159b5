"""Effects of columns and pairs, and the shares of the product term, against brute force."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Dimension,
    EffectDisplay,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
)
from kernelweave.evidence.explaining.anova import anova_shares, centred_products
from kernelweave.evidence.explaining.effects import EffectFinder
from kernelweave.evidence.explaining.expansion import Expansion
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.terms import Scales
from kernelweave.evidence.views import Views
from sklearn.datasets import load_iris, make_friedman1
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    X, y = make_friedman1(120, n_features=6, noise=0.5, random_state=0)
    X = pd.DataFrame(X, columns=list("abcdef"))
    state = np.random.RandomState(0)
    X["town"] = state.choice(["north", "south", "west"], 120)
    y = y + 6.0 * (X["town"] == "north").to_numpy()
    X.loc[state.rand(120) < 0.1, "d"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def model(table):
    return EvidenceKernelRegressor(warp=False, **QUICK).fit(*table)


@pytest.fixture(scope="module")
def display(model):
    return EffectDisplay.from_estimator(
        model, columns=["d", "town", ("a", "town"), ("a", "b")], n_rows=120
    )


@pytest.fixture
def product_term():
    """Two parts of products over two numbers and a column of three levels."""
    state = np.random.RandomState(0)
    numeric, codes = state.rand(40, 2), state.randint(0, 3, (40, 1))
    rows = Rows(numeric, codes, state.randn(1, 40))
    views = Views.of(numeric, codes)
    scales = [
        Scales(np.ones(3), np.array(strength), weight * np.eye(5)[3], 0.1)
        for strength, weight in (([0.5, 2.0, 0.3], 1.5), ([0.1, 0.4, 1.0], 0.7))
    ]
    expansion = Expansion(
        views, views.points(numeric, codes), scales, state.randn(40, 1), Standardised.of(rows),
        0.0, lambda functionals: functionals[:, 0], np.ones(1),
    )  # fmt: skip
    return expansion, rows


def kappa(expansion, i: int, values) -> np.ndarray:
    """κ between values of one dimension and the points, from its definition."""
    views, points = expansion.views, expansion.points
    if i < 2:
        u, v = np.asarray(values)[:, None], points.U[i]
        return 3 * (-abs(u - v) + u * u - u + 0.5 + v * v - v + 0.5 - 1 / 3)
    share, own, code = views.shares[0], points.C[0], np.asarray(values)[:, None]
    overlap = (own == code) - share[own] - share[code] + np.sum(share**2)
    return views.jump[2] * overlap


def test_a_dimension_is_averaged_once_for_all_its_pairs(product_term, monkeypatch) -> None:
    expansion, rows = product_term
    dimensions = [Dimension(name, name, "number") for name in "ab"]
    dimensions.append(Dimension("c", "c", "level", tuple("uvw"), np.array([0.4, 0.3, 0.3])))
    finder = EffectFinder(expansion, rows, dimensions, lambda latent: latent[:, 0], 0)
    asked, mean = [], EffectFinder._mean

    def counted(self, *settings):
        asked.append(settings)
        return mean(self, *settings)

    monkeypatch.setattr(EffectFinder, "_mean", counted)
    finder.strongest_pairs(2, range(3))
    # two dimensions at a time, each alone, and the mean
    assert len(asked) == (5 * 5 + 5 * 3 + 5 * 3) + (5 + 5 + 3) + 1


def test_moments_of_kappa_are_those_of_quadrature(product_term) -> None:
    expansion, _ = product_term
    found = centred_products(expansion.views, expansion.points, slice(3, 9))
    for i in (0, 1):
        values = kappa(expansion, i, (np.arange(4000) + 0.5) / 4000)
        np.testing.assert_allclose(found[i], values[:, 3:9].T @ values / 4000, atol=1e-5)
    values = kappa(expansion, 2, np.arange(3))
    expected = values[:, 3:9].T @ (expansion.views.shares[0][:, None] * values)
    np.testing.assert_allclose(found[2], expected, atol=1e-12)


def test_shares_of_the_product_term_are_those_of_a_grid(product_term) -> None:
    """All values on a fine grid, and their analysis of variance by averages."""
    expansion, rows = product_term
    middle, share = (np.arange(80) + 0.5) / 80, expansion.views.shares[0]
    factors = [kappa(expansion, i, each) for i, each in enumerate((middle, middle, np.arange(3)))]
    whole = 0.0
    for each in expansion.scales:
        parts = [(1 + s * f) / (1 + s) for s, f in zip(each.strength, factors, strict=True)]
        dual = each.weights[3] * expansion.dual[:, 0]
        whole = whole + np.einsum("at,bt,ct,t->abc", *parts, dual)
    numbers = whole @ share
    mean = numbers.mean()
    alone = [numbers.mean(1) - mean, numbers.mean(0) - mean]
    both = numbers - mean - alone[0][:, None] - alone[1]
    of_levels = share @ (whole.mean(axis=(0, 1)) - mean) ** 2
    variance = np.mean((whole - mean) ** 2 @ share)
    dimensions = [Dimension(name, name, "number") for name in "ab"]
    dimensions.append(Dimension("c", "c", "level", tuple("xyz"), share))
    found = anova_shares(expansion, rows, dimensions, 0)
    expected = np.array([np.mean(alone[0] ** 2), np.mean(alone[1] ** 2), of_levels]) / variance
    np.testing.assert_allclose(list(found.columns.values()), expected, atol=2e-3)
    assert found.pairs["a", "b"] == pytest.approx(np.mean(both**2) / variance, abs=2e-3)
    assert sum([*found.columns.values(), *found.pairs.values(), found.rest]) == pytest.approx(1)
    assert found.terms["product"] == pytest.approx(1.0)


def test_shares_of_the_terms_add_up_and_say_what_the_product_has(model) -> None:
    found = model.anova_shares()
    assert sum(found.terms.values()) == pytest.approx(1.0)
    assert "of the prediction's variance" in str(found)
    with pytest.raises(ValueError, match="output must be"):
        model.anova_shares(output=1)


def test_a_curve_is_the_partial_dependence_of_the_model(table, model, display) -> None:
    X, _ = table
    number, words = display.effects
    assert not number.is_level
    assert list(words.grid) == ["north", "south", "west"]
    for effect in display.effects:
        expected = [model.predict(X.assign(**{effect.column: g})).mean() for g in effect.grid]
        np.testing.assert_allclose(effect.effect, expected - model.predict(X).mean(), atol=1e-9)
    peer = partial_dependence(model, X, ["town"], categorical_features=["town"])["average"][0]
    np.testing.assert_allclose(words.effect, peer - model.predict(X).mean(), atol=1e-9)


def test_a_band_is_the_posterior_of_the_average(table, model, display) -> None:
    """Two standard deviations, from the whole covariance, where no prediction is cut."""
    X, _ = table
    mixture, effect = model._predictor.mixture, display.effects[0]
    own = model.encode(X)
    for k in (10, 12):
        moved = model.encode(X.assign(d=effect.grid[k]))
        both = np.vstack([moved, own])
        cross = model.kernel_(
            both, np.hstack([model._predictor.rows.numeric, model._predictor.rows.codes])
        )
        half = np.linalg.solve(np.tril(mixture.factor), cross.T)
        covariance = model.kernel_(both) - half.T @ half
        direction = np.repeat([1.0, -1.0], 120) / 120
        width = 2 * np.sqrt(direction @ covariance @ direction) * mixture.target.spread[0]
        np.testing.assert_allclose(effect.high[k] - effect.effect[k], width, rtol=1e-5)
        np.testing.assert_allclose(effect.effect[k] - effect.low[k], width, rtol=1e-5)


def test_a_map_is_what_two_columns_do_beyond_each_alone(table, model, display) -> None:
    X, _ = table
    for pair in display.pairs:
        one, two = pair.columns
        g, h = pair.grids[0][3], pair.grids[1][1]
        mean = model.predict(X).mean()
        both = model.predict(X.assign(**{one: g, two: h})).mean()
        alone = (
            model.predict(X.assign(**{one: g})).mean() + model.predict(X.assign(**{two: h})).mean()
        )
        assert pair.effect[3, 1] == pytest.approx(both - alone + mean, abs=1e-9)


def test_the_strongest_pair_of_friedmans_function_is_found(model) -> None:
    display = EffectDisplay.from_estimator(model, n_columns=4, n_pairs=1, n_rows=80)
    assert {each.column for each in display.effects} == {"a", "b", "d", "town"}
    assert set(display.pairs[0].columns) == {"a", "b"}
    assert len(display.axes_) == 5
    assert display.axes_[0].get_ylim() == display.axes_[1].get_ylim()


def test_of_classes_the_mean_probability_is_shown(table) -> None:
    X, y = table
    model = EvidenceKernelClassifier(**QUICK).fit(X, np.where(y > 15, "high", "low"))
    display = EffectDisplay.from_estimator(model, columns=["d"], n_rows=120)
    effect = display.effects[0]
    assert display.response == "P(low)"
    expected = [model.predict_proba(X.assign(d=g))[:, 1].mean() for g in effect.grid]
    np.testing.assert_allclose(
        effect.effect, expected - model.predict_proba(X)[:, 1].mean(), atol=1e-9
    )
    assert (effect.low < effect.effect).all()
    assert (effect.effect < effect.high).all()
    other = EffectDisplay.from_estimator(model, columns=["d"], n_rows=120, output=0).effects[0]
    np.testing.assert_allclose(other.effect, -effect.effect, atol=1e-9)


@pytest.mark.parametrize("averaged", [True, False])
def test_each_of_several_classes_has_its_effects(averaged: bool, monkeypatch) -> None:
    if not averaged:
        monkeypatch.setattr(EvidenceKernelClassifier, "_last_step", lambda _, predictor: predictor)
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.drop_duplicates()
    model = EvidenceKernelClassifier(**QUICK).fit(X, y[X.index])
    effect = EffectDisplay.from_estimator(
        model, columns=["petal length (cm)"], n_rows=200, output=2
    ).effects[0]
    whole = model.predict_proba(X)[:, 2].mean()
    for k in (0, 12, -1):
        moved = X.assign(**{effect.column: effect.grid[k]})
        expected = model.predict_proba(moved)[:, 2].mean() - whole
        assert effect.effect[k] == pytest.approx(expected, abs=1e-9)
    assert (effect.low < effect.high).all()
    assert sum(model.anova_shares(output=2).terms.values()) == pytest.approx(1.0)


def test_effects_of_a_model_by_landmarks() -> None:
    X, y = make_friedman1(2600, n_features=5, noise=0.5, random_state=0)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    effect = EffectDisplay.from_estimator(model, columns=["x3"], n_rows=100).effects[0]
    np.testing.assert_allclose(np.diff(effect.effect) / np.diff(effect.grid), 10.0, atol=1.5)
    width = effect.high - effect.low
    assert (width > 0).all()
    assert (width < 1.0).all()
    assert sum(model.anova_shares().terms.values()) == pytest.approx(1.0)


def test_prices_have_effects_in_their_own_unit(table) -> None:
    X, y = table
    prices = np.exp(0.3 * y)
    model = EvidenceKernelRegressor(**QUICK).fit(X, prices)
    assert model._predictor.mixture.target.warps
    effect = EffectDisplay.from_estimator(model, columns=["d"], n_rows=120).effects[0]
    expected = [model.predict(X.assign(d=g)).mean() for g in effect.grid]
    np.testing.assert_allclose(effect.effect, expected - model.predict(X).mean(), rtol=1e-6)
    assert (effect.low <= effect.effect).all()
    assert (effect.effect <= effect.high).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": ["g"]}, "columns must be among a, b"),
        ({"output": 1}, "output must be between 0 and 0, got 1"),
        ({"n_rows": 1}, "n_rows must be"),
        ({"columns": [("a", "b", "c")]}, "names and pairs of two names"),
        ({"columns": ["a", "b"], "ax": [None]}, "ax must hold 2 axes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(model, change, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        EffectDisplay.from_estimator(model, **change)


def test_another_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="got LinearRegression"):
        EffectDisplay.from_estimator(LinearRegression())
