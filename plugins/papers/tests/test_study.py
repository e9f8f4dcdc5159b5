"""The study of learned kernels: its intervals, its plan, and what it says of planted results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernelweave.papers import MissingDataError, Plan, Request, tables
from kernelweave.papers.study.intervals import corrected_resampled, of_independent
from kernelweave.papers.study.learned_or_tuned import present
from kernelweave.papers.study.protocol import METHODS, RIVAL, SETS, measure
from kernelweave.workbench.pages import figure_svg


def test_the_interval_is_scipys_with_the_corrected_variance() -> None:
    stats = pytest.importorskip("scipy.stats")
    d = np.random.default_rng(0).normal(1.0, 2.0, size=10)
    wider = np.sqrt(d.var(ddof=1) * (1.0 / 10.0 + 1.0 / 4.0))
    low, high = stats.t.interval(0.95, 9, loc=d.mean(), scale=wider)
    assert corrected_resampled(d, 0.25) == pytest.approx((d.mean(), low, high), rel=1e-12)
    plain = stats.ttest_1samp(d, 0.0).confidence_interval(0.9)
    assert of_independent(d, 0.9)[1:] == pytest.approx(tuple(plain), rel=1e-12)


def test_the_corrected_interval_holds_where_folds_share_their_training_part() -> None:
    """The mean's variance under correlation ρ/(1 + ρ), the one that the correction assumes."""
    rng = np.random.default_rng(1)
    k, share = 5, 0.25
    r = share / (1.0 + share)
    common, own = rng.standard_normal((4000, 1)), rng.standard_normal((4000, k))
    d = np.sqrt(r) * common + np.sqrt(1.0 - r) * own
    inside = np.mean([corrected_resampled(row, share).sign == 0 for row in d])
    naive = np.mean([of_independent(row).sign == 0 for row in d])
    assert inside == pytest.approx(0.95, abs=0.015)
    assert naive < 0.92


@pytest.mark.parametrize("bad", [[1.0], [[1.0, 2.0]]])
def test_too_few_differences_are_refused(bad: list) -> None:
    with pytest.raises(ValueError, match="two or more"):
        corrected_resampled(bad, 0.25)
    with pytest.raises(ValueError, match="n_test / n_train"):
        corrected_resampled([1.0, 2.0], 0.0)


def planted() -> dict[str, float]:
    """TKL is 2 ± .1 points better everywhere, boosted trees 3 worse, SimpleMKL the same."""
    by = {RIVAL: 0.0, "TKL": 2.0, "SimpleMKL": 0.0, "boosted trees": -3.0}
    return {
        f"{name}/{method}/{fold}": 80.0 + 5.0 * fold + by[method] + 0.1 * (-1) ** fold * (i % 2)
        for name in SETS
        for i, method in enumerate(METHODS)
        for fold in range(4)
    }


def test_what_is_planted_is_found() -> None:
    verdict, drawing, scores, differences = present(planted())
    by_method = {row[0]: row[1:] for row in verdict.rows}
    n = len(SETS)
    assert by_method["TKL"][:3] == [n, 0, 0]
    assert by_method["SimpleMKL"][:3] == [0, n, 0]
    assert by_method["boosted trees"][:3] == [0, 0, n]
    assert by_method["TKL"][3] == pytest.approx(2.0)
    assert len(scores.rows) == n
    assert differences.rows[0][1].startswith("+2.0 (+1.")
    assert figure_svg(drawing.draw).startswith(b"<?xml")
    assert not any(sheet.empty() for sheet in (verdict, scores, differences))


def test_what_was_not_computed_is_missing_and_not_zero() -> None:
    results = {key: value for key, value in planted().items() if not key.startswith("wine/TKL")}
    verdict, _, scores, differences = present(results)
    assert differences.empty() == ["wine, TKL"]
    assert scores.empty() == ["wine, TKL"]
    assert sum(verdict.rows[0][1:4]) == len(SETS) - 1
    assert all(sheet.empty() for sheet in present({}) if hasattr(sheet, "empty"))


def test_every_method_sees_the_same_samples(shared: Path) -> None:
    plan: Plan = tables()["study"].plan(Request(folder=shared / "data"))
    by_fold: dict[tuple, list] = {}
    for cell in plan.cells:
        arguments = dict(cell.arguments)
        method = arguments.pop("method")
        by_fold.setdefault(tuple(arguments.values()), []).append(method)
    assert len(by_fold) == 5 * len(SETS)
    assert all(methods == list(METHODS) for methods in by_fold.values())
    assert not any(cell.is_reduced for cell in plan.cells)


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"haberman\.csv"):
        tables()["study"].plan(Request(folder=tmp_path))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["RBF-SVM", "TKL"])
def test_a_cell_computes(method: str) -> None:
    assert 80.0 <= measure("load_wine", "classification", method, 0, 60, True) <= 100.0
