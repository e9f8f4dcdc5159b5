"""`update`, `forget` and `fit --kernel`: files follow their rows, to the byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence.living.relearn import Relearn
from kernelweave.workbench import Model, load_model
from kernelweave.workbench.commands.forget import read_conditions, read_places
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.living.known import KnownTargets
from kernelweave.workbench.sentences import relearn_sentence

Run = Callable[..., object]


def shops(n: int, seed: int) -> pd.DataFrame:
    """Return visits of shops: a number, a word, a name of ten, and sales."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "shop": [f"s{i}" for i in rng.integers(0, 10, n)],
            "staff": rng.integers(1, 9, n),
            "price": rng.uniform(1.0, 9.0, n).round(2),
            "kind": rng.choice(["fern", "moss", "oak"], n),
        }
    )
    level = frame["shop"].str[1:].astype(int) * 0.3
    frame["sales"] = (frame["staff"] * np.log(frame["price"]) + level).round(3)
    frame["sales"] = (frame["sales"] + rng.normal(0.0, 0.4, n)).round(3)
    return frame


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# files of models that were fitted once, by what was asked for
FITTED: dict[tuple[str, ...], bytes] = {}


class Folder:
    """Tables of one fit: 90 rows, 12 new ones, and a model of the 90."""

    def __init__(self, path: Path, run: Run, *options: str, column: str = "sales") -> None:
        self.path, self.run, self.column = path, run, column
        rows = shops(102, 0)
        if column == "good":
            rows["good"] = np.where(rows.pop("sales") > 6.0, "yes", "no")
        self.rows = rows
        self.write("old.csv", rows[:90])
        self.write("new.csv", rows[90:])
        self.model = path / "m.kw"
        if (column, *options) not in FITTED:
            done = run(
                "fit", self.path / "old.csv", "--target", column, "--no-compare", *options,
                "--out", self.model,
            )  # fmt: skip
            assert done.status == 0, done.err
            FITTED[column, *options] = self.model.read_bytes()
        self.model.write_bytes(FITTED[column, *options])

    def write(self, name: str, rows: pd.DataFrame) -> Path:
        rows.to_csv(self.path / name, index=False)
        return self.path / name

    def refitted(self, rows: pd.DataFrame, kernel: Path | None = None) -> Path:
        """Return the file of the model of some rows with the kernel of the fit."""
        table, out = self.write("some.csv", rows), self.path / "some.kw"
        kernel = kernel or self.model
        done = self.run("fit", table, "--kernel", kernel, "--out", out, "--force")
        assert done.status == 0, done.err
        return out


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Folder:
    return Folder(tmp_path, run)


OPTIONS = {
    "at random": (),
    "groups": ("--groups", "shop"),
    "groups that are no feature": ("--groups", "shop", "--drop", "shop"),
    "order": ("--order", "price"),
    "weights": ("--weights", "staff"),
    "classes": ("class",),
    "classes with weights": ("class", "--weights", "staff", "--class-weight", "balanced"),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_an_updated_file_is_that_of_all_rows_with_the_kernel(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    classes = options[:1] == ("class",)
    folder = Folder(tmp_path, run, *options[classes:], column="good" if classes else "sales")
    kernel = folder.path / "kernel.kw"
    kernel.write_bytes(folder.model.read_bytes())
    done = run("update", folder.model, folder.path / "new.csv")
    assert done.status == 0, done.err
    assert digest(folder.model) == digest(folder.refitted(folder.rows, kernel))
    header = load_model(folder.model).header
    assert (header.n_samples, header.kernel_rows) == (102, 90)
    # and the way back: what was learned is forgotten
    assert run("forget", folder.model, "--rows", "91-102").status == 0
    assert digest(folder.model) == digest(folder.refitted(folder.rows[:90], kernel))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_file_that_forgot_is_that_of_the_rest_with_the_kernel(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    classes = options[:1] == ("class",)
    folder = Folder(tmp_path, run, *options[classes:], column="good" if classes else "sales")
    old = folder.rows[:90]
    named = "shop" if "--drop" in options or "--groups" in options else "kind"
    value = old[named].iloc[0]
    out = folder.path / "less.kw"
    done = run("forget", folder.model, "--where", f"{named}={value}", "--out", out, "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    n_gone = int((old[named] == value).sum())
    assert (facts["n_forgotten"], facts["n_samples"]) == (n_gone, 90 - n_gone)
    # the kernel of the file that forgot is the same: either may be named
    rest = old[old[named] != value]
    assert digest(out) == digest(folder.refitted(rest))
    assert digest(out) == digest(folder.refitted(rest, out))


def test_rows_count_from_1(folder: Folder) -> None:
    assert folder.run("forget", folder.model, "--rows", "2,5-6").status == 0
    expected = folder.rows[:90].drop([1, 4, 5])
    assert load_model(folder.model).held_out.truth.tolist() == expected["sales"].tolist()
    assert digest(folder.model) == digest(folder.refitted(expected))


def test_conditions_and_places() -> None:
    assert read_conditions(["a=1", "b==", "a="]) == {"a": ["1", ""], "b": ["="]}
    assert read_places(" 3 - 4,1") == [0, 2, 3]
    for wrong in ("0", "4-3", "x", "", "1,,2", "-3", "1-2-3"):
        with pytest.raises(CommandError, match="numbers of rows from 1"):
            read_places(wrong)
    for wrong in ("patient", "=17"):
        with pytest.raises(CommandError, match="COLUMN=VALUE"):
            read_conditions([wrong])


def test_known_targets_come_back_from_a_file(folder: Folder) -> None:
    known = KnownTargets.of_model(load_model(folder.model))
    assert known.told.all()
    assert known.truth.tolist() == folder.rows["sales"][:90].tolist()
    both = known.and_others(known.take(np.array([3])))
    assert len(both) == 91
    assert both.truth[-1] == known.truth[3]


def test_what_is_printed(folder: Folder) -> None:
    before = load_model(folder.model)
    done = folder.run("update", folder.model, folder.path / "new.csv")
    said = " ".join(done.out.split())
    assert "102: 90 and 12 new ones of" in said
    assert "of 90 rows of" in said
    assert "(before: " in said
    assert load_model(folder.model).header.columns == before.header.columns
    done = folder.run("forget", folder.model, "--rows", "1-2", "--json")
    facts = json.loads(done.out)
    assert facts["n_before"] == 102
    assert facts["kernel_rows"] == 90
    assert facts["score_before"]["score"] != facts["held_out"]["score"]


def test_the_header_says_nothing_of_rows_that_went(run: Run, tmp_path: Path) -> None:
    """Notes, ranges, other models and importances were of the first table."""
    rows = shops(90, 1)
    rows.loc[7, "price"] = 7777.25
    rows.loc[8] = rows.loc[9]
    rows.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.kw"
    done = run("fit", tmp_path / "t.csv", "--target", "sales", "--out", model)
    assert done.status == 0, done.err
    header = load_model(model).header
    assert header.importance
    assert header.comparison["rows"]
    assert "7777" in header.to_json()
    assert run("forget", model, "--rows", "8").status == 0
    after = load_model(model).header
    assert "7777" not in after.to_json()
    assert (after.importance, after.comparison["rows"], after.notes) == ((), [], ())
    assert after.source == header.source


@pytest.mark.parametrize("name", ["update", "forget"])
def test_other_models_are_refused_in_a_sentence(run: Run, tmp_path: Path, name: str) -> None:
    model = tmp_path / "m.kw"
    done = run("fit", "iris", "--model", "tkl", "--no-compare", "--out", model)
    assert done.status == 0, done.err
    before = model.read_bytes()
    more = ("iris",) if name == "update" else ("--rows", "1")
    assert f"{name} is for the evidence kernel, and this model is tessellated kernel" in (
        run(name, model, *more).error
    )
    assert model.read_bytes() == before


@pytest.mark.parametrize(
    ("held_out", "words"),
    [
        (0.22, "is worth it: fit all rows anew. By a test on 400 rows"),
        (0.001, "is not worth it yet. By a test on 400 rows"),
        (-0.02, "the log evidence of a target would lose 0.02 nats."),
    ],
)
def test_what_is_said_of_learning_again(held_out: float, words: str) -> None:
    found = Relearn(gain=0.3, slope=4.0, held_out=held_out, n_rows=400)
    machine = SimpleNamespace(certificate_=SimpleNamespace(relearn=found))
    model = SimpleNamespace(machine=machine, header=SimpleNamespace(kernel_rows=300))
    sentence = relearn_sentence(cast(Model, model))
    assert sentence.startswith("Learning the kernel again ")
    assert words in sentence
