"""Tables read in batches give what the same rows in memory give, and say what is wrong where."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernelweave.evidence import (
    Batches,
    ColumnEncoder,
    EvidenceKernelClassifier,
    EvidenceKernelRegressor,
)
from kernelweave.evidence import read_table as module
from kernelweave.evidence.large.drawing import Draw, first_reading
from kernelweave.evidence.large.reading import NumberTargets, batches_alone
from kernelweave.kernels_core import KernelWeaveWarning, Status
from kernelweave.tables import CellError, TableError, read_table
from large_tables import QUICK, small, table  # noqa: F401


def written(frame: pd.DataFrame, folder: Path, kind: str) -> Path:
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


def source(frame: pd.DataFrame, folder: Path, kind: str) -> Batches:
    if kind in ("csv", "parquet"):
        return Batches(written(frame, folder, kind), "price", size=70)
    if kind == "folder":
        for k in range(3):
            frame[200 * k : 200 * (k + 1)].to_parquet(folder / f"part-{k}.parquet")
        return Batches(folder, "price", size=70)
    if kind == "polars":
        polars = pytest.importorskip("polars")
        return Batches(polars.scan_parquet(written(frame, folder, "parquet")), "price", size=70)
    if kind == "arrow":
        pyarrow = pytest.importorskip("pyarrow")
        return Batches(pyarrow.Table.from_pandas(frame), "price", size=70)
    if kind == "frame":
        return Batches(frame, "price", size=70)
    assert kind == "function"

    def parts() -> Iterator[tuple[pd.DataFrame, Any]]:
        for begin in range(0, len(frame), 70):
            own = frame[begin : begin + 70]
            yield own.drop(columns="price"), own["price"]

    return Batches(parts)


@pytest.mark.parametrize(
    "kind", ["csv", "parquet", "folder", "polars", "arrow", "frame", "function"]
)
def test_a_table_in_batches_is_the_table_in_memory(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(600)
    frame.loc[450, "a"] = np.nan
    X, y = frame.drop(columns="price"), frame["price"]
    # the encoder sees all rows, as it does in memory
    monkeypatch.setattr(module, "DRAWN_ROWS", 600)
    parts = EvidenceKernelRegressor(**QUICK).fit(source(frame, tmp_path, kind))
    whole = EvidenceKernelRegressor(**QUICK).fit(X, y)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-6)
    assert parts.held_out_score_ == pytest.approx(whole.held_out_score_, abs=1e-6)
    assert parts.held_out_score_ > 0.9
    assert (parts.n_features_in_, list(parts.feature_names_in_)) == (3, ["a", "b", "word"])


def test_few_rows_are_fitted_by_all_pairs(tmp_path: Path) -> None:
    frame = table(150)
    X, y = frame.drop(columns="price"), frame["price"]
    parts = EvidenceKernelRegressor(**QUICK).fit(Batches(frame, "price", size=40))
    np.testing.assert_array_equal(
        parts.predict(X), EvidenceKernelRegressor(**QUICK).fit(X, y).predict(X)
    )


def test_memory_maps_with_weights_and_several_targets(tmp_path: Path) -> None:
    state = np.random.RandomState(0)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", shape=(500, 3))
    X[:] = state.rand(500, 3)
    y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2] ** 2])
    weight = state.randint(0, 3, 500).astype(np.float64)
    parts = EvidenceKernelRegressor(**QUICK).fit(Batches((X, y, weight), size=64))
    whole = EvidenceKernelRegressor(**QUICK).fit(np.array(X), y, weight)
    assert parts.predict(X).shape == (500, 2)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=2e-2)


def test_classes_first_seen_in_the_last_batch_and_balanced_weights() -> None:
    frame = table(600)
    label = np.where(frame["price"] > 1.0, "high", "low").astype(object)
    label[590:] = "top"
    frame["price"] = label
    X, y = frame.drop(columns="price"), frame["price"]
    model = EvidenceKernelClassifier(class_weight="balanced", **QUICK)
    model.fit(Batches(frame, "price", size=70))
    assert model.classes_.tolist() == ["high", "low", "top"]
    assert model.score(X[:590], y[:590]) > 0.75
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_what_the_draw_misses_is_shown_to_the_encoder() -> None:
    frame = table(3000)
    frame["rare"] = 0.0
    frame.loc[2900, "rare"] = 1.0
    frame.loc[2950, "a"] = np.nan
    frame.loc[2990, "word"] = "green"
    batches = Batches(frame, "price", size=100)
    seen = draw(batches, 50)
    assert {2900, 2950} <= set(seen.index)
    assert (len(seen.batch), seen.n_rows) == (52, 3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = EvidenceKernelRegressor(**QUICK | {"max_iter": 200}).fit(batches)
    names = [each.name for each in model.dimensions_]
    assert names == ["a", "b", "rare", "a missing", "word"]


def test_gaps_words_and_values_of_late_blocks_are_handled_as_in_small_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DRAWN_ROWS", 200)
    frame = table(3000)
    frame.loc[2800:2803, "a"] = np.nan
    frame.loc[2990, "word"] = "green"
    frame["late"] = 0.0
    frame.loc[2900:, "late"] = np.linspace(1.0, 2.0, 100)
    X, y = frame.drop(columns="price"), frame["price"]
    # of 100 blocks the gaps are in the 94th and the new word in the last
    model = EvidenceKernelRegressor(**QUICK).fit(Batches(frame, "price", size=30))
    assert "late" in [each.name for each in model.dimensions_]
    whole = EvidenceKernelRegressor(**QUICK).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.score(X, y) == pytest.approx(whole.score(X, y), abs=0.05)
    odd = [2800, 2990, 2999]
    spread = float(np.std(y))
    np.testing.assert_allclose(model.predict(X.loc[odd]), whole.predict(X.loc[odd]), atol=spread)


def test_a_draw_does_not_depend_on_the_batches_and_is_fair() -> None:
    frame = table(4000)
    one = draw(Batches(frame, "price", size=4000), 400)
    many = draw(Batches(frame, "price", size=33), 400)
    assert one.batch.X.equals(many.batch.X)
    np.testing.assert_array_equal(one.batch.y, many.batch.y)
    np.testing.assert_array_equal(frame["price"].to_numpy()[one.index], one.batch.y)
    assert (np.diff(one.index) > 0).all()
    assert abs(one.index.mean() - 2000) < 200


def draw(batches: Batches, size: int) -> Draw:
    return first_reading(batches_alone(batches), NumberTargets.of, size, 0)[0]


def fit_of(frame: pd.DataFrame) -> EvidenceKernelRegressor:
    return EvidenceKernelRegressor(**QUICK).fit(Batches(frame, "price", size=70))


def test_wrong_cells_are_named_by_their_row_in_the_whole_table() -> None:
    frame = table(600)
    frame.loc[455, "a"] = np.inf
    with pytest.raises(CellError, match="column 'a', row 455: the value is infinite"):
        fit_of(frame)
    frame = table(600)
    frame.loc[577, "price"] = np.nan
    with pytest.raises(ValueError, match=r"y is missing \(NaN\) in 1 rows, the first is row 577"):
        fit_of(frame)
    frame = table(600).astype({"b": object})
    frame.loc[0, "b"] = [1]
    with pytest.raises(TypeError, match=r"column 'b' has \[1\]"):
        fit_of(frame)


def test_a_fit_that_fails_leaves_the_model_of_before() -> None:
    frame = table(600)
    X = frame.drop(columns="price")
    model = fit_of(frame)
    before = model.predict(X)
    broken = frame.rename(columns={"a": "z"})
    broken.loc[599, "z"] = np.inf
    with pytest.raises(CellError):
        model.fit(Batches(broken, "price", size=70))
    np.testing.assert_array_equal(model.predict(X), before)


def test_targets_without_a_difference_are_refused() -> None:
    frame = table(600).assign(price=3.0)
    with pytest.raises(ValueError, match="y is 3 in every row"):
        fit_of(frame)
    with pytest.raises(ValueError, match=r"y has one class only, 3\.0"):
        EvidenceKernelClassifier(**QUICK).fit(Batches(frame, "price"))


def test_rows_that_are_gone_at_the_second_reading_are_missed() -> None:
    frame = table(300)
    parts = [(frame.drop(columns="price"), frame["price"])]
    # what is taken out of the list is gone for the next reading
    once = Batches(lambda: iter(parts[:1] if parts.pop() else ()))
    parts *= 2
    with pytest.raises(ValueError, match="at least one row, got none"):
        EvidenceKernelRegressor(**QUICK).fit(once)


def test_what_is_no_table_or_has_no_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv or be a folder, got a\."):
        Batches("a.txt", "price")
    with pytest.raises(TypeError, match="reads several times: give a function"):
        Batches(iter([]))
    with pytest.raises(ValueError, match="size must be"):
        Batches(tmp_path, "price", size=0)
    frame = table(20)
    with pytest.raises(ValueError, match="got 'cost'; it has a, b, word, price"):
        EvidenceKernelRegressor().fit(Batches(frame, "cost"))
    with pytest.raises(ValueError, match="give Batches the name of a target column"):
        EvidenceKernelRegressor().fit(Batches(frame))
    with pytest.raises(ValueError, match="must be None where X is Batches"):
        EvidenceKernelRegressor().fit(Batches(frame, "price"), frame["price"])
    empty = Batches(written(table(0), tmp_path, "parquet"), "price")
    with pytest.raises(ValueError, match="at least one row, got none"):
        EvidenceKernelRegressor().fit(empty)


def test_files_that_end_in_the_middle_are_refused(tmp_path: Path) -> None:
    path = written(table(500), tmp_path, "parquet")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"table\.parquet cannot be read as parquet"):
        EvidenceKernelRegressor().fit(Batches(path, "price"))
    path = written(table(500), tmp_path, "csv")
    text = path.read_text()
    path.write_text(text[: text.rindex(",red") + 2])
    with pytest.raises(ValueError, match="last line has 3 of 4 fields"):
        EvidenceKernelRegressor().fit(Batches(path, "price"))


def test_a_column_of_a_csv_file_is_words_everywhere_or_nowhere(tmp_path: Path) -> None:
    frame = table(300).astype({"word": object})
    frame["word"] = np.where(frame.index < 200, "12", "x3")
    batches = Batches(written(frame, tmp_path, "csv"), "price", size=70)
    kinds = {type(each) for batch in batches for each in batch.X["word"]}
    assert kinds == {str}


def test_rows_without_cells_and_codes_are_in_batches_what_they_are_in_a_table(
    tmp_path: Path,
) -> None:
    lines = [f"{i % 7 * 1000 + 1067:05d},{i % 5},{-i}" for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["zip,count,y", *lines[:40], ",,", *lines[40:], ""]))
    with pytest.warns(KernelWeaveWarning, match="line 42 are empty"):
        known = read_table(path).inputs(["zip", "count", "y"])
    batches = list(Batches(path, "y", size=25))
    assert sum(map(len, batches)) == 60
    for name in ("zip", "count"):
        cells = [cell for batch in batches for cell in batch.X[name]]
        assert cells == known[name].tolist()
    assert cells[:3] == [0, 1, 2]
    assert batches[0].X["zip"][0] == "01067"
    # a row of missing values is a row
    (tmp_path / "v.csv").write_text("x,z\n1,2\nNA,NA\n3,4\n")
    assert len(next(iter(Batches(tmp_path / "v.csv"))).X) == 3
    # in a table of one column too
    (tmp_path / "u.csv").write_text("x\n1\nNA\n3\n")
    assert len(next(iter(Batches(tmp_path / "u.csv"))).X) == 3


def test_a_fit_without_time_leaves_a_model_and_says_what_is_missing() -> None:
    frame = table(600)
    with pytest.warns(UserWarning, match="some rows never read, the search cut short, some"):
        model = EvidenceKernelRegressor(max_time=1e-9, **QUICK).fit(
            Batches(frame, "price", size=250)
        )
    assert np.isfinite(model.predict(frame.drop(columns="price"))).all()


class Interrupted:
    """A table whose reading meets a Ctrl-C: where the n-th of all its parts is read."""

    def __init__(self, frame: pd.DataFrame, at: int) -> None:
        self.frame, self.at, self.n_read = frame, at, 0

    def __call__(self) -> Iterator[tuple[pd.DataFrame, Any]]:
        for begin in range(0, len(self.frame), 100):
            self.n_read += 1
            if self.n_read == self.at:
                signal.raise_signal(signal.SIGINT)
            own = self.frame[begin : begin + 100]
            yield own.drop(columns="price"), own["price"]


# of six parts each: the second reading is the survey, the third the sums over all rows
@pytest.mark.parametrize("at", [9, 15])
def test_a_ctrl_c_between_blocks_leaves_a_model(at: int) -> None:
    frame = table(600)
    X, y = frame.drop(columns="price"), frame["price"]
    # what is compiled meanwhile lets the Ctrl-C wait too long
    fit_of(frame)
    model = EvidenceKernelRegressor(**QUICK)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Batches(Interrupted(frame, at)))
    assert model.result_.status is Status.INTERRUPTED
    # a survey that was cut short has seen the lowest prices alone
    assert model.score(X, y) > (0.8 if at == 15 else 0.0)
    same = EvidenceKernelRegressor(on_interrupt="return", **QUICK)
    same.fit(Batches(Interrupted(frame, at)))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_prices_in_batches_are_learned_under_a_power() -> None:
    frame = table(1200)
    truth = np.exp(1.5 * (np.sin(4 * frame["a"]) + frame["b"] + (frame["word"] == "red")))
    frame["price"] = np.exp(1.5 * frame["price"])
    X, y = frame.drop(columns="price"), frame["price"]
    model = EvidenceKernelRegressor(**QUICK | {"warp": True}).fit(Batches(frame, "price", size=70))
    plain = EvidenceKernelRegressor(**QUICK).fit(Batches(frame, "price", size=70))
    assert model._predictor.targets.warps
    assert model.held_out_score_ > plain.held_out_score_
    assert model.score(X, truth) > plain.score(X, truth) > 0.9
    low, high = model.predict_interval(X, confidence=0.9)
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.06)
    mean, deviation = model.predict(X, return_std=True)
    # as wide as the price is high
    assert np.corrcoef(mean, deviation)[0, 1] > 0.9
    assert mean.min() > 0.0


def test_what_a_batch_is_no_part_of_is_said() -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    y = X[:, 0]

    def parts(*part: Any) -> Batches:
        return Batches(lambda: iter([part[0] if len(part) == 1 else part]))

    with pytest.raises(TypeError, match=r"source must give tables, pairs .* got ndarray"):
        EvidenceKernelRegressor().fit(parts(X))
    with pytest.raises(ValueError, match="got a tuple of 4"):
        EvidenceKernelRegressor().fit(parts(X, y, y, y))
    model = EvidenceKernelRegressor().fit(X, y)
    with pytest.raises(TypeError, match="got Batches, which is read part by part"):
        model.predict(parts(X, y))


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(
    ("separator", "encoding", "comma"),
    [(",", "utf-8", "."), (";", "cp1252", ","), ("\t", "utf-16-le", ","), (";", "utf-8-sig", ".")],
)
def test_cells_in_batches_are_what_they_are_in_a_table(
    tmp_path: Path, separator: str, encoding: str, comma: str, told: bool
) -> None:
    rng = np.random.default_rng(0)
    mass = rng.integers(400, 900, 60)
    plain = pd.DataFrame({"größe": mass / 10, "town": rng.choice(["Köln", "Ulm"], 60)})
    written = plain.assign(größe=[f"{each / 10} kg".replace(".", comma) for each in mass])
    written["y"] = range(60)
    path = tmp_path / "t.csv"
    # Excel names the separator in a first line
    first = f"sep={separator}\n" if told else ""
    path.write_bytes((first + written.to_csv(index=False, sep=separator)).encode(encoding))
    with warnings.catch_warnings():
        # of letters that are found
        warnings.filterwarnings("ignore", ".*is not UTF-8 text")
        parts = [batch.X for batch in Batches(path, "y", size=25)]
        known = read_table(path).inputs(["größe", "town"])
    encoder = ColumnEncoder().fit(known)
    kinds = [(plan.kind, plan.unit) for plan in encoder.report_]
    assert kinds == [("number", "kg"), ("category", "")]
    rows = [encoder.transform(part) for part in parts]
    whole = ColumnEncoder().fit_transform(plain)
    np.testing.assert_array_equal(np.vstack([each.numeric for each in rows]), whole.numeric)
    np.testing.assert_array_equal(np.vstack([each.codes for each in rows]), whole.codes)
    assert ColumnEncoder().fit(parts[0]).report_[0].unit == "kg"


def test_what_stands_above_and_before_a_table_is_in_batches_what_it_is_in_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.csv"
    rows = "\n".join(f"{i},{i % 7},{i % 3}.5" for i in range(30))
    path.write_text(f"Sales of 2024\n\n,a,y\n{rows}\n")
    with pytest.warns(KernelWeaveWarning, match="is taken for a title|column 1 has no") as told:
        whole = read_table(path).cells
    with pytest.warns(KernelWeaveWarning) as said:
        parts = list(Batches(path, "y", size=7))
    assert {str(each.message) for each in said} == {
        str(each.message).replace(str(path), "t.csv") for each in told
    }
    X = pd.concat([part.X for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(X, whole.drop(columns="y"))
    # a first column of words is used
    path.write_text(f",a,y\n{rows}\nUlm,1,2.5\n")
    with pytest.warns(KernelWeaveWarning, match="column 1 has no name and is called 'index'"):
        first = next(iter(Batches(path, "y")))
    assert first.X["index"].tolist()[-2:] == ["29", "Ulm"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,a,y\n1,2,3\n", "two columns named 'a'"),
        ("a,,y\n1,2,3\n", "column 2 has no name"),
        ("a,y\n1,2,3\n4,5,6\n", "line 2 has 3 cells but the header has 2"),
        ("\n\n", "is empty"),
    ],
)
def test_bad_beginnings_of_a_csv_are_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError, match=said):
        next(iter(Batches(tmp_path / "t.csv", "y")))


def test_targets_known_by_half_are_for_tables_in_memory() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((60, 2)), columns=["a", "days"])
    frame["died"] = rng.random(60) < 0.5
    cells = [f"{days:.2f}" if died else f"{days:.2f}+" for _, days, died in frame.to_numpy()]
    shown = frame.assign(days=cells)
    first = int(np.argmin(frame["died"]))
    structured = frame[["died", "days"]].to_records(index=False)
    for batches, got in (
        (Batches(frame, ["died", "days"], size=20), "got ends, or events and times"),
        (Batches((frame[["a"]].to_numpy(), structured)), "got ends, or events and times"),
        (
            Batches(shown.drop(columns="died"), "days", size=20),
            rf"got '{cells[first][:-1]}\+' in row {first}",
        ),
    ):
        with pytest.raises(ValueError, match=f"y must hold numbers .*, {got}: targets known by"):
            EvidenceKernelRegressor(**QUICK).fit(batches)
    # words such as these may be classes
    marked = shown.assign(days=np.where(shown["died"], "<30", ">30")).drop(columns="died")
    model = EvidenceKernelClassifier(**QUICK).fit(Batches(marked, "days", size=20))
    assert model.classes_.tolist() == ["<30", ">30"]
