"""``kernelweave report``: one page, whole, escaped, readable in a browser of any width."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with three fitted models and a small table with an awkward name."""
    from kernelweave.workbench.app import run

    folder = tmp_path_factory.mktemp("models")
    quick = ["--model", "tkl", "--tol", "0.1", "--max-iter", "20", "--no-compare"]
    for name, data in (("iris", "iris"), ("diabetes", "diabetes")):
        assert run(["fit", data, *quick, "--out", str(folder / f"{name}.kw")]) == 0
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'<yes>' if a > b else 'no&'}" for a, b in rng.normal(size=(60, 2))]
    (folder / "t.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    assert (
        run(["fit", str(folder / "t.csv"), *quick, "--target", "y", "--out", str(folder / "t.kw")])
        == 0
    )
    return folder


def test_a_page_needs_nothing_beside_it(run: Callable, models: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run("report", models / "t.kw", models / "t.csv", "--out", page)
    assert done.status == 0
    assert done.out.strip() == str(page)
    done = run("report", models / "t.kw", models / "t.csv", "--out", page, "--force", "--json")
    found = json.loads(done.out)
    assert found["page"] == str(page)
    assert found["scores"]["accuracy"] > 0.8
    text = page.read_text()
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    assert "<script" not in text
    for word in ("What is proved", "Convergence", "Spectrum of P", "Calibration", "tkl-low-rank"):
        assert word in text
    assert "&lt;yes&gt;" in text
    assert "<yes>" not in text
    assert text.count("<img") == text.count('alt="') == 4


def test_the_same_model_gives_the_same_page(run: Callable, models: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        run("report", models / "iris.kw", "iris", "--out", tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_regression_has_residuals(run: Callable, models: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("report", models / "diabetes.kw", "diabetes", "--out", page)
    text = page.read_text()
    assert "Residuals" in text
    assert "root mean squared error" in text


def test_without_data_there_are_no_scores(run: Callable, models: Path) -> None:
    done = run("report", models / "iris.kw", "--force")
    assert done.status == 0
    text = (models / "iris.html").read_text()
    assert "Scores" not in text
    assert "Convergence" in text


def test_errors_are_one_sentence_and_nothing_is_overwritten(
    run: Callable, models: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("precious")
    assert "exists already" in run("report", models / "iris.kw", "--out", page).error
    other = tmp_path / "t.csv"
    other.write_text((models / "t.csv").read_text().replace("no&", "maybe"))
    force = ("--out", page, "--force")
    assert "knows no class 'maybe'" in run("report", models / "t.kw", other, *force).error
    other.write_text("a,y\n1,no&\n2,<yes>\n")
    assert (
        "columns that the model was fitted on: 'b'"
        in run("report", models / "t.kw", other, *force).error
    )
    assert page.read_text() == "precious"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_needs_no_scrolling_sideways(
    run: Callable, models: Path, tmp_path: Path, width: int
) -> None:
    page = tmp_path / "page.html"
    run("report", models / "t.kw", models / "t.csv", "--out", page)
    probe = (
        "<script>onload = () => document.title = ["
        "document.documentElement.scrollWidth, innerWidth, "
        "[...document.images].every(i => i.complete && i.naturalWidth > 0)].join();</script>"
    )
    frame = tmp_path / "frame.html"
    inner = page.read_text().replace("</body>", f"{probe}</body>")
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
