"""Targets known by half from a file to predictions and a report: limits, ranges, and events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import Event, read_table, read_target
from kernelweave.tables.data_checks import check_data
from kernelweave.workbench import load_model
from kernelweave.workbench.choices import Choices
from kernelweave.workbench.errors import CommandError
from kernelweave.workbench.fitting import fit_table
from kernelweave.workbench.models import Header, Model, save_model
from kernelweave.workbench.scoring.held_out import HeldOut
from kernelweave.workbench.scoring.scores import lead, score

N = 60
QUICK = ["--set", "max_iter=5", "--set", "precisions=(50.0,)"]
FAST = {"max_iter": 5, "precisions": (50.0,)}


def pumps(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Return hours to failure of pumps, some of which were still running."""
    rng = np.random.default_rng(seed)
    load = rng.uniform(0.0, 10.0, n).round(2)
    life = np.exp(0.3 * load + 0.3 * rng.normal(size=n))
    watched = rng.uniform(1.0, 30.0, n)
    failed = np.where(life <= watched, "yes", "no")
    hours = np.minimum(life, watched).round(3)
    return pd.DataFrame({"load": load, "failed": failed, "hours": hours})


def as_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the same with cells such as 36+."""
    cells = frame["hours"].astype(str) + frame["failed"].map({"yes": "", "no": "+"})
    return pd.DataFrame({"load": frame["load"], "hours": cells})


def pairs_by_hand(low: list[float], high: list[float], predicted: list[float]) -> float:
    """Return the concordance by looking at every pair."""
    right = every = 0.0
    for i, first in enumerate(high):
        for j, other in enumerate(low):
            same_known = low[i] == high[i] == low[j] == high[j]
            if i != j and first <= other and not same_known:
                every += 1.0
                right += (predicted[i] < predicted[j]) + 0.5 * (predicted[i] == predicted[j])
    return right / every


@pytest.fixture(scope="module")
def model() -> Model:
    table = read_table(pumps())
    target = read_target(table, "hours", event=Event("failed"))
    return fit_table(table, target, Choices(settings=FAST)).model


@pytest.fixture(scope="module")
def saved(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("half-known") / "pumps.model"
    save_model(model, path)
    return path


def write(frame: pd.DataFrame, path: Path) -> str:
    frame.to_csv(path, index=False)
    return str(path)


def test_the_score_is_the_share_of_pairs_in_order(model: Model) -> None:
    held_out = model.held_out
    assert held_out is not None
    assert held_out.ends is not None
    low, high = held_out.ends.T.tolist()
    by_hand = pairs_by_hand(low, high, held_out.predicted.tolist())
    assert held_out.measure == "concordance"
    assert held_out.score.value == pytest.approx(by_hand)
    assert by_hand > 0.7
    machine = model.machine
    assert held_out.score == pytest.approx((machine.held_out_score_, machine.held_out_error_))


def test_one_answer_for_all_has_a_half(model: Model) -> None:
    held_out = model.held_out
    assert held_out is not None
    one = held_out.of_one_answer
    assert one.score.value == 0.5
    ahead = lead(held_out.known, held_out.predicted, one.predicted, held_out.weight, held_out.task)
    assert ahead.value == pytest.approx(held_out.score.value - 0.5)


def test_rows_in_no_known_order_have_no_score() -> None:
    ends = np.array([[1.0, np.inf], [2.0, np.inf]])
    found = score(ends, np.array([1.0, 2.0]), np.ones(2), "regression")
    assert np.isnan(found.value)


def test_errors_over_draws_of_rows_are_those_of_the_closed_form(model: Model) -> None:
    held_out = model.held_out
    assert held_out is not None
    assert held_out.ends is not None
    rng, n = np.random.default_rng(0), len(held_out.truth)
    drawn = []
    for _ in range(300):
        rows = rng.integers(n, size=n)
        parts = held_out.known[rows], held_out.predicted[rows], np.ones(n)
        drawn.append(score(*parts, "regression").value)
    assert held_out.score.error == pytest.approx(np.std(drawn), rel=0.25)


def test_a_model_is_the_same_after_it_is_saved(model: Model, saved: Path) -> None:
    again = load_model(saved)
    assert again.header == model.header
    assert (again.event, bool(again.header.half_known)) == (Event("failed"), True)
    table = read_table(pumps(8, seed=1))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    held_out, ours = again.held_out, model.held_out
    assert held_out is not None
    assert ours is not None
    np.testing.assert_array_equal(held_out.ends, ours.ends)


def test_an_older_program_refuses_what_it_does_not_know(model: Model) -> None:
    assert json.loads(model.header.to_json())["format"] == 5
    known = pumps().drop(columns="failed")
    table = read_table(known)
    other = fit_table(table, read_target(table, "hours"), Choices(settings=FAST)).model
    written = json.loads(other.header.to_json())
    assert written["format"] == 4
    assert "ends" not in written["held_out"]
    assert Header.from_json(json.dumps(written)).half_known == ""
    with pytest.raises(CommandError, match="the model was fitted to known targets"):
        other.targets(read_table(as_cells(pumps())))


def test_ends_of_a_damaged_file_are_refused(model: Model) -> None:
    held_out = model.held_out
    assert held_out is not None
    record = held_out.as_json() | {"ends": [[1.0]] * len(held_out.truth)}
    with pytest.raises(ValueError, match="ends of validation rows must be two columns"):
        HeldOut.from_json(record)


def test_the_command_fits_times_up_to_an_event(run: Callable, tmp_path: Path) -> None:
    data = write(pumps(), tmp_path / "pumps.csv")
    test = write(pumps(30, seed=1), tmp_path / "new.csv")
    out = tmp_path / "m"
    done = run("fit", data, "--target", "hours", "--event", "failed", "--test", test, "--out",
               out, *QUICK)  # fmt: skip
    assert done.status == 0, done.err
    failed = int((pumps()["failed"] == "yes").sum())
    text = " ".join(done.out.split())
    assert f"the time up to the event 'failed', which {failed} of 60 rows had" in text
    assert "concordance on 60 rows, cross-validated in 3 folds" in text
    assert "0.5 by chance" in text
    assert "drop in concordance when a column is shuffled" in text
    assert "R²" not in text
    assert "RMSE" not in text
    assert "coverage" not in text
    assert "learn from known targets only and are left out" in done.err
    assert load_model(out).header.columns == ("load",)


def test_json_says_what_the_score_is(run: Callable, tmp_path: Path) -> None:
    data = write(as_cells(pumps()), tmp_path / "pumps.csv")
    done = run("fit", data, "--target", "hours", "--json", "--no-compare", *QUICK)
    facts = json.loads(done.out)
    assert (facts["measure"], facts["event"], facts["task"]) == ("concordance", None, "regression")
    assert "rows are limits or ranges, such as" in facts["half_known"]
    assert facts["held_out"]["also"] == {}
    assert facts["held_out"]["baseline"] == pytest.approx(0.5)
    assert facts["notes"] == []


def test_limits_beside_a_test_file_without_any(run: Callable, tmp_path: Path) -> None:
    known = pumps(30, seed=1).query("failed == 'yes'").drop(columns="failed")
    data = write(as_cells(pumps()), tmp_path / "pumps.csv")
    test = write(known, tmp_path / "new.csv")
    done = run("fit", data, "--target", "hours", "--test", test, "--no-compare", "--json", *QUICK)
    tested = json.loads(done.out)["test"]
    assert 0.0 <= tested["low"] <= tested["score"] <= tested["high"] <= 1.0
    # all are known, so that intervals can be counted
    assert [each["level"] for each in tested["coverage"]] == [0.5, 0.8, 0.9, 0.95]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "ridge"], "--model ridge learns from known targets only: leave out --model"),
        (
            ["--algorithm", "tkl-low-rank"],
            "--algorithm tkl-low-rank learns from known targets only",
        ),
        (["--metric", "r2"], "--metric r2 is for known targets: leave it out, as concordance"),
        (["--task", "classification"], "--event 'failed' is for times, which are numbers"),
        (["--drop", "failed"], "--drop 'failed' is the event"),
        (["--weights", "failed"], "--weights 'failed' is the event"),
        (["--categorical", "failed"], "'failed' is the event: it is never a feature"),
        (["--event", "faled"], "has no column 'faled'; did you mean 'failed'?"),
        (["--event", "failed=ye"], "is 'ye'; did you mean 'yes'?"),
        (["--event", "hours"], "--event 'hours' is the target"),
        (["--event", "load"], "is not yes or no, true or false, 1 or 0: say which value"),
    ],
)
def test_what_cannot_be_is_refused_before_the_fit(
    run: Callable, tmp_path: Path, options: list[str], message: str
) -> None:
    data = write(pumps(), tmp_path / "pumps.csv")
    event = [] if "--event" in options else ["--event", "failed"]
    done = run("fit", data, "--target", "hours", *event, *options)
    assert message in done.error


@pytest.mark.parametrize(
    ("column", "row", "cell", "message"),
    [
        ("failed", 3, "", "the event 'failed', line 5: the value is missing, and the time is"),
        ("failed", 3, "maybe", "the event 'failed', line 5: 'maybe' is not yes or no"),
        ("hours", 3, "-2", "line 5: the time -2 is below 0"),
        ("hours", 3, "9+", "line 5: '9+' is a limit, and --event says already"),
    ],
)
def test_a_cell_is_named_by_its_line(
    run: Callable, tmp_path: Path, column: str, row: int, cell: str, message: str
) -> None:
    frame = pumps().astype(str)
    frame.loc[row, column] = cell
    data = write(frame, tmp_path / "pumps.csv")
    done = run("fit", data, "--target", "hours", "--event", "failed")
    assert message in done.error


def test_a_test_file_needs_the_event(run: Callable, tmp_path: Path) -> None:
    data = write(pumps(), tmp_path / "pumps.csv")
    test = write(pumps().drop(columns="failed"), tmp_path / "new.csv")
    done = run("fit", data, "--target", "hours", "--event", "failed", "--test", test)
    assert "new.csv has no column 'failed'" in done.error


def test_a_test_file_may_have_no_event(run: Callable, tmp_path: Path) -> None:
    data = write(pumps().replace({"yes": "dead", "no": "alive"}), tmp_path / "pumps.csv")
    test = write(pumps(30, seed=1).assign(failed="alive"), tmp_path / "new.csv")
    done = run("fit", data, "--target", "hours", "--event", "failed=dead", "--test", test,
               "--no-compare", "--json", *QUICK)  # fmt: skip
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    assert facts["test"] is None
    assert "no cell of column 'failed' of" in done.err
    assert "new.csv is 'dead'" in done.err
    assert "is not scored: no two rows of the target 'hours' are in a known order" in done.err
    assert facts["held_out"]["score"] > 0.5


def test_few_rows_in_perfect_order_are_no_proof(run: Callable, tmp_path: Path) -> None:
    load = np.arange(1.0, 7.0)
    frame = pd.DataFrame({"load": load, "failed": "yes", "hours": np.exp(0.3 * load)})
    data = write(pumps(), tmp_path / "pumps.csv")
    options = ["--target", "hours", "--event", "failed", "--no-compare", *QUICK]
    done = run("fit", data, *options, "--test", write(frame, tmp_path / "perfect.csv"), "--json")
    facts = json.loads(done.out)
    tested = facts["test"]
    assert (tested["score"], tested["high"]) == (1.0, 1.0)
    assert tested["error"] == pytest.approx(1.5 / 6)
    assert 0.0 < tested["low"] < 0.5
    # of so few rows nobody knows
    assert "cross-validation" not in facts["certificate"]


def test_rows_without_a_time_are_predicted(run: Callable, tmp_path: Path) -> None:
    frame = pumps().astype(str)
    frame.loc[[4, 9], ["hours", "failed"]] = ""
    data = write(frame, tmp_path / "pumps.csv")
    out = tmp_path / "p.csv"
    done = run("fit", data, "--target", "hours", "--event", "failed", "--predictions", out,
               "--no-compare", *QUICK)  # fmt: skip
    assert "2 of 60 rows of" in done.err
    predicted = pd.read_csv(out)
    assert predicted["load"].tolist() == pumps()["load"].iloc[[4, 9]].tolist()
    assert (predicted["prediction"] > 0.0).all()


def test_new_rows_need_neither_target_nor_event(run: Callable, saved: Path, tmp_path: Path) -> None:
    data = write(pumps(5, seed=1)[["load"]], tmp_path / "new.csv")
    done = run("predict", saved, data, "--interval", "0.8", "--quantiles", ".001,.5,.999", "--json")
    rows = json.loads(done.out)
    assert all(row["low"] < row["prediction"] < row["high"] for row in rows)
    # what is infinite is null in JSON
    assert all(row["low"] >= 0.0 and row["quantile_0.999"] is None for row in rows)
    assert all(row["quantile_0.001"] == 0.0 for row in rows)
    assert "the rows of the fit do not tell how far targets reach at this level" in done.err


def test_the_report_tells_limits_from_known_values(
    run: Callable, saved: Path, tmp_path: Path
) -> None:
    data = write(pumps(30, seed=1), tmp_path / "new.csv")
    page = tmp_path / "page.html"
    done = run("report", saved, data, "--out", page, "--json")
    scores = json.loads(done.out)["scores"]
    assert list(scores) == ["concordance"]
    text = " ".join(page.read_text().split())
    assert "concordance, rows like these; 0.5 by chance" in text
    assert text.count("<h3>Predicted values and what is known</h3>") == 2
    assert "an arrow up where it is only known to be larger" in text
    assert "only known to be smaller" not in text
    assert "Residuals" not in text
    assert "R²" not in text


def test_the_report_of_other_rows_names_what_is_absent(
    run: Callable, saved: Path, tmp_path: Path
) -> None:
    data = write(pumps(30, seed=1).drop(columns="failed"), tmp_path / "new.csv")
    done = run("report", saved, data, "--out", tmp_path / "page.html")
    assert "no column 'failed', which says which times ended by the event" in done.error
    running = pumps(30, seed=1).assign(failed="no")
    done = run("report", saved, write(running, tmp_path / "r.csv"), "--out", tmp_path / "r.html")
    assert "no two rows of the target 'hours' are in a known order" in done.error


def test_other_models_are_not_compared(run: Callable, tmp_path: Path) -> None:
    data = write(as_cells(pumps()), tmp_path / "pumps.csv")
    done = run("compare", data, "--target", "hours")
    assert "only the evidence kernel learns from such targets: use kernelweave fit" in done.error


def test_a_column_that_gives_the_event_away_is_named() -> None:
    frame = pumps().assign(repaired=lambda table: table["failed"].map({"yes": "a", "no": "b"}))
    table = read_table(frame)
    target = read_target(table, "hours", event=Event("failed"))
    notes = check_data(table, ["load", "repaired"], target)
    assert [note for note in notes if "leakage" in note] == [
        "column 'repaired' says which targets are known and which by half (leakage): if it is not "
        "known at prediction time, leave it out with --drop 'repaired'"
    ]
