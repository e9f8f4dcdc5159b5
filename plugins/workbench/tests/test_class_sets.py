"""Sets of classes by class: against sets made row by row, new rows, and draws of chance."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import read_table
from kernelweave.workbench import load_model
from kernelweave.workbench.scoring.class_sets import sets_by_class
from kernelweave.workbench.scoring.held_out import HeldOut

LABELS = np.array(["common", "few", "rare", "some"])


def drawn(n: int, seed: int, shares: tuple[float, ...] = (0.7, 0.01, 0.07, 0.22)) -> HeldOut:
    """Return rows with the right probabilities of their classes."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [1.0, 1.0], [0.7, 0.9], [1.5, 0.0]])
    codes = rng.choice(4, n, p=shares)
    X = centres[codes] + rng.normal(size=(n, 2))
    density = shares * np.exp(-0.5 * ((X[:, None] - centres) ** 2).sum(axis=2))
    proba = density / density.sum(axis=1, keepdims=True)
    return of(proba, codes)


def of(proba: Any, codes: Any) -> HeldOut:
    n = len(codes)
    return HeldOut(
        np.arange(n), np.zeros(n, np.intp), LABELS[codes], LABELS[proba.argmax(axis=1)], np.ones(n),
        "classification", proba, labels=LABELS,
    )  # fmt: skip


def threshold(scores: Any, level: float) -> float:
    """Return the k-th smallest score, k = ⌈(n + 1) level⌉, infinite if there are not so many."""
    k = int(np.ceil((len(scores) + 1) * level - 1e-9))
    return float(np.sort(scores)[k - 1]) if k <= len(scores) else np.inf


@pytest.mark.parametrize("level", [0.9, 0.6])
def test_each_row_is_judged_by_the_thresholds_of_the_others(level: float) -> None:
    rows = drawn(240, seed=0)
    proba, codes = np.asarray(rows.proba), np.searchsorted(LABELS, rows.truth)
    scores = 1.0 - proba[np.arange(240), codes]
    held, sizes = np.zeros((2, 4), int), np.zeros(2)
    for i in range(240):
        others = np.arange(240) != i
        alike = [threshold(scores[others], level)] * 4
        own = [threshold(scores[others & (codes == k)], level) for k in range(4)]
        for which, most in enumerate((alike, own)):
            chosen = (1.0 - proba[i] <= np.add(most, 1e-12)) | (np.arange(4) == proba[i].argmax())
            held[which, codes[i]] += chosen[codes[i]]
            sizes[which] += chosen.sum() / 240
    found = sets_by_class(rows, level)
    assert found is not None
    assert [each.label for each in found.classes] == LABELS.tolist()
    assert [each.n_rows for each in found.classes] == np.bincount(codes).tolist()
    assert [each.held for each in found.classes] == held[0].tolist()
    assert (found.size, found.size_by_class) == pytest.approx(sizes)
    for k, each in enumerate(found.classes):
        # with one row left out, nine more are needed at 90 %, and two at 60 %
        enough = each.n_rows > (9 if level == 0.9 else 2)
        assert each.held_by_class == (held[1, k] if enough else None)


def test_what_is_told_of_the_rows_held_out_is_what_new_rows_have() -> None:
    rows, new = drawn(4000, seed=1), drawn(40_000, seed=2)
    found = sets_by_class(rows)
    assert found is not None
    own, fresh = (1.0 - each[np.arange(len(each)), codes] for each, codes in parts(rows, new))
    most = threshold(own, 0.9)
    codes = np.searchsorted(LABELS, new.truth)
    best = np.asarray(new.proba).argmax(axis=1) == codes
    for k, each in enumerate(found.classes):
        mine = codes == k
        share = ((fresh <= most) | best)[mine].mean()
        assert each.held / each.n_rows == pytest.approx(share, abs=0.06)
    assert found.classes[1].held / found.classes[1].n_rows < 0.3
    assert all((each.held_by_class or 0) / each.n_rows > 0.85 for each in found.classes)


def parts(*given: HeldOut) -> list[tuple[Any, Any]]:
    return [(np.asarray(each.proba), np.searchsorted(LABELS, each.truth)) for each in given]


def test_a_class_that_is_held_less_is_named_and_chance_is_not() -> None:
    found = sets_by_class(drawn(1000, seed=3))
    assert found is not None
    below = found.below()
    assert below is not None
    assert below.label in {"few", "rare"}
    # four classes of one kind: no threshold of their own would be another
    rng, named = np.random.default_rng(4), 0
    for _ in range(200):
        codes = rng.integers(4, size=200)
        logits = rng.normal(size=(200, 4)) + 1.5 * np.eye(4)[codes]
        proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        alike = sets_by_class(of(proba, codes))
        named += alike is not None and alike.below() is not None
    assert named <= 16  # one in twenty, and three standard errors more


def test_few_rows_are_counted_and_named() -> None:
    rows = drawn(300, seed=5, shares=(0.69, 0.02, 0.07, 0.22))
    found = sets_by_class(rows)
    assert found is not None
    few = found.classes[1]
    assert 0 < few.n_rows < 10
    assert few.share == f"{few.held} of {few.n_rows}"
    assert few.share_by_class == "too few rows: in every set"
    common = found.classes[0]
    assert common.share == f"{100 * common.held / common.n_rows:.1f} %"
    bare = HeldOut(**{**vars(rows), "proba": None})
    assert sets_by_class(bare) is None


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of four classes, one rare and one with too few rows."""
    from kernelweave.workbench.app import run

    folder = tmp_path_factory.mktemp("rare")
    rng = np.random.default_rng(6)
    kinds = np.repeat(["common", "<few>", "rare", "some"], [340, 8, 48, 164])
    centres = {"common": (0.0, 0.0), "<few>": (2.0, 2.0), "rare": (0.9, 1.1), "some": (1.5, 0.3)}
    X = np.array([centres[kind] for kind in kinds]) + rng.normal(size=(len(kinds), 2))
    frame = pd.DataFrame(X, columns=["dose", "age"]).assign(kind=kinds)
    frame = frame.sample(frac=1.0, random_state=0)
    frame[::2].to_csv(folder / "train.csv", index=False)
    frame[1::2].to_csv(folder / "test.csv", index=False)
    options = ["--target", "kind", "--no-compare", "--max-iter", "10"]
    made = ["fit", str(folder / "train.csv"), *options, "--out", str(folder / "m.kw")]
    assert run(made) == 0
    return folder


def test_the_command_makes_sets_by_class(run: Callable, rare: Path) -> None:
    model, test = rare / "m.kw", rare / "test.csv"
    plain = run("predict", model, test, "--set", "0.9")
    assert "note: of the rows of class rare held out of the fit, these sets hold " in plain.err
    assert "--by-class makes sets that hold 90 % of the rows of each class" in plain.err
    done = run("predict", model, test, "--set", "0.9", "--by-class")
    assert "--by-class makes" not in done.err
    assert "every set holds the classes '<few>'" in done.err
    loaded = load_model(model)
    with pytest.warns(UserWarning, match="every set holds the classes"):
        sets = loaded.estimator.predict_set(
            loaded.inputs(read_table(str(test))), 0.9, by_class=True
        )
    names = np.array(loaded.header.classes)
    expected = ["|".join(names[row]) for row in sets]
    assert pd.read_csv(io.StringIO(done.out))["set"].tolist() == expected
    asked = ("predict", model, test, "--by-class")
    assert run(*asked).error == "--by-class is for sets of classes: add --set 0.9"


def tables_of(page: str) -> list[dict[str, list[str]]]:
    """Return the cells of each class of the tables of sets of a page."""
    found = re.findall(r"<h3>Sets of classes, by class</h3>.*?<tbody>(.*?)</tbody>", page, re.S)
    return [
        {
            html.unescape(name): re.findall(r"<td[^>]*>(.*?)</td>", cells)
            for name, cells in re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', body, re.S)
        }
        for body in found
    ]


def test_the_report_and_the_fit_tell_of_each_class(run: Callable, rare: Path) -> None:
    model, test = rare / "m.kw", rare / "test.csv"
    run("report", model, test, "--out", rare / "page.html")
    # the rows held out of the fit, then those of the table
    tables = tables_of((rare / "page.html").read_text())
    truth = pd.read_csv(test)["kind"]
    for told, kinds in zip(tables, (pd.read_csv(rare / "train.csv")["kind"], truth), strict=True):
        rows = {name: int(cells[0]) for name, cells in told.items()}
        assert rows == kinds.value_counts().to_dict()
        assert told["<few>"][2] == "too few rows: in every set"
    # the shares are those of the sets that the command predicts
    counts = []
    for place, option in enumerate([(), ("--by-class",)]):
        said = run("predict", model, test, "--set", "0.9", *option).out
        sets = pd.read_csv(io.StringIO(said))["set"].str.split("|")
        held = pd.Series([kind in each for kind, each in zip(truth, sets, strict=True)])
        shares = held.groupby(truth.to_numpy())
        counts.append(shares.sum())
        for kind in ("common", "rare", "some"):
            assert tables[1][kind][1 + place] == f"{100 * shares.mean()[kind]:.1f} %"
    options = ["--target", "kind", "--no-compare", "--max-iter", "10", "--test", test]
    screen = " ".join(run("fit", rare / "train.csv", *options).out.split())
    assert f"lowest class rare: {counts[0]['rare']} of {(truth == 'rare').sum()} rows" in screen
