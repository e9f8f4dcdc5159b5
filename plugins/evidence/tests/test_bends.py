"""Skewed columns under a power: when they are taken, and in which units."""

from __future__ import annotations

import numpy as np
import pytest
from kernelweave.evidence import EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.large.learning import learn_large
from kernelweave.evidence.large.plan import LargePlan
from kernelweave.evidence.path import PathPlan
from kernelweave.evidence.rows import Rows
from kernelweave.evidence.views import Views, Warp, is_skewed

QUICK = {"precisions": (50.0, 5.0), "max_iter": 20}


def ratios(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns over four decades, and a target that depends on the ratio of two."""
    state = np.random.RandomState(0)
    X = np.exp(3.0 * state.randn(n, 4))
    return X, np.tanh(np.log(X[:, 0] / X[:, 1]) / 2.0) + 0.1 * state.randn(n)


def of(
    numeric: np.ndarray, weight: np.ndarray | None = None, *, transform_columns: bool = True
) -> Views:
    return Views.of(
        numeric,
        np.empty((len(numeric), 0), dtype=np.int64),
        weight,
        transform_columns=transform_columns,
    )


def seen(views: Views, numeric: np.ndarray) -> np.ndarray:
    return views.points(numeric, np.empty((len(numeric), 0), dtype=np.int64)).X


@pytest.mark.filterwarnings("ignore::kernelweave.kernels_core.ExtrapolationWarning")
def test_held_out_rows_take_the_power_where_it_pays() -> None:
    X, y = ratios(600)
    bent = EvidenceKernelRegressor(**QUICK).fit(X[:150], y[:150])
    plain = EvidenceKernelRegressor(warp=False, **QUICK).fit(X[:150], y[:150])
    assert bent._predictor.rows.transform_columns
    left = [1.0 - model.score(X[150:], y[150:]) for model in (bent, plain)]
    assert left[0] < 0.6 * left[1]
    assert "under a power" in bent.certificate_.work
    model = EvidenceKernelClassifier(**QUICK).fit(X[:150], y[:150] > 0)
    assert model.score(X[150:], y[150:] > 0) > 0.9


def test_numbers_that_are_not_skewed_cost_no_second_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelweave.evidence import cross_validation

    fitted: list[bool] = []
    fit_metric = cross_validation.fit_metric
    monkeypatch.setattr(
        cross_validation, "fit_metric", lambda rows, *a: fitted.append(1) or fit_metric(rows, *a)
    )
    state = np.random.RandomState(0)
    X = np.column_stack([state.rand(120), state.randn(120), state.rand(120) > 0.9])
    EvidenceKernelRegressor(**QUICK).fit(X, X[:, 0] + 0.1 * state.randn(120))
    # one for each fold
    assert len(fitted) == 3


def test_a_weight_of_two_counts_a_row_twice() -> None:
    X, _ = ratios(80)
    X[:5] = 0.0
    X[:, 2] -= X[:, 2].mean()
    weight = 1.0 + np.arange(80) % 2
    twice = np.repeat(X, weight.astype(int), axis=0)
    np.testing.assert_allclose(seen(of(X, weight), X), seen(of(twice), X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_a_column_does_not_matter(unit: float) -> None:
    X, _ = ratios(100)
    X[:10, 0] = 0.0
    np.testing.assert_allclose(seen(of(unit * X), unit * X), seen(of(X), X), rtol=1e-5, atol=1e-6)


def test_numbers_far_from_all_training_rows_stay_in_order() -> None:
    X, _ = ratios(100)
    grid = np.array([-1e30, -1.0, 0.0, 1e-12, 1.0, 1e6, 1e40])
    bent = seen(of(X), np.tile(grid[:, None], 4))
    assert np.isfinite(bent).all()
    assert (np.diff(bent, axis=1) >= 0.0).all()
    assert np.abs(bent).max() < 8.0


def test_counts_keep_their_zero() -> None:
    counts = np.random.RandomState(0).poisson(0.7, 500).astype(np.float64)
    warp = Warp.of(counts)
    assert warp.origin == 0.0
    np.testing.assert_allclose(warp.inverse(warp.forward(counts)), counts, atol=1e-9)
    assert warp.forward(np.zeros(1))[0] == 0.0


def test_skewness() -> None:
    state = np.random.RandomState(0)
    columns = [state.exponential(size=400), state.rand(400), state.rand(400) > 0.99, np.ones(400)]
    numeric = np.column_stack(columns).astype(np.float64)
    assert is_skewed(numeric, np.full(400, 1 / 400)).tolist() == [True, False, False, False]
    assert is_skewed(1e200 * numeric, np.full(400, 1 / 400)).tolist() == [True] + [False] * 3


def test_a_large_fit_takes_the_power_too() -> None:
    X, y = ratios(3000)
    rows = Rows(X, np.empty((len(X), 0), dtype=np.int64), y[None])
    plan = LargePlan(PathPlan(precisions=(5.0,), max_iter=15), metric_rows=150, first=60, most=200)
    state = np.random.RandomState
    bent = learn_large(rows, plan, state(0), powers=True)
    plain = learn_large(rows, plan, state(0))
    assert any(bent.predictor.views.warps)
    assert not any(plain.predictor.views.warps)
    assert 1.0 - bent.record[-1].score < 0.85 * (1.0 - plain.record[-1].score)
    assert "under a power" in str(bent)
