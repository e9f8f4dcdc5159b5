"""Rows with groups and an order both, and rows that recur, are told of as they will come."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor, HeldOutWarning
from kernelweave.evidence.intervals import UnseenRows
from kernelweave.evidence.inverse import Inverse
from kernelweave.evidence.leave_out import PairsLeaveOut
from kernelweave.evidence.leaving import leave_later_groups_out, leave_one_out
from kernelweave.evidence.mixture import fit_mixture
from kernelweave.evidence.panels import KNOWN_LATER, NEW_LATER, PanelResiduals
from kernelweave.evidence.rows import Rows, Standardised
from numpy.typing import NDArray

QUICK: dict[str, Any] = {"precisions": (5.0,), "max_iter": 15, "tol": 1e-3}
FOUR = [
    "known firm, now", "new firm, now", "known firm, later by year", "new firm, later by year",
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings(
    "ignore::kernelweave.evidence.HeldOutWarning",
    "ignore::kernelweave.kernels_core.exceptions.UnderfitWarning",
    "ignore::kernelweave.kernels_core.ExtrapolationWarning",
)


def firms(
    seed: int, n_firms: int = 20, n_years: int = 6, first: int = 0, level: float = 1.0
) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Return firms with levels of their own, a column that matters, and a year that hardly does."""
    rng = np.random.RandomState(seed)
    firm, year = np.repeat(np.arange(n_firms), n_years), np.tile(np.arange(n_years), n_firms)
    X = pd.DataFrame(rng.normal(size=(len(firm), 2)), columns=["a", "b"])
    y = np.sin(1.5 * X["a"]) + level * rng.normal(size=n_firms)[firm]
    X["firm"], X["year"] = [f"f{first + k}" for k in firm], 2000 + year
    return X, np.asarray(y + 0.3 * rng.normal(size=len(firm)))


@pytest.fixture(scope="module")
def panel() -> Any:
    X, y = firms(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EvidenceKernelRegressor(**QUICK).fit(X, y, groups="firm", order="year"), X, y


@pytest.fixture
def closed() -> Any:
    """A factorisation of 40 rows in eight groups and an order, some of which stand for several."""
    rng, n = np.random.RandomState(3), 40
    X, weight = rng.normal(size=(n, 2)), rng.randint(1, 4, n).astype(np.float64)
    groups, times = rng.randint(0, 8, n), np.sort(rng.normal(size=n))
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=-1)) + 0.5 * (groups[:, None] == groups)
    diagonal = 0.3 / weight
    y = rng.normal(size=(2, n)) + 3.0
    rows = Rows(X, np.zeros((n, 0), dtype=np.int64), y, weight, groups=groups, times=times)
    factor = np.linalg.cholesky(K + np.diag(diagonal))
    target = Standardised.of(rows)
    return PairsLeaveOut(Inverse(factor), target, rows, np.arange(n), 0.0, diagonal), K, diagonal


def refit(
    closed: PairsLeaveOut, K: NDArray[np.float64], diagonal: NDArray[np.float64],
    mass: NDArray[np.float64], row: int, kept: NDArray[np.intp],
) -> NDArray[np.float64]:  # fmt: skip
    """Return the residual of a row predicted by others alone, their mean that of the targets."""
    values = closed.targets.values.T
    centre = mass[kept] @ values[kept] / mass[kept].sum()
    S = K[np.ix_(kept, kept)] + np.diag(diagonal[kept])
    told = centre + K[row, kept] @ np.linalg.solve(S, values[kept] - centre)
    return np.asarray(values[row] - told)


@pytest.mark.parametrize("known", [True, False])
def test_later_rows_of_known_and_of_new_groups_are_those_of_refits(
    closed: Any, known: bool
) -> None:
    one, K, diagonal = closed
    rows = one.rows
    left = leave_later_groups_out(one, rows.times, rows.groups, known=known)
    assert left is not None
    met, starts = 0, np.linspace(0, 40, 13).astype(int)[6:-1]
    for row, part, got in zip(left.rows, left.parts, left.residuals, strict=True):
        # rows stand in their order
        before = np.arange(starts[part])
        kept = before if known else before[rows.groups[before] != rows.groups[row]]
        met += len(before) > len(kept)
        assert not known or rows.groups[row] in rows.groups[before]
        assert got == pytest.approx(refit(one, K, diagonal, rows.mass, row, kept), abs=1e-8)
    assert known or met > 10


def test_one_of_several_equal_rows_is_left_out_alone(closed: Any) -> None:
    one, K, diagonal = closed
    rows, counts = one.rows, one.rows.mass.astype(np.intp)
    left = leave_one_out(one, np.arange(40), counts)
    assert (counts > 1).any()
    for row in range(40):
        # a row that stands for c of its kind goes on with c − 1
        c = counts[row]
        mass, noise = rows.mass.copy(), diagonal.copy()
        mass[row], noise[row] = c - 1.0, diagonal[row] * c / max(1.0, c - 1.0)
        kept = np.arange(40) if c > 1 else np.setdiff1d(np.arange(40), [row])
        expected = refit(one, K, noise, mass, row, kept)
        assert left.residuals[row] == pytest.approx(expected, abs=1e-8)


def test_a_panel_has_four_lines_and_rows_know_theirs(panel: Any) -> None:
    model, X, _ = panel
    table = model.held_out_
    assert table.index[0] == "later by year"
    assert list(table.index[1:5]) == FOUR
    assert not {"new firm", "rows like these"} & {*table.index}
    score = table["score"]
    assert score[FOUR[0]] > score[FOUR[1]] + 0.3
    assert score[FOUR[2]] > score[FOUR[3]] + 0.3
    assert (table.loc[FOUR, "error"] > 0.0).all()
    new = X.iloc[[0, 0, 0, 0]].assign(firm=["f0", "x", "f0", "x"], year=[2003, 2003, 2006, 2006])
    assert model.kinds_of_rows(new).tolist() == FOUR
    again = pickle.loads(pickle.dumps(model))
    assert again.kinds_of_rows(new).tolist() == FOUR
    # each block of the later half after all rows before it, whatever their firms
    fold = model.held_out_fold_
    assert (fold[X["year"] < 2003] == -1).all()
    assert (fold[X["year"] >= 2003] >= 0).all()


def test_intervals_of_each_kind_hold_its_rows(panel: Any) -> None:
    model, X, y = panel
    # 300 new firms by their first rows; the known ones again in years that they had, and later
    new, target = firms(7, 300, 1, first=1000)
    old, known = firms(0, 20, 60)
    rng = np.random.RandomState(1)
    level = pd.Series(y - np.sin(1.5 * X["a"])).groupby(X["firm"].to_numpy()).mean()
    known = np.sin(1.5 * old["a"]) + level[old["firm"]].to_numpy() + 0.32 * rng.normal(size=1200)
    widths = []
    rows = [(old, known), (old, known), (new, target), (new, target)]
    for (table, truth), later in zip(rows, [False, True, False, True], strict=True):
        told = table.assign(year=2006 if later else 2002)
        low, high = model.predict_interval(told)
        assert 0.8 < np.mean((low <= truth) & (truth <= high)) <= 1.0
        widths.append(np.mean(high - low))
    assert min(widths[2:]) > 1.5 * max(widths[:2])
    # quantiles are of one number where kinds differ
    mixed = pd.concat([old.iloc[:3], new.iloc[:3]], ignore_index=True)
    quantiles = model.predict_quantiles(mixed, [0.05, 0.5, 0.95])
    assert (np.diff(quantiles, axis=1) > 0.0).all()
    assert np.ptp(quantiles[3:], axis=1).min() > np.ptp(quantiles[:3], axis=1).max()


def test_rows_of_a_block_without_their_groups_are_those_of_refits(panel: Any) -> None:
    model, *_ = panel
    predictor, rows = model._predictor, model._predictor.rows
    residuals = PanelResiduals(predictor)
    parts = [part.unseen for part in residuals.told(NEW_LATER).parts]
    for each, fold in zip(parts[0], predictor.folds, strict=True):
        assert isinstance(each, UnseenRows)
        part = fold.mixture(predictor.weights)
        for at in range(0, len(each.rows), 7):
            row = each.rows[at : at + 1]
            others = fold.places[rows.groups[fold.places] != rows.groups[row]]
            own = fit_mixture(fold.views, rows.take(others), part.scales, part.target)
            points = fold.views.points(rows.numeric[row], rows.codes[row])
            _, latent, variance = own.posterior(points)
            assert each.latent[at] == pytest.approx(latent[0], abs=1e-8)
            assert each.width[at] == pytest.approx(np.sqrt(variance[0] + own.nugget), abs=1e-8)
    assert residuals.n_groups[KNOWN_LATER] == 20


def test_values_of_each_row_leave_new_rows_unknown() -> None:
    X, y = firms(1, 12, 5)
    bare = X[["a", "b"]]
    model = EvidenceKernelRegressor(**QUICK)
    model.fit(bare, y, groups=X["firm"].to_numpy(), order=X["year"].to_numpy())
    assert set(model.kinds_of_rows(bare)) == {"new groups, later"}
    assert np.isfinite(model.predict_interval(bare)).all()


def test_kinds_that_no_row_tells_take_the_intervals_of_others() -> None:
    # cohorts: each firm is there for one year alone
    X, y = firms(2, 60, 2)
    X["year"] = 2000 + X["firm"].str[1:].astype(int) // 10
    with pytest.warns(HeldOutWarning) as caught:
        model = EvidenceKernelRegressor(**QUICK).fit(X, y, groups="firm", order="year")
    said = [str(each.message) for each in caught]
    assert any("'known firm, later by year' are as wide as for" in each for each in said)
    assert "known firm, later by year" not in model.held_out_.index
    later = X.iloc[:1].assign(year=2006)
    assert model.kinds_of_rows(later).tolist() == ["known firm, later by year"]
    assert np.isfinite(model.predict_interval(later)).all()


def test_what_a_panel_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = firms(0, 8, 4)
    model = EvidenceKernelRegressor(**QUICK)
    with pytest.raises(ValueError, match="groups='rows alike' takes no order"):
        model.fit(X, y, groups="rows alike", order="year")
    with pytest.raises(ValueError, match="groups are one and the same in every row"):
        model.fit(X.assign(firm="f"), y, groups="firm", order="year")
    for name in ("FACTOR_ROWS", "_CENSORED_ROWS"):
        monkeypatch.setattr(f"kernelweave.evidence.read_table.{name}", 20)
    cells = np.where(y < y.mean(), [f"<{each:.3f}" for each in y], [f"{each:.3f}" for each in y])
    with pytest.raises(ValueError, match=r"at most 2,000 rows of targets known by half.* got 32:"):
        model.fit(X, cells, groups="firm", order="year")
    assert not hasattr(model, "kernel_")


def test_new_rows_join_a_panel_and_leave_it() -> None:
    X, y = firms(3, 12, 5)
    first = (X["year"] < 2004).to_numpy()
    model = EvidenceKernelRegressor(**QUICK).fit(X[first], y[first], groups="firm", order="year")
    before = model.predict_interval(X)
    model.update(X[~first], y[~first])
    assert list(model.held_out_.index[1:5]) == FOUR
    assert model.kinds_of_rows(X).tolist() == [FOUR[0]] * 60
    model.forget(np.flatnonzero(np.concatenate([first[first], first[~first]]) == 0))
    for one, other in zip(before, model.predict_interval(X), strict=True):
        assert other == pytest.approx(one, abs=1e-9)


def test_rows_that_recur_are_told_of_with_their_twins() -> None:
    # what a row's place in a table of few cells has beside the columns is known from its twin
    rng = np.random.RandomState(0)
    cells = rng.normal(size=(400, 3))
    effect = cells[:, 0] + 1.5 * rng.normal(size=400)
    train, test = rng.randint(0, 400, 150), rng.randint(0, 400, 600)
    y, new = (effect[each] + 0.2 * rng.normal(size=len(each)) for each in (train, test))
    model = EvidenceKernelRegressor(**QUICK).fit(cells[train], y)
    line = model.held_out_.loc["as rows recur here"]
    assert line["n_rows"] == 150
    assert line["score"] > model.held_out_score_ + 0.1
    true = model.score(cells[test], new)
    assert abs(line["score"] - true) < 2.0 * np.hypot(line["error"], 0.05)
    assert abs(line["score"] - true) < abs(model.held_out_score_ - true)
    alone = np.unique(train, return_index=True)[1]
    none = EvidenceKernelRegressor(**QUICK).fit(cells[train[alone]], y[alone])
    assert "as rows recur here" not in none.held_out_.index
