"""Models that learn and forget rows are those of their rows, with the kernel that they have."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.columns.encoded import GroupColumn, GroupTerm
from kernelweave.evidence.living.mixin import why_it_stays
from scipy.linalg import cho_factor, cho_solve
from sklearn.model_selection import KFold, TimeSeriesSplit

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.KernelWeaveWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK: dict[str, Any] = {"precisions": (5.0,), "max_iter": 5, "warp": False}
N, N_FIRST = 96, 72
FIRST, LATER = np.arange(N_FIRST), np.arange(N_FIRST, N)
WORDS = ["red apple", "green pear", "old house", "new car", "blue sky", "cold rain"]


def table(seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Rows of numbers, categories, groups, dates, texts and gaps, and a target."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N)})
    X["c"] = rng.choice(list("pqrs"), N)
    X["patient"] = [f"p{k:02}" for k in rng.integers(0, 20, N)]
    X["t"] = np.arange(float(N))
    X["gap"] = np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N))
    X["when"] = pd.date_range("2020-01-01", periods=N, freq="D")
    X["text"] = [f"{' '.join(rng.choice(WORDS, 3))} {i}" for i in range(N)]
    y = np.sin(2.0 * X["a"]) + X["b"] * (X["c"] == "p") + 0.3 * rng.normal(size=N)
    return X, y.to_numpy()


X, Y = table()
NUMBERS = X[["a", "b"]].to_numpy()
COPIES = np.concatenate([np.arange(N - 20), np.arange(20)])
WEIGHTS = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], N)
FAR = Y + 15.0 * (np.arange(N) % 30 == 7)
HALF = np.array([f"<{v:.2f}" if k % 3 else f"{v:.2f}" for k, v in enumerate(np.abs(Y) + 0.1)])
COUNTS = np.random.default_rng(2).poisson(np.exp(1.2 * Y)).astype(float)
REGRESSOR, CLASSIFIER = EvidenceKernelRegressor, EvidenceKernelClassifier
# the estimator, the table, its targets, and what else a fit gets: a value for each row, or a name
CASES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "numbers": (REGRESSOR(**QUICK), NUMBERS, Y, {}),
    "categories and gaps": (REGRESSOR(**QUICK), X[["a", "c", "gap"]], Y, {}),
    "dates and texts": (
        REGRESSOR(**QUICK, kinds={"text": "text"}), X[["a", "when", "text"]], Y, {},
    ),
    "groups of a column": (
        REGRESSOR(**QUICK), X[["a", "b", "patient"]], Y, {"groups": "patient"},
    ),
    "groups by row": (REGRESSOR(**QUICK), NUMBERS, Y, {"groups": X["patient"].to_numpy()}),
    "near copies": (
        REGRESSOR(**QUICK), NUMBERS[COPIES] + 1e-4 * NUMBERS, Y[COPIES], {"groups": "rows alike"},
    ),
    "order of a column": (REGRESSOR(**QUICK), X[["a", "b", "t"]], Y, {"order": "t"}),
    "order by row": (REGRESSOR(**QUICK), NUMBERS, Y, {"order": X["t"].to_numpy()}),
    "weights": (REGRESSOR(**QUICK), NUMBERS, Y, {"sample_weight": WEIGHTS}),
    "copies": (REGRESSOR(**QUICK), NUMBERS[COPIES], Y[COPIES], {}),
    "recurring": (REGRESSOR(**QUICK), np.round(NUMBERS).clip(-1, 1), Y, {}),
    "outputs": (REGRESSOR(**QUICK), NUMBERS, np.column_stack([Y, Y**2 + X["a"]]), {}),
    "a power": (REGRESSOR(precisions=(5.0,), max_iter=5), NUMBERS, np.exp(Y), {}),
    "outliers": (REGRESSOR(precisions=(5.0,), max_iter=5), NUMBERS, FAR, {}),
    "counts": (REGRESSOR(precisions=(5.0,), max_iter=5), NUMBERS, COUNTS, {}),
    "known by half": (REGRESSOR(**QUICK), NUMBERS, HALF, {}),
    "three classes": (CLASSIFIER(**QUICK), X[["a", "b", "c"]], np.digitize(Y, [-0.5, 0.6]), {}),
    "two classes, balanced": (
        CLASSIFIER(**QUICK, class_weight="balanced"), NUMBERS, np.where(Y > 0.3, "yes", "no"), {},
    ),
    "a splitter": (REGRESSOR(**QUICK, cv=KFold(3, shuffle=True, random_state=0)), NUMBERS, Y, {}),
    "a splitter in order": (REGRESSOR(**QUICK, cv=TimeSeriesSplit(3)), NUMBERS, Y, {}),
}  # fmt: skip
_FITS: dict[str, Any] = {}


def some(values: Any, rows: Any) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]


def given(name: str, rows: Any) -> tuple[tuple[Any, Any], dict[str, Any]]:
    """Return some of a case's rows, as `fit` and `update` take them."""
    _, table, targets, more = CASES[name]
    told = {key: v if isinstance(v, str) else some(v, rows) for key, v in more.items()}
    return (some(table, rows), some(targets, rows)), told


def fitted(name: str) -> Any:
    """Return the model of the first rows, a copy that a test may change."""
    if name not in _FITS:
        rows, more = given(name, FIRST)
        _FITS[name] = CASES[name][0].fit(*rows, **more)
    return deepcopy(_FITS[name])


def predictions(model: Any, name: str) -> Any:
    table = CASES[name][1]
    return model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)


def moved(method: Any, name: str, rows: Any) -> Any:
    places, more = given(name, rows)
    return method(*places, **more)


@pytest.mark.parametrize("name", CASES)
def test_the_rows_of_the_fit_give_the_fit_to_the_last_bit(name: str) -> None:
    """Nothing but the rows and the kernel decides: predictions, rows held out, intervals.

    The trust in outliers goes through other sums than in the fit, to the last digits.
    """
    atol = 1e-10 if name == "outliers" else 0.0
    model, again = fitted(name), moved(fitted(name).refit, name, FIRST)
    held_out = again.held_out_prediction_, model.held_out_prediction_
    np.testing.assert_allclose(predictions(again, name), predictions(model, name), 0.0, atol)
    np.testing.assert_allclose(*held_out, rtol=0.0, atol=atol)
    np.testing.assert_array_equal(again.held_out_fold_, model.held_out_fold_)
    pd.testing.assert_frame_equal(again.held_out_, model.held_out_, rtol=0.0, atol=atol)
    if hasattr(model, "predict_interval"):
        table = CASES[name][1]
        ends, others = model.predict_interval(table), again.predict_interval(table)
        np.testing.assert_allclose(others, ends, rtol=0.0, atol=atol)


@pytest.mark.parametrize("name", CASES)
def test_update_gives_what_refit_of_all_rows_gives(name: str) -> None:
    """At once to 1e-8; and once all is worked out, to the last byte of a file."""
    updated, all_rows = fitted(name), moved(fitted(name).refit, name, np.arange(N))
    moved(updated.update, name, LATER)
    at_once = predictions(updated, name)
    np.testing.assert_allclose(at_once, predictions(all_rows, name), rtol=0.0, atol=1e-8)
    assert len(updated.held_out_fold_) == N
    assert pickle.dumps(updated) == pickle.dumps(all_rows)


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_forgot_rows_is_one_that_never_had_them(name: str) -> None:
    """Its file is that of the others with the kernel, to the last byte."""
    gone = np.arange(5, 25)
    forgetful = fitted(name).forget(gone)
    never = moved(fitted(name).refit, name, np.setdiff1d(FIRST, gone))
    assert pickle.dumps(forgetful) == pickle.dumps(never)
    # and what was learned is unlearned
    back = moved(fitted(name).update, name, LATER).forget(LATER)
    assert pickle.dumps(back) == pickle.dumps(moved(fitted(name).refit, name, FIRST))


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_updates_says_nothing(name: str) -> None:
    one, other = fitted(name), fitted(name)
    for rows in (LATER[:9], LATER[9:]):
        moved(one.update, name, rows)
    for rows in (LATER[9:], LATER[:9]):
        moved(other.update, name, rows)
    np.testing.assert_allclose(
        predictions(one, name), predictions(other, name), rtol=0.0, atol=1e-8
    )
    assert one.held_out_score_ == pytest.approx(other.held_out_score_, abs=1e-8)


@pytest.mark.parametrize("kind", ["even", "weighted"])
def test_means_are_those_of_dense_algebra_with_the_kernel(kind: str) -> None:
    """S = K + σ²/w + 1e-6, K by the public kernel: nothing of the package's own solving."""
    weight = np.ones(N) if kind == "even" else np.random.default_rng(5).choice([0.5, 2.0], N)
    model = EvidenceKernelRegressor(**QUICK).fit(NUMBERS[FIRST], Y[FIRST], weight[FIRST])
    first = weight[FIRST] / weight[FIRST].mean()
    centre = np.average(Y[FIRST], weights=first)
    spread = np.sqrt(np.average((Y[FIRST] - centre) ** 2, weights=first))
    mass = weight / weight[FIRST].mean()
    model.update(NUMBERS[LATER], Y[LATER], weight[LATER])
    new = np.random.default_rng(9).normal(size=(40, 2))

    def oracle(rows: Any) -> Any:
        seen = model.encode(NUMBERS[rows])
        S = model.kernel_(seen) + np.diag(model.noise_ / mass[rows] + 1e-6)
        dual = cho_solve(cho_factor(S), (Y[rows] - centre) / spread)
        return centre + spread * model.kernel_(model.encode(new), seen) @ dual

    np.testing.assert_allclose(model.predict(new), oracle(np.arange(N)), rtol=0.0, atol=1e-8)
    settled = model.predict(new, return_std=True)[0]
    np.testing.assert_allclose(settled, oracle(np.arange(N)), rtol=0.0, atol=1e-8)
    model.forget([1, 7, 80])
    rest = np.setdiff1d(np.arange(N), [1, 7, 80])
    np.testing.assert_allclose(model.predict(new), oracle(rest), rtol=0.0, atol=1e-8)


@pytest.mark.slow
def test_a_thousand_updates_and_forgets_do_not_drift() -> None:
    """Streaks of updates border the factor; what is forgotten is made again from the rest."""
    rng, model = np.random.default_rng(3), fitted("numbers")
    inputs, targets, n_forgets = list(NUMBERS[FIRST]), list(Y[FIRST]), 0
    for _ in range(1000):
        if len(inputs) > 150 or rng.random() < 0.01:
            gone = rng.choice(len(inputs), len(inputs) - 60, replace=False)
            model.forget(gone)
            left = np.setdiff1d(np.arange(len(inputs)), gone)
            inputs, targets = [inputs[i] for i in left], [targets[i] for i in left]
            n_forgets += 1
        else:
            x = rng.normal(size=2)
            inputs.append(x)
            targets.append(float(np.sin(2.0 * x[0]) + 0.3 * rng.normal()))
            model.update(inputs[-1][None], targets[-1:])
    exact = fitted("numbers").refit(np.array(inputs), np.array(targets))
    assert n_forgets > 10
    np.testing.assert_allclose(model.predict(NUMBERS), exact.predict(NUMBERS), rtol=0.0, atol=1e-7)


def test_new_categories_get_places_of_their_own() -> None:
    """The kernel between rows that were there does not change by a bit."""
    table = X[["a", "c"]]
    model = EvidenceKernelRegressor(**QUICK).fit(table.iloc[FIRST], Y[FIRST])
    before, labels = model.kernel_(model.encode(table)), model.dimensions_[-1].categories
    later = table.iloc[LATER].assign(c=["zebra", None, "ant"] * (len(LATER) // 3))
    model.update(later, Y[LATER])
    np.testing.assert_array_equal(model.kernel_(model.encode(table)), before)
    assert model.dimensions_[-1].categories == (*labels, "ant", "zebra", "(missing)")
    codes = model.encode(later)[:3, -1].astype(int).tolist()
    assert codes == [len(labels) + 1, len(labels) + 2, len(labels)]
    # a word comes between: the codes of later ones move, and predictions do not
    other = deepcopy(model)
    model.update(later.assign(c="monkey"), Y[LATER] + 1.0)
    other.update(later.assign(c="monkey"), Y[LATER] + 1.0)
    other.forget(c="monkey")
    assert other.dimensions_[-1].categories == (*labels, "ant", "zebra", "(missing)")
    assert "monkey" in model.dimensions_[-1].categories


def test_no_word_of_forgotten_rows_is_kept() -> None:
    table = X[["a", "c"]].assign(c=np.where(np.arange(N) % 9 == 0, "Xanthippe", X["c"]))
    model = EvidenceKernelRegressor(**QUICK).fit(table, Y)
    assert b"Xanthippe" in pickle.dumps(model)
    model.forget(c="Xanthippe")
    assert b"Xanthippe" not in pickle.dumps(model)
    assert "(forgotten)" in model.dimensions_[-1].categories
    assert len(model.held_out_fold_) == N - len(np.arange(0, N, 9))


def test_rare_words_of_forgotten_rows_are_not_kept() -> None:
    names = [f"name{k}" if k % 4 == 0 else "pq"[k % 2] for k in range(N)]
    table = X[["a"]].assign(c=names)
    model = EvidenceKernelRegressor(**QUICK, min_frequency=2).fit(table, Y)
    assert b"name8" in pickle.dumps(model)
    codes = model.encode(table)
    model.forget([8])
    assert b"name8" not in pickle.dumps(model)
    np.testing.assert_array_equal(model.encode(table), codes)


def test_groups_stay_in_one_fold_and_new_ones_join_one() -> None:
    rows, more = given("groups of a column", LATER)
    model = fitted("groups of a column").update(*rows, **more)
    patients = X["patient"].to_numpy()
    for patient in np.unique(patients):
        assert len(np.unique(model.held_out_fold_[patients == patient])) == 1
    before = fitted("groups of a column").held_out_fold_
    np.testing.assert_array_equal(model.held_out_fold_[:N_FIRST], before)
    assert (model.held_out_fold_ >= 0).all()


def test_a_new_group_has_a_level_of_its_own() -> None:
    """Known after the update, so that its intercept moves its predictions."""
    table = X[["a", "b", "patient"]]
    shift = np.random.default_rng(4).normal(size=20)
    y = Y + 3.0 * shift[[int(each[1:]) for each in table["patient"]]]
    model = EvidenceKernelRegressor(**QUICK).fit(table.iloc[FIRST], y[FIRST], groups="patient")
    assert model._predictor.rows.group is not None
    new = table.iloc[LATER].assign(patient="newcomer")
    before = model.predict(new)
    model.update(new, Y[LATER] + 9.0)
    assert np.mean(model.predict(new) - before) > 4.0
    assert model._predictor.rows.is_known(*model._encoded(new)).all()


def test_later_rows_go_to_the_last_block() -> None:
    rows, more = given("order of a column", LATER)
    model = fitted("order of a column").update(*rows, **more)
    assert (model.held_out_fold_[LATER] == model.held_out_fold_.max()).all()
    middle = X[["a", "b", "t"]].iloc[LATER].assign(t=50.5)
    model = fitted("order of a column").update(middle, Y[LATER])
    among = fitted("order of a column").held_out_fold_[50]
    assert (model.held_out_fold_[LATER] == among).all()


def test_rows_can_be_forgotten_by_place_value_group_and_by_themselves() -> None:
    name = "groups of a column"
    table, y = X[["a", "b", "patient"]].iloc[FIRST], Y[FIRST]
    at = np.flatnonzero(table["patient"].to_numpy() == "p03")
    expected = pickle.dumps(fitted(name).forget(at))
    assert pickle.dumps(fitted(name).forget(patient="p03")) == expected
    assert pickle.dumps(fitted(name).forget(where={"groups": ["p03"]})) == expected
    assert pickle.dumps(fitted(name).forget(X=table.iloc[at], y=y[at])) == expected
    one = fitted("numbers").forget(where={"x0": NUMBERS[4, 0]})
    assert pickle.dumps(one) == pickle.dumps(fitted("numbers").forget([4]))


REFUSED = {
    "no such place": (lambda m: m.forget([500]), "places from 0 to 71"),
    "no such column": (lambda m: m.forget(colour="red"), "does not keep the values of 'colour'"),
    "no such value": (lambda m: m.forget(where={"x0": 1e6}), "no row of the model has x0=1000000"),
    "nothing said": (lambda m: m.forget(), "say what to forget"),
    "all rows": (lambda m: m.forget(np.arange(72)), "0 different rows would be left"),
    "a row it does not have": (lambda m: m.forget(X=[[9.0, 9.0]], y=[0.0]), "not have the row"),
    "another width": (lambda m: m.update(np.ones((2, 3)), [0.0, 1.0]), "3"),
    "an infinite target": (lambda m: m.update(np.ones((2, 2)), [np.inf, 1.0]), "infinite"),
    "outputs": (lambda m: m.update(np.ones((2, 2)), np.ones((2, 2))), "two dimensions"),
    "groups": (lambda m: m.update(np.ones((2, 2)), [0.0, 1.0], groups=[1, 2]), "groups must be"),
    "a negative weight": (lambda m: m.update(np.ones((2, 2)), [0.0, 1.0], [-1, 1]), "negative"),
    "text for numbers": (lambda m: m.update([["a", "b"]], [0.0]), "number"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_the_bytes_of_the_model(case: str) -> None:
    model, (action, words) = fitted("numbers"), REFUSED[case]
    before = pickle.dumps(model)
    with pytest.raises((ValueError, TypeError), match=words):
        action(model)
    assert pickle.dumps(model) == before


def test_a_label_that_the_fit_did_not_have_is_named() -> None:
    model = fitted("two classes, balanced")
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="class 'maybe' in row 1 is none"):
        model.update(NUMBERS[:2], np.array(["yes", "maybe"]))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("where", ["bordered", "fit_mixture", "rearranged_attributes"])
def test_ctrl_c_leaves_a_whole_model(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within `update` the old one; within what is worked out later, the updated one."""
    from kernelweave.evidence.living import bordering, canonical, pairs

    model, expected = fitted("numbers"), fitted("numbers")
    moved(expected.update, "numbers", LATER)
    modules = {"bordered": bordering, "rearranged_attributes": canonical}
    before, module = pickle.dumps(model), modules.get(where, pairs)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def learn() -> None:
        moved(model.update, "numbers", LATER)
        _ = model.held_out_score_

    with monkeypatch.context() as patch:
        patch.setattr(module, where, stop)
        with pytest.raises(KeyboardInterrupt):
            learn()
        if where != "bordered":
            np.testing.assert_allclose(model.predict(NUMBERS), expected.predict(NUMBERS))
            with pytest.raises(KeyboardInterrupt):
                model.forget([3])
    wanted = before if where == "bordered" else pickle.dumps(expected)
    assert pickle.dumps(model) == wanted


def test_partial_fit_is_fit_and_then_update() -> None:
    one = EvidenceKernelRegressor(**QUICK).partial_fit(NUMBERS[FIRST], Y[FIRST])
    one.partial_fit(NUMBERS[LATER], Y[LATER])
    assert pickle.dumps(one) == pickle.dumps(moved(fitted("numbers").update, "numbers", LATER))
    labels = np.where(Y > 0.3, 1, 0)
    two = EvidenceKernelClassifier(**QUICK).partial_fit(NUMBERS, labels, classes=[0, 1])
    assert two.partial_fit(NUMBERS[:5] + 1.0, labels[:5], classes=[0, 1]).predict(NUMBERS).any()
    with pytest.raises(ValueError, match="classes has 2"):
        EvidenceKernelClassifier(**QUICK).partial_fit(NUMBERS, labels, classes=[0, 1, 2])


def test_what_is_asked_for_is_worked_out() -> None:
    """Points are predicted at once; scores, intervals and files follow when they are asked for."""
    model = moved(fitted("numbers").update, "numbers", LATER)
    model.predict(NUMBERS)
    assert "_predictor" not in vars(model)
    assert f"predictor from all pairs of {N} rows" in model.certificate_.work
    assert "_predictor" in vars(model)
    model = moved(fitted("numbers").update, "numbers", LATER)
    low, high = model.predict_interval(NUMBERS)
    assert (low < high).all()
    assert len(model.importance_) == 2


def test_a_wider_range_of_targets_is_learned() -> None:
    """Where no target was negative predictions are cut at 0, until one is."""
    y = np.abs(Y)
    model = EvidenceKernelRegressor(**QUICK).fit(NUMBERS[FIRST], y[FIRST])
    far = np.array([[8.0, 8.0]])
    assert model.predict(NUMBERS).min() >= 0.0
    model.update(np.repeat(far, 3, axis=0) + np.arange(3.0)[:, None], [-9.0, -9.1, -9.2])
    assert model.predict(far)[0] < -3.0


def test_a_model_of_an_older_version_is_refused_in_a_sentence() -> None:
    model = fitted("numbers")
    del model.__dict__["_living"]
    with pytest.raises(ValueError, match="saved by a version that kept too little"):
        model.update(NUMBERS[LATER], Y[LATER])


def test_a_refusal_has_one_cause() -> None:
    """What a model is without its rows says why none can join it."""
    model = fitted("numbers")
    rows, whole = model._predictor.rows, model._predictor
    sloped = replace(
        whole, rows=replace(rows, further=(GroupTerm(GroupColumn(0, -1, (99,), 0), "x"),))
    )
    assert "slopes or several groups" in why_it_stays(sloped)
    sums = SimpleNamespace(rows=rows, kept=None, levels=None)
    assert "read in parts, or the fit was cut short" in why_it_stays(sums)
    sums.levels = "of groups"
    assert "levels and more than 50,000 rows, or the fit" in why_it_stays(sums)
    assert "held out together" in why_it_stays(SimpleNamespace(rows=rows, kept=1))
    model._living = None
    with pytest.raises(ValueError, match=r"nothing of how its rows were read.*: fit all rows"):
        model.update(NUMBERS[LATER], Y[LATER])


def test_a_missing_value_that_training_never_had_is_filled_and_told() -> None:
    model = fitted("numbers")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.update(np.array([[np.nan, 1.0], [0.5, 0.5]]), [0.0, 1.0])
    assert any("had no missing values in training" in str(each.message) for each in told)
    assert np.isfinite(model.predict(NUMBERS)).all()
