"""`fit --share sums` and `merge`: files of several places become one model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import SharedSums, merge
from kernelweave.workbench import load_model

Run = Callable[..., object]
SIZES = {"open": 80, "north": 100, "south": 90}


def ward(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(20, 90, n).round(1), "dose": rng.uniform(0, 9, n)})
    frame["ward"] = rng.choice(["a", "b", "c"], n)
    level = frame["ward"].map({"a": 0.0, "b": 1.0, "c": 3.0})
    frame["stay"] = 5 + np.sin(frame["dose"]) + 0.04 * frame["age"] + level
    frame["stay"] += rng.normal(0.0, 0.3, n)
    return frame


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of each place, and a model of the rows that may be shown."""
    from kernelweave.workbench.app import run

    folder = tmp_path_factory.mktemp("places")
    for seed, (name, n) in enumerate(SIZES.items()):
        ward(n, seed).to_csv(folder / f"{name}.csv", index=False)
    options = ("--target", "stay", "--no-compare", "--out", folder / "kernel.kw")
    assert run([str(each) for each in ("fit", folder / "open.csv", *options)]) == 0
    return folder


@pytest.fixture
def sums(run: Run, places: Path, tmp_path: Path) -> list[Path]:
    """Files of sums of the two places that do not show their rows."""
    files = []
    for name in ("north", "south"):
        out = tmp_path / f"{name}.sums"
        kernel = ("--kernel", places / "kernel.kw", "--share", "sums", "--out", out)
        done = run("fit", places / f"{name}.csv", *kernel)
        assert done.status == 0, done.err
        assert f"Sums of {SIZES[name]} rows over" in done.out
        files.append(out)
    return files


def test_sums_of_places_become_a_model(
    run: Run, places: Path, sums: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "all.kw"
    done = run("merge", places / "kernel.kw", *sums, "--out", out, "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    assert (facts["n_samples"], facts["kernel_rows"]) == (270, 80)
    assert facts["held_out"]["score"] > 0.5
    assert "similar new rows" in facts["certificate"]
    merged, kernel = load_model(out), load_model(places / "kernel.kw")
    expected = merge([kernel.estimator, *map(SharedSums.load, sums)])
    rows = ward(50, 9)
    np.testing.assert_allclose(
        merged.predict(rows), expected.predict(rows.drop(columns="stay")), rtol=1e-10
    )
    low, high = merged.predict_interval(rows, 0.9)
    held = ((low <= rows["stay"]) & (rows["stay"] <= high)).mean()
    assert 0.75 < held <= 1.0
    # what is left to say of a model without rows
    page = tmp_path / "all.html"
    done = run("report", out, "--out", page)
    assert done.status == 0, done.err
    assert "with the kernel of 80 rows" in page.read_text()
    assert "merged from sums" in run("update", out, places / "north.csv").error


def test_sums_ask_for_groups_that_are_no_feature(run: Run, places: Path, tmp_path: Path) -> None:
    """Whole groups are in one part of the sums: without the column they would be refused."""
    kernel, out = tmp_path / "groups.kw", tmp_path / "groups.sums"
    asked = ("--target", "stay", "--groups", "ward", "--drop", "ward", "--no-compare")
    done = run("fit", places / "open.csv", *asked, "--out", kernel)
    assert done.status == 0, done.err
    done = run("fit", places / "north.csv", "--kernel", kernel, "--share", "sums", "--out", out)
    assert done.status == 0, done.err
    assert SharedSums.load(out).n_rows == SIZES["north"]


def test_a_file_of_sums_has_no_cell_of_a_row(places: Path, sums: list[Path]) -> None:
    content = sums[0].read_bytes()
    rows = pd.read_csv(places / "north.csv")
    for cells in rows[["age", "dose", "stay"]].to_numpy().T:
        assert not any(np.float64(cell).tobytes() in content for cell in cells)
    assert b"ward" not in content


def test_models_of_other_rows_become_one(run: Run, places: Path, tmp_path: Path) -> None:
    """As if all rows had been given to the kernel at once."""
    files, frames = [], []
    for name in ("north", "south"):
        files.append(tmp_path / f"{name}.kw")
        table = places / f"{name}.csv"
        frames.append(pd.read_csv(table))
        done = run("fit", table, "--kernel", places / "kernel.kw", "--out", files[-1])
        assert done.status == 0, done.err
    out, pooled = tmp_path / "both.kw", tmp_path / "pooled.kw"
    done = run("merge", *files, "--out", out)
    assert done.status == 0, done.err
    assert "190 of 2 files" in " ".join(done.out.split())
    pd.concat(frames).to_csv(tmp_path / "both.csv", index=False)
    run("fit", tmp_path / "both.csv", "--kernel", places / "kernel.kw", "--out", pooled)
    rows = ward(50, 9)
    one, other = load_model(out), load_model(pooled)
    np.testing.assert_allclose(one.predict(rows), other.predict(rows), rtol=1e-8)
    assert one.header.n_samples == 190
    assert one.held_out.truth.tolist() == other.held_out.truth.tolist()
    np.testing.assert_allclose(one.held_out.predicted, other.held_out.predicted, rtol=1e-8)


def test_what_cannot_be_merged(run: Run, places: Path, sums: list[Path], tmp_path: Path) -> None:
    kernel, out = places / "kernel.kw", tmp_path / "all.kw"
    assert "two files or more" in run("merge", kernel, "--out", out).error
    assert "none of the files is a model" in run("merge", *sums, "--out", out).error
    assert "twice" in run("merge", kernel, sums[0], sums[0], "--out", out).error
    assert "cannot read" in run("merge", kernel, tmp_path / "no.sums", "--out", out).error
    sums[1].write_bytes(sums[1].read_bytes()[:-40])
    assert str(sums[1]) in run("merge", kernel, sums[1], "--out", out).error
    assert "is not a model" in run("merge", kernel, places / "open.csv", "--out", out).error
    assert not out.exists()
