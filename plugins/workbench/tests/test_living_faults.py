"""Whatever goes wrong within an update: a sentence, and the old file as it was."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import EvidenceKernelRegressor
from kernelweave.workbench import load_model
from kernelweave.workbench.commands import living

Run = Callable[..., object]


def made(n: int, seed: int) -> pd.DataFrame:
    """Return rows of a number, a word, a date and a target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "dose": rng.uniform(0.0, 9.0, n).round(2),
            "drug": rng.choice(["one", "other"], n),
            "day": pd.date_range("2024-01-01", periods=n).astype(str),
        }
    )
    frame["reply"] = (np.sqrt(frame["dose"]) + rng.normal(0.0, 0.2, n)).round(3)
    return frame


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a model of 60 rows."""
    from kernelweave.workbench.app import run

    folder = tmp_path_factory.mktemp("living")
    made(60, 0).to_csv(folder / "old.csv", index=False)
    path = folder / "m.kw"
    options = ("--target", "reply", "--no-compare", "--out", path)
    assert run([str(each) for each in ("fit", folder / "old.csv", *options)]) == 0
    return path.read_bytes()


@pytest.fixture
def model(content: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "m.kw"
    path.write_bytes(content)
    return path


@pytest.fixture
def new(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes eight new rows, with columns changed."""

    def write(**columns: object) -> Path:
        frame = made(8, 1).assign(**{k: v for k, v in columns.items() if v is not None})
        frame = frame.drop(columns=[name for name, each in columns.items() if each is None])
        frame.to_csv(tmp_path / "new.csv", index=False)
        return tmp_path / "new.csv"

    return write


REFUSED = {
    "a column is absent": ({"dose": None}, "lacks 1 of the 3 columns that the model uses: 'dose'"),
    "no target": ({"reply": None}, "no column 'reply'"),
    "text in a column of numbers": (
        {"dose": ["much"] * 8},
        "column 'dose' held numbers in training and holds text now",
    ),
    "text in the target": ({"reply": [*np.arange(7.0), "much"]}, "'much' is not a number"),
    "an infinite number": ({"dose": [np.inf, *range(7)]}, "column 'dose', line 2"),
    "limits in place of numbers": ({"reply": ["<1", "3", "4", "5", "6", "7", "8", "9"]}, "limits"),
}


@pytest.mark.parametrize(("columns", "told"), REFUSED.values(), ids=REFUSED)
def test_rows_that_cannot_be_learned(
    run: Run, model: Path, new: Callable[..., Path], columns: dict[str, object], told: str
) -> None:
    before = model.read_bytes()
    assert told in run("update", model, new(**columns)).error
    assert model.read_bytes() == before
    assert sorted(os.listdir(model.parent)) == ["m.kw", "new.csv"]


def test_new_words_and_another_range_are_learned(
    run: Run, model: Path, new: Callable[..., Path]
) -> None:
    far = new(drug=["third"] * 8, reply=np.arange(-800.0, 0.0, 100.0))
    done = run("update", model, far)
    assert done.status == 0, done.err
    after = load_model(model)
    rows = made(8, 1).drop(columns="reply")
    # of a drug that the fit had not: far below all targets that it had
    assert (after.predict(rows.assign(drug="third")) < -100.0).any()
    low, high = after.predict_interval(rows, 0.9)
    assert (low < high).all()


def test_ctrl_c_within_an_update(
    run: Run, model: Path, new: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = model.read_bytes()

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for owner, name in ((EvidenceKernelRegressor, "update"), (living, "stamp_of")):
        with monkeypatch.context() as patch:
            # the second is asked when all is worked out, before the file is written
            patch.setattr(owner, name, stop)
            done = run("update", model, new())
        assert done.status == 130
        assert "nothing was written" in done.err
        assert model.read_bytes() == before
    assert sorted(os.listdir(model.parent)) == ["m.kw", "new.csv"]


@pytest.mark.parametrize("words", [("update", "new.csv"), ("forget", "--rows", "3")])
def test_a_full_disk(
    run: Run, model: Path, new: Callable[..., Path], monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:  # fmt: skip
    before, name = model.read_bytes(), words[0]
    new()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(model.parent)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert "free some space and try again" in run(name, model, *words[1:]).error
    assert model.read_bytes() == before
    assert sorted(os.listdir(model.parent)) == ["m.kw", "new.csv"]
    # and then there is room
    assert run(name, model, *words[1:]).status == 0
    assert model.read_bytes() != before


def test_a_file_that_is_read_only(run: Run, model: Path, new: Callable[..., Path]) -> None:
    before = model.read_bytes()
    model.chmod(stat.S_IRUSR)
    assert "it is read-only" in run("update", model, new()).error
    assert model.read_bytes() == before
    other = model.parent / "other.kw"
    assert run("update", model, new(), "--out", other).status == 0
    assert model.read_bytes() == before
    assert load_model(other).header.n_samples == 68


def test_a_file_that_another_command_changed(
    run: Run, model: Path, new: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = EvidenceKernelRegressor.update

    def meanwhile(machine: EvidenceKernelRegressor, *rows: object, **more: object) -> object:
        model.write_bytes(b"another model")
        return learn(machine, *rows, **more)

    monkeypatch.setattr(EvidenceKernelRegressor, "update", meanwhile)
    assert "was changed by another command meanwhile" in run("update", model, new()).error
    assert model.read_bytes() == b"another model"


SENTENCES = {
    "no way": ((), "say which rows to forget, in one way"),
    "two ways": (("--rows", "1", "--where", "drug=one"), "say which rows to forget, in one way"),
    "a column that is not there": (("--where", "drg=one"), "did you mean 'drug'"),
    "a value that no row has": (
        ("--where", "drug=third"),
        "no row of the model has drug=['third']",
    ),
    "a row beyond the last": (("--rows", "61"), "the model has 60 rows"),
    "all rows": (("--rows", "1-60"), "would be left"),
    "no number": (("--rows", "first"), "such as 12,57-60"),
}


@pytest.mark.parametrize(("words", "told"), SENTENCES.values(), ids=SENTENCES)
def test_rows_that_cannot_be_forgotten(
    run: Run, model: Path, words: tuple[str, ...], told: str
) -> None:
    before = model.read_bytes()
    assert told in run("forget", model, *words).error
    assert model.read_bytes() == before


def test_options_that_a_kernel_leaves_nothing_to_say(
    run: Run, model: Path, new: Callable[..., Path], tmp_path: Path
) -> None:
    rows = new()
    for words in (("--order", "day"), ("--increasing", "dose"), ("--seed", "3")):
        said = run("fit", rows, "--kernel", model, *words).error
        assert f"{words[0]} says how a kernel is learned" in said
    assert "'dose': the kernel" in run("fit", rows, "--kernel", model, "--target", "dose").error
    assert "needs --kernel" in run("fit", rows, "--share", "sums").error
    assert "needs --out" in run("fit", rows, "--kernel", model, "--share", "sums").error
    nothing = tmp_path / "nothing.kw"
    assert "cannot read the model" in run("fit", rows, "--kernel", nothing).error
    assert "is not a model" in run("update", rows, rows, "--out", nothing).error
