"""The leads and errors that first pages name are those of the tables of single sets below them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from kernelweave.kernels_core.arrays import FloatArray
from scipy.stats import t

ROOT = Path(__file__).resolve().parent.parent
FIRST = [ROOT / "README.md", ROOT / "docs/index.md"]
MEASURES = ("R²", "accuracy")
KINDS = ROOT / "plugins/papers/src/kernelweave/papers/study/real_tables.csv"
HILLS = ("hill valley", "hill valley, noisy")


def cells(text: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of Markdown's tables."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def number(text: str) -> float:
    """Return the number that a cell begins with."""
    return float(text.split()[0].replace("−", "-"))


def part(text: str, start: str, end: str) -> str:
    """Return what stands between two headings."""
    return text.partition(start)[2].partition(end)[0]


def interval(differences: Sequence[float]) -> FloatArray:
    """Return a mean and the ends of Student's 95 % interval."""
    values = np.asarray(differences)
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() + half * np.array([0.0, -1.0, 1.0])


def figures(cell: str) -> FloatArray:
    """Return a mean and the ends of its interval as a page has them."""
    return np.array([float(each) for each in re.findall(r"[+-][0-9.]+", cell.replace("−", "-"))])


def differences(*names: str) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Return leads by kind of table and measure, a list for each method that is named."""
    study = (ROOT / "docs/study-tables.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], dict[str, list[float]]] = {}

    def add(kind: str, row: list[str], heads: list[str]) -> None:
        ours = number(row[heads.index("evidence")])
        leads = found.setdefault((kind, row[1]), {})
        for name in set(names) & set(heads):
            leads.setdefault(name, []).append(ours - number(row[heads.index(name)]))

    with KINDS.open(encoding="utf-8") as stream:
        kinds = {row["name"]: row["kind"] for row in csv.DictReader(stream)}
    heads: list[str] = []
    for row in cells(part(study, "## With 300 training rows", "## With 1000")):
        heads = row if row[0] == "data" else heads
        if row[1] in MEASURES:
            add("all", row, heads)
            if row[0] not in HILLS:
                add("without two", row, heads)
    for row in cells(study.partition("## With categories, text")[2]):
        heads = row if row[0] == "data" else heads
        if row[1] in MEASURES and row[0] != "Mario Kart":
            add(kinds[row[0]], row, heads)
    return found


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
def test_the_leads_of_the_first_pages(page: Path) -> None:
    """Each with its interval, and marked where that holds 0."""
    found = differences("CatBoost", "HistGB", "RBF-SVM")
    rows = {row[0]: row for row in cells(page.read_text(encoding="utf-8")) if row[1] in MEASURES}
    named = {
        "19 tables of numbers, 300 rows": "all",
        "30 tables of numbers, 300 rows": "all",
        "the same without two": "without two",
        "45 tables with categories or text": "words",
        "21 tables with categories or text": "words",
        "14 further tables of numbers": "numbers",
        "9 further tables of numbers": "numbers",
    }
    assert rows.keys() == named.keys()
    mark = "*" if page.name == "README.md" else "["
    for name, kind in named.items():
        leads = found[kind, rows[name][1]]
        if name[0].isdigit():
            assert int(name.split()[0]) == len(leads["CatBoost"])
        for method, cell in zip(("CatBoost", "HistGB", "RBF-SVM"), rows[name][2:], strict=True):
            if method not in leads:
                assert cell == "", (name, method)
                continue
            # pages round what the rows of single tables have rounded
            assert figures(cell) == pytest.approx(interval(leads[method]), abs=0.07), (name, method)
            assert cell.startswith("+" if np.prod(figures(cell)[1:]) > 0.0 else mark), (
                name,
                method,
            )


def test_the_errors_that_new_rows_open_with() -> None:
    """Mean distances of expected and observed scores, where ``groups`` or ``order`` were passed."""
    text = (ROOT / "docs/new-rows.md").read_text(encoding="utf-8")
    rows = [row for row in cells(text.partition("## Each table")[2]) if "±" in row[4]]
    off = [number(row[4]) - number(row[5]) for row in rows]
    first_later = [row[0] for row in rows].index("random walk")
    assert (len(off), first_later) == (23, 11)
    groups, later = np.array(off[:first_later]), np.array(off[first_later:])
    opening = text.partition("\n## ")[0]
    assert f"{np.abs(groups).mean():.2f} in the mean for new groups" in " ".join(opening.split())
    words = f"{np.abs(later).mean():.2f} for later rows, where it is {later.mean():.1f} too high"
    assert words in " ".join(opening.split())
