"""Effects of columns and pairs, against brute force."""

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
from kernelweave.evidence.explaining.averages import SetMeans
from kernelweave.evidence.explaining.effects import EffectFinder, _Column
from kernelweave.evidence.mixture import Expansion
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


def of_product(product_term) -> EffectFinder:
    expansion, rows = product_term
    dimensions = [Dimension(name, name, "number") for name in "ab"]
    dimensions.append(Dimension("c", "c", "category", tuple("uvw"), np.array([0.4, 0.3, 0.3])))
    return EffectFinder(expansion, rows, dimensions, lambda latent: latent[:, 0], 0)


def test_a_dimension_is_averaged_once_for_all_its_pairs(product_term, monkeypatch) -> None:
    finder, asked, means = of_product(product_term), [], EffectFinder._means

    def counted(self, *grids):
        asked.append(int(np.prod([len(grid) for _, grid in grids])))
        return means(self, *grids)

    monkeypatch.setattr(EffectFinder, "_means", counted)
    finder.strongest_pairs(2, range(3))
    # two dimensions at a time, and each alone
    assert sum(asked) == (5 * 5 + 5 * 3 + 5 * 3) + (5 + 5 + 3)


@pytest.mark.parametrize("chosen", [(0,), (2,), (0, 1), (0, 2), (2, 1)])
def test_means_on_a_grid_are_those_of_rows_that_are_set(chosen, product_term) -> None:
    finder = of_product(product_term)
    assert finder._are_apart(chosen)
    check_means(finder, chosen)


def check_means(finder: EffectFinder, chosen: tuple[int, ...]) -> None:
    grids = [(j, finder._grid(j, 4)) for j in chosen]
    found = finder._means(*grids)
    assert found.shape == tuple(len(grid) for _, grid in grids)
    for at in np.ndindex(found.shape):
        settings = [(j, grid[k]) for (j, grid), k in zip(grids, at, strict=True)]
        assert found[at] == pytest.approx(finder._mean(*settings), rel=1e-10, abs=1e-10)


def test_of_a_fit_they_are_those_too(table, model) -> None:
    """Also of a number that some rows miss, and of what tells so, which stands on its own."""
    rows = model._predictor.rows.take(np.arange(30))
    finder = EffectFinder(
        model._predictor.expansion(), rows, model.dimensions_, lambda latent: latent[:, 0], 0
    )
    places = {(each.name, each.kind): j for j, each in enumerate(model.dimensions_)}
    a, d = places["a", "number"], places["d", "number"]
    town = next(j for (_, kind), j in places.items() if kind == "category")
    missing = next(j for (_, kind), j in places.items() if kind == "missing")
    for chosen in ((d,), (a, d), (d, town)):
        assert finder._are_apart(chosen)
        check_means(finder, chosen)
    for j in (a, d, town):
        values = finder._grid(j, 4)
        means = SetMeans(finder.expansion, rows, _Column(finder, j), values)
        to_points, together = means.to(finder.expansion.points), means.together()
        for value, to, mean in zip(values, to_points, together, strict=True):
            set_to = finder._with((j, value))
            points = finder.expansion.points_of(set_to.numeric, set_to.codes)
            assert mean == pytest.approx(finder.expansion.kernel(points, points).mean(), rel=1e-10)
            np.testing.assert_allclose(to, finder.expansion.kernel(points).mean(axis=0), atol=1e-10)
    assert not finder._are_apart((missing,))
    check_means(finder, (a, missing))


def test_a_curve_is_the_partial_dependence_of_the_model(table, model, display) -> None:
    X, _ = table
    number, words = display.effects
    assert not number.is_category
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
        monkeypatch.setattr("kernelweave.evidence.fit.with_likelihood", lambda model: model)
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


@pytest.mark.usefixtures("by_landmarks")
def test_effects_of_a_model_by_landmarks() -> None:
    X, y = make_friedman1(600, n_features=5, noise=0.5, random_state=0)
    model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=15, n_landmarks=100).fit(X, y)
    assert "landmarks" in str(model.certificate_)
    effect = EffectDisplay.from_estimator(model, columns=["x3"], n_rows=100).effects[0]
    np.testing.assert_allclose(np.diff(effect.effect) / np.diff(effect.grid), 10.0, atol=1.5)
    width = effect.high - effect.low
    assert (width > 0).all()
    assert (width < 1.0).all()


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
