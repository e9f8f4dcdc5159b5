"""The report on targets known by half: how right the predicted distributions are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernelweave.workbench import load_model
from kernelweave.workbench.app import run
from kernelweave.workbench.report.survival import survival_chapters, survival_facts
from kernelweave.workbench.summaries import summary

MEASURES = ("brier", "brier_one_curve", "calibration_p")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models of times, of limits and of ranges, and one of numbers."""
    folder = tmp_path_factory.mktemp("survival")
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame({"dose": rng.uniform(0, 3, n).round(2), "age": rng.integers(20, 80, n)})
    true = np.exp(1.0 + 0.6 * table["dose"] + 0.4 * rng.standard_normal(n)).to_numpy()
    until = np.exp(2.3 + rng.standard_normal(n))
    limit = np.quantile(true, 0.3)
    targets = {
        "times": {"days": np.minimum(true, until), "died": np.where(true <= until, "yes", "no")},
        "limits": {"days": [f"<{limit:.2f}" if t < limit else f"{t:.2f}" for t in true]},
        "ranges": {
            "days": [f"{t:.2f}" if k % 3 else f"{int(t)}-{int(t) + 1}" for k, t in enumerate(true)]
        },
        "numbers": {"days": true},
    }
    for name, columns in targets.items():
        table.assign(**columns).to_csv(folder / f"{name}.csv", index=False)
        event = ["--event", "died"] if name == "times" else []
        options = ["--no-compare", "--max-iter", "10", "--out", str(folder / f"{name}.kw")]
        data = str(folder / f"{name}.csv")
        assert run(["fit", data, "--target", "days", *event, *options]) == 0
    return folder


def page_of(folder: Path, name: str) -> str:
    assert run(["report", str(folder / f"{name}.kw"), "--force"]) == 0
    return (folder / f"{name}.html").read_text()


def test_a_page_of_times_judges_their_distributions(folder: Path) -> None:
    model = load_model(folder / "times.kw")
    (row, *_), told = model.header.new_rows, model.machine.held_out_.iloc[0]
    assert [row[name] for name in MEASURES] == pytest.approx([told[name] for name in MEASURES])
    page = page_of(folder, "times")
    for words in (
        "Predicted distributions",
        f"<b>{row['brier']:.3f}</b>",
        f"integrated Brier score; {row['brier_one_curve']:.3f} with one curve for all rows",
        "over the times between",
        "p-value of the calibration test",
        "Predicted and observed probabilities",
        "Curves of three rows",
        "predicted short, middle and long",
        "two posterior standard deviations",
    ):
        assert words in page, words
    json.dumps(summary(model).new_rows, allow_nan=False)


def test_limits_have_a_brier_score_and_ranges_none(folder: Path) -> None:
    limits, ranges = page_of(folder, "limits"), page_of(folder, "ranges")
    for page in (limits, ranges):
        assert "predicted low, middle and high" in page
        assert "p-value of the calibration test" in page
    assert "over the values between" in limits
    assert "Brier" not in ranges
    (row, *_) = load_model(folder / "ranges.kw").header.new_rows
    assert "calibration_p" in row
    assert "brier" not in row


def test_other_models_have_no_such_chapter(folder: Path) -> None:
    model = load_model(folder / "numbers.kw")
    assert all(name not in row for row in model.header.new_rows for name in MEASURES)
    assert survival_chapters(model, summary(model), None) == []
    assert survival_facts(summary(model)) == []
    page = page_of(folder, "numbers")
    assert "Predicted distributions" not in page
    assert "Brier" not in page


@pytest.mark.parametrize(
    ("p", "verdict"),
    [
        (0.3, "finds nothing wrong with the distributions of rows predicted short, middle and long "
         "(p = 0.3)."),
        (0.012, "of rows predicted short, middle and long are not all right (p = 0.012): take "
         "single probabilities with care."),
        (1e-6, "are not all right (p < 0.001): take"),
    ],
)  # fmt: skip
def test_the_verdict_follows_the_p_value(folder: Path, p: float, verdict: str) -> None:
    model = load_model(folder / "times.kw")
    about = summary(model)
    about = replace(about, new_rows=[{**about.new_rows[0], "calibration_p": p}])
    (chapter,) = survival_chapters(model, about, None)
    sentences = chapter["sentences"]
    assert isinstance(sentences, list)
    assert verdict in sentences[-1]


def test_another_table_is_judged_too(folder: Path) -> None:
    table = pd.read_csv(folder / "times.csv")
    late = table.assign(days=4.0 * table["days"], dose=(table["dose"] + 0.01).round(2))
    late.to_csv(folder / "late.csv", index=False)
    files = [str(folder / name) for name in ("times.kw", "late.csv")]
    assert run(["report", *files, "--out", str(folder / "late.html"), "--force"]) == 0
    page = (folder / "late.html").read_text()
    own, other = page.split("Predicted distributions of the 90 rows of late.csv")
    assert "Curves of three rows" in own
    assert "of rows predicted short, middle and long are not all right" in other
    assert "Computed on the 90 rows of late.csv" in other
    # of the rows of the fit there is nothing new to say
    assert run(["report", files[0], str(folder / "times.csv"), "--force"]) == 0
    assert (folder / "times.html").read_text().count("Predicted distributions") == 1


@pytest.mark.parametrize("n_zero", [0, 30])
def test_few_rows_are_not_compared_in_thirds(folder: Path, n_zero: int) -> None:
    table = pd.read_csv(folder / "times.csv")
    few = table.iloc[:3].assign(dose=[0.5, 1.5, 2.5])
    # what is censored at 0 tells nothing of its time
    at_zero = table.iloc[:n_zero].assign(days=0.0, died="no")
    pd.concat([few, at_zero]).to_csv(folder / "few.csv", index=False)
    files = [str(folder / name) for name in ("times.kw", "few.csv")]
    assert run(["report", *files, "--out", str(folder / "few.html"), "--force"]) == 0
    page = (folder / "few.html").read_text()
    own, other = page.split(f"Predicted distributions of the {3 + n_zero} rows of few.csv")
    assert "wrong by more than chance allows" in own
    assert "Predicted and observed probabilities" in own
    assert "from 20 rows on whose target is known or has a limit; 3 such rows were given" in other
    assert "chance allows" not in other


def test_a_fit_to_few_rows_is_not_compared_in_thirds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelweave.workbench.report.survival._FEWEST_ROWS", 91)
    model = load_model(folder / "times.kw")
    (chapter,) = survival_chapters(model, summary(model), None)
    sentences, pictures = chapter["sentences"], chapter["pictures"]
    assert isinstance(sentences, list)
    assert isinstance(pictures, list)
    assert "90 such rows were held out" in sentences[-1]
    assert [each["title"] for each in pictures] == ["Curves of three rows"]


def test_without_two_folds_there_is_no_chapter(folder: Path) -> None:
    model = load_model(folder / "times.kw")
    predictor = model.machine._predictor
    object.__setattr__(predictor, "folds", predictor.folds[:1])
    assert survival_chapters(model, summary(model), None) == []
