"""Rows are held out as the user says that new rows will come."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from kernelweave.evidence import (
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    HeldOutWarning,
)
from kernelweave.evidence.division import division_of
from kernelweave.evidence.intervals import LeftOut
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.rows import Standardised
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)
from test_new_rows import patients, walk

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}
pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
    # of new patients and later rows little can be known
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.exceptions.UnderfitWarning"),
    # a new patient may lie beyond the others
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning"),
]


@pytest.fixture(scope="module")
def clinics() -> Any:
    """Three draws, each with a model of sixty patients: the others are new."""
    return [drawn_clinic(seed) for seed in range(3)]


@pytest.fixture(scope="module")
def clinic() -> Any:
    return drawn_clinic(0)


def drawn_clinic(seed: int) -> Any:
    X, y = patients(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EvidenceKernelRegressor(**QUICK).fit(X[:360], y[:360], groups="patient")
    return model, X, y


def test_whole_groups_are_held_out_and_foretell_new_ones(clinic: Any) -> None:
    model, X, y = clinic
    fold = pd.Series(model.held_out_fold_).groupby(X["patient"][:360].to_numpy())
    assert (fold.nunique() == 1).all()
    assert model.held_out_fold_.min() == 0
    assert model.held_out_.index.tolist() == ["new patient", "rows like these"]
    first = model.held_out_.iloc[0]
    assert first.tolist() == [model.held_out_score_, model.held_out_error_, 360, 60]
    assert abs(model.held_out_score_ - model.score(X[360:], y[360:])) < 2 * np.sqrt(2) * first.error
    assert model.held_out_.score["rows like these"] > 0.85


@pytest.mark.slow  # three draws, each of 360 rows
def test_what_is_learned_for_new_groups_is_no_worse_for_them(clinics: Any) -> None:
    gains = []
    for of_patients, X, y in clinics:
        of_visits = EvidenceKernelRegressor(**QUICK).fit(X[:360], y[:360])
        gains.append(of_patients.score(X[360:], y[360:]) - of_visits.score(X[360:], y[360:]))
    # one draw differs by .03 either way
    assert np.mean(gains) > -0.02


def test_intervals_of_groups_hold_new_ones(clinics: Any) -> None:
    held = []
    for model, X, y in clinics:
        low, high = model.predict_interval(X[360:])
        held.append(np.mean((low <= y[360:]) & (y[360:] <= high)))
    assert np.mean(held) > 0.87


@pytest.mark.parametrize("numbered", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_known_members_keep_what_is_known_of_them(numbered: bool) -> None:
    """One model: narrow intervals for visits of known patients, wide ones for new patients."""
    held, width, score = [], [], []
    for seed in range(6):
        X, y = patients(seed)
        if numbered:
            X["patient"] = np.repeat(np.random.default_rng(9).permutation(120), 6)
        visit, old = np.tile(np.arange(6), 120), np.arange(720) < 360
        seen, known, new = old & (visit < 4), old & (visit >= 4), ~old
        model = EvidenceKernelRegressor(**QUICK).fit(X[seen], y[seen], groups="patient")
        for which in (known, new):
            low, high = model.predict_interval(X[which])
            held.append(np.mean((low <= y[which]) & (y[which] <= high)))
            width.append(np.mean(high - low))
            score.append(model.score(X[which], y[which]))
    assert 0.85 < np.mean(held[::2]) < 0.95
    assert np.mean(held[1::2]) > 0.86
    assert np.mean(width[::2]) < 0.5 * np.mean(width[1::2])
    assert min(score[::2]) > 0.85 > 0.5 > max(score[1::2])


def test_the_residuals_of_groups_are_those_of_refits(clinic: Any) -> None:
    predictor = clinic[0]._predictor
    rows, fold = predictor.rows, predictor.folds[0]
    mixture, groups = fold.among(rows, predictor.weights), rows.groups[fold.held_out]
    left = LeftOut(mixture, fold.held_out, groups)
    new = (rows.numeric[:5], rows.codes[:5])
    mean, width = left.predict(*new)
    for g in np.unique(groups)[:6]:
        others = np.flatnonzero(rows.groups != g)
        units = Standardised.of(fold.training)
        part = fit_mixture(mixture.views, rows.take(others), mixture.scales, units)
        for i in np.flatnonzero(groups == g):
            points = part.views.points(*new)
            np.testing.assert_allclose(mean[i], part.latent(points), atol=1e-8)
            expected = np.sqrt(part.variance(points) + part.nugget)
            np.testing.assert_allclose(width[i], expected, rtol=1e-6)
            own = rows.take(fold.held_out[[i]])
            at = part.views.points(own.numeric, own.codes)
            truth = units.of_rows(own).values.T
            np.testing.assert_allclose(left.residuals[i], (truth - part.latent(at))[0], atol=1e-8)


def test_a_name_and_an_array_are_the_same(clinic: Any) -> None:
    model, X, y = clinic
    same = EvidenceKernelRegressor(**QUICK)
    same.fit(X[:360], y[:360], groups=X["patient"][:360].to_numpy())
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.held_out_.index[0] == "new groups"


def test_later_blocks_are_held_out_wherever_rows_stand() -> None:
    X, y = walk(2)
    X["t"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(y)), unit="D")
    at = np.random.default_rng(0).permutation(200)
    model = EvidenceKernelRegressor(**QUICK).fit(X.iloc[at], y[at], order="t")
    fold = model.held_out_fold_[np.argsort(at)]
    assert fold[:100].tolist() == [-1] * 100
    np.testing.assert_array_equal(fold[100:], np.repeat([0, 1, 2], [33, 34, 33]))
    assert np.isnan(model.held_out_prediction_).sum() == 100
    assert model.held_out_.index[0] == "later by t"
    assert model.held_out_score_ < model.held_out_.score["rows like these"] - 0.1


def test_intervals_of_later_rows_hold_or_say_that_they_cannot() -> None:
    told, held = 0, []
    for seed in range(6):
        X, y = walk(seed, 270)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = EvidenceKernelRegressor(**QUICK).fit(X[:240], y[:240], order="t")
        low, high = model.predict_interval(X[240:])
        doubted = any("may hold less" in str(each.message) for each in caught)
        told += doubted
        if not doubted:
            held.append(np.mean((low <= y[240:]) & (y[240:] <= high)))
    # rows that follow share one walk, and a single one may go far
    assert np.mean(held) > 0.75
    assert told < 6
    X, y = patients(0, 60)
    by = np.random.default_rng(0).permutation(len(y))
    X, y = X.iloc[by].drop(columns="patient"), y[by]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = EvidenceKernelRegressor(**QUICK).fit(X[:240], y[:240], order=np.arange(240))
    # visits of one patient are near copies, which is said; of the intervals there is no doubt
    assert [each.category for each in caught] == [HeldOutWarning]
    assert "near copies" in str(caught[0].message)
    low, high = model.predict_interval(X[240:])
    assert 0.84 < np.mean((low <= y[240:]) & (y[240:] <= high)) < 0.97


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4, shuffle=True, random_state=0),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        TimeSeriesSplit(3),
        LeaveOneGroupOut(),
        [(np.arange(0, 60), np.arange(60, 90)), (np.arange(60, 90), np.arange(0, 60))],
    ],
)
def test_any_splitter_is_respected(cv: Any) -> None:
    X, y = patients(0, 15)
    groups = np.arange(90) // 30 if isinstance(cv, LeaveOneGroupOut) else None
    weight = np.ones(90)
    weight[::7] = 0.0
    model = EvidenceKernelRegressor(cv=cv, **QUICK).fit(X, y, weight, groups=groups)
    pairs = cv if isinstance(cv, list) else list(cv.split(X, y, groups))
    expected = np.full(90, -1)
    for k in range(len(pairs))[::-1]:
        expected[pairs[k][1]] = k
    expected[::7] = -1
    np.testing.assert_array_equal(model.held_out_fold_, expected)
    for (training, _), fold in zip(pairs, model._predictor.folds, strict=True):
        assert len(fold.training) == np.count_nonzero(weight[training])
    low, high = model.predict_interval(X)
    assert (low < high).all()


@pytest.mark.parametrize(
    ("told", "cv", "name"),
    [
        ({"groups": "patient"}, GroupKFold(3), "new patient"),
        ({"groups": "patient"}, KFold(3, shuffle=True, random_state=0), "rows as held out"),
        ({"groups": "patient"}, TimeSeriesSplit(3), "rows as held out"),
        ({"order": "day"}, TimeSeriesSplit(3), "later by day"),
        ({"order": "day"}, KFold(3), "rows as held out"),
    ],
)
def test_a_splitter_that_cuts_groups_or_time_is_not_called_so(
    told: dict[str, str], cv: Any, name: str
) -> None:
    """Rows of known patients that a splitter held out were called those of new ones."""
    X, y = patients(0, 15)
    X["day"] = np.arange(90)
    division = division_of(X, y, told.get("groups"), told.get("order"), cv)
    assert division.kind.name == name
    if isinstance(cv, KFold) and "groups" in told:
        with pytest.warns(HeldOutWarning, match="fit with groups='patient', without cv: the sc"):
            model = EvidenceKernelRegressor(cv=cv, **QUICK).fit(X.drop(columns="day"), y, **told)
        lines = model.held_out_
        assert lines.index[0] == name
        assert lines.score["new patient"] < 0.6 < 0.8 < lines.score.iloc[0]


def test_a_number_of_folds_is_a_number_of_folds() -> None:
    X, y = patients(0, 15)
    one = EvidenceKernelRegressor(cv=4, **QUICK).fit(X, y)
    other = EvidenceKernelRegressor(n_folds=4, **QUICK).fit(X, y)
    np.testing.assert_array_equal(one.held_out_prediction_, other.held_out_prediction_)


@pytest.mark.parametrize("how", ["groups", "order"])
def test_classes_by_groups_and_in_order(how: str) -> None:
    X, y = patients(3, 40)
    X["day"] = np.arange(240.0) + 0.5
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    asked = {"groups": "patient"} if how == "groups" else {"order": "day"}
    model = EvidenceKernelClassifier(**QUICK).fit(X, labels, **asked)
    told = model.held_out_prediction_
    assert np.isnan(told[:, 0]).sum() == (0 if how == "groups" else 120)
    seen = ~np.isnan(told[:, 0])
    right = model.classes_[told[seen].argmax(axis=1)] == labels[seen]
    # which calibrates parts by the others
    assert abs(np.mean(right) - model.held_out_score_) < model.held_out_error_
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_groups_are_routed() -> None:
    X, y = patients(0, 20)
    with sklearn.config_context(enable_metadata_routing=True):
        model = EvidenceKernelRegressor(**QUICK).set_fit_request(groups=True)
        scores = cross_val_score(
            model, X, y, cv=GroupKFold(2), params={"groups": X["patient"].to_numpy()}
        )
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()


def test_what_cannot_be_obeyed_is_refused() -> None:
    X, y = patients(0, 15)
    model = EvidenceKernelRegressor(**QUICK)
    with pytest.raises(ValueError, match=r"got 'patiend': did you mean 'patient'\?"):
        model.fit(X, y, groups="patiend")
    with pytest.raises(ValueError, match="groups must be a column's name or one value a sample"):
        model.fit(X, y, groups=[1, 2])
    with pytest.raises(ValueError, match="order must hold numbers or dates, got 'm0' in row 0"):
        model.fit(X, y, order="patient")
    with pytest.raises(ValueError, match="groups are one and the same"):
        model.fit(X, y, groups=np.zeros(90))
    with pytest.raises(ValueError, match="order is the same in nearly every row"):
        model.fit(X, y, order=np.zeros(90))
    with pytest.raises(ValueError, match="must not hold out rows that it learns from"):
        EvidenceKernelRegressor(cv=[(np.arange(60), np.arange(50, 90))]).fit(X, y)
    with pytest.raises(ValueError, match="cv must give places of 90 rows, from 0 on, got 90"):
        EvidenceKernelRegressor(cv=[(np.arange(60), np.arange(60, 91))]).fit(X, y)
    with pytest.raises(ValueError, match=r"precisions must be one or more finite numbers > 0"):
        EvidenceKernelRegressor(precisions=(5.0, -1.0)).fit(X, y)
    with pytest.raises(ValueError, match="cv must be an integer >= 2, got 1"):
        EvidenceKernelRegressor(cv=1).fit(X, y)
    with pytest.raises(ValueError, match=r"(?s)a cross-validation object .* Got group"):
        EvidenceKernelRegressor(cv="group").fit(X, y)
    assert not hasattr(model, "kernel_")
