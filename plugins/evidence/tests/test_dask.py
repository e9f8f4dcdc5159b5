"""Tables of dask: what one process would learn, and no worker that matters."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import Batches, EvidenceKernelClassifier, EvidenceKernelRegressor
from kernelweave.evidence.large import dask_parts
from kernelweave.tables import CellError
from large_tables import QUICK, small, table  # noqa: F401

dask = pytest.importorskip("dask", reason="needs dask")
dd = pytest.importorskip("dask.dataframe", reason="needs dask")
da = pytest.importorskip("dask.array", reason="needs dask")
distributed = pytest.importorskip("distributed", reason="needs dask.distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers of one thread each, on the loopback address."""
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(dashboard_address="127.0.0.1:0", **options) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def alone(X: Any, y: Any) -> EvidenceKernelRegressor:
    """Fit in this process, whatever client there is."""
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(dask_parts, "_client", lambda _: None)
        return EvidenceKernelRegressor(**QUICK).fit(X, y)


@pytest.mark.slow
def test_a_cluster_learns_what_one_process_learns(cluster: Any) -> None:
    frame = table(600)
    lazy = dd.from_pandas(frame, npartitions=7)
    X = lazy[["a", "b", "word"]]
    parts = EvidenceKernelRegressor(**QUICK).fit(X, lazy["price"])
    whole = alone(X, lazy["price"])
    np.testing.assert_allclose(parts._predictor.dual, whole._predictor.dual, rtol=1e-8, atol=1e-8)
    own = frame[["a", "b", "word"]]
    np.testing.assert_allclose(parts.predict(X).compute(), whole.predict(own), atol=1e-8)
    # blocks that are added one by one differ in their last bits
    read = EvidenceKernelRegressor(**QUICK).fit(Batches(frame, "price", size=90))
    assert parts.certificate_.work == read.certificate_.work
    np.testing.assert_allclose(parts.predict(own), read.predict(own), atol=1e-6)
    mean, deviation = parts.predict(X, return_std=True)
    assert isinstance(mean, da.Array)
    np.testing.assert_allclose(
        deviation.compute(), whole.predict(own, return_std=True)[1], atol=1e-8
    )
    low, high = parts.predict_interval(X, confidence=0.8)
    assert bool((low < high).all().compute())


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    frame, readings = table(600), tmp_path / "readings"

    # a function of this test: workers cannot import the file it stands in
    def part(k: int) -> pd.DataFrame:
        """Return some rows; the fourth reading of the third part ends its worker, once."""
        if k == 2:
            count = int(readings.read_text()) if readings.exists() else 0
            readings.write_text(str(count + 1))
            if count == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        return frame[100 * k : 100 * (k + 1)]

    parts = [dask_parts.delayed(part)(k) for k in range(6)]
    lazy = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    X, y = lazy[["a", "b", "word"]], lazy["price"]
    model = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert int(readings.read_text()) > 4
    whole = alone(X, y)
    np.testing.assert_allclose(model._predictor.dual, whole._predictor.dual, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_a_part_that_ends_each_of_its_workers_is_told_of(cluster: Any) -> None:
    frame, home = table(400), os.getpid()

    def part(k: int) -> pd.DataFrame:
        """Return some rows; a worker that reads the second part ends, as one out of memory does."""
        if k == 1 and os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return frame[100 * k : 100 * (k + 1)]

    parts = [dask_parts.delayed(part)(k) for k in range(4)]
    lazy = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    model = EvidenceKernelRegressor(**QUICK)
    with pytest.raises(RuntimeError, match="ended several workers, as one out of memory does: cut"):
        model.fit(lazy[["a", "b", "word"]], lazy["price"])
    assert not hasattr(model, "kernel_")
    rows = dd.from_pandas(frame, npartitions=4)
    model.fit(rows[["a", "b", "word"]], rows["price"])
    assert model.held_out_score_ > 0.5


def test_arrays_with_weights_and_classes_without_a_cluster() -> None:
    state = np.random.RandomState(0)
    X = state.rand(500, 3)
    y = np.where(X[:, 0] + X[:, 1] > 1.0, "yes", "no")
    weight = state.randint(0, 3, 500).astype(np.float64)
    lazy = da.from_array(X, chunks=(120, 2))
    model = EvidenceKernelClassifier(class_weight="balanced", **QUICK)
    model.fit(lazy, da.from_array(y, chunks=120), da.from_array(weight, chunks=120))
    assert model.classes_.tolist() == ["no", "yes"]
    found = model.predict(lazy)
    assert found.shape == (500,)
    assert np.mean(found.compute() == y) > 0.9
    np.testing.assert_array_equal(model.predict_proba(lazy).compute(), model.predict_proba(X))


@pytest.mark.parametrize(
    "kind", ["frame", "parquet", "arrow", "words", "unordered", "arrow numbers"]
)
def test_classes_have_the_order_of_their_categories(kind: str, tmp_path: Path) -> None:
    frame = table(90)
    names = ["poor", "fair", "best"]
    y = pd.cut(frame.pop("price"), 3, labels=names)
    if kind == "words":
        y = y.astype(str)
    if kind == "unordered":
        y = y.cat.as_unordered()
    if kind == "arrow numbers":
        y = y.cat.codes.astype("int64[pyarrow]")
    lazy = dd.from_pandas(frame.assign(y=y), npartitions=3)
    if kind in ("parquet", "arrow"):
        # of which dask does not know the categories; the first rows have one of them only
        for k in range(3):
            lazy.partitions[k].compute().to_parquet(tmp_path / f"{k}.parquet")
        asked = {"dtype_backend": "pyarrow"} if kind == "arrow" else {}
        lazy = dd.read_parquet(tmp_path, **asked)
    model = EvidenceKernelClassifier(**QUICK).fit(lazy[["a", "b", "word"]], lazy["y"])
    if kind in ("frame", "parquet", "arrow"):
        assert model.levels_.tolist() == names
    else:
        assert model.levels_ is None


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_parts_may_lack_categories_that_another_has(backend: str, tmp_path: Path) -> None:
    names, seen = ["poor", "fair", "best"], ["fair", "poor", "best", "fair", "poor"]

    def written(*parts: list[str]) -> Any:
        folder = tmp_path / "-".join(map("".join, parts))
        folder.mkdir()
        for k, categories in enumerate(parts):
            labels = [each for each in seen if each in categories]
            y = pd.Categorical(labels, categories, ordered=True)
            pd.DataFrame({"y": y}).to_parquet(folder / f"{k}.parquet")
        return dd.read_parquet(folder, dtype_backend=backend)["y"]

    # the first part has some of them only, or no rows
    assert dask_parts.levels_of_parts(written(["poor", "best"], names, ["fair"])) == names
    assert dask_parts.levels_of_parts(written(["never"], names)) == names
    for parts, shown in [
        ((["poor", "best"], ["poor", "fair"]), r"\['poor', 'best'\], another \['poor', 'fair'\]"),
        ((names, names[::-1]), r"\['poor', 'fair', 'best'\], another \['best', 'fair', 'poor'\]"),
    ]:
        y = written(*parts)
        with pytest.raises(ValueError, match=f"a part has the categories {shown}. Give levels"):
            dask_parts.levels_of_parts(y)


def test_few_rows_are_fitted_by_all_pairs() -> None:
    frame = table(150)
    lazy = dd.from_pandas(frame, npartitions=3)
    X, y = frame[["a", "b", "word"]], frame["price"]
    parts = EvidenceKernelRegressor(**QUICK).fit(lazy[["a", "b", "word"]], lazy["price"])
    np.testing.assert_array_equal(
        parts.predict(X), EvidenceKernelRegressor(**QUICK).fit(X, y).predict(X)
    )


def test_what_does_not_fit_together_is_refused() -> None:
    X, y = np.zeros((20, 2)), np.arange(20.0)
    lazy = da.from_array(X, chunks=10)
    with pytest.raises(TypeError, match="y must be a dask array or data frame where X is one"):
        EvidenceKernelRegressor().fit(lazy, y)
    with pytest.raises(ValueError, match="X has 2 parts and y has 4: give both the same"):
        EvidenceKernelRegressor().fit(lazy, da.from_array(y, chunks=5))
    with pytest.raises(ValueError, match=r"a part of X has 10 rows and that of y (12|8)"):
        EvidenceKernelRegressor().fit(lazy, da.from_array(y, chunks=((12, 8),)))
    events = pd.DataFrame({"died": y > 5.0, "days": y})
    with pytest.raises(ValueError, match="got ends, or events and times: targets known by half"):
        EvidenceKernelRegressor().fit(lazy, dd.from_pandas(events, npartitions=2))
    frame = table(600)
    frame.loc[555, "a"] = np.inf
    lazy = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(CellError, match="column 'a', row 555"):
        EvidenceKernelRegressor(**QUICK).fit(lazy[["a", "b", "word"]], lazy["price"])
