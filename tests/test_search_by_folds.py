"""The search by folds, against a loop over scikit-learn's clone, splitters and scorers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from kernelweave.kernels_core import RBF, KernelDictionary, Linear, clock
from kernelweave.kernels_core.checks import POSITIVE
from kernelweave.kernels_core.estimators.folds import Scores, folds_of, score_settings
from kernelweave.kernels_core.estimators.search import (
    CrossValidatedEstimator,
    OneOrSeveral,
    one_or_several,
)
from kernelweave.kernels_core.parameters import parameter
from kernelweave.mkl_sparse import SparseMKLClassifier, SparseMKLRegressor
from kernelweave.ridge_mkl import GeneralizedMKLClassifier, RidgeMKLClassifier, RidgeMKLRegressor
from kernelweave.spectahedron import TessellatedKernelClassifierCV, TessellatedKernelRegressorCV
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    TimeSeriesSplit,
    check_cv,
)

# the folds of the search have the box of all rows, which those of a loop would not
EXACT: dict[str, Any] = {
    "scale": False,
    "domain": (-8.0, 8.0),
    "order": 1,
    "degree": 0,
    "tol": 1e-6,
    "cv_tol": 1e-6,
    "cv_max_iter": 500,
}
# a loop of fits hears of each that explains little, and a search does not
pytestmark = pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.UnderfitWarning")
KERNELS = KernelDictionary([RBF(0.5), Linear()])
N = 48


class Chosen(CrossValidatedEstimator, GeneralizedMKLClassifier):
    """What a plugin writes to have an estimator that searches."""

    C: OneOrSeveral = parameter("Penalty.", default="cv", rule=one_or_several(POSITIVE))
    grids: ClassVar[dict[str, tuple[float, ...]]] = {"C": (0.01, 1.0, 100.0)}


# an estimator, and values of its parameters
SEARCHES: dict[str, tuple[Callable[[], Any], dict[str, list[Any]]]] = {
    "ridge": (lambda: RidgeMKLRegressor(KERNELS, tol=1e-9), {"lam": [1e-3, 1e-1, 10.0]}),
    "ridge classes": (lambda: RidgeMKLClassifier(KERNELS, tol=1e-9), {"lam": [1e-3, 1e-1, 10.0]}),
    "sparse": (
        lambda: SparseMKLRegressor(KERNELS, units="absolute", tol=1e-7),
        {"C": [0.1, 10.0], "k0": [1, 2]},
    ),
    "sparse classes": (
        lambda: SparseMKLClassifier(KERNELS, tol=1e-7),
        {"C": [0.1, 10.0], "k0": [1, 2]},
    ),
    "tessellated": (
        lambda: TessellatedKernelRegressorCV(units="absolute", delta=0.5, **EXACT),
        {"epsilon": [0.05, 0.3], "C": [0.1, 10.0]},
    ),
    "tessellated classes": (
        lambda: TessellatedKernelClassifierCV(units="absolute", delta=0.5, **EXACT),
        {"C": [0.1, 10.0]},
    ),
    "a plugin's": (lambda: Chosen(KERNELS), {"C": [0.01, 1.0, 100.0]}),
}
# what a path and a fit from nothing, both proved to their tol, may differ by in a score
RTOL = {"sparse": 1e-2, "tessellated": 1e-2}


def data(kind: str, labels: str = "ab") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, targets and their groups, in each of which targets are shifted."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(8), N // 8)[rng.permutation(N)]
    X = 0.4 * rng.standard_normal((N, 2)) + 1.5 * rng.standard_normal((8, 2))[groups]
    y = X[:, 0] + 2.0 * rng.standard_normal(8)[groups] + 0.1 * rng.standard_normal(N)
    regressor = not is_classifier(SEARCHES[kind][0]())
    return X, y if regressor else np.array(list(labels))[(y > np.median(y)) * 1], groups


def by_hand(
    estimator: Any, grid: dict[str, list[Any]], X: Any, y: Any, folds: Any, scoring: Any
) -> tuple[dict[str, Any], np.ndarray]:
    """Return the best setting and all scores, (n_settings, n_folds), in the order of the grid."""
    scorer, table = check_scoring(estimator, scoring), []
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    for setting in settings:
        models = [clone(estimator).set_params(**setting).fit(X[a], y[a]) for a, _ in folds]
        table.append([scorer(m, X[b], y[b]) for m, (_, b) in zip(models, folds, strict=True)])
    return settings[int(np.mean(table, axis=1).argmax())], np.array(table)


def scores_of(model: Any) -> np.ndarray:
    """Return the scores of a fitted search, shape (n_settings, n_folds)."""
    results, n_folds = model.cv_results_, 0
    while f"split{n_folds}_test_score" in results:
        n_folds += 1
    return np.array([results[f"split{fold}_test_score"] for fold in range(n_folds)]).T


WAYS: dict[str, tuple[Any, bool, str | None]] = {
    "a number": (3, False, None),
    "a splitter": (KFold(4, shuffle=True, random_state=1), False, "scorer"),
    "groups and their splitter": (LeaveOneGroupOut(), True, None),
    "later rows": (TimeSeriesSplit(2), False, "scorer"),
    "a list": (list(ShuffleSplit(2, random_state=0).split(np.zeros(N))), False, None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SEARCHES)
def test_it_finds_what_a_loop_of_scikit_learn_finds(kind: str, way: str) -> None:
    X, y, groups = data(kind)
    make, grid = SEARCHES[kind]
    cv, grouped, scoring = WAYS[way]
    if scoring is not None:
        scoring = "balanced_accuracy" if is_classifier(make()) else "neg_mean_absolute_error"
    model = make().set_params(**grid, cv=cv, scoring=scoring, choice="best")
    model.fit(X, y, groups=groups if grouped else None)
    splitter = check_cv(cv, y, classifier=is_classifier(model))
    folds = list(splitter.split(X, y, groups if grouped else None))
    best, table = by_hand(make(), grid, X, y, folds, scoring)
    np.testing.assert_allclose(scores_of(model), table, rtol=RTOL.get(kind, 1e-4), atol=1e-6)
    assert best.items() <= model.best_params_.items()
    assert model.best_score_ == pytest.approx(table.mean(axis=1).max(), rel=RTOL.get(kind, 1e-4))
    results = model.cv_results_
    np.testing.assert_allclose(results["mean_test_score"], scores_of(model).mean(axis=1))
    np.testing.assert_allclose(results["std_test_score"], scores_of(model).std(axis=1))
    place = next(i for i, each in enumerate(results["params"]) if best.items() <= each.items())
    assert results["rank_test_score"][place] == 1
    assert all(results[f"param_{name}"][place] == value for name, value in best.items())
    again = make().set_params(**best).fit(X, y)
    if is_classifier(model):
        np.testing.assert_array_equal(model.predict(X), again.predict(X))
    else:
        np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_number_of_folds_holds_whole_groups_out(kind: str) -> None:
    X, y, groups = data(kind)
    make, grid = SEARCHES[kind]
    model = make().set_params(**grid, cv=4)
    whole = StratifiedGroupKFold(4) if is_classifier(model) else GroupKFold(4)
    _, table = by_hand(make(), grid, X, y, list(whole.split(X, y, groups)), None)
    model.fit(X, y, groups=groups)
    np.testing.assert_allclose(scores_of(model), table, rtol=RTOL.get(kind, 1e-4), atol=1e-6)
    assert model.fit(X, y).cv_results_["mean_test_score"].max() > table.mean(axis=1).max()


def test_a_column_names_the_groups_and_a_gap_is_a_group_of_its_own() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, groups = data("ridge")
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "patient": groups})
    model = RidgeMKLRegressor(KERNELS, lam="cv", cv=GroupKFold(4))
    named = scores_of(model.fit(frame, y, groups="patient"))
    np.testing.assert_array_equal(named, scores_of(model.fit(frame, y, groups=groups)))
    words = np.array([f"patient {each}" for each in groups], dtype=object)
    np.testing.assert_array_equal(named, scores_of(model.fit(frame, y, groups=words)))
    words[[0, 7]] = None
    seen = groups + 1
    seen[[0, 7]] = 98, 99
    found = scores_of(model.fit(frame, y, groups=words))
    np.testing.assert_array_equal(found, scores_of(model.fit(frame, y, groups=seen)))
    for wrong, reason in (
        ("patients", "groups must name a column of X, got 'patients': did you mean 'patient'"),
        (groups[:4], r"groups must be .* one value a sample, shape \(48,\), got shape \(4,\)"),
        (np.zeros(N), "groups are one and the same in every row"),
    ):
        with pytest.raises(ValueError, match=reason):
            model.set_params(cv=3).fit(frame, y, groups=wrong)
    frame = np.column_stack([X[:, :2], groups])
    np.testing.assert_array_equal(
        named, scores_of(model.set_params(cv=GroupKFold(4)).fit(frame, y, groups="x2"))
    )
    with pytest.raises(ValueError, match="X has no names but x0 to x"):
        model.fit(X, y, groups="patient")


def test_groups_are_routed_to_the_folds_within_the_folds() -> None:
    X, y, groups = data("ridge")
    inner = RidgeMKLRegressor(KERNELS, lam=[1e-3, 1.0], cv=LeaveOneGroupOut())
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(inner, {"q": [1.0, 2.0]}, cv=GroupKFold(2))
        search.fit(X, y, groups=groups)
    assert scores_of(search.best_estimator_).shape == (2, 8)
    train, test = next(GroupKFold(2).split(X, y, groups))
    alone = clone(inner).set_params(q=1.0).fit(X[train], y[train], groups=groups[train])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(
        alone.score(X[test], y[test])
    )


@pytest.mark.parametrize("labels", ["ab", "ba", "yn"])
def test_scorers_see_the_labels_of_the_user(labels: str) -> None:
    from sklearn.metrics import f1_score, make_scorer

    X, y, _ = data("ridge classes", labels)
    scorer = make_scorer(f1_score, pos_label=labels[0])
    folds = list(check_cv(3, y, classifier=True).split(X, y))
    grid = {"lam": [1e-3, 1.0, 100.0]}
    _, table = by_hand(RidgeMKLClassifier(KERNELS), grid, X, y, folds, scorer)
    model = RidgeMKLClassifier(KERNELS, **grid, cv=3, scoring=scorer).fit(X, y)
    np.testing.assert_allclose(scores_of(model), table, rtol=1e-6)


def test_scorers_of_probabilities_and_of_decision_values() -> None:
    X, y, _ = data("ridge classes")
    folds, grid = list(check_cv(3, y, classifier=True).split(X, y)), {"lam": [1e-2, 10.0]}
    for scoring, probability in (("roc_auc", False), ("neg_log_loss", True)):
        plain = RidgeMKLClassifier(KERNELS, probability=probability, tol=1e-9)
        _, table = by_hand(plain, grid, X, y, folds, scoring)
        model = clone(plain).set_params(**grid, cv=3, scoring=scoring).fit(X, y)
        np.testing.assert_allclose(scores_of(model), table, rtol=1e-5)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.set_params(probability=False).fit(X, y)


@pytest.mark.filterwarnings("ignore:Only one class")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_score_that_is_no_number_is_refused() -> None:
    X, y, _ = data("ridge classes")
    one = np.flatnonzero(y == "a")[:6]
    splits = [(np.setdiff1d(np.arange(N), one), one)]
    model = RidgeMKLClassifier(KERNELS, lam=[1e-2, 10.0], cv=splits, scoring="roc_auc")
    with pytest.raises(ValueError, match=r"NaN on a fold that holds out 6|[Oo]nly one class"):
        model.fit(X, y)

    def nan(model: Any, X: Any, y: Any) -> float:
        return np.nan

    with pytest.raises(ValueError, match="is NaN on a fold that holds out 6 samples"):
        model.set_params(scoring=nan).fit(X, y)


@pytest.mark.parametrize("kind", ["ridge classes", "sparse classes", "tessellated classes"])
def test_probabilities_within_folds_hold_whole_groups_out(kind: str) -> None:
    X, y, groups = data(kind)
    make, grid = SEARCHES[kind]
    (name, values), *_ = grid.items()
    one, two = list(GroupKFold(2).split(X, y, groups))
    plain = make().set_params(probability=True, scoring="neg_log_loss")
    model = clone(plain).set_params(**{name: values}, cv=[one, two]).fit(X, y, groups=groups)
    for fold, (train, test) in enumerate((one, two)):
        for place, value in enumerate(values):
            own = clone(plain).set_params(**{name: value})
            own.fit(X[train], y[train], groups=groups[train])
            score = check_scoring(own, "neg_log_loss")(own, X[test], y[test])
            found = model.cv_results_[f"split{fold}_test_score"][place]
            assert found == pytest.approx(score, rel=1e-3)


def test_probabilities_hold_whole_groups_out() -> None:
    X, y, groups = data("ridge classes")
    model = RidgeMKLClassifier(KERNELS, probability=True)
    values = np.empty(N)
    for train, test in StratifiedGroupKFold(5).split(X, y, groups):
        plain = RidgeMKLClassifier(KERNELS).fit(X[train], y[train])
        values[test] = plain.decision_function(X[test])
    from sklearn.linear_model import LogisticRegression

    spread = values.std()
    oracle = LogisticRegression().fit(values[:, None] / spread, y)
    model.fit(X, y, groups=groups)
    np.testing.assert_allclose(model.calibration_.coef_, oracle.coef_ / spread, rtol=1e-4)
    with pytest.raises(ValueError, match="probability=True leaves out whole groups, and a class"):
        model.fit(X, y, groups=(y == "a") * 1)


def test_weights_count_in_scores_and_what_takes_none_is_refused() -> None:
    X, y, _ = data("ridge")
    weight = np.tile([1.0, 2.0, 3.0], N // 3)
    model = RidgeMKLRegressor(KERNELS, lam=[1e-3, 1.0], cv=3, scoring="neg_mean_absolute_error")
    found = scores_of(model.fit(X, y, weight))
    for (train, test), column in zip(KFold(3).split(X), found.T, strict=True):
        for lam, score in zip([1e-3, 1.0], column, strict=True):
            plain = RidgeMKLRegressor(KERNELS, lam=lam).fit(X[train], y[train], weight[train])
            missed = np.abs(plain.predict(X[test]) - y[test])
            assert score == pytest.approx(-np.average(missed, weights=weight[test]), rel=1e-4)
    model.set_params(scoring="neg_max_error").fit(X, y)
    with pytest.raises(ValueError, match="scoring='neg_max_error' takes no sample_weight"):
        model.fit(X, y, weight)
    with pytest.raises(ValueError, match="scoring must be None or the name of a scorer"):
        model.set_params(scoring=3).fit(X, y)
    with pytest.raises(ValueError, match="'r3'"):
        model.set_params(scoring="r3").fit(X, y)


def test_what_max_time_leaves_unscored_is_nan_and_the_best_so_far_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, _ = data("ridge")
    whole = scores_of(RidgeMKLRegressor(KERNELS, lam=[1e-3, 1e-1, 10.0], cv=3).fit(X, y))
    seconds = [0.0]

    class Slow(RidgeMKLRegressor):
        """Each score takes a second of a clock that nothing else moves."""

        def score(self, *given: Any) -> float:
            seconds[0] += 1.0
            return super().score(*given)

    monkeypatch.setattr(clock.time, "monotonic", lambda: seconds[0])
    model = Slow(KERNELS, lam=[1e-3, 1e-1, 10.0], cv=3, max_time=3.5).fit(X, y)
    known = whole.copy()
    # a path goes from the largest λ down, fold by fold
    known[[0, 1], 1], known[:, 2] = np.nan, np.nan
    np.testing.assert_allclose(scores_of(model), known, rtol=1e-6)
    assert model.lam_ == [1e-3, 1e-1, 10.0][int(np.nanargmax(np.nanmean(known, axis=1)))]
    assert np.isfinite(model.predict(X)).all()


def scores(values: list[list[float]]) -> Scores:
    table = np.array(values)
    return Scores([{"k": k} for k in range(len(table))], table, np.zeros_like(table))


def test_one_standard_error_and_ranks() -> None:
    found = scores([[0.5, 0.7], [0.78, 0.82], [0.7, 0.94], [0.8, 0.8]])
    simple: Callable[[Any], Any] = lambda setting: -setting["k"]  # noqa: E731
    # the standard error of the best mean, .82, is .12
    assert found.choose("best", simple) == 2
    assert found.choose("one-standard-error", simple) == 3
    assert found.choose("one-standard-error", lambda setting: setting["k"]) == 1
    # settings of one complexity count by the best of them
    assert found.choose("one-standard-error", lambda setting: setting["k"] // 2) == 1
    assert found.cv_results["rank_test_score"].tolist() == [4, 2, 1, 2]
    ended = scores([[0.5, np.nan], [0.6, np.nan], [np.nan, np.nan]])
    assert ended.choose("one-standard-error", simple) == 1
    assert np.isnan(ended.cv_results["mean_test_score"]).all()
    assert scores([[np.nan], [np.nan]]).choose("best", simple) == 1


def test_settings_that_a_search_adds_are_scored_too() -> None:
    def further(settings: list[Any], scores: np.ndarray) -> list[Any]:
        best = scores.mean(axis=1).argmax()
        return [{"k": settings[-1]["k"] + 1}] if best == len(settings) - 1 else []

    asked: list[tuple[int, int]] = []

    def fit(setting: Any, fold: int) -> Any:
        asked.append((setting["k"], fold))
        return None, -abs(setting["k"] - 2.5) + fold

    folds = [(np.arange(2), np.arange(2, 4))] * 2
    found = score_settings(
        [{"k": 0}, {"k": 1}], folds, fit, lambda _, value, at: value, by_fold=False, further=further
    )
    assert [each["k"] for each in found.settings] == [0, 1, 2, 3]
    assert asked == list(product(range(4), range(2)))
    np.testing.assert_allclose(found.means, [-2.0, -1.0, 0.0, 0.0])


def test_a_splitter_that_looks_at_the_rows_sees_them() -> None:
    class ByFirstColumn:
        def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
            yield np.flatnonzero(X[:, 0] < 0), np.flatnonzero(X[:, 0] >= 0)

        def get_n_splits(self, *_: Any) -> int:
            return 1

    X, y, _ = data("ridge")
    ((train, test),) = folds_of(ByFirstColumn(), X, y, np.ones(N), classifier=False)
    assert (X[train, 0] < 0).all()
    assert (X[test, 0] >= 0).all()
