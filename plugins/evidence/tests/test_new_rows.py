"""What is expected of new groups and later rows is what they bring."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
    HeldOutWarning,
    new_rows,
)
from kernelweave.evidence.copies import alike_groups
from kernelweave.evidence.inverse import Inverse
from kernelweave.evidence.leave_out import PairsLeaveOut
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.new_rows import (
    _is_significantly_worse,
    leave_groups_out,
    leave_later_out,
)
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.scores import margin_of_error
from kernelweave.kernels_core import clock
from kernelweave.tables import read_table
from scipy.stats import sem, ttest_1samp, ttest_ind
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}
Table = tuple[pd.DataFrame, Any]


def patients(seed: int, n_patients: int = 120) -> Table:
    """Six visits of each patient, whose own level decides most."""
    state = np.random.default_rng(seed)
    g = np.repeat(np.arange(n_patients), 6)
    own, level = state.normal(size=(n_patients, 3)), state.normal(size=n_patients)
    X = pd.DataFrame(own[g] + 0.05 * state.normal(size=(len(g), 3)), columns=list("abc"))
    return X.assign(patient=[f"m{k}" for k in g]), 0.5 * own[g, 0] + level[g] + 0.3 * (
        state.normal(size=len(g))
    )


def walk(seed: int, n: int = 300) -> Table:
    """A random walk, a clock, and a column that helps."""
    state = np.random.default_rng(seed)
    X = pd.DataFrame({"t": np.arange(n, dtype=np.float64), "x": state.normal(size=n)})
    return X, np.cumsum(state.normal(size=n)) + X["x"].to_numpy() + 0.3 * state.normal(size=n)


def exchangeable(seed: int) -> Table:
    """Cities, codes and days that say nothing."""
    state = np.random.default_rng(seed)
    n = int(state.integers(60, 200))
    X = pd.DataFrame(state.normal(size=(n, 2)), columns=["a", "b"])
    X["city"] = [f"c{k}" for k in state.integers(0, n // 6, n)]
    X["code"] = state.integers(0, n // 6, n)
    days = pd.to_timedelta(state.integers(0, n // 4, n), unit="D")
    X["day"] = pd.Timestamp("2024-01-01") + days
    return X, np.sin(2 * X["a"]) + (0.2, 1.0)[seed % 2] * state.normal(size=n)


@pytest.fixture(scope="module")
def clinic() -> tuple[Any, Table, Table]:
    X, y = patients(0)
    with pytest.warns(HeldOutWarning):
        model = EvidenceKernelRegressor(**QUICK).fit(X[:360], y[:360])
    return model, (X[:360], y[:360]), (X[360:], y[360:])


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_a_new_patient_is_told_from_a_new_visit(clinic: Any) -> None:
    model, _, new = clinic
    table = model.held_out_
    assert table.index.tolist() == ["rows like these", "new patient"]
    assert table.columns.tolist() == ["score", "error", "n_rows", "n_groups"]
    assert table.score.iloc[0] == model.held_out_score_ > 0.85
    assert table.loc["new patient", ["n_rows", "n_groups"]].tolist() == [360, 60]
    told, error = table.loc["new patient", ["score", "error"]]
    # a little too good: the scales have seen all patients
    assert abs(told - model.score(*new)) < 0.25
    assert 0.02 < error < 0.25


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_others_do_not_tell_the_level_of_a_patient_by_their_mean() -> None:
    """Beside the mean of all, levels sum to zero: the line said 0.40 ± 0.04, new patients 0.13.

    Thirty random numbers make the kernel one of patients alone.
    """
    state = np.random.default_rng(3)
    g = np.repeat(np.arange(160), 6)
    own, level = state.normal(size=(160, 3)), state.normal(size=160)
    X = pd.DataFrame(own[g] + 0.05 * state.normal(size=(len(g), 3)), columns=list("abc"))
    y = 0.5 * own[g, 0] + level[g] + 0.3 * state.normal(size=len(g))
    X = X.join(pd.DataFrame(state.normal(size=(len(g), 30))).add_prefix("noise"))
    X["patient"] = [f"m{k}" for k in g]
    with pytest.warns(HeldOutWarning):
        model = EvidenceKernelRegressor(precisions=(0.5,), warp=False).fit(X[:360], y[:360])
    told, error = model.held_out_.loc["new patient", ["score", "error"]]
    assert abs(told - model.score(X[360:], y[360:])) < 2.0 * np.sqrt(2.0) * error


def test_the_warning_has_both_figures_the_column_and_what_to_say(clinic: Any) -> None:
    model, (X, y), _ = clinic
    low, high = model.held_out_.score.iloc[1], model.held_out_score_
    with pytest.warns(HeldOutWarning) as told:
        EvidenceKernelRegressor(**QUICK).fit(X, y)
    (said,) = [str(each.message) for each in told if each.category is HeldOutWarning]
    assert (
        f"R² of at most {low:.2f} on rows of a new 'patient', not {high:.2f} as on rows like these"
        in said
    )
    assert "fit with groups='patient'" in said


def test_the_warning_names_the_patient_and_not_what_each_patient_has() -> None:
    state = np.random.default_rng(3)
    g = np.repeat(np.arange(40), 5)
    level, dose = 2.0 * state.normal(size=40), state.uniform(0.0, 10.0, len(g))
    X = pd.DataFrame({"age": (50.0 + 8.0 * state.normal(size=40))[g].round(), "dose": dose})
    X["patient"] = [f"m{k}" for k in g]
    y = level[g] + 0.3 * dose + 0.5 * state.normal(size=len(g))
    with pytest.warns(HeldOutWarning, match="rows of a new 'patient'.* has 1 more such kind\\)"):
        model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert model.held_out_.index.tolist() == ["rows like these", "new age", "new patient"]
    assert model.held_out_.loc["new age", "score"] < model.held_out_.loc["new patient", "score"]


def test_a_line_that_is_hardly_below_the_first_is_not_warned_of() -> None:
    """Litters have levels, but folds hold out rows of a litter that are equal together as well."""
    r = np.random.RandomState(45)
    litter = np.repeat(np.arange(24), 6)
    female, size = r.randint(0, 2, len(litter)), r.randint(4, 18, 24)[litter]
    level = 0.3 * female - 0.1 * size + 0.3 * r.randn(24)[litter]
    y = level + 0.3 * r.randn(len(litter))
    X = pd.DataFrame({"litter": litter, "size": size, "sex": np.where(female, "f", "m")})
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeldOutWarning)
        model = EvidenceKernelRegressor(random_state=0).fit(X, y)
    first, new = model.held_out_.loc[["rows like these", "new litter"], "score"]
    assert first - 0.02 < new < first


@pytest.mark.parametrize("prices", [False, True])
def test_closed_forms_are_refits_at_the_same_scales(prices: bool) -> None:
    X, y = patients(1, 20)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeldOutWarning)
        model = EvidenceKernelRegressor(**QUICK).fit(X, np.exp(y) if prices else y, weight)
    predictor, state = model._predictor, np.random.RandomState(0)
    rows, mixture = predictor.rows, predictor.mixture
    assert bool(mixture.target.warps) == prices
    closed = PairsLeaveOut(
        mixture.inverse, mixture.target, rows, np.arange(len(rows)), mixture.width
    )

    def refitted(known: np.ndarray, asked: np.ndarray) -> np.ndarray:
        units = Standardised.of(rows)
        mean = np.average(units.values[0, known], weights=rows.mass[known])
        units = replace(units, centre=units.centre + mean * units.spread)
        part = fit_mixture(mixture.views, rows.take(known), mixture.scales, units)
        own = rows.take(asked)
        return mean + part.latent(part.views.points(own.numeric, own.codes))

    everything = np.arange(len(rows))
    codes = rows.codes[:, 0]
    groups = leave_groups_out(closed, codes, state)
    for g in np.unique(codes):
        own = np.flatnonzero(codes == g)
        told = mixture.target.values.T[own] - groups.residuals[own]
        np.testing.assert_allclose(told, refitted(np.flatnonzero(codes != g), own), atol=1e-8)
    order = np.random.default_rng(1).permutation(len(rows)).astype(float)
    later = leave_later_out(closed, order, state)
    assert len(later.rows) == len(rows) // 2
    for part in np.unique(later.parts):
        places = np.flatnonzero(later.parts == part)
        own = later.rows[places]
        before = everything[order < order[own].min()]
        told = mixture.target.values.T[own] - later.residuals[places]
        np.testing.assert_allclose(told, refitted(before, own), atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_walk_is_told_from_a_table_in_no_order(seed: int) -> None:
    X, y = walk(seed, 200)
    with pytest.warns(HeldOutWarning, match=r"that come later in the table.*order=np.arange"):
        model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert model.held_out_score_ - model.held_out_.score["later in the file"] > 0.1
    shuffled = np.random.default_rng(0).permutation(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeldOutWarning)
        other = EvidenceKernelRegressor(**QUICK).fit(X.iloc[shuffled], y[shuffled])
    assert other.held_out_.score["later in the file"] > 0.8


def test_dates_order_rows_wherever_they_stand() -> None:
    X, y = walk(1)
    X["t"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(y)), unit="D")
    shuffled = np.random.default_rng(0).permutation(len(y))
    with pytest.warns(HeldOutWarning, match=r"that are later by 't'.*order='t'"):
        EvidenceKernelRegressor(**QUICK).fit(X.iloc[shuffled], y[shuffled])


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 24), marks=pytest.mark.slow)])
def test_there_is_no_alarm_where_nothing_depends_on_groups_or_order(seeds: range) -> None:
    lines = 0
    for seed in seeds:
        X, y = exchangeable(seed)
        model = EvidenceKernelRegressor(precisions=(5.0,), max_iter=10, warp=False)
        if seed % 3 == 0:
            y, model = y > 0, EvidenceKernelClassifier(precisions=(5.0,), max_iter=10)
        with warnings.catch_warnings():
            warnings.simplefilter("error", HeldOutWarning)
            model.fit(X, y)
        assert set(model.held_out_.index[1:]) <= {
            "new city", "new code", "new day of day", "later by day", "later in the file"
        }  # fmt: skip
        lines += len(model.held_out_) - 1
    assert lines > 10 * len(seeds) // 3


def alarm(seed: int, effect: float) -> bool:
    """Whether groups of different sizes and scales are told from rows at random, by a Gaussian."""
    state = np.random.default_rng(seed)
    n_groups = int(state.integers(8, 16))
    sizes = np.clip(6 * np.exp(0.8 * state.normal(size=n_groups)), 2, 30).astype(int)
    groups, scale = np.repeat(np.arange(n_groups), sizes), np.exp(state.normal(size=n_groups))
    rest = state.standard_t(3, size=sizes.sum()) * (scale[groups] if effect else 0.5)
    x = state.normal(size=(len(groups), 1))
    level = effect * (scale * state.normal(size=n_groups))[groups]
    y = np.sin(x[:, 0]) + level + 0.3 * rest
    groups = groups if effect else state.permutation(groups)
    kernel = np.exp(-((x - x.T) ** 2)) + (groups[:, None] == groups)
    factor = np.linalg.cholesky(kernel + 0.2 * np.eye(len(y)))
    rows = Rows(x, np.empty((len(y), 0), np.int64), y[None])
    closed = PairsLeaveOut(Inverse(factor), Standardised.of(rows), rows, np.arange(len(y)))
    left = leave_groups_out(closed, groups, np.random.RandomState(seed))
    return _is_significantly_worse(left, np.ones(len(y)), 1)


def test_groups_of_different_sizes_and_scales_are_told_and_random_ones_are_not() -> None:
    # mean differences of squares told of 19 of 100
    assert sum(alarm(seed, 1.0) for seed in range(100)) > 60
    assert sum(alarm(seed, 0.0) for seed in range(200)) <= 10


def test_eleven_firms_warn() -> None:
    panel = read_table("grunfeld").frame
    with pytest.warns(HeldOutWarning, match="on rows of a new 'firm', not 0.9"):
        EvidenceKernelRegressor(**QUICK).fit(panel.drop(columns="invest"), panel["invest"])


@pytest.mark.parametrize(
    ("name", "in_order", "is_order"),
    [("year", False, True), ("t", True, True), ("t", False, False), ("count", False, False)],
)
def test_years_are_an_order_and_counts_are_none(name: str, in_order: bool, is_order: bool) -> None:
    """Eight firms in fifteen years, by firm or by year; counts lie in the same range."""
    state = np.random.default_rng(0)
    year = np.tile(np.arange(2001.0, 2016.0), 8)
    year = np.sort(year) if in_order else year
    X = pd.DataFrame({"x": state.normal(size=120), name: year.astype(int)})
    X["firm"] = [f"f{k}" for k in np.repeat(np.arange(8), 15)]
    if name == "count":
        X[name] = state.integers(0, 40, 120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeldOutWarning)
        model = EvidenceKernelRegressor(**QUICK).fit(X, np.sin(X["x"]) + state.normal(size=120))
    assert (f"later by {name}" in model.held_out_.index) == is_order


def test_kinds_that_time_is_not_left_for_are_named(
    clinic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = SimpleNamespace(expired=lambda: True, LATE_SECONDS=-1.0, Stopwatch=clock.Stopwatch)
    monkeypatch.setattr(new_rows, "clock", late)
    X, y = clinic[1]
    with pytest.warns(ConvergenceWarning, match="no time to judge rows of a new 'patient'"):
        model = EvidenceKernelRegressor(max_time=1000.0, **QUICK).fit(X, y)
    assert model.held_out_.index.tolist() == ["rows like these"]


def test_classes_of_patients() -> None:
    X, y = patients(2)
    y = np.where(y > 0, "ill", "well")
    with pytest.warns(HeldOutWarning, match="accuracy of at most 0.* on rows of a new 'patient'"):
        model = EvidenceKernelClassifier(**QUICK).fit(X[:360], y[:360])
    told = model.held_out_.loc["new patient"]
    # sixty patients judge it on either side
    assert abs(told.score - model.score(X[360:], y[360:])) < 2 * np.sqrt(2) * told.error


def test_quantities_and_tables_sorted_by_target_are_no_groups() -> None:
    state = np.random.default_rng(0)
    hour = state.integers(0, 24, 300)
    X = pd.DataFrame({"hour": hour, "x": state.normal(size=300)})
    y = 3.0 * np.sin(hour / 4.0) + X["x"] + 0.1 * state.normal(size=300)
    by = np.argsort(y.to_numpy())
    model = EvidenceKernelRegressor(**QUICK).fit(X.iloc[by], y.iloc[by])
    assert model.held_out_.index.tolist() == ["rows like these"]


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.UnderfitWarning")
@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_near_copies_are_told_and_held_out_together_where_asked() -> None:
    state = np.random.default_rng(2)
    own, level = state.normal(size=(80, 6)), state.normal(size=80)
    who = np.repeat(np.arange(80), 4)
    X = own[who] + 0.03 * state.normal(size=(320, 6))
    y = 0.5 * own[who, 0] + level[who] + 0.2 * state.normal(size=320)
    mixed = state.permutation(160)
    with pytest.warns(HeldOutWarning, match="near copies of no other.*groups='rows alike'"):
        model = EvidenceKernelRegressor(**QUICK).fit(X[mixed], y[mixed])
    told = model.held_out_.loc["without rows alike"]
    assert told[["n_rows", "n_groups"]].tolist() == [160, 40]
    assert model.held_out_score_ > told.score + 0.5
    assert abs(told.score - model.score(X[160:], y[160:])) < 0.3
    asked = EvidenceKernelRegressor(**QUICK).fit(X[mixed], y[mixed], groups="rows alike")
    by_name = EvidenceKernelRegressor(**QUICK).fit(X[mixed], y[mixed], groups=who[mixed])
    assert asked.held_out_.index[0] == "without rows alike"
    folds = pd.Series(asked.held_out_fold_).groupby(who[mixed]).nunique()
    assert (folds == 1).all()
    # their folds are drawn from other numbers for the same groups
    error = np.hypot(asked.held_out_error_, by_name.held_out_error_)
    assert abs(asked.held_out_score_ - by_name.held_out_score_) < 2.0 * error < 0.4


@pytest.mark.parametrize("n_columns", [2, 3, 4])
@pytest.mark.parametrize(("n", "each"), [(150, 2), (60, 6)])
def test_near_copies_in_a_few_columns_are_told(n_columns: int, n: int, each: int) -> None:
    state = np.random.default_rng(0)
    who = np.repeat(np.arange(n), each)
    X = state.normal(size=(n, n_columns))[who] + 0.01 * state.normal(size=(len(who), n_columns))
    found = alike_groups(X, np.zeros((len(X), 0), dtype=np.int64))
    # chance brings strangers together, and parts hardly anybody from a copy
    pairs = pd.DataFrame({"who": who, "found": found}).drop_duplicates()
    assert len(pairs) < 1.02 * n
    assert pairs["found"].nunique() > 0.8 * n


def test_ordinary_tables_have_no_near_copies() -> None:
    tables = [load_iris().data, load_wine().data, load_diabetes().data, load_breast_cancer().data]
    for seed in range(60):
        state = np.random.default_rng(seed)
        shape = int(state.integers(30, 300)), int(state.integers(1, 6))
        X = (state.normal(size=shape), state.standard_t(2, shape), state.uniform(size=shape))[
            seed % 3
        ]
        X[:, 0] = np.round(X[:, 0], seed % 2) if seed % 4 == 0 and shape[1] > 1 else X[:, 0]
        tables.append(X)
    for X in tables:
        X = np.unique(X, axis=0)
        assert len(np.unique(alike_groups(X, np.zeros((len(X), 0), dtype=np.int64)))) == len(X)


def test_a_table_in_the_order_of_its_dates_has_one_line_for_later_rows() -> None:
    X, y = walk(0, 120)
    X["t"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(X["t"], unit="D")
    with pytest.warns(HeldOutWarning, match="are then for them$"):
        model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert model.held_out_.index.tolist() == ["rows like these", "later by t"]


def test_no_wrong_answer_is_no_certainty() -> None:
    x = np.random.default_rng(0).permutation(np.r_[-60:-10, 10:60]) / 10.0
    model = EvidenceKernelClassifier(**QUICK).fit(x[:, None], x > 0)
    later = model.held_out_.loc["later in the file"]
    # nothing in six blocks: less than 3 / 6 in 95 of 100 samples, which is two errors
    assert (later.score, later.n_groups) == (1.0, 6)
    assert later.error == pytest.approx(1.5 / 6, rel=0.02)


def test_what_chance_explains_is_what_t_tests_say() -> None:
    state = np.random.default_rng(0)
    few, more = state.normal(size=6), state.normal(1.0, 3.0, 40)
    errors = [(float(sem(each)), len(each)) for each in (few, more)]
    low, high = ttest_1samp(few, 0.0).confidence_interval(0.9)
    assert margin_of_error(errors[0], chance=0.1) == pytest.approx((high - low) / 2)
    low, high = ttest_ind(few, more, equal_var=False).confidence_interval(0.95)
    assert margin_of_error(*errors) == pytest.approx((high - low) / 2)
    assert margin_of_error((0.1, 1), (0.1, 50)) == np.inf


@pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning")
def test_samples_in_the_order_of_their_targets_are_no_order_of_time() -> None:
    """Sixteen samples, each measured six times, sorted by what was measured."""
    state = np.random.RandomState(0)
    truth = np.sort(state.uniform(20.0, 80.0, 16))
    columns = state.normal(size=(16, 5))
    X = pd.DataFrame(np.repeat(columns, 6, axis=0) + 0.03 * state.normal(size=(96, 5)))
    X.columns = list("abcde")
    y = np.repeat(truth, 6) + 0.5 * state.normal(size=96)
    in_order = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert "without rows alike" in in_order.held_out_.index
    assert "later in the file" not in in_order.held_out_.index
    # samples in another order may have one of time
    at = np.concatenate([np.arange(6 * k, 6 * k + 6) for k in state.permutation(16)])
    mixed = EvidenceKernelRegressor(**QUICK).fit(X.iloc[at], y[at])
    assert "later in the file" in mixed.held_out_.index
