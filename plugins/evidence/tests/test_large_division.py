"""Above 2,000 rows too, rows are held out as the user says that new rows will come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Batches,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
)
from kernelweave.evidence.large import learning
from large_tables import QUICK, small
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    TimeSeriesSplit,
)
from test_new_rows import patients, walk
from test_words import notes

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning"),
    pytest.mark.usefixtures("small"),
]
__all__ = ["small"]


def solutions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets what every fit from now on leaves."""
    seen: list[Any] = []
    learned = learning.LearnedLarge

    def kept(*arguments: Any) -> Any:
        seen.append(learned(*arguments))
        return seen[-1]

    monkeypatch.setattr(learning, "LearnedLarge", kept)
    return seen


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("n", [210, 600])
def test_whole_groups_are_held_out_wherever_they_stand(n: int, in_batches: bool) -> None:
    """Of 600 rows 300 are drawn: the others of a group are found by one more reading."""
    X, y = patients(0, n // 6)
    at = np.random.default_rng(0).permutation(n)
    X, y = X.iloc[at].reset_index(drop=True), y[at]
    model = EvidenceKernelRegressor(**QUICK)
    if in_batches:
        model.fit(Batches(X.assign(y=y), "y", size=50), groups="patient")
        counts = model._predictor.rows.groups
        assert (np.unique(counts, return_counts=True)[1] == 6).all()
    else:
        model.fit(X, y, groups="patient")
        fold = pd.Series(model.held_out_fold_).groupby(X["patient"])
        assert (fold.nunique() == 1).all()
        assert sorted(set(model.held_out_fold_)) == [-1, 0, 1]
    assert model.held_out_.index[0] == "new patient"
    first = model.held_out_.iloc[0]
    assert first.n_rows == 6 * first.n_groups > 12


def test_judges_have_learned_of_no_row_of_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other targets in a fold that judges leave the predictions of its rows where they are."""
    X, y = patients(0, 100)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y, groups="patient")
    own = model.held_out_fold_ == 0
    changed = np.where(own, y[::-1], y)
    # the same moments, which all rows tell
    changed[own] = np.random.default_rng(0).permutation(y[own])
    again = EvidenceKernelRegressor(**QUICK).fit(X, changed, groups="patient")
    np.testing.assert_array_equal(again.held_out_fold_, model.held_out_fold_)
    np.testing.assert_allclose(
        again.held_out_prediction_[own], model.held_out_prediction_[own], atol=1e-6
    )
    other = model.held_out_fold_ == 1
    gap = np.abs(again.held_out_prediction_[other] - model.held_out_prediction_[other])
    assert gap.max() > 1e-3


def test_targets_held_out_change_no_scale_and_no_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """Components of texts are those of all rows here, but of no target."""
    X, y = notes(240)
    seen, quick = solutions(monkeypatch), QUICK | {"max_iter": 3}
    model = EvidenceKernelRegressor(**quick).fit(X, y)
    held_out = model.held_out_fold_ >= 0
    assert held_out.sum() > 60
    changed = [np.where(held_out, 9.0 * y[::-1], y), np.where(held_out, y, y[::-1])]
    again = [EvidenceKernelRegressor(**quick).fit(X, each) for each in changed]
    scales, those, others = ([fit.theta for fit in each.fits] for each in seen)
    np.testing.assert_allclose(those, scales, atol=1e-9)
    # other targets of the other rows do
    assert np.abs(np.subtract(others, scales)).max() > 1e-3
    for each in again:
        np.testing.assert_array_equal(each.held_out_fold_, model.held_out_fold_)
        np.testing.assert_allclose(each.encode(X), model.encode(X), atol=1e-6)


def test_workers_of_dask_hold_out_the_same_groups_as_one_process() -> None:
    frames = pytest.importorskip("dask.dataframe")
    X, y = patients(0, 100)
    frame = X.assign(y=y).sample(frac=1.0, random_state=0, ignore_index=True)
    here = EvidenceKernelRegressor(**QUICK).fit(Batches(frame, "y", size=90), groups="patient")
    parts = frames.from_pandas(frame, npartitions=5)
    there = EvidenceKernelRegressor(**QUICK)
    there.fit(parts.drop(columns="y"), parts["y"], groups="patient")
    assert there.held_out_.index[0] == "new patient"
    np.testing.assert_array_equal(there.held_out_fold_, here.held_out_fold_)
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=1e-6)


@pytest.mark.parametrize("n", [240, 700])
@pytest.mark.parametrize("in_batches", [False, True])
def test_later_blocks_are_predicted_from_earlier_rows(n: int, in_batches: bool) -> None:
    X, y = walk(2, n)
    if n == 240:
        X["t"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), unit="D")
    at = np.random.default_rng(0).permutation(n)
    X, y = X.iloc[at].reset_index(drop=True), y[at]
    model = EvidenceKernelRegressor(**QUICK)
    if in_batches:
        model.fit(Batches(X.assign(y=y), "y", size=50), order="t")
        rows = model._predictor.rows
        last = rows.times[model._predictor.fold == 1].min()
        assert last > rows.times[model._predictor.fold == 0].max()
        assert len(rows) == pytest.approx(2 * n // 6, abs=30 if n > 300 else 1)
    else:
        model.fit(X, y, order="t")
        fold = model.held_out_fold_[np.argsort(at)]
        n_judging = np.count_nonzero(fold >= 0)
        assert (np.diff(fold) >= 0).all()
        assert n_judging == pytest.approx(2 * n // 6, abs=30 if n > 300 else 1)
    assert model.held_out_.index[0] == "later by t"


@pytest.mark.parametrize("in_batches", [False, True])
def test_beyond_the_last_row_deviations_are_those_of_the_last_fold(in_batches: bool) -> None:
    """The final model has landmarks among rows that the folds predicted without any."""
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.normal(size=(700, 4)), columns=list("abcd"))
    X["t"] = np.arange(700) // 7.0
    y = (
        np.sin(2.0 * X.a)
        + X.b * X.c
        + 0.5 * rng.normal(size=700)
        + 0.3 * rng.normal(size=100)[X.t.astype(int)]
    )
    model = EvidenceKernelRegressor(**QUICK)
    if in_batches:
        model.fit(Batches(X.assign(y=y), "y", size=50), order="t")
    else:
        model.fit(X, y, order="t")
    predictor = model._predictor
    rows, fold = predictor.rows, predictor.fold
    last = np.flatnonzero(fold == fold.max())
    away = rows.targets[0, last] - predictor.held_out[last, 0]
    then = away / predictor.fold_scores()[-1][:, 0]
    later = rows.numeric[last].copy()
    later[:, 4] += 100.0 - later[:, 4].min()
    now = predictor.deviation(later, rows.codes[last])
    assert np.sqrt(np.mean(now**2)) >= (1.0 - 1e-9) * np.sqrt(np.mean(then**2))


def test_a_block_has_learned_of_nothing_after_it() -> None:
    X, y = walk(1, 260)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y, order="t")
    fold = model.held_out_fold_
    later = fold == 1
    changed = y.copy()
    changed[later] = np.random.default_rng(0).permutation(y[later])
    again = EvidenceKernelRegressor(**QUICK).fit(X, changed, order="t")
    for k in (0, 1):
        own = fold == k
        np.testing.assert_allclose(
            again.held_out_prediction_[own], model.held_out_prediction_[own], atol=1e-6
        )


@pytest.mark.parametrize(
    "cv",
    [
        KFold(5, shuffle=True, random_state=0),
        KFold(60),
        ShuffleSplit(4, test_size=0.2, random_state=0),
        TimeSeriesSplit(4),
        GroupKFold(5),
        LeaveOneGroupOut(),
    ],
)
def test_any_splitter_is_respected(cv: Any) -> None:
    X, y = patients(0, 60)
    weight = np.ones(360)
    weight[::7] = 0.0
    grouped = isinstance(cv, GroupKFold | LeaveOneGroupOut)
    groups = X["patient"].to_numpy() if grouped else None
    model = EvidenceKernelRegressor(cv=cv, **QUICK).fit(X, y, weight, groups=groups)
    pairs = list(cv.split(X, y, groups))
    fold = model.held_out_fold_
    assert (fold[::7] == -1).all()
    which = {k: {p for p, (_, out) in enumerate(pairs) if k in fold[out]} for k in (0, 1)}
    if len(pairs) < 6:
        # the first split chooses, the next judge
        assert 1 in which[0]
        assert not np.isin(pairs[0][1], np.flatnonzero(fold == 0)).all()
    if grouped:
        assert (pd.Series(fold[weight > 0]).groupby(groups[weight > 0]).nunique() == 1).all()
    assert np.isfinite(model.held_out_score_)


def test_two_folds_leave_nothing_to_learn_the_scales_from() -> None:
    X, y = patients(0, 60)
    with pytest.raises(ValueError, match="4 folds or more do"):
        EvidenceKernelRegressor(cv=KFold(2), **QUICK).fit(X, y)


def test_lines_of_new_rows_are_refits_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The equations of the other rows, solved anew."""
    seen = solutions(monkeypatch)
    X, y = patients(1, 60)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = EvidenceKernelRegressor(**QUICK)
    model.fit(X.iloc[:290], y[:290], weight[:290])
    (learned,) = seen
    left, predictor = learned.left_out, learned.predictor
    rows, targets, landmarks = left.rows, predictor.targets, predictor.landmarks
    values, codes = targets.of_rows(rows).values.T, rows.codes[:, 0]
    features = landmarks.features(rows.numeric, rows.codes).astype(np.float64)
    gram = landmarks.gram()
    for g in np.unique(codes)[:8]:
        own, others = codes == g, codes != g
        # nor is there a landmark in the group
        kept = np.setdiff1d(np.arange(len(gram)), left.at[own])
        phi, mass = features[others][:, kept], rows.mass[others, None]
        jitter = 1e-7 * np.abs(gram).sum(axis=0).mean()
        inner = (gram + jitter * np.eye(len(gram)))[np.ix_(kept, kept)]
        left_side = phi.T @ (mass * phi) + predictor.ridge * inner
        # and the others have a mean of their own
        centred = values - np.average(values[others], axis=0, weights=mass[:, 0])
        dual = np.linalg.lstsq(left_side, phi.T @ (mass * centred[others]), rcond=None)[0]
        expected = centred[own] - features[own][:, kept] @ dual
        np.testing.assert_allclose(left.residuals(np.flatnonzero(own)), expected, atol=2e-4)


def test_a_scorer_chooses_and_is_reported() -> None:
    X, y = patients(0, 60)
    y[::20] += 30.0
    absolute = EvidenceKernelRegressor(scoring="neg_mean_absolute_error", **QUICK).fit(X, y)
    seen = absolute.held_out_fold_ >= 0
    error = mean_absolute_error(y[seen], absolute.held_out_prediction_[seen])
    assert absolute.held_out_score_ == pytest.approx(-error)
    assert 0.0 < absolute.held_out_error_ < 2.0
    plain = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert absolute._predictor.ridge != plain._predictor.ridge
    labels = np.where(y > 0, "high", "low")
    model = EvidenceKernelClassifier(scoring="roc_auc", **QUICK).fit(X, labels)
    assert 0.5 < model.held_out_score_ <= 1.0


@pytest.mark.parametrize("how", ["groups", "order"])
def test_classes_by_groups_and_in_order(how: str) -> None:
    X, y = patients(3, 60)
    X["day"] = np.arange(360.0) + 0.5
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    asked = {"groups": "patient"} if how == "groups" else {"order": "day"}
    model = EvidenceKernelClassifier(**QUICK).fit(X, labels, **asked)
    told = model.held_out_prediction_
    seen = ~np.isnan(told[:, 0])
    right = model.classes_[told[seen].argmax(axis=1)] == labels[seen]
    assert abs(np.mean(right) - model.held_out_score_) < 2 * model.held_out_error_


def test_what_cannot_be_obeyed_is_refused() -> None:
    X, y = patients(0, 60)
    X["when"] = np.where(np.arange(360) == 17, np.nan, np.arange(360.0))
    model = EvidenceKernelRegressor(**QUICK)
    whole = Batches(X.assign(y=y), "y", size=50)
    with pytest.raises(ValueError, match="did you mean 'patient'"):
        model.fit(whole, groups="patiend")
    with pytest.raises(ValueError, match="must name columns"):
        model.fit(whole, groups=X["patient"].to_numpy())
    with pytest.raises(ValueError, match="order is missing in row 17"):
        model.fit(whole, order="when")
    with pytest.raises(ValueError, match="order must hold numbers or dates, got 'm0'"):
        model.fit(whole, order="patient")
    with pytest.raises(ValueError, match="for tables in memory"):
        EvidenceKernelRegressor(cv=KFold(5), **QUICK).fit(whole)
    with pytest.raises(ValueError, match=r"at least 3 .* got 2"):
        model.fit(X, y, groups=np.arange(360) // 180)
    with pytest.raises(ValueError, match="same in nearly every row"):
        model.fit(X, y, order=np.zeros(360))
    assert not hasattr(model, "kernel_")
