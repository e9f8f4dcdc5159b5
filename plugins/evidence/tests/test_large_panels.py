"""Rows with groups and an order both, by landmarks: four kinds, as of all pairs of rows."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.columns.encoded import GroupColumn
from kernelweave.evidence.cross import own_kernel
from kernelweave.evidence.large import held_out
from kernelweave.evidence.large import panel as large_panel
from kernelweave.evidence.large.again import white_sums
from kernelweave.evidence.large.batches import Batches
from kernelweave.evidence.large.features import Landmarks
from kernelweave.evidence.large.held_out import HeldFolds, RowBlock, RowRoles
from kernelweave.evidence.large.landmark_search import blocks_of
from kernelweave.evidence.large.landmarks import LandmarkPredictor
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.leave_out import LandmarksLeaveOut
from kernelweave.evidence.large.levels import GroupLevels
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.large.posterior import PosteriorOfSums
from kernelweave.evidence.large.solution import Choice, LandmarkSolution, Trial
from kernelweave.evidence.large.source import BlockSource
from kernelweave.evidence.large.survey import survey
from kernelweave.evidence.objective import start
from kernelweave.evidence.panels import KNOWN_LATER, NEW_NOW
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows, Standardised
from kernelweave.evidence.terms import Scales
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

FOUR = ["known firm, now", "new firm, now", "known firm, later by year", "new firm, later by year"]
QUICK: dict[str, Any] = {"precisions": (5.0,), "max_iter": 15, "tol": 1e-3, "random_state": 0}
RIDGE, RATIO = 0.2, 0.7
pytestmark = pytest.mark.filterwarnings(
    "ignore::kernelweave.evidence.HeldOutWarning",
    "ignore::kernelweave.kernels_core.ExtrapolationWarning",
    "ignore::kernelweave.evidence.living.relearn.RelearnWarning",
)


def firms(seed: int, n_firms: int, n_years: int, first: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return firms with levels of their own, of which some are founded late."""
    rng = np.random.RandomState(seed)
    firm, year = np.repeat(np.arange(n_firms), n_years), np.tile(np.arange(n_years), n_firms)
    X = pd.DataFrame(rng.normal(size=(len(firm), 2)), columns=["a", "b"])
    y = np.sin(1.5 * X["a"]) + rng.normal(size=n_firms)[firm] + 0.3 * rng.normal(size=len(firm))
    X["firm"], X["year"] = [f"f{first + k}" for k in firm], 2000.0 + year
    founded = rng.randint(-n_years, n_years - 1, n_firms)[firm] <= year
    return X[founded].reset_index(drop=True), np.asarray(y)[founded]


class Small:
    """Forty rows of nine groups in an order, ten landmarks, and their joint normal distribution."""

    def __init__(self) -> None:
        rng, n = np.random.RandomState(3), 40
        groups = rng.randint(0, 9, n)
        numeric = np.column_stack([rng.normal(size=(n, 2)), groups])
        self.rows = Rows(
            numeric, np.zeros((n, 0), dtype=np.int64), rng.normal(size=(1, n)) + 3.0,
            rng.uniform(0.5, 2.0, n), groups=groups, times=np.arange(float(n)),
            group=GroupColumn(2),
        )  # fmt: skip
        self.targets = Standardised.of(self.rows)
        views, scales = self.rows.views(), (Scales.from_vector(start(3)),)
        points = views.points(numeric[:10], self.rows.codes[:10])
        self.landmarks = Landmarks(views, points, scales, np.float64)
        self.phi = self.landmarks.features(numeric, self.rows.codes)
        everything = views.points(numeric, self.rows.codes)
        self.prior = own_kernel(everything, scales[0], views.match_weight)
        self.equations = white_sums(self.landmarks, self.rows, self.targets, RATIO)

    def told(self, row: int, kept: NDArray[np.intp], *, new: bool = False) -> tuple[float, float]:
        """Return a row's mean and the variance of its function and level, given other rows.

        `new`: whether no landmark is of its group.
        """
        used = np.flatnonzero((not new) | (self.rows.groups[:10] != self.rows.groups[row]))
        gram = self.landmarks.gram()[np.ix_(used, used)]
        phi = self.phi[:, used]
        span = phi @ np.linalg.solve(gram, phi.T)
        same = self.rows.groups[:, None] == self.rows.groups
        K = span + RIDGE / RATIO * same
        S = K[np.ix_(kept, kept)] + np.diag(RIDGE / self.rows.mass[kept])
        half = np.linalg.solve(S, K[kept, row])
        mean = half @ self.targets.values[0, kept]
        return float(mean), float(self.prior[row] + RIDGE / RATIO - half @ K[kept, row])

    def told_of_new(self, row: int, kept: NDArray[np.intp]) -> float:
        """Return the mean, given other rows whose mean is the centre of all targets."""
        mass, values = self.rows.mass[kept], self.targets.values
        centre = float(mass @ values[0, kept] / mass.sum())
        moved = Small()
        moved.targets = replace(moved.targets, values=values - centre)
        return moved.told(row, kept, new=True)[0] + centre


@pytest.mark.parametrize("many", [False, True])
def test_rows_without_their_groups_are_those_of_a_fit_without_them(
    many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:
        # as of groups of more rows than landmarks
        monkeypatch.setattr(large_panel, "_smaller", lambda n, m: False)
    small = Small()
    rows, everything = small.rows, np.arange(40)
    dual, factor = small.equations.solve(RIDGE)
    posterior = PosteriorOfSums.of(small.landmarks, RIDGE, small.equations, factor)
    names = np.append(np.arange(10), np.full(30, -1))
    solution = LandmarkSolution(small.landmarks, RIDGE, 0.0, dual, posterior, (), RATIO)
    rest = small.targets.values.T - small.phi @ dual
    levels = GroupLevels.of(rows, lambda _: rest, RATIO, RIDGE)
    leaves = LandmarksLeaveOut(solution, small.targets, rows, everything, names, levels)
    (found,) = leaves.panel[NEW_NOW]
    assert len(found.at) == 40
    for row, mean, variance in zip(found.at, found.latent[:, 0], found.variance, strict=True):
        others = everything[rows.groups != rows.groups[row]]
        assert mean == pytest.approx(small.told_of_new(int(row), others), abs=1e-5)
        if rows.groups[row] not in rows.groups[:10]:
            assert variance == pytest.approx(small.told(int(row), others)[1], abs=1e-5)


def test_later_rows_have_the_levels_of_their_groups_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # of two groups at a time
    monkeypatch.setattr(held_out, "_GROUPS", 2)
    small = Small()
    rows, fold = small.rows, np.repeat([-1, 0, 1, 2], [16, 8, 8, 8])
    out = fold >= np.arange(3)[:, None]
    held = HeldFolds(rows, np.arange(40), fold, out, None, np.arange(40))

    def share(which: NDArray[np.intp]) -> RowBlock:
        return held.block_of(which, small.targets)._replace(ratio=RATIO)

    trial = Trial(small.landmarks, Choice(0.0, RIDGE, np.empty(0), 0.0), None, 40, RATIO)
    solution = LandmarkSolution.of_sums(trial, small.equations, held, share)
    new = 0
    for k, part in enumerate(solution.left_out, 1):
        before = np.flatnonzero(~out[k])
        for row, mean, variance in zip(part.which, part.latent[:, 0], part.variance, strict=True):
            told = small.told(int(row), before)
            assert mean == pytest.approx(told[0], abs=1e-5)
            if rows.groups[row] not in rows.groups[before]:
                assert variance == pytest.approx(told[1], abs=1e-5)
        assert part.new is not None
        for at, mean, variance in zip(
            part.new.at, part.new.latent[:, 0], part.new.variance, strict=True
        ):
            row = int(part.which[at])
            others = before[rows.groups[before] != rows.groups[row]]
            assert mean == pytest.approx(small.told(row, others, new=True)[0], abs=1e-5)
            if rows.groups[row] not in rows.groups[:10]:
                assert variance == pytest.approx(small.told(row, others)[1], abs=1e-5)
            new += 1
    assert new == 16


@pytest.fixture(scope="module")
def panel() -> Any:
    X, y = firms(0, 110, 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)
        now = X["year"] < 2006
        model = EvidenceKernelRegressor(**QUICK).fit(X[now], y[now], groups="firm", order="year")
    assert isinstance(model._predictor, LandmarkPredictor)
    return model, X, y, now.to_numpy()


def test_a_large_panel_has_a_line_and_intervals_for_each_kind(panel: Any) -> None:
    model, X, y, now = panel
    lines = model.held_out_
    assert list(lines.index[1:5]) == FOUR
    known, new = lines.loc[FOUR[::2], "score"], lines.loc[FOUR[1::2], "score"]
    assert known.min() > new.max() + 0.2
    other, truth = firms(7, 60, 8, first=1000)
    both = pd.concat([X, other], ignore_index=True)
    values = np.concatenate([y, truth])
    kinds = model.kinds_of_rows(both)
    assert set(kinds) == set(FOUR)
    low, high = model.predict_interval(both, confidence=0.9)
    unseen = np.concatenate([~now, np.ones(len(other), dtype=bool)])
    for kind in FOUR[1:]:
        which = unseen & (kinds == kind)
        inside = (low <= values) & (values <= high)
        assert 0.8 <= inside[which].mean() <= 0.99, kind
    widths = pd.Series(high - low).groupby(kinds).mean()
    assert widths[FOUR[1]] > 1.5 * widths[FOUR[0]]
    assert widths[FOUR[3]] > 1.5 * widths[FOUR[2]]


def test_folds_of_a_large_panel_predict_by_their_levels(panel: Any) -> None:
    model, *_ = panel
    predictor = model._predictor
    for which, predict in predictor.fold_predictors():
        rows = predictor.rows.take(which)
        found = predict(rows.numeric, rows.codes)
        np.testing.assert_allclose(found, predictor.held_out[which], atol=1e-6)


def test_a_large_panel_is_kept_and_takes_rows(panel: Any) -> None:
    model, X, y, now = panel
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    again.update(X[~now], y[~now])
    assert list(again.held_out_.index[1:5]) == FOUR
    assert set(again.kinds_of_rows(X)) == {FOUR[0]}
    assert len(again.group_effects_) >= len(model.group_effects_)
    again.forget(np.flatnonzero(np.concatenate([X["firm"][now], X["firm"][~now]]) == "f3"))
    assert again.kinds_of_rows(X[X["firm"] == "f3"][:1]).tolist() == [FOUR[1]]


def test_a_large_panel_that_is_read_in_parts_is_refused() -> None:
    X, y = firms(0, 900, 8)
    parts = Batches(X.assign(y=y), "y", size=1000)
    with pytest.raises(ValueError, match="are for tables in memory, got a table read in parts"):
        EvidenceKernelRegressor(**QUICK).fit(parts, groups="firm", order="year")


def test_a_panel_of_more_rows_than_are_drawn_has_levels_in_its_folds() -> None:
    X, y = firms(2, 70, 24)
    names = X["firm"].str[1:].astype(int).to_numpy()
    numeric = np.column_stack([X[["a", "b"]], names, X["year"]])
    rows = Rows(
        numeric, np.zeros((len(X), 0), dtype=np.int64), y[None], groups=names,
        times=X["year"].to_numpy(), group=GroupColumn(2),
    )  # fmt: skip
    plan = LargePlan(
        PathPlan(precisions=(5.0,), max_iter=10), metric_rows=200, first=100, most=100,
        sample_rows=400,
    )  # fmt: skip
    whole = BlockSource(partial(blocks_of, rows), 1)
    seen = survey(whole, plan.sample_rows, 0)
    assert len(seen.sample) < len(rows)
    held = RowRoles.of(seen, plan, False, whole).held_out
    for out in held.without:
        which = np.flatnonzero(out)
        rest = held.block_of(which, seen.targets).rest
        assert rest is not None
        own = np.isin(names, names[held.places[which]])
        assert len(rest.mass) == own.sum() - len(which)
    predictor = learn_large(rows, plan, np.random.RandomState(0)).predictor
    judged = predictor.fold >= 0
    away = predictor.rows.targets.T[judged] - predictor.held_out[judged]
    # most of the later rows are of firms that have a level
    assert 1.0 - np.mean(away**2) / np.var(y) > 0.7
    assert predictor.of_kinds[KNOWN_LATER].n_groups > 50


@pytest.mark.parametrize(("n_firms", "n_years"), [(12, 90), (3, 300)])
def test_few_firms_of_many_years_tell_of_new_ones(
    n_firms: int, n_years: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)
    monkeypatch.setattr(large_panel, "_LEARNED", 200)
    X, y = firms(1, n_firms, n_years)
    model = EvidenceKernelRegressor(**QUICK).fit(X, y, groups="firm", order="year")
    n_groups = model._predictor.of_kinds[NEW_NOW].n_groups
    assert n_groups == min(n_firms, 8) == model.held_out_.loc[FOUR[1], "n_groups"]


def test_groups_that_no_column_names_make_no_row_a_known_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)
    X, y = firms(0, 110, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = EvidenceKernelRegressor(**QUICK).fit(
            X.drop(columns="firm"), y, groups=X["firm"], order="year"
        )
    assert not any("known groups" in str(each.message) for each in caught)
    new = "new groups, later by year"
    assert set(model.kinds_of_rows(X.drop(columns="firm").assign(year=2009.0))) == {new}
    assert model.held_out_.loc[new, "score"] < 0.6


def test_folds_of_a_splitter_tell_of_known_and_new_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)
    X, y = firms(0, 110, 8)
    model = EvidenceKernelRegressor(cv=GroupKFold(9), **QUICK)
    model.fit(X, y, groups="firm", order="year")
    assert set(FOUR[:2]) <= set(model.held_out_.index)
    assert set(model.kinds_of_rows(X.assign(year=2030.0))) <= set(model.held_out_.index)


def test_a_model_of_an_older_file_keeps_the_intervals_of_known_groups(panel: Any) -> None:
    predictor = panel[0]._predictor
    known = predictor.of_kinds[0]
    state = {**vars(predictor), "known_scores": known.scores, "known_size": known.size}
    old = object.__new__(LandmarkPredictor)
    old.__setstate__({name: each for name, each in state.items() if name != "of_kinds"})
    rows = predictor.rows
    found = [each.interval(rows.numeric[:5], rows.codes[:5], 0.9) for each in (old, predictor)]
    np.testing.assert_array_equal(*found)


def test_deviations_beyond_the_last_row_are_as_large_as_residuals_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # rows that were held out are landmarks of the model of all rows, so that it leaves less open
    monkeypatch.setattr("kernelweave.evidence.read_table.FACTOR_ROWS", 400)
    X, y = firms(4, 60, 40)
    shocks = 0.2 * np.random.RandomState(0).normal(size=40)
    y = y + shocks[(X["year"] - 2000.0).astype(int)]
    now = (X["year"] < 2034).to_numpy()
    model = EvidenceKernelRegressor(**QUICK).fit(X[now], y[now], groups="firm", order="year")
    _, deviation = model.predict(X[~now], return_std=True)
    held = ~np.isnan(model.held_out_prediction_)
    away = (y[now] - model.held_out_prediction_)[held]
    known = model.kinds_of_rows(X[~now]) == FOUR[2]
    ratio = np.sqrt(np.mean(deviation[known] ** 2)) / np.sqrt(np.mean(away**2))
    assert ratio == pytest.approx(1.0, abs=0.07)
