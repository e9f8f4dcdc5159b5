"""The rows that choose between targets known by half and their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.evidence.censored import scale
from kernelweave.kernels_core.arrays import FloatArray, Index

pytestmark = [
    pytest.mark.filterwarnings("ignore::kernelweave.evidence.HeldOutWarning"),
    pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.UnderfitWarning"),
]


def made(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((n, 2)), columns=["a", "b"])
    days = np.exp(X["a"] + 0.4 * rng.standard_normal(n))
    return X, pd.DataFrame({"died": rng.random(n) < 0.7, "days": days})


class Compared:
    """Stands for the comparison; by it the other scale is likelier by `gains`.

    They are those of 6 groups, or times, or of rows in turn.
    """

    def __init__(self, gains: Sequence[float] = (0.0,) * 6) -> None:
        self.gains, self.halves = np.array(gains), (np.empty(0), np.empty(0))

    def __call__(self, rows: Any, halves: tuple[Index, Index], *_: Any, log: bool) -> FloatArray:
        given = rows.groups if rows.times is None else rows.times
        units = np.arange(len(rows)) if given is None else given.astype(int)
        self.halves = (units[halves[0]], units[halves[1]])
        assert sorted(np.concatenate(halves)) == list(range(len(rows)))
        # times are on the scale of logarithms at first
        return np.zeros(len(rows)) if log else self.gains[units % 6]


def fitted(
    monkeypatch: Any, compared: Compared, n: int = 120, **given: Any
) -> EvidenceKernelRegressor:
    monkeypatch.setattr(scale, "_log_likelihoods", compared)
    return EvidenceKernelRegressor(n_folds=2).fit(*made(n), **given)


def test_a_group_is_in_one_half(monkeypatch: Any) -> None:
    compared = Compared()
    fitted(monkeypatch, compared, groups=np.repeat(np.arange(30), 4))
    assert [len(each) for each in compared.halves] == [60, 60]
    assert not np.isin(*compared.halves).any()
    # of two groups each is a half, however many rows it has
    fitted(monkeypatch, compared, groups=np.repeat([0, 1], [100, 20]))
    assert sorted(len(each) for each in compared.halves) == [20, 100]


def test_one_half_is_later_than_the_other(monkeypatch: Any) -> None:
    compared = Compared()
    day = np.random.default_rng(1).permutation(np.arange(120) // 8)
    fitted(monkeypatch, compared, order=day)
    assert compared.halves[0].max() < compared.halves[1].min()
    assert [len(each) for each in compared.halves] == [64, 56]


def test_rows_without_groups_or_order_are_halved_evenly(monkeypatch: Any) -> None:
    compared = Compared()
    fitted(monkeypatch, compared, 121)
    assert [len(each) for each in compared.halves] == [61, 60]


@pytest.mark.parametrize(("given", "log"), [("groups", True), ("order", True), ("rows", False)])
def test_a_gain_is_compared_with_its_error_over_what_is_drawn(
    given: str, log: bool, monkeypatch: Any
) -> None:
    """Of 120 rows the mean gain is 4 errors from 0, of 6 groups or times 0.9."""
    asked = {} if given == "rows" else {given: np.repeat(np.arange(6), 20)}
    model = fitted(monkeypatch, Compared([1.0, 0.9, 1.1, 0.2, -1.0, -0.4]), **asked)
    assert model._task.log == log


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.KernelWeaveWarning")
@pytest.mark.parametrize("early", [True, False])
def test_times_with_events_in_one_half_alone_are_fitted(early: bool) -> None:
    X, y = made(80)
    y["died"] = (np.arange(80) < 40) == early
    model = EvidenceKernelRegressor(n_folds=2).fit(X, y, order=np.arange(80))
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("ignore:y is read as ranges")
@pytest.mark.parametrize("least", [0.0, -np.inf])
def test_concentrations_below_a_limit_are_positive(least: float) -> None:
    """From 0 to the limit, or from no lower end: both say that logarithms are possible."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.standard_normal((200, 2)), columns=["a", "b"])
    true = np.exp(1.5 * X["a"] + 0.5 * rng.standard_normal(200))
    below = true < 0.5
    y = pd.DataFrame({"low": np.where(below, least, true), "high": np.where(below, 0.5, true)})
    model = EvidenceKernelRegressor().fit(X, y)
    predicted = model.predict(X)
    assert predicted.min() > 0.0
    assert np.corrcoef(np.log(predicted), 1.5 * X["a"])[0, 1] > 0.95
