"""The estimators as a user meets them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.kernels_core import Status, watch
from kernelweave.kernels_core.exceptions import MemoryBudgetError
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.svm import SVR

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}
# the checks are about the interface
QUICKER = {"precisions": (5.0,), "max_iter": 5}


@pytest.fixture(scope="module")
def regression():
    X, y = make_friedman1(220, n_features=6, noise=0.5, random_state=0)
    return X[:100], y[:100], X[100:], y[100:]


@pytest.fixture(scope="module")
def model(regression):
    return EvidenceKernelRegressor(**QUICK).fit(*regression[:2])


def test_held_out_score_foretells_the_score(regression, model) -> None:
    _, _, X, y = regression
    assert abs(model.score(X, y) - model.held_out_score_) < 0.1
    assert 0 < model.held_out_error_ < 0.05
    assert model.held_out_prediction_.shape == (100,)
    assert np.bincount(model.held_out_fold_).tolist() == [34, 33, 33]


def test_the_kernel_serves_others(regression, model) -> None:
    X, y, X_new, y_new = regression
    np.testing.assert_allclose(model.encode(X), X)
    other = SVR(kernel=model.kernel_, C=1e3).fit(model.encode(X), y)
    assert other.score(model.encode(X_new), y_new) > 0.8


def test_intervals_hold_what_they_say(regression, model) -> None:
    _, _, X, y = regression
    low, high = model.predict_interval(X, confidence=0.8)
    assert 0.7 < np.mean((low <= y) & (y <= high)) < 0.95
    mean, std = model.predict(X, return_std=True)
    assert 0.8 < np.mean(np.abs(y - mean) < 1.645 * std) <= 1.0
    with pytest.raises(ValueError, match="confidence must be"):
        model.predict_interval(X, confidence=90)


def test_few_rows_for_the_confidence_give_no_bound(regression, model) -> None:
    low, high = model.predict_interval(regression[2][:3], confidence=0.999)
    assert np.isinf(low).all()
    assert np.isinf(high).all()


@pytest.mark.parametrize("unit", [1e9, 1e-9])
def test_targets_of_any_unit(regression, model, unit: float) -> None:
    X, y, X_new, y_new = regression
    other = EvidenceKernelRegressor(**QUICK).fit(X, unit * y)
    assert other.score(X_new, unit * y_new) == pytest.approx(model.score(X_new, y_new), abs=1e-6)


def test_several_outputs_have_one_kernel(regression) -> None:
    X, y, X_new, y_new = regression
    both = EvidenceKernelRegressor(**QUICK).fit(X, np.column_stack([y, -3 * y + X[:, 0]]))
    assert both.predict(X_new).shape == (120, 2)
    low, _ = both.predict_interval(X_new[:5])
    _, std = both.predict(X_new[:5], return_std=True)
    assert low.shape == std.shape == (5, 2)
    assert both.score(X_new, np.column_stack([y_new, -3 * y_new + X_new[:, 0]])) > 0.8


def test_a_repeated_row_is_a_weight_of_two(regression) -> None:
    X, y, X_new, _ = regression
    X, y = X[:60], y[:60]
    weight = np.ones(60)
    weight[:20] = 2.0
    once = EvidenceKernelRegressor(**QUICK).fit(X, y, sample_weight=weight)
    twice = EvidenceKernelRegressor(**QUICK).fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
    np.testing.assert_allclose(once.predict(X_new), twice.predict(X_new), rtol=1e-9)


def test_a_table_with_words_gaps_and_a_constant() -> None:
    state = np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "size": state.uniform(20, 200, 150),
            "place": state.choice(["north", "south", "west"], 150),
            "always": 1.0,
        }
    )
    price = 3e5 + 2e3 * table["size"] + 1e5 * (table["place"] == "north") + 1e4 * state.randn(150)
    table.loc[::10, "size"] = np.nan
    model = EvidenceKernelRegressor(**QUICK).fit(table[:100], price[:100])
    new = table[100:].copy()
    new.loc[100, "place"] = "moon"
    assert model.score(new, price[100:]) > 0.5
    assert [d.name for d in model.dimensions_] == ["size", "size missing", "place"]
    assert {row.column: row.kind for row in model.columns_}["always"] == "ignore"
    assert len(model.relevance_) == 3


def test_probabilities_are_calibrated_on_rows_held_out() -> None:
    X, y = make_classification(
        700, n_features=5, n_informative=3, flip_y=0.2, class_sep=0.7, random_state=0
    )
    model = EvidenceKernelClassifier(**QUICK).fit(X[:200], y[:200])
    proba = model.predict_proba(X[200:])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X[200:])), proba)
    rate = np.full((500, 2), 0.5)
    assert log_loss(y[200:], proba) < 0.85 * log_loss(y[200:], rate)
    # calibrated: the mean probability is the rate of the class, within its error
    assert abs(proba[:, 1].mean() - y[200:].mean()) < 0.07
    assert model.held_out_prediction_.shape == (200, 2)


def test_three_classes_named_by_words() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = EvidenceKernelClassifier(**QUICK).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.9
    assert model.decision_function(X).shape == (150, 3)


def test_random_labels_have_no_held_out_score() -> None:
    """The training score would be 1."""
    state = np.random.RandomState(0)
    X, y = state.randn(120, 4), state.randint(0, 2, 120)
    model = EvidenceKernelClassifier(**QUICK).fit(X, y)
    assert abs(model.held_out_score_ - 0.5) < 3.5 * model.held_out_error_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning")
@pytest.mark.parametrize("classes", [False, True])
def test_the_choice_by_rows_held_out_does_not_flatter_their_score(classes: bool) -> None:
    scores = []
    for seed in range(24):
        state = np.random.RandomState(seed)
        X, noise = state.randn(60, 20), state.randn(60)
        y = noise > np.median(noise) if classes else noise
        model = EvidenceKernelClassifier if classes else EvidenceKernelRegressor
        scores.append(model(**QUICK).fit(X, y).held_out_score_)
    error = np.std(scores) / np.sqrt(len(scores))
    assert np.mean(scores) < (0.5 if classes else 0.0) + 2.5 * error


def test_balanced_classes_count_alike() -> None:
    state = np.random.RandomState(0)
    X = state.randn(160, 2)
    y = (X[:, 0] + 0.8 * state.randn(160) > 1.2).astype(int)
    plain = EvidenceKernelClassifier(**QUICK).fit(X, y)
    balanced = EvidenceKernelClassifier(class_weight="balanced", **QUICK).fit(X, y)
    assert balanced.predict(X).mean() > plain.predict(X).mean()


def test_a_time_limit_keeps_a_model_and_says_what_is_missing(regression) -> None:
    X, y, X_new, _ = regression
    with pytest.warns(ConvergenceWarning, match="3 of 3 folds not reached"):
        model = EvidenceKernelRegressor(max_time=1e-9).fit(X, y)
    assert np.isfinite(model.predict(X_new)).all()
    assert np.isnan(model.held_out_score_)


def test_folds_in_processes_give_the_same_bits(regression, model) -> None:
    X, y, X_new, _ = regression
    other = EvidenceKernelRegressor(n_jobs=2, **QUICK).fit(X, y)
    np.testing.assert_array_equal(other.predict(X_new), model.predict(X_new))


def test_pickles(regression, model) -> None:
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(regression[2]), model.predict(regression[2]))


def test_more_rows_than_memory_are_refused_before_any_work(regression) -> None:
    with pytest.raises(MemoryBudgetError, match="100 rows"):
        EvidenceKernelRegressor(memory_limit=10_000).fit(*regression[:2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)), "row 3"),
        (lambda X, y: (X, np.full(len(y), 2.0)), "nothing to learn"),
        (lambda X, y: (np.where(X > 0.99, np.inf, X), y), "infinit"),
        (lambda X, y: (np.ones_like(X), y), "column"),
        (lambda X, y: (X[:5], y), "rows|samples"),
    ],
)
def test_bad_input_gets_a_sentence(regression, change, words: str) -> None:
    X, y = change(*regression[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=words):
            EvidenceKernelRegressor(**QUICK).fit(X, y)


def test_more_rows_than_pairs_allow_are_learned_by_landmarks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 2000)
    X, y = make_friedman1(3100, n_features=5, noise=0.5, random_state=0)
    order = np.argsort(y[:2100])
    quick = {"precisions": (5.0,), "max_iter": 15, "n_landmarks": 300}
    model = EvidenceKernelRegressor(**quick).fit(X[order], y[order])
    assert "landmarks" in str(model.certificate_)
    assert model.score(X[2100:], y[2100:]) > 0.95
    assert model.held_out_score_ == pytest.approx(model.score(X[2100:], y[2100:]), abs=0.02)
    low, high = model.predict_interval(X[2100:])
    assert 0.87 < np.mean((low <= y[2100:]) & (y[2100:] <= high)) < 0.93
    classes = EvidenceKernelClassifier(**quick).fit(X[:2100], y[:2100] > 14)
    assert classes.score(X[2100:], y[2100:] > 14) > 0.9
    assert classes.predict_proba(X[2100:]).shape == (1000, 2)


@pytest.mark.parametrize("model", [EvidenceKernelClassifier, EvidenceKernelRegressor])
def test_rows_equal_but_for_their_target_are_held_out_together(model: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (120, 3)).astype(float)
    y = (X[:, 0] + rng.standard_normal(120) > 2).astype(int)
    fitted = model(**QUICK).fit(X, y)
    cells = X @ np.array([1.0, 10.0, 100.0])
    for cell in np.unique(cells):
        assert len(set(fitted.held_out_fold_[cells == cell])) == 1
    assert len(set(fitted.held_out_fold_)) == 3


def cells(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table whose 27 combinations of words each have a mean of their own."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, (n, 3))
    means = rng.standard_normal((3, 3, 3))[tuple(codes.T)]
    table = pd.DataFrame(codes.astype(str), columns=["shape", "colour", "place"])
    return table, means + 0.5 * rng.standard_normal(n)


def test_combinations_that_recur_are_learned_and_judged_as_new_rows_will_be() -> None:
    table, y = cells(900)
    old, new = slice(0, 300), slice(300, 900)
    regressor = EvidenceKernelRegressor(**QUICK).fit(table[old], y[old])
    assert regressor.score(table[new], y[new]) > 0.75
    assert abs(regressor.held_out_score_ - regressor.score(table[new], y[new])) < 0.1
    label = np.where(y > 0, "yes", "no")
    classifier = EvidenceKernelClassifier(**QUICK).fit(table[old], label[old])
    assert classifier.score(table[new], label[new]) > 0.8
    assert log_loss(label[new], classifier.predict_proba(table[new])) < 0.45


@pytest.mark.parametrize("kind", [str, float])
def test_one_column_of_few_values_is_learned(kind: type) -> None:
    rng = np.random.default_rng(2)
    level = rng.integers(0, 6, 800)
    table = pd.DataFrame({"place": level.astype(kind)})
    y = rng.standard_normal(6)[level] + 0.5 * rng.standard_normal(800)
    regressor = EvidenceKernelRegressor(**QUICK).fit(table[:200], y[:200])
    assert abs(regressor.held_out_score_ - regressor.score(table[200:], y[200:])) < 0.1
    classifier = EvidenceKernelClassifier(**QUICK).fit(table[:200], y[:200] > 0)
    means = pd.Series(y[:200] > 0).groupby(level[:200]).mean() > 0.5
    best = np.mean(means[level[200:]].to_numpy() == (y[200:] > 0))
    assert classifier.score(table[200:], y[200:] > 0) > best - 0.03


@pytest.mark.parametrize("n_copies", [3, 5])
@pytest.mark.parametrize("columns", ["one", "two", "the same twice"])
def test_copies_of_rows_are_held_out_together(columns: str, n_copies: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2 if columns == "two" else 1))
    if columns == "the same twice":
        X = np.hstack([X, -X])
    X = np.tile(X, (n_copies, 1))
    y = X[:, 0] + rng.standard_normal(len(X))
    fold = EvidenceKernelRegressor(**QUICK).fit(X, y).held_out_fold_
    np.testing.assert_array_equal(fold, np.tile(fold[:60], n_copies))


def test_combinations_that_recur_are_learned_with_weights_too() -> None:
    table, y = cells(900)
    old, new = slice(0, 300), slice(300, 900)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    regressor = EvidenceKernelRegressor(**QUICK).fit(table[old], y[old], weight)
    assert abs(regressor.held_out_score_ - regressor.score(table[new], y[new])) < 0.1


def test_either_or_of_two_columns_is_learned() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((60, 2)) > 0.5, columns=["left", "right"])
    label = table.left ^ table.right
    fitted = EvidenceKernelClassifier(**QUICK).fit(table, label)
    assert fitted.score(table, label) == 1.0
    assert fitted.held_out_score_ == 1.0


def test_counts_of_combinations_are_not_told_apart() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.indices((3, 3, 2)).reshape(3, -1).T, columns=["a", "b", "label"])
    count = rng.integers(1, 9, len(table)).astype(float)
    label = table.pop("label")
    fitted = EvidenceKernelClassifier(**QUICK).fit(table, label, count)
    fold = pd.Series(fitted.held_out_fold_).groupby(3 * table.a + table.b)
    assert (fold.nunique() == 1).all()


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.KernelWeaveWarning")
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0]], ["a", "b"]),
        ([[0.0, 1.0], [1.0, 2.0]], [0, 1]),
        ([[0.0], [0.0], [1.0]], [0, 1, 1]),
        ([[0.0], [1.0], [2.0]], [0, 1, 2]),
    ],
)
def test_a_few_rows_of_classes_have_probabilities(X, y) -> None:
    model = EvidenceKernelClassifier().fit(np.array(X), y)
    for told in (model.predict_proba(np.array(X)), model.held_out_prediction_):
        assert (told > 0.0).all()
        np.testing.assert_allclose(told.sum(axis=1), 1.0)


def test_intervals_without_time_for_a_fold() -> None:
    held = []
    for seed in range(6):
        X, y = make_friedman1(900, n_features=6, noise=0.5, random_state=seed)
        with pytest.warns(ConvergenceWarning, match="3 of 3 folds not reached"):
            model = EvidenceKernelRegressor(max_time=1e-9).fit(X[:100], y[:100])
        low, high = model.predict_interval(X[100:])
        held.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    # no target chose the metric, so that the mean over tables is nearly exact
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)
    assert "7 of 7 searches ended by max_time" in str(model.certificate_)
    assert all(np.isnan(each.importance) for each in model.importance_)
    with pytest.raises(ValueError, match=r"needs cross-validated rows, .* raise max_time"):
        _ = model.feature_importances_
    with pytest.warns(ConvergenceWarning, match="folds not reached"):
        model.fit(X[:100], y[:100], order=np.arange(100))
    assert np.isfinite(model.predict_interval(X[100:])).all()


def test_scales_are_called_stationary_only_where_the_search_came_to_rest() -> None:
    X, y = make_friedman1(60, n_features=5, noise=0.5, random_state=0)
    rough = EvidenceKernelRegressor(precisions=(50.0,), max_iter=2, n_folds=2, warp=False)
    with pytest.warns(ConvergenceWarning, match="max_iter of 2 ended 2 of 4 searches"):
        rough.fit(X, y)
    whole = EvidenceKernelRegressor(precisions=(50.0,), n_folds=2, warp=False).fit(X, y)
    assert np.nanmax(rough.certificate_.slopes) > 1.0 > np.nanmax(whole.certificate_.slopes)
    assert rough.result_.status is Status.MAX_ITER
    assert whole.result_.status is Status.STATIONARY
    assert rough.certificate_.ends[:2] == ("max_iter", "max_iter")
    assert set(whole.certificate_.ends) == {"stationary"}
    assert "2 of 4 searches ended by max_iter, and a slope is" in str(rough.certificate_)
    assert "are stationary points of the evidence to" in str(whole.certificate_)


def test_a_fit_that_a_callback_ends_says_so() -> None:
    X, y = make_friedman1(60, n_features=5, noise=0.5, random_state=0)
    model = EvidenceKernelRegressor(precisions=(50.0,), n_folds=2, warp=False)
    with watch(lambda progress: progress.n_iter > 2):
        model.fit(X, y)
    assert model.result_.status is Status.STOPPED


@pytest.mark.parametrize("factor", [1e-308, 1e-300, 1e-150, 1e45])
def test_the_unit_of_a_column_changes_nothing(regression, model, factor) -> None:
    X, y, X_new, _ = regression
    unit = np.ones(X.shape[1])
    unit[::2] = factor
    other = EvidenceKernelRegressor(**QUICK).fit(X * unit, y)
    np.testing.assert_allclose(other.predict(X_new * unit), model.predict(X_new), rtol=1e-6)
