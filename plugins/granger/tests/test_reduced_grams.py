"""Few coordinates against all samples."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from kernelweave.granger import draws, lagged_samples, random_network, shared_grams
from kernelweave.granger.draws import reduction
from kernelweave.granger.histories import history_dictionary
from kernelweave.granger.roles import pair_features
from kernelweave.granger.selection import held_out_errors
from kernelweave.granger.series import make_groups
from kernelweave.granger.shared_grams import factored, leading, moved, shared
from kernelweave.granger.significance import moved_orders
from kernelweave.granger.target import TargetSettings
from kernelweave.kernels_core import config_context
from kernelweave.vv_rkhs.penalties import ElasticNet

PAIRS = [(0, 1), (0, 2)]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gram matrices of three histories and two pairs, their units, targets and histories."""
    X, _ = random_network(3, 220, random_state=0)
    samples = lagged_samples((X - X.mean(axis=0)) / X.std(axis=0), 1)
    groups = make_groups(None, list("abc"))
    dictionary, unit = history_dictionary(samples.history, groups, 1, None, pairs=PAIRS)
    return np.asarray(dictionary.grams), unit, samples.targets, samples.history


@pytest.mark.parametrize("error", [1.0, 1e-2, 1e-4])
def test_coordinates_lose_no_more_than_they_may(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], error: float
) -> None:
    grams, unit, _, _ = data
    which = np.flatnonzero(unit == 1)
    found = leading(grams, which, error, 219)
    assert found is not None
    U, small = found
    assert U.shape[1] <= 40, "functions of one number"
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
    for j, inside in zip(which, small, strict=True):
        assert np.linalg.norm(grams[j] - U @ inside @ U.T) <= error
    assert leading(grams, which, error, U.shape[1]) is not None
    assert leading(grams, which, error, U.shape[1] - 1) is None
    assert leading(grams, which, 1e-4, 3) is None


def test_a_search_for_coordinates_stays_within_the_memory(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    grams, unit, _, _ = data
    which, l = np.flatnonzero(unit == 1), grams.shape[1]
    tracemalloc.start()
    found = leading(grams, which, 1e-4, l - 1)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    with config_context(memory_limit=held):
        assert leading(grams, which, 1e-4, l - 1) is None
    rough = np.stack([np.diag(np.linspace(1.0, 2.0, l))] * 40)
    whole = 8 * 6 * l * l
    with config_context(memory_limit=2 * whole):
        assert leading(rough, np.arange(40), 1e-6, l) is None, "forty matrices of 220 coordinates"
    assert leading(rough, np.arange(40), 1e-6, l) is not None


def test_no_kernels_need_no_coordinates() -> None:
    found = leading(np.zeros((0, 5, 5)), np.array([], dtype=np.intp), 0.1, 5)
    assert found is not None
    assert found[0].shape == (5, 0)


def test_problems_in_coordinates_are_the_same(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    grams, unit, targets, history = data
    still, mixed = np.flatnonzero(unit == 0), np.flatnonzero(unit > 2)
    back = np.argsort(list(moved_orders(np.zeros(219, dtype=np.intp), np.arange(3))), axis=1)
    features = [
        [pair_features(history[order][:, [a]], history[:, [b]]) for a, b in PAIRS] for order in back
    ]
    Y = targets[back, 1]
    whole = moved(grams, still, back, mixed, features)
    reduced = reduction(grams, still, mixed, 2, 1e-6)
    assert reduced is not None
    few, coordinates = reduced.of_draws(back, features, Y, np.dtype(np.float64))
    assert few.n_kernels == whole.n_kernels
    assert 2 * few.n_samples < whole.n_samples
    weights, every = np.random.default_rng(0).random((3, len(grams))), np.array([2, 0, 1])
    found = []
    for each, y in ((whole, Y[every]), (few, coordinates[every])):
        A = each.combine(weights, every) + 20.0 * np.eye(each.n_samples)
        C = np.linalg.solve(A, y[:, :, None])[:, :, 0]
        V = each.images(C, every)
        found.append(
            [(y * C).sum(axis=1), (V * C[:, None]).sum(axis=2), np.matmul(V, V.swapaxes(1, 2))]
        )
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("with_pairs", [True, False])
def test_weights_by_chance_are_those_of_all_samples(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    with_pairs: bool,
) -> None:
    grams, unit, targets, history = data
    task = TargetSettings(ElasticNet(), learn_output=False, tol=1e-6, max_iter=200)
    places = np.flatnonzero(unit > 2) if with_pairs else []
    mixed = {int(j): (history[:, [0]], history[:, [k + 1]]) for k, j in enumerate(places)}
    seen = np.arange(len(grams)) if with_pairs else np.flatnonzero(unit <= 2)
    share = np.eye(5)[unit]
    given = (grams, targets[:, [0]], seen, unit == 0, share, 0.1, task)
    rest = (np.zeros(219, dtype=np.intp), np.arange(6), mixed)
    few = draws.null_weights(*given, *rest)
    monkeypatch.setattr(draws, "reduction", lambda *_: None)
    for mine, theirs in zip(few, draws.null_weights(*given, *rest), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-3)


def test_products_through_factors_are_those_of_the_matrices(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    grams, unit, targets, _ = data
    seen, rows = np.arange(len(grams)), np.arange(219)
    found = factored(grams, seen, rows, unit, 1e-7, np.float64)
    C, every = np.ascontiguousarray(targets.T), np.arange(3)
    expected = shared(grams).images(C, every)
    assert not np.array_equal(found.images(C, every), expected), "through factors"
    np.testing.assert_allclose(found.images(C, every), expected, atol=1e-6)
    rough = factored(grams, seen, rows, unit, 1e-2, np.float32)
    assert rough.dtype == np.float32
    lengths = np.linalg.norm(C, axis=1)[:, None]
    lost = np.linalg.norm(rough.images(C.astype(np.float32), every) - expected, axis=2)
    assert (lost <= 1.001e-2 * lengths).all()
    many = np.stack([np.eye(219) + 0.5, np.diag(np.arange(1.0, 220.0))])
    both = np.arange(2)
    whole = factored(many, both, rows, both, 1e-3, np.float64).images(C, every)
    np.testing.assert_array_equal(whole, shared(many).images(C, every))
    some, few = np.array([6, 0, 1]), np.arange(30, 150)
    part = factored(grams, some, few, unit[some], 1e-7, np.float64)
    expected = shared(grams[some][:, 30:150, 30:150].copy()).images(C[:, 30:150], every)
    np.testing.assert_allclose(part.images(C[:, 30:150], every), expected, atol=1e-6)


def test_sums_of_few_matrices_are_those_of_all(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    weights = np.zeros((2, len(data[0])))
    weights[0, [1, 5]], every = (0.5, 2.0), np.arange(2)
    found = shared(data[0]).combine(weights, every)
    np.testing.assert_allclose(found, np.tensordot(weights, data[0], 1), atol=1e-12)
    assert not found[1].any()


def test_held_out_errors_through_factors_are_those_of_the_matrices(
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grams, unit, targets, _ = data
    fold = np.arange(170), np.arange(170, 219)
    task = TargetSettings(ElasticNet(), learn_output=False, tol=1e-6, max_iter=200)
    lams, seen = np.array([10.0, 1.0, 0.1]), np.arange(len(grams))
    given = (grams, targets, seen, unit, True, fold, task)
    found, weights = held_out_errors(*given, lams)
    first, start = held_out_errors(*given, lams[:2])
    then, last = held_out_errors(*given, lams[2:], start)
    np.testing.assert_allclose(np.concatenate([first, then], axis=1), found, rtol=1e-6)
    np.testing.assert_allclose(last, weights, atol=1e-6)
    monkeypatch.setattr(shared_grams, "leading", lambda *_: None)
    np.testing.assert_allclose(found, held_out_errors(*given, lams)[0], rtol=1e-3)
