"""Warm starts, and the choice of parameters by cross-validation on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernelweave.kernels_core import (
    KernelWeaveWarning,
    Problem,
    TessellatedFamily,
    UnderfitWarning,
    solve,
)
from kernelweave.kernels_core.testing import make_classification, make_regression
from kernelweave.qp_smo import SVC
from kernelweave.spectahedron import (
    Spectahedron,
    Start,
    TessellatedKernelClassifier,
    TessellatedKernelClassifierCV,
    TessellatedKernelRegressor,
    TessellatedKernelRegressorCV,
)
from kernelweave.spectahedron.model_selection import grid_ends
from kernelweave.spectahedron.settings import dual_coef_at_new_penalty
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, check_cv


def solves(model: Any) -> int:
    return int(model.result_.history.counts["n_solves"][-1])


def test_a_start_at_the_solution_needs_few_solves() -> None:
    X, y = make_classification(60)
    family = TessellatedFamily(1, lower=[-0.1] * 2, upper=[1.1] * 2)
    problem = Problem(family, SVC(C=5.0), Spectahedron(), X, y)
    cold = solve(problem, "tkl-low-rank", tol=1e-4)
    start = Start(cold.parameters, cold.solution.dual_coef)
    warm = solve(problem, "tkl-low-rank", tol=1e-4, start=start)
    assert warm.gap <= 1e-4
    assert warm.history.counts["n_solves"][-1] <= 2
    assert warm.lower_bound <= cold.upper_bound
    assert cold.lower_bound <= warm.upper_bound


def test_a_start_of_the_wrong_shape_is_refused() -> None:
    X, y = make_classification(20)
    family = TessellatedFamily(0, lower=[-0.1] * 2, upper=[1.1] * 2)
    problem = Problem(family, SVC(), Spectahedron(), X, y)
    with pytest.raises(ValueError, match=r"start\.P"):
        solve(problem, "tkl-low-rank", start=Start(np.eye(3), np.zeros((1, 20))))
    with pytest.raises(ValueError, match=r"start\.dual_coef"):
        solve(problem, "tkl-low-rank", start=Start(np.eye(2), np.zeros((1, 19))))


def test_coefficients_at_a_cap_follow_it() -> None:
    u = np.array([[1.0, -1.0, 0.5, -0.2, 0.0]])
    assert_allclose(dual_coef_at_new_penalty(u, 1.0, 3.0), [[3.0, -3.0, 0.5, -0.2, 0.0]])
    assert_allclose(dual_coef_at_new_penalty(u, 1.0, 0.4), [[0.4, -0.4, 0.4, -0.2, 0.0]])


@pytest.mark.parametrize("name", ["C", "epsilon", "delta"])
def test_warm_paths_prove_the_same_in_fewer_solves(name: str) -> None:
    X, y = make_regression(60)
    values = {"C": [0.1, 0.2, 0.4], "epsilon": [0.1, 0.12, 0.15], "delta": [0.3, 0.32, 0.35]}[name]
    path = TessellatedKernelRegressor(C=0.1, tol=1e-3, warm_start=True)
    total = alone = 0
    for value in values:
        path.set_params(**{name: value}).fit(X, y)
        single = clone(path).set_params(warm_start=False).fit(X, y)
        assert path.certificate_.gap <= 1e-3
        assert path.certificate_.lower_bound <= single.certificate_.upper_bound
        assert single.certificate_.lower_bound <= path.certificate_.upper_bound
        total, alone = total + solves(path), alone + solves(single)
    assert total < alone


def test_a_warm_start_survives_other_data() -> None:
    X, y = make_classification(40)
    model = TessellatedKernelClassifier(C=1.0, warm_start=True).fit(X, y)
    model.fit(X[:30], y[:30])
    assert model.certificate_.gap <= 1e-3
    model.set_params(degree=0).fit(X, y)
    assert model.P_.shape == (2, 2)


def test_a_search_costs_a_few_fits() -> None:
    X, y = load_iris(return_X_y=True)
    grid = (0.01, 0.1, 1.0, 10.0, 100.0)
    search = TessellatedKernelClassifierCV(C=grid).fit(X, y)
    assert search.best_params_["C"] in grid
    assert search.certificate_.gap <= 1e-3
    assert search.score(X, y) > 0.95
    assert search.decision_function(X).shape == (150, 3)
    cold = sum(
        solves(TessellatedKernelClassifier(C=C, tol=0.02).fit(X[train], y[train]))
        for C in grid
        for train, _ in check_cv(5, y, classifier=True).split(X, y)
    )
    assert search.n_solves_ <= cold / 2


def test_regression_search_over_three_axes() -> None:
    X, y = make_regression(60)
    search = TessellatedKernelRegressorCV(
        C=(0.1, 10.0), epsilon=(0.05, 0.2), delta=(0.2, 0.5), cv=KFold(3)
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.cv_results_["split2_test_score"].shape == (8,)
    assert set(search.best_params_) == {"C", "epsilon", "delta"}
    best = search.cv_results_["mean_test_score"].max()
    assert search.best_score_ == best
    assert search.predict(X).shape == (60,)
    assert set(search.at_end_) == {"C", "epsilon", "delta"}


def test_a_search_says_what_lies_at_an_end_of_its_grid() -> None:
    X, y = make_regression(60)
    with pytest.warns(UnderfitWarning):
        low = TessellatedKernelRegressorCV(C=(1e-6, 1e-5), cv=2).fit(X, y)
    assert low.at_end_ == {"C": "largest"}
    # a grid of C for each delta: no value of C is tried at two
    settings = [{"delta": d, "C": c / d} for d in (0.1, 0.5, 0.9) for c in (1.0, 2.0, 3.0)]
    found = [grid_ends(settings, setting) for setting in settings]
    assert found[4] == {}
    assert found[0] == {"delta": "smallest", "C": "smallest"}
    assert found[5] == {"C": "largest"}
    assert found[7] == {"delta": "largest"}


def test_the_units_of_c_follow_the_size_of_the_kernel() -> None:
    X, y = make_classification(60)
    narrow = TessellatedKernelClassifierCV(delta=(0.1,), cv=2).fit(X, y)
    wide = TessellatedKernelClassifierCV(delta=(2.0,), cv=2).fit(X, y)
    assert narrow.cv_results_["params"][0]["C"] == wide.cv_results_["params"][0]["C"] == 0.1
    first, second = (s.C_ / s.best_params_["C"] for s in (narrow, wide))
    assert second < first / 10
    in_absolute_units = TessellatedKernelClassifierCV(units="absolute", delta=(2.0,), cv=2).fit(
        X, y
    )
    assert_allclose(in_absolute_units.best_params_["C"], second * wide.best_params_["C"])
    assert_allclose(in_absolute_units.best_score_, wide.best_score_)


def test_the_automatic_grid_goes_on_while_the_best_lies_at_its_end(monkeypatch: Any) -> None:
    X, y = make_regression(60)
    grids = {**TessellatedKernelRegressorCV.grids, "C": (1e-4, 1e-3)}
    monkeypatch.setattr(TessellatedKernelRegressorCV, "grids", grids)
    search = TessellatedKernelRegressorCV(delta=0.5, epsilon=0.1, cv=3).fit(X, y)
    tried = [setting["C"] for setting in search.cv_results_["params"]]
    assert_allclose(tried, 10.0 ** np.arange(-4.0, len(tried) - 4.0))
    assert search.cv_results_["split2_gap"].shape == (len(tried),)
    assert search.best_params_["C"] == tried[-2]
    assert search.at_end_ == {}


@pytest.mark.parametrize("units", ["scale", "absolute"])
def test_a_search_ends_where_no_step_is_clearly_better(units: str) -> None:
    """Tube, box and C move one step at a time; in any units of C and ε."""
    X, y = make_regression(60)
    y = 10.0 * y
    search = TessellatedKernelRegressorCV(units=units, cv=3).fit(X, y)
    results = search.cv_results_
    spread = np.std(y) if units == "absolute" else 1.0
    settings = [(s["delta"], round(s["epsilon"] / spread, 6), s["C"]) for s in results["params"]]
    scores = np.array([results[f"split{k}_test_score"] for k in range(3)]).T
    assert [each[:2] for each in settings[:5]] == [(0.5, 0.1)] * 5
    at = int(scores[:5].mean(axis=1).argmax())
    for i in range(5, len(settings)):
        gain, only_C = scores[i] - scores[at], settings[i][:2] == settings[at][:2]
        least = 0.0 if only_C else gain.std(ddof=1) / np.sqrt(3)
        at = i if scores[i].mean() > scores[at].mean() + least else at
    delta, epsilon, C = settings[at]
    near = {each[1:] for each in settings if each[0] == delta}
    near = {(tube, f"{penalty / C:.3g}") for tube, penalty in near}
    assert near >= {(epsilon, "10"), (epsilon, "0.1")}
    assert near >= {(tube, "1") for tube in (epsilon / 2, epsilon * 2) if 0.0125 <= tube <= 0.8}
    assert {each[0] for each in settings} >= {0.1, 0.5}
    assert search.best_score_ == results["mean_test_score"].max()
    assert len(settings) <= 20


def test_one_value_of_c_leaves_the_others_to_the_search() -> None:
    X, y = make_regression(60)
    search = TessellatedKernelRegressorCV(C=10.0, cv=2).fit(X, y)
    settings = search.cv_results_["params"]
    assert {s["C"] for s in settings} == {10.0}
    assert {s["epsilon"] for s in settings} >= {0.05, 0.1}
    assert {s["delta"] for s in settings} >= {0.1, 0.5}
    alone = TessellatedKernelRegressorCV(C=10.0, epsilon=0.1, delta=0.5).fit(X, y)
    assert alone.cv_results_ is None


@pytest.mark.parametrize("given", [{"kernel": "polynomial"}, {"domain": (-0.5, 1.5)}])
def test_a_box_that_changes_nothing_is_not_searched(given: dict[str, Any]) -> None:
    X, y = make_classification(40)
    search = TessellatedKernelClassifierCV(cv=2, C=[1.0, 10.0], **given).fit(X, y)
    assert [s["delta"] for s in search.cv_results_["params"]] == [0.5, 0.5]


def test_a_best_value_at_the_end_of_a_wide_grid_warns() -> None:
    X, y = make_regression(60)
    reason = "best C of the search, 1e-06, is the largest"
    with pytest.warns(UnderfitWarning), pytest.warns(KernelWeaveWarning, match=reason):
        TessellatedKernelRegressorCV(C=(1e-8, 1e-7, 1e-6), cv=2).fit(X, y)


def test_parameters_are_checked() -> None:
    X, y = make_classification(20)
    with pytest.raises(ValueError, match=r"C must be .*, a list of such, or 'cv', got 'best'"):
        TessellatedKernelClassifierCV(C="best").fit(X, y)
    with pytest.raises(ValueError, match="delta must be"):
        TessellatedKernelClassifierCV(delta=()).fit(X, y)
    with pytest.raises(ValueError, match="2 classes"):
        TessellatedKernelClassifierCV().fit(X, np.ones(20))


def test_it_knows_the_names_of_the_columns() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X, y = make_regression(40)
    table = pandas.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    search = TessellatedKernelRegressorCV(C=[0.1], delta=[0.5], cv=2).fit(table, y)
    assert_array_equal(search.feature_names_in_, table.columns)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(table.rename(columns={"column 0": "another"}))


@pytest.mark.parametrize("kind", [TessellatedKernelClassifierCV, TessellatedKernelRegressorCV])
def test_a_weight_of_two_is_the_sample_twice_and_one_of_zero_is_none(kind: Any) -> None:
    X, y = make_regression(40)
    targets = y if kind is TessellatedKernelRegressorCV else y > np.median(y)
    weight = np.tile([0.0, 1.0, 2.0, 1.0], 10)
    splits = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    doubled = np.repeat(np.arange(40), weight.astype(int))
    half = np.flatnonzero(doubled < 20), np.flatnonzero(doubled >= 20)
    options = {"C": [0.1, 10.0], "tol": 1e-6, "cv_tol": 1e-6, "cv_max_iter": 500}
    model = kind(cv=splits, **options).fit(X, targets, weight)
    rows = kind(cv=[half, half[::-1]], **options).fit(X[doubled], targets[doubled])
    assert model.best_params_ == rows.best_params_
    assert_allclose(
        model.cv_results_["mean_test_score"], rows.cv_results_["mean_test_score"], atol=1e-3
    )
    assert_allclose(model.predict(X), rows.predict(X), atol=1e-3)
    assert not [name for name in vars(model) if name in ("_start", "_warm")]


def test_the_last_fit_begins_at_the_mean_of_the_folds() -> None:
    X, y = make_regression(60)
    search = TessellatedKernelRegressorCV(C=[1.0, 10.0], cv=3, cv_tol=1e-4, cv_max_iter=500)
    cold = TessellatedKernelRegressor(**search.fit(X, y).best_params_).fit(X, y)
    assert solves(search) < solves(cold)
    assert search.certificate_.lower_bound <= cold.certificate_.upper_bound
    assert cold.certificate_.lower_bound <= search.certificate_.upper_bound


@pytest.mark.parametrize("name", ["C", "delta", "epsilon"])
@pytest.mark.parametrize("value", [-0.1, None, "0.1", [], [0.5, "0.1"]])
def test_what_is_no_number_and_no_list_of_such_is_named(name: str, value: Any) -> None:
    X, y = make_regression(20)
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        TessellatedKernelRegressorCV(cv=2, **{name: value}).fit(X, y)
