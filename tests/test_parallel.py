"""Side by side through joblib: same results, one thread each, Gram matrices mapped once."""

from __future__ import annotations

import operator
import os
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from kernelweave.baselines import (
    AverageMKLClassifier,
    CKAClassifier,
    EasyMKLClassifier,
    PWMKClassifier,
    SimpleMKLClassifier,
)
from kernelweave.kernels_core import PrecomputedGrams, config_context
from kernelweave.kernels_core.config import effective_threads
from kernelweave.mkl_sparse import SparseMKLClassifier
from kernelweave.papers.engine.running import KeptCells, compute_all
from kernelweave.papers.plan import Cell
from kernelweave.qp_smo import solve_kernel_weights, solve_svc
from kernelweave.ridge_mkl import RidgeMKLClassifier
from kernelweave.vv_rkhs import MatrixValuedKernelClassifier
from kernelweave.workbench.diagnosis import threads
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV

BACKENDS = ("loky", "threading", pytest.param("dask", marks=pytest.mark.slow))
GRID = {"C": [0.1, 0.3, 1.0, 3.0, 10.0], "lam": [0.1, 1.0, 3.0, 10.0]}
CV = 3


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Let joblib use two workers of a backend."""
    if name != "dask":
        with joblib.parallel_config(name, n_jobs=2):
            yield
        return
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        yield


@pytest.fixture(scope="module")
def stack() -> tuple[np.ndarray, np.ndarray]:
    """Five Gram matrices of 200 samples, 1.6 MB: more than joblib sends as bytes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(200) > 0.0, 1, -1)
    grams = [rbf_kernel(X, gamma=gamma) for gamma in (0.03, 0.3, 3.0)]
    grams += [polynomial_kernel(X, degree=d, gamma=0.1) for d in (1, 2)]
    return np.stack(grams), y


@pytest.fixture(scope="module")
def mapped(stack: tuple, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The same matrices in a file, mapped read-only as joblib hands them to a worker."""
    path = tmp_path_factory.mktemp("grams") / "grams.npy"
    np.save(path, stack[0])
    found = np.load(path, mmap_mode="r")
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    return found


def search(grams: np.ndarray, y: np.ndarray) -> GridSearchCV:
    model = SparseMKLClassifier("precomputed", k0=2, random_state=0)
    return GridSearchCV(model, GRID, cv=CV).fit(PrecomputedGrams(grams), y)


@pytest.fixture(scope="module")
def serial(stack: tuple) -> GridSearchCV:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search(*stack)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BACKENDS)
def test_sixty_fits_give_what_one_worker_gives(
    name: str, stack: tuple, serial: GridSearchCV
) -> None:
    with backend(name):
        side_by_side = search(*stack)
    assert len(serial.cv_results_["params"]) * CV == 60
    for fold in range(CV):
        key = f"split{fold}_test_score"
        np.testing.assert_array_equal(side_by_side.cv_results_[key], serial.cv_results_[key])
    assert side_by_side.best_params_ == serial.best_params_
    np.testing.assert_array_equal(
        side_by_side.best_estimator_.weights_, serial.best_estimator_.weights_
    )
    assert len(set(serial.cv_results_["mean_test_score"])) > 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BACKENDS)
def test_table_cells_give_what_one_worker_gives(name: str, tmp_path: Path) -> None:
    from kernelweave.papers.study.methods import measure

    settings = {"where": "load_wine", "task": "classification", "rows": 60, "quick": True}
    cells = [
        Cell(key=f"{method}/{fold}", compute=measure, arguments={**settings, **more})
        for method in ("RBF-SVM", "HistGB")
        for fold in range(2)
        for more in ({"method": method, "fold": fold},)
    ]
    serial = {cell.key: got for cell, got in compute_all(cells, KeptCells(tmp_path / "a"), 1)}
    with backend(name):
        kept = KeptCells(tmp_path / "b")
        found = {cell.key: got for cell, got in compute_all(cells, kept, None)}
    assert all(got.error == "" for got in found.values())
    assert {key: got.value["score"] for key, got in found.items()} == {
        key: got.value["score"] for key, got in serial.items()
    }
    assert all(kept.get(cell) is not None for cell in cells)


def pools_of(found: dict[str, Any]) -> list[int]:
    return [int(pool.rsplit(" ", 1)[1]) for pool in found["pools"]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BACKENDS)
def test_a_worker_does_not_take_the_threads_of_the_others(name: str) -> None:
    """In a fit inside a loop: kernels, and where joblib or Dask own the process, its libraries."""
    share = max(1, (os.cpu_count() or 1) // 2)
    with backend(name):
        seen = joblib.Parallel()(joblib.delayed(threads)() for _ in range(4))
    for found in seen:
        assert found["used by kernels"] <= share
        if name != "threading":
            assert max(pools_of(found)) <= share


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BACKENDS)
def test_a_table_cell_has_its_share_of_the_threads(name: str, tmp_path: Path) -> None:
    cells = [Cell(key=str(i), compute=threads) for i in range(4)]
    before = pools_of(threads())
    with backend(name):
        found = [got.value for _, got in compute_all(cells, KeptCells(tmp_path), None)]
    share = max(1, (os.cpu_count() or 1) // 2)
    assert len(found) == 4
    assert all(each["used by kernels"] <= share for each in found)
    assert all(max(pools_of(each)) <= share for each in found)
    # the call may have loaded one more library
    assert set(pools_of(threads())) == set(before)


def test_outside_a_loop_all_cores_are_used_and_a_setting_is_obeyed() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert effective_threads() == cores
    with joblib.parallel_config("threading", n_jobs=2):
        assert effective_threads() == cores

        def inside(n_threads: int | None) -> tuple[int, bool]:
            limits = nullcontext() if n_threads is None else config_context(n_threads=n_threads)
            with limits:
                alone = threading.current_thread() is threading.main_thread()
                return effective_threads(), alone

        seen = joblib.Parallel()(joblib.delayed(inside)(n) for n in (None, 2, None, 2))
    assert [n for n, _ in seen] == [1, min(2, cores or 1), 1, min(2, cores or 1)]
    assert not any(alone for _, alone in seen)


def test_a_stack_goes_to_another_process_as_the_path_of_one_file(stack: tuple) -> None:
    X = PrecomputedGrams(stack[0])
    where = operator.attrgetter("_stack.filename")
    with backend("loky"):
        files = joblib.Parallel()(joblib.delayed(where)(X) for _ in range(4))
        kinds = joblib.Parallel()(joblib.delayed(type)(stack[0]) for _ in range(2))
    assert len(set(files)) == 1
    assert str(files[0]).endswith(".pkl")
    assert kinds == [np.memmap, np.memmap]


def test_a_stack_is_large_for_dask_too(stack: tuple) -> None:
    """What joblib's Dask backend finds large it sends once, and not with each task."""
    X = PrecomputedGrams(stack[0])
    assert sys.getsizeof(X) > stack[0].nbytes
    sizeof = pytest.importorskip("dask.sizeof", reason="needs dask.distributed").sizeof
    assert sizeof(X) > stack[0].nbytes


ESTIMATORS = {
    "sparse": SparseMKLClassifier("precomputed", k0=2, random_state=0),
    "average": AverageMKLClassifier("precomputed"),
    "easy": EasyMKLClassifier("precomputed"),
    "cka": CKAClassifier("precomputed"),
    "pwmk": PWMKClassifier("precomputed"),
    "simple": SimpleMKLClassifier("precomputed"),
    "ridge": RidgeMKLClassifier("precomputed"),
    "matrix-valued": MatrixValuedKernelClassifier("precomputed"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_mapped_grams_are_accepted_and_not_copied(
    name: str, stack: tuple, mapped: np.ndarray
) -> None:
    from sklearn.base import clone

    grams, y = stack
    expected = clone(ESTIMATORS[name]).fit(grams, y)
    model = clone(ESTIMATORS[name]).fit(mapped, y)  # compiles for arrays that are not writable
    np.testing.assert_array_equal(model.weights_, expected.weights_)
    np.testing.assert_array_equal(model.predict(mapped), expected.predict(grams))
    peaks = []
    for given in (grams, mapped):
        tracemalloc.start()
        clone(ESTIMATORS[name]).fit(given, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # an array in memory is not copied either: what the method itself needs is the measure
    assert peaks[1] < peaks[0] + 0.5 * grams.nbytes


def test_mapped_grams_in_the_solvers(stack: tuple, mapped: np.ndarray) -> None:
    grams, y = stack
    signs = y.astype(float)
    mine, theirs = (solve_svc(stacked[0], signs, C=1.0) for stacked in (grams, mapped))
    np.testing.assert_array_equal(mine.alpha, theirs.alpha)
    mine, theirs = (solve_kernel_weights(stacked, signs, C=1.0) for stacked in (grams, mapped))
    np.testing.assert_array_equal(mine.weights, theirs.weights)
