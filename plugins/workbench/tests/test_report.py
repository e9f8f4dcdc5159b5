"""``kernelweave report``: one page, whole, escaped, readable in a browser of any width."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from kernelweave.tables import read_table
from kernelweave.workbench import load_model
from kernelweave.workbench.displays.axes import write_thousands
from kernelweave.workbench.pages import figure_svg
from kernelweave.workbench.report import _facts
from kernelweave.workbench.report.evaluation import evaluate
from kernelweave.workbench.report.pictures import _curve, column_pictures
from kernelweave.workbench.scoring.scores import Score
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with fitted models and small tables with awkward names."""
    from kernelweave.workbench.app import run

    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'<yes>' if a > b else 'no&'}" for a, b in rng.normal(size=(60, 2))]
    (folder / "t.csv").write_text("<a>,b,y\n" + "\n".join(rows) + "\n")
    more = [f"{a:.3f},{b:.3f},{'<yes>' if a > b else 'no&'}" for a, b in rng.normal(size=(40, 2))]
    (folder / "more.csv").write_text("<a>,b,y\n" + "\n".join(more) + "\n")
    prices = [f"{i},{a:.3f},{'uv'[i % 2]},{1000 * a + 500 * (i % 2):.1f}" for i, a in
              enumerate(rng.random(90))]  # fmt: skip
    (folder / "p.csv").write_text("id,size,kind,price\n" + "\n".join(prices[:60]) + "\n")
    (folder / "q.csv").write_text("id,size,kind,price\n" + "\n".join(prices[60:]) + "\n")
    tkl = ["--model", "tkl", "--tol", "0.1", "--max-iter", "20", "--no-compare"]
    for name, data, target, options in (
        ("tkl", "t", "y", tkl),
        ("t", "t", "y", ["--max-iter", "10"]),
        ("p", "p", "price", ["--max-iter", "10", "--no-compare"]),
    ):
        table, out = str(folder / f"{data}.csv"), str(folder / f"{name}.kw")
        assert run(["fit", table, "--target", target, *options, "--out", out]) == 0
    return folder


@pytest.fixture(scope="module")
def page(models: Path) -> tuple[Path, str]:
    """A page with rows that were not learned from, in place of another, and what was printed."""
    from kernelweave.workbench.app import run

    path, said = models / "page.html", io.StringIO()
    path.write_text("an older page")
    tokens = ["report", str(models / "t.kw"), str(models / "more.csv"), "--out", str(path)]
    with contextlib.redirect_stdout(said):
        assert run([*tokens, "--force", "--json"]) == 0
    return path, said.getvalue()


def test_a_page_needs_nothing_beside_it(models: Path, page: tuple[Path, str]) -> None:
    path, said = page
    found = json.loads(said)
    assert found["page"] == str(path)
    assert found["scores"]["accuracy"] > 0.8
    assert found["held_out"]["score"] > 0.8
    text = path.read_text()
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    assert "<script" not in text
    # a page that is mailed names the table, and no folder of this machine
    assert "60 rows of t.csv" in text
    assert str(models) not in text
    for word in ("Model comparison", "HistGradientBoosting", "most frequent class", "ROC",
                 "Confusion matrix",
                 "Precision and recall", "Calibration of probabilities", "Columns",
                 "Importance", "Effect of &lt;a&gt;", "This is an estimate, not a proof",
                 "Test scores on the 40 rows", "in 3 folds",
                 "No kind of new rows is expected to be predicted"):  # fmt: skip
        assert word in text, word
    assert "&lt;a&gt;" in text
    assert "<a>" not in text
    # the other models' scores less that of this one, as in a terminal
    rows = found["comparison"]["rows"]
    assert rows
    for row in rows:
        assert Score(-row["behind"], row["behind_error"]).formatted(3, sign="+") in text
    assert text.count("<img") == text.count('alt="') >= 10


def test_decision_values_draw_the_curves_of_a_model_without_probabilities(
    run: Callable, models: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    run("report", models / "tkl.kw", models / "more.csv", "--out", page)
    text = page.read_text()
    # of the rows held out, and of those of the file
    assert text.count(">ROC curve<") == text.count(">Precision and recall<") == 2
    assert "Calibration of probabilities" not in text


def test_the_rows_learned_from_are_no_test(run: Callable, models: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("report", models / "t.kw", models / "t.csv", "--out", page)
    assert done.status == 0
    assert done.out.strip() == str(page)
    text = page.read_text()
    assert "A score on it would say nothing about new rows" in text
    assert "Scores on" not in text


def test_a_proof_stands_on_the_page(run: Callable, models: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("report", models / "tkl.kw", models / "t.csv", "--out", page)
    text = page.read_text()
    for word in ("proved relative gap", "Convergence", "in 3 folds", "settings"):
        assert word.casefold() in text.casefold(), word


def test_the_worst_rows_have_reasons(run: Callable, models: Path, tmp_path: Path) -> None:
    page, new = tmp_path / "page.html", models / "q.csv"
    run("report", models / "p.kw", new, "--out", page)
    model, told = load_model(models / "p.kw"), page.read_text()
    tables = re.findall(r"The worst predictions, and why</h3>(.*?)</table>", told, re.DOTALL)
    held_out, truth = model.held_out, pd.read_csv(new).price
    wrong = (np.abs(held_out.truth - held_out.predicted), np.abs(truth - model.predict(str(new))))
    places = (held_out.rows, np.arange(len(truth)))
    assert len(tables) == 2
    for table, errors, place in zip(tables, wrong, places, strict=True):
        worst = place[np.argsort(-np.asarray(errors))[:3]] + 1
        numbers = re.findall(r'<th scope="row">(\d+)</th>', table)
        assert numbers == [str(number) for number in worst]
    frame = pd.read_csv(new)
    first = frame.iloc[int(numbers[0]) - 1]
    reasons = model.reasons(str(new))[int(numbers[0]) - 1]
    assert f"size = {first['size']:g}: " in reasons[0]
    assert reasons[0] in tables[1]
    run("report", models / "tkl.kw", models / "more.csv", "--out", page, "--force")
    assert "The worst predictions" not in page.read_text()


def test_the_same_model_gives_the_same_page(
    run: Callable, models: Path, page: tuple[Path, str], tmp_path: Path
) -> None:
    run("report", models / "t.kw", models / "more.csv", "--out", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == page[0].read_bytes()


def test_a_regression_has_residuals_and_intervals(
    run: Callable, models: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    run("report", models / "p.kw", models / "q.csv", "--out", page)
    text = page.read_text()
    for word in ("Predicted and true", "Residuals", "RMSE", "coverage of",
                 "Effect of size", "Effect of kind", "Test scores on the 30 rows"):  # fmt: skip
        assert word in text, word


def test_a_model_without_a_fold_is_scored_without_intervals_or_sets(models: Path) -> None:
    for name, data in (("p", "q"), ("t", "more")):
        model, table = load_model(models / f"{name}.kw"), read_table(str(models / f"{data}.csv"))
        whole = evaluate(model, table, None)
        rest = evaluate(replace(model, header=replace(model.header, held_out=None)), table, None)
        assert whole.coverage
        assert rest.coverage == ()
        assert rest.scores() == whole.scores()


def test_a_column_that_is_left_out_has_no_bar(models: Path) -> None:
    bars = column_pictures(load_model(models / "p.kw"), "R²")[0]
    drawn = base64.b64decode(bars["address"].partition(",")[2]).decode()
    assert "<!-- size -->" in drawn
    assert "<!-- id -->" not in drawn


def test_columns_of_a_wide_table_are_folded(run: Callable, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 30))
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)]).assign(
        y=X[:, :2].sum(axis=1), town="x"
    )
    frame.loc[3, "gene7"] = np.nan
    tkl = ("--model", "tkl", "--no-compare")
    frame.to_csv(tmp_path / "w.csv", index=False)
    run("fit", tmp_path / "w.csv", "--target", "y", *tkl, "--out", tmp_path / "w.kw")
    run("report", tmp_path / "w.kw")
    page = (tmp_path / "w.html").read_text()
    assert "29 more columns are used as they are." in page
    above, _, folded = page.partition("<summary>Show them</summary>")
    for name, place in (("gene7", above), ("town", above), ("gene9", folded)):
        assert f'<th scope="row">{name}</th>' in place


@pytest.mark.parametrize(("end", "label"), [(200000.0, "150,000"), (200.0, "150")])
def test_amounts_on_axes_are_written_in_full(end: float, label: str) -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    ax.set_ylim(-end, end)
    write_thousands(ax.yaxis)
    figure.draw_without_rendering()
    assert label in [each.get_text() for each in ax.get_yticklabels()]


def test_errors_are_one_sentence_and_nothing_is_overwritten(
    run: Callable, models: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("precious")
    assert "exists: add --force" in run("report", models / "p.kw", "--out", page).error
    other = tmp_path / "t.csv"
    other.write_text((models / "t.csv").read_text().replace("no&", "maybe"))
    force = ("--out", page, "--force")
    assert "has no class 'maybe'" in run("report", models / "t.kw", other, *force).error
    other.write_text("<a>,y\n1,no&\n2,<yes>\n")
    assert "columns that the model uses: 'b'" in run("report", models / "t.kw", other, *force).error
    assert page.read_text() == "precious"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_needs_no_scrolling_sideways(
    page: tuple[Path, str], tmp_path: Path, width: int
) -> None:
    probe = (
        "<script>onload = () => document.title = ["
        "document.documentElement.scrollWidth, innerWidth, "
        "[...document.images].every(i => i.complete && i.naturalWidth > 0)].join();</script>"
    )
    frame = tmp_path / "frame.html"
    inner = page[0].read_text().replace("</body>", f"{probe}</body>")
    (tmp_path / "probed.html").write_text(inner)
    # headless windows have a least width, a frame has none
    frame.write_text(
        f'<iframe src="probed.html" width="{width}" height="900"></iframe><script>onload = () => '
        "document.body.append(document.querySelector('iframe').contentDocument.title)</script>"
    )
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--virtual-time-budget=8000", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"(\d+),(\d+),(true|false)", done.stdout)
    assert found is not None, done.stdout[-500:]
    assert int(found[1]) <= int(found[2]) <= width
    assert found[3] == "true"


def test_letters_that_the_font_lacks_are_text_of_the_page() -> None:
    """Each was a warning and a square; an escape in a name would have broken the picture."""
    svg, plain = (
        figure_svg(lambda figure, name=name: figure.subplots().set_xlabel(name))
        for name in ("年齢 \x1b[2J", "age")
    )
    assert any("年齢" in (each.text or "") for each in ElementTree.fromstring(svg).iter())
    assert b"<text" not in plain


def test_the_headline_names_the_rows_that_its_score_is_of() -> None:
    new = [{"name": "new patient", "score": 0.36, "error": 0.08, "n_rows": 360, "n_groups": 60}]
    about: Any = SimpleNamespace(
        measure="R²", columns=[], gap=np.inf, kernel_rows=0,
        held_out=SimpleNamespace(score=0.36, error=0.08, n_rows=360),
        n_features=3, n_samples=360, is_rule=False, premise="", new_rows=new,
    )  # fmt: skip
    assert _facts(about, None, True)[0] == ("R², new patient", "0.360 ± 0.080")
    about.new_rows = []
    assert _facts(about, None, True)[0][0] == "R², cross-validated"


@pytest.mark.parametrize(
    ("kind", "x", "y", "said"),
    [
        # by hand: one pair of four is ranked the wrong way round
        ("ROC", [0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], " (AUC = 0.75)"),
        ("precision", [1.0, 1.0, 0.5, 0.5, 0.0], [0.5, 2.0 / 3.0, 0.5, 1.0, 1.0], " (AP = 0.83)"),
        ("calibration", [0.1, 0.375, 0.8], [0.0, 0.5, 1.0], ""),
    ],
)
def test_curves_are_those_of_a_known_ranking(kind: str, x: list, y: list, said: str) -> None:
    truth, share = np.array([False, False, True, True]), np.array([0.1, 0.4, 0.35, 0.8])
    *points, words = _curve(kind, truth, share)
    assert points == [pytest.approx(x), pytest.approx(y)]
    assert words == said
